"""Delays: of samples, and of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biella import Diagram, DiagramError, Subsystem, simulate
from biella.blocks import Constant, Expression, Gain
from biella.blocks.authoring import NativeBlock
from biella.blocks.basic.dynamics._continuous import Integrator
from biella.blocks.basic.dynamics._delay import Delay, TransportDelay
from biella.blocks.basic.dynamics._discrete import MovingAverage, UnitDelay, ZeroOrderHold

from .sampled_runs import STEP, Samples, U, run

pytestmark = pytest.mark.engine


Array = npt.NDArray[np.float64]


Run = Callable[..., tuple[Array, Array]]


Sample = Callable[[Any, float], Callable[[float], Any]]


EXPLICIT = ("euler", "heun", "rk3", "rk4", "dopri5")


class TestTransportDelay:
    def test_whole_steps_give_the_samples_themselves(self, run: Run, sample: Sample) -> None:
        step = 0.1  # 0.1 n is rounded, and so is 0.7 / 0.1
        u = np.random.default_rng(4).standard_normal((300, 2))
        block = TransportDelay(0.7, [8.0, 9.0])
        _, y = run(block, {"u": sample(u, step)}, until=29.9, step=step, held=True)
        assert np.array_equal(y[:7], [[8.0, 9.0]] * 7)
        assert np.array_equal(y[7:], u[:-7])

    @pytest.mark.parametrize("delay", [0.01, 0.0137, 0.1, 0.3333])
    def test_ramp_is_exact(self, delay: float, run: Run) -> None:
        t, y = run(TransportDelay(delay, -1.0), {"u": lambda t: 2.0 + 3.0 * t}, until=1.0)
        arrived = t >= delay - 1e-9
        np.testing.assert_allclose(y[arrived], 2 + 3 * (t[arrived] - delay), rtol=0, atol=1e-12)
        assert (y[~arrived] == -1.0).all()

    def test_sine_within_interpolation_error(self, run: Run) -> None:
        # h^2 max|u''| / 8 = 1e-4 * 25 / 8
        t, y = run(TransportDelay(0.1234), {"u": lambda t: np.sin(5 * t)}, until=3.0)
        late = t > 0.13
        error = np.abs(y[late] - np.sin(5 * (t[late] - 0.1234)))
        assert 1e-4 < error.max() <= 25e-4 / 8

    def test_within_steps(self, follow: Any) -> None:
        # RK4 integrates the lines of a delayed ramp exactly only if minor steps follow them.
        d = Diagram(step=0.01)
        delay = d.add(TransportDelay(0.0234, 0.0), name="delay")
        d.connect(d.add(follow(lambda t: 2.0 * t), name="u"), delay)
        d.connect(delay, d.add(Integrator(), name="area"))
        result = simulate(d, 1.0, progress=False)
        at = result.t > 0.035
        area = (result.t - 0.0234) ** 2
        # The step in which the ramp arrives is integrated over a kink: h^2 at most.
        assert np.ptp(result["area"][at] - area[at]) < 1e-13
        assert abs(result["area"][-1] - area[-1]) < 1e-4

    def test_delay_differential_equation(self) -> None:
        # dx/dt = -x(t - 1), x = 1 before: by steps, x = 1 - t up to 1, then
        # x = 1 - t + (t - 1)^2 / 2. The delay is 100 steps, and lines interpolate with h^2/8.
        d = Diagram(step=0.01)
        x = d.add(Integrator(1.0), name="x")
        delay = d.add(TransportDelay(1.0, 1.0), name="delay")
        minus = d.add(Gain(-1.0), name="minus")
        d.connect(x, delay)
        d.connect(delay, minus)
        d.connect(minus, x)
        result = simulate(d, 2.0, progress=False)
        t = result.t
        expected = 1 - t + np.where(t > 1, (t - 1) ** 2 / 2, 0)
        np.testing.assert_allclose(result["x"], expected, rtol=0, atol=2e-5)

    @settings(max_examples=20)
    @given(st.integers(1, 40), st.floats(1.0, 30.0), st.sampled_from(EXPLICIT))
    def test_time_shift(self, run: Run, sample: Sample, by: int, steps: float, solver: str) -> None:
        # A delayed input gives the delayed output. Rounding of t, 1e-16, moves the point between
        # two samples by 1e-14 steps. The input starts from what was before, so without a jump.
        step = 0.01
        u = np.random.default_rng(5).standard_normal(80)
        u[0] = 0.0
        shifted = np.concatenate([np.zeros(by), u])

        def respond(values: Array, ticks: int) -> Array:
            source = {"u": sample(values, step)}
            block = TransportDelay(steps * step)
            return run(block, source, until=ticks * step, solver=solver, held=True)[1]

        np.testing.assert_allclose(
            respond(shifted, 79 + by)[by:], respond(u, 79), rtol=0, atol=1e-12
        )

    def test_delay_may_be_set_up_to_the_longest(self, follow: Any) -> None:
        d = Diagram(step=0.01)
        delay = d.add(TransportDelay(0.02, longest=0.5), name="delay")
        d.connect(d.add(follow(lambda t: t), name="u"), delay)
        with d.compile().instantiate() as instance:
            instance.run(200)
            for seconds, shown in ((0.3, 0.3), (0.5, 0.5), (0.013, 0.013), (0.0, 0.01), (9.0, 0.5)):
                instance.set("delay.delay", seconds)
                assert instance.get("delay.y") == pytest.approx(2.0 - shown, abs=1e-9)

    def test_stands_still_with_its_subsystem(self, follow: Any) -> None:
        inner = Diagram("inner", step=0.01)
        delay = inner.add(TransportDelay(0.03), name="delay")
        inner.connect(inner.input("u"), delay)
        inner.output("y", delay)
        d = Diagram(step=0.01)
        sub = d.add(Subsystem(inner, enable=True), name="sub")
        d.connect(d.add(follow(lambda t: 1.0 + round(t / 0.01), period=0.01), name="u"), sub["u"])
        on = d.add(follow(lambda t: float(not 5 <= round(t / 0.01) < 9), kind="boolean"), name="on")
        d.connect(on, sub["enable"])
        y = simulate(d, 0.15, progress=False)["sub.delay.y"]
        # Ticks 5 to 8 do not count: at tick 9 the newest sample is that of tick 4.
        np.testing.assert_allclose(y[:5], [0, 0, 0, 1, 2], atol=1e-9)
        np.testing.assert_allclose(y[9:], [3, 4, 5, 10, 11, 12, 13], atol=1e-9)

    def test_shorter_than_the_step(self) -> None:
        d = Diagram(step=0.01)
        d.connect(d.add(Constant(1.0)), d.add(TransportDelay(0.004), name="delay"))
        with pytest.raises(DiagramError, match=r"0\.004 s is shorter than the step, 0\.01 s"):
            d.compile()
        d.compile(step=0.004)

    def test_too_long(self) -> None:
        d = Diagram(step=1e-6)
        d.connect(d.add(Constant(1.0)), d.add(TransportDelay(1.0, longest=100.0)))
        with pytest.raises(DiagramError, match=r"keeps 1e\+08 samples"):
            d.compile()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"delay": 0.0}, "positive seconds"),
            ({"delay": 1.0, "longest": 0.5}, "at least its delay, 1 s"),
            ({"delay": 1.0, "longest": np.inf}, "at least its delay, 1 s"),
        ],
    )
    def test_bad_options(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(DiagramError, match=message):
            TransportDelay(**options)


class TestDelays:
    def test_unit_delay(self) -> None:
        y = run(UnitDelay([5.0, 6.0]))
        assert np.array_equal(y, np.vstack([[5.0, 6.0], U[:-1]]))

    @pytest.mark.parametrize("samples", [1, 2, 7, 299])
    def test_delay(self, samples: int) -> None:
        y = run(Delay(samples, [5.0, 6.0]))
        assert np.array_equal(y, np.vstack([[[5.0, 6.0]] * samples, U[:-samples]]))

    def test_with_a_period_and_an_offset(self) -> None:
        # Hits at ticks 2, 5, 8 …; the output changes there and is held in between.
        y = run(Delay(2, 9.0), U[:, 0], period=0.03, offset=0.02)
        hits = np.arange(2, 300, 3)
        expected = np.full(300, 9.0)
        for n, hit in enumerate(hits):
            expected[hit:] = U[hits[n - 2], 0] if n >= 2 else 9.0
        assert np.array_equal(y, expected)

    @pytest.mark.parametrize("make", [UnitDelay, lambda: Delay(3), ZeroOrderHold])
    def test_unit_and_kind_pass(self, make: Callable[[], NativeBlock]) -> None:
        d = Diagram(step=STEP)
        d.connect(d.add(Constant(1.0, unit="m"), name="u"), d.add(make(), name="length"))
        d.connect(d.add(Samples(U[:, 0], kind="boolean"), name="b"), d.add(make(), name="flag"))
        signals = d.compile().signals
        assert (signals["length.y"].unit, signals["flag.y"].kind) == ("m", "boolean")

    @pytest.mark.parametrize("samples", [0, -1, 1.5, True, "3", 10**9])
    def test_bad_number_of_samples(self, samples: Any) -> None:
        for block in (Delay, MovingAverage):
            with pytest.raises(DiagramError, match="a whole number of samples from 1"):
                block(samples)


@pytest.mark.parametrize("delay", [0.1, 0.137, 0.3])
def test_a_cubic_delay_interpolates_polynomials_exactly(delay):
    """u = t³ - t: within a step, and with a delay of no whole number of steps, to rounding."""
    d = Diagram("cubic", step=0.1, solver="rk4")
    u = d.add(Expression("t**3 - t"), "u")
    late = d.add(TransportDelay(delay, interpolation="cubic"), "late", u=u)
    d.connect(late, d.add(Integrator(), "x"))
    result = simulate(d, 3.0, error_estimate=False)
    t = result.t[result.t >= delay + 0.3 - 1e-9]
    wanted = (t - delay) ** 3 - (t - delay)
    np.testing.assert_allclose(result["late"][-t.size :], wanted, rtol=0, atol=1e-12)


def test_an_unknown_interpolation_is_refused():
    with pytest.raises(DiagramError, match="interpolation is 'linear' or 'cubic', not 'spline'"):
        TransportDelay(0.1, interpolation="spline")  # type: ignore[arg-type]
