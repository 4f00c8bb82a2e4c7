"""Rigid contacts of a pin in a hole, against closed forms, equations of their own and links."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.special import ellipk

from biella import BiellaWarning, BlockError, Diagram, DiagramError, simulate
from biella.blocks.multibody import HuntCrossley, Input, Joint, Linear, RigidContact, System
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine

CLEARANCE, RADIUS, MASS, INERTIA, GRAVITY = 0.1, 0.02, 2.0, 3e-4, 9.81


def run(system, until, outputs, *, step=1e-3, parameters=None, **options):
    d = Diagram("mechanism", step=step)
    d.add(system.block([], outputs, mode="internal", **options), name="plant")
    result = simulate(d, until, parameters=parameters)
    return result.t, [result[f"plant.{name}"] for name in outputs]


def ball(contact, *, offset=(0.0, 0.0), velocity=(0.0, 0.0), spin=0.0, gravity=GRAVITY):
    """A round body in a hole of the ground."""
    s = System("ball", (0.0, -gravity), planar=True)
    start = {"position": offset, "velocity": velocity, "angular_velocity": spin}
    body = s.body("ball", mass=MASS, inertia=INERTIA, **start)
    sizes: dict[str, Any] = {"clearance": CLEARANCE, "pin_radius": RADIUS, "contact": contact}
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
    _, (kinetic, potential, impacts, contact) = run(s, 3.0, [*ENERGY, "pin.impacts", "pin.contact"])
    assert impacts[-1] > 15
    assert not contact.any()
    assert np.ptp(kinetic + potential) < 1e-11 * kinetic.max()


def test_a_wall_that_is_met_and_left_within_a_step_is_seen():
    # Thrown up to 0.1 mm beyond the top of the hole: outside for 9 ms of a step of 50 ms, from 138
    # to 147 ms, and inside at both ends of it.
    speed = math.sqrt(2.0 * GRAVITY * (CLEARANCE + 1e-4))
    s = ball(RigidContact(restitution=0.5), velocity=(0.0, speed))
    t, (impacts, velocity) = run(s, 0.15, ["pin.impacts", "ball.velocity"], step=0.05)
    assert impacts[-1] == 1
    arrives = math.sqrt(2.0 * GRAVITY * 1e-4)
    met = (speed - arrives) / GRAVITY
    wanted = -0.5 * arrives - GRAVITY * (t[-1] - met)
    assert velocity[-1, 1] == pytest.approx(wanted, rel=1e-9)


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

    meets.terminal, meets.direction = True, -1.0  # type: ignore[attr-defined]
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

    ends.terminal = True  # type: ignore[attr-defined]
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
    # F ≤ μ m g, then moves. Its guide turns with nothing: the slip is that of the center.
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
    s.torque("motor", cast(Joint, s["main"]), torque)
    if joint == "link":
        s.distance("pin", hole, pin, length=clearance)
    else:
        s.clearance_revolute("pin", pin, hole, clearance=clearance, pin_radius=0.01, contact=joint)
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


# -- impacts, against the sheet's law in coordinates of all bodies

LENGTH, PLAY = 0.2, 1e-3
INSTANT = 1e-15
"""A step in which nothing but an impact changes velocities."""


@dataclass(frozen=True)
class Bar:
    """A bar on its own hinge or on the one before it; the pin is at its end."""

    mass: float
    inertia: float
    angle: float
    rate: float


@dataclass(frozen=True)
class Blow:
    """Bars in a chain whose end meets the wall of a hole, in the ground or in a bar beside it."""

    bars: tuple[Bar, ...]
    beside: Bar | None
    at: float  # where in the hole
    tied: bool  # a rod from the ground to the first bar, which closes a loop
    driven: bool
    restitution: float
    tangential: float
    friction: float

    @property
    def freedom(self):
        return len(self.bars) + (self.beside is not None) - self.tied - self.driven


def _unit(angle):
    return np.array([math.cos(angle), math.sin(angle)])


def _turned(vector):
    return np.array([-vector[1], vector[0]])


def build(blow, sign=1.0):
    s = System("blow", (0.0, 0.0), planar=True)
    at, before, bodies = np.zeros(2), s.ground, []
    speed = np.zeros(2)
    for n, bar in enumerate(blow.bars):
        u = _unit(bar.angle)
        rate = sign * bar.rate
        body = s.body(
            f"bar{n}", mass=bar.mass, inertia=bar.inertia, position=at + 0.5 * LENGTH * u,
            rotation=bar.angle, velocity=speed + 0.5 * LENGTH * rate * _turned(u),
            angular_velocity=rate,
        )  # fmt: skip
        s.revolute(f"hinge{n}", before, body, at=at)
        at, speed, before = at + LENGTH * u, speed + LENGTH * rate * _turned(u), body
        bodies.append(body)
    pin = before.marker("pin", (0.5 * LENGTH, 0.0))
    center = at - PLAY * _unit(blow.at)
    if blow.beside is None:
        hole = s.ground.marker("hole", center)
    else:
        bar, u = blow.beside, _unit(blow.beside.angle)
        body = s.body(
            "beside", mass=bar.mass, inertia=bar.inertia, position=center - 0.5 * LENGTH * u,
            rotation=bar.angle, velocity=-0.5 * LENGTH * sign * bar.rate * _turned(-u),
            angular_velocity=sign * bar.rate,
        )  # fmt: skip
        s.revolute("hinge beside", s.ground, body, at=center - LENGTH * u)
        hole = body.marker("hole", (0.5 * LENGTH, 0.0))
        bodies.append(body)
    if blow.tied:
        end = bodies[0].marker("tie", (0.1 * LENGTH, 0.05))
        where = np.array([-0.3, 0.4])
        s.distance(
            "rod", s.ground.marker("post", where), end,
            length=float(np.linalg.norm(end.world_position[:2] - where)),
        )  # fmt: skip
    if blow.driven:
        s.driver(
            "drive", cast(Joint, s["hinge0"]), Linear(blow.bars[0].angle, sign * blow.bars[0].rate)
        )
    contact = RigidContact(
        restitution=blow.restitution, tangential_restitution=blow.tangential,
        friction=blow.friction,
    )  # fmt: skip
    s.clearance_revolute("joint", pin, hole, clearance=PLAY, pin_radius=RADIUS, contact=contact)
    return s


def struck(system):
    """Velocities of all bodies just before and after; impacts, impulse and kinetic energies."""
    names = [body.name for body in system.bodies]
    outputs = [f"{name}.{what}" for name in names for what in ("velocity", "angular_velocity")]
    _, found = run(
        system, INSTANT, [*outputs, "joint.impacts", "joint.impulse", "kinetic_energy"],
        step=INSTANT,
    )  # fmt: skip
    *parts, impacts, impulse, energy = found
    moved = [
        np.concatenate(
            [[v[k, 0], v[k, 1], w[k, 2]] for v, w in zip(parts[::2], parts[1::2], strict=True)]
        )
        for k in (0, -1)
    ]
    return moved[0], moved[1], impacts[-1], impulse[-1], energy[0], energy[-1]


class Oracle:
    """M, the rows that hold and the two rows of the contact, with three coordinates a body."""

    def __init__(self, system, blow):
        self.bodies = list(system.bodies)
        self.mass = np.diag(
            np.concatenate([[b.mass, b.mass, b.inertia[2, 2]] for b in self.bodies])
        )
        rows = []
        for joint in system.joints:
            i, j = joint.first, joint.second
            if joint.kind == "revolute":
                rows += [self._point(j, axis) - self._point(i, axis) for axis in np.eye(2)]
            else:
                d = (j.world_position - i.world_position)[:2]
                u = d / np.linalg.norm(d)
                rows.append(self._point(j, u) - self._point(i, u))
        self.driver = len(rows)
        if blow.driven:
            rows.append(self._turn(self.bodies[0]))
        self.rows = np.array(rows)
        joint = system["joint"]
        c = (joint.pin.world_position - joint.hole.world_position)[:2]
        out = c / np.linalg.norm(c)
        across = _turned(out)
        self.normal = self._point(joint.hole, out) - self._point(joint.pin, out)
        self.tangent = self._point(joint.pin, across) - self._point(joint.hole, across)
        self.tangent += RADIUS * self._turn(joint.pin.body)
        self.tangent -= (RADIUS + PLAY) * self._turn(joint.hole.body)

    def _turn(self, body):
        row = np.zeros(3 * len(self.bodies))
        if not body.is_ground:
            row[3 * self.bodies.index(body) + 2] = 1.0
        return row

    def _point(self, marker, axis):
        row = np.zeros(3 * len(self.bodies))
        if marker.body.is_ground:
            return row
        n = 3 * self.bodies.index(marker.body)
        arm = (marker.world_position - marker.body.position)[:2]
        row[n : n + 2] = axis
        row[n + 2] = axis @ _turned(arm)
        return row

    def respond(self, impulse):
        """Return the change of velocities by an impulse, and the impulses of the rows."""
        k = len(self.rows)
        matrix = np.block([[self.mass, self.rows.T], [self.rows, np.zeros((k, k))]])
        found = np.linalg.lstsq(matrix, np.concatenate([impulse, np.zeros(k)]), rcond=None)[0]
        return found[: len(impulse)], -found[len(impulse) :]

    def strike(self, before, blow):
        """Return velocities afterwards, the impulse, and that of the driver; section 5."""
        ends = np.array([self.normal, self.tangent])
        answers = np.array([self.respond(row)[0] for row in ends])
        inverse = ends @ answers.T
        v = ends @ before
        plain = np.array([-v[0] / inverse[0, 0], 0.0])
        stick = -np.linalg.solve(inverse, v)
        trial = (1.0 + blow.restitution) * plain + (1.0 + blow.tangential) * (stick - plain)
        part = 1.0 + blow.tangential
        if abs(trial[1]) > blow.friction * trial[0]:
            part = blow.friction * (1.0 + blow.restitution) * plain[0]
            part /= abs(stick[1]) - blow.friction * (stick - plain)[0]
        impulse = (1.0 + blow.restitution) * plain + part * (stick - plain)
        change, through = self.respond(impulse @ ends)
        drive = through[self.driver] if blow.driven else 0.0
        return before + change, impulse, drive


bars = st.builds(
    Bar,
    mass=st.floats(0.2, 3.0),
    inertia=st.floats(1e-3, 2e-2),
    angle=st.floats(-3.1, 3.1),
    rate=st.floats(-10.0, 10.0),
)
blows = st.builds(
    Blow,
    bars=st.lists(bars, min_size=1, max_size=3).map(tuple),
    beside=st.none() | bars,
    at=st.floats(-3.1, 3.1),
    tied=st.booleans(),
    driven=st.booleans(),
    restitution=st.floats(0.0, 1.0),
    tangential=st.floats(-1.0, 1.0),
    friction=st.just(0.0) | st.floats(0.0, 1.5),
)


@pytest.mark.filterwarnings("ignore:.*velocities given do not fit")
@pytest.mark.filterwarnings("ignore:.*had no solution with rigid bodies")
@example(  # slip follows from the approach, and Coulomb's law has no solution
    Blow(
        bars=(Bar(1.0, 0.02, 2.5, 3.0),),
        beside=Bar(1.0, 0.008, -2.375, 0.0),
        at=1.375,
        tied=False,
        driven=True,
        restitution=0.0,
        tangential=0.0,
        friction=1.0,
    )
)
@settings(max_examples=60)
@given(blows)
def test_impacts_are_those_of_chatterjee_and_ruina(blow):
    assume(blow.freedom >= 1)
    system = build(blow)
    oracle = Oracle(system, blow)
    rank = np.linalg.svd(np.array([*oracle.rows, oracle.normal]))[1]
    assume(rank[-1] > 1e-2)  # far from singular positions
    inverse = oracle.normal @ oracle.respond(oracle.normal)[0]
    assume(inverse > 1e-2)
    before, after, impacts, impulse, energy, left = struck(system)
    approach = oracle.normal @ before
    assume(abs(approach) > 1e-2)
    if approach > 0.0:  # it leaves: run it backwards
        system = build(blow, -1.0)
        before, after, impacts, impulse, energy, left = struck(system)
        approach = oracle.normal @ before
    assert impacts == 1
    both = oracle.tangent @ oracle.respond(oracle.tangent)[0]
    mixed = oracle.tangent @ oracle.respond(oracle.normal)[0]
    assume(inverse * both - mixed**2 > 1e-6 * inverse * both)
    wanted, given_impulse, drive = oracle.strike(before, blow)
    size = np.abs(before).max() / math.sqrt(inverse)
    np.testing.assert_allclose(after, wanted, rtol=0, atol=1e-8 * size)
    assert impulse == pytest.approx(given_impulse[0], rel=1e-8)
    # What holds for every impact: rebound, the cone, and energy. A driver keeps its own speed and
    # works by its impulse times that, which must be taken off.
    assert oracle.normal @ after == pytest.approx(-blow.restitution * approach, abs=1e-8 * size)
    assert abs(given_impulse[1]) <= blow.friction * given_impulse[0] * (1.0 + 1e-12)
    rate = before[2] if blow.driven else 0.0
    assert left - energy - drive * rate <= 1e-9 * energy
    np.testing.assert_allclose(oracle.rows @ after, oracle.rows @ before, rtol=0, atol=1e-8 * size)


# -- several contacts


def two_pins(
    contacts, *, velocity, spin, offsets=((0.0, -PLAY), (0.0, -PLAY)), mass=1.0, load=None
):
    """A bar with a pin at each end, both in holes of the ground."""
    s = System("two pins", (0.0, 0.0), planar=True)
    bar = s.body("bar", mass=mass, inertia=2e-3, velocity=velocity, angular_velocity=spin)
    for n, (side, contact, offset) in enumerate(zip((-0.1, 0.1), contacts, offsets, strict=True)):
        s.clearance_revolute(
            f"pin{n}", bar.marker(f"end{n}", (side, 0.0)),
            s.ground.marker(f"hole{n}", (side - offset[0], -offset[1])),
            clearance=PLAY, pin_radius=RADIUS, contact=contact,
        )  # fmt: skip
    if load is not None:
        s.force("load", bar.marker("middle"), load)
    return s


restitutions = st.floats(0.0, 1.0)


@settings(max_examples=40)
@given(
    st.tuples(restitutions, restitutions),
    st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0)),
    st.tuples(st.floats(-2.0, 2.0), st.floats(-2.0, -0.1)),
    st.floats(-8.0, 8.0),
    st.floats(0.0, 1.0),
)
@example(  # forty impacts are not enough, and stopping one pin pushes the other into its wall
    e=(0.125, 0.03125), tangential=(0.0, 0.0), velocity=(0.0, -1.0), spin=0.0, friction=0.0
)
def test_pins_that_meet_at_once_part_and_lose_energy(e, tangential, velocity, spin, friction):
    contacts = [
        RigidContact(restitution=a, tangential_restitution=b, friction=friction)
        for a, b in zip(e, tangential, strict=True)
    ]
    s = two_pins(contacts, velocity=velocity, spin=spin)
    _, (v, w, energy, *impacts) = run(
        s, INSTANT, ["bar.velocity", "bar.angular_velocity", "kinetic_energy", "pin0.impacts",
                     "pin1.impacts"], step=INSTANT,
    )  # fmt: skip
    ends = v[-1, 1] + np.array([-0.1, 0.1]) * w[-1, 2]
    first = velocity[1] + np.array([-0.1, 0.1]) * spin
    if (first < -1e-3).any():
        assert impacts[0][-1] + impacts[1][-1] >= 1
    assert ends.min() > -1e-9  # nothing goes on through a wall
    assert energy[-1] <= energy[0] * (1.0 + 1e-12)


@pytest.mark.parametrize(("spin", "holds"), [(4.0, False), (-4.0, True)])
def test_what_hits_one_pin_lets_go_of_another_that_it_would_pull(spin, holds):
    # The left pin rests at the bottom of its hole, pressed by a load. The bar turns about it;
    # the
    # right pin meets the top (spin > 0) or the bottom of its own. Left alone, with v' = v + J / m
    # and ω' = ω + J a / I, the left end goes the other way than J, because a² > I / m.
    contact, mass, inertia, arm = RigidContact(restitution=0.5), 1.0, 2e-3, 0.1
    s = two_pins(
        [contact, contact], velocity=(0.0, arm * spin), spin=spin, mass=mass,
        offsets=((0.0, -PLAY), (0.0, math.copysign(PLAY, spin))), load=(0.0, -5.0),
    )  # fmt: skip
    _, (v, w, touches, impulse, hit) = run(
        s, INSTANT, ["bar.velocity", "bar.angular_velocity", "pin0.contact", "pin0.impulse",
                     "pin1.impulse"], step=INSTANT,
    )  # fmt: skip
    meets = 2.0 * arm * spin  # velocity of the right end
    left, right = (v[-1, 1] + side * w[-1, 2] for side in (-arm, arm))
    assert touches[0]
    assert right == pytest.approx(-0.5 * meets, rel=1e-9)
    alone = -1.5 * meets / (1.0 / mass + arm**2 / inertia)
    goes = alone / mass - arm * alone * arm / inertia
    assert (goes < 0.0) == holds
    if not holds:  # a blow down at the right lifts the left end
        assert left == pytest.approx(goes, rel=1e-9)
        assert not touches[-1]
        assert impulse[-1] == 0.0
        assert hit[-1] == pytest.approx(abs(alone), rel=1e-9)
    else:  # a blow up presses it down, and goes through both
        assert left == pytest.approx(0.0, abs=1e-9)
        assert touches[-1]
        # About the left end, whose mass is that of a pendulum.
        through = 1.5 * abs(meets) * (inertia + mass * arm**2) / (2.0 * arm) ** 2
        assert hit[-1] == pytest.approx(through, rel=1e-9)
        assert impulse[-1] > 0.0


def test_loads_share_between_two_pins_as_statics_say():
    contact = RigidContact(friction=0.0)
    s = two_pins([contact, contact], velocity=(0.0, 0.0), spin=0.0)
    s.force("push", s["bar"].marker("here", (0.06, 0.0)), (0.0, -10.0))
    _, (left, right) = run(s, 0.01, ["pin0.normal_force", "pin1.normal_force"])
    np.testing.assert_allclose(left, 10.0 * 0.04 / 0.2, rtol=1e-9)
    np.testing.assert_allclose(right, 10.0 * 0.16 / 0.2, rtol=1e-9)


def loose_chain(seed):
    """Three bars with play in every joint, and the last one's end in a hole too."""
    rng = np.random.default_rng(seed)
    s = System("chain", (0.0, -GRAVITY), planar=True)
    at, before, place = np.zeros(2), s.ground, np.zeros(2)
    for n in range(4):
        contact = RigidContact(
            restitution=rng.uniform(0, 1), tangential_restitution=rng.uniform(-1, 1),
            friction=rng.choice([0.0, 0.05, 0.3]),
        )  # fmt: skip
        offset = 0.8 * PLAY * _unit(rng.uniform(-3, 3))
        sizes: dict[str, Any] = {"clearance": PLAY, "pin_radius": 0.01, "contact": contact}
        if n == 3:
            hole = s.ground.marker("end", at - offset)
            s.clearance_revolute("pin3", before.marker("tip", (0.1, 0.0)), hole, **sizes)
            return s
        hole = before.marker(f"hole{n}", place)
        angle = rng.uniform(-3, 3)
        body = s.body(
            f"bar{n}", mass=rng.uniform(0.2, 2), inertia=rng.uniform(1e-3, 1e-2),
            position=at + offset + 0.1 * _unit(angle), rotation=angle,
        )  # fmt: skip
        s.clearance_revolute(f"pin{n}", body.marker("pin", (-0.1, 0.0)), hole, **sizes)
        at, before, place = at + offset + 0.2 * _unit(angle), body, np.array([0.1, 0.0])
    raise AssertionError


