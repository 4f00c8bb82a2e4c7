"""`linearize`: against closed forms, exact discrete maps and python-control."""

from __future__ import annotations

from typing import Any

import control
import numpy as np
import pytest
from scipy.linalg import expm

from biella import BiellaError, Diagram, Subsystem, System, linearize
from biella.blocks import (
    Abs,
    Constant,
    Counter,
    DiscreteIntegrator,
    DiscreteStateSpace,
    Expression,
    Gain,
    Integrator,
    Pendulum,
    Port,
    PythonBlock,
    Relay,
    Saturation,
    StateSpace,
    Stop,
    Sum,
    TransportDelay,
    UnitDelay,
    ZeroOrderHold,
)

pytestmark = pytest.mark.engine

# Central differences with steps of 6e-6: rounding 1e-16 / 6e-6 and truncation 4e-11 f''' / 6, both
# well below this for the values of these diagrams.
CLOSE: dict[str, Any] = {"rtol": 0, "atol": 2e-9}


def poles(matrix) -> np.ndarray:
    """Not by scipy's `poles`, which goes through polynomials and warns."""
    return np.sort_complex(np.linalg.eigvals(matrix))


def pendulum(angle: float) -> Diagram:
    d = Diagram(step=1e-3)
    p = d.add(Pendulum(2.0, 0.5, damping=0.3, angle=angle), name="p")
    d.connect(d.input("torque", unit="N.m"), p)
    d.output("angle", p["angle"])
    return d


@pytest.mark.parametrize("angle", [0.0, 1.0, np.pi])
def test_a_pendulum_about_any_angle(angle):
    """d(dω/dt)/dθ = -m g l cos θ / J: stable below, unstable above."""
    inertia, weight = 2.0 * 0.5**2, 2.0 * 9.81 * 0.5
    system = linearize(pendulum(angle))
    a = [[0, 1], [-weight / inertia * np.cos(angle), -0.3 / inertia]]
    # sin has a third derivative of m g l / J = 20: the truncation is 20 · 3.6e-11 / 6 = 1.2e-10.
    assert np.allclose(system.A, a, **CLOSE)
    assert np.allclose(system.B, [[0.0], [1 / inertia]], **CLOSE)
    assert np.allclose(system.C, [[1, 0]], **CLOSE)
    assert np.allclose(system.D, [[0]], **CLOSE)
    assert (max(poles(system.A).real) > 0) == (angle > 2)


def test_the_operating_point_by_parameters_or_by_a_run():
    d = pendulum(0.0)
    about_pi = linearize(d, at={"p.initial_angle": np.pi})
    assert np.allclose(about_pi.A, linearize(pendulum(np.pi)).A, **CLOSE)
    # Let go at 1 rad, it has come to rest, hanging, after 60 s: exp(-0.3 · 60) = 1.5e-8 rad, whose
    # cosine is one.
    settled = linearize(pendulum(1.0), at=60)
    assert np.allclose(settled.A, linearize(pendulum(0.0)).A, rtol=0, atol=1e-8)


def test_a_state_space_comes_back_as_it_went_in():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(4, 4)), rng.normal(size=(4, 2))
    c, e = rng.normal(size=(3, 4)), rng.normal(size=(3, 2))
    d = Diagram()
    block = d.add(StateSpace(a, b, c, e, initial=[1, 2, 3, 4]), name="plant")
    d.connect(d.input("u", width=2), block)
    d.output("y", block)
    system = linearize(d)
    for got, given in zip((system.A, system.B, system.C, system.D), (a, b, c, e), strict=True):
        assert np.allclose(got, given, **CLOSE)


