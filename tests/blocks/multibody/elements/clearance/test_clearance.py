"""Revolutes with clearance and compliant contacts, against integrations of their own equations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import simpson, solve_ivp

from biella import BiellaWarning, BlockError, Diagram, DiagramError, simulate
from biella.blocks.multibody import (
    HuntCrossley,
    LankaraniNikravesh,
    RigidContact,
    System,
    hertz_stiffness,
)
from biella.blocks.multibody.elements.clearance._clearance import OUTPUTS

from ...events import diagram_of, locate

pytestmark = pytest.mark.engine

CLEARANCE, RADIUS, MASS = 1e-3, 0.01, 2.0
MODES: dict[str, dict[str, Any]] = {
    "continuous": {},
    "internal": {"mode": "internal"},
    "substeps": {"mode": "internal", "substeps": 4},
    "implicit": {"mode": "internal", "integrator": "implicit"},
}


def run(system, until, outputs, *, step=1e-6, parameters=None, **block):
    d = Diagram("mechanism", step=step)
    d.add(system.block([], outputs, **block), name="plant")
    result = simulate(d, until, parameters=parameters)
    return result.t, [result[f"plant.{name}"] for name in outputs]


def ball(contact, *, offset=(0.0, 0.0), velocity=(0.0, 0.0), gravity=(0.0, 0.0), mass=MASS):
    """A round body in a hole of the ground."""
    s = System("ball", gravity, planar=True)
    body = s.body("ball", mass=mass, inertia=1e-3, position=offset, velocity=velocity)
    sizes: dict[str, Any] = {"clearance": CLEARANCE, "pin_radius": RADIUS, "contact": contact}
    s.clearance_revolute("pin", body.marker("middle"), s.ground.marker("hole"), **sizes)
    return s


# -- one impact


def impact(stiffness, exponent, damping, speed):
    """What an impact leaves of its speed, integrated from m δ̈ = -K δⁿ (1 + D δ̇) ≤ 0."""

    def slope(_, y):
        force = stiffness * max(y[0], 0.0) ** exponent * (1.0 + damping * y[1])
        return [y[1], -max(force, 0.0) / MASS]

    def leaves(_, y):
        return y[0]

    leaves.terminal, leaves.direction = True, -1  # type: ignore[attr-defined]
    done = solve_ivp(slope, (0, 1), [0.0, speed], "DOP853", None, events=leaves, rtol=1e-11,
                     atol=1e-15, max_step=1e-5)  # fmt: skip
    return -done.y[1, -1] / speed


@pytest.mark.parametrize("options", MODES.values(), ids=list(MODES))
@pytest.mark.parametrize(
    ("contact", "damping"),
    [
        (HuntCrossley(stiffness=1e9, damping=0.3), 0.3),
        (HuntCrossley(stiffness=1e8, exponent=1.0, damping=1.2), 1.2),
        (LankaraniNikravesh(stiffness=1e9, restitution=0.9), 0.75 * (1 - 0.81) / 0.5),
        (LankaraniNikravesh(stiffness=1e9, restitution=0.2), 0.75 * (1 - 0.04) / 0.5),
    ],
    ids=["hunt", "linear", "lankarani", "lankarani_0.2"],
)
def test_an_impact_leaves_what_its_equation_says(contact, damping, options):
    """Integrated apart from the engine. A linear spring has a corner, which costs an order."""
    speed = 0.5
    wanted = impact(contact.stiffness, contact.exponent, damping, speed)
    s = ball(contact, velocity=(0.6 * speed, 0.8 * speed))
    _, (velocity, gap) = run(s, 3.5e-3, ["ball.velocity", "pin.gap"], step=2e-6, **options)
    assert (gap < 0).sum() > 200
    assert gap[-1] > 0
    tolerance = 2e-5 if contact.exponent > 1 else 2e-4
    assert np.linalg.norm(velocity[-1]) / speed == pytest.approx(wanted, rel=tolerance)
    if isinstance(contact, HuntCrossley):
        assert contact.restitution(speed) == pytest.approx(wanted, rel=1e-8)
    else:
        assert contact.effective_restitution == pytest.approx(wanted, rel=1e-8)


def test_lankarani_and_nikravesh_hold_near_one_only():
    """Published: made for e near 1. What an impact leaves, and by how much it misses e."""
    for e, left in ((0.99, 0.9901), (0.9, 0.9132), (0.7, 0.7960), (0.5, 0.7252), (0.0, 0.6630)):
        found = LankaraniNikravesh(stiffness=1e9, restitution=e).effective_restitution
        assert found == pytest.approx(left, abs=1e-4)


def test_lankarani_takes_each_impact_at_its_own_speed():
    """A ball that bounces to and fro leaves the same part of its speed each time."""
    contact = LankaraniNikravesh(stiffness=1e10, restitution=0.8)
    _, (velocity, gap) = run(
        ball(contact, velocity=(0.0, 1.0)), 2e-2, ["ball.velocity", "pin.gap"], step=1e-6
    )
    ends = np.flatnonzero((gap[:-1] < 0) & (gap[1:] >= 0)) + 1
    speeds = np.array([1.0, *np.abs(velocity[ends, 1])])
    assert len(speeds) > 4
    np.testing.assert_allclose(speeds[1:] / speeds[:-1], contact.effective_restitution, rtol=1e-4)


def test_a_contact_that_is_pressed_harder_later_is_not_damped_without_bound():
    """It begins at 2 mm/s and is then pushed in by 500 N: still K δⁿ, give or take a half."""
    contact = LankaraniNikravesh(stiffness=1e9, restitution=0.5)
    s = ball(contact, offset=(CLEARANCE - 1e-8, 0.0), velocity=(2e-3, 0.0))
    s.force("push", s["ball.middle"], ("500 * min(1, 1e4 * t)", 0.0))
    _, (normal, gap) = run(s, 3e-3, ["pin.normal_force", "pin.gap"])
    spring = contact.stiffness * np.maximum(-gap, 0.0) ** 1.5
    assert (normal <= 1.6 * spring + 1e-6).all()
    assert normal.max() < 1200.0


@pytest.mark.parametrize("exponent", [1.0, 1.5])
def test_a_load_sinks_in_by_what_the_stiffness_says(exponent):
    contact = HuntCrossley(stiffness=2e7, exponent=exponent, damping=60.0)
    s = ball(contact, offset=(0.0, -CLEARANCE), gravity=(0.0, -9.81))
    _, (gap, force, offset, energy) = run(
        s, 0.4, ["pin.gap", "pin.force", "pin.offset", "potential_energy"], step=2e-5
    )
    depth = (MASS * 9.81 / contact.stiffness) ** (1 / exponent)
    assert -gap[-1] == pytest.approx(depth, rel=1e-4)
    np.testing.assert_allclose(force[-1], [0.0, MASS * 9.81, 0.0], atol=1e-3)
    np.testing.assert_allclose(offset[-1], [0.0, -CLEARANCE - depth], atol=1e-4 * depth)
    stored = MASS * 9.81 * depth / (exponent + 1)
    assert energy[-1] - MASS * 9.81 * offset[-1, 1] == pytest.approx(stored, rel=1e-3)


# -- two bodies, off their centers, with friction


def pair(contact, given):
    """Two free bodies; the pin and the hole are away from their centers, in turned markers."""
    s = System("pair", (0, 0), planar=True)
    markers = []
    for name, mass, inertia, (at, angle, velocity, spin), arm, turn in given:
        c, si = math.cos(angle), math.sin(angle)
        lever = np.array([c * arm[0] - si * arm[1], si * arm[0] + c * arm[1]])
        body = s.body(
            name, mass=mass, inertia=inertia, position=np.subtract(at, lever), rotation=angle,
            velocity=np.subtract(velocity, spin * np.array([-lever[1], lever[0]])),
            angular_velocity=spin, free=True,
        )  # fmt: skip
        markers.append(body.marker("seat", arm, rotation=turn))
    s.clearance_revolute("pin", *markers, clearance=CLEARANCE, pin_radius=RADIUS, contact=contact)
    return s


JOINT_FRICTION = HuntCrossley(stiffness=1e9, damping=0.4, friction=0.3, slip_speed=0.02)
PAIR = (
    ("shaft", 1.0, 2e-3, ((0.3007, 0.1001), 0.4, (0.8, 0.5), 30.0), (0.02, -0.01), 0.3),
    ("rod", 1.5, 5e-3, ((0.3, 0.1), -0.7, (-0.2, 0.1), -5.0), (-0.03, 0.02), -1.1),
)


def pair_by_hand(contact, given, times):
    """The same motion from Newton and Euler, written once more."""
    start = []
    for _, _, _, (at, angle, velocity, spin), arm, _ in given:
        c, si = math.cos(angle), math.sin(angle)
        lever = np.array([c * arm[0] - si * arm[1], si * arm[0] + c * arm[1]])
        start += [*np.subtract(at, lever), angle]
        start += [*np.subtract(velocity, spin * np.array([-lever[1], lever[0]])), spin]

    def slope(_, y):
        ends = []
        for (_, _, _, _, arm, _), (x, z, angle, vx, vz, spin) in zip(
            given, (y[:6], y[6:]), strict=True
        ):
            c, si = math.cos(angle), math.sin(angle)
            lever = np.array([c * arm[0] - si * arm[1], si * arm[0] + c * arm[1]])
            rate = np.array([vx, vz]) + spin * np.array([-lever[1], lever[0]])
            ends.append((np.array([x, z]), np.array([x, z]) + lever, rate, spin))
        (com_p, P, V, w_p), (com_h, H, U, w_h) = ends
        away = math.hypot(*(P - H))
        n = (P - H) / away
        t = np.array([-n[1], n[0]])
        depth = away - CLEARANCE
        force = np.zeros(2)
        touch = P + RADIUS * n
        if depth > 0:
            N = contact.stiffness * depth**contact.exponent * (1 + contact.damping * n @ (V - U))
            slip = t @ (V - U) + RADIUS * w_p - (RADIUS + away) * w_h
            N = max(N, 0.0)
            force = -N * n - contact.friction * N * math.tanh(slip / contact.slip_speed) * t
        out = []
        for (_, mass, inertia, *_), com, sign, state in (
            (given[0], com_p, 1.0, y[:6]),
            (given[1], com_h, -1.0, y[6:]),
        ):
            arm = touch - com
            moment = sign * (arm[0] * force[1] - arm[1] * force[0])
            out += [*state[3:], *(sign * force / mass), moment / inertia]
        return out

    # No step may pass over a whole contact.
    return solve_ivp(
        slope, (0, times[-1]), start, "DOP853", times, rtol=1e-10, atol=1e-13, max_step=2e-6
    ).y


@pytest.mark.parametrize("name", ["continuous", "implicit"])
def test_two_bodies_move_as_newton_and_euler_say(name):
    """Several impacts with friction, off the centers of both."""
    what = ("position", "velocity", "angular_velocity")
    outputs = [f"{body}.{quantity}" for body in ("shaft", "rod") for quantity in what]
    outputs += ["pin.gap", "pin.slip"]
    t, (p_s, v_s, w_s, p_r, v_r, w_r, gap, slip) = run(
        pair(JOINT_FRICTION, PAIR), 4e-3, outputs, step=1e-6, **MODES[name]
    )
    y = pair_by_hand(JOINT_FRICTION, PAIR, t)
    assert ((gap[:-1] >= 0) & (gap[1:] < 0)).sum() >= 2
    assert np.abs(slip[gap < 0]).max() > 0.1
    # RK4 errs where a contact begins; generalized-α by the square of its steps too.
    tolerance = 1e-6 if name == "continuous" else 1e-4
    for found, wanted in (
        (p_s[:, :2].T, y[0:2]), (v_s[:, :2].T, y[3:5]), (w_s[:, 2], y[5]),
        (p_r[:, :2].T, y[6:8]), (v_r[:, :2].T, y[9:11]), (w_r[:, 2], y[11]),
    ):  # fmt: skip
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * scale)


def test_momentum_stays_and_energy_goes_by_friction_and_damping():
    what = ("position", "velocity", "angular_velocity")
    outputs = [f"{body}.{quantity}" for body in ("shaft", "rod") for quantity in what]
    outputs += ["kinetic_energy", "potential_energy", "power_loss"]
    outputs += ["pin.normal_force", "pin.force", "pin.slip", "pin.gap"]
    t, (p_s, v_s, w_s, p_r, v_r, w_r, kinetic, potential, loss, N, F, slip, gap) = run(
        pair(JOINT_FRICTION, PAIR), 4e-3, outputs, step=1e-6
    )
    linear = 1.0 * v_s + 1.5 * v_r
    angular = np.cross(p_s, v_s) + 1.5 * np.cross(p_r, v_r) + 2e-3 * w_s + 5e-3 * w_r
    np.testing.assert_allclose(linear, np.tile(linear[0], (len(t), 1)), atol=1e-11)
    np.testing.assert_allclose(angular, np.tile(angular[0], (len(t), 1)), atol=1e-11)
    depth = np.maximum(-gap, 0.0)
    damped = (N - JOINT_FRICTION.stiffness * depth**1.5) * np.gradient(-gap, t)
    across = np.sqrt(np.maximum((F**2).sum(axis=1) - N**2, 0.0))
    lost = simpson(damped, x=t) + simpson(across * np.abs(slip), x=t)
    energy = kinetic + potential
    assert lost > 0.05
    assert energy[0] - energy[-1] == pytest.approx(lost, rel=1e-3)
    assert simpson(loss, x=t) == pytest.approx(lost, rel=1e-3)
    assert np.diff(energy).max() < 1e-6 * energy[0]


def test_a_contact_never_pulls():
    """Torn apart faster than 1 / damping, the surfaces let go before the gap opens."""
    contact = HuntCrossley(stiffness=1e9, damping=0.4, friction=0.3)
    for speed, pushes in ((-5.0, False), (-2.4, True)):
        s = ball(contact, offset=(1.1 * CLEARANCE, 0.0), velocity=(speed, 1.0))
        _, (normal, force, gap, touches) = run(
            s, 1e-6, ["pin.normal_force", "pin.force", "pin.gap", "pin.contact"]
        )
        assert gap[0] == pytest.approx(-0.1 * CLEARANCE)
        assert touches[0]
        assert (normal[0] > 0.0) == pushes
        assert force[0].any() == pushes


@settings(max_examples=25)
@given(data=st.data())
def test_outputs_are_those_of_the_two_markers(data):
    """Turned markers on turned bodies; within the clearance and beyond it."""
    number = st.floats(-1.0, 1.0)
    numbers = [data.draw(number) for _ in range(16)]
    direction, part = math.pi * numbers[0], 1.0 + 0.4 * numbers[1]
    hole = np.array([0.2 * numbers[2], 0.2 * numbers[3]])
    c = part * CLEARANCE * np.array([math.cos(direction), math.sin(direction)])
    states = [
        (hole + c, numbers[4] * 3, np.array(numbers[5:7]), 40 * numbers[7]),
        (hole, numbers[8] * 3, np.array(numbers[9:11]), 40 * numbers[11]),
    ]
    turns = [2 * numbers[12], 2 * numbers[13]]
    rows = [
        (name, 1.0, 1e-2, state, (0.05 * numbers[14], 0.05 * numbers[15]), turn)
        for name, state, turn in zip(("shaft", "rod"), states, turns, strict=True)
    ]
    names = [f"pin.{name}" for name in OUTPUTS]
    _, values = run(pair(JOINT_FRICTION, rows), 1e-9, names, step=1e-9)
    found = dict(zip(OUTPUTS, (value[0] for value in values), strict=True))

    n = c / np.linalg.norm(c)
    t = np.array([-n[1], n[0]])
    rate = states[0][2] - states[1][2]
    axes = [state[1] + turn for state, turn in zip(states, turns, strict=True)]
    inward = np.array(
        [[math.cos(axes[1]), math.sin(axes[1])], [-math.sin(axes[1]), math.cos(axes[1])]]
    )
    np.testing.assert_allclose(found["offset"], inward @ c, atol=1e-14)
    assert found["gap"] == pytest.approx(CLEARANCE * (1 - part), abs=1e-14)
    for name, axis in (("angle", axes[1]), ("angle_on_pin", axes[0])):
        assert math.cos(found[name] - (direction - axis)) == pytest.approx(1.0, abs=1e-10)
    depth = max(part - 1.0, 0.0) * CLEARANCE
    slip = t @ rate + RADIUS * states[0][3] - (RADIUS + CLEARANCE + depth) * states[1][3]
    assert found["slip"] == pytest.approx(slip, abs=1e-9)
    normal = max(
        0.0, JOINT_FRICTION.stiffness * depth**1.5 * (1 + JOINT_FRICTION.damping * n @ rate)
    )
    assert found["normal_force"] == pytest.approx(normal, rel=1e-6, abs=1e-6)
    force = (
        -normal * n
        - JOINT_FRICTION.friction * normal * math.tanh(slip / JOINT_FRICTION.slip_speed) * t
    )
    np.testing.assert_allclose(found["force"], [*force, 0.0], rtol=1e-6, atol=1e-6)
    if abs(part - 1.0) > 1e-9:
        assert found["contact"] == (depth > 0)


# -- stiffness: how large a step, and the rigid limit


def test_bounces_tend_to_those_of_a_rigid_floor():
    """In the hole under its weight: t = Σ 2 eᵏ v / g up to the fifth impact, as K grows."""
    v, g, e = 0.08, 9.81, 0.8
    x = 0.75 * (1 - e**2)
    r = LankaraniNikravesh(stiffness=1.0, restitution=e).effective_restitution
    assert x * (1 + r) == pytest.approx(math.log((1 + x) / (1 - x * r)))
    wanted = 2 * v / g * np.cumsum(r ** np.arange(5))
    errors = []
    for stiffness, step in ((1e9, 4e-6), (1e10, 2e-6), (1e11, 1e-6)):
        contact = LankaraniNikravesh(stiffness=stiffness, restitution=e)
        s = ball(contact, offset=(0, -CLEARANCE), velocity=(0.0, v), gravity=(0.0, -g))
        _, (gap,) = run(s, 0.1, ["pin.gap"], step=step)
        hits = step * (np.flatnonzero((gap[:-1] >= 0) & (gap[1:] < 0)) + 1)
        hits = hits[hits > 1e-3][:5]
        errors.append(np.abs(hits - wanted).max())
    assert errors[0] > errors[1] > errors[2]
    # A contact lasts 2.94 δ / v, as K^-0.4: from one K to the next by 2.5.
    assert errors[0] / errors[1] == pytest.approx(10**0.4, rel=0.1)
    assert errors[2] < 0.02 * wanted[-1]


def test_the_largest_stable_step_counts_contacts_that_do_not_touch_yet():
    contact = HuntCrossley(stiffness=1e8, exponent=1.0)
    s = ball(contact)
    assert s.largest_stable_step() == pytest.approx(2.78 * math.sqrt(MASS / 1e8), rel=1e-6)
    hertz = ball(HuntCrossley(stiffness=1e10))
    tangent = 1.5 * 1e10 * math.sqrt(0.01 * CLEARANCE)
    assert hertz.largest_stable_step() == pytest.approx(2.78 * math.sqrt(MASS / tangent), rel=1e-6)
    assert ball(RigidContact()).largest_stable_step() == math.inf


@pytest.mark.parametrize(("name", "step"), [("continuous", 1e-4), ("implicit", 1e-4)])
def test_steps_that_miss_a_contact_are_reported(name, step):
    s = ball(HuntCrossley(stiffness=1e8, exponent=1.0))
    with pytest.warns(BiellaWarning, match=r"too coarse for contacts.*last about 0\.00039 s"):
        run(s, 1e-3, ["pin.gap"], step=step, **MODES[name])
    run(s, 1e-3, ["pin.gap"], step=3e-5, **MODES[name])


@pytest.mark.filterwarnings("ignore:the estimated error")  # of coarse steps, and real
@pytest.mark.filterwarnings("ignore:.*too coarse for contacts")
def test_implicit_steps_go_on_where_a_contact_begins_and_ends_in_one():
    """Tangents from before a contact know nothing of it: they are renewed within the step."""
    s = ball(HuntCrossley(stiffness=1e8, exponent=1.0, damping=0.3), velocity=(1.0, 0.0))
    with pytest.warns(BiellaWarning, match="steps are too coarse for `pin`: .* at most 6 steps"):
        _, (gap,) = run(s, 0.05, ["pin.gap"], step=1e-3, **MODES["implicit"])
    assert (gap < 0).any()
    assert gap.min() > -CLEARANCE


def test_hertz_has_its_limits():
    """A ball on a plane, K = 4/3 E* √R; and steel on steel along a length, π/4 · 115 GPa · L."""
    reduced = 210e9 / (2 * (1 - 0.09))
    assert hertz_stiffness(0.01, 1e6) == pytest.approx(4 / 3 * reduced * 0.1, rel=1e-6)
    assert hertz_stiffness(0.01, 0.0105, length=0.02) == pytest.approx(math.pi / 4 * reduced * 0.02)
    nearer = hertz_stiffness(0.01, 0.0101) / hertz_stiffness(0.01, 0.0102)
    assert nearer == pytest.approx(math.sqrt((1.01 / 0.01) / (1.02 / 0.02)))


# -- numbers and errors


def test_numbers_are_set_before_a_run():
    given = HuntCrossley(stiffness=1e9)
    other = HuntCrossley(stiffness=2e9, exponent=1.4, damping=0.5, friction=0.2, slip_speed=0.03)
    start = {"velocity": (0.5, 0.3), "offset": (0.0005, 0.0)}
    outputs = ["ball.position", "ball.angular_velocity"]
    changed = {f"plant.pin.{name}": getattr(other, name) for name in other.order}
    changed |= {"plant.pin.clearance": 0.8e-3, "plant.pin.pin_radius": 0.02}
    made = System("ball", (0, 0), planar=True)
    body = made.body("ball", mass=MASS, inertia=1e-3, position=start["offset"],
                     velocity=start["velocity"])  # fmt: skip
    made.clearance_revolute("pin", body.marker("middle"), made.ground.marker("hole"),
                            clearance=0.8e-3, pin_radius=0.02, contact=other)  # fmt: skip
    _, wanted = run(made, 3e-3, outputs)
    _, found = run(ball(given, **start), 3e-3, outputs, parameters=changed)
    _, without = run(ball(given, **start), 3e-3, outputs)
    assert all(map(np.array_equal, found, wanted))
    assert np.abs(wanted[1]).max() > 1.0
    assert not np.allclose(without[0], wanted[0], rtol=0, atol=1e-5)


def test_an_fmu_has_the_contact_and_its_memory(tmp_path):
    fmpy = pytest.importorskip("fmpy")
    s = ball(LankaraniNikravesh(stiffness=1e9), velocity=(0.5, 0.2))
    outputs = ["pin.gap", "pin.normal_force", "pin.contact"]
    path = s.export_fmu(tmp_path / "ball.fmu", outputs=outputs, step=1e-5, sources=False)
    outside = fmpy.simulate_fmu(
        str(path), stop_time=0.01, output_interval=1e-4, start_values={"pin.restitution": 0.6}
    )
    _, (gap, normal, touches) = run(
        s, 0.01, outputs, step=1e-5, parameters={"plant.pin.restitution": 0.6}
    )
    assert np.array_equal(outside["pin.gap"], gap[::10])
    assert np.array_equal(outside["pin.normal_force"], normal[::10])
    assert np.array_equal(outside["pin.contact"], touches[::10])
    assert outside["pin.contact"].dtype == bool


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [("clearance", 0.0, "finite and positive"), ("stiffness", -1.0, "finite and positive"),
     ("exponent", 0.5, "finite and at least 1"), ("restitution", 1.1, "between 0 and 1"),
     ("slip_speed", 0.0, "finite and positive"), ("pin_radius", -1.0, "finite and positive"),
     ("friction", -0.1, "finite and not negative"), ("slowest_impact", 0.0, "finite and positive")],
)  # fmt: skip
def test_a_number_that_makes_no_contact_is_refused_by_name(name, value, allowed):
    s = ball(LankaraniNikravesh(stiffness=1e9))
    text = f"parameter `{name}` of `pin` is {value:g}: it must be {allowed}\\."
    with pytest.raises(BlockError, match=text):
        run(s, 1e-5, ["pin.gap"], parameters={f"plant.pin.{name}": value})


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: HuntCrossley(stiffness=-1.0), "`stiffness` of HuntCrossley is positive"),
        (lambda: HuntCrossley(stiffness=1.0, exponent=0.9), "`exponent`.*at least 1"),
        (lambda: HuntCrossley(stiffness=1.0, damping=-1), "`damping`.*at least 0"),
        (lambda: HuntCrossley(stiffness=1.0, friction=-1), "`friction`.*at least 0"),
        (lambda: HuntCrossley(stiffness=1.0, slip_speed=0), "`slip_speed`.*positive"),
        (lambda: LankaraniNikravesh(stiffness=1.0, restitution=1.2), "between 0 and 1, got 1.2"),
        (lambda: LankaraniNikravesh(stiffness=1.0, slowest_impact=0), "`slowest_impact`"),
        (lambda: RigidContact(restitution=-0.1), "`restitution` of RigidContact"),
        (lambda: RigidContact(tangential_restitution=2), "between -1 and 1"),
        (lambda: hertz_stiffness(0.01, 0.01), "larger than its pin"),
        (lambda: HuntCrossley(stiffness="hard"), "requires numbers, got 'hard'"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_contact_law(make, text):
    with pytest.raises(DiagramError, match=text):
        make()


def test_what_is_no_revolute_with_clearance():
    s = System("ball", planar=True)
    a, b = s.body("ball", mass=1.0, inertia=1.0).marker("a"), s.ground.marker("b")
    law = HuntCrossley(stiffness=1e9)
    sizes: dict[str, Any] = {"clearance": 1e-3, "pin_radius": 0.01, "contact": law}
    with pytest.raises(DiagramError, match=r"`clearance` of `pin` is positive.*s\.revolute"):
        s.clearance_revolute("pin", a, b, **{**sizes, "clearance": 0.0})
    with pytest.raises(DiagramError, match="`pin_radius` of `pin` is positive"):
        s.clearance_revolute("pin", a, b, **{**sizes, "pin_radius": 0.0})
    with pytest.raises(DiagramError, match=r"is a HuntCrossley, a Lank.*got 1e9|got 1000000000"):
        s.clearance_revolute("pin", a, b, **{**sizes, "contact": 1e9})
    with pytest.raises(DiagramError, match="no keyword `radius`"):
        s.clearance_revolute("pin", a, b, **sizes, radius=1.0)  # type: ignore[call-arg]
    space = System("space")
    ends = space.body("ball", mass=1.0, inertia=1.0).marker("a"), space.ground.marker("b")
    with pytest.raises(DiagramError, match=r"planar systems only.*planar=True"):
        space.clearance_revolute("pin", *ends, **sizes)


def test_rigid_contacts_and_friction_from_reactions_do_not_go_together():
    s = System("pair", planar=True)
    arm = s.body("arm", mass=1.0, inertia=0.1)
    hinge = s.revolute("hinge", s.ground, arm, at=(-1.0, 0.0))
    s.friction("rub", hinge, coefficient=0.1, diameter=0.02)
    ends = arm.marker("pin"), s.ground.marker("hole")
    sizes: dict[str, Any] = {"clearance": 1e-3, "pin_radius": 0.01}
    s.clearance_revolute("pin", *ends, contact=RigidContact(), **sizes)
    with pytest.raises(DiagramError, match=r"`pin` has a RigidContact and `rub` is friction"):
        s.block(mode="internal")


def test_what_only_the_engine_knows_says_so():
    s = ball(HuntCrossley(stiffness=1e9), gravity=(0.0, -9.81))
    with pytest.raises(
        DiagramError, match=r"`pin` is a revolute with clearance.*simulate the system"
    ):
        s.equilibrium()


def test_it_is_drawn():
    names = [text.get_text() for text in pair(JOINT_FRICTION, PAIR).draw().figure.axes[0].texts]
    assert "pin" in names


def test_contacts_begin_and_end_within_a_tick():
    """A linear contact lasts half a period; the ball then flies 2 clearances to the other side.

    At 1 m/s, and with states right to some 1e-12 m, events are located to 1e-10 s.
    """
    s = ball(HuntCrossley(stiffness=MASS * 1e6, exponent=1.0), velocity=(1.0, 0.0))
    found = locate(diagram_of(s, step=1e-4), 0.02)
    lasts, flies = np.pi / 1e3, 2 * CLEARANCE
    first = CLEARANCE + np.arange(len(found.times) // 2) * (lasts + flies)
    expected = np.column_stack([first, first + lasts]).ravel()
    assert len(found.times) == 8 and found.unlocated == 0
    assert found.times == pytest.approx(expected, abs=1e-10)


def test_a_damped_contact_ends_where_the_surfaces_part():
    """Against an integration of δ̈ = -K δ (1 + D δ̇) / m to 1e-12."""
    s = ball(HuntCrossley(stiffness=2e6, exponent=1.0, damping=3.0), velocity=(1.0, 0.0))

    def slope(t, y):
        return y[1], -1e6 * y[0] * (1 + 3.0 * y[1])

    end = solve_ivp(
        slope, (0, 0.01), (0.0, 1.0), rtol=1e-12, atol=1e-15, method="DOP853",
        events=lambda t, y: y[0] if t > 0 else 1.0,
    )  # fmt: skip
    leaves = end.t_events[0][0]
    found = locate(diagram_of(s, step=1e-4), 0.005)
    assert found.times[[0, -1]] == pytest.approx([CLEARANCE, CLEARANCE + leaves], abs=1e-9)