@pytest.mark.filterwarnings("ignore:.*had no solution with rigid bodies")
@pytest.mark.parametrize("seed", range(6))
def test_a_chain_with_play_everywhere_settles_without_gaining_energy(seed):
    names = [f"pin{n}" for n in range(4)]
    outputs = [f"{name}.{what}" for what in ("gap", "normal_force", "impacts") for name in names]
    _, (kinetic, potential, *found) = run(loose_chain(seed), 0.2, [*ENERGY, *outputs], step=2e-5)
    assert np.min(found[:4]) > -1e-12
    assert np.min(found[4:8]) >= -1e-6
    assert sum(impacts[-1] for impacts in found[8:]) > 10
    assert np.diff(kinetic + potential).max() < 1e-6 * np.ptp(potential)


# -- how it runs


def rattling(**start):
    return ball(
        RigidContact(restitution=0.8, friction=0.2), velocity=(0.9, 0.4), spin=20.0, **start
    )


OUTPUTS = ["ball.position", "ball.angular_velocity", "pin.impacts", "pin.impulse", "pin.sliding",
           "pin.sliding_work", "pin.contact", "pin.force"]  # fmt: skip


def test_a_tick_of_many_steps_is_the_same_as_many_ticks():
    _, fine = run(rattling(), 0.8, OUTPUTS, step=1e-3)
    _, coarse = run(rattling(), 0.8, OUTPUTS, step=8e-3, substeps=8)
    for mine, other in zip(fine, coarse, strict=True):
        np.testing.assert_array_equal(mine[::8], other)


