"""Riccati designs: against python-control, the equations themselves, and designs that cannot be."""

from __future__ import annotations

import control
import numpy as np
import pytest

from biella import Diagram, DiagramError, linearize, simulate
from biella.blocks import Gain, StateSpace
from biella.blocks.control import add_integral, dlqe, dlqr, lqe, lqg, lqr

A = np.array([[0.0, 1.0, 0.0], [4.0, -0.2, 1.0], [0.0, 0.3, -2.0]])
B = np.array([[0.0, 0.1], [1.0, 0.0], [0.0, 2.0]])
C = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
Q = np.diag([3.0, 0.1, 1.0])
R = np.array([[1.0, 0.2], [0.2, 0.5]])
N = 0.1 * np.array([[1.0, 0.0], [0.5, 0.2], [0.0, 0.3]])


def sampled(period=0.05):
    model = control.c2d(control.ss(A, B, C, 0), period)
    return model.A, model.B


@pytest.mark.parametrize("cross", [None, N])
def test_regulators_are_those_of_python_control(cross):
    ours = lqr(A, B, Q, R, N=cross)
    K, S, poles = control.lqr(A, B, Q, R, *([] if cross is None else [cross]))
    np.testing.assert_allclose(ours.K, K, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.S, S, rtol=1e-9)
    found = np.sort_complex(ours.poles.astype(complex))
    np.testing.assert_allclose(found, np.sort_complex(poles), rtol=1e-8)
    a, b = sampled()
    ours = dlqr(a, b, Q, R, N=cross)
    K, S, _ = control.dlqr(a, b, Q, R, *([] if cross is None else [cross]))
    np.testing.assert_allclose(ours.K, K, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.S, S, rtol=1e-9)


