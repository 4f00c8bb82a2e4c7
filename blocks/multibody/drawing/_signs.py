"""Signs that elements are drawn with: arrows, walls, soft supports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..joints._joint import Coordinate, Joint
from ..system._laws import AbstractLaw, Constant
from ..system._rotations import Array
from ._strokes import INK, LOAD, SPRING_LAYER, Stroke, across, arrow_head, hatch, unit, zigzag

if TYPE_CHECKING:
    from ._paper import Paper
    from ._poses import Snapshot

_SIDES = np.array([[0.0, -1.0], [0.0, 1.0], [-1.0, 0.0], [1.0, 0.0]])


def snap(direction: Array) -> Array:
    """Return the side of the paper that a direction points to most."""
    return np.asarray(_SIDES[int(np.argmax(_SIDES @ direction))])


def draw_wall(at: Array, away: Array, k: float) -> list[Stroke]:
    """Return a hatched line that a spring is held by."""
    side = across(away) * 13 * k
    return hatch(at - side, at + side, away, 6.5 * k)


def draw_support(at: Array, away: Array, k: float) -> list[Stroke]:
    """Return a soft support on the ground: a bushing with one end there."""
    foot = at + away * 30 * k
    line = Stroke(zigzag(at + away * 4 * k, foot, 5 * k), INK, width=1.3, layer=SPRING_LAYER)
    return [*draw_wall(foot, away, k), line]


def draw_effort(
    joint: Joint, of: Coordinate, law: AbstractLaw, frame: Snapshot, paper: Paper
) -> list[Stroke]:
    """Return the arrow of a force or torque on a joint coordinate."""
    value = 1.0 if law.variables - {"t"} or law.reads else law.value(frame.t)
    at = paper.at(frame.point(joint.second))
    return draw_arrow(of.kind == "length", at, joint_axis(joint, of, frame) * (value or 1.0), paper)


def draw_arrow(is_force: bool, at: Array, vector: Array, paper: Paper) -> list[Stroke]:
    """Return the arrow of a force, or of a torque about a vector."""
    k = paper.size
    if not vector.any():
        return []
    axis = vector / np.linalg.norm(vector)
    if not is_force:
        return paper.turning_arrow(at, axis, 17 * k, LOAD)
    reach = paper.slant(axis) * 44 * k
    if np.linalg.norm(reach) < 8 * k:
        return []
    tip, along = at + reach, unit(reach)
    head = arrow_head(tip, along, 8 * k, LOAD)
    return [Stroke(np.array([at, tip - along * 5 * k]), LOAD, width=1.8, layer=head.layer), head]


def joint_axis(joint: Joint, of: Coordinate, frame: Snapshot) -> Array:
    """Return the axis that a coordinate is along or about."""
    return frame.axis(joint, of.along or of.about)


def is_zero(law: AbstractLaw) -> bool:
    """Whether a law is the number 0."""
    return isinstance(law, Constant) and law.number == 0.0