@pytest.mark.parametrize("at", [0.05, 0.251, 0.6])
def test_a_state_that_was_saved_goes_on_to_the_same_bits(at):
    d = Diagram("ball", step=1e-3)
    d.add(rattling().block([], OUTPUTS, mode="internal"), name="plant")
    plan = d.compile()
    with Instance(plan) as one, Instance(plan) as other:
        for instance in (one, other):
            instance.initialize()
        one.run_to(at)
        state = one.save()
        one.run_to(0.8)
        other.run_to(0.3)  # somewhere else, with another history
        other.restore(state)
        other.run_to(0.8)
        for name in OUTPUTS:
            np.testing.assert_array_equal(one.get(f"plant.{name}"), other.get(f"plant.{name}"))


@pytest.mark.parametrize("interval", [1e-3, 5e-3])
def test_an_fmu_does_the_same_bit_by_bit(tmp_path, interval):
    fmpy = pytest.importorskip("fmpy")
    path = rattling().export_fmu(tmp_path / "ball.fmu", outputs=OUTPUTS, step=1e-3, sources=False)
    outside = fmpy.simulate_fmu(
        str(path), stop_time=0.5, output_interval=interval, start_values={"pin.restitution": 0.6}
    )
    _, found = run(rattling(), 0.5, OUTPUTS, parameters={"plant.pin.restitution": 0.6})
    every = round(interval / 1e-3)
    for name, mine in zip(OUTPUTS, found, strict=True):
        columns = [column for column in outside.dtype.names if column.partition("[")[0] == name]
        theirs = np.stack([outside[column] for column in columns], axis=-1).squeeze()
        np.testing.assert_array_equal(theirs, mine[::every].squeeze(), err_msg=name)


