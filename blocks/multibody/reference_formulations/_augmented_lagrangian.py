"""Augmented Lagrangian, index 1 [O 2.97-2.102 corrected].

    K = M + Φ_qᵀ α Φ_q,   c = -γ + k_v Φ̇ + k_p Φ,   k_p = ω², k_v = 2 ε ω
    K q̈ = Q - Φ_qᵀ (α c + λ),   λ ← λ + α (Φ_q q̈ + c)

K is positive definite with redundant rows, at singular positions and with bodies without mass. One
constraint of effective mass m_e and singular value σ contracts by m_e / (m_e + α σ²): every α > 0
converges, a larger one faster. From λ = 0 the multipliers are those of least norm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
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
    alpha: float = 1e6,
    omega: float = 0.0,
    damping: float = 1.0,
    tolerance: float = 1e-12,
    iterations: int = 500,
    warm: bool = False,
) -> tuple[Array, Array]:
    """Return q̈ and λ.

    Parameters
    ----------
    model, t, q, v
        The state.
    memory
        Keeps ``lam`` for a warm start, and the ``history`` of q̈ over the iterations.
    alpha
        The penalty, a mass.
    omega, damping
        Of the stabilization, in 1/s and as a ratio; ω = 0 is the plain form, which drifts.
    tolerance, iterations
        EndStop where |Δq̈| ≤ tolerance max(1, |q̈|).
    warm
        Start from the last λ, which keeps what it had along redundant rows.
    """
    e = model.evaluate(t, q, v)
    c = -e.gamma + 2.0 * damping * omega * e.rate + omega**2 * e.phi
    factor = cho_factor(e.mass + alpha * e.jacobian.T @ e.jacobian)
    lam = memory["lam"] if warm and "lam" in memory else np.zeros(len(c))
    qdd: Array = np.zeros(len(q))
    history: list[Array] = []
    last = np.inf
    for _ in range(iterations):
        # The same iteration, written as a correction: K q̈ = … itself would lose the digits of q̈
        # that a large α takes.
        push = e.jacobian.T @ (lam + alpha * (e.jacobian @ qdd + c))
        change = cho_solve(factor, e.force - e.mass @ qdd - push)
        qdd = qdd + change
        history.append(qdd)
        lam = lam + alpha * (e.jacobian @ qdd + c)
        size = float(np.linalg.norm(change))
        # Below the tolerance, or no longer shrinking: round-off is reached.
        if not tolerance * max(1.0, float(np.linalg.norm(qdd))) < size < last:
            break
        last = size
    memory["lam"], memory["history"] = lam, history
    return qdd, lam
