"""Cylindrical joints with play in an RCCC mechanism [V 7.1-7.11].

A pin of length H in a long hole touches it with its two end circles. The screw that takes the pin
axis to the hole axis is Ê = -(cos ξ, sin ξ, 0), τ̂ = atan(2Δr sin(β/2)/H) + ε Δr cos(β/2). The loop
with play is

    Π M_i Rz(θ̂_i) L_i = I,   M_i = Rodrigues(Ê_i, τ̂_i),   L_i = Tz(-R_i) Rx(α̂_i) Tz(R_i),   M_1 = I

Each L_i M_{i+1} is a rigid displacement Rz(û_i) Rx(α̂'_i) Rz(ŵ_i), so that the loop is that of an
RCCC mechanism with twists α̂'_i and coordinates θ̂_i + û_i + ŵ_{i-1}: it closes in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ....errors import DiagramError, FormulationError
from ._displacements import about, about_x, about_z
from ._numbers import Dual, Dualish, arctan2, as_dual, stack
from ._rccc import RCCC


def clearance_screw(
    direction: npt.ArrayLike,
    spread: npt.ArrayLike,
    clearance: npt.ArrayLike,
    length: npt.ArrayLike,
) -> tuple[Dual, Dual]:
    """Return the line Ê and the dual angle τ̂ that take a pin to the axis of its hole.

    The inputs broadcast. β = 0 is contact along a line (τ̂ = ε Δr), β = 180° the crossed contact
    with the largest tilt.

    Parameters
    ----------
    direction
        ξ, mean direction of the two contact points from x to y of the hole, in rad.
    spread
        β, the angle between them, in rad: 0 ≤ β < 2π.
    clearance
        Radial, Δr ≥ 0, in m.
    length
        H of the pin, in m.

    Raises
    ------
    DiagramError
        If a clearance is negative, or a length not positive.
    """
    xi, beta, gap, h = np.broadcast_arrays(
        *(np.asarray(value, dtype=np.float64) for value in (direction, spread, clearance, length))
    )
    if not np.all(gap >= 0):
        raise DiagramError(f"a radial clearance is at least 0, got {gap.min():g} m.")
    if not np.all(h > 0):
        raise DiagramError(f"the length of a pin is positive, got {h.min():g} m.")
    axis = Dual(np.stack([-np.cos(xi), -np.sin(xi), np.zeros_like(xi)], axis=-1))
    tilt = np.arctan(2 * gap * np.sin(0.5 * beta) / h)
    return axis, Dual(tilt, gap * np.cos(0.5 * beta))


@dataclass(frozen=True, slots=True, eq=False)
class PlayRCCC:
    """An RCCC mechanism whose cylindrical joints have play, in contact as given.

    Parameters
    ----------
    twists
        α̂₁ … α̂₄ as of `RCCC`.
    reaches
        R₁ … R₄, distances of the joint elements from the crossing points of the axes, in m.
    screws
        Ê and τ̂ of joints 2, 3 and 4 from `clearance_screw`: arrays (…, 3, 3) and (…, 3).
    branch
        As of `RCCC`.
    """

    twists: Dual
    reaches: npt.ArrayLike
    screws: tuple[Dual, Dual]
    branch: int = 1

    def equivalent(self) -> tuple[RCCC, Dual]:
        """Return the RCCC mechanism of the same loop, and what its coordinates exceed ours by.

        The shift has the last axis of the four joints.
        """
        turns: list[Dual] = []
        for i in range(4):
            away = about_z(Dual(0.0, np.asarray(self.reaches, dtype=np.float64)[..., i]))
            link = away.T @ about_x(self.twists[..., i]) @ away
            if i < 3:
                line, angle = self.screws
                link = link @ about(line[..., i, :], angle[..., i])
            turns.append(split_zxz(link))
        twists = stack([turn[..., 1] for turn in turns])
        shift = stack([turns[i][..., 0] + turns[i - 1][..., 2] for i in range(4)])
        return RCCC(twists, branch=self.branch), shift

    def coordinates(self, angle: npt.ArrayLike) -> Dual:
        """Return θ̂₁ … θ̂₄ for θ₁ in rad, angles in (-π, π]; leading axes are those of the play.

        Raises
        ------
        FormulationError
            If the mechanism cannot be assembled.
        """
        return self.motion(angle)[0]

    def motion(self, angle: npt.ArrayLike, speed: npt.ArrayLike = 0.0) -> tuple[Dual, Dual]:
        """Return θ̂ and v̂ of the joints for θ₁ and θ̇₁; contacts stay where they are."""
        mechanism, shift = self.equivalent()
        found = mechanism.motion(Dual(angle) + shift[..., 0], speed)
        own = found.coordinates - shift
        wrapped = np.remainder(own.real + np.pi, 2 * np.pi) - np.pi
        return Dual(wrapped, own.dual), found.rates

    def residual(self, coordinates: Dual) -> float:
        """Return the largest entry of Π M_i Rz(θ̂_i) L_i - I, multiplied out as described."""
        loop: Dual = as_dual(np.eye(3))
        for i in range(4):
            away = about_z(Dual(0.0, np.asarray(self.reaches, dtype=np.float64)[..., i]))
            if i > 0:
                line, angle = self.screws
                loop = loop @ about(line[..., i - 1, :], angle[..., i - 1])
            loop = loop @ about_z(coordinates[..., i]) @ away.T
            loop = loop @ about_x(self.twists[..., i]) @ away
        off = loop - np.eye(3)
        return float(max(np.abs(off.real).max(), np.abs(off.dual).max()))


def split_zxz(motion: Dualish) -> Dual:
    """Return û, α̂, ŵ with T = Rz(û) Rx(α̂) Rz(ŵ), 0 < α < π, along the last axis.

    Raises
    ------
    FormulationError
        If the z axes of both frames are parallel: the common normal is not unique.
    """
    t = as_dual(motion)
    sine = np.hypot(t.real[..., 0, 2], t.real[..., 1, 2])
    if not np.all(sine > 1e-9):
        raise FormulationError("the two axes of a link are parallel: α must not be 0 or 180°.")
    u = arctan2(t[..., 0, 2], -t[..., 1, 2])
    w = arctan2(t[..., 2, 0], t[..., 2, 1])
    square = t[..., 0, 2] * t[..., 0, 2] + t[..., 1, 2] * t[..., 1, 2]
    return stack((u, arctan2(np.sqrt(square), t[..., 2, 2]), w))