def test_steps_that_end_within_a_tick_go_on_from_there(tmp_path):
    # A communication point inside a flight and one inside an internal step: same motion to the
    # accuracy of the steps, for parabolas to rounding.
    fmpy = pytest.importorskip("fmpy")
    s = ball(RigidContact(restitution=0.7))
    path = s.export_fmu(tmp_path / "ball.fmu", outputs=["ball.position"], step=1e-3, sources=False)
    outside = fmpy.simulate_fmu(str(path), stop_time=0.7, output_interval=0.7 / 333)
    _, (place,) = run(s, 0.7, ["ball.position"])
    names = [name for name in outside.dtype.names if name != "time"]
    assert outside[names[1]][-1] == pytest.approx(place[-1, 1], abs=1e-10)


def test_a_load_that_turns_takes_the_pin_off_and_puts_it_back():
    # Outputs at a tick have the new load at once, though the modes change within the next step.
    s = System("pushed", (0.0, 0.0), planar=True)
    body = s.body("ball", mass=MASS, inertia=INERTIA, position=(0.0, -CLEARANCE))
    middle = body.marker("middle")
    s.clearance_revolute(
        "pin", middle, s.ground.marker("hole"), clearance=CLEARANCE, pin_radius=RADIUS,
        contact=RigidContact(),
    )  # fmt: skip
    s.force("push", middle, ("0", Input("push", default=-3.0)))
    d = Diagram("pushed", step=1e-3)
    plant = d.add(
        s.block([], ["pin.normal_force", "pin.contact", "pin.gap"], mode="internal"), name="plant"
    )
    source = d.input("push", unit="N", default=-3.0)
    d.connect(source, plant[plant.inputs[0].name])
    with Instance(d.compile()) as run_:
        run_.initialize()
        run_.run_to(0.01)
        run_.evaluate()
        assert run_.get("plant.pin.normal_force") == pytest.approx(3.0, rel=1e-12)
        run_.set("push", 2.0)
        run_.touch()
        run_.evaluate()
        assert run_.get("plant.pin.normal_force") == 0.0
        run_.run_to(0.02)
        run_.evaluate()
        assert run_.get("plant.pin.gap") == pytest.approx(0.5 * 2.0 / MASS * 0.01**2, rel=1e-6)


