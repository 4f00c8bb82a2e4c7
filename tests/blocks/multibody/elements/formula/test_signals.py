"""Runs of mechanisms whose forces are formulas of their own outputs."""

from typing import Any

import fmpy
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from biella import BiellaWarning, BlockError, Diagram, simulate, sweep
from biella.blocks import Constant as ConstantSource
from biella.blocks.multibody import Formula, Input, System
from biella.scheduler.run._alone import compile_alone

from . import card_mechanism

MODES: dict[str, dict[str, Any]] = {
    "continuous": {},
    "rk4": {"mode": "internal"},
    "implicit": {"mode": "internal", "integrator": "implicit", "spectral_radius": 1.0},
}


@pytest.fixture(params=MODES)
def mode(request):
    return MODES[request.param]


def run(system, outputs, until, *, step=1e-3, parameters=None, diagram=None, **mode):
    d = Diagram("run", step=step, **(diagram or {}))
    d.add(system.block(outputs=list(outputs), **mode), name="p")
    result = simulate(d, until, parameters=parameters)
    return [result[f"p.{name}"] for name in outputs]


def pendulum(weight=None, *, closed=False):
    """Two bars in space; with `closed` a loop of joints."""
    s = System("pendulum", gravity=(0, 0, 0) if weight else None)
    one = s.body("one", mass=2.0, inertia=(0.1, 0.2, 0.3), position=(0.5, 0, 0), com=(0.1, 0, 0))
    two = s.body("two", mass=1.5, inertia=(0.2, 0.1, 0.1), position=(1.5, 0, 0))
    s.revolute("shoulder", s.ground, one, at=(0, 0, 0), axis=(0, 1, 0))
    s.revolute("elbow", one, two, at=(1, 0, 0), axis=(0, 1, 0))
    if closed:
        s.guide("slot", s.ground, two, at=(2, 0, 0), axis=(1, 0, 0))
    for body in (one, two) if weight else ():
        marker = body.marker("c", body.com)
        s.force(f"weight of {body.name}", marker, (0, 0, weight(body.mass)))
    return s


@pytest.mark.parametrize("closed", [False, True])
def test_gravity_as_a_formula_is_gravity(mode, closed):
    """One factor is a parameter, the other is 1 written in terms of an output."""

    def weight(mass):
        return Formula(f"-{mass}*g*(1 + two.x - two.x)", {"g": 9.80665})

    names = ("shoulder.angle", "two.position", "shoulder.force")
    formula = run(pendulum(weight, closed=closed), names, 0.5, **mode)
    given = run(pendulum(closed=closed), names, 0.5, **mode)
    for a, b in zip(formula, given, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", MODES)
def test_the_mechanism_of_the_cards_moves_as_published(name):
    """Figures with six digits; the implicit steps of 0.5 ms are off by their own error."""
    step = 5e-4
    outputs = ("main.angle", "main.speed", "piston.x")
    found = run(card_mechanism.build(), outputs, 15.0, step=step, **MODES[name])
    tolerance = 6e-5 if name == "implicit" else 1.5e-6
    for t, expected in card_mechanism.EXPECTED.items():
        row = [values[round(t / step)] for values in found]
        np.testing.assert_allclose(row, expected, rtol=0, atol=tolerance)


def cart(force, **options):
    s = System("cart", planar=True, gravity=(0, 0))
    body = s.body("cart", mass=2.0, inertia=1.0, position=(options.get("x", 0.1), 0))
    s.prismatic("rail", s.ground, body, at=(0, 0), axis=(1, 0))
    s.force("push", body.marker("c"), (force, 0))
    return s


def test_kinks_are_located(mode):
    """Bang-bang: parabolas between sign changes, with the period 4 (2 m x₀ / F)^½ … / 2."""
    x0, m, f = 0.1, 2.0, 3.0
    quarter = np.sqrt(2 * x0 * m / f)
    step = quarter / 7.3  # no tick on a sign change
    ticks = 60
    x, v = run(
        cart("where(cart.x > 0, -3, 3)"), ("cart.x", "cart.x_rate"), ticks * step, step=step, **mode
    )
    t = step * np.arange(ticks + 1)
    phase = np.mod(t, 4 * quarter)
    half = np.mod(phase, 2 * quarter)
    sign = np.where(phase < quarter, 1, np.where(phase < 3 * quarter, -1, 1))
    from_edge = np.where(phase < quarter, phase, np.where(phase < 3 * quarter, phase - 2 * quarter,
                                                          phase - 4 * quarter))  # fmt: skip
    assert half.shape == t.shape
    np.testing.assert_allclose(x, sign * (x0 - 0.5 * f / m * from_edge**2), atol=2e-11)
    np.testing.assert_allclose(v, -sign * f / m * from_edge, atol=2e-10)


def test_every_stage_and_iteration_reads_its_own_state(mode):
    """A damped spring as a formula of outputs is, to rounding, the spring: nothing lags."""
    formula = cart("-80*cart.x - 0.7*cart.x_rate")
    spring = cart(0.0)
    spring.spring("tie", spring.ground.marker("o"), spring["cart.c"], stiffness=80, damping=0.7)
    names = ["cart.x", "cart.x_rate"]
    found = run(formula, names, 0.2, step=1e-2, **mode)  # before it passes the length 0
    expected = run(spring, names, 0.2, step=1e-2, **mode)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)


