"""Penalty [O 2.86-2.88]: constraints as stiff springs, dampers and masses α.

    (M + Φ_qᵀ α Φ_q) q̈ = Q - Φ_qᵀ α (-γ + 2 ξ ω Φ̇ + ω² Φ),   λ ≈ α (Φ̈ + 2 ξ ω Φ̇ + ω² Φ)

A large α is ill-conditioned, a moderate one leaves a violation of the order 1/α. Redundant rows do
no harm.
"""

from __future__ import annotations

from typing import Any

from scipy.linalg import cho_factor, cho_solve

from ..equations._model import Model
from ..system._rotations import Array


def accelerations(
    model: Model,
    t: float,
    q: Array,
    v: Array,
    memory: dict[str, Any],
    *,
    alpha: float = 1e7,
    omega: float = 10.0,
    damping: float = 1.0,
) -> tuple[Array, Array]:
    """Return q̈ and λ; α is a mass, ω in 1/s, damping is ξ."""
    e = model.evaluate(t, q, v)
    c = -e.gamma + 2.0 * damping * omega * e.rate + omega**2 * e.phi
    factor = cho_factor(e.mass + alpha * e.jacobian.T @ e.jacobian)
    qdd: Array = cho_solve(factor, e.force - alpha * e.jacobian.T @ c)
    return qdd, alpha * (e.jacobian @ qdd + c)
