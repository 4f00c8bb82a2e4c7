"""Discrete blocks against recursions written out in numpy and scipy.signal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal

from biella import BlockError, Diagram, DiagramError, simulate
from biella.blocks.authoring import NativeBlock
from biella.blocks.basic.dynamics._delay import Delay
from biella.blocks.basic.dynamics._discrete import (
    DiscreteIntegrator,
    MovingAverage,
    UnitDelay,
    ZeroOrderHold,
)
from biella.blocks.basic.dynamics._linear import FIR, DiscreteStateSpace, DiscreteTransferFunction

from .sampled_runs import STEP, Samples, U, check_restored_runs, run

pytestmark = pytest.mark.engine

Array = npt.NDArray[np.float64]


class TestZeroOrderHold:
    def test_samples_and_holds(self) -> None:
        assert np.array_equal(run(ZeroOrderHold(), period=0.05), U[np.arange(300) // 5 * 5])

    def test_offset_holds_the_first_value_until_the_first_hit(self) -> None:
        at = np.where(np.arange(300) < 2, 0, (np.arange(300) - 2) // 5 * 5 + 2)
        assert np.array_equal(run(ZeroOrderHold(), period=0.05, offset=0.02), U[at])

    def test_u_reaches_y_at_once(self) -> None:
        assert ZeroOrderHold().feedthrough == ((0,),)


def integrate(
    method: str, u: Array, period: float, gain: float, x: Any, lower: Any, upper: Any
) -> Array:
    expected = []
    x = np.clip(x, lower, upper)
    before = {"forward": 0.0, "backward": 1.0, "trapezoidal": 0.5}[method]
    for value in u:
        y = np.clip(x + before * gain * period * value, lower, upper)
        expected.append(y)
        x = np.clip(y + (1 - before) * gain * period * value, lower, upper)
    return np.array(expected)


class TestDiscreteIntegrator:
    @pytest.mark.parametrize("method", ["forward", "backward", "trapezoidal"])
    def test_against_its_transfer_function(self, method: Any) -> None:
        # gain T times 1/(z-1), z/(z-1) and (z+1)/(2(z-1)). 300 sums of 1e-2: 300 * 1e-17.
        num = {"forward": [0, 1], "backward": [1, 0], "trapezoidal": [0.5, 0.5]}[method]
        response = signal.lfilter(2.5 * STEP * np.array(num), [1, -1], U, axis=0)
        y = run(DiscreteIntegrator(method, [1.0, -2.0], gain=2.5))
        np.testing.assert_allclose(y - [1.0, -2.0], response, rtol=0, atol=1e-13)

    @pytest.mark.parametrize("method", ["forward", "backward", "trapezoidal"])
    def test_limits(self, method: Any) -> None:
        limits = ([-0.02, -0.1], [0.05, np.inf])
        expected = integrate(method, U, STEP, 3.0, 0.1, *limits)
        y = run(DiscreteIntegrator(method, 0.1, gain=3.0, limits=limits))
        np.testing.assert_allclose(y, expected, rtol=0, atol=1e-14)
        assert y[:, 0].max() == 0.05 and y[:, 0].min() == -0.02

    def test_its_own_sample_time_counts(self) -> None:
        y = run(DiscreteIntegrator("backward"), np.ones(31), period=0.05)
        np.testing.assert_allclose(y, 0.05 * (np.arange(31) // 5 + 1), rtol=1e-14)

    def test_feedthrough_and_unit(self) -> None:
        assert DiscreteIntegrator("forward").feedthrough == ((),)
        assert DiscreteIntegrator("backward").feedthrough == ((0,),)
        assert DiscreteIntegrator("trapezoidal").feedthrough == ((0,),)
        d = Diagram(step=STEP)
        source = d.add(Samples(U[:, 0], unit="m/s"), name="u")
        d.connect(source, d.add(DiscreteIntegrator(), name="x"))
        assert d.compile().signals["x.y"].unit == "m"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"method": "simpson"}, "method is one of forward, backward, trapezoidal"),
            ({"gain": [1, 2]}, "gain is one number"),
            ({"limits": (2, 1)}, "lower <= upper"),
        ],
    )
    def test_bad_options(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(DiagramError, match=message):
            DiscreteIntegrator(**options)


class TestMovingAverage:
    @pytest.mark.parametrize("samples", [1, 2, 13])
    def test_of_what_there_is(self, samples: int) -> None:
        # 13 numbers of size 1 added in another order: a few 1e-16.
        expected = [U[max(0, k - samples + 1) : k + 1].mean(axis=0) for k in range(len(U))]
        np.testing.assert_allclose(run(MovingAverage(samples)), expected, rtol=0, atol=2e-15)

    @pytest.mark.parametrize("samples", [1, 2, 13])
    def test_of_a_filled_window(self, samples: int) -> None:
        before = np.tile([4.0, -3.0], (samples - 1, 1))
        padded = np.vstack([before, U])
        expected = [padded[k : k + samples].mean(axis=0) for k in range(len(U))]
        y = run(MovingAverage(samples, [4.0, -3.0]))
        np.testing.assert_allclose(y, expected, rtol=0, atol=2e-15)

    def test_constant_stays_exactly_itself(self) -> None:
        assert (run(MovingAverage(10), np.ones(40)) == 1.0).all()

    def test_forgets_a_huge_value(self) -> None:
        u = np.ones(40)
        u[5] = 1e300
        assert (run(MovingAverage(4), u)[9:] == 1.0).all()

    @settings(max_examples=25)
    @given(st.integers(1, 12), st.integers(0, 2**32 - 1))
    def test_lies_between_smallest_and_largest(self, samples: int, seed: int) -> None:
        u = np.random.default_rng(seed).uniform(-5, 5, 40)
        y = run(MovingAverage(samples), u)
        for k in range(40):
            window = u[max(0, k - samples + 1) : k + 1]
            assert window.min() - 1e-14 <= y[k] <= window.max() + 1e-14


def hits(k: int, period: int, offset: int) -> bool:
    return k >= offset and (k - offset) % period == 0


def test_chain_of_rates_with_offsets() -> None:
    # Fast to slow samples, slow to fast holds; at the first tick all outputs are computed, but a
    # state moves only at a hit. The reference goes through the ticks one by one.
    d = Diagram(step=STEP)
    d.chain(
        d.add(Samples(U[:, 0]), "u"),
        d.add(ZeroOrderHold(), "b0", period=0.03, offset=0.01),
        d.add(Delay(2, 0.5), "b1", period=0.06, offset=0.02),
        d.add(DiscreteIntegrator("backward"), "b2", period=0.04, offset=0.03),
        d.add(DiscreteTransferFunction([1.0, 0.5], [1.0, -0.25], period=0.02), "b3"),
        d.add(UnitDelay(7.0), "b4", period=0.05, offset=0.04),
    )
    result = simulate(d, STEP * 299, progress=False)

    zoh, queue, total, state, held = 0.0, [0.5, 0.5], 0.0, 0.0, 7.0
    shown = {"queue": 0.0, "total": 0.0, "filter": 0.0, "held": 0.0}
    for k in range(300):
        first = k == 0
        if first or hits(k, 3, 1):
            zoh = U[k, 0]
        if first or hits(k, 6, 2):
            shown["queue"] = queue[0]
        if first or hits(k, 4, 3):
            shown["total"] = total + 0.04 * shown["queue"]
        if first or hits(k, 2, 0):
            shown["filter"] = shown["total"] + state
        if first or hits(k, 5, 4):
            shown["held"] = held
        expected = [zoh, *shown.values()]
        found = [result[f"b{n}"][k] for n in range(5)]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13, err_msg=f"tick {k}")
        if hits(k, 6, 2):
            queue = [queue[1], zoh]
        if hits(k, 4, 3):
            total = shown["total"]
        if hits(k, 2, 0):
            state = 0.5 * shown["total"] + 0.25 * shown["filter"]
        if hits(k, 5, 4):
            held = shown["filter"]


RATES: dict[str, dict[str, Any]] = {
    "unit delay": {"period": 0.02},
    "hold": {"period": 0.05, "offset": 0.01},
}
REMEMBERING: dict[str, Callable[[], NativeBlock]] = {
    "unit delay": lambda: UnitDelay(1.0),
    "delay": lambda: Delay(5, [1.0, 2.0]),
    "hold": lambda: ZeroOrderHold(),
    "integrator": lambda: DiscreteIntegrator("trapezoidal", limits=(-0.05, 0.05)),
    "moving average": lambda: MovingAverage(60),
    "state space": lambda: DiscreteStateSpace([[0.5, 0.1], [0, 0.2]], np.eye(2), np.eye(2)),
    "transfer function": lambda: DiscreteTransferFunction([1, 2], [1, -0.5, 0.2]),
    "fir": lambda: FIR(np.linspace(1, 0, 50), period=0.02),
}


@pytest.mark.parametrize("case", REMEMBERING)
def test_restored_run_is_the_same_bits(case: str) -> None:
    d = Diagram(step=STEP)
    u = d.add(Samples(U), name="u")
    d.add(REMEMBERING[case](), name="block", inputs=u, **RATES.get(case, {}))
    check_restored_runs(d.compile())


@pytest.mark.parametrize("junk", [np.nan, np.inf, -np.inf, -1.0, 1e300, 0.5, 2.0**31, 2.0**53])
@pytest.mark.parametrize("make", REMEMBERING.values(), ids=REMEMBERING)
def test_hostile_memory_is_harmless(make: Callable[[], NativeBlock], junk: float) -> None:
    # A serialized state may hold anything where a kernel keeps a place in a ring: whatever comes
    # out, the run stays inside its memory (which the sanitizers watch) and can be restored.
    d = Diagram(step=STEP)
    d.connect(d.add(Samples(U), name="u"), d.add(make(), name="block"))
    with d.compile().instantiate() as instance:
        instance.run(10)
        kept = instance.save()
        expected = instance.get("block")
        for place in (slice(0, 1), slice(1, 2), slice(None)):
            instance.memory[place] = junk
            instance.touch()
            try:
                instance.run(20)
            except BlockError as error:
                assert "not finite" in str(error)
            instance.restore(kept)
        assert np.array_equal(instance.get("block"), expected)
