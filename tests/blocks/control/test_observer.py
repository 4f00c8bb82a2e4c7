"""Kalman filters: against the equations in numpy, and with the errors that they expect."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import chi2

from biella import Diagram, DiagramError, linearize, simulate
from biella.blocks import KalmanFilter, Noise, Sine, StateSpace, Sum
from biella.blocks.basic.sources._playback import Playback
from biella.blocks.control import dlqe, lqe

pytestmark = pytest.mark.engine

T = 0.1
A = np.array([[1.0, T, 0.0], [-0.2, 0.95, T], [0.0, 0.0, 0.9]])
B = np.array([[0.0], [0.1], [0.2]])
C = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
D = np.array([[0.0], [0.3]])
Q = np.array([[0.02, 0.005, 0.0], [0.005, 0.05, 0.0], [0.0, 0.0, 0.1]])
R = np.array([[0.3, 0.1], [0.1, 0.2]])


def run(block, measurement, control=None):
    """Give all outputs of a filter for inputs sample by sample."""
    d = Diagram("filter", step=T)
    d.add(block, name="filter")
    times = np.arange(len(measurement)) * T
    for name, values in (("measurement", measurement), ("control", control)):
        if values is not None:
            source = d.add(Playback(times, values, interpolation="hold"))
            d.connect(source, block[name])
    result = simulate(d, times[-1], record=["*"])
    return {port.name: result[f"filter.{port.name}"] for port in block.outputs}


def filter_in_numpy(y, u, P, x):
    """The textbook's filter with a matrix inverse: estimates and covariances after and before y."""
    rows = []
    for measured, driven in zip(y, u, strict=True):
        L = P @ C.T @ np.linalg.inv(C @ P @ C.T + R)
        innovation = measured - C @ x - D @ driven
        updated, covariance = x + L @ innovation, (np.eye(3) - L @ C) @ P
        rows.append((updated, covariance, x, P, innovation))
        x, P = A @ updated + B @ driven, A @ covariance @ A.T + Q
    return [np.array(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("form", ["update", "prediction"])
def test_varying_filter_is_the_textbook_s(form):
    """Correlated noise, two measurements one after the other, D: the same as with an inverse."""
    random = np.random.default_rng(3)
    y, u = random.normal(size=(200, 2)), random.normal(size=(200, 1))
    start = np.array([1.0, -1.0, 0.5])
    block = KalmanFilter(
        A, B, C, D, Q=Q, R=R, form=form, covariance=[4.0, 2.0, 1.0], initial=start, period=T
    )
    ours = run(block, y, u)
    after, covariance_after, before, covariance_before, innovation = filter_in_numpy(
        y, u, np.diag([4.0, 2.0, 1.0]), start
    )
    wanted = (after, covariance_after) if form == "update" else (before, covariance_before)
    np.testing.assert_allclose(ours["state"], wanted[0], rtol=0, atol=1e-11)
    np.testing.assert_allclose(ours["covariance"].reshape(-1, 3, 3), wanted[1], rtol=0, atol=1e-11)
    np.testing.assert_allclose(ours["innovation"], innovation, rtol=0, atol=1e-11)


@pytest.mark.parametrize("form", ["update", "prediction"])
def test_steady_filter_is_the_varying_one_in_the_end(form):
    random = np.random.default_rng(4)
    y, u = random.normal(size=(400, 2)), random.normal(size=(400, 1))
    steady = run(KalmanFilter(A, B, C, D, Q=Q, R=R, form=form, period=T), y, u)
    first = dlqe(A, C, Q, R).P
    varying = run(KalmanFilter(A, B, C, D, Q=Q, R=R, form=form, covariance=first, period=T), y, u)
    np.testing.assert_allclose(steady["state"], varying["state"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(steady["innovation"], varying["innovation"], rtol=0, atol=1e-9)


def simulate_plant(runs, ticks, seed):
    """Give states and measurements of a plant that is driven by the noise it was designed for."""
    random = np.random.default_rng(seed)
    start = random.multivariate_normal(np.zeros(3), np.diag([4.0, 2.0, 1.0]), runs)
    states, measurements = [], []
    x = start
    for _ in range(ticks):
        states.append(x)
        measurements.append(x @ C.T + random.multivariate_normal(np.zeros(2), R, runs))
        x = x @ A.T + random.multivariate_normal(np.zeros(3), Q, runs)
    return np.stack(states, axis=1), np.stack(measurements, axis=1)


def test_errors_are_as_large_as_the_filter_says():
    """NEES: e' P⁻¹ e, mean over runs, lies in the 99.9 % band of χ² at 98 % of all samples.

    With N runs the sum is χ² with 3 N degrees of freedom; the fraction of samples outside its
    band of probability 0.999 is 0.001 on average. The innovations are white: the
    correlation of neighbors is within 4 / sqrt(samples).
    """
    runs, ticks = 60, 150
    x, y = simulate_plant(runs, ticks, 5)
    total, innovations = np.zeros(ticks), []
    for states, measured in zip(x, y, strict=True):
        block = KalmanFilter(A, None, C, Q=Q, R=R, covariance=[4.0, 2.0, 1.0], period=T)
        ours = run(block, measured)
        error = states - ours["state"]
        P = ours["covariance"].reshape(-1, 3, 3)
        total += np.einsum("ti,tij,tj->t", error, np.linalg.inv(P), error)
        innovations.append(ours["innovation"][50:, 0])
    low, high = chi2.ppf([0.0005, 0.9995], 3 * runs)
    assert np.mean((total > low) & (total < high)) >= 0.98
    # The mean over all samples is within 4 standard deviations, neighbors counted as one in ten.
    assert abs(total.mean() / (3 * runs) - 1) < 4 * np.sqrt(2 / (3 * runs * ticks / 10))
    white = np.array(innovations)
    correlation = np.mean(white[:, 1:] * white[:, :-1]) / white.var()
    assert abs(correlation) < 4 / np.sqrt(white.size)


def test_nees_sees_a_filter_that_is_too_sure():
    """The same measure on a filter made for a tenth of the noise is far outside."""
    runs, ticks = 20, 150
    x, y = simulate_plant(runs, ticks, 6)
    total = 0.0
    for states, measured in zip(x, y, strict=True):
        block = KalmanFilter(A, None, C, Q=0.1 * Q, R=0.1 * R, covariance=[4.0, 2.0, 1.0], period=T)
        ours = run(block, measured)
        error, P = states - ours["state"], ours["covariance"].reshape(-1, 3, 3)
        total += np.einsum("ti,tij,tj->t", error, np.linalg.inv(P), error).mean()
    assert total / (3 * runs) > 5.0


def test_continuous_filter_follows_its_equation():
    """Against scipy's DOP853 of dx̂/dt = A x̂ + B u + L (y - C x̂)."""
    a, b, c = np.array([[0.0, 1.0], [-2.0, -0.3]]), np.array([[0.0], [1.0]]), np.array([[1.0, 0.0]])
    d = Diagram("filter", step=1e-3)
    block = d.add(KalmanFilter(a, b, c, Q=[0, 1], R=0.1, initial=[1, 0], continuous=True), name="f")
    d.connect(d.add(Sine(1.0, 0.5), name="y"), block["measurement"])
    d.connect(d.add(Sine(2.0, 0.3), name="u"), block["control"])
    ours = simulate(d, 5.0)["f.state"][-1]
    L = lqe(a, c, [0, 1], 0.1).L

    def rate(t, x):
        y, u = np.sin(np.pi * t), 2 * np.sin(0.6 * np.pi * t)
        return a @ x + b[:, 0] * u + L[:, 0] * (y - c[0] @ x)

    wanted = solve_ivp(rate, (0, 5), [1, 0], method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-9)


def test_filter_of_a_linearized_diagram_beats_the_sensor():
    """A mass on a spring with a noisy sensor: the estimate is better than what is measured."""
    a, b = np.array([[0.0, 1.0], [-4.0, -0.1]]), np.array([[0.0], [1.0]])
    d = Diagram("plant", step=1e-2)
    plant = d.add(StateSpace(a, b, [1.0, 0.0]), name="plant")
    d.connect(d.input("force"), plant)
    d.output("position", plant)
    model = linearize(d, period=1e-2)
    block = KalmanFilter.of(model, Q=1e-4, R=0.04, G=model.B)
    loop = Diagram("measured", step=1e-2)
    plant = loop.add(StateSpace(a, b, [1.0, 0.0]), name="plant")
    push = loop.add(Sine(1.0, 0.2), name="push")
    loop.add(block, name="filter")
    noise = loop.add(Noise(0.2, seed=4), name="noise", period=1e-2)
    total = loop.add(Sum("++"), name="measured")
    loop.connect(push, plant, block["control"])
    loop.connect(plant, total["u1"])
    loop.connect(noise, total["u2"])
    loop.connect(total, block["measurement"])
    run_ = simulate(loop, 60.0, record=["*"])
    error = run_["filter.state"][500:, 0] - run_["plant"][500:]
    assert error.std() < 0.2 * run_["noise"].std()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"R": 0.0}, "R must be positive definite"),
        ({"Q": -1.0}, "Q must not be negative"),
        ({"form": "both"}, "form is one of"),
        ({"initial": [1, 2]}, "`initial` is a number or 3 numbers"),
        ({"covariance": 1.0, "continuous": True}, "a varying gain is sampled"),
        ({"continuous": True, "period": 0.1}, "has no period"),
        ({"covariance": 1.0, "R": 0.0}, "R must be positive definite"),
        ({"covariance": 1.0, "G": [1.0, 2.0]}, "G needs 3 rows"),
        ({"covariance": [1, 2]}, "covariance has 2 values on its diagonal, needs 3"),
    ],
)
def test_wrong_parameters_are_refused(change, message):
    with pytest.raises(DiagramError, match=message):
        KalmanFilter(A, B, C, **({"Q": Q, "R": R} | change))
