"""Derivatives that a master asks for or gives: of outputs by inputs, of both by time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biella import Diagram
from biella.blocks import (
    Compare,
    Constant,
    Expression,
    Function,
    Gain,
    Integrator,
    Lookup1D,
    Pendulum,
    Product,
    Saturation,
    Sine,
    StateSpace,
    Sum,
    TransportDelay,
    UnitDelay,
    ZeroOrderHold,
)
from biella.blocks.multibody import System

pytestmark = pytest.mark.engine

H = 0.01
ERROR = "status 3"


def one_function(text: str, offset: float = 0.0) -> Diagram:
    d = Diagram("one", step=H)
    f = d.add(Expression(text), name="f")
    shifted = d.add(Sum("++"), name="shifted")
    base = d.add(Constant(offset), name="base")
    d.connect(d.input("u"), f["u"])
    d.connect(f, shifted["u1"])
    d.connect(base, shifted["u2"])
    d.output("y", shifted)
    return d


def state_space() -> tuple[Diagram, np.ndarray]:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(4, 4)) - 3 * np.eye(4), rng.normal(size=(4, 3))
    c, feedthrough = rng.normal(size=(2, 4)), rng.normal(size=(2, 3)) * [1e-6, 1.0, 1e6]
    d = Diagram("linear", step=H)
    plant = d.add(StateSpace(a, b, c, feedthrough), name="plant")
    d.connect(d.input("u", width=3), plant)
    d.output("y", plant)
    return d, feedthrough


KNOWNS, UNKNOWNS = ["u[0]", "u[1]", "u[2]"], ["y[0]", "y[1]"]


def test_of_a_state_space_they_are_its_matrix_d(open_fmu):
    diagram, feedthrough = state_space()
    slave = open_fmu(diagram).start()
    for name, u in zip(KNOWNS, (1.0, 0.1, 1e-6), strict=True):
        slave.set(name, u)
    slave.run([0.3 * H, H])
    columns = [slave.directional(UNKNOWNS, [name], [1.0]) for name in KNOWNS]
    found = np.array(columns).T
    assert found == pytest.approx(feedthrough, rel=1e-9)
    # Any direction, and any part of the unknowns.
    seed = np.array([2.0, -3.0, 1e-7])
    assert slave.directional(UNKNOWNS, KNOWNS, seed) == pytest.approx(feedthrough @ seed, rel=1e-9)
    assert slave.directional(["y[1]"], KNOWNS[::-1], seed[::-1]) == pytest.approx(
        [feedthrough[1] @ seed], rel=1e-9
    )


FUNCTIONS: dict[str, tuple[Any, tuple[float, ...]]] = {
    "sin(u)": (np.cos, (0.0, 1.0, -40.0, 1e3)),
    "exp(u)": (np.exp, (0.0, -3.0, 5.0)),
    "u**3": (lambda u: 3 * u**2, (1e-4, 1.0, 1e6)),
    "sqrt(u)": (lambda u: 0.5 / np.sqrt(u), (1e-6, 0.01, 1.0, 1e8)),
    "1/u": (lambda u: -1 / u**2, (1e-3, -2.0, 1e5)),
    "sin(1e5*u)": (lambda u: 1e5 * np.cos(1e5 * u), (0.0, 1e-5, 3e-4)),
    "log(u)": (lambda u: 1 / u, (1e-5, 1.0, 1e7)),
    "abs(u - 1)": (lambda u: np.sign(u - 1), (0.0, 1.001, 1.00001)),
    "1e-9*u": (lambda u: 1e-9, (1.0, 1e6)),
    # Nothing to see at a distance: large steps agree that it is zero, and are wrong.
    "u*exp(-(u/1e-3)**2)": (
        lambda u: np.exp(-((u / 1e-3) ** 2)) * (1 - 2 * (u / 1e-3) ** 2),
        (0.0, 3e-4),
    ),
}


@pytest.mark.parametrize("text", FUNCTIONS)
def test_closed_forms_at_any_scale(open_fmu, text):
    """To 1e-7 of the true derivative: near poles, kinks and zeros, for large and small numbers."""
    derivative, points = FUNCTIONS[text]
    slave = open_fmu(one_function(text)).start(u=points[0])
    for u in points:
        slave.set("u", u)
        assert slave.directional(["y"], ["u"], [1.0])[0] == pytest.approx(derivative(u), rel=1e-7)


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
@settings(max_examples=100)
def test_smooth_functions_at_random_points(smooth, u, seed):
    smooth.set("u", u)
    found = smooth.directional(["y"], ["u"], [seed])[0]
    expected = seed * np.exp(-u * u / 1e6) * (np.cos(u) - np.sin(u) * u / 5e5)
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-10 * abs(seed))


@pytest.fixture(scope="module")
def smooth(open_shared_fmu):
    return open_shared_fmu(one_function("sin(u)*exp(-u*u/1e6)")).start()


def test_a_large_offset_costs_digits_and_no_more(open_fmu):
    """y = 1e9 + u: near 1e9 doubles are 1e-7 apart."""
    slave = open_fmu(one_function("u", 1e9)).start(u=3.0)
    assert slave.directional(["y"], ["u"], [1.0])[0] == pytest.approx(1.0, rel=1e-4)


def everything() -> Diagram:
    """Two inputs through an algebraic loop, a table, a product, discrete and continuous states."""
    d = Diagram("everything", step=H)
    u, v = d.input("u"), d.input("v")
    total, half = d.add(Sum("+-"), name="total"), d.add(Expression("tanh(y)"), name="half")
    table = d.add(Lookup1D([-1.0, 0.0, 2.0], [1.0, 0.0, 3.0]), name="table")
    product = d.add(Product("**"), name="product")
    limit = d.add(Saturation(-5.0, 5.0), name="limit")
    x = d.add(Pendulum(angle=0.4), name="x")
    hold = d.add(ZeroOrderHold(), name="hold", period=2 * H)
    delay = d.add(UnitDelay(), name="delay", period=H)
    d.connect(u, total["u1"], table, hold, delay)
    d.connect(half, total["u2"])
    d.connect(total, half["y"], product["u1"], limit)
    d.connect(v, product["u2"])
    d.connect(product, x)
    outputs: dict[str, Any] = {
        "loop": total, "table_": table, "product_": product, "limit_": limit,
        "angle": x["angle"], "hold_": hold, "delay_": delay,
    }  # fmt: skip
    for name, port in outputs.items():
        d.output(name, port)
    return d


NAMES = ["loop", "table_", "product_", "limit_", "angle", "hold_", "delay_"]


@pytest.fixture
def whole(open_fmu):
    return open_fmu(everything())


def closed_forms(loop: float, v: float, u: float) -> np.ndarray:
    """Rows as NAMES, columns u and v; y + tanh y = u gives dy/du = 1 / (1 + sech² y)."""
    through = 1 / (1 + 1 / np.cosh(loop) ** 2)
    table = -1.0 if u < 0 else 1.5
    return np.array(
        [[through, 0], [table, 0], [v * through, loop], [through, 0], [0, 0], [1, 0], [0, 0]]
    )


def test_through_loops_tables_and_states(whole):
    slave = whole.start(u=0.7, v=-3.0)
    loop = slave.get("loop")[0]
    for k, known in enumerate("uv"):
        column = slave.directional(NAMES, [known], [1.0])
        assert column == pytest.approx(closed_forms(loop, -3.0, 0.7)[:, k], rel=1e-7, abs=1e-12)


def test_a_sampled_output_follows_its_input_at_hits_only(whole):
    slave = whole.start(u=0.7, v=-3.0)
    for size, follows in ((0.0, 1.0), (0.5 * H, 0.0), (0.5 * H, 0.0), (H, 1.0)):
        slave.step(size)
        assert slave.directional(["hold_"], ["u"], [1.0]) == pytest.approx([follows])


def test_they_agree_with_differences_that_the_master_makes_itself(whole):
    """Set, get, set back: what a master without them would do, at many points of a run."""
    slave = whole.start(u=0.3, v=1.0)
    rng = np.random.default_rng(4)
    for _ in range(20):
        u, v = rng.normal(size=2)
        slave.set("u", u)
        slave.set("v", v)
        seed = rng.normal(size=2)
        found = slave.directional(NAMES, ["u", "v"], seed)
        ends = []
        for sign in (1, -1):
            slave.set("u", u + sign * 1e-6 * seed[0])
            slave.set("v", v + sign * 1e-6 * seed[1])
            ends.append(np.array(slave.get(*NAMES)))
        slave.set("u", u)
        slave.set("v", v)
        assert found == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=2e-8)
        slave.step(H * rng.choice([1.0, 0.37, 2.5]))


def test_nothing_changes_by_asking(open_fmu):
    """Two instances, one of which is asked all the time, go through the same bits."""
    asked, left_alone = open_fmu(everything()), open_fmu(everything())
    for slave in (asked, left_alone):
        slave.start(u=0.3, v=1.0)
    for k in range(40):
        for slave in (asked, left_alone):
            slave.set("u", np.sin(0.3 * k))
        before = asked.fmu.getFMUstate()
        raw = bytes(asked.fmu.serializeFMUstate(before))
        asked.directional(NAMES, ["u", "v"], [1.0, 2.0])
        after = asked.fmu.getFMUstate()
        assert bytes(asked.fmu.serializeFMUstate(after)) == raw
        for state in (before, after):
            asked.fmu.freeFMUstate(state)
        for slave in (asked, left_alone):
            slave.step([0.3 * H, 0.7 * H, H][k % 3])
        assert asked.get(*NAMES) == left_alone.get(*NAMES)


def test_in_initialization_mode_parameters_are_known_too(open_fmu):
    """The angle at the start is a parameter: y = sin(angle) then depends on it."""
    d = Diagram("start", step=H)
    plant = d.add(Pendulum(angle=0.4), name="plant")
    sine, k = d.add(Function("sin"), name="sine"), d.add(Gain(3.0), name="k")
    d.connect(plant["angle"], sine)
    d.connect(d.input("u"), k)
    d.output("y", sine)
    d.output("z", k)
    slave = open_fmu(d)
    slave.fmu.setupExperiment()
    slave.fmu.enterInitializationMode()
    knowns = ["plant.initial_angle", "u", "k.k"]
    slave.set("plant.initial_angle", 0.9)
    slave.set("u", 2.0)
    for row, column in enumerate([(np.cos(0.9), 0), (0, 3), (0, 2)]):
        seed = [float(row == n) for n in range(3)]
        assert slave.directional(["y", "z"], knowns, seed) == pytest.approx(column, abs=1e-10)
    assert slave.get("y")[0] == np.sin(0.9)
    slave.fmu.exitInitializationMode()
    assert slave.get("y")[0] == np.sin(0.9)
    slave.step(H)
    with pytest.raises(Exception, match=ERROR):  # once it runs, inputs alone are known
        slave.directional(["y"], ["k.k"], [1.0])
    assert slave.directional(["z"], ["u"], [1.0]) == pytest.approx([3.0])


def test_what_has_no_derivative_is_an_error_and_no_more(whole):
    slave = whole.start()
    for unknowns, knowns, seed in (
        (["u"], ["u"], [1.0]), (["loop"], ["loop"], [1.0]), (["loop"], ["u"], [float("nan")]),
        (["loop"], ["hold_"], [1.0]),
    ):  # fmt: skip
        with pytest.raises(Exception, match=ERROR):
            slave.directional(unknowns, knowns, seed)
    assert slave.directional([], [], []) == []
    slave.step(H)


def test_where_one_side_has_no_outputs_the_other_scale_is_taken(open_fmu):
    """sqrt(u) close to zero: large steps would leave the real numbers."""
    slave = open_fmu(one_function("sqrt(u)")).start(u=1e-7)
    found = slave.directional(["y"], ["u"], [1.0])[0]
    assert found == pytest.approx(0.5 / np.sqrt(1e-7), rel=1e-6)
    slave.set("u", 0.0)
    with pytest.raises(Exception, match=ERROR):
        slave.directional(["y"], ["u"], [1.0])
    slave.set("u", 4.0)
    assert slave.directional(["y"], ["u"], [1.0])[0] == pytest.approx(0.25)


# Derivatives of inputs.


def integrals(step: float = H) -> Diagram:
    d = Diagram("integrals", step=step)
    u = d.input("u")
    x, y = d.add(Integrator(), name="x"), d.add(Integrator(), name="y")
    hold = d.add(ZeroOrderHold(), name="hold", period=step)
    square = d.add(Function("square"), name="square")
    d.connect(u, x, hold, square)
    d.connect(square, y)
    d.output("x_", x)
    d.output("y_", y)
    d.output("hold_", hold)
    return d


def test_an_input_goes_on_by_its_derivatives_for_one_step(open_fmu):
    """u = 2 + 3τ + 4τ²/2; its integral, and that of its square, RK4 has exactly up to degree 3."""
    slave = open_fmu(integrals()).start(u=2.0)
    slave.slope("u", 3.0, 4.0)
    slave.step(5.37 * H)
    t = 5.37 * H
    assert slave.get("u")[0] == pytest.approx(2 + 3 * t + 2 * t**2, abs=1e-14)
    assert slave.get("x_")[0] == pytest.approx(2 * t + 1.5 * t**2 + 2 * t**3 / 3, abs=1e-14)
    tick = 5 * H
    assert slave.get("hold_")[0] == pytest.approx(2 + 3 * tick + 2 * tick**2, abs=1e-14)
    # In the next step it is held.
    u, x = slave.get("u", "x_")
    slave.step(2 * H)
    assert slave.get("u")[0] == u
    assert slave.get("x_")[0] == pytest.approx(x + 2 * H * u, abs=1e-14)


def test_interpolated_inputs_raise_the_order_of_a_coupling(open_fmu):
    """u(t) = sin 3t given once a communication step H: held, with one derivative, with two. The
    error of its integral after one second falls as H, H², H³."""
    for orders, slope_of in (
        (0, 1), (1, 2), (2, 3),
    ):  # fmt: skip
        errors = []
        for steps in (50, 100, 200):
            slave = open_fmu(integrals(0.01)).start()
            for n in range(steps):
                t = n / steps
                slave.set("u", np.sin(3 * t))
                slave.slope("u", *(3 * np.cos(3 * t), -9 * np.sin(3 * t))[:orders])
                slave.step(1 / steps)
            errors.append(abs(slave.get("x_")[0] - (1 - np.cos(3)) / 3))
        slopes = [np.log2(a / b) for a, b in pairwise(errors)]
        assert slopes == pytest.approx([slope_of] * 2, abs=0.2), errors


def test_internal_steps_follow_their_inputs(open_fmu):
    """A mass on a rail pushed by u = 6 + 8τ: v = 6τ + 4τ². With held inputs it is 6τ per tick."""
    s = System("cart")
    mass = s.body("mass", mass=1.0, inertia=(1.0, 1.0, 1.0))
    s.gravity = np.zeros(3)
    s.prismatic("rail", s.ground, mass, at=(0, 0, 0), axis=(1, 0, 0))
    s.force("push", mass.marker("middle"), (0.0, 0.0, 0.0))
    d = Diagram("cart", step=H)
    plant = d.add(s.block(["push.force.x"], ["rail.speed"], mode="internal"), name="plant")
    d.connect(d.input("u"), plant["push.force.x"])
    d.output("v", plant["rail.speed"])
    slave = open_fmu(d).start(u=6.0)
    slave.slope("u", 8.0, 12.0)
    t = 7.3 * H
    slave.step(t)
    assert slave.get("v")[0] == pytest.approx(6 * t + 4 * t**2 + 2 * t**3, rel=1e-12)


def test_orders_that_there_are_not(open_fmu):
    slave = open_fmu(integrals()).start()
    for name, order, value in (("u", 0, 1.0), ("u", 3, 1.0), ("u", -1, 1.0), ("x_", 1, 1.0)):
        with pytest.raises(Exception, match=ERROR):
            slave.fmu.setRealInputDerivatives(slave.refer(name), [order], [value])
    with pytest.raises(Exception, match="status 2"):
        slave.slope("u", float("inf"))
    slave.step(H)
    assert slave.get("x_")[0] == 0.0


def test_a_reset_forgets_derivatives(open_fmu):
    slave = open_fmu(integrals()).start()
    slave.slope("u", 1.0)
    slave.fmu.reset()
    slave.start()
    slave.step(H)
    assert slave.get("u", "x_") == [0.0, 0.0]


# Derivatives of outputs.


def moving() -> Diagram:
    """Only continuous outputs: of states, of time, of the input, of all together."""
    d = Diagram("moving", step=H)
    u = d.input("u")
    plant = d.add(Pendulum(angle=0.7, damping=0.3), name="plant")
    sine = d.add(Sine(amplitude=2.0, frequency=3.0), name="sine")
    product = d.add(Product("**"), name="product")
    late = d.add(TransportDelay(2.5 * H), name="late")
    half, total = d.add(Gain(0.5), name="half"), d.add(Sum("+-"), name="total")
    d.connect(u, plant, product["u1"], total["u1"])
    d.connect(sine, product["u2"], late)
    d.connect(total, half)
    d.connect(half, total["u2"])
    outputs: dict[str, Any] = {
        "angle": plant["angle"], "speed": plant["speed"], "sine_": sine, "product_": product,
        "loop": total, "late_": late,
    }  # fmt: skip
    for name, port in outputs.items():
        d.output(name, port)
    return d


MOVING = ["angle", "speed", "sine_", "product_", "loop"]


def test_output_derivatives_against_closed_forms(open_fmu):
    slave = open_fmu(moving()).start(u=1.0)
    assert slave.description.coSimulation.maxOutputDerivativeOrder == 1
    w = 6 * np.pi
    for k, size in enumerate([0.0, H, 0.4 * H, 0.6 * H, 1.7 * H]):
        if size:
            slave.slope("u", 2.0 * k, 5.0)
        slave.step(size)
        slope = 2.0 * k + 5.0 * size if size else 0.0
        t, u = slave.time, slave.get("u")[0]
        angle, speed = slave.get("angle", "speed")
        expected = [
            speed,
            u - 9.81 * np.sin(angle) - 0.3 * speed,
            2 * w * np.cos(w * t),
            slope * 2 * np.sin(w * t) + u * 2 * w * np.cos(w * t),
            slope / 1.5,
        ]
        before = slave.get(*MOVING)
        assert slave.output_derivatives(*MOVING) == pytest.approx(expected, rel=1e-8, abs=1e-9)
        assert slave.get(*MOVING) == before
    # The delayed sine is one between samples: to h²/8 of its second derivative.
    slave.slope("u", 1.0)
    slave.step(10 * H)
    assert slave.output_derivatives("late_")[0] == pytest.approx(
        2 * w * np.cos(w * (slave.time - 2.5 * H)), abs=2 * w**2 * H
    )


def test_asking_for_output_derivatives_changes_nothing(open_fmu):
    asked, left_alone = open_fmu(moving()), open_fmu(moving())
    for slave in (asked, left_alone):
        slave.start(u=1.0)
    for k in range(30):
        asked.output_derivatives(*MOVING, "late_")
        for slave in (asked, left_alone):
            slave.slope("u", np.cos(k))
            slave.step([0.3 * H, 0.7 * H, H][k % 3])
        assert asked.get(*MOVING, "late_") == left_alone.get(*MOVING, "late_")


def test_a_discrete_output_leaves_none_with_a_derivative(open_fmu, whole):
    assert whole.description.coSimulation.maxOutputDerivativeOrder == 0
    whole.start()
    with pytest.raises(Exception, match=ERROR):
        whole.output_derivatives("angle")
    d = Diagram("boolean", step=H)
    u = d.input("u")
    x, high = d.add(Integrator(), name="x"), d.add(Compare(">", 0.0), name="high")
    d.connect(u, x)
    d.connect(x, high)
    d.output("x_", x)
    d.output("high_", high)
    slave = open_fmu(d).start()
    assert slave.description.coSimulation.maxOutputDerivativeOrder == 0
    with pytest.raises(Exception, match=ERROR):
        slave.output_derivatives("x_")


def test_other_orders_of_outputs_are_errors(open_fmu):
    slave = open_fmu(moving()).start()
    for order in (0, 2, -1):
        with pytest.raises(Exception, match=ERROR):
            slave.fmu.getRealOutputDerivatives(slave.refer("angle"), [order])
    with pytest.raises(Exception, match=ERROR):
        slave.output_derivatives("u")