def mimo() -> Diagram:
    """Two coupled integrators with two inputs and three outputs."""
    d = Diagram()
    x = d.add(Integrator([1.0, -1.0]), name="x")
    a = d.add(Gain([[-1.0, 2.0], [0.5, -3.0]]), name="a")
    force = d.add(Sum("+++"), name="force")
    b1, b2 = d.add(Gain([[1.0], [0.0]]), name="b1"), d.add(Gain([[0.0], [4.0]]), name="b2")
    c = d.add(Gain([[1.0, 1.0]]), name="c")
    d.connect(d.input("first"), b1)
    d.connect(d.add(Constant(7.0), name="second"), b2)
    d.connect(x, a, c)
    d.connect(a, force["u1"])
    d.connect(b1, force["u2"])
    d.connect(b2, force["u3"])
    d.connect(force, x)
    d.output("x", x)
    return d


def test_inputs_and_outputs_are_chosen_by_name_and_keep_their_order():
    """`second` is a source block: naming it makes it an input."""
    system = linearize(mimo(), inputs=["second", "first"], outputs=["c", "x"])
    assert np.allclose(system.A, [[-1.0, 2.0], [0.5, -3.0]], **CLOSE)
    assert np.allclose(system.B, [[0, 1], [4, 0]], **CLOSE)
    assert np.allclose(system.C, [[1, 1], [1, 0], [0, 1]], **CLOSE)
    assert np.array_equal(system.D, np.zeros((3, 2)))
    only = linearize(mimo())
    assert only.B.shape == (2, 1) and only.C.shape == (2, 2)


def test_a_diagram_without_states_is_its_feedthrough():
    d = Diagram()
    k = d.add(Gain([[1.0, -2.0]]), name="k")
    d.connect(d.input("u", width=2), k)
    d.output("y", k)
    assert np.allclose(linearize(d).D, [[1, -2]], **CLOSE)


def pi_loop(kp=3.0, ki=2.0) -> Diagram:
    """PI on 1 / (s² + 0.5 s + 1), from the reference to the plant's output."""
    d = Diagram(step=1e-2)
    reference = d.input("reference")
    error = d.add(Sum("+-"), name="error")
    integral = d.add(Integrator(), name="integral")
    p, i = d.add(Gain(kp), name="p"), d.add(Gain(ki), name="i")
    total = d.add(Sum("++"), name="total")
    plant = d.add(StateSpace([[0, 1], [-1, -0.5]], [0, 1], [1, 0]), name="plant")
    d.connect(reference, error["u1"])
    d.connect(plant, error["u2"])
    d.connect(error, p, integral)
    d.connect(integral, i)
    d.connect(p, total["u1"])
    d.connect(i, total["u2"])
    d.connect(total, plant)
    d.output("y", plant)
    return d


def test_a_pi_loop_against_python_control():
    plant = control.ss([[0, 1], [-1, -0.5]], [[0], [1]], [[1, 0]], 0)
    closed = control.feedback(control.series(control.tf([3.0, 2.0], [1, 0]), plant))
    system = linearize(pi_loop())
    assert np.allclose(poles(system.A), poles(closed.A), atol=1e-8)
    frequencies = np.logspace(-2, 2, 20)
    response = np.array(
        [
            (system.C @ np.linalg.solve(1j * w * np.eye(3) - system.A, system.B) + system.D)[0, 0]
            for w in frequencies
        ]
    )
    assert np.allclose(response, closed(1j * frequencies), rtol=1e-7, atol=1e-10)


def test_an_algebraic_loop_is_linearized_through():
    """y = u - 3 y, so y = u / 4; dx/dt = y - x."""
    d = Diagram()
    s, g = d.add(Sum("+-"), name="s"), d.add(Gain(3.0), name="g")
    x, slope = d.add(Integrator(), name="x"), d.add(Sum("+-"), name="slope")
    d.connect(d.input("u"), s["u1"])
    d.connect(s, g, slope["u1"])
    d.connect(g, s["u2"])
    d.connect(x, slope["u2"])
    d.connect(slope, x)
    d.output("x", x)
    system = linearize(d)
    # The loop is solved to 1e-13, which the difference divides by 1.2e-5.
    assert np.allclose(system.A, [[-1]], rtol=0, atol=5e-8)
    assert np.allclose(system.B, [[0.25]], rtol=0, atol=5e-8)
    sampled = linearize(d, period=0.1)
    assert sampled.A.shape == (1, 1)  # the loop's first guess is not a state
    assert np.allclose(sampled.A, np.exp(-0.1), rtol=0, atol=1e-7)