# -- what is refused, and said


def test_rigid_contacts_want_internal_steps_of_runge_kutta():
    with pytest.raises(DiagramError, match=r"`pin` has a RigidContact.*Say mode='internal'"):
        ball(RigidContact()).block()
    with pytest.raises(DiagramError, match=r"`pin` has a RigidContact.*Say integrator='rk4'"):
        ball(RigidContact()).block(mode="internal", integrator="implicit")


def test_a_pin_outside_its_hole_is_refused_by_name_and_amount():
    s = ball(RigidContact(), offset=(0.0, 1.1 * CLEARANCE))
    with pytest.raises(
        BlockError, match=r"`pin` does not start in its hole.*0\.11 m.*0\.01 m more"
    ):
        run(s, 0.01, ["pin.gap"])
    inside = ball(RigidContact(), offset=(0.0, -0.9 * CLEARANCE))
    with pytest.raises(BlockError, match="`pin` does not start in its hole"):
        run(inside, 0.01, ["pin.gap"], parameters={"plant.pin.clearance": 0.5 * CLEARANCE})


def test_a_pin_that_is_given_on_the_surface_to_printed_digits_starts_there():
    s = ball(RigidContact(), offset=(0.0, -CLEARANCE * (1.0 + 3e-7)))
    _, (gap, contact, normal) = run(s, 0.01, ["pin.gap", "pin.contact", "pin.normal_force"])
    assert np.abs(gap).max() < 1e-15
    assert contact.all()
    np.testing.assert_allclose(normal, MASS * GRAVITY, rtol=1e-10)


