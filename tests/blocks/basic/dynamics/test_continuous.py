"""Integrators, derivatives and transport delays against closed forms and written-out methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import signal

from biella import BlockError, Diagram, DiagramError, simulate
from biella.blocks import Constant, Gain, PythonBlock, Sine
from biella.blocks.authoring import NativeBlock
from biella.blocks.basic.dynamics._continuous import Derivative, Integrator
from biella.blocks.basic.dynamics._delay import TransportDelay
from biella.blocks.basic.dynamics._linear import StateSpace, TransferFunction, ZeroPole

from .sampled_runs import check_restored_runs

pytestmark = pytest.mark.engine

Array = npt.NDArray[np.float64]
Run = Callable[..., tuple[Array, Array]]
Sample = Callable[[Any, float], Callable[[float], Any]]
EXPLICIT = ("euler", "heun", "rk3", "rk4", "dopri5")
SOLVERS = (*EXPLICIT, "backward_euler", "trapezoidal")


class TestIntegrator:
    def test_plain_keeps_its_lean_kernel(self) -> None:
        assert Integrator(1.0).kernel == "integrator"
        assert Integrator(limits=(0, 1)).kernel == "full_integrator"

    @pytest.mark.parametrize("options", [{}, {"limits": (-np.inf, np.inf)}])
    def test_polynomial_is_exact(self, options: dict[str, Any], run: Run) -> None:
        # RK4 is Simpson's rule for dx/dt = u(t): exact for cubics up to rounding.
        t, y = run(Integrator(2.0, **options), {"u": lambda t: 4 * t**3}, until=1.0)
        np.testing.assert_allclose(y, 2.0 + t**4, rtol=0, atol=1e-13)

    def test_unit_is_that_of_u_times_seconds(self) -> None:
        d = Diagram()
        d.connect(d.add(Constant(1.0, unit="m/s"), name="v"), d.add(Integrator(), name="x"))
        assert d.compile().signals["x.y"].unit == "m"

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_limits(self, solver: str, run: Run, sample: Sample) -> None:
        # u is held, so every solver is exact but for Newton's tolerance: x+ = clip(x + h u).
        # The limits are not multiples of h u, so a step that would pass one is cut short.
        u = np.array([[1.0, -2.0]] * 30 + [[-1.5, 2.5]] * 40 + [[3.0, 0.0]] * 30)
        step = 0.01
        block = Integrator([0.0, 0.05], limits=([-0.123, -0.101], [0.105, 0.333]))
        _, y = run(block, {"u": sample(u, step)}, until=1.0, solver=solver, held=True)
        x, expected = np.array([0.0, 0.05]), []
        for value in u:
            expected.append(x)
            x = np.clip(x + step * value, [-0.123, -0.101], [0.105, 0.333])
        np.testing.assert_allclose(y[:-1], expected, rtol=0, atol=1e-12)

    def test_limit_is_left_when_u_turns(self, run: Run) -> None:
        # At t = 0.5 x is at its limit and u = 0.505 - t still pushes; it turns at 0.505.
        t, y = run(Integrator(0.2, limits=(-1, 0.2)), {"u": lambda t: 0.505 - t}, until=0.6)
        assert (y[:51] == 0.2).all()
        np.testing.assert_allclose(y[51:], 0.2 - (t[51:] - 0.505) ** 2 / 2, rtol=0, atol=1e-14)

    def test_limit_is_left_within_the_step_in_which_u_turns(self, run: Run) -> None:
        # Without location of events RK4 sees u at both ends of the step in which it turns and,
        # twice, in the middle, where it is zero: x falls by h/6 0.005.
        block, u = Integrator(0.2, limits=(-1, 0.2)), {"u": lambda t: 0.505 - t}
        _, y = run(block, u, until=0.6, events="tick")
        assert (y[:51] == 0.2).all()
        assert y[51] == pytest.approx(0.2 - 0.01 / 6 * 0.005, abs=1e-15)

    @pytest.mark.parametrize("events", ["locate", "tick"])
    def test_output_stays_within_limits_in_minor_steps(self, events: str) -> None:
        seen: list[float] = []

        class Watch(PythonBlock):
            def output(self, t: float, x: Any, u: float) -> float:
                seen.append(u)
                return u

        d = Diagram(step=0.1, events=events)
        x = d.add(Integrator(0.0, limits=(-1.0, 0.25)), name="x")
        d.connect(d.add(Constant(1.0)), x)
        watch = d.add(Watch(inputs=["u"], outputs=["y"]), name="watch")
        d.connect(x, watch)
        d.connect(watch, d.add(Integrator(), name="sink"))
        result = simulate(d, 1.0, progress=False)
        if events == "tick":
            assert max(seen) == 0.25
            return
        # The step that passes the limit is discarded: values beyond it are only seen in that step.
        assert max(result["x.y"]) == 0.25
        assert max(seen) <= 0.3 + 1e-15
        # dsink/dt = x = min(t, 1/4)
        expected = 0.25**2 / 2 + 0.25 * 0.75
        assert result["sink.y"][-1] == pytest.approx(expected, abs=1e-15)

    def test_state_itself_is_put_back_on_a_limit(self) -> None:
        d = Diagram(step=0.1)
        d.connect(d.add(Constant(1.0)), d.add(Integrator(0.0, limits=(-1.0, 0.25)), name="x"))
        with d.compile().instantiate() as instance:
            instance.run(3)
            assert instance.states.tolist() == [0.25]

    def test_start_beyond_a_limit_is_put_on_it(self, run: Run) -> None:
        _, y = run(Integrator(9.0, limits=(-1, 1)), {"u": lambda t: 0.0}, until=0.02)
        assert (y == 1.0).all()

    @pytest.mark.parametrize("solver", EXPLICIT)
    @pytest.mark.parametrize("edge", ["rising", "falling", "either", "level"])
    def test_reset_shows_at_its_tick_and_never_within_a_step(
        self, edge: str, solver: str, follow: Any
    ) -> None:
        # The reset signal crosses zero between ticks; what integrates y must see that only at the
        # next tick. Reference: the same method written out over (x, its integral), resets at ticks.
        step, ticks = 0.05, 100

        def reset(t: float) -> float:
            return float(np.sin(4 * t + 0.3))

        d = Diagram(step=step, solver=solver, events="tick")
        x = d.add(Integrator(0.7, reset=edge), name="x")  # type: ignore[arg-type]
        d.connect(d.add(follow(np.cos), name="u"), x["u"])
        d.connect(d.add(follow(reset), name="r"), x["reset"])
        d.connect(x, d.add(Integrator(), name="area"))
        result = simulate(d, ticks * step, progress=False)

        def slopes(held: bool, t: float, v: Array) -> Array:
            return np.array([0.0 if held else np.cos(t), v[0]])

        v, before, expected = np.array([0.7, 0.0]), None, []
        for k in range(ticks + 1):
            t, now = k * step, reset(k * step) > 0
            rising, falling = before is False and now, before is True and not now
            if {"rising": rising, "falling": falling, "either": rising or falling, "level": now}[
                edge
            ]:
                v = np.array([0.7, v[1]])
            before = now
            expected.append(v)
            held = edge == "level" and now
            v = explicit_step(solver, partial(slopes, held), t, v, step)
        np.testing.assert_allclose(result["x.y"], np.array(expected)[:, 0], rtol=0, atol=1e-13)
        np.testing.assert_allclose(result["area.y"], np.array(expected)[:, 1], rtol=0, atol=1e-13)
        assert np.count_nonzero(result["x.y"] == 0.7) > 2

    @pytest.mark.parametrize("edge", ["rising", "falling", "either", "level"])
    def test_reset_where_its_signal_crosses_zero(self, edge: str, follow: Any) -> None:
        # sin(4 t + 0.3) is zero at (n pi - 0.3)/4, rising for even n. Between resets
        # x = 0.7 + sin(t) - sin(reset); while `level` is on, x = 0.7. Quadrature by RK4 has an
        # error of h^4/2880 = 2e-9 for each second, and x at a crossing that does not reset, from
        # the cubic interpolant of a step, one of h^4/384 = 1.6e-8: at most one between resets.
        step, until = 0.05, 5.0
        d = Diagram(step=step)
        x = d.add(Integrator(0.7, reset=edge), name="x")  # type: ignore[arg-type]
        d.connect(d.add(follow(np.cos), name="u"), x["u"])
        d.connect(d.add(follow(lambda t: float(np.sin(4 * t + 0.3))), name="r"), x["reset"])
        result = simulate(d, until, progress=False)
        zeros = [(n, (n * np.pi - 0.3) / 4) for n in range(1, 8)]
        parity = {"rising": (0,), "falling": (1,), "either": (0, 1), "level": (1,)}[edge]
        expected = []
        for t in result.t:
            last = max([0.0, *(at for n, at in zeros if n % 2 in parity and at <= t)])
            held = edge == "level" and np.sin(4 * t + 0.3) > 0
            expected.append(0.7 if held else 0.7 + np.sin(t) - np.sin(last))
        np.testing.assert_allclose(result["x.y"], expected, rtol=0, atol=2e-8)

    def test_reset_that_is_on_from_the_start(self, run: Run) -> None:
        for edge, second in (("rising", 0.01), ("level", 0.0)):
            block = Integrator(reset=edge)  # type: ignore[arg-type]
            _, y = run(block, {"u": lambda t: 1.0, "reset": lambda t: 1.0}, until=0.01)
            np.testing.assert_allclose(y, [0.0, second], rtol=1e-15)

    def test_boolean_may_reset(self, follow: Any) -> None:
        d = Diagram()
        x = d.add(Integrator(reset="rising"), name="x")
        d.connect(d.add(Constant(1.0)), x["u"])
        d.connect(d.add(follow(lambda t: float(t >= 0.005), kind="boolean"), name="b"), x["reset"])
        y = simulate(d, 0.01, progress=False)["x.y"]
        np.testing.assert_allclose(y, [*np.arange(5) * 1e-3, *np.arange(6) * 1e-3], atol=1e-15)

    def test_initial_value_that_is_reset_to_may_be_set(self) -> None:
        d = Diagram(step=0.1)
        x = d.add(Integrator(1.0, reset="rising"), name="x")
        d.connect(d.add(Constant(0.0)), x["u"])
        d.connect(d.input("go"), x["reset"])
        with d.compile().instantiate() as instance:
            instance.run(2)
            instance.set("x.initial", 5.0)
            assert instance.get("x.y") == 1.0
            instance.set("go", 1.0)
            assert instance.get("x.y") == 5.0
            instance.set("go", 0.0)  # nothing is committed before the tick is left
            assert instance.get("x.y") == 1.0

    def test_initial_port_gives_the_first_value_and_that_after_a_reset(self, run: Run) -> None:
        step = 0.1
        block = Integrator(reset="rising", initial_port=True)
        inputs: dict[str, Callable[[float], Any]] = {
            "u": lambda t: np.array([1.0, -1.0]),
            "reset": lambda t: float(round(t / step) in (3, 4, 7)),
            "initial": lambda t: np.array([10.0, 20.0]) + round(t / step, 6),
        }
        _, y = run(block, inputs, until=0.8, step=step, held=True)
        first, second = [10.0, 10.1, 10.2], [20.0, 19.9, 19.8]
        first += [13.0, 13.1, 13.2, 13.3, 17.0, 17.1]
        second += [23.0, 22.9, 22.8, 22.7, 27.0, 26.9]
        np.testing.assert_allclose(y, np.transpose([first, second]), atol=1e-13)

    def test_initial_port_alone(self, run: Run) -> None:
        block = Integrator(initial_port=True, limits=(0.0, 2.0))
        _, y = run(block, {"u": lambda t: 1.0, "initial": lambda t: 1.985 + t}, until=0.04)
        np.testing.assert_allclose(y, [1.985, 1.995, 2.0, 2.0, 2.0], atol=1e-14)

    def test_bouncing_ball_at_ticks(self) -> None:
        # The speed restarts at -0.8 times itself: `state` breaks what would be a loop.
        # Reference: the same recursion written out; held accelerations make RK4 exact.
        d = Diagram(step=1e-3, algebraic_loops="error", events="tick")
        speed = d.add(Integrator(reset="rising", initial_port=True, state_port=True), name="speed")
        height = d.add(Integrator(1.0, limits=(0.0, np.inf)), name="height")
        below = d.add(Gain(-1.0), name="below")
        back = d.add(Gain(-0.8), name="back")
        lift = d.add(Shift(1e-12), name="lift")
        d.connect(d.add(Constant(-9.81), name="g"), speed["u"])
        d.connect(speed["state"], back)
        d.connect(back, speed["initial"])
        d.connect(speed["y"], height)
        d.connect(height, below)
        d.connect(below, lift)
        d.connect(lift, speed["reset"])
        result = simulate(d, 1.5, progress=False)
        h, v, z, was, expected = 1e-3, 0.0, 1.0, False, []
        for _ in range(1501):
            down = 1e-12 - z > 0
            v = -0.8 * v if down and not was else v
            was = down
            expected.append(z)
            z, v = max(0.0, z + h * v - 9.81 * h * h / 2), v - 9.81 * h
        np.testing.assert_allclose(result["height.y"], expected, rtol=0, atol=1e-11)
        assert np.count_nonzero(np.diff(np.sign(result["speed.y"])) > 0) == 2

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"reset": "rise"}, "reset is one of rising, falling, either, level"),
            ({"limits": 3.0}, r"a pair \(lower, upper\)"),
            ({"limits": (1.0, 0.0)}, "lower <= upper"),
            ({"limits": (0.0, np.nan)}, "lower <= upper"),
            ({"initial": [0, 0], "limits": ([0, 0, 0], 1)}, "2 values, but the limits have 3"),
            ({"initial": [[1.0]]}, "a number or a vector"),
            ({"initial": 1.0, "initial_port": True}, "leave one of them out"),
        ],
    )
    def test_bad_options(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(DiagramError, match=message):
            Integrator(**options)


class Shift(PythonBlock):
    def __init__(self, by: float) -> None:
        super().__init__(inputs=["u"], outputs=["y"])
        self.by = by

    def output(self, t: float, x: Any, u: float) -> float:
        return u + self.by


BUTCHER: dict[str, tuple[list[list[float]], list[float], list[float]]] = {
    "euler": ([[]], [1.0], [0.0]),
    "heun": ([[], [1.0]], [0.5, 0.5], [0.0, 1.0]),
    "rk3": ([[], [0.5], [-1.0, 2.0]], [1 / 6, 2 / 3, 1 / 6], [0.0, 0.5, 1.0]),
    "rk4": ([[], [0.5], [0, 0.5], [0, 0, 1.0]], [1 / 6, 1 / 3, 1 / 3, 1 / 6], [0.0, 0.5, 0.5, 1.0]),
    "dopri5": (
        [
            [],
            [1 / 5],
            [3 / 40, 9 / 40],
            [44 / 45, -56 / 15, 32 / 9],
            [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
            [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
        ],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
        [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1],
    ),
}


def explicit_step(
    solver: str, slopes: Callable[[float, Array], Array], t: float, v: Array, h: float
) -> Array:
    a, b, c = BUTCHER[solver]
    k: list[Array] = []
    for row, at in zip(a, c, strict=True):
        k.append(
            slopes(t + at * h, v + h * sum((w * s for w, s in zip(row, k, strict=True)), 0 * v))
        )
    return v + h * sum((w * s for w, s in zip(b, k, strict=True)), 0 * v)


class TestDerivative:
    def test_of_a_ramp(self, run: Run) -> None:
        # y = slope (1 - exp(-t/tau)), as x starts from u(0). RK4 with h/tau = 0.1: each step
        # replaces exp(-0.1) by its series to the 4th power, off by 0.1^5/120 = 8.3e-8; the largest
        # sum of that over steps is 8.3e-8 max(n exp(-0.1 (n-1))) = 3.4e-7 of the slope.
        t, y = run(Derivative(0.1), {"u": lambda t: 5.0 + 3.0 * t}, until=2.0)
        assert y[0] == 0.0
        np.testing.assert_allclose(y, 3.0 * (1 - np.exp(-t / 0.1)), rtol=0, atol=1.1e-6)

    def test_given_start(self, run: Run) -> None:
        t, y = run(Derivative(0.1, initial=[1.0, 5.0]), {"u": lambda t: [5.0, 5.0]}, until=1.0)
        np.testing.assert_allclose(y[:, 0], 40.0 * np.exp(-t / 0.1), rtol=0, atol=40 * 3.5e-7)
        assert (y[:, 1] == 0).all()

    def test_is_s_over_one_plus_tau_s(self, run: Run, sample: Sample) -> None:
        u = np.random.default_rng(1).standard_normal(200)
        step = 0.01
        _, y = run(Derivative(0.2, initial=0.0), {"u": sample(u, step)}, until=1.99, held=True)
        _, expected, _ = signal.lsim(([1, 0], [0.2, 1]), u, np.arange(200) * step, interp=False)
        np.testing.assert_allclose(y, expected, rtol=0, atol=1e-6)

    def test_unit(self) -> None:
        d = Diagram()
        d.connect(d.add(Constant(1.0, unit="m"), name="x"), d.add(Derivative(0.1), name="v"))
        assert d.compile().signals["v.y"].unit == "m/s"

    @pytest.mark.parametrize("tau", [0.0, -1.0, [1.0, 2.0]])
    def test_bad_time(self, tau: Any) -> None:
        with pytest.raises(DiagramError, match="filter_time must be positive seconds"):
            Derivative(tau)


def wavy(t: float) -> float:
    return float(np.sin(7 * t) + 0.3)


REMEMBERING: dict[str, Callable[[], NativeBlock]] = {
    "integrator": lambda: Integrator(0.3),
    "limited integrator": lambda: Integrator(0.3, limits=(0.1, 0.35)),
    "reset integrator": lambda: Integrator(0.3, reset="either"),
    "level integrator": lambda: Integrator(0.3, reset="level", initial_port=False),
    "integrator from a port": lambda: Integrator(
        reset="rising", initial_port=True, limits=(-1, 0.9)
    ),
    "derivative": lambda: Derivative(0.05),
    "state space": lambda: StateSpace([[-1, 2], [-2, -1]], [1, 0], [1, 3], 0.1),
    "transfer function": lambda: TransferFunction([1, 2], [1, 3, 2]),
    "zero pole": lambda: ZeroPole([-1], [-2, -3]),
    "transport delay": lambda: TransportDelay(0.0537),
}


@pytest.mark.parametrize("solver", ["rk4", "trapezoidal"])
@pytest.mark.parametrize("make", REMEMBERING.values(), ids=REMEMBERING)
def test_restored_run_is_the_same_bits(
    make: Callable[[], NativeBlock], solver: str, follow: Any
) -> None:
    block = make()
    d = Diagram(step=0.01, solver=solver)
    d.add(block, name="block")
    for k, name in enumerate(block.input_index):
        d.connect(d.add(follow(lambda t, k=k: wavy(t + k)), name=f"of {name}"), block[name])
    d.connect(block["y"], d.add(Integrator(), name="area"))
    check_restored_runs(d.compile())


@pytest.mark.parametrize("junk", [np.nan, np.inf, -np.inf, -1.0, 1e300, 0.5, 2.0**31, 2.0**53])
@pytest.mark.parametrize("make", REMEMBERING.values(), ids=REMEMBERING)
def test_hostile_memory_is_harmless(
    make: Callable[[], NativeBlock], junk: float, follow: Any
) -> None:
    # A serialized state may hold anything where a kernel keeps a flag or a place in a ring.
    block = make()
    d = Diagram(step=0.01)
    d.add(block, name="block")
    for name in block.input_index:
        d.connect(d.add(follow(wavy), name=f"of {name}"), block[name])
    with d.compile().instantiate() as instance:
        instance.run(10)
        kept = instance.save()
        expected = instance.get("block.y")
        for place in (slice(0, 1), slice(1, 2), slice(2, 3), slice(None)):
            instance.memory[place] = junk
            instance.touch()
            try:
                instance.run(20)
            except BlockError as error:
                assert "not finite" in str(error)
            instance.restore(kept)
        assert instance.get("block.y") == expected


@pytest.mark.parametrize("events", ["locate", "tick"])
def test_equal_limits_fix_the_state(events: str) -> None:
    d = Diagram("fixed", step=0.1, events=events)
    d.add(Integrator(1.0, limits=(1.0, 1.0)), "x", u=d.add(Sine(frequency=0.7, phase=3.0), "u"))
    result = simulate(d, 2.0)
    assert np.all(result["x"] == 1.0)
    assert len(result.events) == 0