PERIOD, STEP = 0.1, 0.01


def sampled_loop(delayed: bool) -> Diagram:
    """State feedback u = -K x, sampled, on the double integrator, perhaps one period late."""
    d = Diagram(step=STEP, solver="rk4")
    plant = d.add(StateSpace([[0, 1], [0, 0]], [0, 1], np.eye(2), initial=[1, 0]), name="plant")
    gain = d.add(Gain([[-2.0, -1.5]]), name="gain", period=PERIOD)
    total = d.add(Sum("++"), name="total")
    d.connect(d.input("disturbance"), total["u1"])
    d.connect(plant, gain)
    if delayed:
        delay = d.add(UnitDelay(), name="delay", period=PERIOD)
        d.connect(gain, delay)
        d.connect(delay, total["u2"])
    else:
        d.connect(gain, total["u2"])
    d.connect(total, plant)
    d.output("x", plant)
    return d


@pytest.mark.parametrize("delayed", [False, True])
@pytest.mark.parametrize("at", [None, 0.5])
def test_a_sampled_loop_against_its_exact_discrete_matrix(delayed, at):
    """Zero-order hold of the double integrator: F = [[1, T], [0, 1]], G = [T²/2, T]."""
    f, g = np.array([[1, PERIOD], [0, 1]]), np.array([[PERIOD**2 / 2], [PERIOD]])
    k = np.array([[-2.0, -1.5]])
    if delayed:
        exact = np.block([[f, g], [k, np.zeros((1, 1))]])
        b = np.vstack([g, [[0]]])
    else:
        exact, b = f + g @ k, g
    system = linearize(sampled_loop(delayed), at=at, period=PERIOD)
    # RK4 is exact here: the solution is a polynomial of degree two in each period.
    assert system.dt == PERIOD
    assert np.allclose(system.A, exact, **CLOSE)
    assert np.allclose(system.B, b, **CLOSE)
    assert np.allclose(poles(system.A), poles(exact), rtol=0, atol=1e-7)


def test_a_longer_period_is_the_power_of_the_short_one():
    once, thrice = (linearize(sampled_loop(True), period=n * PERIOD).A for n in (1, 3))
    assert np.allclose(thrice, np.linalg.matrix_power(once, 3), atol=1e-8)


def test_a_continuous_diagram_has_a_discrete_model_too():
    """expm of the continuous matrix; RK4's error over one period of 0.1 s in ten steps is
    10 (h |λ|)^5 / 120 = 2e-10 for |λ| = 1.2."""
    d = pi_loop()
    continuous, discrete = linearize(d), linearize(d, period=0.1)
    assert np.allclose(discrete.A, expm(continuous.A * 0.1), atol=1e-8)


def test_discrete_blocks_of_every_smooth_kind():
    """Chain: DiscreteIntegrator → DiscreteStateSpace → UnitDelay, all of one period."""
    d = Diagram(step=STEP)
    first = d.add(DiscreteIntegrator(), name="first", period=PERIOD)
    second = d.add(DiscreteStateSpace([[0.5]], [1.0], [2.0], period=PERIOD), name="second")
    third = d.add(UnitDelay(), name="third", period=PERIOD)
    d.connect(d.input("u"), first)
    d.connect(first, second)
    d.connect(second, third)
    d.output("y", third)
    system = linearize(d, period=PERIOD)
    assert np.allclose(system.A, [[1.0, 0.0, 0.0], [1.0, 0.5, 0.0], [0.0, 2.0, 0.0]], **CLOSE)
    assert np.allclose(system.B, [[PERIOD], [0.0], [0.0]], **CLOSE)
    assert np.allclose(system.C, [[0, 0, 1]], **CLOSE)


