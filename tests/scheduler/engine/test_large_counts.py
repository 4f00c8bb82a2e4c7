"""Runs that have made more than 2^31 ticks, or are beyond 10^6 s: counters, sample hits, the grid.

A saved state carries the tick, so that a run can be put near a limit.
"""

from __future__ import annotations

import struct
from fractions import Fraction

import numpy as np
import pytest

from biella import Diagram, Result, replay, run_realtime, simulate
from biella.blocks import Constant, Gain, Integrator, MinMax, Pulse, UnitDelay
from biella.errors import PlanError
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine

TICK_AT = 16  # of a saved state: mark and format, hash of the plan, tick
LIMITS = [2**31 - 5, 2**32 - 5, 2**40 - 5]


def counting(step: float = 0.25, start_time: float = 0.0) -> Diagram:
    """A sampled block every 3rd tick, with an offset by its period only."""
    d = Diagram("count", step=step, start_time=start_time)
    one = d.add(Constant(1.0), name="one")
    d.connect(one, d.add(Gain(2.0), name="k"))
    d.connect(d["k"], d.add(UnitDelay(), name="delay", period=3 * step))
    return d


def at_tick(plan, tick: int) -> bytes:
    """Return the state of a plan at its start, as if it had made `tick` ticks."""
    with Instance(plan) as instance:
        instance.initialize()
        state = bytearray(instance.save())
    assert struct.unpack_from("<q", state, TICK_AT) == (0,)
    struct.pack_into("<q", state, TICK_AT, tick)
    return bytes(state)


@pytest.mark.parametrize("first", LIMITS)
def test_ticks_beyond_32_bits(first: int, tmp_path) -> None:
    """Steps of 1/4 s are exact: time is tick · step to the bit, and every third tick is a hit."""
    plan = counting().compile()
    result = simulate(
        plan, (first + 12) * 0.25, checkpoint=at_tick(plan, first), out=tmp_path / "r.h5"
    )
    ticks = np.arange(first, first + 13)
    assert result.t.tolist() == (ticks * 0.25).tolist()
    assert result.info["ticks"] == 12
    # The delay gives 0 until the first hit after the start has been committed.
    hit = next(tick for tick in range(first, first + 3) if tick % 3 == 0)
    assert result["delay"].tolist() == [0.0 if t < hit + 3 else 2.0 for t in ticks]
    assert Result.from_hdf5(tmp_path / "r.h5").t.tolist() == result.t.tolist()
    assert result.checkpoint is not None
    assert struct.unpack_from("<q", result.checkpoint, TICK_AT) == (first + 12,)


@pytest.mark.parametrize("start", [1e6, 1e7, 4e9])
def test_a_grid_far_from_zero(start: float) -> None:
    """t = start + k·h, rounded once; the run has the ticks that were asked for."""
    d = Diagram("far", step=1e-3, start_time=start)
    d.add(Constant(1.0), name="one")
    result = simulate(d, start + 0.1)
    assert result.length == 101
    assert result.t.tolist() == [start + k * 1e-3 for k in range(101)]


@pytest.mark.parametrize("start", [1e8, 4e9])
@pytest.mark.parametrize("towards", [-np.inf, np.inf])
def test_a_run_to_a_time_that_is_rounded_ends_at_the_tick(start: float, towards: float) -> None:
    """One ulp of t is 15 to 480 ns here, more than the grid tolerance of 1 ns."""
    plan = counting(step=1e-3, start_time=start).compile()
    with Instance(plan) as instance:
        instance.initialize()
        for tick in range(1, 7):
            instance.run_to(float(np.nextafter(start + tick * 1e-3, towards)))
            assert (instance.tick, instance.time) == (tick, start + tick * 1e-3)


@pytest.mark.parametrize("start", [0.0, 1e6, 1e7])
def test_instants_far_from_zero_are_found_once(start: float) -> None:
    """Edges of a pulse, each at half a period of 8 ms: the grid tolerance is below one ulp of t."""
    d = Diagram("pulses", step=1e-3, start_time=start)
    d.add(Pulse(period=8e-3), name="pulse")
    result = simulate(d, start + 0.2)
    values = result["pulse"]
    edges = np.flatnonzero(np.diff(values)) + 1
    assert np.all(np.diff(edges) == 4) and len(edges) in (49, 50)
    assert result.events.total <= 51


@pytest.mark.parametrize("start", [0.0, 1e6, 1e8, 1e9])
def test_pulses_within_ticks_far_from_zero_have_their_area(start: float) -> None:
    """Against the exact integral, in fractions; each edge may be off by two ulp of t.

    An edge whose evaluation was rounded to the time before it was missed for half a period.
    """
    d = Diagram("area", step=1e-3, start_time=start)
    d.connect(d.add(Pulse(period=7.3e-3), name="pulse"), d.add(Integrator(0.0), name="x"))
    result = simulate(d, start + 0.2)
    period = Fraction(7.3e-3)

    def area(t: Fraction) -> Fraction:
        cycles = t // period
        return cycles * period / 2 + min(t - cycles * period, period / 2)

    exact = float(area(Fraction(float(result.t[-1]))) - area(Fraction(start)))
    # At most 56 edges; the grid tolerance is 1e-6 of a tick.
    tolerance = 60 * (2 * np.spacing(start + 0.2) + 1e-9)
    assert abs(result["x"][-1] - exact) <= tolerance


def test_a_real_time_run_far_from_zero_is_logged_and_replayed(tmp_path) -> None:
    d = counting(step=1e-3, start_time=2e6)
    with run_realtime(d, 2e6 + 0.05, clock="free", out=tmp_path / "log.h5") as run:
        result = run.wait()
    log = Result.from_hdf5(tmp_path / "log.h5")
    assert log.t.tolist() == [2e6 + k * 1e-3 for k in range(51)]
    again = replay(tmp_path / "log.h5", counting(step=1e-3, start_time=2e6))
    assert all(again[path].tobytes() == result[path].tobytes() for path in result)


def test_more_crossing_functions_than_there_may_be_values_are_refused():
    """Of a block with 600 inputs, all from one vector: 599 · 2¹⁸ comparisons, beyond 2²⁷."""
    d = Diagram("many", step=0.1)
    wide = d.add(Constant(np.zeros(1 << 18)), name="wide")
    largest = d.add(MinMax("max", inputs=600), name="largest")
    for port in largest.input_index:
        d.connect(wide, largest[port])
    with pytest.raises(PlanError, match="it has too many crossing functions"):
        simulate(d, 0.1)
