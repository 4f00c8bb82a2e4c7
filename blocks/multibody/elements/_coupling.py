"""Couplings of two joint coordinates: gears, belts, racks and screws."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .... import _contract as contract
from ....errors import DiagramError
from ...core._ports import Parameter, parameter
from ..drawing._strokes import SOFT_INK, SPRING_LAYER, Stroke
from ..joints._joint import Coordinate, Joint
from ..system._laws import AbstractLaw, Constant
from ..system._parts import Parts
from ..system._reading import read_number, read_positive, suggest_keywords
from ..system._rotations import Array
from ._element import Constraint, Output, Term

if TYPE_CHECKING:
    from ..drawing._paper import Paper
    from ..drawing._poses import Snapshot
    from ..plant._tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class Coupling(Constraint):
    """A constant ratio between two joint coordinates: Φ = x_second - ratio x_first - offset = 0.

    With the equations of motion M q̈ + Φ_qᵀ λ = Q the effort on the second coordinate is -λ, and
    that on the first is ratio λ: a coupling transmits power without loss or backlash.
    Angles are unwrapped, as in the outputs of the joints.

    Attributes
    ----------
    first, second
        The joints, and with `first_coordinate` and `second_coordinate` which of their coordinates.
    ratio
        Change of the second coordinate per unit of the first: dimensionless, in m/rad or rad/m.
        It can be set before a run.
    offset
        Value of the second coordinate at 0 of the first, in m or rad.
    """

    kernel = contract.MB_COUPLING

    name: str
    first: Joint
    first_coordinate: int
    second: Joint
    second_coordinate: int
    ratio: float
    offset: float

    @property
    def of(self) -> tuple[Coordinate, Coordinate]:
        """Return the two coordinates."""
        return (
            self.first.coordinates[self.first_coordinate],
            self.second.coordinates[self.second_coordinate],
        )

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path: ``name.ratio``, ``name.offset``."""
        first, second = self.of
        unit = None if first.unit == second.unit else f"{second.unit}/{first.unit}"
        doc = f"of {self.second.name} to {self.first.name}"
        yield parameter(f"{self.name}.ratio", self.ratio, unit=unit, doc=doc)
        yield parameter(f"{self.name}.offset", self.offset, unit=second.unit, doc=doc)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Return the coordinates in the equation."""
        return (
            Term(self.first, self.first_coordinate, -self.ratio),
            Term(self.second, self.second_coordinate, 1.0),
        )

    @property
    def right_side(self) -> AbstractLaw:
        """Return the offset."""
        return Constant(self.offset)

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        first, second = self.of
        of_second = f"{second.effort} on the coordinate of {self.second.name}"
        of_first = f"{first.effort} on the coordinate of {self.first.name}"
        passed = f"what it passes from {self.first.name} to {self.second.name}"
        return {
            "effort": Output(0, second.effort_unit, of_second, 1, "solution", of="effort"),
            "first_effort": Output(
                contract.COUPLING_SHOWN_REACTION, first.effort_unit, of_first, 1, "solution"
            ),
            "power": Output(0, "W", passed, 1, "solution", of="power"),
        }

    def row(self, tables: Tables) -> tuple[list[int], list[list[int]]]:
        """Return the integers of its row in the kernel, and the path: the speeds in the row."""
        places: list[int] = []
        signs: list[int] = []
        paths: dict[int, list[int]] = {}
        for term in self.terms:
            at = tables.coordinate(term.joint, term.coordinate)
            signs.append(at.sign)
            known = tables.tree.coordinates.get((term.joint.name, term.coordinate))
            if known is None:
                places.append(at.q)
                path = tables.path(term.joint.first, term.joint.second)
            else:
                places.append(known.link)
                path = [[known.v, known.link, 0, 1]]
            paths |= {speed: [speed, *rest] for speed, *rest in path}
        ratio = tables.place(f"{self.name}.ratio")
        return [contract.MB_ROW_COUPLING, *places, *signs, ratio], list(paths.values())

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        return [0, 0, tables.place(f"{self.name}.ratio"), tables.row_of[self.name], 0]

    def draw(self, frame: Snapshot, paper: Paper) -> list[Stroke]:
        """Return a line from joint to joint."""
        if self.first is self.second:
            return []
        ends = np.array([paper.at(frame.point(j.second)) for j in (self.first, self.second)])
        return [Stroke(ends, SOFT_INK, width=1.0, layer=SPRING_LAYER)]

    def label_place(self, frame: Snapshot, paper: Paper) -> tuple[Array, float] | None:
        """Return the places for its name and the distance from them."""
        ends = [paper.at(frame.point(j.second)) for j in (self.first, self.second)]
        return (0.5 * (ends[0] + ends[1]))[None], 14 * paper.size


class CouplingMethods(Parts):
    """Adds couplings of joint coordinates."""

    @suggest_keywords
    def coupling(
        self,
        name: str,
        first: Joint,
        second: Joint,
        *,
        ratio: float,
        offset: float | None = None,
        first_coordinate: int | None = None,
        second_coordinate: int | None = None,
    ) -> Coupling:
        """Tie two joint coordinates by x_second = ratio x_first + offset; see `Coupling`.

        Its outputs are ``name.effort`` on the second coordinate, ``first_effort`` on the first, and
        ``power``, which it passes from the first to the second.

        Parameters
        ----------
        name
            Unique in the system.
        first, second
            Joints; the same one twice ties two of its coordinates.
        ratio
            What the second coordinate moves for each unit of the first; not 0.
        offset
            In m or rad; that of the given pose if not given.
        first_coordinate, second_coordinate
            From 0; the only one of the joint if not given.
        """
        self._check_name(name)
        one = self._find_coordinate(name, first, first_coordinate)
        two = self._find_coordinate(name, second, second_coordinate)
        return _make(self, name, first, one, second, two, ratio, offset)

    @suggest_keywords
    def gear(
        self,
        name: str,
        first: Joint,
        second: Joint,
        *,
        ratio: float | None = None,
        teeth: tuple[int, int] | None = None,
        internal: bool = False,
        offset: float | None = None,
    ) -> Coupling:
        """Couple two angles by a pair of gears: speed of the second over speed of the first.

        Angles count as the joints do, about their own axes. Between parallel axes of the same sense
        an external pair has a negative ratio.

        Parameters
        ----------
        name, first, second
            Its name and the joints of the two gears.
        ratio
            What the second angle moves for each unit of the first; or give `teeth`.
        teeth
            Of the first and of the second gear: the ratio is - first / second.
        internal
            Whether the larger one has its teeth inside, so that both turn the same way.
        offset
            In rad; that of the given pose if not given.
        """
        self._check_name(name)
        if (ratio is None) == (teeth is None):
            raise DiagramError(f"`{name}` has a `ratio` or `teeth`: give one of them.")
        if teeth is not None:
            if len(teeth) != 2:
                raise DiagramError(f"`teeth` of `{name}` are two numbers, got {teeth!r}.")
            one, two = (read_positive(name, "teeth", number) for number in teeth)
            ratio = (1.0 if internal else -1.0) * one / two
        elif internal:
            raise DiagramError(f"`internal` of `{name}` is for `teeth`: a `ratio` has its sign.")
        return self._couple_angles(name, first, second, ratio, offset)

    @suggest_keywords
    def belt(
        self,
        name: str,
        first: Joint,
        second: Joint,
        *,
        radii: tuple[float, float],
        crossed: bool = False,
        offset: float | None = None,
    ) -> Coupling:
        """Couple two angles by a belt that neither slips nor stretches.

        Parameters
        ----------
        name, first, second
            Its name and the joints of the two pulleys.
        radii
            Of the first and of the second pulley, in m: the ratio is first / second.
        crossed
            Whether the pulleys turn against each other.
        offset
            In rad; that of the given pose if not given.
        """
        self._check_name(name)
        if len(radii) != 2:
            raise DiagramError(f"`radii` of `{name}` are two numbers, got {radii!r}.")
        one, two = (read_positive(name, "radii", number) for number in radii)
        return self._couple_angles(
            name, first, second, (-1.0 if crossed else 1.0) * one / two, offset
        )

    @suggest_keywords
    def rack(
        self,
        name: str,
        pinion: Joint,
        rack: Joint,
        *,
        radius: float,
        offset: float | None = None,
    ) -> Coupling:
        """Couple the angle of a pinion and the displacement of its rack: x = radius angle.

        Parameters
        ----------
        name, pinion, rack
            Its name, the joint of the pinion and that of the rack.
        radius
            Of the pinion, in m; negative if the rack moves the other way.
        offset
            In m; that of the given pose if not given.
        """
        self._check_name(name)
        one = self._find_coordinate(name, pinion, None, "angle")
        two = self._find_coordinate(name, rack, None, "length")
        return _make(self, name, pinion, one, rack, two, radius, offset)

    @suggest_keywords
    def screw(
        self, name: str, joint: Joint, *, lead: float, offset: float | None = None
    ) -> Coupling:
        """Couple angle and displacement of a cylindrical joint: x = lead angle / 2π.

        Parameters
        ----------
        name, joint
            Its name and a joint with an angle and a displacement.
        lead
            In m for one turn; negative for a left-hand thread.
        offset
            In m; that of the given pose if not given.
        """
        self._check_name(name)
        one = self._find_coordinate(name, joint, None, "angle")
        two = self._find_coordinate(name, joint, None, "length")
        pitch = read_number(f"`lead` of `{name}`", lead) / (2.0 * math.pi)
        return _make(self, name, joint, one, joint, two, pitch, offset)

    def _couple_angles(
        self, name: str, first: Joint, second: Joint, ratio: float | None, offset: float | None
    ) -> Coupling:
        one = self._find_coordinate(name, first, None, "angle")
        two = self._find_coordinate(name, second, None, "angle")
        return _make(self, name, first, one, second, two, ratio, offset)


def _make(
    system: Parts,
    name: str,
    first: Joint,
    one: int,
    second: Joint,
    two: int,
    ratio: float | None,
    offset: float | None,
) -> Coupling:
    read = read_number(f"`ratio` of `{name}`", ratio)
    if read == 0.0:
        raise DiagramError(f"`{name}` couples nothing with a ratio of 0: prescribe the second.")
    if first is second and one == two:
        raise DiagramError(f"`{name}` couples a coordinate of `{first.name}` to itself.")
    if offset is None:
        offset = second.given_value(two) - read * first.given_value(one)
    start = read_number(f"`offset` of `{name}`", offset)
    return system._add(Coupling(name, first, one, second, two, read, start))
