"""Journals: of films and clearances in mechanisms, and of bearings that are blocks."""

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks import Constant, ShortBearing, Sine
from biella.blocks.multibody import HuntCrossley, System
from biella.scheduler.compile._flatten import flatten
from biella.studio._mechanism import list_systems, show_mechanisms
from biella.studio.mechanism._journals import find_journals

pytestmark = pytest.mark.engine

SIZE = (0.02, 0.01, 4e-5, 0.01)  # radius, length, clearance, viscosity


def mechanism():
    s = System("rotor", planar=True)
    rotor = s.body("rotor", mass=1.0, inertia=0.01, position=(1e-5, -2e-5), angular_velocity=300.0)
    journal, bush = rotor.marker("journal"), s.ground.marker("bush")
    s.bearing("film", journal, bush, ShortBearing(*SIZE))
    s.clearance_revolute("stop", journal, bush, clearance=6e-5, pin_radius=0.02,
                         contact=HuntCrossley(stiffness=1e8))  # fmt: skip
    return s


def test_journals_of_a_mechanism_have_all_they_need():
    d = Diagram("d", step=1e-5)
    d.add(mechanism().block(outputs=[]), name="plant")
    model = d.compile(flat=show_mechanisms(flatten(d)))
    run = simulate(model, 1e-3, record=["plant.*"])
    film, stop = find_journals(model.flat, list_systems(model.flat), run)
    assert (film["path"], film["kind"], film["clearance"]) == ("plant.film", "film", 4e-5)
    assert film["parameter"] in model.parameters and stop["parameter"] in model.parameters
    assert set(film["signals"]) == {"offset", "film", "pressure"}
    assert (stop["kind"], stop["clearance"]) == ("clearance", 6e-5)
    assert set(stop["signals"]) == {"offset", "gap", "normal_force", "contact", "angle"}
    # What the page draws from the offset is what the block computes: h(θ) = c - x cos θ - y sin θ.
    x, y = run[film["signals"]["offset"]].T
    angles = np.linspace(0.0, 2.0 * np.pi, 3601)[:, None]
    thickness = 4e-5 - x * np.cos(angles) - y * np.sin(angles)
    least = run[film["signals"]["film"]]
    # A grid of δ misses the minimum of c - e cos θ by e (1 - cos δ/2) at most.
    missed = np.hypot(x, y).max() * (np.pi / 3600) ** 2 / 2
    assert thickness.min(axis=0) == pytest.approx(least, abs=missed)
    assert run[stop["signals"]["gap"]] == pytest.approx(6e-5 - np.hypot(x, y), abs=1e-15)


def test_bearings_that_are_blocks_take_the_offset_from_their_source():
    d = Diagram("d", step=1e-3)
    at = d.add(Sine(amplitude=[1e-5, 2e-5], frequency=2.0, unit="m"), name="orbit")
    d.add(ShortBearing(*SIZE), name="film", position=at, journal_speed=d.add(Constant(100.0)))
    model = d.compile()
    (journal,) = find_journals(model.flat, {}, model.signals)
    assert journal["signals"] == {
        "offset": "orbit.y", "film": "film.film", "pressure": "film.pressure",
    }  # fmt: skip
    assert journal["parameter"] in model.parameters and journal["ends"] == 1
    without = {path: None for path in model.signals if path != "orbit.y"}
    assert find_journals(model.flat, {}, without) == []
