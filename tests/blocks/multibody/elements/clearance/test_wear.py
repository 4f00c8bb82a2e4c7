"""Holes that wear: the bed that a round pin makes itself, energy in holes that are not round."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from scipy.optimize import brentq

from biella import BiellaError, BlockError, Diagram, DiagramError, simulate
from biella.blocks.multibody import (
    HuntCrossley,
    LankaraniNikravesh,
    Marker,
    RigidContact,
    System,
    Wear,
)
from biella.errors import PlanError
from biella.scheduler.compile.plan._plan import read_arrays
from biella.scheduler.engine._engine import Instance

from ..plan_cells import with_cell

pytestmark = pytest.mark.engine

PLAY, RADIUS, LENGTH, HARDNESS = 1e-3, 0.01, 0.02, 2e9
LOAD, SPIN, STIFFNESS = 100.0, 100.0, 1e7
TOWARD = -1.2345  # rad: between two sections
OWN: dict[str, Any] = {"mode": "internal"}
IMPLICIT = {"mode": "internal", "integrator": "implicit"}


def pressed(coefficient=1.4, sections=180, contact=None):
    """A pin that spins in a hole of the ground, pressed by a constant force."""
    u = np.array([np.cos(TOWARD), np.sin(TOWARD)])
    s = System("pressed", (0.0, 0.0), planar=True)
    at = (PLAY + LOAD / STIFFNESS) * u
    body = s.body("disc", mass=1.0, inertia=0.01, position=at, angular_velocity=SPIN)
    s.force("load", body.marker("pin"), tuple(LOAD * u))
    wear = Wear(coefficient=coefficient, hardness=HARDNESS, length=LENGTH, sections=sections)
    s.clearance_revolute(
        "pin",
        cast(Marker, s["disc.pin"]),
        s.ground.marker("hole"),
        clearance=PLAY,
        pin_radius=RADIUS,
        contact=contact or HuntCrossley(stiffness=STIFFNESS, exponent=1.0, damping=1.0),
        wear=wear,
    )
    return s


OUTPUTS = ["offset", "wear", "worn_volume", "normal_force", "slip", "gap", "angle"]


def run(system, until, *, step=5e-5, every=1, **block):
    d = Diagram("wear", step=step)
    d.add(system.block(outputs=[f"pin.{name}" for name in OUTPUTS], **(block or OWN)), name="p")
    result = simulate(d, until, every=every)
    return {"t": result.t} | {name: result[f"p.pin.{name}"] for name in OUTPUTS}


def bed(volume):
    """How far a round pin is from the middle of the bed that it made: w = d cos θ - e.

    With cos θ0 = e / d at its edges the volume is 2 L (R + e) (d sin θ0 - e θ0).
    """
    area = 2 * LENGTH * (RADIUS + PLAY)

    def missing(d):
        return area * (np.sqrt(d**2 - PLAY**2) - PLAY * np.arccos(PLAY / d)) - volume

    return brentq(missing, PLAY * (1 + 1e-9), 3 * PLAY)


@pytest.mark.filterwarnings("ignore:the estimated error")  # of coarse steps, and real
@pytest.mark.parametrize(("sections", "tolerance"), [(72, 0.02), (180, 0.006), (360, 0.006)])
def test_a_pin_makes_itself_a_bed(sections, tolerance):
    """Archard's volume, and the shape that it must then have: a fifth of the play."""
    found = run(pressed(sections=sections), 0.5)
    rate = 1.4 / HARDNESS * found["normal_force"] * np.abs(found["slip"])
    counted = np.trapezoid(rate, found["t"])
    volume = found["worn_volume"][-1]
    assert volume == pytest.approx(counted, rel=3e-3)  # forces are shown after the step has worn
    assert volume == pytest.approx(1.4 / HARDNESS * LOAD * RADIUS * SPIN * 0.5, rel=2e-3)
    d = bed(volume)
    theta = np.arange(sections) * 2 * np.pi / sections
    wanted = np.maximum(0.0, d * np.cos(theta - TOWARD) - PLAY)
    assert wanted.max() > 0.2 * PLAY
    assert np.abs(found["wear"][-1] - wanted).max() < tolerance * wanted.max()
    # The pin lies still in it, on the side that it is pressed to.
    assert np.abs(found["angle"] - TOWARD).max() < 0.02
    # It lies in it by the depth of the contact, less what the width of two sections makes: 2 τ.
    depth = np.linalg.norm(found["offset"][-1]) - d
    width = PLAY * (2 * np.pi / sections) ** 2
    assert depth == pytest.approx(LOAD / STIFFNESS, abs=2 * width + 2e-3 * wanted.max())


@pytest.mark.filterwarnings("ignore:the estimated error")  # of coarse steps, and real
def test_what_is_worn_in_a_step_is_of_first_order():
    off = []
    for step in (5e-5, 2.5e-5):
        found = run(pressed(), 0.05, step=step)
        rate = 1.4 / HARDNESS * found["normal_force"] * np.abs(found["slip"])
        off.append(found["worn_volume"][-1] / np.trapezoid(rate, found["t"]) - 1.0)
    assert off[0] / off[1] == pytest.approx(2.0, abs=0.3)
    assert abs(off[0]) < 0.02


