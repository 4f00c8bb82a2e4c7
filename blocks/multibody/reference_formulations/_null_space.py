"""Null space of the constraints [V 2.34-2.55], by SVD or by QR.

q̈ = S γ + V p̈ with Φ_q V = 0 and Φ_q S = I on independent rows; Vᵀ M V p̈ = Vᵀ (Q - M S γ).
SVD: V are the right singular vectors of σ = 0, S = Φ_q⁺. QR: Φ_qᵀ P = [Q1 Q2] [R1; 0], V = Q2,
S = Q1 R1⁻ᵀ. The local coordinates p have no physical meaning: q is integrated.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.linalg import qr, solve_triangular

from ..equations._model import Model
from ..system._rotations import Array

RANK = 1e-8
"""Singular values or pivots below this part of the largest one count as 0."""


def accelerations(
    model: Model,
    t: float,
    q: Array,
    v: Array,
    memory: dict[str, Any],
    *,
    by: Literal["svd", "qr"] = "svd",
) -> tuple[Array, Array]:
    """Return q̈ and λ: that of least norm by SVD, 0 on the rows that QR drops."""
    e = model.evaluate(t, q, v)
    if by == "svd":
        left, sigma, right = np.linalg.svd(e.jacobian)
        rank = int((sigma > RANK * sigma.max(initial=0.0)).sum())
        kernel = right[rank:].T
        inverse = (right[:rank].T / sigma[:rank]) @ left[:, :rank].T
        rows = np.arange(len(e.gamma))
    else:
        full, triangle, pivots = qr(e.jacobian.T, pivoting=True)
        size = np.abs(np.diag(triangle))
        rank = int((size > RANK * size.max(initial=0.0)).sum())
        rows = pivots[:rank]
        kernel = full[:, rank:]
        inverse = solve_triangular(triangle[:rank, :rank], full[:, :rank].T).T
    particular = inverse @ e.gamma[rows]
    reduced = kernel.T @ e.mass @ kernel
    free = np.linalg.solve(reduced, kernel.T @ (e.force - e.mass @ particular))
    qdd: Array = particular + kernel @ free
    lam = np.zeros(len(e.gamma))
    lam[rows] = inverse.T @ (e.force - e.mass @ qdd)
    return qdd, lam
