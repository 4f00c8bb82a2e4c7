"""Bushings: soft joints between two markers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .... import _contract as contract
from ....errors import DiagramError
from ...core._ports import Numbers, Parameter, parameter
from ..drawing._signs import draw_support
from ..drawing._strokes import INK, STEEL, WHITE, Stroke, circle
from ..joints._joint import ANGLE
from ..system._bodies import Marker
from ..system._parts import Parts
from ..system._reading import read_numbers, suggest_keywords
from ..system._rotations import Array, freeze
from ._element import Element, Output, energy, power

if TYPE_CHECKING:
    from ..drawing._paper import Paper
    from ..drawing._poses import Snapshot
    from ..equations._loads import LoadState
    from ..equations._shapes import Shapes
    from ..plant._tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class Bushing(Element):
    """A bushing: springs and dampers along and about the axes of marker i.

    With x = R_WMiᵀ d and (e0, e) the Euler parameters of R = R_WMiᵀ R_WMj, where e is the axis of
    the rotation times sin ψ/2, the springs store

        U = ½ Σ k_n x_n² + 2 Σ k_(3+n) e_n²

    and forces and torques are the gradient of U, plus damping:

        force = k[:3] x + c[:3] ẋ      torque = 2 (e0 K e + e × K e) + c[3:] ω,   K = diag(k[3:])

    in axes of marker i, with ẋ the velocity of p_j and ω the angular velocity of j as seen from
    body i. The force at p_j and the torque act on body i, the opposite on body j: angular momentum
    is conserved. For small rotations the torque is k θ about each axis; about a single axis it
    is k sin ψ. It is intended for rotations up to 90°: beyond, the torque about an axis decreases,
    and at 180° it is 0. Planar systems use x, y and the unwrapped angle about z: stiffness[0], [1]
    and [5]; the others are 0.
    """

    kernel = contract.MB_BUSHING

    name: str
    first: Marker
    second: Marker
    stiffness: Array
    damping: Array

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path: ``name.stiffness.x``, … ``name.stiffness.rz``."""
        planar = self.first.body.system.planar
        for n, axis in enumerate(("x", "y", "z", "rx", "ry", "rz")):
            if planar and axis not in ("x", "y", "rz"):
                continue
            units = ("N/m", "N.s/m") if n < 3 else ("N.m/rad", "N.m.s/rad")
            for kind, values, unit in zip(
                ("stiffness", "damping"), (self.stiffness, self.damping), units, strict=True
            ):
                yield parameter(
                    f"{self.name}.{kind}.{axis}", values[n], unit=unit, doc=f"{kind} along {axis}"
                )

    @property
    def ends(self) -> tuple[Marker, Marker]:
        """Return the two markers that it ties softly together."""
        return self.first, self.second

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name; force and torque are as those of a joint."""
        seen = "in axes of its first marker"
        return {
            "force": Output(
                contract.BUSHING_SHOWN_FORCE,
                "N",
                "on its second body at the second marker, in world axes",
                3,
            ),
            "torque": Output(
                contract.BUSHING_SHOWN_TORQUE, "N.m", "on its second body, in world axes", 3
            ),
            "deflection": Output(
                contract.BUSHING_SHOWN_DEFLECTION, "m", f"position of the second marker, {seen}", 3
            ),
            "rotation": Output(
                contract.BUSHING_SHOWN_ROTATION,
                "rad",
                f"axis times angle of the second marker, {seen}",
                3,
            ),
            "deflection_rate": Output(
                contract.BUSHING_SHOWN_DEFLECTION_RATE,
                "m/s",
                f"velocity of the second marker, {seen}",
                3,
            ),
            "rotation_rate": Output(
                contract.BUSHING_SHOWN_ROTATION_RATE,
                "rad/s",
                f"relative angular velocity, {seen}",
                3,
            ),
            "power": power(),
            "energy": energy(),
        }

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        i, j = tables.marker(self.first), tables.marker(self.second)
        angle = tables.measure(i, j, ANGLE) if tables.system.planar else 0
        return [i, j, tables.place(f"{self.name}.stiffness.x"), 0, angle]

    def reserve(self, shapes: Shapes) -> list[int]:
        """Return the scalars of the displacements along the axes of the first marker."""
        ends = shapes.point(self.second), shapes.point(self.first)
        body = shapes.ground if self.first.body.is_ground else self.first.body.index
        return [
            shapes.product((shapes.direction(body, axis), 0), ends)
            for axis in self.first.rotation.T
        ]

    def push(self, at: LoadState, items: list[int]) -> None:
        """Add its generalized force at a state."""
        i, j = at.body(self.first), at.body(self.second)
        for k, scalar in enumerate(items):
            effort = self.stiffness[k] * at.scalars.value[scalar]
            effort += self.damping[k] * at.scalars.rate[scalar]
            at.total[:] -= effort * at.scalars.jacobian[scalar]
        frame = at.rotations[i] @ self.first.rotation
        r = frame.T @ at.rotations[j] @ self.second.rotation
        if self.first.body.system.planar:
            angle = at.unwrap(-1 - items[0], float(np.arctan2(r[1, 0], r[0, 0])))
            elastic = np.array([0.0, 0.0, self.stiffness[5] * angle])
        else:
            # The gradient of Σ a_n (1 - R_nn) = 2 Σ k_n e_n²; see the class.
            a = 0.5 * self.stiffness[3:].sum() - self.stiffness[3:]
            elastic = np.array([
                a[1] * r[2, 1] - a[2] * r[1, 2],
                a[2] * r[0, 2] - a[0] * r[2, 0],
                a[0] * r[1, 0] - a[1] * r[0, 1],
            ])  # fmt: skip
        spin = frame.T @ (at.spin(j) - at.spin(i))
        torque = frame @ (elastic + self.damping[3:] * spin)
        at.turn(i, torque)
        at.turn(j, -torque)

    def draw(self, frame: Snapshot, paper: Paper) -> list[Stroke]:
        """Return two rings; one on the ground is drawn by `draw_mount`."""
        if self.first.body.is_ground or self.second.body.is_ground:
            return []
        at = paper.at(frame.point(self.second))
        return [
            Stroke(circle(at, 8 * paper.size), INK, STEEL, 1.2, tint=0.5),
            Stroke(circle(at, 4 * paper.size), INK, WHITE, 1.0),
        ]

    def draw_mount(self, at: Array, away: Array, line: Array, k: float) -> list[Stroke]:
        """Return the symbol of the support at an end on the ground."""
        return draw_support(at, away, k)

    def label_place(self, frame: Snapshot, paper: Paper) -> tuple[Array, float] | None:
        """Return the places for its name and the distance from them."""
        return paper.at(frame.point(self.second))[None], 14 * paper.size


class BushingMethods(Parts):
    """Adds bushings."""

    @suggest_keywords
    def bushing(
        self,
        name: str,
        first: Marker,
        second: Marker,
        *,
        stiffness: Numbers,
        damping: Numbers = 0.0,
    ) -> Bushing:
        """Add a bushing between two markers; see `Bushing` for its law.

        Parameters
        ----------
        name, first, second
            Its name and ends.
        stiffness, damping
            Along x, y, z of the first marker (N/m, N s/m) and about them (N m/rad, N m s/rad): six
            values; three if planar, along x and y and about z. A scalar 0 sets all to 0.
        """
        self._check_name(name)
        self._check_ends(name, first, second)
        places = [0, 1, 5] if self.planar else [0, 1, 2, 3, 4, 5]
        read = []
        for what, given in (("stiffness", stiffness), ("damping", damping)):
            values = read_numbers(f"`{what}` of `{name}`", given)
            if values.shape != (len(places),) and not (values.ndim == 0 and values == 0):
                raise DiagramError(
                    f"`{what}` of `{name}` has {len(places)} numbers, along and about the axes; "
                    f"got {given!r}."
                )
            if (values < 0).any():
                raise DiagramError(f"`{what}` of `{name}` must not be negative, got {given!r}.")
            full = np.zeros(6)
            full[places] = values
            read.append(freeze(full))
        return self._add(Bushing(name, first, second, read[0], read[1]))
