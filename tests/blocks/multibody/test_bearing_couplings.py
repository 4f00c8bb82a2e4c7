"""Couplings of a film and a mechanism compared: as a force inside, as a block beside it."""

from __future__ import annotations

import warnings
from typing import Any, cast

import numpy as np
import pytest
from scipy.optimize import root
from scipy.spatial.transform import Rotation

from biella import BiellaWarning, BlockError, Diagram, linearize, run_realtime, simulate
from biella.blocks import Demux, FiniteBearing, MisalignedShortBearing, Selector, ShortBearing
from biella.blocks.bearings import Contact
from biella.blocks.bearings._analysis import open_film
from biella.blocks.multibody import Input, Marker, System
from biella.blocks.multibody.mechanisms import crank_pin, crank_pin_film

# Steps are coarse on purpose, or beside the point: the errors warned of are real.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore:the estimated error")]

SIZE = (0.02, 0.01, 4e-5, 0.01)
CLEARANCE = SIZE[2]
LIGHT, HEAVY, GRAVITY, SPEED = 0.05, 5.0, 9.81, 300.0
LOAD = (0.0, -50.0)
OWN = {"mode": "internal"}
IMPLICIT: dict[str, Any] = {"mode": "internal", "integrator": "implicit"}


def film(**options):
    return ShortBearing(*SIZE, friction="none", **options)


def start_of(mass, nudge):
    at = film().equilibrium((0.0, LOAD[1] - mass * GRAVITY), SPEED).position
    return at + np.array(nudge) * CLEARANCE


def disc(mass, nudge):
    s = System("rotor", (0.0, -GRAVITY), planar=True)
    body = s.body(
        "disc",
        mass=mass,
        inertia=0.01,
        position=start_of(mass, nudge),
        angular_velocity=SPEED,
        free=True,
    )
    s.force("load", body.marker("journal"), LOAD)
    return s


def wired(mass, step, *, nudge=(0.02, 0.01), bearing=None, **block):
    """The disc with its film as a block."""
    s = disc(mass, nudge)
    s.force("push", s["disc.journal"], (Input(), Input()))
    motion = ["disc.journal.position", "disc.journal.velocity", "disc.angular_velocity"]
    d = Diagram("wired", step=step)
    plant = d.add(s.block(outputs=motion, **block), name="plant")
    bearing = d.add(bearing or film(), name="film")
    for what in ("position", "velocity"):
        plane = d.add(Selector([0, 1]), name=f"plane {what}")
        d.connect(plant[f"disc.journal.{what}"], plane)
        d.connect(plane, bearing[what])
    spin, parts = d.add(Selector([2]), name="spin"), d.add(Demux(2), name="parts")
    d.connect(plant["disc.angular_velocity"], spin)
    d.connect(spin, bearing["journal_speed"])
    d.connect(bearing["force"], parts)
    d.connect(parts["y1"], plant["push.force.x"])
    d.connect(parts["y2"], plant["push.force.y"])
    return d


def inside(mass, step, until, *, nudge=(0.02, 0.01), **block):
    """The path of the disc with its film inside the mechanism, in clearances."""
    s = disc(mass, nudge)
    s.bearing("film", s["disc.journal"], s.ground.marker("bush"), film())
    d = Diagram("inside", step=step)
    d.add(s.block(outputs=["disc.journal.position"], **block), name="plant")
    return path_of(simulate(d, until))


def path_of(result):
    return result["plant.disc.journal.position"][:, :2] / CLEARANCE


# -- the same motion, to the order of the exchange


@pytest.mark.parametrize(
    ("how", "order"),
    [
        ({"coupling": "jacobi", "extrapolation": 0}, 1),
        ({"coupling": "jacobi", "extrapolation": 1}, 2),
        ({"coupling": "newton", "extrapolation": 0}, 2),
        ({"coupling": "newton", "extrapolation": 2}, 3),
        ({"coupling": "fixed-point", "extrapolation": 1}, 2),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else str(value),
)
def test_a_block_with_steps_of_its_own_goes_to_the_force_element(how, order):
    """A rotor of 5 kg; the force element in RK4 steps is exact beside these errors."""
    until, nudge = 4e-3, (0.1, 0.05)
    exact = inside(HEAVY, 1e-6, until, nudge=nudge)[-1]
    errors = []
    for step in (2e-5, 1e-5):
        d = wired(HEAVY, step, nudge=nudge, **OWN)
        errors.append(np.linalg.norm(path_of(simulate(d, until, **how))[-1] - exact))
    assert errors[1] > 1e-12
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.35)


