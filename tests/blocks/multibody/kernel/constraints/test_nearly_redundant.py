"""Joints that are redundant but for a small deviation: reported at the start of a run."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable

import pytest

from biella import BiellaWarning, Diagram
from biella.blocks.multibody import System, mechanisms
from biella.scheduler.engine._library import contract

pytestmark = pytest.mark.engine


def slides(deviation: float) -> System:
    """Two vertical slides of one body; an angle between them prevents its motion."""
    s = System("slides", (0, -9.81), planar=True)
    body = s.body("block", mass=2.0, inertia=0.1)
    s.prismatic("first", s.ground, body, at=(0, 0), axis=(0, 1))
    s.guide("second", s.ground, body, at=(0.5, 0), axis=(deviation, 1))
    return s


def door(deviation: float) -> System:
    """Two hinges, whose axes are off by an angle."""
    s = System("door", (0, -9.81, 0))
    body = s.body("door", mass=2.0, inertia=0.1, position=(1, 0, 0))
    s.revolute("first", s.ground, body, at=(0, 0, 0), axis=(0, 0, 1))
    s.revolute("second", s.ground, body, at=(0, 0, 1), axis=(deviation, 0, 1))
    return s


def geared(deviation: float) -> System:
    """Two bodies, tied by two couplings whose ratios differ."""
    s = System("geared", (0, -9.81), planar=True)
    one, two = (
        s.prismatic(
            name, s.ground, s.body(f"b{name}", mass=2.0, inertia=0.1), at=(n, 0), axis=(0, 1)
        )
        for n, name in enumerate(("one", "two"))
    )
    s.coupling("first", one, two, ratio=1.0)
    s.coupling("second", one, two, ratio=1.0 + deviation)
    return s


def look(system: System, acceleration: str) -> tuple[float, str]:
    """Return the acceleration at the start, and the diagnostic of the start."""
    d = Diagram("look", step=1e-3)
    d.add(system.block(outputs=[acceleration]), name="plant")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same text
        instance = d.compile().instantiate()
    with instance:
        instance.evaluate()
        found = float(instance.get(f"plant.{acceleration}"))
        library, handle = instance.library, instance.handle
        any_found = library.bl_next_diagnostic(handle, contract.BL_DIAGNOSTIC_START, -1) >= 0
        return found, library.bl_message(handle).decode() if any_found else ""


Make = Callable[[float], System]
CASES = [(slides, "first"), (door, "first"), (geared, "one")]


@pytest.mark.parametrize(("make", "joint"), CASES)
@pytest.mark.parametrize("deviation", [1e-2, 1e-6, 1e-8, 1e-9, 1e-10, 1e-11])
def test_a_motion_is_prevented_or_there_is_a_warning(make: Make, joint: str, deviation: float):
    """Exactly, nothing can move. 1e-6 is the deviation of the geared bodies, which fall."""
    acceleration, message = look(make(deviation), f"{joint}.acceleration")
    if abs(acceleration) < 1e-6:
        assert message == ""
        return
    named = "`first`, `second` are" if make is geared else "`second` is"
    assert f"{named} redundant but for " in message
    assert "agree exactly; else leave" in message
    stated = float(message.split("redundant but for ")[1].split()[0])
    assert deviation / 10 < stated < 2 * deviation


def test_the_warning_reaches_the_user():
    from biella import simulate

    d = Diagram("fall", step=1e-3)
    d.add(geared(1e-7).block(outputs=["one.acceleration"]), name="plant")
    with pytest.warns(
        BiellaWarning, match="`plant`.*`first`, `second` are redundant but for 2e-08"
    ):
        result = simulate(d, 0.002)
    assert result["plant.one.acceleration"][-1] == pytest.approx(-9.81, abs=1e-5)


@pytest.mark.parametrize(("make", "joint"), CASES)
@pytest.mark.parametrize("deviation", [0.0, 1e-15])
def test_joints_that_are_redundant_are_not_reported(make: Make, joint: str, deviation: float):
    """1e-15 is what rounding of the given positions may leave."""
    acceleration, message = look(make(deviation), f"{joint}.acceleration")
    assert acceleration < -9 and message == ""


MECHANISMS = [
    (name, make)
    for name, make in inspect.getmembers(mechanisms, inspect.isfunction)
    if make.__module__ == mechanisms.__name__ and not name.startswith("_")
]


@pytest.mark.parametrize(("name", "make"), MECHANISMS)
def test_shipped_mechanisms_are_not_reported(name: str, make: Callable[..., object]):
    del name
    try:
        system = make()
    except TypeError:
        return  # parts that need arguments
    if not isinstance(system, System):
        return
    _, message = look(system, "kinetic_energy")
    assert "redundant" not in message
