"""Pulse width modulation and calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella import Diagram, DiagramError, simulate
from biella.blocks import Constant, PWMInput, PWMOutput, Ramp

pytestmark = pytest.mark.engine

STEP = 1e-5


def loop(duty: Any, out: PWMOutput, into: PWMInput, until: float = 0.05) -> Any:
    d = Diagram(step=STEP)
    source = d.add(duty)
    d.add(out, name="out")
    d.add(into, name="in")
    d.connect(source, out)
    d.connect(out, into)
    return simulate(d, until)


@pytest.mark.parametrize("align", ["edge", "center"])
@pytest.mark.parametrize("frequency", [1000.0, 1234.5])
@pytest.mark.parametrize("duty", [0.0123, 0.3, 0.5, 0.731, 0.96])
def test_mean_edges_keep_the_duty(align: str, frequency: float, duty: float) -> None:
    result = loop(Constant(duty), PWMOutput(frequency, high=3.3, align=align), PWMInput(high=3.3))
    assert result["in.valid"][-1] == 1
    assert result["in.duty"][-1] == pytest.approx(duty, abs=1e-9)
    # A pulse shorter than a tick is placed to within a tick.
    exact = duty * 1e5 / frequency >= 2
    assert result["in.frequency"][-1] == pytest.approx(frequency, rel=1e-8 if exact else 0.02)
    periods = int(0.04 * frequency)
    inside = slice(0, round(periods / frequency / STEP))
    assert result["out"][inside].mean() == pytest.approx(3.3 * duty, abs=3.3 * 3e-4)


def test_levels_at_ticks_are_as_wide_as_ticks_allow() -> None:
    result = loop(
        Constant(0.333), PWMOutput(1000.0, edges="tick"), PWMInput(edges="tick", timeout=0.01)
    )
    assert set(result["out"]) == {0.0, 1.0}
    assert result["in.duty"][-1] == pytest.approx(0.34, abs=1e-9)  # 33.3 ticks of 100 are 34 levels
    assert result["in.frequency"][-1] == pytest.approx(1000.0)


def test_duty_is_taken_over_once_a_period() -> None:
    result = loop(Ramp(10.0), PWMOutput(1000.0), PWMInput())
    on = result["out"][:5000].reshape(50, 100).sum(axis=1) / 100
    assert np.allclose(on, 0.01 * np.arange(50), atol=1e-9)


def test_the_timer_counts_whole_numbers() -> None:
    result = loop(Constant(0.3334), PWMOutput(1000.0, counts=64), PWMInput())
    assert result["in.duty"][-1] == pytest.approx(21 / 64, abs=1e-9)
    result = loop(Constant(0.3334), PWMOutput(1000.0), PWMInput(clock=72e3))
    assert result["in.duty"][-1] == pytest.approx(24 / 72, abs=1e-9)


@pytest.mark.parametrize("duty", [0.0, 1.0])
def test_without_edges_the_level_is_reported(duty: float) -> None:
    result = loop(Constant(duty), PWMOutput(1000.0), PWMInput(timeout=0.01))
    assert (result["in.duty"][-1], result["in.frequency"][-1], result["in.valid"][-1]) == (
        duty,
        0.0,
        0.0,
    )


def test_a_carrier_faster_than_the_ticks_is_refused() -> None:
    with pytest.raises(DiagramError, match=r"needs a step of at most 5e-06 s"):
        loop(Constant(0.5), PWMOutput(1e5), PWMInput())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PWMOutput(0.0), "positive number, in Hz"),
        (lambda: PWMOutput(1.0, low=1.0, high=0.0), "`low` must be below `high`"),
        (lambda: PWMOutput(1.0, counts=0), "whole number from 1"),
        (lambda: PWMInput(clock=-1.0), "positive number, in Hz"),
        (lambda: PWMInput(timeout=0.0), "positive number, in s;"),
    ],
)
def test_wrong_parameters_say_what_is_possible(make: Any, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        make()
