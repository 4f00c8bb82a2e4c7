"""Closed loops of elementary blocks against scipy, python-control and recursions by hand."""

from __future__ import annotations

import math

import control
import numpy as np
import pytest
from scipy import signal
from scipy.linalg import expm

from biella import Diagram, simulate
from biella.blocks import (
    Constant,
    Derivative,
    Gain,
    Integrator,
    Pendulum,
    Sum,
    TransportDelay,
    UnitDelay,
)

pytestmark = pytest.mark.engine

MASS, DAMPING, STIFFNESS = 2.0, 0.8, 5.0
PLANT = control.tf([1.0], [MASS, DAMPING, STIFFNESS])


def add_mass(d: Diagram, position=0.0):
    """m dv/dt = f - c v - k p from five blocks; the sum's third input is free for the force."""
    speed = d.add(Integrator(0.0), name="speed")
    place = d.add(Integrator(position), name="position")
    damper, spring = d.add(Gain(DAMPING), name="damper"), d.add(Gain(STIFFNESS), name="spring")
    force = d.add(Sum("--+"), name="force")
    inertia = d.add(Gain(1 / MASS), name="inertia")
    d.connect(speed, damper, place)
    d.connect(place, spring)
    d.connect(damper, force["u1"])
    d.connect(spring, force["u2"])
    d.connect(force, inertia)
    d.connect(inertia, speed)
    return place, force["u3"]


def pid_loop(kp: float, ki: float, kd: float, filter_time: float) -> Diagram:
    d = Diagram("pid", step=1e-3, solver="rk4")
    reference = d.add(Constant(1.0), name="reference")
    error = d.add(Sum("+-"), name="error")
    position, force = add_mass(d)
    p, i, k = d.add(Gain(kp)), d.add(Gain(ki)), d.add(Gain(kd))
    integral = d.add(Integrator(), name="integral")
    slope = d.add(Derivative(filter_time, initial=0.0), name="slope")
    total = d.add(Sum("+++"), name="total")
    d.connect(reference, error["u1"])
    d.connect(position, error["u2"])
    d.connect(error, p, integral, slope)
    d.connect(integral, i)
    d.connect(slope, k)
    for n, block in enumerate((p, i, k), 1):
        d.connect(block, total[f"u{n}"])
    d.connect(total, force)
    return d


@pytest.mark.parametrize("gains", [(6.0, 0.0, 0.0), (6.0, 4.0, 0.0), (20.0, 15.0, 6.0)])
def test_p_pi_and_pid_against_python_control(gains):
    kp, ki, kd = gains
    filter_time, until = 0.05, 8.0
    result = simulate(pid_loop(kp, ki, kd, filter_time), until)
    controller = kp + control.tf([ki], [1, 0]) + control.tf([kd, 0], [filter_time, 1])
    closed = control.minreal(control.feedback(controller * PLANT), verbose=False)
    _, exact = control.step_response(closed, T=result.t)
    # RK4 loses (h |λ|)^5 / 120 of a mode in each step, so its error t |λ|^5 h^4 / 120 e^(Re λ t) is
    # largest at t = 1 / |Re λ| or at the end; the modes have weights below one. 1e-12 for the peer.
    bound = 1e-12 + sum(
        min(until, 1 / (math.e * abs(pole.real))) * abs(pole) ** 5 * 1e-12 / 120
        for pole in closed.poles()
    )
    assert np.max(np.abs(result["position"] - exact)) < bound


def test_state_feedback_in_vector_form_against_the_matrix_exponential():
    """dx/dt = A x + B u, u = -K x, as one vector integrator and three matrix gains."""
    a = np.array([[0, 1, 0, 0], [0, -0.1, 3, 0], [0, 0, 0, 1], [0, -0.5, 30, 0]])
    b = np.array([[0], [2], [0], [5.0]])
    poles = [-2, -2.5, -3 + 1j, -3 - 1j]
    k = signal.place_poles(a, b, poles).gain_matrix
    x0 = np.array([0.1, 0, 0.2, 0])
    d = Diagram(step=1e-3, solver="rk4")
    x = d.add(Integrator(x0), name="x")
    drift, drive, feedback = d.add(Gain(a)), d.add(Gain(b)), d.add(Gain(-k), name="u")
    total = d.add(Sum("++"))
    d.connect(x, drift, feedback)
    d.connect(feedback, drive)
    d.connect(drift, total["u1"])
    d.connect(drive, total["u2"])
    d.connect(total, x)
    result = simulate(d, 3.0)
    closed = a - b @ k
    # 3000 (h |λ|)^5 / 120 with |λ| < 3.2 is 8e-12; the matrix is far from normal: a factor of 1e3.
    for n in (0, 500, 1000, 3000):
        assert np.allclose(result["x"][n], expm(closed * result.t[n]) @ x0, rtol=0, atol=1e-8)
    assert np.allclose(result["u"], -result["x"] @ k[0], rtol=0, atol=1e-13)


