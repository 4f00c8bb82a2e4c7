"""The pen: strokes on paper, and the signs of textbooks made of them.

Everything here is in points on paper, 1/72 inch, with y up. A stroke has a line, colors and a
layer; it does not depend on the program that paints it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..system._rotations import Array

# Okabe and Ito's palette, distinguishable with every common color blindness, as in all our plots.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#5F5F5F")
INK, SOFT_INK, STEEL, WHITE = "#1A1A1A", "#5F5F5F", "#8A8A8A", "#FFFFFF"
LOAD = "#A3124A"
"""Of forces, torques and drives: no body has it."""

GROUND_LAYER, BODY_LAYER, SPRING_LAYER, JOINT_LAYER, LOAD_LAYER = 2.0, 3.0, 4.0, 5.0, 6.0

_TURN = np.linspace(0.0, 2.0 * np.pi, 33)[:-1]


@dataclass(frozen=True)
class Stroke:
    """A line, or an area if it has a face.

    Attributes
    ----------
    points
        Shape (n, 2).
    edge, face
        Colors; an empty edge draws no line, an empty face no area.
    width
        Of the line.
    layer
        Higher ones lie above.
    tint
        How much of the face's color is mixed into white, 0 to 1.
    alpha
        1 is opaque; of the face only.
    """

    points: Array
    edge: str = INK
    face: str = ""
    width: float = 1.2
    layer: float = JOINT_LAYER
    tint: float = 1.0
    alpha: float = 1.0

    @property
    def closed(self) -> bool:
        """Whether its end is joined to its start."""
        return bool(self.face)


def unit(vector: ArrayLike, otherwise: ArrayLike = (1.0, 0.0)) -> Array:
    """Return a direction, or another one if the vector is too short to have any."""
    array = np.asarray(vector, dtype=np.float64)
    length = float(np.linalg.norm(array))
    return array / length if length > 1e-9 else np.asarray(otherwise, dtype=np.float64)


def across(direction: Array) -> Array:
    """Return the direction turned by 90° to the left."""
    return np.array([-direction[1], direction[0]])


def circle(center: Array, radius: float) -> Array:
    """Return the points of a circle."""
    return center + radius * np.column_stack([np.cos(_TURN), np.sin(_TURN)])


def rectangle(center: Array, along: Array, length: float, height: float) -> Array:
    """Return the corners of a rectangle that lies along a direction."""
    half, rise = along * length / 2.0, across(along) * height / 2.0
    return np.array(
        [center - half - rise, center + half - rise, center + half + rise, center - half + rise]
    )


def hull(points: Array) -> Array:
    """Return the convex hull, counter-clockwise (Andrew's monotone chain)."""
    ordered = sorted({(round(x, 9), round(y, 9)) for x, y in points.tolist()})
    if len(ordered) < 3:
        return np.array(ordered)

    def half(walk: list[tuple[float, float]]) -> list[tuple[float, float]]:
        chain: list[tuple[float, float]] = []
        for p in walk:
            while len(chain) > 1:
                (ax, ay), (bx, by) = chain[-2], chain[-1]
                if (bx - ax) * (p[1] - ay) - (by - ay) * (p[0] - ax) > 0.0:
                    break
                chain.pop()
            chain.append(p)
        return chain[:-1]

    return np.array(half(ordered) + half(ordered[::-1]))


def rounded(points: Array, radius: float) -> Array:
    """Return the outline around some points at a distance: a rod for two, a plate for more."""
    return hull(np.vstack([circle(point, radius) for point in points]))


def hatch(
    start: Array, end: Array, side: Array, depth: float, *, width: float = 1.0
) -> list[Stroke]:
    """Return the line of the ground from start to end, with short strokes on one side of it."""
    span = end - start
    length = float(np.linalg.norm(span))
    along = unit(span)
    count = max(3, round(length / (0.8 * depth)))
    strokes = [Stroke(np.array([start, end]), width=1.5 * width, layer=GROUND_LAYER)]
    for n in range(count):
        foot = start + span * (n + 0.75) / count
        tip = foot + side * depth - along * depth * 0.8
        strokes.append(
            Stroke(np.array([foot, tip]), SOFT_INK, width=0.8 * width, layer=GROUND_LAYER)
        )
    return strokes


def zigzag(start: Array, end: Array, half: float) -> Array:
    """Return a spring's line: straight ends, and teeth of this half height between."""
    along = unit(end - start)
    length = float(np.linalg.norm(end - start))
    lead = min(0.22 * length, 3.0 * half)
    turns = int(np.clip(round((length - 2.0 * lead) / (2.0 * half)), 4, 16))
    steps = np.linspace(lead, length - lead, 2 * turns + 1)
    heights = np.array([0.0, *([half, -half] * turns)[: 2 * turns - 1], 0.0])
    teeth = start + np.outer(steps, along) + np.outer(heights, across(along))
    return np.vstack([start, teeth, end])


def dashpot(start: Array, end: Array, half: float, width: float, color: str) -> list[Stroke]:
    """Return a damper: a cup attached to the start, a piston attached to the end."""
    along = unit(end - start)
    up = across(along) * half
    length = float(np.linalg.norm(end - start))
    cup = min(0.34 * length, 5.0 * half)
    middle = (start + end) / 2.0
    bottom, rim = middle - along * cup / 2.0, middle + along * cup / 2.0
    piston = middle + along * cup * 0.08
    lines = (
        [start, bottom],
        [rim + up, bottom + up, bottom - up, rim - up],
        [piston + 0.72 * up, piston - 0.72 * up],
        [piston, end],
    )
    return [
        Stroke(np.array(line), color, width=width * (1.5 if n == 2 else 1.0), layer=SPRING_LAYER)
        for n, line in enumerate(lines)
    ]


def arrow_head(tip: Array, direction: Array, size: float, color: str) -> Stroke:
    """Return the filled head of an arrow."""
    back, side = tip - direction * size, across(direction) * size * 0.42
    return Stroke(np.array([tip, back + side, back - side]), color, color, 0.6, LOAD_LAYER)