def test_a_python_block_with_discrete_state():
    class Square(PythonBlock):
        def __init__(self):
            super().__init__(
                inputs=["u"], outputs=["y"], state=[0.5], period=PERIOD, feedthrough=False
            )

        def output(self, t, x, u):
            return x[0]

        def update(self, t, x, u):
            return x**2 + u

    d = Diagram(step=STEP)
    block = d.add(Square(), name="square")
    d.connect(d.input("u"), block)
    d.output("y", block)
    assert np.allclose(linearize(d, period=PERIOD).A, [[1.0]], **CLOSE)


@pytest.mark.parametrize("period", [None, 0.1])
def test_a_limited_integrator_counts_as_it_is(period):
    """Between its limits an integrator; at a limit, pushed outwards, a constant."""

    def loop(u, limits):
        d = Diagram(step=STEP)
        x = d.add(Integrator(1.0, limits=limits), name="x")
        d.connect(d.input("u", default=u), x)
        d.output("x", x)
        return linearize(d, period=period)

    free = loop(1.0, (-2, 2))
    assert np.allclose(free.A, 0.0 if period is None else 1.0, **CLOSE)
    assert np.allclose(free.B, period or 1.0, **CLOSE)
    assert free.A.shape == (1, 1)
    assert np.allclose(loop(1.0, (-1, 1)).B, 0.0, **CLOSE)


# Each at a kink, or nearer to one than the smallest difference: 6e-10 of a value of 1.
KINKS = [
    (lambda: Saturation(-1.0, 1.0), 1.0, 1.0),
    (lambda: Saturation(-1.0, 1.0), 1.0 + 1e-12, 0.0),
    (lambda: Abs(), 1e-12, 1.0),
    (lambda: Abs(), -1e-12, -1.0),
    (lambda: Expression("where(u > 1, 3*u, 100 + 2*u)"), 1.0, 2.0),
    (lambda: Expression("where(u > 1, 3*u, 100 + 2*u)"), 1.0 + 1e-12, 3.0),
]


@pytest.mark.parametrize("events", ["locate", "tick"])
@pytest.mark.parametrize("state", [False, True])
@pytest.mark.parametrize(("block", "u", "slope"), KINKS)
def test_the_mode_is_that_at_the_operating_point(block, u, slope, state, events):
    """With a state behind it the block is evaluated within steps, without one at ticks."""
    d = Diagram(step=STEP, events=events)
    kink = d.add(block(), name="kink")
    d.connect(d.input("u", default=u), kink)
    d.output("y", kink)
    if state:
        d.connect(kink, d.add(Integrator(), name="x"))
    found = linearize(d)
    assert np.allclose(found.D, slope, **CLOSE)
    if state:
        assert np.allclose(found.B, slope, **CLOSE)


@pytest.mark.parametrize("options", [{}, {"solver": "dopri5", "tolerance": 1e-10}])
def test_modes_are_kept_over_a_period_too(options):
    """The limit is passed within it."""
    d = Diagram(step=STEP, **options)
    x = d.add(Integrator(1.0 - 1e-12), name="x")
    limited = d.add(Saturation(-1.0, 1.0), name="limited")
    behind = d.add(Integrator(), name="behind")
    d.connect(d.input("u", default=1.0), x)
    d.connect(x, limited)
    d.connect(limited, behind)
    d.output("y", behind)
    found = linearize(d, period=STEP)
    exact = expm(STEP * np.array([[0.0, 0.0], [1.0, 0.0]]))
    assert np.allclose(found.A, exact, **CLOSE)


