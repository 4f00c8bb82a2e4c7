"""Bearings whose journal is held by two equations, where the steady film carries their multipliers.

Closed forms are those of the steady short bearing: W = K/4 · n √(16 n² + π² (1 - n²)) / (1 - n²)²
with K = μ ω r B³ / c², and an attitude of tan φ = π √(1 - n²) / (4 n).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from biella import BiellaError, BiellaWarning, BlockError, Diagram, DiagramError, simulate
from biella.blocks import LongBearing, ShortBearing
from biella.blocks.bearings import Contact
from biella.blocks.multibody import Input, Linear, System
from biella.blocks.multibody.mechanisms import crank_pin
from biella.errors import PlanError
from biella.scheduler.compile.plan._plan import Plan, read_arrays
from biella.scheduler.engine._engine import Instance

from .plan_cells import with_cell

pytestmark = pytest.mark.engine

SIZE = (0.02, 0.01, 4e-5, 0.01)
RADIUS, LENGTH, CLEARANCE, VISCOSITY = SIZE
MASS, GRAVITY = 5.0, 9.81
LOAD = (0.0, -MASS * GRAVITY)
MODES: dict[str, dict[str, Any]] = {
    "continuous": {},
    "rk4": {"mode": "internal", "substeps": 2},
    "implicit": {"mode": "internal", "integrator": "implicit"},
}


UNDAMPED = r"film of `film` has squeeze=False and a force for coupling: nothing damps .*constraint"


def steady(**options):
    return ShortBearing(*SIZE, squeeze=False, **options)


def disc_in_bush(film, speed, *, mass=MASS, load=None, **options):
    s = System("rotor", (0.0, -GRAVITY), planar=True)
    disc = s.body("disc", mass=mass, inertia=0.01, angular_velocity=speed)
    journal = disc.marker("journal")
    s.bearing("film", journal, s.ground.marker("bush"), film, coupling="constraint", **options)
    if load is not None:
        s.force("load", journal, load)
    return s


def run(system, until, outputs, *, step=1e-3, **block):
    d = Diagram("mechanism", step=step)
    d.add(system.block([], outputs, **block), name="plant")
    result = simulate(d, until)
    return result.t, [result[f"plant.{name}"] for name in outputs]


def closed_form(load, speed):
    """Where a steady load of this size is carried: n and the attitude angle."""
    K = VISCOSITY * abs(speed) * RADIUS * LENGTH**3 / CLEARANCE**2

    def carried(n):
        return K / 4 * n * np.sqrt(16 * n**2 + np.pi**2 * (1 - n**2)) / (1 - n**2) ** 2

    n = brentq(lambda n: carried(n) - load, 0.0, 1.0 - 1e-12, xtol=1e-15)
    return n, np.arctan2(np.pi * np.sqrt(1 - n**2), 4 * n)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("speed", [300.0, -80.0, 3000.0])
def test_a_steady_load_lies_where_the_closed_form_has_it(mode, speed):
    s = disc_in_bush(steady(friction="none"), speed)
    outputs = ["film.offset", "film.eccentricity", "film.force", "film.rounds", "film.film"]
    _, values = run(s, 0.01, outputs, **MODES[mode])
    n, attitude = closed_form(MASS * GRAVITY, speed)
    angle = -np.pi / 2 + np.sign(speed) * attitude  # the load points down
    at = steady().equilibrium(LOAD, speed)
    for offset, eccentricity, force, rounds, film in zip(*values, strict=True):
        wanted = n * CLEARANCE * np.array([np.cos(angle), np.sin(angle)])
        np.testing.assert_allclose(offset, wanted, atol=1e-9 * CLEARANCE)
        np.testing.assert_allclose(offset, at.position, atol=1e-9 * CLEARANCE)
        assert eccentricity == pytest.approx(n, abs=1e-9)
        assert film == pytest.approx((1 - n) * CLEARANCE, abs=1e-9 * CLEARANCE)
        np.testing.assert_allclose(force, [0, MASS * GRAVITY, 0], atol=1e-6)
        assert 1 <= rounds <= 3


@pytest.mark.parametrize("mode", MODES)
def test_friction_of_the_film_brakes_the_journal(mode):
    """J ω' = torque at the film's offset: the same as that of the film in equilibrium."""
    s = disc_in_bush(steady(), 300.0)
    t, (speed, torque, loss) = run(
        s, 0.05, ["disc.angular_velocity", "film.torque", "film.power_loss"], **MODES[mode]
    )
    at = steady().equilibrium(LOAD, float(speed[-1, 2]))
    assert torque[-1] == pytest.approx(at.torque, rel=1e-6)
    assert loss[-1] == pytest.approx(at.power_loss, rel=1e-6)
    brake = np.trapezoid(torque, t) / 0.01
    assert speed[-1, 2] - speed[0, 2] == pytest.approx(brake, rel=1e-5)


def test_a_journal_that_stands_lies_in_contact():
    """Without speed nothing carries but the contact: straight along the load, W / k beyond it."""
    contact = Contact(stiffness=1e8, expected=True)
    s = disc_in_bush(steady(contact=contact), 0.0)
    _, (offset, film, thin, force) = run(
        s, 0.002, ["film.offset", "film.film", "film.thin_film", "film.force"]
    )
    depth = MASS * GRAVITY / 1e8
    limit = 0.01 * CLEARANCE
    np.testing.assert_allclose(offset[-1], [0, -(CLEARANCE - limit) - depth], atol=1e-12)
    assert film[-1] == pytest.approx(limit - depth)
    assert thin.all()
    np.testing.assert_allclose(force[-1], [0, MASS * GRAVITY, 0], rtol=1e-6, atol=1e-6)


def test_the_report_counts_a_bearing_that_is_held_as_the_hinge_that_it_nearly_is():
    s = disc_in_bush(steady(), 300.0)
    told = s.report()
    assert (s.mobility, told.mobility, told.freedom, told.rows, told.redundant) == (1, 1, 1, 2, 0)
    held, ideal = (crank_pin(how) for how in ("constraint", "ideal"))
    assert held.mobility == ideal.mobility
    for what in ("joints", "freedom", "rows", "rank", "redundant", "unique"):
        assert getattr(held.report(), what) == getattr(ideal.report(), what)


def test_a_second_bearing_that_is_held_is_redundant_and_named():
    s = disc_in_bush(steady(), 300.0)
    s.bearing(
        "second", s["disc"].marker("beside", (0.1, 0.0)), s.ground.marker("other", (0.1, 0.0)),
        steady(), coupling="constraint",
    )  # fmt: skip
    told = s.report()
    assert (s.mobility, told.freedom, told.redundant) == (-1, 0, 1)
    assert set(told.not_unique) == {"film", "second"}


def test_a_weak_film_shares_its_load_with_the_contact():
    """Slowly turning: the film at its limit has its part, and tangential forces still balance."""
    contact = Contact(stiffness=1e8, friction=0.0, expected=True)
    s = disc_in_bush(steady(contact=contact, friction="none"), 0.05)
    _, (offset, force, thin) = run(s, 0.002, ["film.offset", "film.force", "film.thin_film"])
    n = 0.99
    K = VISCOSITY * 0.05 * RADIUS * LENGTH**3 / CLEARANCE**2
    tangential = K * np.pi / 4 * n / (1 - n**2) ** 1.5
    angle = np.arcsin(tangential / (MASS * GRAVITY))
    assert angle > 1e-4
    at = np.arctan2(offset[-1, 0], -offset[-1, 1])
    assert at == pytest.approx(angle, rel=1e-6)
    assert thin.all()
    np.testing.assert_allclose(force[-1, :2], [0, MASS * GRAVITY], atol=1e-6)


def test_without_a_contact_a_film_that_is_too_weak_stops_the_run():
    s = disc_in_bush(steady(contact=None), 0.01)
    with pytest.raises(BlockError, match=r"film of `film` is thinner than its `film_limit`"):
        run(s, 0.01, ["film.offset"])


def turning_pin(film, **options):
    """A disc whose journal sits on a crank that turns: its load turns with the bush."""
    s = System("turning", (0.0, 0.0), planar=True)
    speed, arm = 40.0, 0.1
    crank = s.body("crank", mass=1.0, inertia=0.01, angular_velocity=speed)
    s.driver("drive", s.revolute("main", s.ground, crank, at=(0, 0)), Linear(0.0, speed))
    disc = s.body(
        "disc",
        mass=MASS,
        inertia=0.01,
        position=(arm, 0),
        velocity=(0, speed * arm),
        angular_velocity=300.0,
    )
    s.bearing("film", disc.marker("journal"), crank.marker("pin", (arm, 0)), film, **options)
    return s, MASS * speed**2 * arm, speed


def test_a_load_that_turns_with_the_bush():
    """In axes of the crank it stands still: the speed that counts is that of disc less crank.

    The film with squeeze knows by itself how its load turns, and settles at the same place.
    """
    s, load, speed = turning_pin(steady(friction="none"), coupling="constraint", load_axes="bush")
    wanted = steady().equilibrium((load, 0.0), 300.0 - speed).position
    _, (held,) = run(s, 0.1, ["film.offset"])
    np.testing.assert_allclose(held[-1], wanted, atol=2e-3 * CLEARANCE)  # c beside 0.1 m
    s, _, _ = turning_pin(ShortBearing(*SIZE, friction="none"))
    how = {"mode": "internal", "integrator": "implicit", "step": 1e-4}
    _, (pushed,) = run(s, 0.3, ["film.offset"], **how)
    np.testing.assert_allclose(pushed[-1], held[-1], atol=3e-3 * CLEARANCE)
    s, _, _ = turning_pin(steady(friction="none"), coupling="constraint")
    _, (other,) = run(s, 0.1, ["film.offset"])
    assert np.linalg.norm(other[-1] - wanted) > 0.02 * CLEARANCE


@pytest.mark.parametrize("axes", ["world", "bush"])
def test_a_steady_force_has_its_load_stand_still_in_the_axes_it_is_reported(axes):
    """Of one step, as a force that nothing damps."""
    s, load, speed = turning_pin(steady(friction="none"), load_axes=axes)
    seen = 300.0 - speed if axes == "bush" else 300.0 + speed
    at = steady().equilibrium((load, 0.0), seen).position
    with pytest.warns(BiellaWarning, match=UNDAMPED):
        _, (force,) = run(s, 1e-9, ["film.force"], step=1e-9, **MODES["continuous"])
    np.testing.assert_allclose(force[0], 0.0, atol=1e-6)  # it starts in the middle
    d = Diagram("moved", step=1e-9)
    d.add(s.block([], ["film.force"]), name="plant")
    start = np.array([0.1, 0.0]) + at
    with pytest.warns(BiellaWarning, match=UNDAMPED):
        result = simulate(d, 1e-9, parameters={"plant.disc.initial_position": start})
    np.testing.assert_allclose(result["plant.film.force"][0, :2], [-load, 0.0], atol=1e-6 * load)


def test_two_free_bodies_keep_their_momentum():
    """An unbalanced journal in a heavier bush, both free: what one gets the other gives."""
    s = System("pair", (0.0, 0.0), planar=True)
    given: dict[str, Any] = {
        "mass": 2.0,
        "inertia": 0.01,
        "angular_velocity": 200.0,
        "velocity": (0, -0.2),
    }
    journal = s.body("journal", **given, free=True)
    bush = s.body("bush", mass=3.0, inertia=0.02, angular_velocity=-50.0, free=True,
                  position=(1e-3, 0.2), velocity=(10.0, 0))  # fmt: skip
    seats = journal.marker("seat", (1e-3, 0)), bush.marker("seat", (0, -0.2))
    s.bearing("film", *seats, steady(), coupling="constraint")
    names = [f"{b}.{w}" for b in ("journal", "bush") for w in ("position", "velocity")]
    names += ["journal.angular_velocity", "bush.angular_velocity"]
    _, (p_j, v_j, p_b, v_b, w_j, w_b) = run(s, 0.05, names, step=1e-4)
    linear = 2.0 * v_j + 3.0 * v_b
    angular = 2.0 * np.cross(p_j, v_j) + 3.0 * np.cross(p_b, v_b) + 0.01 * w_j + 0.02 * w_b
    np.testing.assert_allclose(linear, np.tile(linear[0], (len(linear), 1)), atol=1e-10)
    spread = np.ptp(angular[:, 2])
    assert spread < 3.0 * 10.0 * CLEARANCE  # the bush's momentum, moved by a clearance


@pytest.mark.parametrize("friction", ["none", "shear"])
def test_the_bush_gets_the_opposite_in_the_same_line(friction):
    """About its own middle that is the opposite torque, less e × F."""
    s = System("housing", (0.0, -GRAVITY), planar=True)
    bush = s.body("bush", mass=3.0, inertia=0.02)
    disc = s.body("disc", mass=MASS, inertia=0.01, angular_velocity=300.0)
    s.revolute("pivot", s.ground, bush, at=(0, 0))
    film = steady(friction=friction)
    s.bearing("film", disc.marker("journal"), bush.marker("seat"), film, coupling="constraint")
    _, (turning, braking) = run(
        s, 1e-6, ["pivot.acceleration", "disc.angular_acceleration"], step=1e-6
    )
    at = film.equilibrium(LOAD, 300.0)
    assert 0.01 * braking[0, 2] == pytest.approx(at.torque, rel=1e-6, abs=1e-12)
    twist = at.position[0] * MASS * GRAVITY
    assert twist > 1e-4
    assert 0.02 * turning[0] == pytest.approx(-at.torque - twist, rel=1e-6)


@pytest.mark.parametrize("times", [0.1, 0.4])
def test_a_stiff_neighbor_is_met_by_smaller_parts(times):
    """A spring that is `times` as stiff as the film: repeating alone would run away."""
    film = steady(friction="none")
    found = film.coefficients(LOAD, 300.0)
    k = times * float(np.abs(found.stiffness).max())
    s = disc_in_bush(film, 300.0)
    s.bushing("spring", s.ground.marker("wall"), s["disc.journal"], stiffness=(k, k, 0.0))
    _, (offset, force) = run(s, 0.003, ["film.offset", "film.force"])
    rest = np.array(LOAD) - k * offset[-1]
    np.testing.assert_allclose(force[-1, :2], -rest, atol=1e-5 * k * CLEARANCE)
    np.testing.assert_allclose(
        offset[-1], film.equilibrium(tuple(rest), 300.0).position, atol=1e-6 * CLEARANCE
    )


def test_an_offset_that_does_not_settle_is_reported():
    film = steady(friction="none")
    k = 1e4 * float(np.abs(film.coefficients(LOAD, 300.0).stiffness).max())
    s = disc_in_bush(film, 300.0)
    s.bushing("spring", s.ground.marker("wall"), s["disc.journal"], stiffness=(k, k, 0.0))
    with pytest.warns(BiellaWarning, match=r"did not settle in \d+ steps, the first to t = 0 s"):
        _, (rounds,) = run(s, 0.003, ["film.rounds"])
    assert (rounds == 40).all()


def test_loads_through_inputs_count_from_the_first_step_on():
    s = disc_in_bush(steady(friction="none"), 300.0, load=(Input(), 0.0))
    d = Diagram("pushed", step=1e-3)
    plant = d.add(s.block(outputs=["film.offset"], mode="internal"), name="plant")
    d.connect(d.input("push", default=30.0, unit="N"), plant["load.force.x"])
    result = simulate(d, 0.005)
    at = steady().equilibrium((30.0, LOAD[1]), 300.0)
    np.testing.assert_allclose(result["plant.film.offset"][1], at.position, atol=1e-9 * CLEARANCE)


@pytest.mark.parametrize("mode", MODES)
def test_a_saved_state_has_the_offset(mode):
    s, _, _ = turning_pin(steady(), coupling="constraint", load_axes="bush")
    d = Diagram("saved", step=1e-3)
    d.add(s.block(outputs=["film.offset", "disc.position"], **MODES[mode]), name="plant")
    with d.compile().instantiate() as instance:
        instance.run(7)
        saved = instance.save()
        instance.run(9)
        instance.evaluate()
        first = instance.values.copy()
        instance.restore(saved)
        instance.run(9)
        instance.evaluate()
        np.testing.assert_array_equal(first, instance.values)


def slow_load(part, rate, coupling):
    """A light disc in a film that turns, under a load that varies by a part of itself."""
    squeeze = coupling == "force"
    film = ShortBearing(*SIZE, squeeze=squeeze, friction="none")
    s = System("varied", (0.0, 0.0), planar=True)
    at = film.equilibrium((0.0, -50.0), 300.0).position
    disc = s.body("disc", mass=0.01, inertia=0.01, position=at, angular_velocity=300.0)
    journal = disc.marker("journal")
    s.force("load", journal, (0.0, f"-50 * (1 + {part} * sin({rate} * t))"))
    s.bearing("film", journal, s.ground.marker("bush"), film, coupling=coupling)
    own = MODES["implicit"] if squeeze else {}
    period = 2 * np.pi / rate
    _, (offset,) = run(s, 2 * period, ["film.offset"], step=period / 1000, **own)
    return offset[1000:] / CLEARANCE


def test_force_and_constraint_agree_for_slow_loads():
    """Squeeze is what differs: it grows with how fast and how much the load varies."""
    apart = {}
    for part, rate in ((0.2, 0.3), (0.2, 3.0), (0.2, 30.0), (0.6, 3.0)):
        pushed, held = (slow_load(part, rate, how) for how in ("force", "constraint"))
        apart[part, rate] = np.abs(pushed - held).max()
    assert apart[0.2, 0.3] < 5e-4
    assert apart[0.2, 3.0] == pytest.approx(10 * apart[0.2, 0.3], rel=0.05)
    assert apart[0.2, 30.0] == pytest.approx(100 * apart[0.2, 0.3], rel=0.15)
    assert apart[0.6, 3.0] > 2.5 * apart[0.2, 3.0]


def test_what_it_is_not_for():
    def system(planar=True):
        s = System("s", planar=planar)
        return s, s.body("b", mass=1.0, inertia=1.0).marker("m"), s.ground.marker("m")

    for film in (ShortBearing(*SIZE), LongBearing(*SIZE)):
        s, journal, bush = system()
        with pytest.raises(DiagramError, match=r"steady law in a plane.*squeeze=False"):
            s.bearing("x", journal, bush, film, coupling="constraint")
    s, journal, bush = system(planar=False)
    with pytest.raises(DiagramError, match="planar=True"):
        s.bearing("x", journal, bush, steady(), coupling="constraint")
    s, journal, bush = system()
    with pytest.raises(DiagramError, match="'force' or 'constraint', got 'rows'"):
        s.bearing("x", journal, bush, steady(), coupling="rows")
    with pytest.raises(DiagramError, match="'world' or 'bush', got 'crank'"):
        s.bearing("x", journal, bush, steady(), load_axes="crank")
    with pytest.raises(DiagramError, match="without squeeze"):
        s.bearing("x", journal, bush, ShortBearing(*SIZE), load_axes="bush")


# -- hostile plans


def held_plan() -> Plan:
    s, _, _ = turning_pin(steady(), coupling="constraint", load_axes="bush")
    d = Diagram("hostile", step=1e-3)
    d.add(s.block(outputs=["film.offset", "film.rounds"]), name="plant")
    return d.compile()


def try_out(plan: Plan) -> bool:
    """Run a plan, if it is accepted: any error of ours is fine."""
    try:
        with Instance(plan) as instance:
            instance.initialize()
            instance.run(3)
            return True
    except BiellaError:
        return False


@pytest.mark.parametrize(
    ("tag", "odd"),
    [
        ("INTS", (-1, 0, 2, 255, 256, 512, 2**31 - 1, -(2**31))),
        ("PARA", (0.0, -1.0, 1e300, np.nan, np.inf)),
    ],
)
def test_any_integer_and_number_of_a_held_bearing(tag, odd):
    """Nothing may be read or written outside, whatever is accepted."""
    plan = held_plan()
    table = read_arrays(plan.sections)[tag]
    assert try_out(with_cell(plan, tag, 0, table[0]))
    runs = [
        try_out(with_cell(plan, tag, index, value)) for index in range(table.size) for value in odd
    ]
    assert 0 < sum(runs) < len(runs)


def test_rows_that_are_not_those_of_the_bearing_are_refused():
    """The record of the film names its rows: points along x and y between its own markers."""
    plan = held_plan()
    table = np.frombuffer(plan.sections["INTS"], "<i4")
    friction, thin, cavitation, squeeze = steady().integers
    packed = friction + 8 * thin + 16 * cavitation + 64 * squeeze + 128
    [at] = [int(k) for k in np.flatnonzero((table & 511) == packed) if table[k] >> 9 > 0]
    first = (int(table[at]) >> 9) - 1
    assert try_out(with_cell(plan, "INTS", at, packed))  # a force, and rows that nobody moves
    for row in (first - 1, first + 1, 1000, 2**21):
        with pytest.raises(PlanError):
            Instance(with_cell(plan, "INTS", at, packed + 512 * (row + 1)))
