"""The encoder: exact counts, its signals, and how far its speeds can be off."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.signal
from hypothesis import given, settings
from hypothesis import strategies as st

from biella import DiagramError
from biella.blocks import Encoder
from biella.blocks.sensors import presets

pytestmark = pytest.mark.engine

STEP = 1e-3
SPEEDS = np.geomspace(0.3, 3000.0, 25)


def turning(speed: float, ticks: int = 2000, step: float = STEP, start: float = 0.123) -> Any:
    return start + speed * np.arange(ticks) * step


@settings(max_examples=60)
@given(
    st.lists(st.floats(-1e5, 1e5), min_size=2, max_size=30),
    st.sampled_from([1, 7, 60, 4096, 10_000_000]),
)
def test_counts_are_exact_at_any_speed(measure: Any, angles: Any, counts: int) -> None:
    """Against rational arithmetic; where an angle rounds to an edge, either side will do."""
    seen = measure(Encoder(counts, decoding=1), shaft=angles)["counts"]
    turn = Fraction(2 * math.pi)
    for angle, count in zip(angles, seen, strict=True):
        place = Fraction(angle) * counts / turn
        rounding = Fraction(1, 2**50) * abs(place) + Fraction(1, 2**1000)  # and underflow
        assert math.floor(place - rounding) <= count <= math.floor(place + rounding)


def test_a_and_b_decoded_by_a_state_machine_give_the_counts(measure: Any) -> None:
    t = np.arange(20_000) * 1e-4
    shaft = 0.3 * np.sin(3 * t) + 0.05 * t  # below one count in a sample, both ways
    out = measure(Encoder(1024), step=1e-4, shaft=shaft)
    assert np.abs(np.diff(out["counts"])).max() == 1
    # The order of (A, B) forwards, by the convention that A leads.
    order = {(1, 0): 0, (1, 1): 1, (0, 1): 2, (0, 0): 3}
    state = np.array([order[int(a), int(b)] for a, b in zip(out["a"], out["b"], strict=True)])
    move = (np.diff(state) + 1) % 4 - 1
    assert np.array_equal(np.cumsum(move), (out["counts"] - out["counts"][0])[1:])


@pytest.mark.parametrize("decoding", [1, 2, 4])
def test_a_rises_once_a_line(measure: Any, decoding: int) -> None:
    shaft = np.linspace(-0.01, 2 * np.pi - 0.01, 40_001)
    out = measure(Encoder(16 * decoding, decoding=decoding), shaft=shaft)
    assert np.sum(np.diff(out["a"]) > 0) == np.sum(np.diff(out["b"]) > 0) == 16
    assert out["counts"][-1] - out["counts"][0] == 16 * decoding
    # Rising edges of A are edges of a count.
    assert np.all(np.diff(out["counts"])[np.diff(out["a"]) > 0] == 1)


@pytest.mark.parametrize("speed", [20.0, -20.0, 1500.0, -1500.0])
def test_index_is_never_missed(measure: Any, speed: float) -> None:
    shaft = turning(speed, 1000)
    index = measure(Encoder(4096, zero=1.0), shaft=shaft)["index"]
    passes = np.flatnonzero(np.diff(np.floor((shaft - 1.0) / (2 * np.pi)))) + 1
    assert np.array_equal(np.flatnonzero(index), passes)


def test_angle_is_that_of_the_last_edge(measure: Any) -> None:
    shaft = turning(37.0)
    angle = measure(Encoder(360, decoding=1, zero=0.2), shaft=shaft)["angle"]
    assert np.all((shaft - angle >= -1e-12) & (shaft - angle < 2 * np.pi / 360 + 1e-12))


# Speed


@pytest.mark.parametrize("window", [1, 8])
def test_bound_of_speed_by_count(measure: Any, window: int) -> None:
    counts = 500
    pitch, bound = 2 * np.pi / counts, 2 * np.pi / counts / (window * STEP)
    worst = 0.0
    for speed in SPEEDS:
        encoder = Encoder(counts, window=window)
        error = measure(encoder, shaft=turning(speed))["speed"][window:] - speed
        # One count more or less in the window, and no more than that.
        assert np.abs(error).max() < bound
        assert np.abs(error.mean()) < 2 * pitch / (2000 * STEP - window * STEP)
        worst = max(worst, float(np.abs(error).max()))
    assert worst > 0.7 * bound  # so that the bound is not idle


@pytest.mark.parametrize("method", ["period", "both"])
@pytest.mark.parametrize("sign", [1, -1])
def test_speed_by_period_and_by_both_is_exact_but_for_the_clock(
    measure: Any, method: str, sign: int
) -> None:
    counts = 500
    for speed in sign * SPEEDS[SPEEDS > 2.0]:
        seen = measure(Encoder(counts, method=method, window=8), shaft=turning(speed))["speed"]
        settled = 2 * math.ceil(2 * np.pi / counts / abs(speed) / STEP) + 8
        assert seen[settled:] == pytest.approx(speed, rel=1e-8)


@pytest.mark.parametrize("method", ["period", "both"])
def test_bound_of_speed_with_a_clock(measure: Any, method: str) -> None:
    counts, clock, window = 500, 1e6, 8
    pitch, worst = 2 * np.pi / counts, 0.0
    for speed in SPEEDS[(SPEEDS > 2.0) & (SPEEDS < 1000.0)]:
        encoder = Encoder(counts, method=method, window=window, clock=clock)
        seen = measure(encoder, shaft=turning(speed))["speed"]
        between = pitch / speed
        if method == "both":  # edges of a window: at least all but one of those that pass in it
            between *= max(1, math.floor(window * STEP / between))
        bound = 1 / (clock * between - 1)
        settled = 2 * math.ceil(pitch / speed / STEP) + window
        error = np.abs(seen[settled:] / speed - 1)
        assert error.max() <= bound * (1 + 1e-9)
        worst = max(worst, float(error.max() / bound))
    assert worst > 0.5


def test_each_method_at_its_best(measure: Any) -> None:
    """Fast, counting is better than one period with a slow clock; slowly, it is hopeless."""

    def error(method: str, speed: float) -> float:
        encoder = Encoder(1000, method=method, window=10, clock=1e5)
        seen = measure(encoder, shaft=turning(speed))["speed"][100:]
        return float(np.abs(seen - speed).max() / speed)

    assert error("count", 300.0) < 0.05 < error("period", 300.0)
    assert error("period", 1.0) < 0.01 < 0.2 < error("count", 1.0)
    assert error("both", 300.0) < 0.0015 and error("both", 1.0) < 0.01


def test_speed_under_acceleration(measure: Any) -> None:
    """It is the mean speed between the edges used: late by half of what lies between."""
    t = np.arange(4000) * STEP
    shaft, rate = 20.0 * t + 10.0 * t**2, 20.0
    pitch = 2 * np.pi / 2000
    seen = measure(Encoder(2000, method="both", window=10), shaft=shaft)["speed"][20:]
    # Both edges lie within one pitch of the ends of a window of 10 samples; within a sample the
    # shaft is taken to turn evenly, off by rate · STEP² / 8 in angle at either edge.
    middle = (20.0 + rate * (t - 5 * STEP))[20:]
    late = pitch / 20.0
    bound = rate * late + 2 * (rate * STEP**2 / 8) / (10 * STEP - late)
    assert np.abs(seen - middle).max() < bound


def test_standstill(measure: Any) -> None:
    shaft = np.where(np.arange(3000) < 500, turning(10.0, 3000), turning(10.0, 3000)[500])
    pitch, t = 2 * np.pi / 1000, np.arange(3000) * STEP
    for method in ("period", "both"):
        encoder = Encoder(1000, method=method, window=5, timeout=0.2)
        seen = measure(encoder, shaft=shaft)["speed"]
        waited = t[510:690] - t[500]
        assert np.all(np.abs(seen[510:690]) <= pitch / waited * (1 + 1e-9))
        assert np.all(seen[510:690] > 0) and np.all(seen[705:] == 0.0)


def test_swinging_about_one_edge_is_no_speed(measure: Any) -> None:
    shaft = 1e-3 * np.cos(np.arange(200))
    for method in ("period", "both"):
        assert np.all(measure(Encoder(100, method=method), shaft=shaft)["speed"] == 0.0)


def test_speed_before_two_edges_is_zero(measure: Any) -> None:
    for method in ("period", "both"):
        seen = measure(Encoder(4, method=method, timeout=10), shaft=turning(1.0, 6000, start=0.1))
        second = np.flatnonzero(np.diff(seen["counts"]))[1]
        assert np.all(seen["speed"][: second + 1] == 0.0)
        assert seen["speed"][second + 1 :] == pytest.approx(1.0, rel=1e-9)


def test_one_channel_does_not_know_the_direction(measure: Any) -> None:
    """The toothed wheel of the rig's torque meter: 60 pulses per revolution."""
    for speed in (10.0, -10.0):
        out = measure(Encoder(**presets.TORQUE_METER_PULSES, method="both"), shaft=turning(speed))
        turns = 10.0 * 1999 * STEP / (2 * np.pi)
        assert out["counts"][-1] - out["counts"][0] == pytest.approx(60 * turns, abs=1)
        assert np.all(np.diff(out["counts"]) >= 0) and not out["b"].any()
        assert out["speed"][100:] == pytest.approx(10.0, rel=1e-8)