@pytest.mark.filterwarnings("ignore:the estimated error")  # of coarse steps, and real
@pytest.mark.parametrize("block", [{}, IMPLICIT], ids=["minor steps", "implicit"])
def test_wear_does_not_depend_on_who_takes_the_steps(block):
    own = run(pressed(), 0.05)
    other = run(pressed(), 0.05, **(block or {"mode": "continuous"}))
    np.testing.assert_allclose(
        other["wear"][-1], own["wear"][-1], atol=3e-3 * own["wear"][-1].max()
    )


def test_a_hole_that_is_not_worn_is_round():
    """Beside the same contact without a map: softer by less than Δθ²."""
    contact = HuntCrossley(stiffness=1e8, damping=0.3, friction=0.1)
    paths = []
    for wear in (None, Wear(coefficient=0.0, hardness=HARDNESS, length=LENGTH, sections=360)):
        s = System("thrown", (0.0, -9.81), planar=True)
        body = s.body("disc", mass=1.0, inertia=1e-4, velocity=(0.1, 0.05), angular_velocity=30.0)
        s.clearance_revolute(
            "pin", body.marker("pin"), s.ground.marker("hole"), clearance=PLAY, pin_radius=RADIUS,
            contact=contact, wear=wear,
        )  # fmt: skip
        d = Diagram("thrown", step=1e-5)
        outputs = ["pin.offset", "pin.gap", "pin.normal_force", "pin.slip"]
        d.add(s.block(outputs=outputs, **OWN), name="p")
        result = simulate(d, 0.03)
        paths.append([result[f"p.{name}"] for name in outputs])
    (offset, gap, force, slip), (offset_map, gap_map, force_map, slip_map) = paths
    assert (gap < 0).any()
    assert np.abs(offset_map - offset).max() < 2e-3 * PLAY
    touching = gap < 0
    assert np.abs(gap_map - gap)[touching].max() < 2e-3 * PLAY
    assert np.abs(slip_map - slip)[touching].max() < 5e-3 * np.abs(slip).max()
    assert force_map.max() == pytest.approx(force.max(), rel=2e-2)


def ring_and_disc(contact, spin=-20.0):
    """Both move, and the hole turns: nothing but a spring and the contact between them."""
    s = System("pair", (0.0, 0.0), planar=True)
    disc = s.body(
        "disc", mass=1.0, inertia=1e-3, position=(0.0, -0.5 * PLAY), velocity=(0.3, -0.4),
        angular_velocity=50.0,
    )  # fmt: skip
    ring = s.body("ring", mass=2.0, inertia=4e-3, angular_velocity=spin, free=True)
    s.spring(
        "pull", disc.marker("pin"), ring.marker("peg", (0, -0.2)), stiffness=500.0, free_length=0.05
    )
    s.clearance_revolute(
        "pin", cast(Marker, s["disc.pin"]), ring.marker("hole"), clearance=PLAY, pin_radius=RADIUS,
        contact=contact, wear=Wear(coefficient=3.0, hardness=HARDNESS, length=LENGTH, sections=90),
    )  # fmt: skip
    return s


@pytest.mark.parametrize("law", ["hunt", "lankarani"])
def test_a_worn_hole_that_turns_keeps_energy_and_momentum(law):
    """Worn first, then without loss: forces in a hole of any shape have a potential."""
    contact = (
        HuntCrossley(stiffness=1e7)
        if law == "hunt"
        else LankaraniNikravesh(stiffness=1e7, restitution=1.0)
    )
    shown = ["kinetic_energy", "potential_energy", "disc.velocity", "ring.velocity", "pin.wear"]
    d = Diagram("pair", step=1e-5)
    d.add(ring_and_disc(contact).block(outputs=shown, **OWN), name="p")
    with Instance(d.compile()) as instance:
        instance.initialize()
        instance.run(20_000)
        instance.set("p.pin.wear_coefficient", 0.0)
        energies, momenta = [], []
        for _ in range(50):
            instance.run(200)
            instance.evaluate()
            kinetic, potential, disc, ring, wear = (instance.get(f"p.{name}") for name in shown)
            energies.append(kinetic + potential)
            momenta.append(disc + 2 * ring)
        assert wear.max() > 0.05 * PLAY
        assert np.ptp(energies) < 1e-8 * energies[0]
        np.testing.assert_allclose(momenta[-1], momenta[0], atol=1e-10)


