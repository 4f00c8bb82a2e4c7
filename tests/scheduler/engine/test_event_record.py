"""Events in the record of the engine, and modes that are kept."""

from __future__ import annotations

from ctypes import POINTER, c_double, c_int64, cast

import numpy as np
import pytest

from biella import BlockError, Diagram
from biella.blocks import (
    Abs,
    Compare,
    Integrator,
    Port,
    PythonBlock,
    Relay,
    Stop,
    Sum,
    Time,
    python_block,
)
from biella.scheduler.engine._library import contract

pytestmark = pytest.mark.engine

ROWS = 2000


def oscillator(max_events: int = 32, until: float | None = None) -> Diagram:
    """A relay with hysteresis 0.1 around an integrator: it switches every 0.2 s."""
    d = Diagram(step=1e-2, max_events=max_events)
    x = d.add(Integrator(0.055), name="x")
    relay = d.add(Relay(0.1, -0.1, -1.0, 1.0), name="relay")
    d.connect(x, relay)
    d.connect(relay, x)
    if until is not None:
        d.chain(*map(d.add, (Time(), Compare(">=", until), Stop())))
    return d


def record(events: int) -> tuple[contract.bl_record, np.ndarray, np.ndarray]:
    out, pick = np.zeros((ROWS, 2)), np.zeros(1, dtype=np.int64)
    buffer = np.zeros(events, dtype=[("time", "f8"), ("block", "i4"), ("crossing", "i4")])
    made = contract.bl_record(
        pick=pick.ctypes.data_as(POINTER(c_int64)),
        count=1,
        every=1,
        out=out.ctypes.data_as(POINTER(c_double)),
        capacity=ROWS,
        events=cast(buffer.ctypes.data, POINTER(contract.bl_event)),
        event_capacity=events,
    )
    made.keep = pick
    return made, out, buffer


def test_a_full_buffer_of_events_ends_a_call_before_the_row_of_its_tick():
    """Room for the events of one tick, 2 × max_events, only: every event ends a call."""
    plan = oscillator(max_events=1).compile()
    made, out, buffer = record(2)
    times = []
    with plan.instantiate() as instance:
        left = 300
        while left:
            done, _ = instance.run(left, made)
            left -= done
            times += buffer["time"][: made.event_count].tolist()
            made.event_count = 0
        assert instance.event_counts[0] == len(times) == 15
    assert np.allclose(times, 0.045 + 0.2 * np.arange(15), rtol=0, atol=1e-9)
    assert np.allclose(out[: made.rows, 0], 1e-2 * np.arange(300), rtol=0, atol=1e-12)


def test_a_stop_does_not_repeat_the_events_of_the_tick_before():
    plan = oscillator(until=0.045).compile()
    made, _, buffer = record(1000)
    with plan.instantiate() as instance:
        _, stopped = instance.run(100, made)
        assert stopped
    assert buffer["time"][: made.event_count] == pytest.approx([0.045], abs=1e-9)


def test_a_state_saved_after_a_tick_that_failed_has_no_counts_of_it():
    """The relay switches at 0.045 s, and the block behind it fails in the rest of the tick."""
    fails = True

    @python_block(inputs=[Port("u")], outputs=[Port("y")])
    def fragile(u):
        if fails and u < 0.0:
            raise RuntimeError("broken")
        return 0.0

    d = oscillator()
    block = d.add(fragile(), name="fragile")
    d.connect(d["relay"], block)
    d.connect(block, d.add(Integrator(), name="after"))
    plan = d.compile()
    with plan.instantiate() as instance, plan.instantiate() as other:
        for engine in (instance, other):
            engine.run(4)
            with pytest.raises(BlockError, match="broken"):
                engine.run(1)
            assert engine.event_counts[0] == 1
        instance.restore(instance.save())
        assert instance.event_counts[:2] == (0, 0)
        fails = False
        for engine in (instance, other):  # the one that goes on drops them, too
            engine.run(30)
        assert instance.event_counts[:2] == (1, 0)
        assert np.array_equal(instance.values, other.values)


class Fuse(PythonBlock):
    """A state that has no derivative after a time."""

    def __init__(self, until: float) -> None:
        super().__init__(outputs=["y"], state=[0.0])
        self.until = until

    def output(self, t, x, u):
        return x[0]

    def derivative(self, t, x, u):
        if t > self.until:
            raise ValueError("blown")
        return [1.0]


def test_a_step_that_failed_is_not_counted_after_a_state_was_restored():
    """Only the same step, tried again, is counted anew: the relay switches at 0.045 and 0.245 s."""
    d = oscillator()
    d.add(Fuse(0.3), name="fuse")
    with d.compile().instantiate() as instance:
        instance.initialize()
        start = instance.save()
        for _ in range(2):
            with pytest.raises(BlockError, match="blown"):
                instance.run(100)
            assert instance.event_counts[0] == 2
        instance.restore(start)
        instance.run(10)
        assert instance.event_counts[0] == 1


def test_modes_are_kept_until_they_are_released():
    d = Diagram(step=1e-3)
    total = d.add(Sum("+"), name="total")
    d.connect(d.input("u", default=1.0), total)
    d.connect(total, d.add(Abs(), name="abs"))
    with d.compile().instantiate() as instance:
        with instance.frozen_modes():
            instance.set("u", -2.0)
            assert instance.get("abs.y") == -2.0
        assert instance.get("abs.y") == 2.0