@pytest.mark.parametrize("solver", ["rk4", "dopri5"])
@pytest.mark.parametrize("late", [False, True])
def test_a_discrete_controller_on_a_continuous_plant_against_its_exact_recursion(solver, late):
    """PI at 20 ms, perhaps one sample late, on the mass; the plant's exact hold equivalent."""
    period, step, kp, ki, samples = 0.02, 1e-3, 8.0, 6.0, 300
    d = Diagram(step=step, solver=solver)
    error = d.add(Sum("+-"), name="error", period=period)
    position, force = add_mass(d, position=0.3)
    p, i = d.add(Gain(kp), name="p"), d.add(Gain(ki * period), name="i")
    past, present = d.add(UnitDelay(), name="past", period=period), d.add(Sum("++"), name="present")
    u = d.add(Sum("++"), name="u")
    d.connect(d.add(Constant(1.0), name="reference"), error["u1"])
    d.connect(position, error["u2"])
    d.connect(error, p, i)
    d.connect(i, present["u1"])
    d.connect(past, present["u2"])
    d.connect(present, past)
    d.connect(p, u["u1"])
    d.connect(present, u["u2"])
    if late:
        d.connect(u, delay := d.add(UnitDelay(), name="delay", period=period))
        d.connect(delay, force)
    else:
        d.connect(u, force)
    result = simulate(d, samples * period)

    a = np.array([[0, 1], [-STIFFNESS / MASS, -DAMPING / MASS]])
    f, g, *_ = signal.cont2discrete(
        (a, np.array([[0], [1 / MASS]]), np.eye(2), np.zeros((2, 1))), period
    )
    x, integral, before = np.array([0.3, 0.0]), 0.0, 0.0
    positions, efforts = [], []
    for _ in range(samples + 1):
        deviation = 1.0 - x[0]
        integral += ki * period * deviation
        effort = kp * deviation + integral
        positions.append(x[0])
        efforts.append(effort)
        x = f @ x + g[:, 0] * (before if late else effort)
        before = effort
    # Each step errs by (h |λ|)^(p+1) / (p+1)! of a solution of size 1, |λ| = sqrt(k / m) = 1.6:
    # 6000 · 1e-16 = 6e-13 for rk4, less for dopri5; the loop is stable and does not amplify it.
    every = round(period / step)
    assert np.allclose(result["position"][::every], positions, rtol=0, atol=1e-11)
    assert np.allclose(result["u"][::every], efforts, rtol=0, atol=1e-10)
    held = result["u"][:-1].reshape(-1, every)
    assert np.array_equal(held, np.repeat(held[:, :1], every, axis=1))


def test_a_chain_of_unit_delays_against_lfilter():
    """y[n] = 0.9 y[n-1] - 0.4 y[n-2] + r[n] - 0.5 r[n-1], at 5 ms in steps of 1 ms."""
    period = 5e-3
    d = Diagram(step=1e-3)
    r = d.add(Constant(1.0), name="r")
    sampled = d.add(Gain(1.0), name="sampled", period=period)
    y = d.add(Sum("+-+-"), name="y", period=period)
    delays = [d.add(UnitDelay(), period=period) for _ in range(3)]
    gains = [d.add(Gain(k)) for k in (0.5, 0.9, 0.4)]
    d.connect(r, sampled)
    d.connect(sampled, y["u1"], delays[0])
    d.connect(y, delays[1])
    d.connect(delays[1], delays[2], gains[1])
    d.connect(delays[0], gains[0])
    d.connect(delays[2], gains[2])
    for n, gain in enumerate(gains, 2):
        d.connect(gain, y[f"u{n}"])
    got = simulate(d, 1.0)["y"][::5]
    exact = signal.lfilter([1, -0.5], [1, -0.9, 0.4], np.ones(got.size))
    assert np.allclose(got, exact, rtol=0, atol=1e-14)  # rounding only: poles of modulus 0.63


