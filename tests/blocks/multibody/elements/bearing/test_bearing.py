"""Oil films inside a mechanism, against bearings as blocks and against laws of mechanics."""

from __future__ import annotations

import re
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import simpson
from scipy.spatial.transform import Rotation

from biella import BiellaWarning, BlockError, Diagram, DiagramError, run_realtime, simulate
from biella.blocks import (
    Demux,
    FiniteBearing,
    LongBearing,
    MisalignedShortBearing,
    Selector,
    ShortBearing,
)
from biella.blocks.bearings import Contact
from biella.blocks.bearings._analysis import open_film
from biella.blocks.multibody import Input, System
from biella.scheduler.engine._engine import DIAGNOSTIC_RUN

# Steps are coarse on purpose, or beside the point: the errors warned of are real.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore:the estimated error")]

SIZE = (0.02, 0.01, 4e-5, 0.01)
CLEARANCE = SIZE[2]
MASS, GRAVITY = 5.0, 9.81
LOAD = (0.0, -MASS * GRAVITY)


def planar_rotor(film, speed, start, *, mass=MASS, velocity=(0.0, 0.0), place=(0.0, 0.0)):
    """A disc whose only support is a film, with the bush at `place`."""
    s = System("rotor", (0.0, -GRAVITY), planar=True)
    at = np.add(place, start)
    disc = s.body(
        "disc", mass=mass, inertia=0.01, position=at, velocity=velocity, angular_velocity=speed
    )
    s.bearing("film", disc.marker("journal"), s.ground.marker("bush", place), film)
    return s


def run(system, until, outputs, *, step=2e-5, parameters=None, **block):
    d = Diagram("mechanism", step=step)
    d.add(system.block([], outputs, **block), name="plant")
    result = simulate(d, until, parameters=parameters)
    return result.t, [result[f"plant.{name}"] for name in outputs]


# -- the same film, wired


def wired(film, start, speed, outputs):
    """The same disc, with the film as a block between ports of the plant."""
    s = System("rotor", (0.0, -GRAVITY), planar=True)
    disc = s.body(
        "disc", mass=MASS, inertia=0.01, position=start, angular_velocity=speed, free=True
    )
    middle = disc.marker("journal")
    s.force("push", middle, (Input(), Input()))
    s.torque("brake", middle, Input())
    d = Diagram("wired", step=2e-5)
    plant = d.add(s.block(outputs=outputs), name="plant")
    d.add(film, name="film")
    for what in ("position", "velocity"):
        plane = d.add(Selector([0, 1]), name=f"plane {what}")
        d.connect(plant[f"disc.journal.{what}"], plane)
        d.connect(plane, film[what])
    spin, parts = d.add(Selector([2]), name="spin"), d.add(Demux(2), name="parts")
    d.connect(plant["disc.angular_velocity"], spin)
    d.connect(spin, film["journal_speed"])
    d.connect(film["force"], parts)
    d.connect(parts["y1"], plant["push.force.x"])
    d.connect(parts["y2"], plant["push.force.y"])
    d.connect(film["torque"], plant["brake.torque"])
    return d


@pytest.mark.parametrize("model", [ShortBearing, LongBearing])
def test_element_and_block_agree_to_integration_error(model):
    """Both give RK4 the same slopes: only rounding differs, and what 0.05 s make of it."""
    start, speed = (0.3 * CLEARANCE, 0.2 * CLEARANCE), 400.0
    motion = ["disc.journal.position", "disc.journal.velocity", "disc.angular_velocity"]
    shown = ["film.force", "film.torque", "film.film", "film.pressure", "film.power_loss"]
    outside = simulate(wired(model(*SIZE), start, speed, motion), 0.05)
    _, inside = run(planar_rotor(model(*SIZE), speed, start), 0.05, motion + shown)
    names = [f"plant.{name}" for name in motion] + shown
    for name, value in zip(names, inside, strict=True):
        wanted = outside[name]
        scale = np.abs(wanted).max()
        assert scale > 0
        found = value[:, :2] if name == "film.force" else value
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * scale, err_msg=name)


def turn(axis, angle):
    return Rotation.from_rotvec(angle * np.asarray(axis) / np.linalg.norm(axis)).as_matrix()


