"""A pose at rest, seen along the motions that its joints leave.

V is a basis of the motions that joints and drivers allow, Φ_u V = 0, at a fixed time. In
δu = V ṗ, with λ the multipliers of that pose,

    M_r = Vᵀ M V,   C_r = -Vᵀ ∂Q/∂u V,   K_r = -Vᵀ ∂(Q - Φ_uᵀ λ)/∂q V
    M_r p̈ + C_r ṗ + K_r p = r,   r = Vᵀ Q

where r is 0 in equilibrium, and the term with λ is the stiffness that loaded joints have because
their axes turn with the bodies. Derivatives are central differences of step 1e-5 along V.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..system._rotations import Array
from ._manifold import Manifold, least_squares, split
from ._sharing import share

_DIFFERENCE = 1e-5
STILL = 1e-6
"""Eigenvalues below this part of the largest one are rounding, and count as 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """Reduced quantities of one pose: V, λ, r, M_r, the largest single force and ker Φ_uᵀ."""

    basis: Array
    lam: Array
    residual: Array
    mass: Array
    largest: float
    null: Array


def reduce_pose(model: Manifold, t: float, q: Array) -> Reduced:
    """Return V, λ, r and M_r of a pose; redundant joints share as in `sharing`."""
    e = model.equations(t, q, np.zeros(model.size))
    _, basis, null = split(e.jacobian)
    return Reduced(
        basis,
        share(model, least_squares(e.jacobian.T, e.force), null),
        basis.T @ e.force,
        basis.T @ e.mass @ basis,
        float(np.abs(e.force).max(initial=0.0)),
        null,
    )


def compute_stiffness(model: Manifold, t: float, q: Array, basis: Array, lam: Array) -> Array:
    """Return K_r."""

    def net(at: Array) -> Array:
        e = model.equations(t, at, np.zeros(model.size))
        return e.force - e.jacobian.T @ lam

    columns = []
    for direction in basis.T:
        h = _DIFFERENCE / max(1e-12, float(np.abs(direction).max()))
        ahead, behind = model.move(q, h * direction), model.move(q, -h * direction)
        columns.append((net(behind) - net(ahead)) / (2.0 * h))
    size = basis.shape[1]
    return basis.T @ np.array(columns).T if size else np.zeros((0, 0))


def compute_damping(model: Manifold, t: float, q: Array, basis: Array) -> Array:
    """Return C_r."""
    columns = []
    for direction in basis.T:
        h = _DIFFERENCE / max(1e-12, float(np.abs(direction).max()))
        behind = model.equations(t, q, -h * direction).force
        ahead = model.equations(t, q, h * direction).force
        columns.append((behind - ahead) / (2.0 * h))
    size = basis.shape[1]
    return basis.T @ np.array(columns).T if size else np.zeros((0, 0))
