"""LQ tracking: against direct optimal control, one large least-squares problem in numpy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag, expm
from scipy.optimize import minimize_scalar

from biella import Diagram, DiagramError, simulate
from biella.blocks import DiscreteStateSpace, LQTracking, StateSpace
from biella.blocks.control import lqr

pytestmark = pytest.mark.engine

A = np.array([[0.0, 1.0], [-1.0, -0.2]])
B = np.array([[0.0], [1.0]])
C = np.array([[1.0, 0.0]])
START = np.array([0.5, -0.3])
Q, R, F = 50.0, 0.1, 5.0


def target(t):
    return np.sin(2 * t) + 0.3 * t


def solve_directly(a, b, c, z, q, r, f, x0):
    """Give the inputs and the cost of x[n+1] = a x + b u with the least sum, by least squares."""
    steps, states = len(z) - 1, len(a)
    inputs = b.shape[1]
    free = np.zeros((steps + 1, states))
    reach = np.zeros((steps + 1, states, steps * inputs))
    free[0] = x0
    for n in range(steps):
        free[n + 1] = a @ free[n]
        reach[n + 1] = a @ reach[n]
        reach[n + 1][:, n * inputs : (n + 1) * inputs] += b
    roots = [np.linalg.cholesky(q).T] * steps + [np.linalg.cholesky(f).T]
    rows = [root @ c @ m for root, m in zip(roots, reach, strict=True)]
    wanted = [root @ (goal - c @ x) for root, goal, x in zip(roots, z, free, strict=True)]
    effort = block_diag(*[np.linalg.cholesky(r).T] * steps)
    matrix = np.vstack([*rows, effort])
    vector = np.concatenate([*wanted, np.zeros(steps * inputs)])
    u, *_ = np.linalg.lstsq(matrix, vector, rcond=None)
    return u.reshape(steps, inputs), float(np.sum((matrix @ u - vector) ** 2))


def test_sampled_tracking_is_the_least_squares_solution():
    """The same inputs to rounding, from one run of the block around the plant."""
    period, steps = 0.05, 120
    a = expm(np.block([[A, B], [np.zeros((1, 3))]]) * period)
    a, b = a[:2, :2], a[:2, 2:]
    z = target(np.arange(steps + 1) * period)[:, np.newaxis]
    d = Diagram("tracking", step=period)
    plant = d.add(DiscreteStateSpace(a, b, np.eye(2), initial=START), name="plant")
    block = d.add(LQTracking(a, b, C, 0.0, z, Q=Q, R=R, final=F, period=period), name="u")
    d.connect(plant, block)
    d.connect(block, plant)
    run = simulate(d, steps * period, record=["*"])
    wanted, least = solve_directly(a, b, C, z, np.eye(1) * Q, np.eye(1) * R, np.eye(1) * F, START)
    np.testing.assert_allclose(run["u"][:-1], wanted[:, 0], rtol=0, atol=1e-9)
    assert run["u"][-1] == 0.0
    error = z[:, 0] - run["plant"][:, 0]
    cost = Q * np.sum(error[:-1] ** 2) + F * error[-1] ** 2 + R * np.sum(run["u"][:-1] ** 2)
    assert cost == pytest.approx(least, rel=1e-12)


def continuous_run(factor=1.0, step=2e-3, until=6.0):
    times = np.linspace(0, until, 301)
    block = LQTracking(A, B, C, times, target(times), Q=Q, R=factor * R, final=F)
    d = Diagram("tracking", step=step)
    plant = d.add(StateSpace(A, B, np.eye(2), initial=START), name="plant")
    d.add(block, name="u")
    d.connect(plant, block)
    d.connect(block, plant)
    run = simulate(d, until, record=["*"])
    error = np.interp(run.t, times, target(times)) - run["plant"][:, 0]
    rate = Q * error**2 + R * run["u"] ** 2
    return run, F * error[-1] ** 2 + np.trapezoid(rate, run.t)


def test_continuous_tracking_costs_as_little_as_direct_optimal_control():
    """Held inputs, ever shorter: the least cost falls to ours as period², and ours is below all."""
    _, ours = continuous_run()
    times = np.linspace(0, 6.0, 301)
    costs = []
    for steps in (300, 600):
        period = 6.0 / steps
        full = expm(np.block([[A, B], [np.zeros((1, 3))]]) * period)
        a, b = full[:2, :2], full[:2, 2:]
        z = np.interp(np.arange(steps + 1) * period, times, target(times))[:, np.newaxis]
        # The integral by the trapezoidal rule: weights of the ends are halved.
        u, _ = solve_directly(
            a, b, C, z, np.eye(1) * Q * period, np.eye(1) * R * period,
            np.eye(1) * (F + Q * period / 2), START,
        )  # fmt: skip
        costs.append(fine_cost(u[:, 0], period, times))
    assert ours <= costs[1] * (1 + 1e-6) and costs[1] <= costs[0] * (1 + 1e-6)
    # With four times the error at twice the period, this is what no period at all would cost.
    limit = costs[1] - (costs[0] - costs[1]) / 3
    assert ours == pytest.approx(limit, rel=2e-4)


def fine_cost(u, period, times, parts=50):
    """Give the cost of held inputs, with the plant exact and the integral on a fine grid."""
    h = period / parts
    full = expm(np.block([[A, B], [np.zeros((1, 3))]]) * h)
    a, b = full[:2, :2], full[:2, 2]
    x, total, t = START, 0.0, 0.0
    for n, push in enumerate(u):
        values = []
        for part in range(parts + 1):
            error = np.interp(t, times, target(times)) - x[0]
            values.append(Q * error**2 + R * push**2)
            if part < parts:
                x = a @ x + b * push
                t = n * period + (part + 1) * h
        total += np.trapezoid(values, dx=h)
    return total + F * (target(times)[-1] - x[0]) ** 2


def test_no_other_weight_of_the_input_costs_less():
    """The cost as a function of the R that the tables were made with is least at the true one."""
    found = minimize_scalar(lambda factor: continuous_run(np.exp(factor), step=4e-3)[1],
                            bounds=(-1, 1), method="bounded", options={"xatol": 0.02})  # fmt: skip
    assert abs(found.x) < 0.1


def test_far_from_the_end_it_is_the_regulator():
    """Long before tf, K is -lqr; with a constant reference, p makes up the rest."""
    block = LQTracking(A, B, C, [0.0, 40.0], [2.0, 2.0], Q=Q, R=R)
    K = block.table[0, 0, 0, :2]
    regulator = lqr(A, B, C.T @ C * Q, R)
    np.testing.assert_allclose(K, -regulator.K[0], rtol=1e-9)
    closed = A - B @ regulator.K
    wanted = -(B.T / R) @ np.linalg.solve(closed.T, C.T @ [Q * 2.0])
    assert block.table[0, 0, 0, 2] == pytest.approx(wanted[0], rel=1e-9)


@pytest.mark.parametrize("points", [21, 41])
def test_cubics_between_points_are_of_fourth_order(points):
    """Tables of half the interval are 16 times closer to a fine one."""
    times = np.linspace(0, 2.0, 21)
    grids = {
        n: LQTracking(A, B, C, times, np.ones(21), Q=1.0, R=1.0, points=n)
        for n in (points, 2 * points - 1, 1281)
    }
    found = {}
    for n, block in grids.items():
        d = Diagram("table", step=1 / 1280)
        x = d.add(
            StateSpace(np.zeros((2, 2)), np.zeros((2, 1)), np.eye(2), initial=[1.0, 1.0]), name="x"
        )
        d.connect(d.input("nothing"), x)
        d.add(block, name="u")
        d.connect(x, block)
        found[n] = simulate(d, 2.0)["u"]
    coarse = np.abs(found[points] - found[1281]).max()
    fine = np.abs(found[2 * points - 1] - found[1281]).max()
    assert 10 < coarse / fine < 22


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reference": [1.0]}, "at least two times"),
        ({"reference": np.ones((3, 2))}, "with 1 values, as many as C has rows"),
        ({"times": [0, 2, 1]}, "3 numbers that do not rise"),
        ({"times": [0, 1]}, "`times` are 3 rising numbers"),
        ({"R": 0.0}, "R must be positive definite"),
        ({"Q": -1.0}, "Q must not be negative"),
        ({"points": 1}, "`points` is a whole number from 2"),
        ({"period": 0.1}, "the time of the first row alone"),
    ],
)
def test_wrong_parameters_are_refused(change, message):
    given = {"times": [0, 1, 2], "reference": [0, 1, 0], "Q": 1.0, "R": 1.0} | change
    with pytest.raises(DiagramError, match=message):
        LQTracking(A, B, C, **given)
