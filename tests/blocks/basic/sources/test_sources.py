"""Sources that follow time, against closed forms and scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

from biella import Diagram, DiagramError, simulate
from biella.blocks import Constant, Integrator
from biella.blocks.basic.sources._sources import Chirp, Pulse, Ramp, Sine, Step, Time

pytestmark = pytest.mark.engine

STEP = 0.01
T = np.arange(301) * STEP  # as the engine computes it: tick · step


def test_constant(run_block: Any) -> None:
    assert np.array_equal(run_block(Constant(2.5), ticks=3), [2.5, 2.5, 2.5])
    assert np.array_equal(run_block(Constant([1, -2]), ticks=2), [[1, -2], [1, -2]])
    assert np.array_equal(run_block(Constant(True), ticks=2), [1, 1])


def test_kinds() -> None:
    kinds = [Constant(True), Constant([False, True]), Constant(1), Constant(3, kind="integer")]
    assert [b.outputs[0].kind for b in kinds] == ["boolean", "boolean", "real", "integer"]
    assert Pulse(kind="boolean").outputs[0].kind == "boolean"
    for make in (
        lambda: Constant(0.5, kind="integer"),
        lambda: Step(to=2.0, kind="boolean"),
        lambda: Pulse(low=0.5, kind="boolean"),
    ):
        with pytest.raises(DiagramError, match="signal is"):
            make()


def test_time(run_block: Any) -> None:
    assert np.array_equal(run_block(Time(), ticks=301), T)
    held = run_block(Time(), ticks=301, period=0.05)
    assert np.array_equal(held, T[np.arange(301) // 5 * 5])
    assert str(Time().outputs[0].unit) == "s"


@pytest.mark.parametrize("tick", [0, 3, 6, 7, 57, 128, 283])
def test_step_jumps_at_its_tick(run_block: Any, tick: int) -> None:
    # tick · 0.01 and the literal differ by rounding either way: the jump must not be a tick late.
    y = run_block(Step(at=tick / 100, to=5.0, before=-1.0), ticks=301)
    assert np.array_equal(y, np.where(np.arange(301) < tick, -1.0, 5.0))


def test_step_between_ticks_and_vector(run_block: Any) -> None:
    y = run_block(Step(at=[0.015, 1.0], to=[1, 2], before=[0, -2]), ticks=301)
    assert np.array_equal(y[:, 0], np.where(np.arange(301) < 2, 0, 1))
    assert np.array_equal(y[:, 1], np.where(np.arange(301) < 100, -2, 2))


def test_step_is_held_between_ticks() -> None:
    # The integral of a step that jumps at a tick is exact only if minor steps do not see it early.
    d = Diagram(step=0.1)
    d.connect(d.add(Step(at=0.5, to=2.0), name="step"), d.add(Integrator(), name="x"))
    x = simulate(d, 1.0)["x"]
    assert np.allclose(x, 2.0 * np.maximum(np.arange(11) - 5, 0) * 0.1, atol=1e-15)


def test_ramp(run_block: Any) -> None:
    y = run_block(Ramp(slope=2.0, at=1.0, before=-3.0), ticks=301)
    assert np.allclose(y, -3.0 + 2.0 * np.maximum(T - 1.0, 0.0), rtol=0, atol=1e-15)


def test_sine(run_block: Any) -> None:
    y = run_block(Sine([2.0, 1.0], frequency=[3.0, 0.5], phase=0.3, bias=[1.0, 0.0]), ticks=301)
    oracle = [
        1.0 + 2.0 * np.sin(2 * np.pi * 3.0 * T + 0.3),
        np.sin(2 * np.pi * 0.5 * T + 0.3),
    ]
    # The argument reaches 57 rad: one rounding of it is 7e-15.
    assert np.allclose(y, np.transpose(oracle), rtol=0, atol=2e-14)


def test_sine_is_continuous() -> None:
    # ∫ sin = (1 - cos) / ω with the order of RK4: minor steps must see the sine move.
    d = Diagram(step=0.01)
    d.connect(d.add(Sine(), name="sine"), d.add(Integrator(), name="x"))
    result = simulate(d, 1.0)
    exact = (1 - np.cos(2 * np.pi * result.t)) / (2 * np.pi)
    # Simpson's rule: (h/2)^4 ω^4 / 180 of the integral, below 1e-8.
    assert np.abs(result["x"] - exact).max() < 1e-8


@pytest.mark.parametrize(
    ("period", "duty", "delay"), [(0.1, 0.5, 0.0), (0.07, 3 / 7, 0.03), (0.3, 0.1, 0.6), (1, 1, 0)]
)
def test_pulse(run_block: Any, period: float, duty: float, delay: float) -> None:
    y = run_block(Pulse(period, duty, amplitude=4.0, delay=delay, low=1.0), ticks=301)
    k, n, first = np.arange(301), round(period / STEP), round(delay / STEP)
    high = (k >= first) & ((k - first) % n < round(duty * n))
    assert np.array_equal(y, np.where(high, 5.0, 1.0))


def test_pulse_after_a_long_time(run_block: Any) -> None:
    # Far from zero t carries an error of 1e-12; the pulses still come at their ticks.
    y = run_block(Pulse(0.03, 1 / 3), ticks=300, start=9000.0)
    assert np.array_equal(y, np.arange(300) % 3 == 0)


@pytest.mark.parametrize("method", ["linear", "logarithmic"])
def test_chirp(run_block: Any, method: str) -> None:
    y = run_block(Chirp(1.0, 8.0, 3.0, 2.0, np.pi / 2, method=method), ticks=301)
    oracle = 2.0 * scipy.signal.chirp(T, 1.0, 3.0, 8.0, method=method)
    assert np.allclose(y, oracle, rtol=0, atol=1e-12)


def test_chirp_goes_on(run_block: Any) -> None:
    y = run_block(Chirp(1.0, 4.0, 1.0, at=0.5), ticks=301)
    s = np.clip(T - 0.5, 0, 1)
    cycles = s + 1.5 * s**2 + 4.0 * np.maximum(T - 1.5, 0)
    assert np.allclose(y, np.sin(2 * np.pi * cycles), rtol=0, atol=1e-12)


def test_parameters_are_settable(run_block: Any) -> None:
    y = run_block(Step(at=0.02, to=1.0), ticks=5, parameters={"at": 0.01, "to": 7.0})
    assert np.array_equal(y, [0, 7, 7, 7, 7])
    # A period of zero makes no sense, and must do no harm.
    assert np.array_equal(run_block(Pulse(), ticks=3, parameters={"period": 0.0}), [0, 0, 0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pulse(period=0.0), "`period` must be positive"),
        (lambda: Pulse(duty=1.5), "`duty` is a part from 0 to 1"),
        (lambda: Step(to=[1, 2], before=[1, 2, 3]), "`to` has 2, `before` has 3"),
        (lambda: Step(to=[[1.0]]), "`to` is a number or a vector"),  # type: ignore[list-item]
        (lambda: Ramp(slope="fast"), "`slope` requires numbers"),  # type: ignore[arg-type]
        (lambda: Chirp(0.0, 1.0, 1.0, method="logarithmic"), "`f0` must be positive"),
        (lambda: Chirp(1.0, 2.0, 1.0, method="log"), "'linear', 'logarithmic'; got 'log'"),
        (lambda: Constant(1.0, kind="text"), "kind is one of 'real'"),  # type: ignore[arg-type]
        (lambda: Sine(frequency=np.nan), "`frequency` must be finite"),
    ],
)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        make()