@st.composite
def pairs(draw):
    """Journal and bush in space, skew, spinning, a little tilted; the film still thick."""
    number = st.floats(-1.0, 1.0)
    vector = st.tuples(number, number, number).map(np.array)
    given = {
        "R": turn(draw(vector) + np.array([0, 0, 1.1]), 3 * draw(number)),
        "tilt": 0.2 * CLEARANCE / SIZE[1] * draw(vector),
        "offset": 0.45 * CLEARANCE * draw(vector) * [1, 1, 2.0],
        "place": draw(vector),
        "arms": [0.3 * draw(vector), 0.3 * draw(vector)],
    }
    for what in ("journal", "bush"):
        given[what] = (0.003 * draw(vector), given["R"] @ (draw(vector) * [1e-2, 1e-2, 300.0]))
    return given


def free_pair(film, given):
    """Two free bodies and a film between markers that are away from their middles."""
    s = System("pair", (0, 0, 0))
    R, seat = given["R"], given["place"]
    turned = R @ Rotation.from_rotvec(given["tilt"]).as_matrix()
    made = []
    for name, frame, at in (
        ("journal", turned, seat + R @ given["offset"]),
        ("bush", R, seat),
    ):
        arm = given["arms"][name == "bush"]
        velocity, spin = given[name]
        body = s.body(
            name,
            mass=2.0 if name == "bush" else 3.0,
            inertia=0.02,
            position=at - frame @ arm,
            rotation=frame,
            velocity=velocity - np.cross(spin, frame @ arm),
            angular_velocity=spin,
            free=True,
        )
        made.append(body.marker("seat", arm))
    journal, bush = made
    s.bearing("film", journal, bush, film)
    return s