def test_more_events_than_a_step_may_have_end_the_run_with_the_name():
    # 10 m/s across a micrometer: a thousand impacts in 0.2 ms, of a step of 1 ms.
    s = System("shaken", (0.0, 0.0), planar=True)
    body = s.body("ball", mass=1.0, inertia=1e-3, velocity=(10.0, 0.0))
    s.clearance_revolute(
        "pin", body.marker("middle"), s.ground.marker("hole"), clearance=1e-6, pin_radius=0.01,
        contact=RigidContact(restitution=1.0),
    )  # fmt: skip
    with pytest.raises(BlockError, match=r"more than 1000 times.*`pin`.*smaller step"):
        run(s, 0.01, ["pin.gap"])
    _, (impacts,) = run(s, 1e-3, ["pin.impacts"], step=1e-5)
    # From the middle, then 2 e apart.
    assert impacts[-1] == math.floor((10.0 * 1e-3 + 1e-6) / 2e-6)


def test_a_driver_that_pushes_a_pin_into_its_hole_is_reported():
    s = System("pushed", (0.0, 0.0), planar=True)
    body = s.body("slider", mass=1.0, inertia=1e-3)
    s.prismatic("slide", s.ground, body, at=(0.0, 0.0), axis=(1.0, 0.0))
    s.driver("drive", cast(Joint, s["slide"]), Linear(0.0, 1.0))
    s.clearance_revolute(
        "pin", body.marker("middle"), s.ground.marker("hole"), clearance=1e-3, pin_radius=0.01,
        contact=RigidContact(),
    )  # fmt: skip
    with pytest.raises(BlockError, match=r"`pin` is jammed at t = 0\.001"):
        run(s, 0.01, ["pin.gap"])


