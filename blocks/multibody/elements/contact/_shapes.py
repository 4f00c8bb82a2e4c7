"""Shapes that touch each other: what is on a body at a marker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .....errors import DiagramError
from ....core._ports import Numbers
from ...system._bodies import Marker
from ...system._reading import read_number, read_numbers
from ...system._rotations import Array, freeze

FEWEST_POINTS, MOST_POINTS = 8, 3600


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A shape on a body: its place and axes are those of a marker.

    Class attributes
    ----------------
    kind
        Its name in the table of pairs and in messages.
    sizes
        Its numbers, in the order of the kernel.
    """

    kind: ClassVar[str]
    sizes: ClassVar[tuple[str, ...]] = ()

    marker: Marker

    def _check(self) -> None:
        if not isinstance(self.marker, Marker):
            raise DiagramError(
                f"a {type(self).__name__} is at a marker, such as body.marker('tip', (0, 0, 0)); "
                f"got {self.marker!r}."
            )
        for what in self.sizes:
            value = read_number(f"`{what}` of {type(self).__name__}", getattr(self, what))
            if value < 0 or (value == 0 and not (what == "length" and self.kind == "capsule")):
                raise DiagramError(
                    f"`{what}` of {type(self).__name__} is positive, in m; got {value:g}."
                )

    def numbers(self) -> Iterator[tuple[str, float]]:
        """Yield its numbers by name."""
        for what in self.sizes:
            yield what, float(getattr(self, what))

    def frame(self) -> Array:
        """Return the axes of the shape on its body: its own z is the axis or the normal."""
        return self.marker.rotation


@dataclass(frozen=True, slots=True, eq=False)
class Sphere(Shape):
    """A ball about its marker; in a plane a disc.

    Parameters
    ----------
    marker
        At its center.
    radius
        In m.
    """

    kind: ClassVar[str] = "sphere"
    sizes: ClassVar[tuple[str, ...]] = ("radius",)

    radius: float

    def __post_init__(self) -> None:
        """Check its numbers."""
        self._check()


