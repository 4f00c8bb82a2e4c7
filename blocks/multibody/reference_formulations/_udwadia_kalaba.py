"""Udwadia and Kalaba [V 2.57-2.86].

    q̈ = q̈_f + M^{-½} D⁺ (γ - Φ_q q̈_f),   q̈_f = M⁻¹ Q,   D = Φ_q M^{-½}
    λ = (D Dᵀ)⁺ (Φ_q q̈_f - γ) = (D⁺)ᵀ D⁺ (Φ_q q̈_f - γ)   [V 2.61 corrected]

With M = C Cᵀ (Cholesky) C⁻ᵀ serves as M^{-½}. Redundant rows do no harm, if the rank is judged
well.

M⁻¹ must exist. With Euler parameters it does not: 4 Gᵀ J G has p in its kernel, so the formula
breaks for every spatial body of 7 coordinates; natural coordinates break with thin rods. Two ways
out:

- ``form="regular"``: with B the base rows (p·p = 1, or U·U = 1 …) use M + κ Bᵀ B and Q + κ Bᵀ γ_B.
  As B q̈ = γ_B holds anyway, neither q̈ nor λ changes, for any κ > 0.
- ``form="general"``: q̈ = [(I - Φ_q⁺ Φ_q) M; Φ_q]⁺ [Q; γ], which needs only that M and Φ_q have no
  common kernel.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ....errors import FormulationError
from ..equations._model import Model
from ..system._rotations import Array
from ._pseudoinverses import PSEUDOINVERSES

RANK = 1e-8
"""Singular values below this part of the largest one count as 0."""


def _inverse(matrix: Array, by: str) -> Array:
    if by in PSEUDOINVERSES:
        return PSEUDOINVERSES[by](matrix)
    return np.asarray(np.linalg.pinv(matrix, rcond=RANK), dtype=np.float64)


def accelerations(
    model: Model,
    t: float,
    q: Array,
    v: Array,
    memory: dict[str, Any],
    *,
    by: Literal["svd", "greville", "varga", "householder", "gram-schmidt"] = "svd",
    form: Literal["plain", "regular", "general"] = "regular",
) -> tuple[Array, Array]:
    """Return q̈ and λ of least norm in the measure of M.

    Raises
    ------
    FormulationError
        If M is singular in the plain form.
    """
    e = model.evaluate(t, q, v)
    mass, force, jacobian = e.mass, e.force, e.jacobian
    if form == "general":
        inverse = _inverse(jacobian, by)
        across = np.eye(len(q)) - inverse @ jacobian
        stacked = np.vstack([across @ mass, jacobian])
        qdd = _inverse(stacked, by) @ np.concatenate([across @ force, e.gamma])
        return qdd, inverse.T @ (force - mass @ qdd)
    if form == "regular":
        base = jacobian[: model.base_rows]
        kappa = float(np.abs(np.diag(mass)).mean())
        mass = mass + kappa * base.T @ base
        force = force + kappa * base.T @ e.gamma[: model.base_rows]
    try:
        root = cholesky(mass, lower=True)
        # Rounding may leave a pivot of a singular M above 0.
        if np.diag(root).min() < 1e-7 * np.diag(root).max():
            raise np.linalg.LinAlgError
    except np.linalg.LinAlgError:
        raise FormulationError(
            'the mass matrix is singular, and M⁻¹ does not exist: use form="regular".'
        ) from None
    inner = solve_triangular(root, force, lower=True)
    d = solve_triangular(root, jacobian.T, lower=True).T
    inverse = _inverse(d, by)
    push = inverse @ (e.gamma - d @ inner)
    qdd = solve_triangular(root, inner + push, lower=True, trans=1)
    return qdd, -inverse.T @ push
