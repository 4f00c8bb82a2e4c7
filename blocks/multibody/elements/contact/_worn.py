"""Shapes that wear, and outlines of any shape in each other: what the kernel needs of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..... import _contract as contract
from .....errors import DiagramError
from ...system._rotations import Array
from .._element import Output
from ..clearance._wear import MOST_SECTIONS, Wear
from ._shapes import HoleProfile, PinProfile, Profile, Shape

NO_WEAR = Wear(coefficient=0.0, hardness=1.0, length=1.0)
"""Of outlines that do not wear, whose sections the kernel needs all the same."""

WEAR_OUTPUTS: dict[str, Output] = {
    "wear": Output(
        contract.TOUCH_SHOWN_WEAR,
        "m",
        "depth of each section of the hole, from angle 0 of its marker on",
    ),
    "worn_volume": Output(contract.TOUCH_SHOWN_WORN_VOLUME, "m3", "of the hole since the start"),
    "pin_wear": Output(
        contract.TOUCH_SHOWN_PIN_WEAR,
        "m",
        "depth of each section of the pin, from angle 0 of its marker on",
    ),
    "pin_worn_volume": Output(
        contract.TOUCH_SHOWN_PIN_WORN_VOLUME, "m3", "of the pin since the start"
    ),
}
"""Additional outputs of shapes that wear."""

LOST = 1e-4
"""How far an outline may be off between the sections, per mean radius."""


def check_wear(name: str, wear: Any, shapes: Sequence[Shape], possible: bool) -> None:
    """Raise an error if two shapes cannot wear like this."""
    if wear is None:
        return
    if not isinstance(wear, Wear):
        raise DiagramError(
            f"`wear` of `{name}` is a Wear(coefficient=…, hardness=…, length=…) or None, got "
            f"{wear!r}."
        )
    if not possible:
        kinds = " and ".join(f"a {shape.kind}" for shape in shapes)
        raise DiagramError(
            f"`{name}` is between {kinds}, which do not wear here: Sphere or Cylinder in a Bore, "
            f"and Sphere or PinProfile in a HoleProfile do. Leave `wear` out, and look at "
            f"`sliding_work` of contact_statistics."
        )
    for shape in shapes:
        if isinstance(shape, Profile):
            _check_sections(name, wear.sections, shape)


def _check_sections(name: str, sections: int, shape: Profile) -> None:
    """Raise an error if an outline is not the curve through its radii at the sections."""
    most = LOST * float(shape.table.mean())
    lost = _outline_error(shape, sections)
    if lost <= most:
        return
    enough = sections
    while enough < MOST_SECTIONS and _outline_error(shape, enough) > most:
        enough = min(2 * enough, MOST_SECTIONS)
    raise DiagramError(
        f"`wear` of `{name}` has {sections} sections, at which outlines are read: between them the "
        f"{shape.kind} of {len(shape.table)} points differs by up to {lost:.3g} m. Give "
        f"Wear(…, sections={enough})."
    )


def _outline_error(shape: Profile, sections: int) -> float:
    """Return how far the curve through the radii at the sections is from the outline, in m."""
    points = max(720, len(shape.table))
    read = type(shape)(shape.marker, shape.at(sections))
    return float(np.abs(read.at(points) - shape.at(points)).max())


def read_sections(shapes: Sequence[Shape], wear: Wear | None) -> int:
    """Return into how many sections hole and pin are divided, 0 if they are not.

    Those of outlines that do not wear are at least as many as the points of both tables.
    """
    if wear is not None:
        return wear.sections
    if not any(isinstance(shape, PinProfile) for shape in shapes):
        return 0
    points = [len(shape.table) for shape in shapes if isinstance(shape, Profile)]
    return min(max(NO_WEAR.sections, *points), MOST_SECTIONS)


def read_outlines(shapes: Sequence[Shape], sections: int) -> Array:
    """Return radii of the hole at the sections, then coefficients of the pin, 0 if it is round.

    Those are of the cubic B-spline through the radii of the pin: (c₋ + 4 c + c₊) / 6 = r.
    """
    hole = next(shape.at(sections) for shape in shapes if isinstance(shape, HoleProfile))
    pin = next((shape.at(sections) for shape in shapes if isinstance(shape, PinProfile)), None)
    if pin is None:
        return np.concatenate([hole, np.zeros(sections)])
    weights = (4.0 + 2.0 * np.cos(2.0 * np.pi / sections * np.arange(sections // 2 + 1))) / 6.0
    return np.concatenate([hole, np.fft.irfft(np.fft.rfft(pin) / weights, sections)])
