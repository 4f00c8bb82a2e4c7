"""Rigid contacts of a pin in a hole, against closed forms, equations of their own and links."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.special import ellipk

from biella import BiellaWarning, BlockError, Diagram, DiagramError, simulate
from biella.blocks.multibody import HuntCrossley, Input, Linear, RigidContact, System
from biella.scheduler.engine import Instance

pytestmark = pytest.mark.engine

CLEARANCE, RADIUS, MASS, INERTIA, GRAVITY = 0.1, 0.02, 2.0, 3e-4, 9.81


def run(system, until, outputs, *, step=1e-3, parameters=None, **options):
    d = Diagram("mechanism", step=step)
    d.add(system.block([], outputs, mode="own_step", **options), name="plant")
    result = simulate(d, until, parameters=parameters)
    return result.t, [result[f"plant.{name}"] for name in outputs]


def ball(contact, *, offset=(0.0, 0.0), velocity=(0.0, 0.0), spin=0.0, gravity=GRAVITY):
    """A round body in a hole of the ground."""
    s = System("ball", (0.0, -gravity), planar=True)
    start = {"position": offset, "velocity": velocity, "angular_velocity": spin}
    body = s.body("ball", mass=MASS, inertia=INERTIA, **start)
    sizes = {"clearance": CLEARANCE, "pin_radius": RADIUS, "contact": contact}
    s.clearance_revolute("pin", body.marker("middle"), s.ground.marker("hole"), **sizes)
    return s


ENERGY = ["kinetic_energy", "potential_energy"]
FALL = math.sqrt(2.0 * CLEARANCE / GRAVITY)
"""From the middle of the hole to its bottom."""


# -- flight and impact


def test_bounces_are_those_of_the_closed_form():
    e, until = 0.7, 0.75  # they are over at 0.81 s
    outputs = ["ball.position", "pin.impacts", "pin.impulse", "pin.gap"]
    t, (place, impacts, impulse, gap) = run(ball(RigidContact(restitution=e)), until, outputs)
    speed = GRAVITY * FALL
    hits = [FALL]
    while hits[-1] < until:
        hits.append(hits[-1] + 2.0 * e ** len(hits) * speed / GRAVITY)
    count = np.searchsorted(hits, t, side="right")  # how many before each time
    assert np.array_equal(impacts, count)
    # One flight after another, from a surface at -CLEARANCE with the speed eⁿ v.
    before = np.array([0.0, *hits])[count]
    left = np.where(count == 0, 0.0, e**count * speed)
    height = np.where(count == 0, CLEARANCE, 0.0)
    since = t - before
    wanted = height + left * since - 0.5 * GRAVITY * since**2
    # Parabolas are exact for Runge–Kutta; an impact is located to 1e-13 of the clearance.
    np.testing.assert_allclose(place[:, 1] + CLEARANCE, wanted, rtol=0, atol=1e-11)
    np.testing.assert_allclose(gap, wanted, rtol=0, atol=1e-11)
    wanted = MASS * speed * np.array([sum((1 + e) * e**k for k in range(n)) for n in count])
    np.testing.assert_allclose(impulse, wanted, rtol=1e-9)


def test_full_restitution_keeps_the_energy():
    # Many bounces all around the hole, oblique ones too: nothing is lost but by rounding.
    s = ball(RigidContact(restitution=1.0), offset=(0.03, 0.01), velocity=(1.0, 0.5))
    _, (kinetic, potential, impacts, contact) = run(
        s, 3.0, [*ENERGY, "pin.impacts", "pin.contact"]
    )
    assert impacts[-1] > 15
    assert not contact.any()
    assert np.ptp(kinetic + potential) < 1e-11 * kinetic.max()


@pytest.mark.parametrize("step", [1e-3, 1e-2])
@pytest.mark.parametrize("e", [0.0, 0.5, 0.9])
def test_a_chattering_sequence_ends_in_contact(e, step):
    until = 3.5
    t, (contact, normal, impacts, gap) = run(
        ball(RigidContact(restitution=e)), until,
        ["pin.contact", "pin.normal_force", "pin.impacts", "pin.gap"], step=step,
    )  # fmt: skip
    # Infinitely many bounces, over at the fall plus 2 v e / (1 - e) / g. It ends where flights are
    # shorter than a tenth of a step: up to 0.1 / (1 - e) steps of the sum are left out.
    end = FALL * (1.0 + 2.0 * e / (1.0 - e))
    first = t[np.argmax(contact)]
    assert end - 0.1 / (1.0 - e) * step <= first <= end + step
    assert contact[t >= first].all()
    np.testing.assert_allclose(normal[t >= first], MASS * GRAVITY, rtol=1e-10)
    assert np.abs(gap[t >= first]).max() < 1e-15
    flights = math.log(0.1 * step / (2.0 * FALL)) / math.log(e) if e else 0.0
    assert impacts[-1] == pytest.approx(1.0 + math.ceil(flights), abs=1.0)


def test_impacts_keep_the_order_of_the_integrator():
    # A spring aside makes flights that no polynomial is. The reference finds impacts by itself.
    anchor, stiffness, length, e = np.array([0.25, 0.1]), 400.0, 0.1, 0.8
    until, v0 = 0.4, np.array([0.6, 0.9])

    def slope(_, y):
        d = anchor - y[:2]
        away = np.hypot(*d)
        pull = stiffness * (away - length) / away * d / MASS
        return [y[2], y[3], pull[0], pull[1] - GRAVITY]

    def meets(_, y):
        return CLEARANCE - np.hypot(y[0], y[1])

    meets.terminal, meets.direction = True, -1.0
    at, y, hits = 0.0, np.array([0.0, 0.0, *v0]), 0
    while True:
        part = solve_ivp(
            slope, (at, until), y, method="DOP853", rtol=1e-13, atol=1e-13, events=meets
        )
        y, at = part.y[:, -1].copy(), part.t[-1]
        if not part.t_events[0].size:
            break
        n = y[:2] / np.hypot(*y[:2])
        y[2:] -= (1.0 + e) * (n @ y[2:]) * n
        hits += 1
    assert hits >= 4
    errors = []
    for step in (2e-3, 1e-3, 5e-4):
        s = ball(RigidContact(restitution=e), velocity=v0)
        middle, far = s["ball"].markers["middle"], s.ground.marker("anchor", anchor)
        s.spring("spring", middle, far, stiffness=stiffness, free_length=length)
        _, (place, impacts) = run(s, until, ["ball.position", "pin.impacts"], step=step)
        assert impacts[-1] == hits
        errors.append(np.abs(place[-1, :2] - y[:2]).max())
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    # Steps that end at impacts are of many sizes, so the slope is not smooth.
    assert orders.min() > 3.5, (errors, orders)
    assert errors[-1] < 1e-8


# -- sliding


def test_a_pin_slides_in_its_hole_like_a_pendulum_of_the_clearance():
    angle = 2.0
    offset = CLEARANCE * np.array([math.sin(angle - math.pi), -math.cos(angle - math.pi)])
    start = {"offset": offset, "velocity": (0.0, 0.0)}
    amplitude = math.pi - angle
    period = 4.0 * math.sqrt(CLEARANCE / GRAVITY) * ellipk(math.sin(0.5 * amplitude) ** 2)
    t, (place, contact, normal, gap, slid, work) = run(
        ball(RigidContact(), **start), 1.001 * period,
        ["pin.angle", "pin.contact", "pin.normal_force", "pin.gap", "pin.sliding",
         "pin.sliding_work"], step=1e-4,
    )  # fmt: skip
    theta = place + 0.5 * math.pi  # from the bottom
    assert contact.all()
    assert np.abs(gap).max() < 1e-15
    # Once around: back where it was, for the first time, after the period.
    assert CubicSpline(t, theta)(period) == pytest.approx(theta[0], abs=1e-9)
    assert theta[(t > 0.01) & (t < 0.99 * period)].min() > theta[0]
    # N = m g (3 cos θ - 2 cos θ₀)
    wanted = MASS * GRAVITY * (3.0 * np.cos(theta) - 2.0 * math.cos(amplitude))
    np.testing.assert_allclose(normal, wanted, rtol=0, atol=1e-7)
    assert np.interp(period, t, slid) == pytest.approx(4.0 * amplitude * CLEARANCE, rel=1e-6)
    # ∫ N |slip| dt = 4 e ∫ N dθ over a quarter.
    quarter = 3.0 * math.sin(amplitude) - 2.0 * amplitude * math.cos(amplitude)
    assert np.interp(period, t, work) == pytest.approx(
        4.0 * CLEARANCE * MASS * GRAVITY * quarter, rel=1e-6
    )


@pytest.mark.parametrize("factor", [2.6, 3.5, 4.4])
def test_a_pin_leaves_where_nothing_presses_it_and_lands_on_a_parabola(factor):
    # Thrown round the inside with v₀² = factor · g e from the bottom, N = 0 where v² = g e sin α,
    # at sin α = (factor - 2) / 3 above the middle.
    v0 = math.sqrt(factor * GRAVITY * CLEARANCE)
    s = ball(RigidContact(restitution=0.0), offset=(0.0, -CLEARANCE), velocity=(v0, 0.0))
    step = 1e-4
    t, (place, velocity, contact, normal, impulse) = run(
        s, 0.6, ["ball.position", "ball.velocity", "pin.contact", "pin.normal_force",
                 "pin.impulse"], step=step,
    )  # fmt: skip
    alpha = math.asin((factor - 2.0) / 3.0)
    left = CLEARANCE * np.array([math.cos(alpha), math.sin(alpha)])
    went = math.sqrt(GRAVITY * CLEARANCE * math.sin(alpha)) * np.array(
        [-math.sin(alpha), math.cos(alpha)]
    )
    first = int(np.argmax(contact < 0.5))
    flight = slice(first, first + int(np.argmax(contact[first:] > 0.5)))
    since = (went[1] - velocity[flight, 1]) / GRAVITY  # how long it has flown
    assert 0.0 <= since[0] <= step
    wanted = left + since[:, None] * went - 0.5 * GRAVITY * np.outer(since**2, [0.0, 1.0])
    np.testing.assert_allclose(place[flight, :2], wanted, rtol=0, atol=1e-9)
    np.testing.assert_allclose(velocity[flight, 0], went[0], rtol=0, atol=1e-8)
    assert 0.0 < normal[first - 1] < 0.01 * normal[0]
    # Parabola and circle touch there to second order. A fourth point, where it lands, is at -3 α:
    # the angles of all four add up to whole turns.
    landing = CLEARANCE * np.array([math.cos(3.0 * alpha), -math.sin(3.0 * alpha)])
    flown = (landing[0] - left[0]) / went[0]
    assert t[flight.stop - 1] <= t[first] - since[0] + flown <= t[flight.stop]
    arrives = went - [0.0, GRAVITY * flown]
    assert impulse[flight].max() == 0.0
    assert impulse[flight.stop] == pytest.approx(MASS * arrives @ landing / CLEARANCE, rel=1e-7)


# -- friction


def rolling(friction, speed, spin):
    """Sliding, and sticking from where the slip ends: θ, its rate, the spin, ∫|slip|, ∫N|slip|."""

    def normal(y):
        return MASS * (CLEARANCE * y[1] ** 2 + GRAVITY * math.cos(y[0]))

    def slides(_, y):
        slip = CLEARANCE * y[1] + RADIUS * y[2]
        drag = friction * normal(y) * math.copysign(1.0, slip)
        turn = (-GRAVITY * math.sin(y[0]) - drag / MASS) / CLEARANCE
        return [y[1], turn, -drag * RADIUS / INERTIA, abs(slip), normal(y) * abs(slip)]

    def sticks(_, y):
        # With e θ' + R ω = 0 the spin adds I / R² to the mass.
        turn = -GRAVITY * math.sin(y[0]) / CLEARANCE / (1.0 + INERTIA / (MASS * RADIUS**2))
        return [y[1], turn, -CLEARANCE / RADIUS * turn, 0.0, 0.0]

    def ends(_, y):
        return CLEARANCE * y[1] + RADIUS * y[2]

    ends.terminal = True
    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13, "dense_output": True}
    first = solve_ivp(
        slides, (0, 1), [0.0, speed / CLEARANCE, spin, 0.0, 0.0], events=ends, **options
    )
    second = solve_ivp(sticks, (first.t[-1], 1), first.y[:, -1], **options)
    return first, second


def test_a_pin_that_slides_with_friction_comes_to_roll():
    friction, speed, spin, until, step = 0.4, 0.3, -40.0, 0.3, 5e-4
    first, second = rolling(friction, speed, spin)
    change = first.t[-1]
    assert 0.02 < change < 0.2
    s = ball(
        RigidContact(friction=friction), offset=(0, -CLEARANCE), velocity=(speed, 0.0), spin=spin
    )
    t, (angle, spins, slip, slid, work, force, normal, contact) = run(
        s, until, ["pin.angle", "ball.angular_velocity", "pin.slip", "pin.sliding",
                   "pin.sliding_work", "pin.force", "pin.normal_force", "pin.contact"], step=step,
    )  # fmt: skip
    assert contact.all()
    y = np.where(t < change, first.sol(t), second.sol(np.maximum(t, change)))
    # Runge–Kutta with 0.5 ms here: 1e-9; what does not find the end of slip is wrong by 1e-4.
    np.testing.assert_allclose(angle + 0.5 * math.pi, y[0], rtol=0, atol=2e-9)
    np.testing.assert_allclose(spins[:, 2], y[2], rtol=0, atol=2e-7)
    np.testing.assert_allclose(slid, y[3], rtol=0, atol=1e-9)
    np.testing.assert_allclose(work, y[4], rtol=0, atol=1e-7)
    assert np.abs(slip[t > change]).max() < 1e-14
    across = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
    drag = -np.einsum("ij,ij->i", force[:, :2], across)
    np.testing.assert_allclose(drag[t < change], -friction * normal[t < change], rtol=1e-9)
    assert (np.abs(drag[t > change]) < friction * normal[t > change]).all()


def test_a_pin_sticks_until_it_is_pushed_by_more_than_friction_holds():
    # A pin that cannot turn, at the bottom, pushed aside by a growing force: it stays while
    # F ≤ μ m g, then moves. Its guide turns with nothing: the slip is that of the centre.
    friction, rate = 0.4, 20.0
    s = System("box", (0.0, -GRAVITY), planar=True)
    body = s.body("box", mass=MASS, inertia=1e6, position=(0.0, -CLEARANCE))
    contact = RigidContact(friction=friction)
    middle = body.marker("middle")
    s.clearance_revolute(
        "pin", middle, s.ground.marker("hole"), clearance=CLEARANCE, pin_radius=RADIUS,
        contact=contact,
    )  # fmt: skip
    s.force("push", middle, (f"{rate} * t", "0"))
    t, (place, force) = run(s, 0.6, ["ball.position".replace("ball", "box"), "pin.force"])
    slips = friction * MASS * GRAVITY / rate
    # Turning a pin of 1e6 kg m² takes next to no motion: 1e-9 m here.
    assert np.abs(place[t <= slips, 0]).max() < 1e-9
    np.testing.assert_allclose(force[t <= slips, 0], -rate * t[t <= slips], rtol=0, atol=1e-6)
    assert place[-1, 0] > 1e-4
    # From then on x'' = rate (t - slips) / m at first, x = rate τ³ / 6 m.
    soon = (t > slips) & (t < slips + 0.01)
    np.testing.assert_allclose(
        place[soon, 0], rate * (t[soon] - slips) ** 3 / (6.0 * MASS), rtol=0.02, atol=2e-9
    )


# -- mechanisms in contact


def four_bar(joint, *, clearance=5e-3, torque=2.0, start_gap=0.0):
    """A four-bar whose coupler pulls its rocker: through a link, or a pin at the end of play."""
    s = System("four-bar", (0.0, -GRAVITY), planar=True)
    start, foot, end = np.array([0.0, 0.1]), np.array([0.3, 0.0]), np.array([0.3, 0.2])
    along = (end - start) / np.linalg.norm(end - start)
    length = np.linalg.norm(end - start) - clearance + start_gap
    turn = math.atan2(along[1], along[0])
    crank = s.body("crank", mass=0.5, inertia=4e-3, position=(0.0, 0.05), rotation=np.pi / 2)
    coupler = s.body(
        "coupler", mass=1.0, inertia=8e-3, position=start + 0.5 * length * along, rotation=turn
    )
    rocker = s.body("rocker", mass=0.8, inertia=6e-3, position=(0.3, 0.1), rotation=np.pi / 2)
    s.revolute("main", s.ground, crank, at=(0.0, 0.0))
    s.revolute("elbow", crank, coupler, at=start)
    s.revolute("foot", s.ground, rocker, at=foot)
    hole, pin = coupler.marker("hole", (0.5 * length, 0.0)), rocker.marker("pin", (0.1, 0.0))
    s.torque("motor", s["main"], torque)
    if joint == "link":
        s.distance("pin", hole, pin, length=clearance)
    else:
        s.clearance_revolute(
            "pin", pin, hole, clearance=clearance, pin_radius=0.01, contact=joint
        )
    return s


def test_in_contact_it_is_a_link_without_mass_of_the_length_of_the_clearance():
    outputs = ["main.angle", "foot.angle", "foot.speed", "elbow.force", "pin.force"]
    _, link = run(four_bar("link"), 0.24, outputs, step=1e-4)
    _, (*play, contact, closure) = run(
        four_bar(RigidContact()), 0.24, [*outputs, "pin.contact", "closure"], step=1e-4
    )
    assert contact.all()
    assert closure.max() < 1e-13
    assert np.ptp(link[0]) > 0.8  # rad that the crank turned
    for name, mine, other in zip(outputs, play, link, strict=True):
        size = np.abs(other).max()
        # Bit by bit the same equations: rounding, times what multipliers have of it.
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-9 * size, err_msg=name)


def test_contacts_of_a_loop_that_opens_lose_energy_and_never_gain_any():
    contact = RigidContact(restitution=0.6, friction=0.1)
    s = four_bar(contact, torque=0.0, start_gap=4e-3)
    _, (kinetic, potential, gap, normal, impacts, contact) = run(
        s, 1.0, [*ENERGY, "pin.gap", "pin.normal_force", "pin.impacts", "pin.contact"], step=5e-5
    )
    assert impacts[-1] > 5
    assert 0.05 < contact.mean() < 0.999
    # Integrated to 1e-8 of the energy that is about.
    assert np.diff(kinetic + potential).max() < 1e-7
    assert gap.min() > -1e-12
    assert normal.min() >= -1e-9