@dataclass(frozen=True, slots=True, eq=False)
class Plane(Shape):
    """A half-space below its marker: z of the marker is the normal, in a plane y.

    Parameters
    ----------
    marker
        On the surface. What touches it is on the side of the normal.
    """

    kind: ClassVar[str] = "plane"

    def __post_init__(self) -> None:
        """Check its numbers."""
        self._check()

    def frame(self) -> Array:
        """Return axes whose z is the normal."""
        if not self.marker.body.system.planar:
            return self.marker.rotation
        return freeze(np.roll(self.marker.rotation, 1, axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Capsule(Shape):
    """A cylinder with a half-ball on each end: all points within `radius` of a line.

    Parameters
    ----------
    marker
        In its middle; the line is along z, in a plane along x.
    radius, length
        In m; the length is that of the line, without the half-balls.
    """

    kind: ClassVar[str] = "capsule"
    sizes: ClassVar[tuple[str, ...]] = ("radius", "length")

    radius: float
    length: float

    def __post_init__(self) -> None:
        """Check its numbers."""
        self._check()

    def frame(self) -> Array:
        """Return axes whose z is the line."""
        if not self.marker.body.system.planar:
            return self.marker.rotation
        return freeze(np.roll(self.marker.rotation, -1, axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Cylinder(Shape):
    """A solid cylinder, or a pin.

    Parameters
    ----------
    marker
        In its middle; z is its axis.
    radius, length
        In m.
    """

    kind: ClassVar[str] = "cylinder"
    sizes: ClassVar[tuple[str, ...]] = ("radius", "length")

    radius: float
    length: float

    def __post_init__(self) -> None:
        """Check its numbers."""
        self._check()


@dataclass(frozen=True, slots=True, eq=False)
class Socket(Shape):
    """A spherical hollow, which holds a `Sphere`: a ball joint with play.

    Parameters
    ----------
    marker
        At its center.
    radius
        Of the hollow, in m.
    """

    kind: ClassVar[str] = "socket"
    sizes: ClassVar[tuple[str, ...]] = ("radius",)

    radius: float

    def __post_init__(self) -> None:
        """Check its numbers."""
        self._check()


@dataclass(frozen=True, slots=True, eq=False)
class Bore(Shape):
    """A cylindrical bore, open at both ends, in which a `Cylinder` or a `Sphere` has play.

    Parameters
    ----------
    marker
        In its middle; z is its axis.
    radius, length
        In m.
    """

    kind: ClassVar[str] = "bore"
    sizes: ClassVar[tuple[str, ...]] = ("radius", "length")

    radius: float
    length: float

    def __post_init__(self) -> None:
        """Check its numbers."""
        self._check()


@dataclass(frozen=True, slots=True, eq=False)
class Profile(Shape):
    """A closed curve r(φ) in the plane of x and y of its marker, as a periodic cubic spline."""

    radii: Numbers
    table: Array = field(init=False, repr=False)
    slopes: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the table."""
        self._check()
        owner = type(self).__name__
        radii = read_numbers(f"`radii` of {owner}", self.radii)
        if radii.ndim != 1 or not FEWEST_POINTS <= len(radii) <= MOST_POINTS:
            raise DiagramError(
                f"`radii` of {owner} are {FEWEST_POINTS} to {MOST_POINTS} numbers: r at equal "
                f"angles from x to y, the first at angle 0; got an array of shape {radii.shape}."
            )
        if not (radii > 0).all():
            worst = int(radii.argmin())
            raise DiagramError(
                f"`radii` of {owner} are positive, in m; got {radii[worst]:g} at point {worst}."
            )
        from scipy.interpolate import CubicSpline  # here: it takes longer than all the rest

        angles = 2.0 * np.pi / len(radii) * np.arange(len(radii) + 1)
        spline = CubicSpline(angles, np.append(radii, radii[0]), bc_type="periodic")
        object.__setattr__(self, "table", freeze(radii.copy()))
        object.__setattr__(self, "slopes", freeze(spline(angles[:-1], 1)))

    def at(self, count: int) -> Array:
        """Return the radii of the spline at `count` equal angles."""
        from scipy.interpolate import CubicSpline

        angles = 2.0 * np.pi / len(self.table) * np.arange(len(self.table) + 1)
        spline = CubicSpline(angles, np.append(self.table, self.table[0]), bc_type="periodic")
        return np.asarray(spline(2.0 * np.pi / count * np.arange(count)))

    @property
    def data(self) -> Array:
        """Return radii and slopes, one after the other, as the kernel reads them."""
        return np.concatenate([self.table, self.slopes])


@dataclass(frozen=True, slots=True, eq=False)
class HoleProfile(Profile):
    """A hole of any shape, which extends along z, in which a `Sphere` (a round pin) has play.

    Parameters
    ----------
    marker
        At the center of the curve; z is along the hole.
    radii
        In m: r at equal angles about z, the first on x; the last is not the first again. Between
        them is a periodic cubic spline, so that a feature needs some eight points.
    """

    kind: ClassVar[str] = "hole"


@dataclass(frozen=True, slots=True, eq=False)
class PinProfile(Profile):
    """A pin of any outline, which extends along z, in a `HoleProfile`.

    Parameters
    ----------
    marker
        At the center of the curve; z is along the pin.
    radii
        In m: r at equal angles about z, the first on x, as of a `HoleProfile`.
    """

    kind: ClassVar[str] = "pin"


@dataclass(frozen=True, slots=True, eq=False)
class CamProfile(Profile):
    """A cam with the outline r(φ), which moves a roller (`Sphere`) or a flat face (`Plane`).

    For a roller it extends along z; under a flat face it is thin.

    Parameters
    ----------
    marker
        At the center of the curve; z is the axis of the cam.
    radii
        In m: r at equal angles about z, the first on x; see `cam_for_roller`, `cam_for_face`.
    """

    kind: ClassVar[str] = "cam"


def is_shape(value: Any) -> bool:
    """Return whether a value is a shape that can touch."""
    return isinstance(value, Shape) and hasattr(type(value), "kind")
