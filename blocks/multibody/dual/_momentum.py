"""Momentum of a rigid body as a dual vector, and Newton's and Euler's equations [V 5.87, 5.89].

    Ĥ_C = m v_C - S̃ω + ε (S̃ v_C + J_C ω),   F̂_C = dĤ_C/dt|_body axes + V̂_C × Ĥ_C

C is a pole that is fixed in the body, S = m CG, J_C = J_G + m (R²I - RRᵀ), R = CG.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ....errors import DiagramError
from ..system._rotations import Array
from ._numbers import Dual, Dualish, as_dual
from ._screws import cross


@dataclass(frozen=True, slots=True, eq=False)
class RigidBody:
    """Mass, center of mass and inertia, in axes of the body.

    Parameters
    ----------
    mass
        In kg.
    center
        Center of mass from the pole, in m.
    inertia
        About the center of mass, in kg m²: three principal moments or a tensor, with
        J_xy = -∫ xy dm.
    """

    mass: float
    center: npt.ArrayLike
    inertia: npt.ArrayLike

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mass) and self.mass >= 0):
            raise DiagramError(f"the mass of a body is at least 0, got {self.mass!r}.")
        if np.shape(self.center) != (3,) or np.shape(self.inertia) not in ((3,), (3, 3)):
            raise DiagramError(
                "a body has a center with three components, and three moments of inertia or a "
                f"tensor; got shapes {np.shape(self.center)} and {np.shape(self.inertia)}."
            )

    def momentum(self, twist: Dualish) -> Dual:
        """Return Ĥ_C in kg m/s and kg m²/s for a twist ω + ε v_C in axes of the body."""
        v = as_dual(twist)
        s = self.mass * np.asarray(self.center, dtype=np.float64)
        return Dual(
            self.mass * v.dual - np.cross(s, v.real),
            np.cross(s, v.dual) + v.real @ self._inertia_at_pole().T,
        )

    def wrench(self, twist: Dualish, rate: Dualish) -> Dual:
        """Return F̂_C = dĤ_C/dt + V̂_C × Ĥ_C, what all forces on the body amount to.

        `rate` is the derivative of the components of the twist in axes of the body.
        """
        return self.momentum(rate) + cross(twist, self.momentum(twist))

    def _inertia_at_pole(self) -> Array:
        r = np.asarray(self.center, dtype=np.float64)
        tensor = np.asarray(self.inertia, dtype=np.float64)
        if tensor.ndim == 1:
            tensor = np.diag(tensor)
        moved: Array = tensor + self.mass * (r @ r * np.eye(3) - np.outer(r, r))
        return moved
