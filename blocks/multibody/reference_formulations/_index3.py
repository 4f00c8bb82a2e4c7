"""Augmented Lagrangian, index 3, with a trapezoidal step [O 2.95-2.96].

    M q̈ + Φ_qᵀ (λ* + α Φ) = Q at the new position,   λ* ← λ* + α Φ

With v = 2/h (q - q_n) - v_n and q̈ = 4/h² (q - q_n) - 4/h v_n - q̈_n Newton's matrix is
M + h²/4 (Φ_qᵀ α Φ_q + K) + h/2 C, K = -∂Q/∂q, C = -∂Q/∂v. α sets the speed, not the limit. Φ̇ and
Φ̈ are not held by the step: v and q̈ are projected after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from ....errors import FormulationError
from ..equations._model import Model
from ..equations._projections import project_velocity
from ..system._rotations import Array
from ._augmented_lagrangian import accelerations


def _tangents(model: Model, t: float, q: Array, v: Array) -> tuple[Array, Array]:
    """Return K and C by central differences."""
    k, c = np.zeros((2, len(q), len(q)))
    for n in range(len(q)):
        move = np.zeros(len(q))
        move[n] = 1e-6
        ahead, behind = model.evaluate(t, q + move, v), model.evaluate(t, q - move, v)
        k[:, n] = (behind.force - ahead.force) / 2e-6
        ahead, behind = model.evaluate(t, q, v + move), model.evaluate(t, q, v - move)
        c[:, n] = (behind.force - ahead.force) / 2e-6
    return k, c


def step(
    model: Model,
    t: float,
    q: Array,
    v: Array,
    memory: dict[str, Any],
    h: float,
    *,
    alpha: float | None = None,
    tolerance: float = 1e-11,
    iterations: int = 30,
    stiff: bool = False,
) -> tuple[Array, Array]:
    """Return q and v at t + h.

    Parameters
    ----------
    model, t, q, v, h
        The state, and the step in s.
    memory
        Keeps ``lam`` and the accelerations at the end of the step.
    alpha
        The penalty, in N/m for a constraint in m; if not given, such that it adds 1e5 times the
        mean mass to Newton's matrix, which takes two or three iterations.
    tolerance
        Of |Δq| and |Φ|.
    stiff
        Whether the forces enter Newton's matrix; by differences, once a step.

    Raises
    ------
    FormulationError
        If Newton does not converge.
    """
    if "qdd" not in memory:
        memory["qdd"], _ = accelerations(model, t, q, v, {})
        memory["lam"] = np.zeros(len(model.constraints(t, q)[0]))
    qdd, lam = memory["qdd"], memory["lam"]
    new = q + h * v + 0.5 * h * h * qdd
    extra: Array | float = 0.0
    if stiff:
        k, c = _tangents(model, t, q, v)
        extra = 0.25 * h * h * k + 0.5 * h * c
    if alpha is None:
        mean = float(np.diag(model.evaluate(t, q, v).mass).mean())
        alpha = 4e5 / h**2 * mean
    for _ in range(iterations):
        speed = 2.0 / h * (new - q) - v
        bend = 4.0 / h**2 * (new - q) - 4.0 / h * v - qdd
        e = model.evaluate(t + h, new, speed)
        push = e.jacobian.T @ (lam + alpha * e.phi)
        residual = 0.25 * h * h * (e.mass @ bend + push - e.force)
        matrix = e.mass + extra + 0.25 * h * h * alpha * e.jacobian.T @ e.jacobian
        change = -lu_solve(lu_factor(matrix), residual)
        new = new + change
        if not np.isfinite(new).all():
            break
        phi, _ = model.constraints(t + h, new)
        lam = lam + alpha * phi
        if max(np.abs(change).max(), np.abs(phi).max(initial=0.0)) <= tolerance:
            break
    else:
        new = new * np.nan
    if not np.isfinite(new).all():
        raise FormulationError(f"Newton did not converge in the step from t = {t:g} s.")
    speed = project_velocity(model, t + h, new, 2.0 / h * (new - q) - v)
    memory["lam"] = lam
    memory["qdd"], _ = accelerations(model, t + h, new, speed, {})
    return new, speed