def test_a_worn_hole_that_turns_loses_its_shape():
    """Damping and friction: the energy and all of `power_loss` up to then stay the same."""
    shown = ["kinetic_energy", "potential_energy", "power_loss", "pin.contact"]
    contact = HuntCrossley(stiffness=1e7, damping=2.0, friction=0.1)
    d = Diagram("pair", step=5e-6)
    d.add(ring_and_disc(contact, spin=-200.0).block(outputs=shown, **OWN), name="p")
    with Instance(d.compile()) as instance:
        instance.initialize()
        instance.run(10_000)
        instance.set("p.pin.wear_coefficient", 0.0)
        rows = []
        for _ in range(6000):
            instance.run(1)
            instance.evaluate()
            rows.append([instance.get(f"p.{name}") for name in shown])
    kinetic, potential, loss, touching = np.array(rows[1:]).T
    assert touching.mean() > 0.05
    lost = np.concatenate([[0.0], np.cumsum(0.5 * (loss[1:] + loss[:-1]) * 5e-6)])
    energy = kinetic + potential
    assert lost[-1] > 1e-4 * energy[0]
    assert np.abs(energy + lost - energy[0]).max() < 1e-6 * lost[-1]


def test_wear_is_part_of_the_saved_state():
    d = Diagram("wear", step=5e-5)
    d.add(pressed().block(outputs=["pin.wear"], **OWN), name="p")
    with Instance(d.compile()) as first, Instance(d.compile()) as second:
        first.initialize()
        first.run(200)
        saved = first.save()
        first.run(200)
        second.initialize()
        second.restore(saved)
        second.run(200)
        assert second.save() == first.save()
        first.evaluate()
        assert first.get("p.pin.wear").max() > 0


def test_numbers_that_make_no_wear_are_refused():
    with pytest.raises(DiagramError, match="`coefficient` of Wear is at least 0"):
        Wear(coefficient=-1.0, hardness=1e9, length=0.01)
    with pytest.raises(DiagramError, match="`hardness` of Wear is positive, in Pa"):
        Wear(coefficient=1e-4, hardness=0.0, length=0.01)
    with pytest.raises(DiagramError, match="`sections` of Wear is a whole number from 36"):
        Wear(coefficient=1e-4, hardness=1e9, length=0.01, sections=8)
    with pytest.raises(DiagramError, match="RigidContact, which supports only round holes"):
        pressed(contact=RigidContact())
    s = pressed()
    with pytest.raises(DiagramError, match=r"`wear` of `other` is a Wear\(.*got 0.1"):
        s.clearance_revolute(
            "other", s["disc.pin"], s.ground.marker("h"), clearance=PLAY, pin_radius=RADIUS,
            contact=HuntCrossley(stiffness=1e7), wear=0.1,
        )  # fmt: skip
    d = Diagram("wear", step=5e-5)
    d.add(s.block(outputs=["pin.gap"], **OWN), name="p")
    with pytest.raises(
        BlockError, match="parameter `hardness` of `pin` is 0: it must be finite and pos"
    ):
        simulate(d, 0.01, parameters={"p.pin.hardness": 0.0})


def test_a_round_hole_shows_no_wear():
    s = System("plain", (0.0, 0.0), planar=True)
    s.clearance_revolute(
        "pin", s.body("disc", mass=1.0, inertia=1.0).marker("pin"), s.ground.marker("hole"),
        clearance=PLAY, pin_radius=RADIUS, contact=HuntCrossley(stiffness=1e7),
    )  # fmt: skip
    with pytest.raises(DiagramError, match=r"pin\.wear"):
        s.block(outputs=["pin.wear"])


@pytest.mark.parametrize(
    ("tag", "odd"),
    [
        ("INTS", (-1, 0, 1, 2, 16 * 180, 16 * 181, 16 * 180 + 2, 2**31 - 1, -(2**31))),
        ("PARA", (0.0, -1.0, 1e300, np.nan, np.inf)),
    ],
)
def test_any_integer_and_number_of_a_hole_that_wears(tag, odd):
    """Nothing may be read or written outside, whatever is accepted."""
    d = Diagram("hostile", step=5e-5)
    d.add(pressed().block(outputs=["pin.wear", "pin.worn_volume"], **OWN), name="p")
    plan = d.compile()
    table = read_arrays(plan.sections)[tag]
    runs = []
    for index in range(table.size):
        for value in odd:
            try:
                with Instance(with_cell(plan, tag, index, value)) as instance:
                    instance.initialize()
                    instance.run(3)
                runs.append(True)
            except BiellaError:
                runs.append(False)
    assert 0 < sum(runs) < len(runs)


def test_a_map_that_is_not_that_of_the_plan_is_refused():
    d = Diagram("hostile", step=5e-5)
    d.add(pressed().block(outputs=["pin.wear"], **OWN), name="p")
    plan = d.compile()
    table = np.frombuffer(plan.sections["INTS"], "<i4")
    [at] = np.flatnonzero(table == 16 * 180).tolist()
    for value in (16 * 181, 16 * 179, 16 * 35, 16 * 3601, 16 * 180 + 2, 0):
        with pytest.raises(PlanError):
            Instance(with_cell(plan, "INTS", at, value))
