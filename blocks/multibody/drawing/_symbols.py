"""What the symbols of joints are made of: a joint on paper, rails, sheets and supports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..joints._joint import Joint
from ..system._bodies import Marker
from ..system._rotations import Array
from ._paper import Paper
from ._poses import Snapshot
from ._strokes import GROUND_LAYER, INK, STEEL, WHITE, Stroke, across, hatch, unit

_END_ON = 0.2
"""A direction whose projection is shorter than this is seen from its end."""


@dataclass(frozen=True)
class JointView:
    """A joint in one pose, on paper.

    Attributes
    ----------
    joint, frame, paper
        Which joint, where the bodies are, and what they are drawn on.
    rail
        How far it slides, from and to, in m.
    plain
        Whether it has no separate sleeve, because the body itself is drawn as one.
    """

    joint: Joint
    frame: Snapshot
    paper: Paper
    rail: tuple[float, float]
    plain: bool = False

    @property
    def size(self) -> float:
        """Return the size of symbols against full size."""
        return self.paper.size

    @property
    def at(self) -> Array:
        """Return the place of its second marker on paper."""
        return self.paper.at(self.frame.point(self.joint.second))

    @property
    def on_ground(self) -> bool:
        """Whether one of its bodies is the ground."""
        return self.joint.first.body.is_ground or self.joint.second.body.is_ground

    @property
    def ground_place(self) -> Array:
        """Return the place on paper of its marker on the ground."""
        first = self.joint.first.body.is_ground
        return self.paper.at(self.frame.point(self.joint.first if first else self.joint.second))

    def axis(self, name: str) -> Array:
        """Return one of its axes, such as ``"h_i"``, in world axes."""
        return self.frame.axis(self.joint, name)

    @property
    def slide_axis(self) -> Array:
        """Return the direction of its displacement in world axes."""
        slide = self.joint.slide
        assert slide is not None
        return self.axis(slide.along)

    @property
    def rail_ends(self) -> Array:
        """Return from and to where its second marker slides, on paper."""
        along = self.paper.slant(self.slide_axis)
        start = self.paper.at(self.frame.point(self.joint.first))
        return start + np.outer(np.array(self.rail) * self.paper.scale, along)

    @property
    def ground_rail(self) -> tuple[Array, Array] | None:
        """Return the ends and the direction of a rail on the ground; None if seen from its end."""
        along = self.paper.slant(self.slide_axis)
        if np.linalg.norm(along) < _END_ON:
            return None
        if self.joint.first.body.is_ground:
            return self.rail_ends, unit(along)
        return np.array([self.ground_place] * 2), unit(along)


def draw_sheets(view: JointView, offsets: tuple[float, ...]) -> list[Stroke]:
    """Return sheets normal to the axis, at distances along it in full-size points."""
    k, paper = view.size, view.paper
    f, g, h = (view.axis(f"{axis}_i") for axis in "fgh")
    return [
        Stroke(
            paper.sheet(view.at + paper.slant(h) * (n * k), f, g, 15 * k),
            INK,
            STEEL,
            1.0,
            alpha=0.35,
        )
        for n in offsets
    ]


def draw_bar(view: JointView) -> Stroke:
    """Return the bar of one body on which the other slides."""
    k, along = view.size, view.paper.slant(view.slide_axis)
    ends = view.rail_ends + np.outer([-24 * k, 24 * k], along)
    return Stroke(ends, INK, width=2.4 * k, layer=GROUND_LAYER)


def draw_walls(ends: Array, along: Array, k: float) -> list[Stroke]:
    """Return walls at the two ends of a rail."""
    strokes = []
    for end, out in zip(ends, (-along, along), strict=True):
        wall = across(out) * 9 * k
        strokes += hatch(end - wall, end + wall, out, 6 * k)
    return strokes


def mount_pedestal(view: JointView, away: Array) -> list[Stroke]:
    """Return a triangle from a joint to a hatched line."""
    at, k = view.ground_place, view.size
    side, base = across(away), at + away * 16 * k
    legs = np.array([at, base - side * 9 * k, base + side * 9 * k])
    ground = hatch(base - side * 16 * k, base + side * 16 * k, away, 7 * k)
    return [*ground, Stroke(legs, INK, WHITE, 1.2, GROUND_LAYER)]


def mount_nothing(view: JointView, away: Array) -> list[Stroke]:
    """Return no support: the symbol of the joint has one."""
    return []


def is_still(marker: Marker) -> bool:
    """Whether a marker stands on the ground and does not move by a law."""
    return marker.body.is_ground and not marker.motion