DELAY_GAIN, DELAY, DELAY_STEP = 0.9, 0.5, 1e-2


def delayed_loop(history: float, events: str = "locate"):
    """dx/dt = -k x(t - τ), x(0) = 1, and x = `history` before."""
    d = Diagram(step=DELAY_STEP, solver="rk4", events=events)
    x = d.add(Integrator(1.0), name="x")
    past, gain = d.add(TransportDelay(DELAY, history), name="past"), d.add(Gain(-DELAY_GAIN))
    d.connect(x, past)
    d.connect(past, gain)
    d.connect(gain, x)
    return simulate(d, 3 * DELAY)


def sum_of_steps(times, shift: int):
    """The method of steps: x = Σ (-k)^n (t - (n - shift) τ)^n / n!, over n that have begun."""
    return np.array([
        1.0 + sum(
            (-DELAY_GAIN) ** n * (t - (n - shift) * DELAY) ** n / math.factorial(n)
            for n in range(1, 6)
            if t >= (n - shift) * DELAY
        )
        for t in np.round(times, 9)
    ])  # fmt: skip


def test_an_integrator_that_feels_its_past_against_the_method_of_steps():
    """With x = 1 before the start, x has degree n on the n-th interval of τ."""
    result = delayed_loop(1.0)
    error = result["x"] - sum_of_steps(result.t, 1)
    n = round(DELAY / DELAY_STEP)
    # What comes back is a constant, then a straight line: exact.
    assert np.allclose(error[: 2 * n + 1], 0.0, rtol=0, atol=1e-14)
    # Then a parabola with x'' = k², which the line between samples overrates by k² h² / 8 in the
    # middle of a step, where RK4 weighs it with 4/6: -k³ h³ / 12 for each step.
    known = -(DELAY_GAIN**3) * DELAY_STEP**2 / 12 * (result.t[2 * n :] - 2 * DELAY)
    assert np.allclose(error[2 * n :], known, rtol=0, atol=1e-14)


def delay_equation(step: float, until: float, solver: str = "rk4"):
    """x' = -k x(t - τ), x = 1 up to the start, with a cubic between samples."""
    d = Diagram(step=step, solver=solver)
    x = d.add(Integrator(1.0), name="x")
    past = d.add(TransportDelay(DELAY, 1.0, interpolation="cubic"), "past", u=x)
    d.chain(past, d.add(Gain(-DELAY_GAIN), "gain"), x)
    return simulate(d, until, error_estimate=False)


def test_a_cubic_delay_is_exact_up_to_degree_three():
    """On the n-th interval of τ, x has degree n: what comes back in the fourth has degree 3."""
    result = delay_equation(DELAY / 20, 4 * DELAY)
    wanted = sum_of_steps(result.t, 1)
    np.testing.assert_allclose(result["x"], wanted, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("solver", "order"), [("heun", 2), ("rk3", 3), ("rk4", 4)])
def test_a_delay_equation_is_solved_with_the_order_of_the_solver(solver, order):
    """Against the method of steps over 7 τ; a cubic across corners would give order 2."""
    terms = range(1, 9)

    def exact(t):
        begun = [n for n in terms if t >= (n - 1) * DELAY - 1e-12]
        return 1.0 + sum(
            (-DELAY_GAIN) ** n * (t - (n - 1) * DELAY) ** n / math.factorial(n) for n in begun
        )

    errors = []
    for count in (20, 40, 80):
        result = delay_equation(DELAY / count, 7 * DELAY, solver)
        errors.append(max(abs(x - exact(t)) for t, x in zip(result.t, result["x"], strict=True)))
    slopes = np.diff(np.log2(errors))
    assert np.all(-slopes > order - 0.35), errors


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
def test_a_jump_that_comes_back_is_seen_by_the_last_stage_of_the_step_that_ends_there():
    """With nothing before the start, what is fed back jumps from 0 to 1 at t = τ."""
    result = delayed_loop(0.0, events="tick")
    error = result["x"] - sum_of_steps(result.t, 0)
    n = round(DELAY / DELAY_STEP)
    assert np.all(error[:n] == 0.0)
    # RK4 weighs its last stage with 1/6.
    assert np.allclose(error[n : 2 * n], -DELAY_GAIN * DELAY_STEP / 6, rtol=0, atol=1e-14)