# What a disc and its electronics do


def test_eccentricity_shows_once_a_turn(measure: Any) -> None:
    shaft = 2 * np.pi * np.arange(5000) / 1000  # five whole turns
    encoder = Encoder(2**20, eccentricity=2e-3, eccentric_at=0.5)
    error = measure(encoder, shaft=shaft)["angle"] - shaft
    once = 2 * np.mean(error * np.exp(-1j * shaft))
    assert abs(once) == pytest.approx(2e-3, rel=1e-3)
    assert np.angle(once * 1j) == pytest.approx(-0.5, abs=1e-3)


def test_edges_are_off_by_their_error_and_alike_in_each_turn(measure: Any) -> None:
    counts, fine = 64, 400
    shaft = 2 * np.pi * (np.arange(3 * counts * fine) + 0.5) / (counts * fine)
    out = measure(Encoder(counts, edge_error=0.05, seed=4), shaft=shaft)["counts"]
    at = (np.flatnonzero(np.diff(out)) + 1) / fine  # in counts
    error = at - np.round(at)
    assert np.all(np.diff(out) <= 1) and len(at) >= 3 * counts - 1
    assert np.allclose(error[1 : 1 + counts], error[1 + counts : 1 + 2 * counts], atol=1 / fine)
    # Even between both ends; the largest of 64 is near them.
    assert 0.04 < np.abs(error).max() <= 0.05 + 1 / fine
    assert error[1 : 1 + counts].std() == pytest.approx(0.05 / math.sqrt(3), rel=0.25)
    other = measure(Encoder(counts, edge_error=0.05, seed=5), shaft=shaft)["counts"]
    assert not np.array_equal(out, other)