@pytest.mark.parametrize("on", [False, True])
def test_a_conditional_subsystem_counts_as_it_is(on):
    inner = Diagram("inner")
    k = inner.add(Gain(3.0), name="k")
    inner.connect(inner.input("u"), k)
    inner.output("y", k)
    d = Diagram()
    sub = d.add(Subsystem(inner, enable=True), name="sub")
    x = d.add(Integrator(), name="x")
    d.connect(d.input("u"), sub["u"])
    d.connect(d.input("on", kind="boolean"), sub["enable"])
    d.connect(sub["y"], x)
    d.output("x", x)
    for period in (None, 0.1):
        system = linearize(d, inputs=["u"], at={"on": on}, period=period)
        assert np.allclose(system.B, [[3.0 * on * (period or 1.0)]], **CLOSE)
        assert system.B.shape == (1, 1)  # what the subsystem holds is not a state


def test_a_resettable_subsystem_is_not_reset_by_the_linearization():
    inner = Diagram("inner")
    x = inner.add(Integrator(1.0), name="x")
    k = inner.add(Gain(-2.0), name="k")
    inner.connect(x, k)
    inner.connect(k, x)
    inner.output("x", x)
    d = Diagram(step=0.01)
    sub = d.add(Subsystem(inner, reset="rising"), name="sub")
    d.connect(d.input("reset"), sub["reset"])
    d.output("x", sub["x"])
    assert np.allclose(linearize(d, at=0.2).A, [[-2.0]], **CLOSE)
    system = linearize(d, at=0.2, period=0.1)
    # RK4 over ten steps: 10 (0.02)^5 / 120 = 3e-10.
    assert np.allclose(system.A, np.exp(-0.2), rtol=0, atol=3e-9)


# Refused, with words.


def with_block(block, **rate) -> Diagram:
    d = Diagram(step=STEP)
    d.add(block, name="block", **rate)
    d.connect(d.input("u"), block)
    d.output("y", block)
    return d


@pytest.mark.parametrize(
    ("diagram", "options", "message"),
    [
        (lambda: sampled_loop(True), {}, r"`gain` \(Gain\) is sampled.* set period="),
        (lambda: with_block(UnitDelay()), {}, r"`block` \(UnitDelay\) is sampled.* set period="),
        (
            lambda: sampled_loop(True),
            {"period": 0.15},
            r"0.15 s is not an integer multiple of the period of `gain`, 0.1 s",
        ),
        (
            lambda: with_block(ZeroOrderHold(), period=PERIOD, offset=0.05),
            {"period": PERIOD},
            r"0.1 s is not an integer multiple of the period of `block`, 0.1 s \+ 0.05 s",
        ),
        (pi_loop, {"period": 0.015}, r"0.015 s is not an integer multiple of the step, 0.01 s"),
        (
            lambda: sampled_loop(True),
            {"period": PERIOD, "at": 0.25},
            r"at t = 0.25 s `gain` .* between two samples",
        ),
        (
            lambda: with_block(TransportDelay(0.1)),
            {},
            r"`block` \(TransportDelay\) has discrete memory that is not a smooth state",
        ),
        (
            lambda: with_block(TransportDelay(0.1)),
            {"period": 0.1},
            r"`block` \(TransportDelay\) has discrete memory that is not a smooth state",
        ),
        (pi_loop, {"at": -1.0}, r"t = -1 s is before the start time, 0 s"),
        (
            pi_loop,
            {"at": "now"},
            r"`at` must be a time in s or a mapping of values by path, got 'now'",
        ),
        (pi_loop, {"at": {"p.kk": 1.0}}, r"no parameter or input `p.kk`. Did you mean `p.k`"),
        (pi_loop, {"inputs": ["referenz"]}, r"no source block or input `referenz`. Did you mean"),
        (pi_loop, {"outputs": ["plantt"]}, r"no output `plantt`. Did you mean"),
    ],
)
def test_what_cannot_be_linearized_is_said(diagram, options, message):
    with pytest.raises(BiellaError, match=message):
        linearize(diagram(), **options)