def test_a_jump_that_comes_back_is_a_known_instant():
    """The first delayed sample ends a step: straight lines, then parabolas, are exact."""
    result = delayed_loop(0.0)
    n = round(DELAY / DELAY_STEP)
    error = (result["x"] - sum_of_steps(result.t, 0))[: 2 * n]
    assert np.allclose(error, 0.0, rtol=0, atol=1e-14)


def test_a_cascade_of_two_rates_against_a_recursion_by_hand():
    """Speed control at 1 ms inside position control at 10 ms, in steps of 0.5 ms.

    The motor is dω/dt = u, dθ/dt = ω with u held for 1 ms, so over one such period exactly
    θ+ = θ + T ω + T² u / 2, ω+ = ω + T u; a solution of degree two, which RK4 integrates exactly.
    """
    fast, slow, kw, kth = 1e-3, 1e-2, 120.0, 15.0
    d = Diagram(step=0.5e-3, solver="rk4")
    target = d.add(Constant(1.0), name="target")
    outer_error = d.add(Sum("+-"), name="outer_error", period=slow)
    outer = d.add(Gain(kth), name="outer")
    inner_error = d.add(Sum("+-"), name="inner_error", period=fast)
    inner = d.add(Gain(kw), name="inner")
    speed, angle = d.add(Integrator(0.5), name="speed"), d.add(Integrator(-0.2), name="angle")
    d.connect(target, outer_error["u1"])
    d.connect(angle, outer_error["u2"])
    d.connect(outer_error, outer)
    d.connect(outer, inner_error["u1"])
    d.connect(speed, inner_error["u2"])
    d.connect(inner_error, inner)
    d.connect(inner, speed)
    d.connect(speed, angle)
    result = simulate(d, 1.0)
    w, theta, wanted = 0.5, -0.2, 0.0
    exact = []
    for n in range(1001):
        if n % 10 == 0:
            wanted = kth * (1.0 - theta)
        u = kw * (wanted - w)
        exact.append((theta, w, u))
        theta, w = theta + fast * w + fast**2 / 2 * u, w + fast * u
    got = np.stack([result[path][::2] for path in ("angle", "speed", "inner")], axis=1)
    # Rounding of 2000 steps of values up to 15, and 120 times that in u.
    assert np.allclose(got, exact, rtol=0, atol=[1e-13, 1e-12, 1e-10])


# Stiff diagrams.

STIFF = np.array([[-1.0, 1.0], [0.0, -1000.0]])


def stiff(solver: str, step: float):
    d = Diagram(step=step, solver=solver)
    x, a = d.add(Integrator([1.0, 1.0]), name="x"), d.add(Gain(STIFF))
    d.connect(x, a)
    d.connect(a, x)
    return simulate(d, 1.0)["x"]


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
@pytest.mark.parametrize("solver", ["backward_euler", "trapezoidal"])
def test_implicit_solvers_are_their_own_recursion(solver):
    """x+ = (I - θ h A)^-1 (I + (1 - θ) h A) x, to the 1e-12 at which Newton stops."""
    h = 0.01
    theta = 1.0 if solver == "backward_euler" else 0.5
    one = np.linalg.solve(np.eye(2) - theta * h * STIFF, np.eye(2) + (1 - theta) * h * STIFF)
    got = stiff(solver, h)
    exact = [np.array([1.0, 1.0])]
    for _ in range(100):
        exact.append(one @ exact[-1])
    assert np.allclose(got, exact, rtol=0, atol=1e-10)


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
def test_backward_euler_on_a_stiff_diagram_errs_by_its_known_constant():
    """At t = 1 s, when the fast mode has died, the slow one, λ = -1, errs by t h λ² / 2."""
    h = 0.01
    exact = (expm(STIFF) @ [1.0, 1.0])[0]
    error = stiff("backward_euler", h)[-1, 0] - exact
    # The next term is smaller by about 2 h; the fast mode had a share of 1e-3 in the slow one and
    # leaves a relative error of about h / 2 of that.
    assert error == pytest.approx(h / 2 * exact, rel=0.03)


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
def test_the_constants_of_both_implicit_rules_and_their_sign():
    """A ring of three lags: t h A² e^(At) x0 / 2 too much, or t h² A³ e^(At) x0 / 12."""
    a = np.array([[-1.0, 0.0, 0.5], [1.0, -2.0, 0.0], [0.0, 0.7, -1.5]])
    x0, h = np.array([1.0, 0.0, -1.0]), 1e-3
    for solver, constant in (
        ("backward_euler", h / 2 * a @ a),
        ("trapezoidal", h**2 / 12 * a @ a @ a),
    ):
        d = Diagram(step=h, solver=solver)
        x, gain = d.add(Integrator(x0), name="x"), d.add(Gain(a))
        d.connect(x, gain)
        d.connect(gain, x)
        exact = expm(a) @ x0
        error = simulate(d, 1.0)["x"][-1] - exact
        # The next term is about h |λ| = 3e-3 of this one; Newton's stop adds 1e-12 of 1e-8.
        assert np.allclose(
            error, constant @ exact, rtol=0, atol=0.01 * np.abs(constant @ exact).max()
        )


