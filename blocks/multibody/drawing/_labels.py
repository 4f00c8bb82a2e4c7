"""Names beside what they name: none over another, and over as few lines as can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from ..system._rotations import Array
from ._strokes import Stroke

_GAPS = (0.0, 5.0, 11.0, 18.0, 27.0, 38.0)
_SPACE = 2.0
_LEADER = 13.0

# To the right and above first, as people look.
_DIRECTIONS = np.radians(
    [45, 135, 0, 180, 90, -45, -135, -90, 22, 158, 68, 112, -22, -158, -68, -112]
)

# A name over more line than this, in points, is omitted as illegible.
_TOO_MUCH = 36.0
_STEP = 2.5


@dataclass(frozen=True)
class Label:
    """A name; the points it may stand beside; how far around them is taken, in points on paper."""

    text: str
    anchors: Array
    clear: float
    color: str
    size: float
    bold: bool


@dataclass(frozen=True)
class PlacedLabel:
    """A label with its center, its box (left, bottom, right, top), and where a leader starts."""

    label: Label
    center: Array
    box: Array
    leader: Array | None


def measure(text: str, size: float, bold: bool) -> Array:
    """Return width and height of a line of text, in points."""
    font = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    outline = np.asarray(TextPath((0, 0), text, size=size, prop=font).vertices)
    return np.array([outline[:, 0].max(), 1.15 * size])


def place_labels(
    labels: Sequence[Label],
    strokes: Sequence[Stroke],
    low: Array,
    high: Array,
    size: float = 1.0,
) -> list[PlacedLabel]:
    """Place labels one after the other, inside a rectangle, none over another.

    A label that has no free place is left out. `size` is that of the symbols: where they are small
    names stay close, since many leader lines are hard to follow.
    """
    ink = np.vstack([_dotted(stroke) for stroke in strokes])
    boxes: list[Array] = []
    placed = []
    for label in labels:
        found = _best(
            label, ink, boxes, low, high, [gap for gap in _GAPS if gap <= size * _GAPS[-1]]
        )
        if found is not None:
            placed.append(found)
            boxes.append(found.box)
    return placed


def _best(
    label: Label, ink: Array, boxes: Sequence[Array], low: Array, high: Array, gaps: Sequence[float]
) -> PlacedLabel | None:
    size = measure(label.text, label.size, label.bold)
    half = size / 2.0 + _SPACE
    taken = np.array(boxes).reshape(-1, 4)
    best, best_cost = None, _TOO_MUCH
    for n, anchor in enumerate(label.anchors):
        near = ink[(np.abs(ink - anchor) < size + label.clear + gaps[-1] + 10.0).all(axis=1)]
        for gap in gaps:
            for turn, angle in enumerate(_DIRECTIONS):
                way = np.array([np.cos(angle), np.sin(angle)])
                center = anchor + way * (label.clear + gap) + np.clip(1.6 * way, -1, 1) * size / 2.0
                box = np.concatenate([center - half, center + half])
                if (box[:2] < low).any() or (box[2:] > high).any():
                    continue
                if _overlaps(box, taken):
                    continue
                hits = int((np.abs(near - center) < half).all(axis=1).sum())
                cost = hits * _STEP + 0.35 * gap + 0.1 * turn + 0.5 * n
                if cost < best_cost - 1e-9:
                    leader = anchor + way * label.clear * 0.6 if gap > _LEADER else None
                    best, best_cost = PlacedLabel(label, center, box, leader), cost
    return best


def _overlaps(box: Array, others: Array) -> bool:
    apart = (box[:2] >= others[:, 2:]) | (others[:, :2] >= box[2:])
    return bool((~apart.any(axis=1)).any())


def _dotted(stroke: Stroke) -> Array:
    """Return points along a stroke, a few points on paper apart."""
    points = stroke.points
    if stroke.closed:
        points = np.vstack([points, points[:1]])
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    way = np.concatenate([[0.0], np.cumsum(lengths)])
    steps = np.linspace(0.0, way[-1], max(2, int(way[-1] / _STEP)))
    return np.column_stack([np.interp(steps, way, points[:, n]) for n in (0, 1)])
