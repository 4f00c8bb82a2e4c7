"""Frames of joints from the points P, Q, R of a card: h = Q - P is the axis, f = R - P is x."""

from __future__ import annotations

import numpy as np

from ..system._bodies import Body
from ..system._problems import doubt
from ..system._rotations import Array
from ._file import Block

KINDS = {1: "revolute", 2: "prismatic", 3: "cylindrical", 4: "spherical", 5: "guide"}
TOLERANCE = 1e-6
"""By how much h and f may differ from orthonormal vectors."""

End = tuple[Body, Array, Array | None]
"""A body, and the place and axes of a marker on it; no axes where they do not matter."""


def read_ends(block: Block, first: Body | None, second: Body | None) -> tuple[str, End, End] | None:
    """Return the kind of a joint and its two ends; None after a problem."""
    block.check_keys(
        ("name", "type", "body1", "body2", *(f"{point}{n}" for point in "PQR" for n in (1, 2)))
    )
    number = block.integer("type")
    if number is not None and number not in KINDS:
        listed = ", ".join(f"{n} {kind}" for n, kind in KINDS.items())
        block.problems.add(
            block.entries["type"].place, f"there is no joint of type {number}. Types: {listed}."
        )
        return None
    if number is None or first is None or second is None:
        return None
    axes_matter = (number != 4, number in (1, 2, 3))
    found = [_read_end(block, n, matter) for n, matter in zip((1, 2), axes_matter, strict=True)]
    if None in found:
        return None
    (at_i, frame_i), (at_j, frame_j) = found  # type: ignore[misc]
    if frame_i is not None and frame_j is not None:
        frame_j = _align(block, number, first.rotation @ frame_i, second.rotation, frame_j)
    return KINDS[number], (first, at_i, frame_i), (second, at_j, frame_j)


def _read_end(block: Block, n: int, axes_matter: bool) -> tuple[Array, Array | None] | None:
    points = [block.numbers(f"{point}{n}", 3) for point in ("PQR" if axes_matter else "P")]
    if None in points:
        return None
    p, *others = (np.array(point) for point in points)
    if not axes_matter:
        return p, None
    h, f = (other - p for other in others)
    for name, vector in (("Q", h), ("R", f)):
        length = float(np.linalg.norm(vector))
        if abs(length - 1.0) > TOLERANCE:
            block.problems.add(
                block.entries[f"{name}{n}"].place,
                f"{name}{n} must be 1 away from P{n}, it is {length:.9g} away.",
            )
            return None
    if abs(float(h @ f)) > TOLERANCE:
        block.problems.add(
            block.entries[f"R{n}"].place,
            f"Q{n} - P{n} and R{n} - P{n} must be at right angles; their product is {h @ f:.3g}.",
        )
        return None
    h = h / np.linalg.norm(h)
    f = f - (f @ h) * h
    f = f / np.linalg.norm(f)
    return p, np.column_stack([f, np.cross(h, f), h])


def _align(block: Block, number: int, axes_i: Array, r_j: Array, frame_j: Array) -> Array:
    """Return the frame on the second body with h along that of the first.

    Its f is that of the card; of a slide it is at right angles to it, as near as possible to that
    of the first body.
    """
    f_i, h_i = axes_i[:, 0], axes_i[:, 2]
    f, h = frame_j[:, 0], frame_j[:, 2]
    if float((r_j @ h) @ h_i) < 0.0:
        h = -h
    off = float(np.arctan2(np.linalg.norm(np.cross(r_j @ h, h_i)), (r_j @ h) @ h_i))
    if off > 0.1:
        doubt(block.place, f"the axes of joint {block.tag} are {off:.3g} rad apart at the start.")
    if number == 2:
        f = np.cross(f, h)
        if float((r_j @ f) @ f_i) < 0.0:
            f = -f
        apart = float(np.arccos(np.clip((r_j @ f) @ f_i, -1.0, 1.0)))
        if apart > 0.1:
            doubt(
                block.place,
                f"R1 - P1 and R2 - P2 of joint {block.tag}, a slide, are {apart:.3g} rad off the "
                f"right angle at the start.",
            )
    return np.column_stack([f, np.cross(h, f), h])