def test_estimators_are_those_of_python_control():
    process, noise = np.diag([0.0, 1.0, 0.2]), np.diag([0.1, 0.3])
    L, P, _ = control.lqe(A, np.eye(3), C, process, noise)
    ours = lqe(A, C, process, noise)
    np.testing.assert_allclose(ours.L, L, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.P, P, rtol=1e-9, atol=1e-12)
    a, _ = sampled()
    # python-control's gain of a sampled plant moves the estimate one sample on: A L.
    L, P, _ = control.dlqe(a, np.eye(3), C, process, noise)
    ours = dlqe(a, C, process, noise)
    np.testing.assert_allclose(ours.P, P, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(a @ ours.L, L, rtol=1e-9, atol=1e-12)


def test_double_integrator_has_its_closed_form():
    """Q = diag(1, 0), R = 1: K = [1, sqrt 2], poles at (-1 ± j) / sqrt 2."""
    found = lqr([[0, 1], [0, 0]], [0, 1], [1, 0], 1)
    np.testing.assert_allclose(found.K, [[1.0, np.sqrt(2)]], rtol=1e-12)
    np.testing.assert_allclose(found.poles.real, -np.sqrt(0.5), rtol=1e-9)


@pytest.mark.engine
def test_regulator_of_a_linearized_diagram_costs_what_it_says():
    """∫ xᵀQx + uᵀRu dt along a run from x is xᵀ S x."""
    start = np.array([0.3, -0.5, 0.2])
    d = Diagram("plant", step=1e-3)
    plant = d.add(StateSpace(A, B, np.eye(3), initial=start), name="plant")
    d.connect(d.input("u", width=2), plant)
    d.output("x", plant)
    model = linearize(d)
    found = lqr(model, Q, R)
    np.testing.assert_allclose(found.K, lqr(A, B, Q, R).K, rtol=1e-6, atol=1e-7)
    loop = Diagram("loop", step=1e-3)
    plant = loop.add(StateSpace(A, B, np.eye(3), initial=start), name="plant")
    gain = loop.add(Gain(-found.K), name="u")
    loop.connect(plant, gain)
    loop.connect(gain, plant)
    run = simulate(loop, 12.0, record=["*"])
    x, u = run["plant"], run["u"]
    rate = np.einsum("ti,ij,tj->t", x, Q, x) + np.einsum("ti,ij,tj->t", u, R, u)
    assert np.trapezoid(rate, run.t) == pytest.approx(start @ found.S @ start, rel=1e-5)


@pytest.mark.engine
def test_lqg_block_is_the_controller_of_python_control():
    """From measurement to input, continuous; sampled, against the two equations written out."""
    process, noise = np.diag([0.1, 1.0, 0.2]), np.diag([0.1, 0.3])
    model = control.ss(A, B, C, 0)
    ours = lqg(_Model(A, B, C, None), Q, R, process, noise)
    K, _, _ = control.lqr(A, B, Q, R)
    L, _, _ = control.lqe(A, np.eye(3), C, process, noise)
    block = ours.block()
    values = {p.name: p.value for p in block.parameters}
    np.testing.assert_allclose(values["A"], model.A - B @ K - L @ C, rtol=1e-8, atol=1e-10)
    a, b = sampled()
    made = lqg(_Model(a, b, C, 0.05), Q, R, process, noise)
    block = made.block()
    values = {p.name: p.value for p in block.parameters}
    x, predicted = np.zeros(3), np.zeros(3)
    for y in np.random.default_rng(2).normal(size=(30, 2)):
        estimate = predicted + made.estimator.L @ (y - C @ predicted)
        u = -made.regulator.K @ estimate
        np.testing.assert_allclose(values["C"] @ x + values["D"] @ y, u, rtol=0, atol=1e-12)
        predicted = a @ estimate + b @ u
        x = values["A"] @ x + values["B"] @ y


class _Model:
    def __init__(self, A, B, C, dt):
        self.A, self.B, self.C, self.dt = A, B, C, dt
        self.D = np.zeros((len(C), np.shape(B)[1]))


@pytest.mark.parametrize(
    ("design", "second", "dt"),
    [(lqr, B, None), (dlqr, B, 0.05), (lqe, C, None), (dlqe, C, 0.05)],
)
def test_arguments_by_position_by_keyword_and_of_a_model_are_the_same(design, second, dt):
    a = A if dt is None else sampled(dt)[0]
    name = "B" if second is B else "C"
    weights = (Q, R) if second is B else (0.1, 1.0)
    expected = design(a, second, *weights)
    model = _Model(a, B, C, dt)
    for found in (
        design(a, second, Q=weights[0], R=weights[1]),
        design(A=a, Q=weights[0], R=weights[1], **{name: second}),
        design(model, *weights),
        design(model, weights[0], R=weights[1]),
        design(model=model, Q=weights[0], R=weights[1]),
        design(model, *weights, None),
    ):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_models_of_python_control_are_taken():
    """Their ``dt`` is 0 if continuous."""
    there = control.ss(A, B, C, np.zeros((len(C), B.shape[1])))
    np.testing.assert_array_equal(lqr(there, Q, R).K, lqr(A, B, Q, R).K)


def test_integral_is_added_after_the_states():
    a, b = add_integral(A, B, C)
    assert a.shape == (5, 5) and b.shape == (5, 2)
    np.testing.assert_array_equal(a[3:, :3], -C)
    discrete, driven = sampled(0.05)
    a, _ = add_integral(discrete, driven, C, period=0.05)
    np.testing.assert_array_equal(a[3:], np.hstack([-0.05 * C, np.eye(2)]))


OSCILLATOR = [[0.0, 1.0], [-1.0, 0.0]]
TURN = [[np.cos(1), np.sin(1)], [-np.sin(1), np.cos(1)]]


@pytest.mark.parametrize(
    ("design", "message"),
    [
        (
            lambda: lqr(np.diag([1.0, -1.0, 2.0]), [1, 1, 0], 1.0, 1.0),
            "no input reaches the mode s = 2 (mainly state 3)",
        ),
        (lambda: lqr([[0, 1], [0, 0]], [1, 0], 1.0, 1.0), "no input reaches the mode s = "),
        (
            lambda: lqr([[0, 1], [0, 0]], [0, 1], [0, 1], 1.0),
            "the mode s = 0 (mainly state 1) lies on the border of stability and costs nothing",
        ),
        (lambda: lqr(OSCILLATOR, [0, 1], 0.0, 1.0), "costs nothing in Q"),
        (
            lambda: dlqr(np.diag([0.5, 1.5]), [1, 0], 1.0, 1.0),
            "the mode z = 1.5 (mainly state 2), which does not decay",
        ),
        (lambda: dlqr(TURN, [0, 1], 0.0, 1.0), "costs nothing in Q"),
        (
            lambda: lqe(np.diag([-1.0, 0.5]), [[1, 0]], 1.0, 1.0),
            "no measurement shows the mode s = 0.5 (mainly state 2)",
        ),
        (
            lambda: dlqe(np.diag([0.5, 1.0]), [[1, 1]], [1, 0], 1.0),
            "the mode z = 1 (mainly state 2) lies on the border of stability and no noise",
        ),
        (lambda: lqr(A, B, Q, 0.0), "R must be positive definite: its smallest eigenvalue is 0"),
        (lambda: lqr(A, B, [-1, 1, 1], 1.0), "Q must not be negative in any direction"),
        (lambda: lqr(A, B, Q, R, N=50 * N), "Q - N R⁻¹ Nᵀ must not be negative"),
        (lambda: lqr(A, B, [[1, 2, 0], [0, 1, 0], [0, 0, 1]], 1.0), "Q must be symmetric"),
        (lambda: lqr(A, B, [1, 1], 1.0), "Q has 2 values on its diagonal, needs 3"),
        (lambda: lqr(A, B, Q, R, N.T), "N needs shape (3, 2)"),
        (lambda: lqr(A, B[:2], Q, R), "a square A and a B with as many rows"),
        (
            lambda: lqr(A, B),  # type: ignore[call-overload]
            "lqr lacks Q, R: write lqr(A, B, Q, R, N=None), or lqr(model, Q, R, N=",
        ),
        (lambda: lqr(A, B, Q, r=R), "no argument `r` here. Did you mean `R`? Write lqr(A, B, Q, R"),  # type: ignore[call-overload]
        (
            lambda: lqr(A, B, Q, R, weight=1),  # type: ignore[call-overload]
            "lqr has no argument `weight` here. It has: A, B, Q, R, N",
        ),
        (
            lambda: lqr(_Model(A, B, C, None), B=B, Q=Q, R=R),  # type: ignore[call-overload]
            "lqr has no argument `B` here. It has: mo",
        ),
        (lambda: lqr(A, B, Q, Q=Q, R=R), "lqr got `Q` twice: by position and by keyword"),  # type: ignore[call-overload]
        (lambda: lqr(A, B, Q, R, N, 1.0), "lqr takes lqr(A, B, Q, R, N=None), or lqr(model"),  # type: ignore[call-overload]
        (lambda: dlqe(A, Q=1.0, R=1.0), "dlqe lacks C: write dlqe(A, C, Q, R, G=None)"),  # type: ignore[call-overload]
        (lambda: lqr(model=3, Q=Q, R=R), "lqr needs a model with A and B, got 3"),  # type: ignore[call-overload]
        (
            lambda: lqr(_Model(A, B, C, 0.1), Q, R),
            "this one is sampled: linearize without a period, or use dlqr",
        ),
        (
            lambda: dlqr(_Model(A, B, C, None), Q, R),
            "this one is continuous: linearize with period=…, or use lqr",
        ),
        (lambda: lqe(A, C, 1.0, 1.0, G=[1, 0]), "G needs 3 rows"),
        (lambda: add_integral(A, B, [1, 0]), "C needs 3 columns"),
    ],
)
def test_designs_that_cannot_be_are_named(design, message):
    with pytest.raises(DiagramError) as caught:
        design()
    assert message in str(caught.value)


def test_stiff_and_slow_designs_are_not_refused():
    """A slow mode beside a fast one is far from unreachable."""
    a = np.array([[0.0, 1.0, 0.0], [0.0, -1e-3, 1.0], [0.0, 0.0, -1e5]])
    found = lqr(a, [0, 0, 1e5], [1, 0, 0], 1.0)
    assert found.poles.real.max() < -0.5
