"""LQ tracking: against direct optimal control, one large least-squares problem in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag, expm
from scipy.optimize import minimize_scalar

from biella import Diagram, DiagramError, simulate
from biella.blocks import (
    DiscreteStateSpace,
    Expression,
    Integrator,
    LQTracking,
    Playback,
    StateSpace,
)
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


VARYING: dict[str, Any] = {
    "A": lambda t: [[0.0, 1.0], [-2.0 - np.sin(t), -0.3]],
    "B": lambda t: [[0.0], [1.0 + 0.5 * np.cos(t)]],
    "C": [[1.0, 0.0]],
    "Q": lambda t: 20.0 + 10.0 * np.sin(2.0 * t),
    "R": lambda t: 1.0 + 0.5 * t,
    "final": 5.0,
}


def varying_run(count, **changed):
    """Return the last state and the cost of the plant of [A.4] under its tracking control."""
    times = np.linspace(0.0, 2.0, count)
    data = VARYING | changed
    block = LQTracking(times=times, reference=np.sin(1.5 * times), **data)
    d = Diagram("varying", step=1e-3)
    x = d.add(Integrator([0.5, -1.0]), "x")
    u = d.add(block, "u", state=x)
    motion = ["x[1]", "-(2 + sin(t))*x[0] - 0.3*x[1] + (1 + 0.5*cos(t))*u"]
    d.connect(d.add(Expression({"y": motion}), "motion", x=x, u=u), x)
    rate = "(20 + 10*sin(2*t))*(z - x[0])**2 + (1 + 0.5*t)*u**2 + 0*x[1]"
    z = d.add(Playback(times, np.sin(1.5 * times)), "z")
    d.add(Integrator(0.0), "cost", u=d.add(Expression(rate), "rate", x=x, u=u, z=z))
    run = simulate(d, 2.0)
    last = run["x"][-1]
    return run["u"][0], last, run["cost"][-1] + 5.0 * (np.sin(3.0) - last[0]) ** 2


def test_time_varying_plant_and_weights():
    """The case of the appendix: u(0) = 3.78880881, J = 6.9169946, x(2) = (0.1561097, -1.2790322).

    Lines between the points of the reference leave an error of second order, which is extrapolated.
    """
    coarse, fine = varying_run(201), varying_run(401)
    u, x, cost = (two + (two - one) / 3.0 for one, two in zip(coarse, fine, strict=True))
    assert u == pytest.approx(3.78880881, abs=2e-8)
    assert x == pytest.approx([0.1561097, -1.2790322], abs=2e-7)
    assert cost == pytest.approx(6.9169946, abs=2e-7)


def test_functions_that_are_constant_change_nothing():
    times = np.linspace(0.0, 1.0, 11)
    plain = LQTracking(A, B, C, times, target(times), Q=Q, R=R, final=F)
    varying = LQTracking(
        lambda t: A, lambda t: B, C, times, target(times), Q=lambda t: Q, R=lambda t: R, final=F
    )
    size = np.abs(plain.table).max()
    # The tolerance of S and g; slopes have that of a difference of R⁻¹ Bᵀ besides.
    assert varying.table == pytest.approx(plain.table, abs=1e-9 * size)


def test_drift_is_held_against():
    """A mass of 1 kg under weight: the cost of the best input is below that of all near it."""
    times, weight = np.linspace(0.0, 2.0, 5), np.array([0.0, -9.81])
    plant: dict[str, Any] = {"A": [[0.0, 1.0], [0.0, 0.0]], "B": [0.0, 1.0], "C": [[1.0, 0.0]]}
    block = LQTracking(
        **plant, times=times, reference=np.ones(5), Q=100.0, R=1e-2, final=1.0, drift=weight
    )
    costs = []
    for change in (0.0, -0.05, 0.05):
        d = Diagram("weight", step=1e-3)
        x = d.add(Integrator([0.8, 0.0]), "x")
        u = d.add(block, "u", state=x)
        pushed = d.add(Expression(f"u + {change}*sin(3*t)"), "pushed", u=u)
        d.connect(d.add(Expression({"y": ["x[1]", "u - 9.81"]}), "motion", x=x, u=pushed), x)
        rate = "100*(1 - x[0])**2 + 0.01*u**2 + 0*x[1]"
        d.add(Integrator(0.0), "cost", u=d.add(Expression(rate), "rate", x=x, u=pushed))
        run = simulate(d, 2.0)
        costs.append(run["cost"][-1] + (1.0 - run["x"][-1, 0]) ** 2)
    best, below, above = costs
    assert min(below, above) > best
    # The cost is quadratic, so that its slope is zero to the error of the run.
    assert below - best == pytest.approx(above - best, rel=1e-4)
    moved = LQTracking(
        **plant, times=times, reference=np.ones(5), Q=100.0, R=1e-2, final=1.0,
        drift=lambda t: weight,
    )  # fmt: skip
    assert moved.table == pytest.approx(block.table, abs=1e-9 * np.abs(block.table).max())


def test_sampled_plant_that_varies_is_the_least_squares_solution():
    """Against one least-squares problem whose weights and plant differ in each step."""
    rng = np.random.default_rng(4)
    steps = 12
    a = [np.eye(2) + 0.2 * rng.normal(size=(2, 2)) for _ in range(steps)]
    b = [rng.normal(size=(2, 1)) for _ in range(steps)]
    w = [0.3 * rng.normal(size=2) for _ in range(steps)]
    q, r = rng.uniform(1.0, 5.0, steps + 1), rng.uniform(0.1, 1.0, steps)
    z, period = rng.normal(size=steps + 1), 0.5

    def at(items):
        return lambda t: items[min(round((t - 1.0) / period), steps - 1)]

    block = LQTracking(
        at(a), at(b), [[1.0, 0.0]], 1.0, z[:, np.newaxis], Q=at(q), R=at(r), final=2.0,
        drift=at(w), period=period,
    )  # fmt: skip
    x, rows, wanted, inputs = np.array([1.0, -1.0]), [], [], []
    reach = np.zeros((2, steps))
    free = x
    for n in range(steps + 1):
        weight = np.sqrt(2.0 if n == steps else q[n])
        rows.append(weight * reach[0])
        wanted.append(weight * (z[n] - free[0]))
        if n < steps:
            free, reach = a[n] @ free + w[n], a[n] @ reach
            reach[:, n] += b[n][:, 0]
    matrix = np.vstack([*rows, np.diag(np.sqrt(r))])
    best, *_ = np.linalg.lstsq(matrix, np.concatenate([wanted, np.zeros(steps)]), rcond=None)
    for n in range(steps):
        K, p = block.table[n, 0, :2], block.table[n, 0, 2]
        inputs.append(K @ x + p)
        x = a[n] @ x + b[n][:, 0] * inputs[-1] + w[n]
    assert inputs == pytest.approx(best, abs=1e-10)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"A": lambda t: [[0.0, 1.0]]}, r"at t = 0 s: A"),
        ({"R": lambda t: 0.5 - t}, r"at t = 0\.5 s: R must be positive definite"),
        ({"Q": lambda t: np.nan if t > 1 else 1.0}, r"at t = [12]\.?\d* s: .*`Q` must be finite"),
        ({"B": lambda t: 1 / 0}, r"`B`, a function of t, failed: division by zero"),
        ({"drift": lambda t: [1.0]}, r"`drift` has 2 values, as many as A has rows"),
        ({"C": lambda t: np.eye(2) if t > 1 else [[1.0, 0.0]]}, r"other shapes|has 2 values"),
    ],
)
def test_functions_of_time_that_are_refused(changed, message):
    with pytest.raises(DiagramError, match=message):
        varying_run(5, **changed)


def test_functions_are_not_evaluated_outside_the_times():
    """Such as a table, or a root: at the ends the change of B is taken from within."""
    seen: list[float] = []

    def of_time(t):
        seen.append(t)
        return [[0.0], [1.0 + np.sqrt(t * (2.0 - t))]]

    times = np.linspace(0.0, 2.0, 21)
    LQTracking(times=times, reference=np.sin(times), **(VARYING | {"B": of_time}), points=21)
    assert min(seen) == 0.0
    assert max(seen) == 2.0