def test_errors_of_edges_stay_errors_of_edges_in_the_speed(measure: Any) -> None:
    """Two edges are off by at most the error, over all the edges of a window: nothing worse."""
    shaft = turning(40.0, 20_000, 1e-4)
    encoder = Encoder(4096, method="both", window=10, edge_error=0.2, seed=1)
    seen = measure(encoder, step=1e-4, shaft=shaft)["speed"][20:]
    edges = math.floor(40.0 * 1e-3 * 4096 / (2 * np.pi))
    error = np.abs(seen / 40.0 - 1)
    assert 0.5 * 2 * 0.2 / edges < error.max() < 2 * 0.2 / (edges - 2 * 0.2)


def test_too_fast_for_the_electronics(measure: Any) -> None:
    speeds = np.where((np.arange(300) > 100) & (np.arange(300) <= 200), 30.0, 10.0)
    shaft = np.cumsum(speeds * STEP)
    fastest = 20.0 * 1000 / (2 * np.pi)
    out = measure(Encoder(1000, fastest=fastest), shaft=shaft)["counts"]
    slow = measure(Encoder(1000), shaft=shaft)["counts"]
    assert np.array_equal(out[:101], slow[:101]) and np.all(out[101:201] == out[100])
    lost = slow[200] - slow[100]
    assert np.array_equal(out[201:], slow[201:] - lost)


