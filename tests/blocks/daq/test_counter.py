"""Tachometer: pulses counted and timed, against the shaft that gives them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from biella import Diagram, DiagramError, simulate
from biella.blocks import Playback, Tachometer

pytestmark = pytest.mark.engine

STEP = 1e-4


def measure(tachometer: Tachometer, u: Any, step: float = STEP) -> Any:
    """Run a tachometer on samples."""
    d = Diagram(step=step)
    d.add(tachometer, name="tachometer")
    times = np.arange(len(u)) * step
    d.connect(d.add(Playback(times, u, interpolation="hold", unit="V")), "tachometer")
    return simulate(d, times[-1])


def settled(result: Any, name: str = "speed") -> Any:
    return result[f"tachometer.{name}"][len(result.t) // 4 :]


def worst_crossing(delta: float) -> float:
    """Return how far in rad the chord of a sine over delta misses its zero at most."""

    def miss(start: float) -> float:
        low, high = np.sin(-start), np.sin(delta - start)
        return -abs(-start - low * delta / (high - low))

    starts = np.linspace(0, delta, 12)[1:-1]
    return max(
        -minimize_scalar(miss, bounds=(a, b), method="bounded").fun
        for a, b in itertools.pairwise(starts)
    )


@pytest.mark.parametrize("frequency", [7.3, 61.0, 377.7, 1234.5, 3100.0])
def test_speed_of_a_sine_within_what_a_chord_misses(frequency: float) -> None:
    t = np.arange(40_000) * STEP
    result = measure(Tachometer(60), np.sin(2 * np.pi * frequency * t + 0.3))
    wanted = 2 * np.pi * frequency / 60
    bound = 2 * worst_crossing(2 * np.pi * frequency * STEP) / (2 * np.pi)
    off = np.abs(settled(result) / wanted - 1)
    assert off.max() <= bound / (1 - bound) + 1e-9
    assert settled(result, "frequency") == pytest.approx(60 * settled(result) / (2 * np.pi))


@pytest.mark.parametrize("average", [1, 10])
def test_speed_of_a_square_wave_within_a_sample(average: int) -> None:
    t = np.arange(40_000) * STEP
    frequency = 97.3
    u = (np.mod(frequency * t, 1.0) < 0.4) * 5.0
    result = measure(Tachometer(1, 2.5, average=average), u)
    off = np.abs(settled(result) / (2 * np.pi * frequency) - 1)
    bound = 1 / (average / (frequency * STEP) - 1)
    assert 0.3 * bound < off.max() <= bound


def test_a_clock_rounds_as_much_as_it_may() -> None:
    t = np.arange(40_000) * STEP
    frequency, clock = 97.3, 2e4
    result = measure(Tachometer(1, clock=clock), np.sin(2 * np.pi * frequency * t))
    off = np.abs(settled(result) / (2 * np.pi * frequency) - 1)
    bound = 1 / (clock / frequency - 1)
    assert 0.5 * bound < off.max() <= bound * 1.001


def test_counts_of_a_run_up_are_exact() -> None:
    t = np.arange(50_000) * STEP
    cycles = 2.0 * t + 60.0 * t**2 + 0.25
    u = np.sin(2 * np.pi * cycles)
    result = measure(Tachometer(60, average=2), u)
    # An edge is where cycles pass a whole number; outputs tell of the samples before.
    passed = np.floor(cycles[:-1]) - np.floor(cycles[0])
    assert np.array_equal(result["tachometer.count"][1:], passed)
    speed = (2.0 + 120.0 * t) * 2 * np.pi / 60
    late = result["tachometer.speed"][20_000:] / speed[20_000:]
    assert late.max() < 1.0 and late.min() > 0.95  # the mean of the pulses before


def test_noise_within_the_hysteresis_makes_no_pulses() -> None:
    t = np.arange(40_000) * STEP
    noise = np.random.default_rng(1).normal(scale=0.03, size=t.size)
    u = np.sin(2 * np.pi * 20.0 * t - 0.1) + noise
    # 80 periods; the first edge comes before the signal was below the hysteresis.
    assert measure(Tachometer(60, hysteresis=0.3), u)["tachometer.count"][-1] == 79
    assert measure(Tachometer(60), u)["tachometer.count"][-1] > 85


def test_a_whole_turn_evens_out_the_teeth() -> None:
    teeth = np.sort(np.linspace(0, 1, 12, endpoint=False) + 0.01 * np.sin(7 * np.arange(12)))
    t = np.arange(60_000) * STEP
    turns = 5.0 * t
    places = np.append(teeth, teeth[0] + 1.0)
    phase = np.interp(np.mod(turns - teeth[0], 1.0) + teeth[0], places, np.arange(13))
    u = np.sin(2 * np.pi * phase)
    rough, even = (settled(measure(Tachometer(12, average=n), u)) for n in (1, 12))
    assert np.ptp(rough) > 0.1 * 10 * np.pi
    assert even == pytest.approx(10 * np.pi, rel=2e-4)


def test_a_shaft_that_stops_is_believed_less_and_less() -> None:
    t = np.arange(30_000) * STEP
    u = np.sin(2 * np.pi * 50.0 * np.minimum(t, 1.0) + 0.1)
    speed = measure(Tachometer(10, timeout=0.7), u)["tachometer.speed"]
    edge = np.floor(50.1 / 1.0)  # about when the last one came
    waited = t - (edge - 0.1 / (2 * np.pi)) / 50.0
    after = (t > 1.05) & (waited < 0.7 - 2 * STEP)
    assert speed[after] == pytest.approx(2 * np.pi / 10 / waited[after], rel=0.02)
    assert np.all(speed[waited > 0.7 + 2 * STEP] == 0.0)
    assert speed[5000] == pytest.approx(10 * np.pi, rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pulses": 0}, "`pulses` is a whole number from 1"),
        ({"pulses": 60, "hysteresis": -1.0}, "`hysteresis` is 0 or above"),
        ({"pulses": 60, "average": 0}, "`average` is a whole number from 1"),
        ({"pulses": 60, "clock": 0.0}, "positive number, in Hz"),
        ({"pulses": 60, "timeout": 0.0}, "positive number, in s"),
    ],
)
def test_wrong_parameters_say_what_is_possible(arguments: Any, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        Tachometer(**arguments)
