"""The RCCC mechanism: one revolute and three cylindrical joints in a loop [V 6.1-6.25].

Axis z_i is that of joint i, x_i the common normal of z_{i-1} and z_i. Joint i connects link i-1 to
link i; link 4 is the ground. Frame 1 is fixed to the ground and frame i+1 to link i:

    T(i←i+1) = Rz(θ̂_i) Rx(α̂_i),   θ̂ = θ + ε s,   α̂ = α + ε a,   T(1←2) T(2←3) T(3←4) T(4←1) = I

Joint 1 is the revolute, so that s₁ is constant, and θ₁ is given. Link 3 is the output shaft; it
turns at -θ̇₄ about z₄ relative to the ground.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ....errors import DiagramError, FormulationError
from ..system._rotations import Array
from ._displacements import about_x, about_z
from ._numbers import Dual, Dualish, arctan2, as_dual, solve, stack
from ._screws import cross

Z = np.array([0.0, 0.0, 1.0])

_SINGULAR = 1e-9
"""sin θ3 below which velocities are not computed: they exceed 1e9 times that of the input."""


@dataclass(frozen=True, slots=True, eq=False)
class RCCCMotion:
    """Positions, velocities and accelerations of an RCCC mechanism; the last axis counts joints.

    Attributes
    ----------
    coordinates
        θ̂ = θ + ε s of joints 1 to 4, in rad and m.
    rates
        v̂ = θ̇ + ε ṡ.
    accelerations
        θ̈ + ε s̈.
    displacements
        T(i←i+1), i = 1 … 4, as an array of 3×3 matrices.
    axes
        Unit lines of z₁ … z₄ in frame 1.
    """

    coordinates: Dual
    rates: Dual
    accelerations: Dual
    displacements: Dual
    axes: Dual

    @property
    def residual(self) -> float:
        """Return the largest entry of T(1←2) T(2←3) T(3←4) T(4←1) - I."""
        t = self.displacements
        loop = t[..., 0, :, :] @ t[..., 1, :, :] @ t[..., 2, :, :] @ t[..., 3, :, :] - np.eye(3)
        return float(max(np.abs(loop.real).max(), np.abs(loop.dual).max()))


class RCCC:
    """A spatial four-bar of one revolute and three cylindrical joints.

    Parameters
    ----------
    twists
        α̂₁ … α̂₄ = α + ε a along the last axis: angle and distance from axis i to axis i+1 about
        and along their common normal, in rad and m. Leading axes are variants, for example the
        sets of a Monte Carlo study; they broadcast with those of the angles given to `motion`.
    offset
        s₁ of the revolute joint, in m.
    branch
        1 or -1: which of the two assemblies.

    Raises
    ------
    DiagramError
        If there are not four links, or `branch` is neither.
    """

    def __init__(self, twists: Dualish, *, offset: npt.ArrayLike = 0.0, branch: int = 1) -> None:
        self.twists = as_dual(twists)
        if self.twists.shape[-1:] != (4,):
            raise DiagramError(
                f"an RCCC mechanism has four links, got twists of shape {self.twists.shape}."
            )
        if branch not in (1, -1):
            raise DiagramError(f"`branch` is 1 or -1, got {branch!r}.")
        self.offset = np.asarray(offset, dtype=np.float64)
        self.branch = branch

    @classmethod
    def cardan(
        cls,
        angle: npt.ArrayLike,
        *,
        angle_errors: npt.ArrayLike = 0.0,
        length_errors: npt.ArrayLike = 0.0,
        branch: int = 1,
    ) -> RCCC:
        """Return a Cardan joint: α₁ = α₂ = α₃ = 90°, α₄ = `angle`, all a = 0, with errors.

        Parameters
        ----------
        angle
            α₄ in rad: the angle of the shafts, or its supplement, which is the same joint with the
            other sense of z₄.
        angle_errors, length_errors
            Added to α₁ … α₄ and to a₁ … a₄, in rad and m.
        branch
            As of the class.
        """
        ideal = np.full((*np.shape(angle), 4), 0.5 * np.pi)
        ideal[..., 3] = angle
        return cls(Dual(ideal + angle_errors, length_errors), branch=branch)

    def coordinates(self, angle: Dualish) -> Dual:
        """Return θ̂₁ … θ̂₄ for an angle θ₁ in rad, or a dual one that includes s₁.

        θ₂, θ₃ and θ₄ are in (-π, π].

        Raises
        ------
        FormulationError
            If the mechanism cannot be assembled, or is in a dead point.
        """
        t1 = as_dual(angle)
        if not isinstance(angle, Dual):
            t1 = Dual(t1.real, self.offset)
        a1, a2, a3, a4 = (self.twists[..., k] for k in range(4))
        s1, s2, s3, s4 = (np.sin(a) for a in (a1, a2, a3, a4))
        c1, c2, c3, c4 = (np.cos(a) for a in (a1, a2, a3, a4))
        st, ct = np.sin(t1), np.cos(t1)
        # D sin θ̂4 + E cos θ̂4 + F = 0 [V 6.11-6.14]
        d = s1 * s3 * st
        e = -s3 * (c1 * s4 + s1 * c4 * ct)
        f = -c2 + c3 * (c1 * c4 - s1 * s4 * ct)
        square = d * d + e * e - f * f
        if not np.all(square.real > 0):
            at = np.broadcast_to(t1.real, square.shape)[~(square.real > 0)].ravel()[0]
            raise FormulationError(
                f"the RCCC mechanism cannot be assembled at θ1 = {at:.6g} rad, or is in a dead "
                f"point there: D² + E² - F² = {square.real.min():.3g} must be positive [V 6.14]."
            )
        root = np.sqrt(square)
        # tan(θ̂4/2) = (±root - D) / (F - E) = (F + E) / (∓root - D): one of them may be 0/0, as at
        # θ1 = 90° of a Cardan joint.
        plus, minus = self.branch * root - d, -self.branch * root - d
        better = np.abs(plus.real) >= np.abs(minus.real)
        sine, cosine = (
            Dual(np.where(better, one.real, other.real), np.where(better, one.dual, other.dual))
            for one, other in ((plus, f + e), (f - e, minus))
        )
        t4 = arctan2(2.0 * sine * cosine, cosine * cosine - sine * sine)
        st4, ct4 = np.sin(t4), np.cos(t4)
        sin2 = (st * (c3 * s4 + s3 * c4 * ct4) + s3 * ct * st4) / s2
        cos2 = (c1 * c2 - c3 * c4 + s3 * s4 * ct4) / (s1 * s2)
        sin3 = (s1 * (st * ct4 + c4 * ct * st4) + c1 * s4 * st4) / s2
        cos3 = (s1 * s4 * ct + c2 * c3 - c1 * c4) / (s2 * s3)
        return stack((t1, arctan2(sin2, cos2), arctan2(sin3, cos3), t4))

    def motion(
        self, angle: Dualish, speed: npt.ArrayLike = 0.0, acceleration: npt.ArrayLike = 0.0
    ) -> RCCCMotion:
        """Return positions, velocities and accelerations for θ₁, θ̇₁ and θ̈₁; shapes broadcast.

        Σ v̂_i Ŝ_i = 0 and Σ v̂̇_i Ŝ_i + Σ_{i<j} v̂_i v̂_j Ŝ_i×Ŝ_j = 0, with the axes Ŝ_i; they agree
        with [V 6.24-6.26].

        Raises
        ------
        FormulationError
            If the mechanism cannot be assembled, or is in a singular pose.
        """
        coordinates = self.coordinates(angle)
        t = about_z(coordinates) @ about_x(self.twists)
        axes = [as_dual(Z)]
        to_ground: Dual = as_dual(np.eye(3))
        for k in range(3):
            to_ground = to_ground @ t[..., k, :, :]
            axes.append(to_ground[..., 2])
        if np.any(np.abs(np.sin(coordinates.real[..., 2])) < _SINGULAR):
            raise FormulationError(
                "the RCCC mechanism is in a singular pose, sin θ3 = 0: its output can move without "
                "its input."
            )
        lines = stack(axes[1:])
        first = Dual(speed)[..., None]
        later = solve(lines, (-first * axes[0])[..., None])[..., 0]
        rates = stack([first[..., 0], *(later[..., k] for k in range(3))])
        twist = rates[..., 0, None] * axes[0]
        bias: Dual = as_dual(np.zeros(3))
        for k in range(1, 4):
            along = rates[..., k, None] * axes[k]
            bias = bias + cross(twist, along)
            twist = twist + along
        right = -(Dual(acceleration)[..., None] * axes[0]) - bias
        last = solve(lines, right[..., None])[..., 0]
        accelerations = stack([Dual(acceleration), *(last[..., k] for k in range(3))])
        return RCCCMotion(coordinates, rates, accelerations, t, stack(axes, axis=-2))


def twists_of_links(motion: RCCCMotion) -> tuple[list[Dual], list[Dual]]:
    """Return twist and its rate of links 1 to 3 in frame i+1, with the pole C_{i+1}.

    V̂_i = Tᵀ (V̂_{i-1} + v̂_i z), and d/dt in axes of the link = Tᵀ (dV̂_{i-1}/dt + v̂̇_i z
    + V̂_{i-1} × v̂_i z).
    """
    twist, rate = as_dual(np.zeros(3)), as_dual(np.zeros(3))
    twists, rates = [], []
    for k in range(3):
        turn = motion.rates[..., k, None] * Z
        moved = rate + motion.accelerations[..., k, None] * Z + cross(twist, turn)
        twist, rate = twist + turn, moved
        back = motion.displacements[..., k, :, :].T
        twist, rate = (apply(back, vector) for vector in (twist, rate))
        twists.append(twist)
        rates.append(rate)
    return twists, rates


def apply(matrix: Dual, vector: Dual) -> Dual:
    """Return the product of dual matrices with dual vectors along the last axis."""
    return (matrix @ vector[..., None])[..., 0]


def real_matrix(matrix: Dual) -> Array:
    """Return the 6×6 matrix by which a dual 3×3 matrix acts on [real; dual] of a vector."""
    zero = np.zeros_like(matrix.real)
    top = np.concatenate([matrix.real, zero], axis=-1)
    bottom = np.concatenate([matrix.dual, matrix.real], axis=-1)
    return np.concatenate([top, bottom], axis=-2)