def test_neither_inputs_nor_outputs_are_needed():
    d = Diagram()
    x = d.add(Integrator(), name="x")
    d.connect(d.add(Constant(1.0), name="one"), x)
    alone, driven = linearize(d), linearize(d, inputs=["one"])
    assert [m.shape for m in (alone.A, alone.B, alone.C, alone.D)] == [
        (1, 1),
        (1, 0),
        (0, 1),
        (0, 0),
    ]
    assert alone.states == ("x.x",) and alone.inputs == alone.outputs == ()
    assert np.allclose(driven.B, 1.0, **CLOSE) and driven.outputs == ()
    d.output("y", x)
    assert linearize(d).outputs == ("y",)
    assert linearize(d, outputs=[]).outputs == ()


def double_pendulum():
    """The second joint is declared from its far body: the tree runs through it backwards."""
    s = System("double", gravity=(0.0, -9.81), planar=True)
    upper = s.body("upper", mass=1.0, inertia=0.02, position=(0.5, 0.0))
    lower = s.body("lower", mass=0.7, inertia=0.01, position=(1.3, 0.0))
    s.revolute("shoulder", s.ground, upper, at=(0.0, 0.0))
    s.torque("motor", s.revolute("elbow", lower, upper, at=(1.0, 0.0)), 0.0)
    return s


def test_a_block_is_linearized_alone_with_the_names_of_its_ports_and_states():
    names = ["shoulder.angle", "elbow.angle", "shoulder.speed", "elbow.speed"]
    block = double_pendulum().block(["motor.torque"], names)
    model = linearize(block)
    assert model.inputs == ("motor.torque",) and model.outputs == tuple(names)
    assert sorted(model.states) == sorted(names)
    # A state is what its name says: the outputs of these names are the states.
    order = [model.states.index(name) for name in names]
    assert np.allclose(model.C[:, order], np.eye(4), **CLOSE)
    assert np.allclose(model.D, 0.0, **CLOSE)
    for name in names:
        assert model.operating_point.states[name] == pytest.approx(
            model.operating_point.outputs[name], abs=1e-12
        )
    d = Diagram()
    d.add(double_pendulum().block(["motor.torque"], names), name="plant")
    d.connect(d.input("torque", unit="N.m"), "plant.motor.torque")
    whole = linearize(d, outputs=[f"plant.{name}" for name in names])
    for name in "ABCD":
        assert np.array_equal(getattr(model, name), getattr(whole, name)), name
    assert whole.states == tuple(f"plant.{name}" for name in model.states)
    two = linearize(block, ["motor.torque"], ["elbow.speed", "elbow.angle"])
    assert two.outputs == ("elbow.speed", "elbow.angle")
    assert np.array_equal(two.C, model.C[[3, 1]])


def test_names_of_balls_and_free_bodies():
    s = System("loose", gravity=(0.0, 0.0, -9.81))
    arm = s.body("arm", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0.0, 0.0, -0.5))
    s.spherical("ball", s.ground, arm, at=(0.0, 0.0, 0.0))
    s.body("stone", mass=2.0, inertia=(0.1, 0.2, 0.3), position=(1.0, 2.0, 3.0), free=True)
    shown = ["stone.position", "stone.velocity"]
    model = linearize(s.block(outputs=shown))
    assert model.outputs == tuple(f"{name}[{k}]" for name in shown for k in range(3))
    for name in model.outputs:
        (row,) = model.C[[model.outputs.index(name)]]
        assert row[model.states.index(name)] == pytest.approx(1.0, abs=1e-9)
        assert np.count_nonzero(np.abs(row) > 1e-9) == 1
    assert {f"ball.rotation[{k}]" for k in range(4)} <= set(model.states)
    assert {f"ball.angular_velocity[{k}]" for k in range(3)} <= set(model.states)
    assert len(set(model.states)) == len(model.states) == 7 + 13