def test_a_block_in_minor_steps_is_the_force_element():
    """No coupling error at all: the same slopes, and so the same order four, to rounding."""
    until, nudge = 4e-3, (0.1, 0.05)
    exact = inside(HEAVY, 1e-6, until, nudge=nudge)[-1]
    errors = []
    for step in (4e-5, 2e-5):
        beside = path_of(simulate(wired(HEAVY, step, nudge=nudge), until))
        np.testing.assert_allclose(beside, inside(HEAVY, step, until, nudge=nudge), atol=1e-10)
        errors.append(np.linalg.norm(beside[-1] - exact))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4, abs=0.5)


# -- a rotor too light for the exchange


@pytest.mark.filterwarnings("ignore:gauss-seidel is equivalent to jacobi")
@pytest.mark.parametrize(
    ("block", "how"),
    [(OWN, {}), (IMPLICIT, {}), (OWN, {"coupling": "gauss-seidel", "extrapolation": 1}), ({}, {})],
    ids=["explicit", "of implicit steps", "gauss-seidel", "minor steps"],
)
def test_an_exchange_that_is_unstable_says_so_instead_of_exploding(block, how):
    """50 g at 1 kHz: the block is named, in a warning before the run and in the error."""
    d = wired(LIGHT, 1e-3, **block)
    with (
        pytest.warns(BiellaWarning, match=r"`film` .*too long for the exchange.*d\.couple\(plant"),
        pytest.raises(BlockError, match=r"`film` .*beyond its bush.*method='newton'") as caught,
    ):
        simulate(d, 0.1, **how)
    assert np.abs(path_of(caught.value.result)).max() < 1e4
    assert caught.value.result is not None
    assert caught.value.result.t[-1] < 0.02


@pytest.mark.parametrize(("block", "step"), [(OWN, 1e-5), (OWN, 4e-6), ({}, 1e-5)])
def test_an_exchange_that_rings_is_reported(block, step):
    """Nothing explodes, because a film cavitates; the disc goes elsewhere all the same."""
    d = wired(LIGHT, step, **block)
    with pytest.warns(BiellaWarning, match=r"`film` .*(oscillate from tick to tick|grows)"):
        path = path_of(simulate(d, 0.02))
    rest = start_of(LIGHT, (0, 0)) / CLEARANCE
    assert np.linalg.norm(path[-1] - rest) > 0.02


def test_a_realtime_run_is_warned_of_as_well():
    exchange = pytest.warns(
        BiellaWarning,
        match=r"`film` .*too long for the "
        r"exchange.*d\.couple\(plant",
    )
    lost = pytest.warns(
        BiellaWarning, match=r"`film` .*: its film was thinner than its `film_limit`"
    )
    with exchange, lost, pytest.raises(BlockError):
        run_realtime(wired(LIGHT, 1e-3, **OWN), 0.1, clock="free").wait()


@pytest.mark.parametrize("bearing", [None, FiniteBearing(*SIZE, cells=(64, 4))])
def test_what_is_stable_is_not_reported(bearing):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "the estimated error")
        simulate(wired(LIGHT, 2e-6, bearing=bearing), 2e-4)
        simulate(wired(HEAVY, 2e-5), 2e-3)
        simulate(wired(HEAVY, 2e-5, **OWN), 2e-3)
        simulate(wired(LIGHT, 1e-3, **OWN), 0.1, coupling="newton")


