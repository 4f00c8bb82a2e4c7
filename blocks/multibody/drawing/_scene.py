"""Drawing of a mechanism: its fixed parts, moving parts and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..joints._joint import Joint
from ..system._bodies import Body, Marker
from ..system._rotations import Array
from ._labels import Label
from ._paper import Paper
from ._poses import Snapshot
from ._shapes import draw_body, shape_of, sleeve_of
from ._signs import snap
from ._strokes import BODY_LAYER, INK, LOAD, PALETTE, SOFT_INK, Stroke, unit
from ._symbols import JointView, is_still
from ._view import View

if TYPE_CHECKING:
    from ..system._system import System
_LONGEST, _HIGHEST = 430.0, 300.0
_MARGIN = 22.0

# Symbols have full size where joints are this far apart, in points, and shrink where closer.
_ROOMY = 45.0
_SMALLEST = 0.3


@dataclass(frozen=True)
class Bounds:
    """A rectangle in points on paper."""

    low: Array
    high: Array

    @property
    def size(self) -> Array:
        """Return width and height."""
        return self.high - self.low


class Scene:
    """A system, seen in some poses.

    Parameters
    ----------
    system
        The mechanism.
    frames
        All poses that are shown: the scale and the ground fit all of them.
    view
        From where.
    """

    def __init__(self, system: System, frames: Sequence[Snapshot], view: View) -> None:
        self.system = system
        self.frames = frames
        places = np.array(
            [frame.place(body, p) for frame in _some(frames) for body, p in _marks(system)]
        )
        spans = np.ptp(places, axis=0)
        self.extent = float(np.linalg.norm(spans)) or 1.0
        self.shapes = {body.name: shape_of(body, system, self.extent) for body in system.bodies}
        places = view.project(places)
        low, high = places.min(axis=0), places.max(axis=0)
        for frame in _some(frames):
            for body in system.bodies:
                shape = self.shapes[body.name]
                if shape.hub is not None:
                    hub = view.project(frame.place(body, shape.hub))
                    axis = view.project(frame.rotation(body) @ shape.axis)
                    reach = shape.disc * np.sqrt(np.clip(1.0 - axis**2, 0.0, 1.0))
                    low, high = np.minimum(low, hub - reach), np.maximum(high, hub + reach)
        width, height = np.maximum(high - low, 0.02 * self.extent)
        scale = min(_LONGEST / width, _HIGHEST / height)
        self.paper = Paper(view, scale, _symbol_size(system, frames[0], view, scale))
        self.rails = {joint.name: self._travel(joint) for joint in system.joints}
        self.ground = self._ground_strokes()
        self._low, self._high = low * scale, high * scale
        self.bounds = self._bounds()

    def color(self, body: Body) -> str:
        """Return the color of a body."""
        return INK if body.is_ground else PALETTE[body.index % len(PALETTE)]

    def moving_strokes(self, frame: Snapshot) -> list[Stroke]:
        """Return bodies, joints and forces in a pose."""
        strokes: list[Stroke] = []
        toward = self.paper.view.toward
        depths = [float(frame.place(body, body.com) @ toward) for body in self.system.bodies]
        ranks = {int(n): rank for rank, n in enumerate(np.argsort(depths, kind="stable"))}
        for body in self.system.bodies:
            layer = BODY_LAYER + 0.4 * ranks[body.index] / len(depths)
            shape, color = self.shapes[body.name], self.color(body)
            strokes += draw_body(shape, body, frame, self.paper, color, layer)
        for joint in self.system.joints:
            plain = self._slides_as_block(joint)
            view = JointView(joint, frame, self.paper, self.rails[joint.name], plain)
            strokes += joint.entry.draw(view)
        for element in (*self.system.elements, *self.system.constraints):
            strokes += element.draw(frame, self.paper)
        return strokes

    def labels(self, frame: Snapshot) -> list[Label]:
        """Return what to write beside bodies, forces and joints, the most important first."""
        k = self.paper.size
        labels = []
        for body in self.system.bodies:
            shape = self.shapes[body.name]
            points = np.array([self.paper.at(frame.place(body, p)) for p in shape.points])
            clear = 8.0 * k
            if shape.kind == "block":
                clear = 15.0 * k
            elif shape.kind == "disc":
                clear = 3.0 * k + shape.disc * self.paper.scale
            anchors = [points.mean(axis=0)]
            if shape.kind == "rod":
                anchors += [points[0] + share * (points[1] - points[0]) for share in (0.35, 0.65)]
            elif shape.kind == "plate":
                anchors += list((points + anchors[0]) / 2.0)
            labels.append(Label(body.name, np.array(anchors), clear, self.color(body), 10.0, True))
        for element in (*self.system.elements, *self.system.constraints):
            found = element.label_place(frame, self.paper)
            if found is not None:
                anchors_of, clear = found
                color = LOAD if element.is_load else INK
                labels.append(Label(element.name, anchors_of, clear, color, 9.0, False))
        for joint in self.system.joints:
            at = self.paper.at(frame.point(joint.second))
            clear = 14.0 * k if self._slides_as_block(joint) else 8.0 * k
            labels.append(Label(joint.name, at[None], clear, SOFT_INK, 8.5, False))
        return labels

    def _slides_as_block(self, joint: Joint) -> bool:
        """Whether the sleeve of a joint is the body itself, already drawn as a block."""
        sleeve = joint.entry.sleeve
        return bool(sleeve) and self.shapes[sleeve_of(joint).name].kind == "block"

    def _travel(self, joint: Joint) -> tuple[float, float]:
        """Return from and to where a joint slides over all poses, in m."""
        if joint.slide is None:
            return 0.0, 0.0
        axis = joint.slide.along
        ways = [
            float((frame.point(joint.second) - frame.point(joint.first)) @ frame.axis(joint, axis))
            for frame in self.frames
        ]
        return min(ways), max(ways)

    def _ground_strokes(self) -> list[Stroke]:
        """Return the symbols on the ground, with one support per point."""
        frame, paper = self.frames[0], self.paper
        strokes: list[Stroke] = []
        held: set[tuple[float, ...]] = set()
        for joint in self.system.joints:
            for end, other in _two_ways(joint.first, joint.second):
                at = paper.at(frame.point(end))
                if end.body.is_ground:
                    away = self._away(at, other.body)
                    view = JointView(joint, frame, paper, self.rails[joint.name])
                    strokes += joint.entry.mount(view, away)
                    held.add(tuple(np.round(at)))
        for element in self.system.elements:
            for end, other in _two_ways(*element.ends) if element.ends else ():
                at = paper.at(frame.point(end))
                if not is_still(end) or tuple(np.round(at)) in held:
                    continue
                held.add(tuple(np.round(at)))
                line = at - paper.at(frame.point(other))
                strokes += element.draw_mount(at, self._away(at, other.body), line, paper.size)
        return strokes

    def _away(self, at: Array, body: Body) -> Array:
        """Return down, or another side if the body hangs there."""
        frame = self.frames[0]
        points = np.array(
            [self.paper.at(frame.place(body, p)) for p in self.shapes[body.name].points]
        )
        toward = points.mean(axis=0) - at
        if np.linalg.norm(toward) < 1.0:
            # All points of the body are at this joint: use the positions of the others.
            toward = (
                np.mean([self.paper.at(frame.place(b, p)) for b, p in _marks(self.system)], axis=0)
                - at
            )
        down = np.array([0.0, -1.0])
        if np.linalg.norm(toward) < 1.0 or unit(toward) @ down < 0.5:
            return down
        return snap(-toward)

    def _bounds(self) -> Bounds:
        low, high = self._low - 10.0, self._high + 10.0
        for frame in _some(self.frames, 12):
            for stroke in (*self.ground, *self.moving_strokes(frame)):
                low = np.minimum(low, stroke.points.min(axis=0))
                high = np.maximum(high, stroke.points.max(axis=0))
        # A picture of one straight line still needs room beside it.
        room = np.maximum(0.0, np.array([200.0, 130.0]) - (high - low)) / 2.0
        return Bounds(low - room - _MARGIN, high + room + _MARGIN)


def _some(frames: Sequence[Snapshot], most: int = 200) -> list[Snapshot]:
    """Return a few of many poses, the first and the last among them."""
    return [frames[n] for n in np.unique(np.linspace(0, len(frames) - 1, most).astype(int))]


def _marks(system: System) -> list[tuple[Body, Array]]:
    """Return the points that show where the system is: its markers, and masses without any."""
    marks = [
        (body, marker.position)
        for body in (system.ground, *system.bodies)
        for marker in body.markers.values()
    ]
    return marks + [(body, body.com) for body in system.bodies if len(body.markers) < 2]


def _two_ways(first: Marker, second: Marker) -> tuple[tuple[Marker, Marker], ...]:
    return (first, second), (second, first)


def _symbol_size(system: System, frame: Snapshot, view: View, scale: float) -> float:
    """Return how large symbols may be, from the usual distance between neighboring joints."""
    places = {
        tuple(np.round(view.project(frame.point(joint.second)) * scale, 1))
        for joint in system.joints
    }
    if len(places) < 3:
        return 1.0
    points = np.array(sorted(places))
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    return float(np.clip(np.median(gaps.min(axis=1)) / _ROOMY, _SMALLEST, 1.0))
