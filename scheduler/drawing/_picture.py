"""The picture of a diagram as plain geometry: boxes, frames, wires and text, before any drawing.

y points down; lengths are in points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ._symbols import Look, Words
from ._wiring import Point

Rect = tuple[float, float, float, float]
"""Left, top, width and height."""


@dataclass(frozen=True, slots=True)
class Box:
    """A block, or an input or output of a diagram."""

    path: str
    rect: Rect
    body: Rect
    look: Look
    rate: str
    open_inputs: tuple[Point, ...] = ()
    """Inputs that nothing is connected to."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A subsystem."""

    path: str
    rect: Rect
    depth: int


@dataclass(frozen=True, slots=True)
class Wire:
    """A connection, from the path of a port to that of a port or of an output of a diagram."""

    source: str
    target: str
    points: tuple[Point, ...]
    rate: str
    width: int
    depth: int
    is_bus: bool = False


@dataclass(frozen=True, slots=True)
class Dot:
    """A dot at the branch point of a wire."""

    at: Point
    rate: str


@dataclass(slots=True)
class Picture:
    """Everything to draw."""

    width: float = 0.0
    height: float = 0.0
    boxes: list[Box] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    dots: list[Dot] = field(default_factory=list)
    words: list[Words] = field(default_factory=list)
    legend: list[tuple[str, Point]] = field(default_factory=list)
    """Rates, and where their samples of color begin."""
    name: str = ""

    @property
    def rates(self) -> list[str]:
        """All rates that occur: constant, continuous, then from fast to slow."""
        return sorted({box.rate for box in self.boxes} - {""}, key=_speed)

    def paste(self, other: Picture, dx: float, dy: float) -> None:
        """Add all of `other`, moved."""

        def rect(r: Rect) -> Rect:
            return r[0] + dx, r[1] + dy, r[2], r[3]

        def points(line: Sequence[Point]) -> tuple[Point, ...]:
            return tuple((x + dx, y + dy) for x, y in line)

        self.boxes += [
            replace(b, rect=rect(b.rect), body=rect(b.body), open_inputs=points(b.open_inputs))
            for b in other.boxes
        ]
        self.frames += [replace(f, rect=rect(f.rect)) for f in other.frames]
        self.wires += [replace(w, points=points(w.points)) for w in other.wires]
        self.dots += [replace(d, at=points([d.at])[0]) for d in other.dots]
        self.words += [w.moved(dx, dy) for w in other.words]


def _speed(rate: str) -> tuple[int, float, str]:
    if rate in ("constant", "continuous"):
        return int(rate == "continuous") - 2, 0.0, rate
    try:
        return 0, float(rate.split()[0]), rate
    except (ValueError, IndexError):
        return 1, 0.0, rate