def test_a_force_with_a_potential_keeps_the_energy():
    """V = x² y² / 2 + 5/3 |x|³ on a free body; its own kinetic energy is read with factor 0."""
    s = System("potential", planar=True, gravity=(0, 0))
    body = s.body("b", mass=1.3, inertia=0.2, position=(0.7, -0.4), velocity=(0.2, 1.0), free=True)
    fx = "-b.x*b.y**2 - 5*b.x*abs(b.x) + 0*kinetic_energy"
    s.force("f", body.marker("c"), (fx, "-b.x**2*b.y"))
    x, y, kinetic = run(
        s, ("b.x", "b.y", "kinetic_energy"), 10.0, step=1e-2,
        diagram={"solver": "dopri5", "tolerance": 1e-12},
    )  # fmt: skip
    energy = kinetic + x**2 * y**2 / 2 + 5 / 3 * np.abs(x) ** 3
    assert np.ptp(x) > 0.5
    np.testing.assert_allclose(energy, energy[0], rtol=1e-9)


def test_euler_parameters_stay_continuous_over_many_turns(mode):
    s = System("spin", gravity=(0, 0, 0))
    first = s.body("first", mass=1, inertia=1, rotation=about((1, 2, 3), 2.9))
    s.revolute("axle", s.ground, first, at=(0, 0, 0), axis=(1, 2, 3))
    ball = s.body("ball", mass=1, inertia=(1, 2, 3), position=(0, 0, 1),
                  angular_velocity=(0, 7, 0.1), free=True)  # fmt: skip
    assert ball.name == "ball"
    names = [f"{b}.e{n}{r}" for b in ("first", "ball") for r in ("", "_rate") for n in range(4)]
    system_outputs = [*names, "axle.angle", "first.rotation", "ball.rotation"]
    s.torque("motor", first.marker("m"), (0.5, 1.0, 1.5))
    *found, angle, one, two = run(s, system_outputs, 8.0, **mode)
    e, rate, f, f_rate = (np.array(found[4 * k : 4 * k + 4]).T for k in range(4))
    assert angle[-1] > 4 * np.pi
    axis = np.array([1, 2, 3]) / np.sqrt(14)
    half = 0.5 * angle[:, None]
    np.testing.assert_allclose(e, np.hstack([np.cos(half), np.sin(half) * axis]), atol=1e-9)
    for values, rates, rotation in ((e, rate, one), (f, f_rate, two)):
        np.testing.assert_allclose(np.abs((values * rotation).sum(1)), 1.0, atol=1e-12)
        slope = (values[2:] - values[:-2]) / 2e-3
        np.testing.assert_allclose(rates[1:-1], slope, atol=2e-4)


def about(axis, angle):
    unit = np.array(axis) / np.linalg.norm(axis)
    return (np.cos(angle / 2), *np.sin(angle / 2) * unit)


def test_their_sign_is_that_of_the_given_rotation():
    s = System("spin", gravity=(0, 0, 0))
    s.body("b", mass=1, inertia=1, rotation=about((0, 0, 1), 0.4), free=True)
    d = Diagram("run", step=1e-3)
    d.add(s.block(outputs=["b.e0", "b.e3"]), name="p")
    for sign in (1.0, -1.0):
        given = sign * np.array(about((0, 0, 1), 0.4))
        result = simulate(d, 1e-2, parameters={"p.b.initial_rotation": given})
        np.testing.assert_allclose(
            [result["p.b.e0"][0], result["p.b.e3"][0]], given[[0, 3]], atol=1e-15
        )