# Energy.


def oscillator(omega: float, step: float, solver: str) -> np.ndarray:
    """Twice the energy of dx/dt = ω v, dv/dt = -ω x."""
    d = Diagram(step=step, solver=solver)
    x, v = d.add(Integrator(1.0), name="x"), d.add(Integrator(0.5), name="v")
    forward, back = d.add(Gain(omega)), d.add(Gain(-omega))
    d.connect(v, forward)
    d.connect(forward, x)
    d.connect(x, back)
    d.connect(back, v)
    result = simulate(d, 20.0)
    return result["x"] ** 2 + result["v"] ** 2


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
@pytest.mark.parametrize(
    ("solver", "growth"),
    [
        # |R(i z)|² of each method's stability function, z = ω h.
        ("euler", lambda z: 1 + z**2),
        ("heun", lambda z: 1 + z**4 / 4),
        ("rk3", lambda z: 1 - z**4 / 12 + z**6 / 36),
        ("rk4", lambda z: 1 - z**6 / 72 + z**8 / 576),
        ("backward_euler", lambda z: 1 / (1 + z**2)),
        ("trapezoidal", lambda z: 1.0),
    ],
)
def test_energy_of_an_oscillator_drifts_as_the_stability_function_says(solver, growth):
    """Euler and Heun gain, RK3, RK4 and backward Euler lose, the trapezoidal rule keeps it."""
    omega, step = 2.0, 0.02
    energy = oscillator(omega, step, solver)
    exact = energy[0] * growth(omega * step) ** np.arange(energy.size)
    # Rounding of 1000 steps, and Newton's stop for the implicit ones.
    assert np.allclose(energy, exact, rtol=1e-11, atol=0)


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
def test_the_trapezoidal_rule_keeps_a_quadratic_invariant_of_many_masses():
    """A ring of five masses and springs: its energy stays to rounding, at a coarse step too."""
    n = 5
    coupling = 2 * np.eye(n) - np.roll(np.eye(n), 1, 0) - np.roll(np.eye(n), -1, 0)
    rng = np.random.default_rng(4)
    d = Diagram(step=0.3, solver="trapezoidal")
    p, v = d.add(Integrator(rng.normal(size=n)), name="p"), d.add(Integrator(np.zeros(n)), name="v")
    springs = d.add(Gain(-coupling))
    d.connect(v, p)
    d.connect(p, springs)
    d.connect(springs, v)
    result = simulate(d, 600.0)
    energy = (result["v"] ** 2).sum(1) + np.einsum(
        "ti,ij,tj->t", result["p"], coupling, result["p"]
    )
    # Newton stops where 1e-12 is left; over 2000 steps of either sign that is below 1e-10.
    assert np.allclose(energy, energy[0], rtol=1e-10, atol=0)


def test_energy_of_a_pendulum_falls_with_the_fifth_power_of_the_step():
    """RK4 loses energy on oscillations, at a rate of h^5, as z^6 / 72 for each step z says."""

    def loss(step):
        d = Diagram(step=step, solver="rk4")
        d.add(Pendulum(gravity=9.81, angle=1.0), name="p")
        result = simulate(d, 40.0)
        energy = result["p.speed"] ** 2 / 2 - 9.81 * np.cos(result["p.angle"])
        part = energy.size // 8  # several swings, so that what comes and goes with them is averaged
        return np.mean(energy[:part]) - np.mean(energy[-part:])

    losses = [loss(step) for step in (0.04, 0.02, 0.01)]
    assert all(value > 0 for value in losses)
    assert np.log2(losses[0] / losses[1]) == pytest.approx(5, abs=0.3)
    assert np.log2(losses[1] / losses[2]) == pytest.approx(5, abs=0.3)
