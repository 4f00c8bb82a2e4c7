"""Accumulation of sampled errors: what is known in closed form of linear motions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from biella.scheduler.results._error_estimate import (
    MOST_PARTS,
    ErrorEstimate,
    Samples,
    accumulate,
    estimate_errors,
    find_step,
)


def sample(
    state: Any,
    error: Any,
    propagate: Any,
    *,
    ticks: int = 2400,
    count: int = 120,
    follow: int = 10,
    floors: float = 0.0,
) -> Samples:
    """Return samples of a motion x(k): the error of the tick from k on, propagated by `follow`."""
    spacing, every = ticks / count, 10
    golden = 0.5 * (np.sqrt(5.0) - 1.0)
    starts = [int(n * spacing + (spacing - 12) * ((n + 1) * golden % 1.0)) for n in range(count)]
    followed = starts[::every]

    def rows(ks: Any, value: Any) -> Any:
        return np.array([value(k) for k in ks])

    width = len(state(0))
    return Samples(
        before=rows(starts, state),
        after=rows([k + 1 for k in starts], state),
        deviations=15.0 / 16.0 * rows(starts, error),
        halfway=15.0 / 16.0 * rows(followed, lambda k: propagate(error(k), follow // 2)),
        last=rows([k + follow for k in followed], state),
        end=rows([k + 1 + follow for k in followed], state),
        propagated=15.0 / 16.0 * rows(followed, lambda k: propagate(error(k), follow)),
        spacing=spacing,
        follow=follow,
        every=every,
        order=4,
        step=1e-3,
        columns={"x": slice(0, width)},
        energies={},
        references=np.full(width, np.nan),
        groups=np.zeros(width, dtype=np.int64),
        floors=np.full(width, floors),
        is_state=np.ones(width, dtype=bool),
        not_judged={},
        cost=0.0,
    )


def turn(angle: float) -> Any:
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def test_errors_of_phase_add_up():
    """Each tick turns the state too far by δ: after n ticks by n δ, 0.5 n δ of the range."""
    rate, delta, ticks = 0.13, 1e-6, 2400
    samples = sample(
        lambda k: turn(rate * k) @ (1.0, 0.0),
        lambda k: delta * turn(rate * (k + 1) + np.pi / 2) @ (1.0, 0.0),
        lambda e, q: turn(rate * q) @ e,
    )
    found = accumulate(samples)
    assert found.errors.max() == pytest.approx(0.5 * ticks * delta, rel=0.02)


def test_errors_of_phase_cancel():
    """Turned too far in one half of a turn, and too little in the other: nothing is left."""
    rate, delta = 0.13, 1e-6
    samples = sample(
        lambda k: turn(rate * k) @ (1.0, 0.0),
        lambda k: np.sign(np.cos(rate * k)) * delta * turn(rate * (k + 1) + np.pi / 2) @ (1.0, 0.0),
        lambda e, q: turn(rate * q) @ e,
    )
    assert accumulate(samples).errors.max() < 0.8 * 0.5 * 2400 * delta


def test_errors_that_decay_are_remembered_for_their_time_constant():
    """An error of e per tick that decays with 50 ticks leaves 50 e, not 2400 e.

    The sum over the ten ticks that are followed is added to that of what is left after them: at
    most 20 % too much.
    """
    size, memory = 1e-6, 50.0
    samples = sample(
        lambda k: np.array([np.sin(2.7 * k), 0.0]),
        lambda k: np.array([size, 0.0]),
        lambda e, q: np.exp(-q / memory) * e,
    )
    found = accumulate(samples).errors[0]
    assert 0.99 * 0.5 * memory * size < found < 1.21 * 0.5 * memory * size


def test_errors_that_are_gone_at_once_do_not_add_up():
    """As in a stiff film or contact: e^-30 is left after the ticks that are followed."""
    samples = sample(
        lambda k: np.array([np.sin(2.7 * k), 0.0]),
        lambda k: np.array([1e-6, 0.0]),
        lambda e, q: np.exp(-3.0 * q) * e,
    )
    assert accumulate(samples).errors[0] < 0.5 * 3e-6


def test_a_block_that_forgets_does_not_hide_one_that_remembers():
    """The first column forgets errors of 1e-4 within a tick, the other one keeps its 1e-6."""
    forgets = np.array([1e-4, 0.0])

    def samples(groups: list[int]) -> Samples:
        made = sample(
            lambda k: np.array([np.sin(2.7 * k), np.sin(2.7 * k)]),
            lambda k: forgets + np.array([0.0, 1e-6]),
            lambda e, q: e * np.array([np.exp(-3.0 * q), 1.0]),
        )
        return replace(made, groups=np.array(groups))

    for groups in ([0, 1], [0, 0]):
        found = accumulate(samples(groups)).errors
        assert found[0] < 0.5 * 3e-4
        assert found[1] == pytest.approx(0.5 * 2400 * 1e-6, rel=0.05)


def test_errors_that_keep_their_sign_cancel():
    """An integrator keeps each error: those of a sine cancel, in 120 samples to a tenth."""
    samples = sample(
        lambda k: np.array([np.sin(0.13 * k), 0.0]),
        lambda k: np.array([1e-6 * np.cos(0.13 * k), 0.0]),
        lambda e, q: e,
    )
    assert accumulate(samples).errors[0] < 0.1 * 0.5 * 2400 * 1e-6


def test_growth_is_not_extrapolated_from_samples():
    """Beyond the ten ticks that were followed, in which errors grow by e^(1/2)."""
    samples = sample(
        lambda k: np.array([np.sin(2.7 * k), 0.0]),
        lambda k: np.array([1e-9, 0.0]),
        lambda e, q: np.exp(q / 20.0) * e,
    )
    found = accumulate(samples)
    assert found.growth == 0.0
    assert found.errors[0] == pytest.approx(0.5 * 2400 * 1e-9 * np.exp(0.5), rel=0.05)


@pytest.mark.parametrize(
    ("error", "growth"),
    [
        (lambda k: 1e-9 * np.exp(k / 100.0), 0.01),
        (lambda k: 1e-9 * np.exp(k / 100.0) / (1.0 + 1e-9 * np.exp(k / 100.0)), 0.01),
        (lambda k: 1e-12 * k**2, 0.0),
        (lambda k: 1e-15 * k**3, 0.0),
        (lambda k: 1e-9 * np.exp(k / 1000.0), 0.0),
        (lambda k: 1e-14 * np.exp(k / 100.0), 0.0),
        (lambda k: 1e-6 + 2.0 * (k > 1000), 0.0),
    ],
    ids=["exponential", "saturated", "square", "cube", "by e^2.4", "small", "at once"],
)
def test_a_whole_run_is_sensitive_if_its_errors_grow_exponentially(error, growth):
    samples = replace(
        sample(
            lambda k: np.array([np.sin(2.7 * k), 0.0]),
            lambda k: np.array([error(k + 1.0), 0.0]),
            lambda e, q: e,
        ),
        every=0,
    )
    found = accumulate(samples)
    assert found.growth == pytest.approx(growth, rel=0.1)
    assert found.errors[0] == pytest.approx(np.abs(samples.local[:, 0]).max())
    assert estimate_errors(samples, {}).sensitive == (growth > 0.0)


@pytest.mark.parametrize("rare", [1, 3])
def test_a_rare_error_stands_for_its_own_tick(rare):
    """Three of 120 windows meet an impact: it is not an error of 20 ticks each."""
    seen: list[int] = []

    def error(k: int) -> Any:
        if k not in seen:
            seen.append(k)
        return np.array([0.01 if seen.index(k) in range(5, 5 + rare) else 1e-9, 0.0])

    samples = sample(lambda k: np.array([np.sin(2.7 * k), 0.0]), error, lambda e, q: e)
    assert accumulate(samples).errors[0] == pytest.approx(0.005, rel=1e-2)


@pytest.mark.parametrize(("size", "floors"), [(1.0, 0.0), (1e-12, 1e-10)])
def test_a_signal_that_is_constant_up_to_rounding_has_no_error(size, floors):
    noise = np.random.default_rng(1).normal(size=5000)
    offset = 1.0 if size == 1.0 else 0.0
    scale = 1e-16 if offset else size
    samples = sample(
        lambda k: np.array([offset + scale * noise[k], 0.0]),
        lambda k: np.array([scale, 0.0]),
        lambda e, q: e,
        floors=floors,
    )
    assert accumulate(samples).errors.max() == 0.0


def test_windows_that_were_not_reached_do_not_count():
    samples = sample(
        lambda k: np.array([float(k), 0.0]),
        lambda k: np.array([1e-3, 0.0]),
        lambda e, q: e,
    )
    for rows in (samples.before, samples.after, samples.deviations):
        rows[60:] = np.nan
    for rows in (samples.halfway, samples.last, samples.end, samples.propagated):
        rows[6:] = np.nan
    found = accumulate(samples)  # 1200 ticks of 1e-3, of a range of about 1200
    assert found.errors[0] == pytest.approx(1e-3, rel=0.05)


def test_no_window_gives_no_error():
    samples = sample(lambda k: np.zeros(1), lambda k: np.zeros(1), lambda e, q: e)
    for rows in (samples.before, samples.after, samples.deviations, samples.propagated):
        rows[:] = np.nan
    estimate = estimate_errors(samples, {})
    assert estimate.signals == {} and estimate.windows == 0 and estimate.step == 1e-3


def test_a_peak_between_windows_counts_by_the_recorded_range():
    samples = sample(
        lambda k: np.array([np.sin(2.7 * k)]), lambda k: np.array([1e-5]), lambda e, q: e
    )
    seen = estimate_errors(samples, {}).signals["x"]
    recorded = estimate_errors(samples, {"x": np.array([0.0, 20.0])}).signals["x"]
    assert seen == pytest.approx(0.5 * 2400e-5, rel=0.02)
    assert recorded == pytest.approx(0.1 * seen, rel=0.02)


def test_what_is_surely_small_has_no_large_estimate():
    for size in (1e-9, 1e-7, 1e-5):
        samples = sample(
            lambda k: turn(0.13 * k) @ (1.0, 0.0),
            lambda k, size=size: size * turn(0.13 * (k + 1) + np.pi / 2) @ (1.0, 0.0),
            lambda e, q: turn(0.13 * q) @ e,
        )
        assert samples.is_surely_small() == (accumulate(samples).errors.max() < 5e-4)


def test_an_energy_is_relative_to_its_reference_and_constant_signals_are_not_judged():
    samples = sample(
        lambda k: np.array([1.0, 5.0]), lambda k: np.array([0.0, 1e-6]), lambda e, q: e
    )
    samples = replace(
        samples,
        columns={"x": slice(0, 1)},
        energies={"plant": 1},
        references=np.array([np.nan, 4.0]),
    )
    found = estimate_errors(samples, {})
    assert found.signals == {} and found.not_judged == {"x": "constant"}
    assert found.energy["plant"] == pytest.approx(2400 * 1e-6 / 4.0, rel=0.01)
    assert found.largest == found.energy["plant"]


def test_an_estimate_survives_its_description():
    import json

    samples = sample(
        lambda k: np.array([np.sin(2.7 * k)]), lambda k: np.array([1e-5]), lambda e, q: e
    )
    found = estimate_errors(samples, {})
    assert ErrorEstimate.from_description(json.loads(json.dumps(found.describe()))) == found
    assert ErrorEstimate.from_description("not estimated: nothing is integrated") is None
    assert ErrorEstimate.from_description({"signals": {}}) is None


def test_the_step_follows_from_the_order_and_divides_the_present_one():
    assert find_step(0.01, 9e-4, 4) == 0.01
    assert find_step(0.01, 8e-3, 4) == 0.01 / 2
    assert find_step(0.01, 0.0405, 4) == 0.01 / 3
    assert find_step(0.01, 8e-3, 1) == 0.01 / 16
    assert find_step(0.01, float("inf"), 2) == 0.01 / MOST_PARTS