@settings(max_examples=25)
@given(given=pairs(), model=st.sampled_from([ShortBearing, MisalignedShortBearing, LongBearing]))
def test_the_wrench_is_that_of_the_block_and_its_opposite(given, model):
    """Newton's law for both bodies, with the block's answer to ends found here."""
    film = model(*SIZE)
    s = free_pair(film, given)
    names = ["acceleration", "angular_acceleration", "position"]
    outputs = [f"{body}.{name}" for body in ("journal", "bush") for name in names]
    outputs += ["film.force", "film.offset", "film.torque", "film.power_loss"]
    _, values = run(s, 1e-9, outputs, step=1e-9)
    found = dict(zip(outputs, (value[0] for value in values), strict=True))

    R, length = given["R"], SIZE[1]
    line = Rotation.from_rotvec(given["tilt"]).as_matrix()[:, 2]
    (v_j, w_j), (v_b, w_b) = ([R.T @ x for x in given[name]] for name in ("journal", "bush"))
    carried = w_b * [1, 1, 0]
    places, rates, points = [], [], []
    # A long film's force jumps where the journal is in the middle, so that rounding decides there.
    assume(model is not LongBearing or np.hypot(*given["offset"][:2]) > 1e-2 * CLEARANCE)
    for z in (-length / 2, length / 2) if film.ends == 2 else (0.0,):
        point = given["offset"] + line * (z - given["offset"][2]) / line[2]
        rate = v_j + np.cross(w_j, point - given["offset"]) - v_b - np.cross(carried, point)
        points.append(point)
        places += list(point[:2])
        rates += list(rate[:2])
    with open_film(film) as block:
        for name, value in (("position", places), ("velocity", rates)):
            block.instance.set(name, value)
        block.instance.set("journal_speed", w_j[2])
        block.instance.set("bush_speed", w_b[2])
        block.instance.run(1)
        block.instance.evaluate()
        answer = {port.name: np.array(block.read(port.name)) for port in film.outputs}
    force = np.array([*answer["force"], 0.0])
    np.testing.assert_allclose(found["film.force"], R @ force, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(found["film.torque"], answer["torque"][0], rtol=1e-7, atol=1e-15)
    np.testing.assert_allclose(
        found["film.power_loss"], answer["power_loss"][0], rtol=1e-6, atol=1e-15
    )
    middle = np.reshape(places, (-1, 2)).mean(axis=0)
    np.testing.assert_allclose(found["film.offset"], middle, rtol=0, atol=1e-9 * CLEARANCE)

    # About the journal's center at end 1: a film that does not tilt acts in the middle.
    about = points[0] if film.ends == 2 else points[0] - [0, 0, length / 2]
    slope = (points[-1] - points[0]) / length
    moment = np.array([*answer["moment"], answer["torque"][0] - slope[:2] @ answer["moment"]])
    for name, sign, mass in (("journal", 1.0, 3.0), ("bush", -1.0, 2.0)):
        arm = about - R.T @ (found[f"{name}.position"] - given["place"])
        torque = sign * (moment + np.cross(arm, force))
        scale = float(np.linalg.norm(force)) + 0.1  # N: films make so much more of rounding
        np.testing.assert_allclose(
            mass * found[f"{name}.acceleration"], sign * R @ force, atol=1e-6 * scale
        )
        np.testing.assert_allclose(
            0.02 * found[f"{name}.angular_acceleration"], R @ torque, atol=1e-6 * scale
        )


# -- what is conserved


HARD = Contact(stiffness=1e7, damping=5.0, expected=True)


@pytest.mark.parametrize("spin", [0.0, 120.0])
@pytest.mark.parametrize(
    "film",
    [
        ShortBearing(*SIZE),
        MisalignedShortBearing(*SIZE),
        LongBearing(*SIZE),
        ShortBearing(*SIZE, friction="petroff"),
        ShortBearing(*SIZE, contact=HARD, film_limit=0.6 * CLEARANCE),
    ],
    ids=["short", "tilted", "long", "petroff", "contact"],
)
def test_momentum_stays_and_energy_leaves_as_power_loss(film, spin):
    """Two free bodies: no momentum is made, and energy goes as the loss says."""
    x, z = np.array([1.0, 0, 0]), np.array([0, 0, 1.0])
    given = {
        "R": turn((1, 2, -1), 0.8),
        "tilt": np.array([5e-4, -3e-4, 0.7]),
        "offset": np.array([0.4, -0.2, 5.0]) * CLEARANCE,
        "place": np.array([0.1, -0.2, 0.3]),
        "arms": [1e-4 * x + 0.03 * z, 0.02 * z - 1e-4 * x],
    }
    given["journal"] = (2e-2 * x, given["R"] @ (300.0 * z))
    given["bush"] = (np.zeros(3), given["R"] @ (spin * z))
    outputs = [f"{b}.{what}" for b in ("journal", "bush") for what in ("position", "velocity")]
    outputs += ["journal.angular_velocity", "bush.angular_velocity"]
    outputs += ["kinetic_energy", "potential_energy", "film.power_loss", "film.thin_film"]
    t, (p_j, v_j, p_b, v_b, w_j, w_b, kinetic, potential, loss, thin) = run(
        free_pair(film, given), 0.02, outputs, step=1e-6 if isinstance(film, LongBearing) else 4e-6
    )
    linear = 3.0 * v_j + 2.0 * v_b
    angular = 3.0 * np.cross(p_j, v_j) + 2.0 * np.cross(p_b, v_b) + 0.02 * (w_j + w_b)
    np.testing.assert_allclose(linear, np.tile(linear[0], (len(t), 1)), atol=1e-9)
    np.testing.assert_allclose(angular, np.tile(angular[0], (len(t), 1)), atol=1e-9)
    energy = kinetic + potential
    lost = simpson(loss, x=t)
    assert lost > 0.05
    # RK4 and Simpson's rule: a contact has corners, and the start of a long film is over in 2 µs.
    tolerance = 1e-3 if thin.any() else 1e-5 if isinstance(film, LongBearing) else 1e-6
    assert energy[0] - energy[-1] == pytest.approx(lost, rel=tolerance)
    assert HARD.stiffness is not None
    depth = max(0.0, np.hypot(0.4, 0.2) * CLEARANCE - (CLEARANCE - film.film_limit))
    assert potential[0] == pytest.approx(
        0.5 * HARD.stiffness * depth**2, rel=0.05
    )  # the tilt moves the middle
    assert thin.any() == (film.film_limit > 0.1 * CLEARANCE)


# -- where it stays, and how fast it may go


@pytest.mark.parametrize("place", [(0.0, 0.0), (1.0, -2.0)])
def test_a_loaded_rotor_settles_where_the_film_carries_it(place):
    film = ShortBearing(*SIZE, friction="none")
    speed = 0.5 * film.threshold_speed(MASS, LOAD)
    at = film.equilibrium(LOAD, speed)
    start = at.position + np.array([0.05 * CLEARANCE, 0.0])
    outputs = ["film.offset", "film.eccentricity", "film.film", "film.pressure", "film.force"]
    _, values = run(planar_rotor(film, speed, start, place=place), 0.6, outputs)
    offset, eccentricity, thickness, pressure, force = (value[-1] for value in values)
    np.testing.assert_allclose(offset, at.position, atol=1e-5 * CLEARANCE)
    assert eccentricity == pytest.approx(at.eccentricity, rel=1e-5)
    assert thickness == pytest.approx(at.film, rel=1e-5)
    assert pressure == pytest.approx(at.pressure, rel=1e-5)
    np.testing.assert_allclose(force, [0.0, MASS * GRAVITY, 0.0], atol=1e-3)


@pytest.mark.parametrize(("factor", "grows"), [(0.97, False), (1.03, True)])
def test_whirl_starts_at_the_linear_threshold(factor, grows):
    film = ShortBearing(*SIZE, friction="none")
    speed = factor * film.threshold_speed(MASS, LOAD)
    at = film.equilibrium(LOAD, speed)
    start = at.position + np.array([1e-4, 0.0]) * CLEARANCE
    _, (offset,) = run(planar_rotor(film, speed, start), 0.5, ["film.offset"])
    away = np.linalg.norm(offset - at.position, axis=1)
    early, late = away[2500:7500].max(), away[-5000:].max()
    assert (late > 1.5 * early) == grows
    assert (late < early / 1.5) != grows


LIGHT = 0.05


def light_rotor(nudge=(0.0, 0.0)):
    """A disc of 50 g under 50 N beside its weight: far more film than mass."""
    film, load = ShortBearing(*SIZE, friction="none"), (0.0, -50.0)
    whole = (0.0, load[1] - LIGHT * GRAVITY)
    at = film.equilibrium(whole, 300.0)
    start = at.position + np.array(nudge) * CLEARANCE
    s = planar_rotor(film, 300.0, start, mass=LIGHT)
    s.force("load", s["disc.journal"], load)
    return s, film.coefficients(whole, 300.0)


def test_the_largest_stable_step_counts_the_film():
    """A light rotor by its damping, a heavy one by its stiffness as well."""
    light, found = light_rotor()
    film = ShortBearing(*SIZE, friction="none")
    heavy = planar_rotor(film, 3000.0, film.equilibrium(LOAD, 3000.0).position)
    for s, mass, at in ((light, LIGHT, found), (heavy, MASS, film.coefficients(LOAD, 3000.0))):
        zero, one = np.zeros((2, 2)), np.eye(2)
        matrix = np.block([[zero, one], [-at.stiffness / mass, -at.damping / mass]])
        fastest = np.abs(np.linalg.eigvals(matrix)).max()
        assert s.largest_stable_step() == pytest.approx(2.78 / fastest, rel=1e-4)


def test_implicit_steps_do_not_jump_through_a_film():
    """The first acceleration alone would go through the bush, and Newton find no way back."""
    film = ShortBearing(*SIZE, friction="none")
    at = film.equilibrium((0.0, -LIGHT * GRAVITY), 300.0)
    start = at.position + np.array([0.3, 0.2]) * CLEARANCE
    s = planar_rotor(film, 300.0, start, mass=LIGHT)
    how = {"step": 1e-3, "mode": "internal", "integrator": "implicit"}
    _, (eccentricity, converged) = run(s, 0.05, ["film.eccentricity", "converged"], **how)
    assert converged.all()
    assert eccentricity.max() < 0.5


def test_a_light_rotor_at_1_khz_is_reported_and_implicit_steps_hold_it():
    """The step is 200 times what RK4 bears; the film still settles where it carries the load."""
    s, found = light_rotor((0.1, 0.2))
    with pytest.warns(BiellaWarning, match=r"RK4 is not stable with steps of 0\.001 s"):
        simulate_once(s, 1e-3)
    _, (offset, converged) = run(
        s, 0.2, ["film.offset", "converged"], step=1e-3, mode="internal", integrator="implicit"
    )
    np.testing.assert_allclose(offset[-1], found.equilibrium.position, atol=1e-9 * CLEARANCE)
    assert converged.all()


def simulate_once(system, step):
    d = Diagram("mechanism", step=step)
    d.add(system.block(), name="plant")
    d.compile()


def test_implicit_steps_follow_the_orbit():
    """The orbit of RK4, to second order; errors are parts of the clearance."""
    s = planar_rotor(ShortBearing(*SIZE), 700.0, (0.0, -0.8 * CLEARANCE))
    _, (exact,) = run(s, 0.02, ["film.offset"], step=1e-5)
    errors = []
    for step in (1e-4, 5e-5, 2e-5):
        _, (offset,) = run(
            s, 0.02, ["film.offset"], step=step, mode="internal", integrator="implicit"
        )
        errors.append(np.abs(offset - exact[:: round(step / 1e-5)]).max() / CLEARANCE)
    assert errors[2] < 5e-4
    assert errors[0] / errors[1] > 3.5
    assert errors[1] / errors[2] > 5.0


# -- numbers, options and errors


def test_numbers_are_set_before_a_run():
    start, outputs = (0.2 * CLEARANCE, 0.0), ["film.offset"]
    other = (0.025, 0.012, 5e-5, 0.02)
    names = ("radius", "length", "clearance", "viscosity")
    changed = {f"plant.film.{name}": value for name, value in zip(names, other, strict=True)}
    made = ShortBearing(*other, contact=Contact(stiffness=1e8), film_limit=4e-7)
    given = ShortBearing(*SIZE, contact=Contact(stiffness=1e8))
    _, (wanted,) = run(planar_rotor(made, 300.0, start), 0.01, outputs)
    _, (found,) = run(planar_rotor(given, 300.0, start), 0.01, outputs, parameters=changed)
    assert np.array_equal(found, wanted)
    _, (without,) = run(planar_rotor(given, 300.0, start), 0.01, outputs)
    assert not np.allclose(without, wanted, rtol=0, atol=0.01 * CLEARANCE)


def test_an_fmu_has_the_film_and_its_viscosity(tmp_path):
    fmpy = pytest.importorskip("fmpy")
    s = planar_rotor(ShortBearing(*SIZE), 300.0, (0.2 * CLEARANCE, 0.0))
    outputs = ["film.offset", "film.power_loss"]
    path = s.export_fmu(tmp_path / "rotor.fmu", outputs=outputs, step=1e-4, sources=False)
    outside = fmpy.simulate_fmu(
        str(path), stop_time=0.02, output_interval=1e-3, start_values={"film.viscosity": 0.02}
    )
    _, (offset, loss) = run(s, 0.02, outputs, step=1e-4, parameters={"plant.film.viscosity": 0.02})
    assert np.array_equal(outside["film.power_loss"], loss[::10])
    assert np.array_equal(outside["film.offset[1]"], offset[::10, 1])


def test_without_squeeze_velocities_do_not_count():
    start = (0.5 * CLEARANCE, 0.0)
    for squeeze in (False, True):
        film = ShortBearing(*SIZE, squeeze=squeeze)
        told = nullcontext() if squeeze else pytest.warns(BiellaWarning, match="nothing damps")
        with told:
            forces = [
                run(planar_rotor(film, 300.0, start, velocity=v), 2e-5, ["film.force"])[1][0][0]
                for v in ((0.0, 0.0), (1e-3, 1e-3))
            ]
        assert np.array_equal(*forces) != squeeze


@pytest.mark.parametrize("options", [{}, {"mode": "internal", "integrator": "implicit"}])
def test_a_film_without_contact_stops_the_run_by_name(options):
    film = ShortBearing(*SIZE, contact=None, film_limit=0.5 * CLEARANCE)
    s = planar_rotor(film, 0.0, (0.0, 0.0))
    with pytest.raises(
        BlockError, match="film of `film` is thinner than its `film_limit`, 2e-05 m"
    ):
        run(s, 5.0, ["disc.position"], step=1e-3 if options else 2e-4, **options)


def test_a_number_that_makes_no_bearing_is_refused_by_name():
    s = planar_rotor(ShortBearing(*SIZE), 0.0, (0.0, 0.0))
    with pytest.raises(
        BlockError, match=r"parameter `clearance` of `film` is -1: it must be finite"
    ):
        run(s, 1e-3, ["film.film"], parameters={"plant.film.clearance": -1.0})


def test_what_is_no_film_of_a_mechanism():
    s = System("rotor", planar=True)
    a, b = s.body("disc", mass=1.0, inertia=1.0).marker("a"), s.ground.marker("b")
    with pytest.raises(DiagramError, match=r"is a FiniteBearing.*for diagrams only"):
        s.bearing("film", a, b, FiniteBearing(*SIZE))
    with pytest.raises(DiagramError, match=r"is a bearing, such as ShortBearing\(.*got 0.02"):
        s.bearing("film", a, b, 0.02)  # type: ignore[arg-type]
    with pytest.raises(DiagramError, match="viscosity from a signal"):
        s.bearing("film", a, b, ShortBearing(*SIZE, viscosity_input=True))
    with pytest.raises(DiagramError, match="ties `disc` to itself"):
        s.bearing("film", a, a, ShortBearing(*SIZE))
    film = s.bearing("film", a, b, ShortBearing(*SIZE))
    assert s["film"] is film
    with pytest.raises(
        DiagramError, match="`film` is a lubricated bearing, whose film is computed only"
    ):
        s.equilibrium()
    with pytest.raises(DiagramError, match=r"no output `film.presure`.*Did you mean `film.pre"):
        s.block(outputs=["film.presure"])
    with pytest.raises(DiagramError, match="cannot be an input"):
        s.block(["film.viscosity"])


def test_markers_whose_axes_cross_are_no_bearing():
    s = System("rotor")
    a = s.body("disc", mass=1.0, inertia=1.0).marker("a", axis=(1, 0, 0))
    s.bearing("film", a, s.ground.marker("b"), ShortBearing(*SIZE))
    with pytest.raises(DiagramError, match=r"`disc\.a` and `ground\.b` do not form a bearing axis"):
        s.block()


def test_a_bearing_is_drawn():
    s = planar_rotor(ShortBearing(*SIZE), 300.0, (0.0, 0.0))
    figure = s.draw()
    assert figure is not None


# -- films that were too thin


OVERLOAD = 500.0
THIN = (
    r"the film of `film` was thinner than its `film_limit`, 4e-07 m, for (?P<seconds>[\d.e-]+) s, "
    r"first at t = (?P<first>[\d.e-]+) s, and thinnest at t = (?P<when>[\d.e-]+) s: "
    r"(?P<least>-?[\d.e-]+) m"
)


def overloaded(load=OVERLOAD, **contact):
    """A disc that is pushed through a film of next to no viscosity: the contact stops it."""
    film = ShortBearing(*SIZE[:3], 1e-5, contact=Contact(stiffness=1e8, damping=10.0, **contact))
    s = planar_rotor(film, 10.0, (0.0, 0.0))
    s.force("load", s["disc.journal"], (0.0, -load))
    return s


THIN_MODES = {
    "continuous": {},
    "rk4": {"mode": "internal"},
    "implicit": {"mode": "internal", "integrator": "implicit"},
}


@pytest.mark.parametrize("mode", THIN_MODES)
def test_a_run_ends_with_a_warning_of_a_film_that_was_too_thin(mode):
    """How long, since when and how thin: as the outputs have it."""
    with pytest.warns(BiellaWarning, match=THIN) as told:
        t, (thin, film) = run(
            overloaded(), 0.005, ["film.thin_film", "film.film"], step=1e-5, **THIN_MODES[mode]
        )
    texts = [text for item in told if "the estimated error" not in (text := str(item.message))]
    assert len(texts) == 1
    match = re.search(THIN, texts[0])
    assert match is not None
    found = {name: float(value) for name, value in match.groupdict().items()}
    assert thin.any() and not thin[0]
    assert found["first"] == pytest.approx(t[thin.argmax()], rel=1e-5)
    assert found["when"] == pytest.approx(t[film.argmin()], rel=1e-5)
    assert found["least"] == pytest.approx(film.min(), rel=1e-2)
    assert found["seconds"] == pytest.approx(1e-5 * thin[1:].sum(), rel=1e-2)


def test_a_film_that_stays_whole_is_not_reported():
    run(overloaded(load=0.0), 1e-4, ["film.film"], step=1e-5)


def test_an_expected_contact_is_reported_only_where_it_is_too_soft():
    run(overloaded(expected=True), 0.005, ["film.film"], step=1e-5)
    soft = r"`film` was thinner than minus its clearance, -4e-05 m, .*clearances beyond.*too soft"
    with pytest.warns(BiellaWarning, match=soft):
        run(overloaded(load=2e4, expected=True), 0.005, ["film.film"], step=1e-5)


def test_the_worst_of_several_films_is_reported():
    s = overloaded()
    other = s.body("other", mass=MASS, inertia=0.01, position=(1.0, 0.0))
    bush = s.ground.marker("other bush", (1.0, 0.0))
    s.bearing("second", other.marker("journal"), bush, ShortBearing(*SIZE[:3], 1e-5))
    s.force("push", s["other.journal"], (0.0, -400.0))
    with pytest.warns(BiellaWarning, match=r"film of `film` .*So was 1 other film, less far\.$"):
        run(s, 0.005, ["film.film", "second.film"], step=1e-6)


def test_what_was_too_thin_belongs_to_the_state():
    d = Diagram("mechanism", step=1e-5)
    d.add(overloaded().block([], ["film.film"]), name="plant")
    plan = d.compile()
    with plan.instantiate() as first, plan.instantiate() as second:
        first.run(500)
        second.restore(first.save())
        texts = []
        for instance in (first, second):
            instance.run(100)
            with pytest.warns(BiellaWarning, match=THIN) as told:
                instance.warn(DIAGNOSTIC_RUN)
            texts.append(str(told[0].message))
            instance.initialize()
            instance.warn(DIAGNOSTIC_RUN)  # nothing is left of it
    assert texts[0] == texts[1]


def test_a_real_time_run_warns_of_a_film_that_was_too_thin():
    d = Diagram("mechanism", step=1e-5)
    d.add(overloaded().block([], ["film.film"]), name="plant")
    with pytest.warns(BiellaWarning, match=THIN):
        run_realtime(d, 0.005, clock="free").wait()


def test_a_steady_film_as_a_force_is_warned_of():
    film = ShortBearing(*SIZE, squeeze=False, friction="none")
    s = planar_rotor(film, 300.0, (0.0, -0.5 * CLEARANCE))
    d = Diagram("undamped", step=1e-5)
    d.add(s.block([], ["film.eccentricity"]), name="plant")
    undamped = r"`plant`.*film of `film` has squeeze=False .*nothing damps .*coupling='constraint'"
    with pytest.warns(BiellaWarning, match=undamped), pytest.warns(BiellaWarning, match=THIN):
        result = simulate(d, 0.05)
    assert result["plant.film.eccentricity"].max() > 1.0


@pytest.mark.parametrize("mode", ["continuous", "rk4"])
@pytest.mark.parametrize(("load", "step"), [(2e4, 1e-5), (2e4, 2e-6), (5e3, 1e-5), (5e3, 5e-5)])
def test_explicit_steps_that_settle_at_a_wrong_film_are_warned_of(mode, load, step):
    """A film that is pressed together: RK4 stays where a smaller film would be too stiff for it.

    Nothing is wrong at the start, where the step is stable, and nothing rings from tick to tick by
    more than a percent: only the forces are not in balance.
    """

    def settle(**options):
        s = planar_rotor(ShortBearing(*SIZE), 10.0, (0.0, 0.0))
        s.force("load", s["disc.journal"], (0.0, -load))
        _, (film,) = run(s, 5e-3, ["film.film"], step=step, **options)
        return film[-1]

    told = (
        r"the film of `film` was too stiff for explicit steps in \d+ of \d+ .*integrator='implicit'"
    )
    with pytest.warns(BiellaWarning, match=told):
        wrong = settle(**THIN_MODES[mode])
    assert wrong > 2 * settle(**THIN_MODES["implicit"])


def test_outputs_of_two_films_do_not_depend_on_their_order():
    """A film is evaluated once for outputs that follow one another: each has its own film."""
    s = System("two", (0.0, -GRAVITY), planar=True)
    rotor = s.body("rotor", mass=MASS, inertia=0.01, position=(1e-5, 5e-6), angular_velocity=200.0)
    journal, bush = rotor.marker("journal"), s.ground.marker("bush")
    s.bearing("a", journal, bush, ShortBearing(*SIZE))
    s.bearing("b", journal, bush, ShortBearing(0.02, 0.02, 6e-5, 0.02))
    names = ["force", "film", "pressure", "offset", "torque"]
    orders = (
        [f"{film}.{name}" for film in "ab" for name in names],
        [f"{film}.{name}" for name in names for film in "ab"],
        [f"{film}.{name}" for name in reversed(names) for film in "ba"],
    )
    runs = []
    for outputs in orders:
        d = Diagram("d", step=1e-5)
        d.add(s.block(outputs=outputs), name="plant")
        runs.append(simulate(d, 1e-3))
    first = runs[0]
    assert not np.array_equal(first["plant.a.film"], first["plant.b.film"])
    for other in runs[1:]:
        assert all(np.array_equal(first[path], other[path]) for path in first)