def test_a_sampled_block_and_a_continuous_one_over_a_period():
    delay = linearize(DiscreteIntegrator(), period=PERIOD)
    assert np.allclose(delay.A, 1.0, **CLOSE) and delay.dt == PERIOD
    lag = linearize(StateSpace([[-2.0]], [1.0], [1.0]), period=0.25)
    assert np.allclose(lag.A, np.exp(-0.5), rtol=0, atol=1e-9)
    assert np.allclose(lag.B, (1 - np.exp(-0.5)) / 2, rtol=0, atol=1e-9)
    with pytest.raises(BiellaError, match=r"is sampled.*set period="):
        linearize(DiscreteIntegrator())


def test_the_operating_point_of_a_block_is_given_by_its_own_names():
    model = linearize(Pendulum(2.0, 0.5, damping=0.3), at={"initial_angle": 1.0, "torque": 3.0})
    assert np.allclose(model.A, linearize(pendulum(1.0)).A, **CLOSE)
    assert model.operating_point.inputs == {"torque": 3.0}
    assert model.operating_point.outputs["angle"] == 1.0
    later = linearize(Pendulum(2.0, 0.5, damping=0.3), at=0.5)
    assert later.operating_point.time == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linearize("plant"), "requires a Diagram or a block, got 'plant'"),  # type: ignore[arg-type]
        (lambda: linearize(Pendulum(1, 1), ["torqe"]), "no input `torqe`. Did you mean `torque`"),
        (
            lambda: linearize(Pendulum(1, 1), None, ["angel"]),
            "no output `angel`. Did you mean `ang",
        ),
    ],
)
def test_a_wrong_block_or_port_is_said(call, message):
    with pytest.raises(BiellaError, match=message):
        call()


def test_a_run_that_stops_before_the_operating_point_is_said():
    class Late(PythonBlock):
        def __init__(self):
            super().__init__(outputs=[Port("on", kind="boolean")])

        def output(self, t, x, u):
            return t > 0.5

    d = pi_loop()
    d.connect(d.add(Late()), d.add(Stop(), name="stop"))
    with pytest.raises(BiellaError, match=r"ended at t = 0.51 s, before .* t = 1 s"):
        linearize(d, at=1.0)


def test_a_counter_is_no_smooth_state():
    d = pi_loop()
    counter = d.add(Counter(), name="counter")
    d.connect(d.input("event", kind="boolean"), *[counter[n] for n in counter.input_index])
    with pytest.raises(
        BiellaError,
        match=r"`counter` \(Counter\) has discrete memory that is "
        "not a smooth",
    ):
        linearize(d, period=0.1)


@pytest.mark.parametrize("period", [None, 0.1])
def test_a_relay_holds_its_output(period):
    """x' = -x + relay(u): the relay is at its threshold, and has no gain in the mode it is in."""
    d = Diagram("heating", step=1e-2)
    u = d.input("u", default=1.0)
    relay = d.add(Relay(on=1.0, off=-1.0, high=3.0), "relay", u=u)
    x = d.add(Integrator(0.5), "x")
    d.connect(d.add(Expression("-x + r"), "f", x=x, r=relay), x)
    d.output("y", x)
    d.output("held", relay)
    model = linearize(d, period=period)
    assert model.states == ("x.x",)
    pole = -1.0 if period is None else np.exp(-0.1)
    # rk4 with steps of 10 ms: 1e-2^5 / 120 a step, ten of them.
    np.testing.assert_allclose(model.A, [[pole]], rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.B, [[0.0]], rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.D, [[0.0], [0.0]], rtol=0, atol=1e-12)
    assert model.operating_point.outputs["held"] == 3.0


def test_a_relay_whose_events_are_not_located_is_refused():
    """At the threshold a difference would be one of a jump: 1 / 6e-6."""
    with pytest.raises(BiellaError, match="not a smooth state"):
        linearize(Relay(on=0.0, off=-1.0))