READ = {
    "rail.displacement": 0.0,
    "rail.speed": 0.0,
    "cart.position[0]": 0.1,
    "cart.velocity[0]": 0.0,
    "cart.c.position[0]": 0.1,
    "cart.angular_velocity[2]": 0.0,
    "cart.e0": 1.0,
    "tie.length": 0.5,
    "tie.deflection": 0.3,
    "tie.rate": 0.0,
    "tie.force": 3.0,
    "tie.energy": 0.45,
    "tie.power": 0.0,
    "elastic_energy": 0.45,
    "potential_energy": 0.45,
}


@pytest.mark.parametrize("name", READ)
def test_what_is_read_is_the_output(name):
    """A spring of length 0.5 m is beside the force that reads it."""
    s = cart(f"7*({name})")
    s.spring("tie", s.ground.marker("o", (-0.4, 0)), s["cart"].marker("tie"), stiffness=10,
             free_length=0.2)  # fmt: skip
    (force,) = run(s, ["push.applied_force"], 1e-3)
    assert force[0, 0] == pytest.approx(7 * READ[name], abs=1e-14)
    whole = name.partition("[")[0]
    shown, applied = run(s, [whole, "push.applied_force"], 0.2)
    column = shown if shown.ndim == 1 else shown[:, int(name.partition("[")[2][0])]
    np.testing.assert_array_equal(applied[:, 0], 7 * column)


def test_a_name_that_is_no_word_stands_in_quotes():
    s = System("cart", planar=True, gravity=(0, 0))
    body = s.body("the cart", mass=2.0, inertia=1.0, position=(0.25, 0))
    s.prismatic("long rail", s.ground, body, at=(0, 0), axis=(1, 0))
    s.force("push", body.marker("c"), ("-8*'the cart'.x", "'long rail.speed' + 'the cart.e0'"))
    (x,) = run(s, ["the cart.x"], 1.0, diagram={"solver": "dopri5", "tolerance": 1e-12})
    np.testing.assert_allclose(x, 0.25 * np.cos(2 * np.linspace(0, 1, 1001)), atol=1e-10)


def test_a_chain_of_elements_reads_what_comes_later():
    """a reads b, b reads c: in the order in which they are made each comes before what it reads."""
    s = System("chain", planar=True, gravity=(0, 0))
    body = s.body("b", mass=1, inertia=1, position=(0.5, 0), free=True)
    marker = body.marker("c")
    s.force("first", marker, ("2*second.applied_force[1]", 0))
    s.force("second", marker, (0, "3*third.applied_torque[2]"))
    s.torque("third", marker, "5*b.x")
    names = ["first.applied_force", "second.applied_force", "third.applied_torque", "b.x"]
    one, two, three, x = run(s, names, 0.05)
    assert np.ptp(x) > 1e-3
    np.testing.assert_array_equal(three[:, 2], 5 * x)
    np.testing.assert_array_equal(two[:, 1], 3 * three[:, 2])
    np.testing.assert_array_equal(one[:, 0], 2 * two[:, 1])