def test_friction_that_has_no_solution_is_left_out_and_reported():
    # Painlevé's rod: its tip slides below it with μ > (1 + 3 cos²) / (3 sin cos) = 1.35.
    s = System("rod", (0.0, -GRAVITY), planar=True)
    angle, half, speed = math.radians(60.0), 0.5, -3.0
    tip = np.array([0.0, -1.0])
    s_body = s.body(
        "rod", mass=1.0, inertia=half**2 / 3.0, rotation=angle,
        position=tip + half * _unit(angle), velocity=(speed, 0.0),
    )  # fmt: skip
    s.clearance_revolute(
        "pin", s_body.marker("tip", (-half, 0.0)), s.ground.marker("hole"), clearance=1.0,
        pin_radius=1e-6, contact=RigidContact(restitution=0.0, friction=2.5),
    )  # fmt: skip
    with pytest.warns(BiellaWarning, match="friction of `pin` had no solution"):
        run(s, 0.02, ["pin.gap"])


def test_only_rigid_contacts_count():
    with pytest.raises(DiagramError, match=r"there is no output `pin\.impacts`"):
        ball(HuntCrossley(stiffness=1e9)).block([], ["pin.impacts"])


def test_it_takes_nothing_from_the_degrees_of_freedom_and_is_drawn(tmp_path):
    s = four_bar(RigidContact())
    assert s.mobility == 3
    assert s.report().freedom == 3
    s.draw(tmp_path / "four_bar.svg")
    assert (tmp_path / "four_bar.svg").stat().st_size > 1000
    with pytest.raises(DiagramError, match="`pin` is a revolute with clearance"):
        s.equilibrium()
    with pytest.raises(DiagramError, match="`pin` is a revolute with clearance"):
        s.modes(s.assemble())