def test_dropout_loses_counts_for_good(measure: Any) -> None:
    shaft, n = turning(50.0, 300), np.arange(300)
    off = (n >= 100) & (n < 150)
    plain = measure(Encoder(1000), shaft=shaft)
    out = measure(Encoder(1000), shaft=shaft, dropout=off)
    assert np.all(out["counts"][100:150] == plain["counts"][99])
    assert not (out["a"][off] + out["b"][off] + out["index"][off]).any()
    lost = plain["counts"][149] - plain["counts"][99]
    assert np.array_equal(out["counts"][150:], plain["counts"][150:] - lost)
    assert np.all(out["speed"][101:150] == 0.0)
    # Edges that nobody saw are not in the speed either.
    timed = measure(Encoder(1000, method="both", window=5), shaft=shaft, dropout=off)["speed"]
    assert timed[6:100] == pytest.approx(50.0) and timed[156:] == pytest.approx(50.0)
    assert np.all(timed[150:155] < 10.0)  # few counted, in a long time


def test_stuck_freezes_all_outputs_and_recovers(measure: Any) -> None:
    shaft, n = turning(50.0, 300), np.arange(300)
    on = (n >= 100) & (n < 150)
    plain, out = (measure(Encoder(1000), shaft=shaft, stuck=s) for s in (0 * n, on))
    for name, values in out.items():
        assert np.all(values[on] == plain[name][99]), name
        assert np.array_equal(values[~on], plain[name][~on]), name


@pytest.mark.parametrize("samples", [1, 7])
def test_latency_by_cross_correlation(measure: Any, samples: int) -> None:
    shaft = np.cumsum(np.random.default_rng(1).normal(size=2000))
    plain = measure(Encoder(1000, window=3), shaft=shaft)
    out = measure(Encoder(1000, window=3, latency=samples * STEP), shaft=shaft)
    correlation = scipy.signal.correlate(np.diff(out["counts"]), np.diff(shaft))
    lags = scipy.signal.correlation_lags(1999, 1999)
    assert lags[np.argmax(correlation)] == samples
    for name, values in out.items():
        assert np.array_equal(values[samples:], plain[name][:-samples]), name


def test_stuck_behind_a_latency(measure: Any) -> None:
    shaft, n = turning(50.0, 60), np.arange(60)
    on = (n >= 20) & (n < 30)
    plain, out = (
        measure(Encoder(1000, latency=2 * STEP), shaft=shaft, stuck=s)["counts"]
        for s in (0 * n, on)
    )
    assert np.all(out[on] == plain[19]) and np.array_equal(out[~on], plain[~on])


MISTAKES = [
    (lambda: Encoder(0), "`counts` .* from 1"),
    (lambda: Encoder(10.5), "`counts` .* whole number"),  # type: ignore[arg-type]
    (lambda: Encoder(1022), "multiple of its decoding, 4: 1022 is not, 1024 is"),
    (lambda: Encoder(8, decoding=3), "`decoding` .* 1, 2 or 4"),
    (lambda: Encoder(8, method="guess"), "'count', 'period', 'both'"),
    (lambda: Encoder(8, window=0), "`window` of an Encoder needs a whole number"),
    (lambda: Encoder(8, clock=-1.0), "`clock` .* above 0"),
    (lambda: Encoder(8, timeout=0.0), "`timeout` .* above 0"),
    (lambda: Encoder(8, fastest=0.0), "`fastest` .* above 0"),
    (lambda: Encoder(8, edge_error=0.5), "from 0 to 0.45"),
    (lambda: Encoder(8, latency=-1.0), "`latency` .* 0 or above"),
]


@pytest.mark.parametrize(("make", "message"), MISTAKES)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        make()


def test_latency_that_is_no_multiple_says_which_are(measure: Any) -> None:
    with pytest.raises(DiagramError, match=r"0\.002 s and 0\.003 s are"):
        measure(Encoder(8, latency=2.4e-3), shaft=[0.0, 1.0])
