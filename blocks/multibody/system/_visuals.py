"""Shapes of bodies for pictures; they have no mass and touch nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ._rotations import Array


@dataclass(frozen=True, slots=True, eq=False)
class Visual:
    """A shape that is fixed on a body.

    Attributes
    ----------
    kind
        ``"box"``, ``"cylinder"`` along its z, ``"sphere"`` or ``"mesh"``.
    size
        In m: the three edges of a box; radius and length of a cylinder; the radius of a sphere. Of
        a mesh the factors of its x, y and z.
    position, rotation
        Of its axes in those of the body.
    color
        Red, green, blue and opacity from 0 to 1; None if none is given.
    file
        Of a mesh, as the description names it.
    source
        The description, next to which the file of a mesh is.
    """

    kind: Literal["box", "cylinder", "sphere", "mesh"]
    size: tuple[float, ...]
    position: Array
    rotation: Array
    color: tuple[float, ...] | None = None
    file: str = ""
    source: Path | None = None
