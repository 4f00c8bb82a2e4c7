"""Friction from the reactions of joints: closed forms, Newton–Euler in numpy, and balances."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.optimize import root

from biella import BlockError, Diagram, DiagramError, simulate
from biella.blocks import ShortBearing
from biella.blocks.multibody import Input, Joint, System
from biella.blocks.multibody.plant._tree import grow_tree
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine

G = 9.80665
SHARP = 1e-9  # m/s: tanh is the sign of everything that slips


def run(system, until, outputs, *, step=1e-3, parameters=None, **block):
    d = Diagram("mechanism", step=step)
    d.add(system.block([], outputs, **block), name="plant")
    result = simulate(d, until, parameters=parameters)
    return result.t, [result[f"plant.{name}"] for name in outputs]


def see(system, outputs):
    """Return outputs at the start."""
    d = Diagram("mechanism", step=1e-3, solver="euler")  # and no word of stiff friction
    d.add(system.block([], outputs), name="plant")
    with Instance(d.compile()) as instance:
        instance.initialize()
        values = [np.array(instance.get(f"plant.{name}")) for name in outputs]
    return [float(value) if value.size == 1 else value for value in values]


# -- closed forms


def test_a_loaded_shaft_slows_down_linearly():
    """A journal brakes with f d/2 W [V 6.51 without couples]."""
    s = System("shaft", planar=True)
    disc = s.body("disc", mass=10.0, inertia=0.05, angular_velocity=50.0)
    main = s.revolute("main", s.ground, disc, at=(0.0, 0.0))
    s.friction("rub", main, coefficient=0.1, diameter=0.04)
    t, (speed, torque, load, loss) = run(
        s, 0.5, ["main.speed", "rub.torque", "rub.load", "rub.power_loss"]
    )
    brake = 0.1 * 0.02 * 10.0 * G
    np.testing.assert_allclose(speed, 50.0 - brake / 0.05 * t, rtol=1e-13)
    np.testing.assert_allclose(torque, -brake, rtol=1e-13)
    np.testing.assert_allclose(load, 10.0 * G, rtol=1e-13)
    np.testing.assert_allclose(loss, brake * speed, rtol=1e-13)


@pytest.mark.parametrize("speed", [2.0, -2.0])
@pytest.mark.parametrize("overhang", [0.0, 0.05, -0.12])
def test_an_overhung_rotor_adds_the_couple(speed, overhang):
    """W at a distance a from the middle of the bush: f d/2 W + f (d/L) W a [V 6.51]."""
    s = System("overhung", (0.0, 0.0, -G))
    rotor = s.body(
        "rotor",
        mass=4.0,
        inertia=(0.02, 0.03, 0.03),
        position=(0.3, 0.2, 0.1),
        com=(overhang, 0.0, 0.0),
        angular_velocity=(speed, 0.0, 0.0),
    )
    main = s.revolute("main", s.ground, rotor, at=(0.3, 0.2, 0.1), axis=(1, 0, 0))
    s.friction("rub", main, coefficient=0.08, diameter=0.03, length=0.06, smoothing_speed=SHARP)
    weight = 4.0 * G
    brake = 0.08 * 0.015 * weight + 0.08 * 0.03 / 0.06 * weight * abs(overhang)
    torque, acceleration = see(s, ["rub.torque", "main.acceleration"])
    assert torque == pytest.approx(-np.sign(speed) * brake, rel=1e-12)
    assert acceleration == pytest.approx(-np.sign(speed) * brake / 0.02, rel=1e-12)


@pytest.mark.parametrize("height", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("planar", [True, False])
def test_a_tall_block_slides_down_a_slope(height, planar):
    """Its own friction tips a tall block: D = f g cos α / (1 - 2 f h / L) slows it down."""
    slope, f, length = 0.5, 0.2, 0.25
    along, up = np.array([np.cos(slope), -np.sin(slope)]), np.array([np.sin(slope), np.cos(slope)])
    at = (lambda p: tuple(p)) if planar else (lambda p: (p[0], 0.0, p[1]))
    s = System("slope", planar=planar)
    block = s.body("block", mass=3.0, inertia=0.1, com=at(height * up), velocity=at(along))
    guide = s.prismatic("guide", s.ground, block, at=at((0.0, 0.0)), axis=at(along))
    size: dict[str, Any] = {"length": length} if planar else {"length": length, "diameter": 0.1}
    s.friction("rub", guide, coefficient=f, smoothing_speed=SHARP, **size)
    slowing = f * G * np.cos(slope) / (1.0 - 2.0 * f * height / length)
    force, acceleration, load = see(s, ["rub.force", "guide.acceleration", "rub.load"])
    assert acceleration == pytest.approx(G * np.sin(slope) - slowing, rel=1e-11)
    assert force == pytest.approx(-3.0 * slowing, rel=1e-11)
    assert load == pytest.approx(3.0 * slowing / f, rel=1e-11)


def test_what_keeps_a_guide_from_turning_rubs_too():
    """A block whose mass is beside the rail: the moment about it is a pair of forces across d."""
    s = System("carriage", (0.0, 0.0, -G))
    block = s.body("block", mass=2.0, inertia=0.1, com=(0.0, 0.07, 0.0), velocity=(1.5, 0.0, 0.0))
    rail = s.prismatic("rail", s.ground, block, at=(0, 0, 0), axis=(1, 0, 0))
    s.friction("rub", rail, coefficient=0.1, diameter=0.04, length=1e9, smoothing_speed=SHARP)
    weight = 2.0 * G
    load, force = see(s, ["rub.load", "rub.force"])
    assert load == pytest.approx(weight + 2.0 * weight * 0.07 / 0.04, rel=1e-8)
    assert force == pytest.approx(-0.1 * load, rel=1e-12)


def test_a_cylindrical_joint_shares_its_friction_between_both_directions():
    """With J = m r² the slip (ṡ, r θ̇) keeps its direction and dies at f g."""
    f, r, m = 0.15, 0.02, 5.0
    s = System("shaft", (0.0, 0.0, -G))
    shaft = s.body(
        "shaft",
        mass=m,
        inertia=(m * r**2, 0.01, 0.01),
        velocity=(0.6, 0.0, 0.0),
        angular_velocity=(40.0, 0.0, 0.0),
    )
    bush = s.cylindrical("bush", s.ground, shaft, at=(0, 0, 0), axis=(1, 0, 0))
    s.friction("rub", bush, coefficient=f, diameter=2 * r, length=0.1)
    t, (slide, turn, force, torque) = run(
        s,
        0.4,
        ["bush.displacement_speed", "bush.angle_speed", "rub.force", "rub.torque"],
        step=1e-4,
    )
    fall = 1.0 - f * G * t / np.hypot(0.6, 40.0 * r)
    # The slip is at least 0.4 m/s, where tanh(w / 1 mm/s) is 1.
    np.testing.assert_allclose(slide, 0.6 * fall, rtol=1e-10)
    np.testing.assert_allclose(turn, 40.0 * fall, rtol=1e-10)
    np.testing.assert_allclose(np.hypot(force, torque / r), f * m * G, rtol=1e-10)


@pytest.mark.parametrize(("middle", "arm"), [("first", 0.3), ("second", 0.0)])
def test_couples_are_about_the_middle_of_the_bearing(middle, arm):
    """A rod with its mass at the end, 0.3 m out of its bush; or a block on a rail."""
    s = System("rod", planar=True)
    rod = s.body("rod", mass=1.0, inertia=0.01, position=(0.3, 0.0), velocity=(0.5, 0.0))
    foot = s.ground.marker("bush", (0.0, 0.0), axis=(1, 0))
    guide = s.prismatic("guide", foot, rod.marker("end", axis=(1, 0)))
    s.friction("rub", guide, coefficient=0.1, length=0.1, middle=middle)
    (load,) = see(s, ["rub.load"])
    assert load == pytest.approx(G * (1.0 + 2.0 * arm / 0.1), rel=1e-12)


# -- the slider-crank

CRANK, ROD = 0.1, 0.3
RADII = {"main": 0.02, "pin": 0.015, "wrist": 0.01}
GUIDE = 0.08


def piston_engine(angle, speed, f, *, massless=False, drive="motor", load=0.0, sharp=SHARP):
    """A slider-crank in any position, its velocities fitting."""
    s = System("engine", (0, 0) if massless else (0, -G), planar=True)
    fall = -np.arcsin(CRANK * np.sin(angle) / ROD)
    rate = -CRANK * np.cos(angle) * speed / (ROD * np.cos(fall))
    pin = CRANK * np.array([np.cos(angle), np.sin(angle)])
    v_pin = speed * CRANK * np.array([-np.sin(angle), np.cos(angle)])
    middle = 0.5 * ROD * np.array([np.cos(fall), np.sin(fall)])
    v_middle = 0.5 * ROD * rate * np.array([-np.sin(fall), np.cos(fall)])
    small = 1e-9 if massless else 1.0
    crank = s.body(
        "crank", mass=2.0 * small, inertia=0.02 * small, position=0.5 * pin, rotation=angle,
        velocity=0.5 * v_pin, angular_velocity=speed,
    )  # fmt: skip
    rod = s.body(
        "rod", mass=1.5 * small, inertia=0.012 * small, position=pin + middle, rotation=fall,
        velocity=v_pin + v_middle, angular_velocity=rate,
    )  # fmt: skip
    place = np.array([pin[0] + 2 * middle[0], 0.0])
    piston = s.body(
        "piston", mass=1.2 * small, inertia=0.002 * small, position=place,
        velocity=v_pin + 2 * v_middle,
    )  # fmt: skip
    joints = [
        s.revolute("main", s.ground, crank, at=(0, 0)),
        s.revolute("pin", crank, rod, at=pin),
        s.revolute("wrist", rod, piston, at=place),
    ]
    slide = s.prismatic("slide", s.ground, piston, at=place, axis=(1, 0))
    if drive == "motor":
        s.torque("motor", joints[0], 3.0)
    elif drive == "driver":
        s.driver("motor", joints[0], f"{angle!r} + {speed!r} * t")
    if load:
        s.force("gas", piston.marker("crown"), (load, 0.0))
    for joint in joints:
        s.friction(
            f"rub_{joint.name}", joint, coefficient=f, diameter=2 * RADII[joint.name],
            smoothing_speed=sharp,
        )  # fmt: skip
    s.friction("rub_slide", slide, coefficient=f, length=GUIDE, smoothing_speed=sharp)
    return s


RUBS = ("rub_main.torque", "rub_pin.torque", "rub_wrist.torque", "rub_slide.force")


def newton_euler(angle, speed, f, torque):
    """Return accelerations and friction of the same engine from the equations of three free bodies.

    Unknown: three accelerations of each body, forces of the crank on … and so on, eight numbers,
    and the four friction efforts, all at once by a root finder.
    """
    fall = -np.arcsin(CRANK * np.sin(angle) / ROD)
    rate = -CRANK * np.cos(angle) * speed / (ROD * np.cos(fall))
    e1, e2 = (np.array([np.cos(a), np.sin(a)]) for a in (angle, fall))
    n1, n2 = (np.array([-e[1], e[0]]) for e in (e1, e2))
    slip = [speed, rate - speed, -rate, None]
    v_piston = CRANK * speed * n1 + ROD * rate * n2
    slip[3] = v_piston[0]
    weight = np.array([0.0, -G])

    def cross(a, b):
        return a[0] * b[1] - a[1] * b[0]

    efforts = np.zeros(4)

    def equations(x):
        a1, w1, a2, w2, a3 = x[0:2], x[2], x[3:5], x[5], x[6]
        main, pin, wrist, normal, tilt = x[7:9], x[9:11], x[11:13], x[13], x[14]
        sign = -np.sign(slip)
        efforts[:] = sign * f * np.array([
            RADII["main"] * np.hypot(*main),
            RADII["pin"] * np.hypot(*pin),
            RADII["wrist"] * np.hypot(*wrist),
            abs(normal) + 2.0 * abs(tilt) / GUIDE,
        ])  # fmt: skip
        half1, half2 = 0.5 * CRANK * e1, 0.5 * ROD * e2
        # Each force is on the outer body of its joint.
        crank = [
            *(2.0 * a1 - main + pin - 2.0 * weight),
            0.02 * w1
            - (cross(-half1, main) - cross(half1, pin) + torque + efforts[0] - efforts[1]),
        ]
        rod = [
            *(1.5 * a2 - pin + wrist - 1.5 * weight),
            0.012 * w2 - (cross(-half2, pin) - cross(half2, wrist) + efforts[1] - efforts[2]),
        ]
        piston = [
            1.2 * a3 - wrist[0] - efforts[3],
            -wrist[1] - normal + 1.2 * G,
            tilt + efforts[2],
        ]
        closes = [
            *(a1 - (0.5 * CRANK * (w1 * n1 - speed**2 * e1))),
            *(a2 - (CRANK * (w1 * n1 - speed**2 * e1) + 0.5 * ROD * (w2 * n2 - rate**2 * e2))),
            *(
                np.array([a3, 0.0])
                - (CRANK * (w1 * n1 - speed**2 * e1) + ROD * (w2 * n2 - rate**2 * e2))
            ),
        ]
        return np.array(crank + rod + piston + closes)

    found = root(equations, np.ones(15), tol=1e-13)
    assert np.abs(equations(found.x)).max() < 1e-9
    return found.x[2], found.x[6], efforts


@pytest.mark.parametrize("angle", [0.3, 1.4, 2.6, 4.0, 5.9])
@pytest.mark.parametrize(("speed", "f"), [(15.0, 0.1), (-4.0, 0.3), (30.0, 0.0)])
def test_slider_crank_against_newton_euler(angle, speed, f):
    s = piston_engine(angle, speed, f)
    turning, sliding, *efforts = see(s, ["main.acceleration", "slide.acceleration", *RUBS])
    wanted = newton_euler(angle, speed, f, 3.0)
    assert turning == pytest.approx(wanted[0], rel=1e-9)
    assert sliding == pytest.approx(wanted[1], rel=1e-9)
    np.testing.assert_allclose(efforts, wanted[2], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("angle", [0.4, 1.2, 2.5])
@pytest.mark.parametrize("f", [0.05, 0.15])
def test_forces_are_tangent_to_friction_circles(angle, f):
    """Without masses the rod passes a force along the line tangent to circles of radius f r.

    The piston takes the load P and its friction; the torque of the crank follows by hand.
    """
    speed, load = 1.0, -500.0
    s = piston_engine(angle, speed, f, massless=True, drive="driver", load=load)
    fall = -np.arcsin(CRANK * np.sin(angle) / ROD)
    rate = -CRANK * np.cos(angle) * speed / (ROD * np.cos(fall))
    # Friction on the rod: at the pin against rate - speed, at the wrist against its own rate.
    circle = f * (-np.sign(rate - speed) * RADII["pin"] - np.sign(rate) * RADII["wrist"])
    # The rod is pushed by S at the wrist; moments about the pin: S (ROD sin β + circle) = 0.
    beta = np.arcsin(-circle / ROD)
    # On the piston along x: S cos = -P + friction, with N = S sin and the couple of the wrist.
    line = fall - beta
    slides = -CRANK * np.sin(angle) * speed - ROD * np.sin(fall) * rate
    push = 1.0
    for _ in range(200):
        normal = abs(push * np.sin(line)) + 2.0 * f * RADII["wrist"] * push / GUIDE
        push = (-load + np.sign(slides) * f * normal) / np.cos(line)
    force = push * np.array([np.cos(line), np.sin(line)])  # of the crank on the rod
    pin = CRANK * np.array([np.cos(angle), np.sin(angle)])
    against = np.sign(rate - speed) * RADII["pin"] * f * push  # on the crank: against is with it
    torque = pin[0] * force[1] - pin[1] * force[0] - against
    torque += np.sign(speed) * f * RADII["main"] * push
    effort, inflow, loss, efficiency = see(
        s, ["motor.effort", "power_in", "power_loss", "efficiency"]
    )
    assert effort == pytest.approx(torque, rel=1e-6)
    useful = load * slides  # negative: it flows out, unless the load drives
    assert inflow == pytest.approx(max(effort * speed, 0.0) + max(useful, 0.0), rel=1e-6)
    assert inflow - loss == pytest.approx(-min(useful, 0.0) - min(effort * speed, 0.0), rel=1e-6)
    assert efficiency == pytest.approx(1.0 - loss / inflow, rel=1e-12)
    assert 0.3 < efficiency < 0.99


def test_zero_coefficient_is_no_friction_bit_for_bit():
    with_none = piston_engine(0.7, 20.0, 0.0)
    without = slider_without_friction()
    names = ["main.angle", "main.speed", "slide.force", "wrist.force"]
    _, a = run(with_none, 0.3, names)
    _, b = run(without, 0.3, names)
    for name, x, y in zip(names, a, b, strict=True):
        np.testing.assert_array_equal(x, y, err_msg=name)


def slider_without_friction():
    s = piston_engine(0.7, 20.0, 0.0)
    for name in [name for name in s.parts if name.startswith("rub_")]:
        del s._parts[name]
    return s


@pytest.mark.parametrize("mode", ["continuous", "internal"])
def test_what_mechanical_energy_loses_is_the_power_lost(mode):
    s = piston_engine(0.7, 25.0, 0.12, sharp=0.02)
    names = ["kinetic_energy", "potential_energy", "power_loss", "power_in", "main.speed"]
    t, (kinetic, potential, loss, inflow, speed) = run(s, 0.5, names, step=2e-5, mode=mode)
    energy = kinetic + potential
    lost = simpson(loss, x=t)
    gained = simpson(3.0 * speed, x=t)
    assert lost > 0.4 * energy[0]
    assert energy[-1] - energy[0] == pytest.approx(gained - lost, rel=1e-5)
    np.testing.assert_allclose(inflow, np.maximum(0.0, 3.0 * speed), rtol=1e-12)


# -- implicit steps


def test_implicit_steps_rub_alike_and_are_of_order_two():
    names = ["main.angle", "main.speed", "kinetic_energy"]
    _, exact = run(piston_engine(0.7, 25.0, 0.12, sharp=0.05), 0.2, names, step=2e-5)
    errors = []
    for step in (1e-3, 5e-4):
        s = piston_engine(0.7, 25.0, 0.12, sharp=0.05)
        _, found = run(s, 0.2, names, step=step, mode="internal", integrator="implicit")
        errors.append([abs(a[-1] - b[-1]) for a, b in zip(found, exact, strict=True)])
    ratio = np.array(errors[0]) / errors[1]
    assert (ratio > 3.5).all()
    assert (ratio < 4.5).all()
    assert errors[1][0] < 1e-4


@pytest.mark.filterwarnings("ignore:the estimated error")  # of coarse steps, and real
@pytest.mark.parametrize("coefficient", [0.4, 1.3])
def test_a_block_that_should_stick_creeps(coefficient):
    """On a slope less steep than friction f N tanh(v / w_s) = m g sin α; or it locks.

    The fastest motion is f g / w_s = 3900 /s: Runge–Kutta would need steps below 0.7 ms.
    """
    slope, slow = 0.2, 1e-3
    s = System("slope", planar=True)
    along = np.array([np.cos(slope), -np.sin(slope)])
    up = np.array([along[1], -along[0]])
    block = s.body("block", mass=3.0, inertia=0.1, velocity=1e-2 * along, com=-0.2 * up)
    guide = s.prismatic("guide", s.ground, block, at=(0.0, 0.0), axis=along)
    s.friction("rub", guide, coefficient=coefficient, length=0.5, smoothing_speed=slow)
    if coefficient > 1.25:  # 2 f h / L
        with pytest.raises(BlockError, match=r"friction `rub` in joint `guide`, coefficient 1\.3"):
            run(s, 0.1, ["guide.speed"], step=1e-3, mode="internal", integrator="implicit")
        return
    _, (speed, force) = run(
        s, 0.1, ["guide.speed", "rub.force"], step=1e-3, mode="internal", integrator="implicit"
    )
    assert force[-1] == pytest.approx(-3.0 * G * np.sin(slope), rel=1e-6)
    normal = np.cos(slope) + 2.0 * 0.2 * np.sin(slope) / 0.5  # as parts of the weight
    part = np.sin(slope) / (coefficient * normal)
    assert speed[-1] == pytest.approx(slow * np.arctanh(part), rel=1e-6)


# -- where it is cut


SIZES = {"coefficient": 0.06, "diameter": 0.6, "length": 1.2}


def rub_laws(kind, system, seen, size):
    """Return force and torque of friction from the reaction that is shown, as the sheet has it."""
    joint = system["k"]
    second = joint.second
    frame = seen["frame"] @ joint.frame_j
    force, couple = (frame.T @ seen[f"k.{what}"] for what in ("force", "torque"))
    normal = np.hypot(*force[:2]) + 2.0 * np.hypot(*couple[:2]) / size["length"]
    if kind == "prismatic":
        normal += 2.0 * abs(couple[2]) / size["diameter"]
    radius = 0.5 * size["diameter"]
    slide = 0.0 if kind == "revolute" else float(seen["slide"])
    turn = 0.0 if kind == "prismatic" else float(seen["turn"])
    slip = np.hypot(slide, radius * turn)
    share = -size["coefficient"] * normal * np.tanh(slip / 1e-3) / slip
    assert second.body.name in ("a", "base")
    return share * slide, share * radius**2 * turn


RATES = {
    "revolute": {"turn": "k.speed"},
    "prismatic": {"slide": "k.speed"},
    "cylindrical": {"slide": "k.displacement_speed", "turn": "k.angle_speed"},
}


@pytest.mark.parametrize("kind", list(RATES))
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_reactions_of_tree_and_closure_give_the_same_friction(
    draw_closed, look, kind, swapped, seed
):
    """A spatial loop, cut at the joint that rubs, or elsewhere with the joint in the tree.

    What is shown is the law applied to the reaction that is shown; and efforts of that size, given
    as numbers, move the mechanism alike.
    """
    start, seen = None, {}
    rates = RATES[kind]
    for cut in (0, 1, 2):
        plan = draw_closed(kind, swapped, cut, seed)
        if start is None:
            start = plan.started(look(plan.build()))
        plan = replace(plan, bodies=start.bodies)
        s = plan.build()
        rub = s.friction("rub", s["k"], **SIZES)
        # Another one that rubs, so that they act on each other.
        s.friction("other", s["slide"], **SIZES)
        extra = ["k.force", "k.torque", "other.force", *rates.values()]
        extra += [f"rub.{what}" for what in (*rub.efforts, "load", "power_loss")]
        found = look(s, extra)
        seen[cut] = found
        cuts = [joint.name for joint in grow_tree(s).cuts]
        assert ("k" in cuts) == (cut == 0)
        efforts = {what: float(found[f"rub.{what}"]) for what in rub.efforts}

        quaternion = found[f"{s['k'].second.body.name}.rotation"]
        e0, e = quaternion[0], quaternion[1:]
        turned = (
            (2 * e0**2 - 1) * np.eye(3)
            + 2 * np.outer(e, e)
            + 2 * e0 * np.array([[0, -e[2], e[1]], [e[2], 0, -e[0]], [-e[1], e[0], 0]])
        )
        known = found | {"frame": turned} | {k: found[path] for k, path in rates.items()}
        law = dict(zip(("force", "torque"), rub_laws(kind, s, known, SIZES), strict=True))
        for what, value in efforts.items():
            assert value == pytest.approx(law[what], rel=1e-9), (cut, what)

        given = plan.build()
        for what, value in efforts.items():
            getattr(given, what)(f"given_{what}", given["k"], value)
        given.force("given_other", given["slide"], float(found["other.force"]))
        again = look(given, ["k.force", "k.torque"])
        for path, value in again.items():
            scale = max(1.0, np.abs(found[path]).max())
            np.testing.assert_allclose(value, found[path], atol=1e-9 * scale, err_msg=path)
    for cut in (1, 2):
        for path, value in seen[0].items():
            scale = max(1.0, np.abs(value).max())
            np.testing.assert_allclose(
                seen[cut][path], value, atol=1e-9 * scale, err_msg=f"{path}, cut {cut}"
            )


@pytest.mark.parametrize("cut", ["main", "pin", "wrist", "slide"])
def test_a_plane_loop_rubs_alike_wherever_it_is_cut(cut):
    def engine(chosen):
        s = piston_engine(0.9, 18.0, 0.2, drive="none")
        for name in ("main", "pin", "wrist", "slide"):
            if name != chosen:  # what has a given effort is in the tree
                s.friction(f"keep_{name}", s[name], viscous=0.0)
        if chosen:
            assert [joint.name for joint in grow_tree(s).cuts] == [chosen]
        return s

    names = [*RUBS, "main.acceleration", "slide.force", "slide.torque", "power_loss"]
    for name, a, b in zip(names, see(engine(cut), names), see(engine("pin"), names), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=2e-8, err_msg=name)


# -- what locks itself


@pytest.mark.parametrize("f", [0.17, 0.2, 1.0])
def test_a_block_that_locks_itself_says_so(f):
    """2 f h / L is 1.02 to 6: each newton of friction tips it by more than one."""
    s = System("drawer", planar=True)
    block = s.body("block", mass=3.0, inertia=0.1, com=(0.0, 0.75), velocity=(1.0, 0.0))
    guide = s.prismatic("guide", s.ground, block, at=(0, 0), axis=(1, 0))
    s.friction("rub", guide, coefficient=f, length=0.25)
    wanted = rf"friction `rub` in joint `guide`, coefficient {f:g}, .* at t = 0 s: .*locks itself"
    with pytest.raises(BlockError, match=wanted):
        run(s, 0.1, ["rub.force"], step=1e-4)
    # As a parameter of the same block, at a time: it slows down below the limit, and stays told.
    _, (speed,) = run(
        s, 0.05, ["guide.speed"], step=1e-4, parameters={"plant.rub.coefficient": 0.15}
    )
    assert speed[-1] == pytest.approx(1.0 - 0.05 * 0.15 * G / (1.0 - 2 * 0.15 * 0.75 / 0.25))


@pytest.mark.parametrize("number", ["coefficient", "diameter", "smoothing_speed"])
def test_numbers_set_later_must_be_those_of_a_bearing(number):
    s, main = hinge()
    s.friction("rub", main, coefficient=0.1, diameter=0.1)
    wanted = f"parameter `{number}` of `rub` is -0.1: it must be finite and "
    with pytest.raises(BlockError, match=wanted):
        run(s, 0.01, ["rub.torque"], parameters={f"plant.rub.{number}": -0.1})


@pytest.mark.parametrize(("f", "locks"), [(0.55, False), (0.65, True)])
def test_a_rod_that_pushes_too_steeply_locks(f, locks):
    """Painlevé's: pushed at the angle φ a slider without couples moves only if f tan φ < 1.

    A driven slide pushes another at right angles through a rod at 60°: f = 0.577 is the limit.
    """
    phi = float(np.radians(60.0))
    s = System("trammel", (0, 0), planar=True)
    foot, top = np.array([0.0, 0.0]), np.array([np.cos(phi), np.sin(phi)])
    down = s.body("down", mass=0.1, inertia=0.01, position=top, velocity=(0, -np.cos(phi)))
    side = s.body("side", mass=1.0, inertia=0.01, position=foot, velocity=(-np.sin(phi), 0.0))
    rod = s.body("rod", mass=0.0, inertia=0.0, position=0.5 * top, angular_velocity=-1.0,
                 velocity=(-0.5 * np.sin(phi), -0.5 * np.cos(phi)))  # fmt: skip
    press = s.prismatic("press", s.ground, down, at=top, axis=(0, 1))
    s.revolute("upper", down, rod, at=top)
    s.revolute("lower", rod, side, at=foot)
    slide = s.prismatic("slide", s.ground, side, at=foot, axis=(1, 0))
    s.driver("motor", press, f"{-float(np.cos(phi))!r} * t")
    s.force("resistance", side.marker("end"), (50.0, 0.0))
    s.friction("rub", slide, coefficient=f, length=1.0, smoothing_speed=SHARP)
    if locks:
        with pytest.raises(BlockError, match=r"friction `rub` in joint `slide`, coefficient 0\.65"):
            see(s, ["rub.force"])
        return
    load, inertia = see(s, ["rub.load", "slide.acceleration"])
    # S cos φ = 50 N + m a + f S sin φ
    wanted = (50.0 - inertia) * np.tan(phi) / (1.0 - f * np.tan(phi))
    assert load == pytest.approx(wanted, rel=1e-9)


# -- balances and outputs


def sources():
    def pendulum():
        s = System("pendulum", planar=True)
        bar = s.body("bar", mass=2.0, inertia=0.1, position=(0.5, 0.0), angular_velocity=3.0,
                     velocity=(0.0, 1.5))  # fmt: skip
        s.revolute("main", s.ground, bar, at=(0, 0))
        s.friction("rub", cast(Joint, s["main"]), coefficient=0.1, diameter=0.1)
        return s, bar

    def effort(s, bar):
        s.torque("motor", s["main"], 40.0)

    def couple(s, bar):
        s.torque("motor", bar.marker("x", (0.2, 0.1)), 40.0)

    def force(s, bar):
        s.force("motor", bar.marker("x", (0.5, 0.1)), (3.0, 40.0), frame="body")

    def actuator(s, bar):
        s.spring("motor", s.ground.marker("y", (0.3, 1.0)), bar.marker("x", (0.5, 0.0)),
                 stiffness=300.0, free_length=0.9, force=60.0)  # fmt: skip

    def winder(s, bar):
        s.torsional_spring("motor", s["main"], stiffness=3.0, torque=-40.0)

    def driver(s, bar):
        s.driver("motor", s["main"], "3 * t + t**2")

    for add in (effort, couple, force, actuator, winder, driver):
        s, bar = pendulum()
        add(s, bar)
        yield pytest.param(s, id=add.__name__)


@pytest.mark.parametrize("system", list(sources()))
def test_power_in_less_losses_is_what_energy_gains(system):
    """Over 0.1 s, while the source only puts in."""
    system.friction("given", system["main"], viscous=0.3, coulomb=0.2)
    names = ["power_in", "power_loss", "rub.power_loss", "main.speed", "efficiency"]
    names += ["kinetic_energy", "potential_energy"]
    t, (inflow, loss, rub, speed, efficiency, kinetic, potential) = run(
        system, 0.1, names, step=1e-4
    )
    given = 0.3 * speed**2 + 0.2 * np.tanh(speed / 1e-3) * speed
    np.testing.assert_allclose(loss, rub + given, rtol=1e-12)
    assert (inflow > 1.0).all()
    assert (rub > 0.1).all()
    gain = kinetic + potential
    assert gain[-1] - gain[0] == pytest.approx(simpson(inflow - loss, x=t), rel=1e-8)
    np.testing.assert_allclose(efficiency, 1.0 - loss / inflow, rtol=1e-12)


def test_efficiency_where_nothing_flows_in_or_nothing_is_lost():
    s = piston_engine(0.7, 20.0, 0.1, drive="none")
    assert see(s, ["power_in", "efficiency"]) == [0.0, 0.0]
    s = piston_engine(0.7, 20.0, 0.0, drive="none")
    assert see(s, ["power_in", "power_loss", "efficiency"]) == [0.0, 0.0, 1.0]
    braked = piston_engine(0.7, -20.0, 0.1)  # the motor takes power out
    assert see(braked, ["power_in", "efficiency"]) == [0.0, 0.0]


def test_oil_films_are_losses_too():
    s = System("rotor", (0.0, -G), planar=True)
    disc = s.body("disc", mass=5.0, inertia=0.01, position=(1e-5, 0.0), angular_velocity=300.0)
    journal = disc.marker("journal")
    film = ShortBearing(radius=0.02, length=0.01, clearance=4e-5, viscosity=0.01)
    s.bearing("film", journal, s.ground.marker("bush"), film)
    s.torque("motor", journal, 2.0)
    loss, of_film, inflow = see(s, ["power_loss", "film.power_loss", "power_in"])
    assert loss == of_film > 1.0
    assert inflow == pytest.approx(600.0)


def test_outputs_follow_inputs_without_delay():
    s = piston_engine(0.7, 20.0, 0.1, drive="none")
    s.torque("motor", s["main"], Input())
    block = s.block(outputs=["rub_main.torque", "power_in", "main.speed"])
    assert block.feedthrough == ((0,), (0,), ())


def test_a_saved_state_goes_on_bit_for_bit():
    d = Diagram("engine", step=1e-4)
    d.add(piston_engine(0.7, 20.0, 0.15, sharp=1e-3).block(outputs=list(RUBS)), name="plant")
    with Instance(d.compile()) as instance:
        instance.initialize()
        instance.run(200)
        state = instance.save()
        instance.run(150)
        first = [np.array(instance.get(f"plant.{name}")) for name in RUBS]
        instance.restore(state)
        instance.run(150)
        again = [np.array(instance.get(f"plant.{name}")) for name in RUBS]
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_exported_engine_rubs_alike(tmp_path):
    fmpy = pytest.importorskip("fmpy")
    s = piston_engine(0.7, 20.0, 0.15, sharp=1e-2)
    names = ["main.speed", "rub_slide.force", "efficiency"]
    path = s.export_fmu(tmp_path / "engine.fmu", outputs=names, step=1e-4)
    outside = fmpy.simulate_fmu(
        str(path), stop_time=0.2, output_interval=0.01, output=names,
        start_values={"rub_slide.coefficient": 0.3},
    )  # fmt: skip
    _, inside = run(s, 0.2, names, step=1e-4, parameters={"plant.rub_slide.coefficient": 0.3})
    for name, value in zip(names, inside, strict=True):
        np.testing.assert_allclose(outside[name], value[::100], rtol=1e-12, err_msg=name)
    assert np.ptp(outside["rub_slide.force"]) > 1.0


# -- what is in doubt, and what is refused


def hinge(planar=True):
    s = System("hinge", planar=planar)
    bar = s.body("bar", mass=1.0, inertia=0.1, com=(0.1, 0.0) if planar else (0.1, 0, 0))
    at, axis = ((0, 0), None) if planar else ((0, 0, 0), (0, 0, 1))
    return s, s.revolute("main", s.ground, bar, at=at, **({"axis": axis} if axis else {}))


def test_what_friction_takes():
    s, main = hinge()
    with pytest.raises(DiagramError, match=r"needs `diameter`.*a revolute joint in a plane"):
        s.friction("rub", main, coefficient=0.1)
    with pytest.raises(DiagramError, match="takes no `length`"):
        s.friction("rub", main, coefficient=0.1, diameter=0.1, length=0.1)
    with pytest.raises(DiagramError, match="`coefficient`: it follows from the reaction"):
        s.friction("rub", main, coefficient=0.1, diameter=0.1, viscous=0.1)
    with pytest.raises(DiagramError, match="no `coefficient`: give one"):
        s.friction("rub", main, diameter=0.1)
    with pytest.raises(DiagramError, match="`coefficient` of `rub` must not be negative"):
        s.friction("rub", main, coefficient=-0.1, diameter=0.1)
    with pytest.raises(DiagramError, match="`diameter` of `rub` must be positive"):
        s.friction("rub", main, coefficient=0.1, diameter=0.0)
    with pytest.raises(DiagramError, match="`middle` of `rub` is 'first' or 'second'"):
        s.friction("rub", main, coefficient=0.1, diameter=0.1, middle="third")
    s.friction("rub", main, coefficient=0.1, diameter=0.1)
    with pytest.raises(DiagramError, match="`rub` is friction from the reaction of `main` already"):
        s.friction("again", main, coefficient=0.1, diameter=0.1)
    space, main = hinge(planar=False)
    with pytest.raises(DiagramError, match=r"needs `length`.*in space"):
        space.friction("rub", main, coefficient=0.1, diameter=0.1)
    feet = space.ground.marker("foot", (1, 0, 0)), space["bar"].marker("foot", (1, 1, 0))
    bar = space.distance("bar length", *feet)
    with pytest.raises(DiagramError, match="a distance joint: only revolute, prismatic"):
        space.friction("rub", bar, coefficient=0.1, diameter=0.1, length=0.1)


def test_who_does_not_know_friction_from_reactions():
    s, main = hinge()
    s.friction("rub", main, coefficient=0.1, diameter=0.1)
    rest = s.equilibrium()
    assert rest.stability == "stable"
    with pytest.raises(DiagramError, match="friction `rub` follows from the reaction of `main`"):
        s.linearize()
