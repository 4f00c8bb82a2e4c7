"""Rolling without slip of a disc, a sphere or a wheel in a plane."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from .... import _contract as contract
from ....errors import DiagramError
from ...core._ports import Parameter, parameter
from ..drawing._strokes import INK, SPRING_LAYER, Stroke
from ..system._bodies import Marker
from ..system._laws import AbstractLaw, Constant
from ..system._parts import Parts
from ..system._reading import read_positive, suggest_keywords
from ._element import Constraint, Output, Term, power
from ._named_coordinates import between

if TYPE_CHECKING:
    from ..drawing._paper import Paper
    from ..drawing._poses import Snapshot
    from ..plant._tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class RollingRow(Constraint):
    """One equation of a rolling contact: that it touches, or that it does not slip in a direction.

    With the center C of the disc, the place P of the plane, its normal n and the point of contact
    Q, the lowest one of the disc:

    - touch: n · (C - P) = R |n - (n · h) h|, with h the axis of the disc
    - roll: u · (velocity of the disc at Q - velocity of the plane at Q) = 0, for directions u in
      the plane. It binds velocities alone: no position satisfies or violates it.

    The output ``force`` is that of the plane on the disc at Q, along n or along u.

    Attributes
    ----------
    first, second
        Marker P of the plane and marker C of the disc, whose z is its axis.
    direction, normal
        Axes of the first marker: u, or n for the row that touches; and n.
    tilts
        Whether the axis of the disc may tilt: not that of a sphere or of a wheel in a plane.
    radius
        In m; ``owner.radius`` can be set before a run.
    owner
        Name of the row that touches.
    """

    general = "rolling"

    name: str
    first: Marker
    second: Marker
    direction: int
    normal: int
    tilts: bool
    radius: float
    owner: str

    @property
    def binds_rates(self) -> bool:
        """Return whether it binds velocities alone."""
        return self.direction != self.normal

    @property
    def terms(self) -> tuple[Term, ...]:
        """Return the displacement along its direction."""
        number = self.direction
        return (Term(between(self.first, self.second), number, 1.0),)

    @property
    def right_side(self) -> AbstractLaw:
        """Return 0."""
        return Constant(0.0)

    @property
    def turns(self) -> bool:
        """Return False: it is a length, or a velocity."""
        return False

    def gap(self) -> float:
        """Return n · (C - P) - R s in the given pose."""
        normal = self.first.world_rotation[:, self.normal]
        part = float(normal @ self.second.world_rotation[:, 2]) if self.tilts else 0.0
        away = self.second.world_position - self.first.world_position
        return float(normal @ away) - self.radius * float(np.sqrt(max(0.0, 1.0 - part * part)))

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path."""
        if self.name == self.owner:
            yield parameter(f"{self.name}.radius", self.radius, unit="m", doc="of what rolls")

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        what = f"along {'xyz'[self.direction]} of {self.first.path}"
        doc = f"force of the plane on what rolls on it, {what}: of {self.name}"
        return {
            "force": Output(0, "N", doc, 1, "solution", of="effort"),
            "power": power("solution"),
        }

    def row(self, tables: Tables) -> tuple[list[int], list[list[int]]]:
        """Return the integers of its row in the kernel, and the path: the speeds in the row."""
        i, j = tables.marker(self.first), tables.marker(self.second)
        shape = self.normal + (0 if self.tilts else contract.ROLL_SPHERE)
        place = tables.place(f"{self.owner}.radius")
        record = [contract.MB_ROW_ROLL, i, j, self.direction, shape, place]
        return record, tables.path(self.first, self.second)

    def draw(self, frame: Snapshot, paper: Paper) -> list[Stroke]:
        """Return the circle that rolls."""
        if self.name != self.owner:
            return []
        center = frame.point(self.second)
        axes = (frame.rotation(self.second.body) @ self.second.rotation)[:, :2]
        angles = np.linspace(0.0, 2.0 * np.pi, 49)
        rim = center + self.radius * np.column_stack([np.cos(angles), np.sin(angles)]) @ axes.T
        return [
            Stroke(np.array([paper.at(one) for one in rim]), INK, width=1.4, layer=SPRING_LAYER)
        ]


class RollingMethods(Parts):
    """Adds rolling contacts."""

    @suggest_keywords
    def rolling(
        self,
        name: str,
        plane: Marker,
        wheel: Marker,
        *,
        radius: float,
        shape: Literal["disc", "sphere"] = "disc",
    ) -> RollingRow:
        """Let a thin disc or a sphere roll on a plane without slip, in a planar system a wheel.

        The plane is that of x and y of the first marker, and its z points to the wheel; in a planar
        system it is the line along x, and y points to the wheel. The disc has its center at the
        second marker and z as its axis. The contact never lifts off and never slides: the outputs
        ``name.force``, along the normal, ``name_x.force`` and in space ``name_y.force`` say what
        that requires.

        Parameters
        ----------
        name
            Of the equation that it touches; those that it does not slip are ``name_x``, ``name_y``.
        plane, wheel
            The markers; those without rotation have the axes of their body.
        radius
            In m; ``name.radius`` can be set before a run.
        shape
            A ``"disc"`` must not lie flat on the plane.
        """
        self._check_name(name)
        plane, wheel = self._check_ends(name, plane, wheel)
        size = read_positive(name, "radius", radius)
        if shape not in ("disc", "sphere"):
            raise DiagramError(f"`{name}` is a {shape!r}: what rolls is a 'disc' or a 'sphere'.")
        normal, along = (1, "x") if self.planar else (2, "xy")
        tilts = shape == "disc" and not self.planar
        if tilts:
            up = plane.world_rotation[:, 2]
            if abs(float(up @ wheel.world_rotation[:, 2])) > 1.0 - 1e-9:
                raise DiagramError(
                    f"disc `{name}` lies flat on its plane: its axis is z of `{wheel.path}`, the "
                    f"normal z of `{plane.path}`. Give the markers axis=… or another pose."
                )
        names = [f"{name}_{axis}" for axis in along]
        for item in names:
            self._check_name(item)
        made = self._add(RollingRow(name, plane, wheel, normal, normal, tilts, size, name))
        for item, axis in zip(names, along, strict=True):
            direction = "xyz".index(axis)
            self._add(RollingRow(item, plane, wheel, direction, normal, tilts, size, name))
        return made
