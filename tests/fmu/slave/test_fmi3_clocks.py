"""Clocks of FMI 3.0: the importing tool activates the rates of the diagram.

What is sampled is compared with the same FMU without clocks, to the bit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_bool, c_double, c_uint32, c_uint64
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fmi3_calls import ERROR, OK, Instance3, Unpacked3, flag, is_refused

from biella import Diagram
from biella.blocks import (
    PID,
    Compare,
    Gain,
    Integrator,
    Relay,
    Sine,
    Stop,
    Sum,
    TransportDelay,
    UnitDelay,
    ZeroOrderHold,
)

pytestmark = pytest.mark.engine

STEP = 1e-3
Make = Callable[[], Diagram]


def make_two_rates() -> Diagram:
    """A plant that is driven by samples of two rates, one with an offset; u is an input."""
    d = Diagram("two rates", step=STEP)
    u = d.input("u")
    error, x = d.add(Sum("+-"), "error"), d.add(Integrator(0.3), "x")
    fast = d.add(PID(kp=3.0, ki=20.0, kd=0.01, filter_time=0.01, period=4e-3), "fast")
    slow = d.add(UnitDelay(0.1), "slow", period=6e-3, offset=2e-3)
    drive = d.add(Sum("++"), "drive")
    d.connect(u, fast["reference"], error["u1"])
    d.connect(x, fast["measurement"], error["u2"])
    d.connect(error, slow)
    d.connect(fast, drive["u1"])
    d.connect(slow, drive["u2"])
    d.connect(drive, x)
    for name, block in {"x_": x, "fast_": fast, "slow_": slow, "drive_": drive}.items():
        d.output(name, block)
    return d


def make_mixed() -> Diagram:
    """Blocks that remember at every tick, events that are located, sources of time."""
    d = Diagram("mixed", step=STEP, solver="rk4")
    u = d.input("u")
    sine = d.add(Sine(amplitude=2.0, frequency=30.0), "sine")
    hold = d.add(ZeroOrderHold(), "hold", period=3e-3)
    memory = d.add(TransportDelay(2.5e-3), "memory")
    relay = d.add(Relay(on=0.2, off=-0.2, high=-40.0, low=40.0), "relay")
    x = d.add(Integrator(0.0), "x")
    total = d.add(Sum("++++"), "total")
    d.connect(u, hold)
    d.connect(sine, memory)
    d.connect(x, relay)
    for k, source in enumerate((sine, hold, memory, relay), 1):
        d.connect(source, total[f"u{k}"])
    d.connect(total, x)
    for name, block in {"x_": x, "hold_": hold, "memory_": memory, "total_": total}.items():
        d.output(name, block)
    return d


MODELS: dict[str, tuple[Make, list[str]]] = {
    "two rates": (make_two_rates, ["x_", "fast_", "slow_", "drive_"]),
    "mixed": (make_mixed, ["x_", "hold_", "memory_", "total_"]),
}


def open_fmu(folder: Path, diagram: Diagram, clocks: bool = True, **options: Any) -> Unpacked3:
    name = f"{diagram.name} {clocks}"
    path = diagram.export_fmu(
        folder / f"{name}.fmu", version="3.0", clocks=clocks, sources=False, **options
    )
    return Unpacked3(path, folder / name)


class Clocked(Instance3):  # type: ignore[misc]
    """An instance whose clocks are activated as its description says."""

    def __init__(self, fmu: Unpacked3, **options: Any) -> None:
        super().__init__(fmu, events=True, **options)
        self.clocks = {
            name: (int(v.attrib["intervalCounter"]), int(v.attrib["shiftCounter"]))
            for name, v in fmu.variables.items()
            if v.tag == "Clock"
        }

    def due(self, tick: int) -> list[str]:
        return [
            name
            for name, (period, shift) in self.clocks.items()
            if tick >= shift and (tick - shift) % period == 0
        ]

    def activate(self, *names: str, value: bool = True) -> int:
        references = (c_uint32 * max(len(names), 1))(*(self.fmu.refer(n) for n in names))
        values = (c_bool * max(len(names), 1))(*[value] * len(names))
        return self.call("fmi3SetClock", references, len(names), values)

    def is_active(self, name: str) -> bool:
        value = c_bool()
        assert (
            self.call("fmi3GetClock", (c_uint32 * 1)(self.fmu.refer(name)), 1, byref(value)) == OK
        )
        return value.value

    def take(self, tick: int) -> None:
        """Leave event mode with the clocks of a tick taken."""
        assert self.activate(*self.due(tick)) == OK, self.log
        assert self.update() == (OK, False, False), self.log
        assert self.call("fmi3EnterStepMode") == OK


def drive(tick: int) -> float:
    return 0.25 * ((7 * tick) % 23) - 2.0


def go(one: Instance3, tick: int) -> None:
    """From event mode at a tick to event mode at another one; steps may end at events."""
    assert one.call("fmi3EnterStepMode") == OK
    while True:
        assert one.step(tick * STEP - one.time)[0] == OK, one.log
        assert one.call("fmi3EnterEventMode") == OK
        if tick * STEP - one.time < 1e-9:
            return
        assert one.update()[0] == OK
        assert one.call("fmi3EnterStepMode") == OK


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("early", [False, True])
def test_the_same_bits_as_without_clocks(tmp_path: Path, model: str, early: bool) -> None:
    """Communication at each tick of a clock: inputs in event mode, before the clocks are taken."""
    make, names = MODELS[model]
    plain = Instance3(open_fmu(tmp_path, make(), clocks=False), events=True, early=early).start()
    one = Clocked(open_fmu(tmp_path, make()), early=early).start()
    ticks = [k for k in range(80) if one.due(k)]
    seen = set()
    for here, there in pairwise(ticks):
        assert plain.set("u", drive(here)) == one.set("u", drive(here)) == OK
        row = plain.get(*names)
        assert one.activate(*one.due(here)) == OK
        assert one.get(*names) == row  # at the tick, where the clocks are active
        assert plain.update() == one.update() == (OK, False, False)
        assert one.get(*names) == row  # and after it
        for instance in (plain, one):
            go(instance, there)
        seen.add(tuple(row))
    assert len(seen) > 10


@pytest.mark.parametrize("model", MODELS)
def test_inputs_after_the_tick_are_not_sampled(tmp_path: Path, model: str) -> None:
    """Clocked blocks have the inputs of event mode; what is set in step mode acts from there."""
    make, _ = MODELS[model]
    fmu = open_fmu(tmp_path, make())
    sampled = "hold_" if model == "mixed" else "fast_"
    first, second = Clocked(fmu).start(), Clocked(fmu).start()
    held = []
    for one, after in ((first, None), (second, 50.0)):
        assert one.set("u", 1.0) == OK
        one.take(0)
        if after is not None:
            assert one.set("u", after) == OK
        held.append(one.get(sampled))
        assert one.step(2e-3)[0] == OK
        held.append(one.get(sampled))
    assert held[0] == held[1] == held[2] == held[3]


@pytest.mark.parametrize("model", MODELS)
def test_saved_states_in_every_phase_continue_with_the_same_bits(
    tmp_path: Path, model: str
) -> None:
    """In event mode before and after the activation, after the update, and in step mode."""
    make, names = MODELS[model]
    fmu = open_fmu(tmp_path, make())
    one = Clocked(fmu).start()
    one.set("u", 1.5)
    one.take(0)
    tick = next(k for k in range(1, 20) if one.due(k))
    assert one.step(tick * STEP)[0] == OK
    assert one.call("fmi3EnterEventMode") == OK
    one.set("u", -0.7)
    following = next(k for k in range(tick + 1, 20) if one.due(k))

    def finish(phase: int) -> list[float]:
        if phase < 1:
            assert one.activate(*one.due(tick)) == OK
        if phase < 2:
            assert one.update()[0] == OK
        if phase < 3:
            assert one.call("fmi3EnterStepMode") == OK
        assert one.step((following - tick) * STEP, now=tick * STEP)[0] == OK
        return one.get(*names)

    states = [one.save()]
    one.activate(*one.due(tick))
    states.append(one.save())
    one.update()
    states.append(one.save())
    one.call("fmi3EnterStepMode")
    states.append(one.save())
    expected = finish(3)
    for phase, state in enumerate(states):
        assert one.restore(state) == OK
        assert finish(phase) == expected
        status, copy = one.deserialize(one.serialize(state))
        assert status == OK
        assert one.restore(copy) == OK
        # Derivatives in between change nothing.
        assert one.directional([names[0]], ["u"], [1.0])[0] == OK
        assert finish(phase) == expected


def test_missed_and_spurious_activations_are_errors(tmp_path: Path) -> None:
    fmu = open_fmu(tmp_path, make_two_rates())
    fast, slow = "clock_4ms", "clock_6ms_from_2ms"
    one = Clocked(fmu).start()
    assert list(one.clocks) == [fast, slow]
    # Beside its tick.
    assert one.activate(slow) == ERROR
    assert "does not tick at t = 0" in one.messages[-1] and "next at t = 0.002" in one.messages[-1]
    # Not activated at the start.
    assert one.update()[0] == ERROR
    assert f"value reference {fmu.refer(fast)} (every 0.004 s) ticks at t = 0" in one.messages[-1]
    state = one.save()
    assert one.call("fmi3EnterStepMode") == OK
    assert one.step(1e-3)[0] == ERROR
    assert "misses the tick" in one.messages[-1]
    # Past the next tick, of the other clock.
    assert one.restore(state) == OK
    one.time = 0.0
    one.take(0)
    state = one.save()
    assert one.step(3e-3)[0] == ERROR
    assert f"reference {fmu.refer(slow)} (every 0.006 s) at t = 0.002" in one.messages[-1]
    assert one.step(1e-3, now=0.0)[0] == ERROR  # broken
    assert one.restore(state) == OK
    # Twice at one instant.
    assert one.call("fmi3EnterEventMode") == OK
    assert one.activate(fast) == ERROR
    assert "has been active there: it ticks next at t = 0.004" in one.messages[-1]
    assert one.update()[0] == OK  # nothing is due
    assert one.call("fmi3EnterStepMode") == OK
    assert one.step(1e-3, now=0.0)[0] == OK  # within the tick of the clocks
    assert one.step(1e-3)[0] == OK
    assert one.call("fmi3EnterEventMode") == OK
    assert one.activate(slow) == OK and one.is_active(slow) and not one.is_active(fast)
    # Active clocks cannot be deactivated, others are not.
    assert one.activate(slow, value=False) == ERROR
    assert "cannot be deactivated" in one.messages[-1]
    assert one.activate(fast, value=False) == OK
    assert one.update()[0] == OK and not one.is_active(slow)
    assert one.call("fmi3EnterStepMode") == OK
    # Two that tick together.
    assert one.step(2e-3)[0] == OK
    for at in (4, 8):
        assert one.call("fmi3EnterEventMode") == OK
        assert one.due(at) == ([fast, slow] if at == 8 else [fast])
        assert one.activate(fast) == OK
        if at == 8:
            assert one.update()[0] == ERROR
            assert f"value reference {fmu.refer(slow)}" in one.messages[-1]
            assert one.activate(slow) == OK
        assert one.update()[0] == OK
        assert one.call("fmi3EnterStepMode") == OK
        assert one.step(4e-3 if at == 4 else 2e-3)[0] == OK


def test_timing_is_that_of_the_description(tmp_path: Path) -> None:
    fmu = open_fmu(tmp_path, make_two_rates())
    one = Clocked(fmu)
    assert one.enter_initialization() == OK
    references = (c_uint32 * 2)(*(fmu.refer(name) for name in one.clocks))
    decimals, qualifiers = (c_double * 2)(), (ctypes.c_int * 2)()
    counters, resolutions = (c_uint64 * 2)(), (c_uint64 * 2)()
    assert one.call("fmi3GetIntervalDecimal", references, 2, decimals, qualifiers) == OK
    assert list(decimals) == [4e-3, 6e-3] and list(qualifiers) == [1, 1]  # unchanged
    assert one.call("fmi3GetShiftDecimal", references, 2, decimals) == OK
    assert list(decimals) == [0.0, 2e-3]
    assert (
        one.call("fmi3GetIntervalFraction", references, 2, counters, resolutions, qualifiers) == OK
    )
    assert list(counters) == [4, 6] and list(resolutions) == [1000, 1000]
    assert one.call("fmi3GetShiftFraction", references, 2, counters, resolutions) == OK
    assert list(counters) == [0, 2]
    for name in one.clocks:
        v = fmu.variables[name]
        assert v.get("causality") == "input" and v.get("intervalVariability") == "constant"
        assert v.get("supportsFraction") == "true" and v.get("canBeDeactivated") == "false"
    for function in ("SetInterval", "SetShift"):
        assert one.call(f"fmi3{function}Decimal", references, 2, decimals) == ERROR
        assert one.messages[-1] == f"fmi3{function}Decimal is not supported"
        assert one.call(f"fmi3{function}Fraction", references, 2, counters, resolutions) == ERROR
    wrong = (c_uint32 * 1)(fmu.refer("u"))
    assert one.call("fmi3GetIntervalDecimal", wrong, 1, decimals, qualifiers) == ERROR
    assert one.messages[-1] == f"value reference {fmu.refer('u')} is not a clock"
    assert one.call("fmi3GetIntervalDecimal", None, 1, decimals, qualifiers) == ERROR
    assert one.call("fmi3GetIntervalDecimal", references, 1, None, qualifiers) == ERROR
    assert one.call("fmi3GetIntervalFraction", references, 1, counters, resolutions, None) == ERROR
    assert one.read("Float64", [fmu.refer("clock_4ms")], 1)[0] == ERROR


def timing(function: str, *more: Any) -> Callable[[Clocked], int]:
    def call(one: Clocked) -> int:
        reference = (c_uint32 * 1)(one.fmu.refer("clock_4ms"))
        return one.call(function, reference, 1, *more)

    return call


NUMBERS, WHOLES, QUALIFIERS = (c_double * 1)(), (c_uint64 * 1)(), (ctypes.c_int * 1)()
STATES = ("instantiated", "initialization", "event", "step", "terminated")
TIMING = ("initialization", "event")
# FMI 3.0, 2.3: which function of clocks may be called in which state.
ALLOWED: dict[str, tuple[tuple[str, ...], Callable[[Clocked], int]]] = {
    "fmi3GetIntervalDecimal": (TIMING, timing("fmi3GetIntervalDecimal", NUMBERS, QUALIFIERS)),
    "fmi3GetIntervalFraction": (
        TIMING,
        timing("fmi3GetIntervalFraction", WHOLES, (c_uint64 * 1)(), QUALIFIERS),
    ),
    "fmi3GetShiftDecimal": (("initialization",), timing("fmi3GetShiftDecimal", NUMBERS)),
    "fmi3GetShiftFraction": (
        ("initialization",),
        timing("fmi3GetShiftFraction", WHOLES, (c_uint64 * 1)()),
    ),
    "fmi3SetClock": (("event",), lambda one: one.activate("clock_4ms")),
    "fmi3GetClock": (STATES, timing("fmi3GetClock", (c_bool * 1)())),
}


def test_each_function_in_each_state(tmp_path: Path) -> None:
    fmu = open_fmu(tmp_path, make_two_rates())
    for state in STATES:
        for function, (allowed, call) in ALLOWED.items():
            one = Clocked(fmu)
            if state != "instantiated":
                assert one.enter_initialization() == OK
            if state in ("event", "step", "terminated"):
                assert one.call("fmi3ExitInitializationMode") == OK
            if state == "step":
                assert one.call("fmi3EnterStepMode") == OK
            if state == "terminated":
                assert one.call("fmi3Terminate") == OK
            assert call(one) == (OK if state in allowed else ERROR), (state, function)
            refused = any(is_refused(text, function) for text in one.messages)
            assert refused == (state not in allowed), (state, function, one.messages)
            one.free()


def test_clocks_require_event_mode(tmp_path: Path) -> None:
    fmu = open_fmu(tmp_path, make_two_rates())
    assert flag(fmu, "hasEventMode") == "true"
    one = Instance3(fmu, events=False)
    assert one.pointer.value is None
    assert "this FMU has clocks" in one.messages[-1]


def test_a_model_that_ends_at_a_tick(tmp_path: Path) -> None:
    d = Diagram("ends", step=STEP)
    hold = d.add(ZeroOrderHold(), "hold", period=2e-3)
    d.connect(d.input("u"), hold)
    over = d.add(Compare(">", 1.0), "over")
    d.connect(hold, over)
    d.connect(over, d.add(Stop("over"), "stop"))
    d.output("y", d.add(Gain(1.0), "k", u=hold))
    one = Clocked(open_fmu(tmp_path, d)).start()
    one.take(0)
    assert one.step(2e-3)[:3] == (OK, False, False)
    assert one.call("fmi3EnterEventMode") == OK
    one.set("u", 2.0)
    assert one.activate(*one.clocks) == OK
    assert one.update() == (OK, False, True)
    assert one.call("fmi3Terminate") == OK


def test_a_reset_instance_and_another_start_time(tmp_path: Path) -> None:
    fmu = open_fmu(tmp_path, make_two_rates())
    one = Clocked(fmu).start()
    one.take(0)
    assert one.step(1e-3)[0] == OK
    first = one.get("x_")
    assert one.call("fmi3Reset") == OK
    one.start(at=10.0)
    one.take(0)
    assert one.step(1e-3)[0] == OK
    assert one.get("x_") == first
    assert one.step(1.5e-3)[0] == ERROR
    assert "at t = 10.002" in one.messages[-1]
