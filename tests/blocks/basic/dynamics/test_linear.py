"""Linear systems against scipy.signal and python-control."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import control
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import linalg, signal

from biella import Diagram, DiagramError, simulate
from biella.blocks import Constant, PythonBlock, UnitDelay
from biella.blocks.basic.dynamics._linear import (
    FIR,
    DiscreteStateSpace,
    DiscreteTransferFunction,
    StateSpace,
    TransferFunction,
    ZeroPole,
)
from biella.blocks.basic.dynamics._realization import realize_chain, scale

pytestmark = pytest.mark.engine

Array = npt.NDArray[np.float64]
Run = Callable[..., tuple[Array, Array]]
Sample = Callable[[Any, float], Callable[[float], Any]]


A = np.array([[-0.5, 2.0, 0.0], [-2.0, -0.5, 1.0], [0.0, 0.0, -3.0]])
B = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, -1.0]])
C = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]])
D = np.array([[0.0, 0.5], [0.0, 0.0]])


class TestStateSpace:
    # Held input: each step multiplies by the series of exp(A h) to its order instead of itself. As
    # |A| h <= 3.6e-3 for h = 1e-3, the difference per step is below (|A| h)^5 / 120 = 5e-15 for RK4
    # and smaller for dopri5: over 2000 steps below 1e-11 times the size of the state, about 4.
    @pytest.mark.parametrize("solver", ["rk4", "dopri5"])
    @pytest.mark.parametrize("direct", [True, False])
    def test_against_lsim(self, solver: str, direct: bool, run: Run, sample: Sample) -> None:
        step, n = 1e-3, 2000
        u = np.random.default_rng(2).standard_normal((n + 1, 2)).round(2)
        d = D if direct else None
        block = StateSpace(A, B, C, d, initial=[1.0, -2.0, 0.5])
        _, y = run(
            block, {"u": sample(u, step)}, until=n * step, step=step, solver=solver, held=True
        )
        system = (A, B, C, D if direct else np.zeros((2, 2)))
        _, expected, _ = signal.lsim(
            system, u, np.arange(n + 1) * step, X0=[1.0, -2.0, 0.5], interp=False
        )
        np.testing.assert_allclose(y, expected, rtol=0, atol=4e-11)

    def test_impulse_response_against_control(self, run: Run) -> None:
        step, n = 1e-3, 2000
        t = np.arange(n + 1) * step
        expected = control.impulse_response(control.ss(A, B[:, :1], C, 0), t).outputs[:, 0]
        block = StateSpace(A, B[:, 0], C, initial=B[:, 0])
        _, y = run(block, {"u": lambda t: 0.0}, until=n * step, step=step)
        np.testing.assert_allclose(y, expected.T, rtol=0, atol=4e-11)

    def test_implicit_solver_follows_its_own_rule(self, run: Run) -> None:
        # trapezoidal: (I - hA/2) x+ = (I + hA/2) x; Newton stops at 1e-12.
        h, x = 0.1, np.array([1.0, -2.0, 0.5])
        block = StateSpace(A, B, C, initial=x)
        _, y = run(block, {"u": lambda t: [0.0, 0.0]}, until=2.0, step=h, solver="trapezoidal")
        expected = []
        for _ in range(21):
            expected.append(C @ x)
            x = np.linalg.solve(np.eye(3) - h / 2 * A, (np.eye(3) + h / 2 * A) @ x)
        np.testing.assert_allclose(y, expected, rtol=0, atol=1e-10)

    def test_matrices_may_be_set(self) -> None:
        d = Diagram(step=0.01)
        d.connect(d.add(Constant([1.0, 0.0])), d.add(StateSpace(A, B, C, D), name="s"))
        plan = d.compile()
        changed = simulate(plan, 1.0, parameters={"s.A": 0.5 * A, "s.D": 2 * D}, progress=False)
        other = Diagram(step=0.01)
        other.connect(
            other.add(Constant([1.0, 0.0])), other.add(StateSpace(0.5 * A, B, C, 2 * D), name="s")
        )
        assert np.array_equal(changed["s"], simulate(other, 1.0, progress=False)["s"])

    def test_feedthrough_only_with_d(self) -> None:
        assert StateSpace(A, B, C).feedthrough == ((),)
        assert StateSpace(A, B, C, D).feedthrough == ((0,),)
        assert "D" not in [p.name for p in StateSpace(A, B, C, 0 * D).parameters]

    @pytest.mark.parametrize(
        ("matrices", "message"),
        [
            (([[1, 2]], [1], [1]), "A must be square"),
            ((A, [1, 2], C), "B needs 3 rows"),
            ((A, B, [1, 2]), "C needs 3 columns"),
            ((A, B, C, [1, 2, 3]), r"D must have shape \(2, 2\)"),
            ((A, B, C, D, [1.0]), "1 values, but there are 3 states"),
            ((A, B, C, np.nan), "`D` must be finite"),
        ],
    )
    def test_bad_matrices(self, matrices: Any, message: str) -> None:
        with pytest.raises(DiagramError, match=message):
            StateSpace(*matrices)


TRANSFER_FUNCTIONS = [
    ([1], [1, 0]),
    ([2.0], [0.3, 1]),
    ([1, 2], [1, 0.4, 4]),
    ([0, 3, 1, 5], [2, 1, 8]),
    ([1, 0.5, 2, 1], [1, 3, 7, 4]),
    ([7.0], [1, 2, 9, 3, 2]),
]


class TestTransferFunction:
    # As for the state space: eigenvalues are below 4, but the companion matrices have norms up to
    # 10, so (1e-2)^5 / 120 = 8e-13 per step over 2000 steps of states of size about 5: 1e-8 at the
    # very most; 2e-10 is what decaying errors leave.
    @pytest.mark.parametrize(("num", "den"), TRANSFER_FUNCTIONS)
    def test_step_response(self, num: list[float], den: list[float], run: Run) -> None:
        step, n = 1e-3, 2000
        t, y = run(TransferFunction(num, den), {"u": lambda t: 1.0}, until=n * step, step=step)
        trimmed = np.trim_zeros(num, "f")
        _, expected = signal.step((trimmed, den), T=t)
        np.testing.assert_allclose(y, expected, rtol=0, atol=2e-10)
        np.testing.assert_allclose(
            y, control.step_response(control.tf(trimmed, den), t).outputs, rtol=0, atol=2e-10
        )

    @pytest.mark.parametrize(("num", "den"), TRANSFER_FUNCTIONS)
    def test_pulse_response(
        self, num: list[float], den: list[float], run: Run, sample: Sample
    ) -> None:
        step, n = 1e-3, 2000
        u = np.zeros(n + 1)
        u[3] = 1 / step
        block = TransferFunction(num, den)
        _, y = run(block, {"u": sample(u, step)}, until=n * step, step=step, held=True)
        system = (np.trim_zeros(num, "f"), den)
        _, expected, _ = signal.lsim(system, u, np.arange(n + 1) * step, interp=False)
        np.testing.assert_allclose(y, expected, rtol=0, atol=1e-9)

    def test_follows_a_smooth_input_within_steps(self, run: Run) -> None:
        # y' = u - y, u = sin t: y = (sin t - cos t + exp(-t)) / 2; RK4's error at h = 0.01 is
        # h^4 / 120 times derivatives of size 1, below 1e-10 for t up to 5.
        t, y = run(TransferFunction([1], [1, 1]), {"u": np.sin}, until=5.0)
        np.testing.assert_allclose(y, (np.sin(t) - np.cos(t) + np.exp(-t)) / 2, rtol=0, atol=3e-10)

    def test_tiny_coefficients_count(self, run: Run) -> None:
        # 1e-20 / (1e-20 s + 1e-20) is 1 / (s + 1).
        tiny = run(TransferFunction([1e-20], [1e-20, 1e-20]), {"u": np.sin}, until=1.0)[1]
        assert np.array_equal(tiny, run(TransferFunction([1], [1, 1]), {"u": np.sin}, until=1.0)[1])
        small = run(TransferFunction([1e-20], [1, 1]), {"u": np.sin}, until=1.0)[1]
        np.testing.assert_allclose(small, 1e-20 * tiny, rtol=1e-12)

    def test_feedthrough_by_degree(self) -> None:
        assert TransferFunction([1, 0], [1, 1]).feedthrough == ((0,),)
        assert TransferFunction([1], [1, 1]).feedthrough == ((),)

    def test_scaled(self) -> None:
        # 1e6 rad/s: the companion form has entries of 1 and 1e12 side by side.
        block = TransferFunction([1e12], [1, 1e6, 1e12])
        for parameter in block.parameters[:3]:
            size = np.abs(parameter.value[parameter.value != 0])
            assert size.max() / size.min() < 1e3
        assert np.abs(block.parameters[0].value).max() < 4e6

    def test_scaling_changes_no_transfer(self) -> None:
        system = scale(
            scale_free := realize_chain(np.array([-3.0]), np.array([-1, -50, -2e4]), 7.0)
        )
        s = 1j * np.logspace(-2, 5, 30)
        for at in s:
            values = [
                q.C @ np.linalg.solve(at * np.eye(3) - q.A, q.B) + q.D for q in (system, scale_free)
            ]
            np.testing.assert_allclose(values[0], values[1], rtol=1e-12)

    @pytest.mark.parametrize(
        ("num", "den", "message"),
        [
            ([1, 0, 0], [1, 1], "improper: `num` has degree 2 in s, `den` only 1.*Derivative"),
            ([1, 0], [1], "`den` has no s.*improper"),
            ([4.0], [2.0], r"use Gain\(2\)"),
            ([0.0], [1, 1], "`num` is zero"),
            ([1], [0, 0], "`den` is zero"),
            ([[1], [2]], [1, 1], "one list of coefficients"),
        ],
    )
    def test_bad_polynomials(self, num: Any, den: Any, message: str) -> None:
        with pytest.raises(DiagramError, match=message):
            TransferFunction(num, den)

    @settings(max_examples=25)
    @given(
        st.lists(st.floats(-2, 2), min_size=1, max_size=3),
        st.lists(st.floats(0.5, 5), min_size=3, max_size=4),
        st.floats(-3, 3),
        st.floats(-3, 3),
    )
    def test_is_linear(
        self, run: Run, sample: Sample, num: list[float], poles: list[float], a: float, b: float
    ) -> None:
        # Superposition holds for the recursion itself; only rounding, 1e-16 of the terms, is left.
        assume(np.any(num))
        den = np.poly(-np.array(poles))
        rng = np.random.default_rng(3)
        u, v = rng.standard_normal((2, 61))

        def respond(values: Array) -> Array:
            block = TransferFunction(num, den)
            return run(block, {"u": sample(values, 0.01)}, until=0.6, held=True)[1]

        np.testing.assert_allclose(
            respond(a * u + b * v), a * respond(u) + b * respond(v), rtol=0, atol=1e-11
        )


class TestZeroPole:
    @pytest.mark.parametrize(
        ("zeros", "poles", "gain"),
        [
            ([], [-1.0], 2.0),
            ([-5.0], [-1.0], 2.0),
            ([1j, -1j], [-1, -2, -3], -1.5),
            ([-1], [-1 + 2j, -1 - 2j, -3], 1.0),
            ([-4, -5], [-1, -2, -3 + 1j, -3 - 1j, -6], 10.0),
            ([2, 0], [-1, -1, -1, -1], 1.0),
        ],
    )
    def test_step_response(self, zeros: Any, poles: Any, gain: float, run: Run) -> None:
        step, n = 1e-3, 2000
        t, y = run(ZeroPole(zeros, poles, gain), {"u": lambda t: 1.0}, until=n * step, step=step)
        _, expected = signal.step(signal.ZerosPolesGain(zeros, poles, gain), T=t)
        np.testing.assert_allclose(y, expected, rtol=0, atol=1e-9)

    def test_many_equal_poles(self, run: Run) -> None:
        # 1/(s+1)^12: step response 1 - exp(-t) (1 + t + … + t^11/11!).
        t, y = run(ZeroPole([], [-1.0] * 12), {"u": lambda t: 1.0}, until=20.0, step=5e-3)
        terms = np.cumprod([np.ones_like(t)] + [t / k for k in range(1, 12)], axis=0).sum(axis=0)
        np.testing.assert_allclose(y, 1 - np.exp(-t) * terms, rtol=0, atol=1e-9)

    @settings(max_examples=60)
    @given(st.data())
    def test_frequency_response_of_the_chain(self, data: st.DataObject) -> None:
        real = st.floats(-9, -0.1)
        pair = st.tuples(st.floats(-5, -0.1), st.floats(0.1, 9))

        def draw(largest: int) -> Any:
            singles = data.draw(st.lists(real, max_size=largest))
            pairs = data.draw(st.lists(pair, max_size=(largest - len(singles)) // 2))
            roots = [*singles, *(complex(a, s * b) for a, b in pairs for s in (1, -1))]
            return np.array(roots)

        poles = draw(6)
        assume(poles.size)
        zeros = draw(poles.size)
        chain = scale(realize_chain(zeros, poles, 2.0))
        assert len(chain.A) == poles.size
        for at in 1j * np.array([0.0, 0.3, 2.0, 20.0]):
            expected = 2.0 * np.prod(at - zeros) / np.prod(at - poles)
            found = chain.C @ np.linalg.solve(at * np.eye(poles.size) - chain.A, chain.B) + chain.D
            scale_of_terms = np.prod(np.abs(at) + np.abs(zeros)) / np.prod(np.abs(at - poles))
            assert abs(found[0, 0] - expected) <= 1e-9 * (2 * scale_of_terms)

    @pytest.mark.parametrize(
        ("zeros", "poles", "gain", "message"),
        [
            ([-1, -2], [-1], 1.0, "improper: 2 zeros, but only 1 poles"),
            ([], [-1 + 1j], 1.0, "conjugate pairs"),
            ([], [], 1.0, "use Gain"),
            ([], ["a"], 1.0, "requires numbers"),
            ([], [np.inf], 1.0, "finite"),
            ([], [-1], [1, 2], "one number"),
        ],
    )
    def test_bad_roots(self, zeros: Any, poles: Any, gain: Any, message: str) -> None:
        with pytest.raises(DiagramError, match=message):
            ZeroPole(zeros, poles, gain)


RNG = np.random.default_rng(6)
U = RNG.standard_normal((400, 2))


class TestDiscreteStateSpace:
    A = np.array([[0.5, 0.4, 0.0], [-0.4, 0.5, 0.2], [0.0, 0.1, -0.7]])

    @pytest.mark.parametrize("direct", [True, False])
    def test_against_dlsim(self, direct: bool, run_block: Callable[..., Array]) -> None:
        # Sums of a few products of numbers of size 1: 1e-15 each, and the system forgets them.
        d = D if direct else np.zeros((2, 2))
        first = [1.0, 2.0, -3.0]
        y = run_block(DiscreteStateSpace(self.A, B, C, d, initial=first), U)
        _, expected, _ = signal.dlsim((self.A, B, C, d, 0.01), U, x0=first)
        np.testing.assert_allclose(y, expected, rtol=0, atol=1e-12)

    def test_feedthrough_only_with_d(self) -> None:
        assert DiscreteStateSpace(self.A, B, C).feedthrough == ((),)
        assert DiscreteStateSpace(self.A, B, C, D).feedthrough == ((0,),)


class TestDiscreteTransferFunction:
    @pytest.mark.parametrize(
        ("num", "den"),
        [
            ([1], [1, -0.5]),
            ([0.2, 0.1], [1, -0.5]),
            ([3, 1], [2, -1, 0.5, 0.1]),
            ([1, 0], [1, 0, 0]),
            (*signal.butter(4, 0.2),),
            (*signal.ellip(5, 0.5, 40, 0.3, btype="highpass"),),
        ],
    )
    def test_against_dlsim_and_lfilter(
        self, num: Any, den: Any, run_block: Callable[..., Array]
    ) -> None:
        y = run_block(DiscreteTransferFunction(num, den), U)
        padded = np.concatenate([np.zeros(len(den) - len(num)), num])
        # The same recursion as lfilter, and the same bits.
        assert np.array_equal(y, signal.lfilter(padded, den, U, axis=0))
        _, expected = signal.dlsim((num, den, 0.01), U[:, 0])
        np.testing.assert_allclose(y[:, 0], expected[:, 0], rtol=0, atol=1e-12)

    def test_coefficients_may_be_set(self) -> None:
        d = Diagram(step=0.01)
        d.connect(d.add(Constant(1.0)), d.add(DiscreteTransferFunction([1], [1, -0.5]), name="f"))
        changed = simulate(d, 0.1, parameters={"f.num": 6.0, "f.den": [2, -0.5]}, progress=False)
        expected = signal.lfilter([0, 3], [1, -0.25], np.ones(11))
        np.testing.assert_allclose(changed["f"], expected, rtol=1e-15)

    def test_feedthrough_by_degree(self) -> None:
        assert DiscreteTransferFunction([1], [1, -0.5]).feedthrough == ((),)
        assert DiscreteTransferFunction([0, 1], [1, -0.5]).feedthrough == ((),)
        assert DiscreteTransferFunction([1, 0], [1, -0.5]).feedthrough == ((0,),)

    def test_improper(self) -> None:
        with pytest.raises(DiagramError, match=r"degree 2 in z, `den` only 1.*future samples"):
            DiscreteTransferFunction([1, 0, 0], [1, 1])

    def test_loop_closed_through_it_is_no_algebraic_loop(self) -> None:
        d = Diagram(step=0.01, algebraic_loops="error")
        f = d.add(DiscreteTransferFunction([1], [1, -0.5]), name="f")
        d.connect(f, f)
        d.compile()


class TestFIR:
    @pytest.mark.parametrize("taps", [[2.0], [0.0, 1.0], signal.firwin(31, 0.3).tolist()])
    def test_against_lfilter(self, taps: list[float], run_block: Callable[..., Array]) -> None:
        # 31 products of size 1 at most, in another order: 31 * 1e-16.
        np.testing.assert_allclose(
            run_block(FIR(taps), U), signal.lfilter(taps, 1.0, U, axis=0), rtol=0, atol=1e-14
        )

    def test_initial_is_what_came_before(self, run_block: Callable[..., Array]) -> None:
        y = run_block(FIR([0.5, 0.25, 0.25], [4.0, 8.0]), np.tile([4.0, 8.0], (6, 1)))
        assert np.array_equal(y, np.tile([4.0, 8.0], (6, 1)))

    def test_first_coefficient_of_zero_is_no_feedthrough_and_stays_zero(self) -> None:
        assert FIR([0.0, 1.0]).feedthrough == ((),)
        assert FIR([1.0, 0.0]).feedthrough == ((0,),)
        d = Diagram(step=0.01)
        d.connect(d.add(Constant(1.0)), d.add(FIR([0.0, 1.0]), name="f"))
        y = simulate(d, 0.03, parameters={"f.coefficients": [5.0, 2.0]}, progress=False)["f"]
        assert y.tolist() == [0.0, 2.0, 2.0, 2.0]

    @pytest.mark.parametrize(
        ("taps", "message"), [([], "is empty"), (2.0, "as a list"), ([[1.0]], "as a list")]
    )
    def test_bad_coefficients(self, taps: Any, message: str) -> None:
        with pytest.raises(DiagramError, match=message):
            FIR(taps)


@settings(max_examples=25)
@given(
    st.lists(st.floats(-1, 1), min_size=1, max_size=5),
    st.lists(st.floats(-0.9, 0.9), max_size=3),
    st.integers(1, 20),
)
def test_discrete_systems_do_not_depend_on_time(
    run_block: Callable[..., Array], taps: list[float], poles: list[float], by: int
) -> None:
    # The same operations on the same numbers, later: the same bits.
    den = np.poly([*poles, 0.0, 0.0])
    num = np.array([1.0, *taps])[: den.size]
    u = U[:60]
    late = np.concatenate([np.zeros((by, 2)), u])
    for make in (lambda: FIR([1.0, *taps]), lambda: DiscreteTransferFunction(num, den)):
        assert np.array_equal(run_block(make(), late)[by:], run_block(make(), u))


def test_sampled_plant_in_a_loop_against_its_exact_discretization() -> None:
    # A held input makes the plant exactly cont2discrete(zoh); with a sampled law the whole loop is
    # an exact recursion. RK4 at 2 ms within periods of 10 ms: (4 * 2e-3)^5 / 120 per step, 1e-12.
    num, den, period = [2.0], [1.0, 0.6, 4.0], 0.01
    d = Diagram(step=0.002)
    plant = d.add(TransferFunction(num, den), name="plant")
    law = d.add(DiscreteTransferFunction([0.8, -0.7], [1.0, -0.9], period=period), name="law")
    minus = d.add(Error(), name="error")
    delay = d.add(UnitDelay(), name="delay", period=period)
    d.connect(plant, minus)
    d.connect(minus, law)
    d.connect(law, delay)
    d.connect(delay, plant)
    y = simulate(d, 4.0, progress=False)["plant"][:: round(period / 0.002)]
    a, b, c, _, _ = signal.cont2discrete(signal.tf2ss(num, den), period)
    x, held, w, before, expected = np.zeros((2, 1)), 0.0, 0.0, 0.0, []
    for _ in range(len(y)):
        expected.append(float((c @ x)[0, 0]))
        e = 1.0 - expected[-1]
        w, before, u = 0.8 * e - 0.7 * before + 0.9 * w, e, held
        held, x = w, a @ x + b * u
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-10)


class Error(PythonBlock):
    def __init__(self) -> None:
        super().__init__(inputs=["y"], outputs=["e"])

    def output(self, t: float, x: Any, u: float) -> float:
        return 1.0 - u


def test_expm_reference_of_a_closed_loop(follow: Any) -> None:
    # Plant 1/(s^2 + 0.4 s + 4) under unit feedback from 3: x' = (A - 3 B C) x + 3 B.
    plant = TransferFunction([1], [1, 0.4, 4])
    d = Diagram(step=1e-3)
    d.add(plant, name="plant")
    error = d.add(follow(lambda t: 3.0), name="r")

    class Minus(PythonBlock):
        def output(self, t: float, x: Any, u: Any) -> Any:
            return 3.0 * (u[0] - u[1])

    law = d.add(Minus(inputs=["r", "y"], outputs=["u"]), name="law")
    d.connect(error, law["r"])
    d.connect(plant, law["y"])
    d.connect(law, plant)
    y = simulate(d, 3.0, progress=False)["plant.y"]
    a = np.array([[0, 1, 0], [-7, -0.4, 9], [0, 0, 0]])  # position, speed, reference
    expected = [(linalg.expm(a * t) @ [0, 0, 1])[0] for t in (1.0, 2.0, 3.0)]
    np.testing.assert_allclose(y[[1000, 2000, 3000]], expected, rtol=0, atol=1e-10)


# Steps that are too large for the poles.

STABLE = {"euler": 2.0, "heun": 2.0, "rk3": 2.5127, "rk4": 2.7853, "dopri5": 3.3066}


@pytest.mark.parametrize(("solver", "reach"), STABLE.items())
def test_a_step_outside_the_stability_region_is_warned_of(solver, reach):
    """On the real axis the regions end where |R(z)| = 1."""
    import warnings

    from biella import BiellaWarning

    def compile_with(step):
        d = Diagram("fast", step=step)
        d.connect(d.add(Constant(1.0)), d.add(TransferFunction([1.0], [1e-3, 1.0]), name="g"))
        d.compile(solver=solver)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_with(0.999 * reach * 1e-3)
    with pytest.warns(BiellaWarning, match=rf"`g`.*`{solver}` is not stable.*time constant 0\.001"):
        compile_with(1.001 * reach * 1e-3)


@pytest.mark.parametrize(
    ("solver", "options"),
    [("backward_euler", {}), ("trapezoidal", {}), ("dopri5", {"tolerance": 1e-6})],
)
def test_implicit_solvers_and_error_control_take_any_step(solver, options):
    d = Diagram("fast", step=1.0, solver=solver, **options)
    d.connect(d.add(Constant(1.0)), d.add(TransferFunction([1.0], [1e-3, 1.0]), name="g"))
    d.compile()


def test_an_oscillation_without_damping_is_stable_up_to_its_limit():
    """RK4 reaches 2√2 on the imaginary axis."""
    from biella.blocks.core._stiffness import find_largest_step

    poles = np.array([10j, -10j])
    assert find_largest_step(poles, "rk4") == pytest.approx(2 * np.sqrt(2) / 10, rel=1e-6)
    assert find_largest_step(poles, "euler") == np.inf  # slow growth at every step: not the step's
    assert find_largest_step(np.array([3.0 + 0j]), "rk4") == np.inf
    assert find_largest_step(np.array([-1 + 10j, -1 - 10j]), "euler") == pytest.approx(2 / 101)