def test_the_power_of_an_element_that_reads_another_power():
    """Both powers are evaluated in one work space: reactions must not change with the outputs."""
    s = pendulum()
    s.force("a", s["two"].marker("a"), ("-0.3*b.power", 0, 0))
    s.force("b", s["two"].marker("b"), (0, 0, "-0.2*two.velocity[2]"))
    (alone,) = run(s, ["shoulder.force"], 0.4)
    force, a, b, v = run(s, ["shoulder.force", "a.power", "b.power", "two.velocity"], 0.4)
    np.testing.assert_array_equal(force, alone)
    np.testing.assert_allclose(b, -0.2 * v[:, 2] ** 2, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(a, -0.3 * b * v[:, 0], rtol=1e-12, atol=1e-14)


def test_parameters_are_set_by_name_and_swept():
    """x = x₀ cos ωt with ω² = k / m."""
    s = cart(Formula("-k*cart.x", {"k": 8.0}))
    d = Diagram("run", step=1e-3)
    d.add(s.block(outputs=["cart.x"]), name="p")
    for k in (8.0, 18.0):
        result = simulate(d, 1.0, parameters={"p.push.force.x.k": k})
        assert result["p.cart.x"][-1] == pytest.approx(0.1 * np.cos(np.sqrt(k / 2)), abs=1e-9)
    found = sweep(d, 1.0, {"p.push.force.x.k": [8.0, 18.0]}, lambda r: r["p.cart.x"][-1],
                  workers=1, progress=False)  # fmt: skip
    np.testing.assert_allclose(
        np.array(found.values, dtype=float),
        0.1 * np.cos(np.sqrt(np.array([8.0, 18.0]) / 2)),
        atol=1e-9,
    )


def test_a_parameter_is_set_live():
    s = cart(Formula("k + 0*cart.x", {"k": 0.0}))
    with compile_alone(s.block(outputs=["push.applied_force"]), "p").open() as instance:
        instance.initialize()
        instance.set("p.push.force.x.k", 3.0)
        instance.run(1)
        assert instance.get("p.push.applied_force")[0] == 3.0


def test_an_fmu_is_the_block(tmp_path):
    s = card_mechanism.build()
    names = ["main.angle", "piston.x", "crank.e0"]
    path = s.export_fmu(tmp_path / "cards.fmu", outputs=names, step=1e-3, sources=False)
    outside = fmpy.simulate_fmu(str(path), stop_time=1.0, output_interval=1e-2, output=names)
    for name, values in zip(names, run(s, names, 1.0), strict=True):
        np.testing.assert_allclose(outside[name], values[::10], rtol=0, atol=1e-12)


def test_inputs_pass_through_what_is_read():
    """A marker that an input moves is read by a force, and that by another."""
    s = cart("3*second.applied_force[1]")
    s.ground.marker("road", (0, 0.2), motion={"y": Input("height")})
    s.force("second", s["cart.c"], (0, "5*ground.road.position[1]"))
    plant = s.block(outputs=["push.applied_force", "cart.x"])
    height = plant.input_index["height"]
    assert [height in direct for direct in plant.feedthrough] == [True, False]
    d = Diagram("run", step=1e-3)
    d.connect(d.add(ConstantSource(0.7, unit="m"), name="height"), d.add(plant, "p")["height"])
    force = simulate(d, 1e-2)["p.push.applied_force"]
    np.testing.assert_allclose(force[:, 0], 3 * 5 * 0.9, rtol=1e-14)


FAULTS = {
    "1/(t - 0.05)": ("0.05", "infinite"),
    "sqrt(cart.x - 0.08)": ("0.", "not a number"),
    "1/(cart.x - cart.x)": ("0", "infinite"),
}


@pytest.mark.parametrize("formula", FAULTS)
def test_a_value_that_is_not_finite_is_reported(mode, formula):
    s = cart(f"{formula} - 100")
    t, what = FAULTS[formula]
    text = rf"`push.force.x` = `.*` has no finite value at t = {t}[0-9]* s: it is {what}"
    with pytest.raises(BlockError, match=text):
        run(s, ["cart.x"], 1.0, step=1e-2, **mode)


def test_a_formula_beyond_its_border_is_no_fault(mode):
    """The root is defined where it is taken: the tick that leaves that range is not located."""
    s = cart("where(cart.x > 0.05, -sqrt(cart.x - 0.05), 0)")
    with pytest.warns(BiellaWarning, match="events were not located in 1 tick"):
        x, v = run(s, ["cart.x", "cart.x_rate"], 3.0, step=1e-2, **mode)
    # ½ m v² = 2/3 (x - 0.05)^1.5 of the fall.
    assert v[-1] == pytest.approx(-np.sqrt(2 / 3 * 0.05**1.5), rel=1e-3)
    assert x[-1] < 0


def test_a_formula_that_is_not_finite_beyond_its_kink_does_not_end_a_run_with_loops():
    """abs(v) of a mode that is kept is negative beyond v = 0, and its root is not a number."""
    s = System("bead", planar=True, gravity=(0, 0))
    bead = s.body("bead", mass=1.0, inertia=0.1, velocity=(0.3, 0.0))
    s.constraint("track", "bead.y")
    s.force("push", bead.marker("c"), ("-3 - 0.2*sqrt(abs(bead.x_rate))", 0))
    with pytest.warns(BiellaWarning, match="values beyond it are not finite"):
        x, v = run(s, ["bead.x", "bead.x_rate"], 1.0, step=1e-2)
    exact = solve_ivp(
        lambda _, y: [y[1], -3 - 0.2 * np.sqrt(abs(y[1]))], (0, 1), [0, 0.3], rtol=1e-10, atol=1e-12
    )
    # Of the tick with the kink, RK4 without location: h times the jump of the slope, 0.2 √(3 h).
    np.testing.assert_allclose([x[-1], v[-1]], exact.y[:, -1], atol=1e-2 * 0.2 * np.sqrt(3e-2))
