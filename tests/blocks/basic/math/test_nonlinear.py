"""Limits, play and steps, against loops in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella import Diagram, DiagramError, simulate
from biella.blocks.basic.math._nonlinear import (
    Backlash,
    DeadZone,
    Quantizer,
    RateLimiter,
    Relay,
    Saturation,
)
from biella.blocks.basic.sources._sources import Sine

pytestmark = pytest.mark.engine

RNG = np.random.default_rng(4)
U = np.sin(np.outer(np.arange(200), [0.3, 0.5])) * 1.2 + RNG.normal(size=(200, 2)) * 0.4
LOW, HIGH = np.array([-0.5, -2.0]), np.array([0.7, 1.0])


def test_saturation(run_block: Any) -> None:
    assert np.array_equal(run_block(Saturation(-0.5, 0.7), U), np.clip(U, -0.5, 0.7))
    assert np.array_equal(run_block(Saturation(LOW, HIGH), U), np.clip(U, LOW, HIGH))
    assert np.array_equal(run_block(Saturation(LOW, 0.9), U), np.clip(U, LOW, 0.9))
    assert np.array_equal(run_block(Saturation(-np.inf, 0.7), U), np.minimum(U, 0.7))


def test_dead_zone(run_block: Any) -> None:
    oracle = np.maximum(U - HIGH, 0) + np.minimum(U - LOW, 0)
    assert np.array_equal(run_block(DeadZone(LOW, HIGH), U), oracle)
    oracle = np.maximum(U - 0.7, 0) + np.minimum(U + 0.5, 0)
    assert np.array_equal(run_block(DeadZone(-0.5, 0.7), U), oracle)


def test_quantizer(run_block: Any) -> None:
    q = np.array([0.1, 0.25])
    assert np.array_equal(run_block(Quantizer(q), U), q * np.trunc(U / q + np.copysign(0.5, U)))
    halves = [0.5, 1.5, -0.5, -1.5, 0.49]
    assert np.array_equal(run_block(Quantizer(1.0), halves), [1, 2, -1, -2, 0])
    # Set to zero, it has no steps.
    assert np.array_equal(run_block(Quantizer(1.0), halves, parameters={"interval": 0.0}), halves)


def test_relay(run_block: Any) -> None:
    y = run_block(Relay(on=[0.5, 0.2], off=-0.3, high=[4.0, 1.0], low=-1.0), U)
    on, is_on, oracle = np.array([0.5, 0.2]), np.array([False, False]), []
    for u in U:
        is_on = (u >= on) | (is_on & (u > -0.3))
        oracle.append(np.where(is_on, [4.0, 1.0], -1.0))
    assert np.array_equal(y, oracle)
    assert 5 < np.count_nonzero(np.diff(y[:, 1])) < 100


def test_relay_at_its_thresholds_and_start(run_block: Any) -> None:
    values = [0.0, 1.0, 0.0, -1.0, 0.0]
    assert np.array_equal(run_block(Relay(1.0, -1.0), values), [0, 1, 1, 0, 0])
    assert np.array_equal(run_block(Relay(1.0, -1.0, initial=True), values), [1, 1, 1, 0, 0])
    assert np.array_equal(run_block(Relay(0.0, 0.0), [-1e-9, 0.0, 1e-9]), [0, 1, 1])


def limit_rate(u: Any, up: Any, down: Any, start: Any) -> Any:
    last, out = start, []
    for value in u:
        last = value if last is None else np.clip(value, last - down, last + up)
        out.append(last)
    return np.array(out)


def test_rate_limiter(run_block: Any) -> None:
    step = 0.01
    y = run_block(RateLimiter(10.0, 20.0), U)
    assert np.allclose(y, limit_rate(U, 10.0 * step, 20.0 * step, None), rtol=0, atol=1e-13)
    up = np.array([10.0, 15.0])
    y = run_block(RateLimiter(up, initial=3.0), U)
    assert np.allclose(y, limit_rate(U, up * step, up * step, 3.0), rtol=0, atol=1e-13)
    assert np.array_equal(run_block(RateLimiter(np.inf), U), U)


def test_rate_limiter_uses_its_own_period(run_block: Any) -> None:
    y = run_block(RateLimiter(1.0, initial=0.0), np.ones(21), period=0.05)
    # 1/s over 0.05 s, held for five ticks.
    assert np.allclose(y, 0.05 * (1 + np.arange(21) // 5), atol=1e-15)


@pytest.mark.parametrize("width", [0.8, np.array([0.8, 0.3])])
def test_backlash(run_block: Any, width: Any) -> None:
    y = run_block(Backlash(width, initial=[0.0, 1.0]), U)
    last, oracle = np.array([0.0, 1.0]), []
    for u in U:
        last = np.clip(last, u - width / 2, u + width / 2)
        oracle.append(last)
    assert np.array_equal(y, oracle)
    assert np.array_equal(run_block(Backlash(0.0), U), U)


@pytest.mark.parametrize("block", [Relay(0.5, -0.5), RateLimiter(3.0), Backlash(0.3)])
def test_memory_is_saved(block: Any) -> None:
    d = Diagram(step=0.01)
    d.connect(d.add(Sine(2.0)), d.add(block, name="block"))
    whole = simulate(d, 2.0)["block"]
    first = simulate(d, 1.13)
    second = simulate(d, 2.0, checkpoint=first.checkpoint)
    assert np.array_equal(second["block"], whole[113:])


@pytest.mark.parametrize(
    ("block", "rate"),
    [
        (Saturation(-1, 1), "continuous"),
        (DeadZone(-1, 1), "continuous"),
        (Quantizer(1), "0.01 s"),
        (Relay(1, 0), "0.01 s"),
        (RateLimiter(1), "0.01 s"),
        (Backlash(1), "0.01 s"),
    ],
)
def test_rates(block: Any, rate: str) -> None:
    d = Diagram(step=0.01)
    d.connect(d.add(Sine(unit="m")), d.add(block, name="block"))
    plan = d.compile()
    (info,) = [b for b in plan.blocks if b.path == "block"]
    assert info.rate == rate
    assert info.outputs[0].unit == (None if isinstance(block, Relay) else "m")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Saturation(1.0, -1.0), "`lower` must not be above `upper`, got 1.0 and -1.0"),
        (lambda: Saturation([0, 2], 1.0), "`lower` must not be above `upper`"),
        (lambda: Saturation(np.nan, 1.0), "`lower` must not be NaN"),
        (lambda: DeadZone(-np.inf, 1.0), "`lower` must be finite"),
        (lambda: DeadZone([0, 0], [1, 1, 1]), "`lower` has 2, `upper` has 3"),
        (lambda: Quantizer(0.0), "`interval` must be positive"),
        (lambda: Relay(on=0.0, off=1.0), "`off` must not be above `on`"),
        (lambda: RateLimiter(1.0, -1.0), "`falling` must be positive"),
        (lambda: Backlash(-1.0), "`width` of a Backlash must not be negative"),
    ],
)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        make()