def test_only_runs_are_tried_beforehand(tmp_path):
    """Compiling and exporting take no ticks of a film; what a run is given, its trial is given."""
    d = wired(LIGHT, 1e-3, **OWN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = d.compile()
        d.export_fmu(tmp_path / "film.fmu", outputs=["film.force"])
        stable = wired(HEAVY, 2e-5, **OWN).compile()
        simulate(stable, 2e-3)
    with pytest.warns(BiellaWarning, match="too long for the exchange"), pytest.raises(BlockError):
        simulate(plan, 0.1)
    with pytest.warns(BiellaWarning, match="too long for the exchange"), pytest.raises(BlockError):
        simulate(stable, 2e-3, parameters={"film.viscosity": 10.0})


def test_a_film_with_its_viscosity_wired_is_tried_too():
    bearing = ShortBearing(*SIZE, friction="none", viscosity_input=True)
    with pytest.warns(BiellaWarning, match="too long for the exchange"), pytest.raises(BlockError):
        simulate(wired(LIGHT, 1e-3, bearing=bearing, **OWN), 0.1)


def test_a_stiff_block_alone_or_fed_from_outside_is_not_looked_at():
    """Nothing is exchanged, so nothing can be unstable; and nothing is run."""
    d = Diagram("alone")
    bearing = d.add(film(), name="film")
    d.connect(d.input("at", width=2, unit="m"), bearing["position"])
    assert not d.compile().stiff


@pytest.mark.parametrize("step", [1e-3, 1e-4])
@pytest.mark.parametrize("block", [OWN | {"substeps": 10}, IMPLICIT])
def test_newton_couples_a_light_rotor_at_any_step(block, step):
    """200 times the step that an explicit exchange bears: every step converges."""
    d = wired(LIGHT, step, nudge=(0.05, 0.1), **block)
    d.couple(d["plant"], method="newton", failure="error")
    result = simulate(d, 0.2, estimate_error=10)
    rest = start_of(LIGHT, (0, 0)) / CLEARANCE
    np.testing.assert_allclose(path_of(result)[-1], rest, atol=2e-3)
    assert np.hypot(*path_of(result).T).max() < 0.8
    told = str(result.coupling_report())
    assert "plant: newton, extrapolation 0" in told
    assert "0 not converged" in told
    assert "parts.y1 → plant.push.force.x" in told


def test_newton_comes_back_from_guesses_outside_the_bush():
    """From the middle under a load of 200 N: the first guess is far outside the bush."""
    d = wired(LIGHT, 1e-3, nudge=(0.3, 0.6), **OWN)
    d.couple(d["plant"], method="newton", failure="error")
    path = path_of(simulate(d, 0.05, parameters={"plant.load.force.y": -200.0}))
    assert np.hypot(*path.T).max() < 1.0


PARTED = {
    # steps and their length, hold, mass, eccentricity and its angle at the start, load, what the
    # plant does inside; and whether the step itself is too long, or only the Jacobian too old
    "unconverged": (60, 5.9e-4, 0, 0.77, 0.056, 2.6, 570.0, OWN | {"substeps": 10}, True),
    "refused": (60, 1.5e-3, 1, 6.9, 0.17, 5.2, 470.0, IMPLICIT, True),
    "an old Jacobian": (200, 9.9e-5, 0, 0.044, 0.41, 0.51, 540.0, OWN | {"substeps": 10}, False),
}


@pytest.mark.parametrize("case", PARTED)
def test_a_coupled_step_that_fails_is_repeated(case):
    """Thrown at its bush, the journal comes to rest where the film carries the load."""
    count, step, extrapolation, mass, part, angle, load, block, shortens = PARTED[case]
    start = part * np.array([np.cos(angle), np.sin(angle)])
    d = wired(mass, step, nudge=start - start_of(mass, (0, 0)) / CLEARANCE, **block)
    d.couple(d["plant"], method="newton", extrapolation=extrapolation, failure="error", halvings=0)
    values = {"plant.load.force.y": -load}
    with pytest.raises(BlockError, match=r"beyond its bush|did not converge: after"):
        simulate(d, count * step, parameters=values)
    d.couplings.clear()
    d.couple(d["plant"], method="newton", extrapolation=extrapolation, failure="error")
    run = simulate(d, count * step, parameters=values)
    rest = film().equilibrium((0.0, -load - mass * GRAVITY), SPEED).position / CLEARANCE
    np.testing.assert_allclose(path_of(run)[-1], rest, atol=5e-3)
    assert np.hypot(*path_of(run).T).max() < 0.95
    assert (run["coupling.plant.shortened"][-1] > 0) == shortens


def test_the_report_says_what_is_in_force():
    text = str(simulate(wired(HEAVY, 2e-5), 1e-3).coupling_report())
    assert "plant: as one, with all that is computed in between, in minor steps of rk4" in text
    result = simulate(wired(HEAVY, 2e-5, **OWN), 1e-3, estimate_error=1)
    told = result.coupling_report(tolerance=1e-6)
    assert "plant: jacobi, extrapolation 0" in str(told)
    assert told.limiting is not None
    assert told.limiting.readers[0].startswith("plant.push.force")
    again = simulate(wired(HEAVY, 2e-5, **OWN), 1e-3, coupling="newton", estimate_error=1)
    assert again.coupling_report().connections[0].relative_error < 0.2 * (
        told.connections[0].relative_error
    )


# -- linearized


@pytest.mark.parametrize("load", [5.0, 50.0, 500.0])
@pytest.mark.parametrize(
    "make",
    [
        lambda: ShortBearing(*SIZE),
        lambda: ShortBearing(*SIZE, contact=None),
        lambda: FiniteBearing(*SIZE, cells=(64, 8)),
    ],
    ids=["short", "no contact", "finite"],
)
def test_linearize_finds_stiffness_and_damping_of_a_film(make, load):
    bearing = make()
    found = bearing.coefficients((0.0, -load), SPEED)
    d = Diagram("film")
    d.add(bearing, name="bearing")
    for name, width in (("position", 2), ("velocity", 2), ("journal_speed", 1)):
        d.connect(d.input(name, width=width), bearing[name])
    d.output("force", bearing["force"])
    at = {"position": found.equilibrium.position, "journal_speed": SPEED}
    D = linearize(d, ["position", "velocity"], ["force"], at=at).D
    for part, wanted in ((-D[:, :2], found.stiffness), (-D[:, 2:], found.damping)):
        np.testing.assert_allclose(part, wanted, atol=1e-4 * np.abs(wanted).max())


def test_linearize_finds_the_motions_of_a_rotor_on_a_film():
    d = wired(LIGHT, 1e-6, nudge=(0.0, 0.0))
    d.output("at", d["plant"]["disc.journal.position"])
    d.input("nothing")
    found = np.sort_complex(np.linalg.eigvals(linearize(d, ["nothing"], ["at"]).A))
    at = film().coefficients((0.0, LOAD[1] - LIGHT * GRAVITY), SPEED)
    zero, one = np.zeros((2, 2)), np.eye(2)
    matrix = np.block([[zero, one], [-at.stiffness / LIGHT, -at.damping / LIGHT]])
    wanted = np.sort_complex(np.linalg.eigvals(matrix))
    np.testing.assert_allclose(found[:4], wanted, rtol=1e-4)
    np.testing.assert_allclose(found[4:], 0.0, atol=1e-3)  # the spin


# -- Vita's cases


def crank_run(pin, until, step, **block):
    d = Diagram(pin, step=step)
    shown = ["rod.position", "rod.acceleration", "rod.big.position", "crank.pin.position"]
    d.add(crank_pin(pin).block(outputs=shown, **block), name="plant")
    return simulate(d, until)


def crank_orbit(run):
    """Of the journal in axes of the crank, in clearances."""
    away = (run["plant.rod.big.position"] - run["plant.crank.pin.position"])[:, :2]
    turned = (away[:, 0] + 1j * away[:, 1]) * np.exp(-628.3185j * run.t)
    return np.stack([turned.real, turned.imag], axis=1) / crank_pin_film().clearance


def test_a_lubricated_crank_pin_moves_the_rod_as_an_ideal_one_does():
    """As in the thesis: the same path, accelerations slightly different, an orbit that repeats."""
    step, turn = 1e-5, 1000
    ideal = crank_run("ideal", 0.1, step)
    for pin, block in (("force", IMPLICIT), ("constraint", {})):
        run = crank_run(pin, 0.1, step, **block)
        path, pull = (
            np.abs(run[f"plant.rod.{what}"] - ideal[f"plant.rod.{what}"])[-turn:].max()
            for what in ("position", "acceleration")
        )
        assert path < 0.2 * crank_pin_film().clearance
        largest = np.abs(ideal["plant.rod.acceleration"]).max()
        assert 1e-6 * largest < pull < 3e-4 * largest
        orbit = crank_orbit(run)
        assert 0.03 < np.hypot(*orbit[-turn:].T).max() < 0.25
        assert np.abs(orbit[-1] - orbit[-1 - turn]).max() < 1e-3


def test_implicit_steps_give_accelerations_without_noise():
    """A film makes 4e6 N of a m/s: Newton must not stop where positions alone would do."""
    run = crank_run("force", 0.03, 1e-5, **IMPLICIT)
    ideal = crank_run("ideal", 0.03, 1e-5)
    off = (run["plant.rod.acceleration"] - ideal["plant.rod.acceleration"])[2000:, :2]
    assert np.abs(np.diff(off, axis=0)).max() < 0.2
    assert np.abs(off).max() < 10.0


def rotor_on_films(inertia):
    """Vita's rotor [V 4.8.2, tables 4.2-4.3], as in examples/09."""
    s = System("rotor", (0, 0, 0))
    body = s.body(
        "rotor",
        mass=1.0,
        inertia=inertia,
        com=(1e-3, 0, 0),
        angular_velocity=(0, 0, 100.0),
        allow_nonphysical=True,
    )
    s.in_plane("axial", s.ground, body, at=(0, 0, 0), axis=(0, 0, 1))
    for name, end in (("a", -0.2), ("b", 0.1)):
        middle = (0, 0, end + 0.01)
        bush = s.ground.marker(name, middle)
        s.bearing(f"film_{name}", body.marker(name, middle), bush, rotor_film())
    return s


def rotor_film():
    return MisalignedShortBearing(0.02, 0.02, 3e-4, 0.0242, friction="none")


def turning_equilibrium(inertia, speed):
    """Journals of that rotor where it turns round steadily: Newton and Euler in turning axes.

    Bushes turn backwards there, journals stand still; one file of the library, the film, is used.
    """
    ends = {"a": np.array([-0.2, -0.18]), "b": np.array([0.1, 0.12])}

    def loads(x):
        place, tilt = x[:2] * 1e-4, x[2:] * 1e-4 / 0.1  # of the axis at z = 0; its slope
        R = Rotation.from_rotvec([-tilt[1], tilt[0], 0.0]).as_matrix()
        force, moment = np.zeros(3), np.zeros(3)
        offsets = {}
        with open_film(rotor_film()) as block:
            for name, z in ends.items():
                at = place + tilt * z[:, None]
                offsets[name] = at.mean(axis=0)
                block.instance.set("position", at.ravel())
                block.instance.set("bush_speed", -speed)
                block.instance.run(1)
                block.instance.evaluate()
                F = np.array([*block.read("force"), 0.0])
                force += F
                moment[:2] += block.read("moment")
                moment += np.cross([*at[0], z[0]], F)
        center = np.array([*place, 0.0]) + R @ [1e-3, 0.0, 0.0]
        spin = np.array([0.0, 0.0, speed])
        carried = force + speed**2 * np.array([*center[:2], 0.0])
        turning = np.cross(spin, R @ np.diag(inertia) @ R.T @ spin)
        about = moment - np.cross(center, force) - turning
        return np.array([*carried[:2], *about[:2] / 0.1]), offsets, center

    found = root(lambda x: loads(x)[0], [0.5, 1.5, 0.0, 0.0], tol=1e-10)
    assert found.success
    return loads(found.x)[1:]


@pytest.mark.parametrize("inertia", [(0.01, 0.01, 0.3), (0.01, 0.01, 0.02)])
def test_journals_and_mass_of_a_rotor_on_two_films_go_on_circles(inertia):
    d = Diagram("rotor", step=1e-4)
    s = rotor_on_films(inertia)
    s["rotor"].marker("center", (1e-3, 0, 0))
    shown = ["rotor.center.position", "film_a.offset", "film_b.offset", "rotor.angular_velocity"]
    d.add(s.block(outputs=shown), name="plant")
    run = simulate(d, 1.0)
    offsets, center = turning_equilibrium(inertia, run["plant.rotor.angular_velocity"][-1, 2])
    last = slice(-630, None)
    for name in ("a", "b"):
        radius = np.linalg.norm(run[f"plant.film_{name}.offset"][last], axis=1)
        assert np.ptp(radius) < 1e-4 * radius.mean()
        assert radius.mean() == pytest.approx(np.linalg.norm(offsets[name]), rel=2e-4)
    radius = np.linalg.norm(run["plant.rotor.center.position"][last, :2], axis=1)
    assert radius.mean() == pytest.approx(np.linalg.norm(center[:2]), rel=1e-5)
    assert 1.0e-3 < radius.mean() < 1.3e-3


# -- films in implicit steps


HARD_STEPS = {
    # mass, speed, step, start in clearances, its angle, velocity, load
    "guess, thrown": (0.498, 42.2, 8.78e-4, 0.733, 4.44, (-0.135, 0.21), 1.77),
    "guess, coarse": (0.562, 345.0, 3.39e-3, 0.82, 5.9, (-0.0145, 0.0312), 8.2),
    "guess, light": (0.0121, 498.0, 2.42e-4, 0.0605, 0.805, (0.271, -0.117), 6.94),
    "guess, slow": (0.0782, 206.0, 2.18e-3, 0.657, 2.67, (0.0008, 0.0021), 1.86),
    "change, thrown": (0.782, 245.0, 3.32e-4, 0.242, 3.28, (0.585, 0.0588), 12.6),
    "change, slow": (0.0389, 82.6, 2.2e-4, 0.734, 0.458, (0.0075, 0.0163), 3.39),
    "change, heavy": (6.36, 56.3, 1.07e-4, 0.818, 5.58, (0.242, 0.727), 8.92),
}


@pytest.mark.parametrize("case", HARD_STEPS)
def test_newton_in_implicit_steps_does_not_close_a_film(case):
    """Each of these fails to converge, or takes halves, if a guard is left out.

    The first ones if a step starts from the accelerations of the last, also where these lead
    through the bush; the others if Newton's changes are not cut where they close a film.
    """
    step = HARD_STEPS[case][2]
    assert simulate(hard_steps(*HARD_STEPS[case]), 40 * step)["plant.converged"].all()


def hard_steps(mass, speed, step, start, angle, velocity, load):
    s = System("rotor", (0, 0), planar=True)
    at = start * CLEARANCE * np.array([np.cos(angle), np.sin(angle)])
    body = s.body(
        "disc", mass=mass, inertia=0.01, position=at, velocity=velocity, angular_velocity=speed
    )
    s.force("load", body.marker("journal"), (0.0, -load))
    touching = film(contact=Contact(expected=True))  # one of them is thrown against its bush
    s.bearing("film", cast(Marker, s["disc.journal"]), s.ground.marker("bush"), touching)
    d = Diagram("hard", step=step)
    d.add(s.block(outputs=["converged", "film.offset"], **IMPLICIT), name="plant")
    return d


@pytest.mark.parametrize(
    "case",
    [
        (0.0589, 473.0, 6.77e-4, 0.455, 2.87, (-0.42, -0.833), 98.8),
        (0.303, 77.9, 2.12e-3, 0.476, 1.47, (0.108, -0.026), 6.93),
        (0.359, 291.0, 3.21e-3, 0.0432, 0.276, (0.0377, 0.0537), 89.8),
        (0.0373, 325.0, 9.82e-4, 0.747, 6.07, (0.00897, -0.0057), 29.1),
    ],
)
def test_steps_too_long_for_newton_are_taken_in_as_many_parts_as_it_wants(case):
    """Thrown rotors that two halves of a step do not follow; they settle where the film carries."""
    _, speed, step, *_, load = case
    result = simulate(hard_steps(*case), 400 * step)
    assert not result["plant.converged"].all()
    wanted = film().equilibrium((0.0, -load), speed).position
    assert np.abs(result["plant.film.offset"][-1] - wanted).max() < 1e-6 * CLEARANCE
