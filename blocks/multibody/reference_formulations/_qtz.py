"""QTZ for redundant constraints [V chapter 3]: an orthogonal decomposition, reused and updated.

    Φ_qᵀ P = Q [[T, 0], [0, 0]] Z,   Q = [Q1 Q2],   Φ_q Q2 = 0

The first r rows of Z Pᵀ (·) are independent: Φ'', γ''. Between decompositions Q1, Q2, P, Z stay:

    Q̂1 = Q1 (Φ'' Q1)⁻¹,   Q̂2 = Q2 - Q̂1 Φ'' Q2      so that Φ'' Q̂1 = I and Φ'' Q̂2 = 0
    Q̂2ᵀ M Q̂2 z̈ = Q̂2ᵀ (Q - M Q̂1 γ''),   q̈ = Q̂1 γ'' + Q̂2 z̈,   λ = P Zᵀ [Q̂1ᵀ (Q - M q̈); 0]

Either q̈ is integrated, or (q, ż) with q̇ = Q̂1 b'' + Q̂2 ż, b'' = -Φ_t'': the form with independent
accelerations, of 2n - r states, whose velocities satisfy the constraints exactly [V 3.42].

γ'' and not the a'' of [V 3.46], which has lost its quadratic terms. A new decomposition is made
where Φ'' Q1 is ill-conditioned, or żᵀż / q̇ᵀq̇, with ż = Q2ᵀ q̇, falls below a threshold [V 3.49].
λ has the least norm right after a decomposition; with the reused Z it slowly drifts from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lu_factor, lu_solve, qr

from ....errors import FormulationError
from ..equations._model import Equations, Model
from ..system._rotations import Array


@dataclass(frozen=True, slots=True, eq=False)
class Decomposition:
    """Q1, Q2 and the first r rows of Z Pᵀ, which pick independent combinations of rows."""

    q1: Array
    q2: Array
    pick: Array
    rest: Array

    @property
    def rank(self) -> int:
        """Return r."""
        return int(self.q1.shape[1])


def decompose(jacobian: Array, tolerance: float = 1e-10) -> Decomposition:
    """Decompose Φ_q; pivots below `tolerance` of the largest one count as 0."""
    q, triangle, pivots = qr(jacobian.T, pivoting=True)
    size = np.abs(np.diag(triangle))
    rank = int((size > tolerance * size.max(initial=0.0)).sum())
    # [R11 R12] = [T 0] Z, from the QR decomposition of its transpose.
    z = qr(triangle[:rank].T)[0].T if rank else np.eye(len(pivots))
    mixed = np.zeros_like(z)
    mixed[:, pivots] = z
    return Decomposition(q[:, :rank], q[:, rank:], mixed[:rank], mixed[rank:])


def _check_consistent(kept: Decomposition, e: Equations, tolerance: float) -> None:
    """Refuse where what redundant rows demand contradicts the others."""
    for name, values in (("velocity", e.phi_t), ("acceleration", e.gamma)):
        left = np.abs(kept.rest @ values).max(initial=0.0)
        if left > tolerance * max(1.0, np.abs(values).max(initial=0.0)):
            raise FormulationError(
                f"redundant constraints contradict each other in {name} by {left:.3g}: close the "
                f"positions first, or raise the rank tolerance for inexact geometry."
            )


def accelerations(
    model: Model,
    t: float,
    q: Array,
    v: Array,
    memory: dict[str, Any],
    *,
    tolerance: float = 1e-8,
    condition: float = 1e3,
    kept_motion: float = 0.999,
    consistency: float = 1e-6,
) -> tuple[Array, Array]:
    """Return q̈ and λ.

    Parameters
    ----------
    model, t, q, v
        The state.
    memory
        Keeps the decomposition and counts them in ``decompositions``.
    tolerance
        Of the rank. [V] uses 1e-10; where Φ has drifted by ε, redundant rows differ by about ε.
    condition
        Of Φ'' Q1, relative to that right after a decomposition.
    kept_motion
        The part of |q̇|² along Q2 below which a new decomposition is made.
    consistency
        How far redundant rows may contradict each other.
    """
    e = model.evaluate(t, q, v)
    kept = _decomposition(e, v, memory, tolerance, condition, kept_motion, consistency)
    particular, q1, q2, free = _split(kept, e)
    qdd: Array = particular + q2 @ free
    return qdd, kept.pick.T @ (q1.T @ (e.force - e.mass @ qdd))


def independent_step(
    model: Model,
    t: float,
    q: Array,
    v: Array,
    memory: dict[str, Any],
    h: float,
    *,
    tolerance: float = 1e-8,
    condition: float = 1e3,
    kept_motion: float = 0.999,
    consistency: float = 1e-6,
) -> tuple[Array, Array]:
    """Return q and v at t + h: a step of RK4 on (q, ż) with the decomposition at its start.

    Parameters are those of `accelerations`, and the step h in s.
    """
    start = model.evaluate(t, q, v)
    kept = _decomposition(start, v, memory, tolerance, condition, kept_motion, consistency)

    def rates(at: float, q: Array, z: Array) -> tuple[Array, Array]:
        v = velocity(at, q, z)
        return v, _split(kept, model.evaluate(at, q, v))[3]

    def velocity(at: float, q: Array, z: Array) -> Array:
        e = model.evaluate(at, q, np.zeros_like(q))
        _, q1, q2, _ = _split(kept, e)
        return q2 @ z - q1 @ (kept.pick @ e.phi_t)

    z = kept.q2.T @ v
    v1, a1 = rates(t, q, z)
    v2, a2 = rates(t + 0.5 * h, q + 0.5 * h * v1, z + 0.5 * h * a1)
    v3, a3 = rates(t + 0.5 * h, q + 0.5 * h * v2, z + 0.5 * h * a2)
    v4, a4 = rates(t + h, q + h * v3, z + h * a3)
    q = q + h / 6.0 * (v1 + 2.0 * v2 + 2.0 * v3 + v4)
    z = z + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
    return q, velocity(t + h, q, z)


def _decomposition(
    e: Equations,
    v: Array,
    memory: dict[str, Any],
    tolerance: float,
    condition: float,
    kept_motion: float,
    consistency: float,
) -> Decomposition:
    """Return the kept decomposition, or a new one where it is due."""
    kept: Decomposition | None = memory.get("decomposition")
    square = float(v @ v)
    if kept is not None and square > 1e-12:
        along = kept.q2.T @ v
        # Prescribed motion is not along Q2, so that the test is for constraints without time.
        if not e.phi_t.any() and float(along @ along) < kept_motion * square:
            kept = None
    if kept is not None:
        core = kept.pick @ e.jacobian @ kept.q1
        if _condition(core) > condition * memory["reference"]:
            kept = None
    if kept is None:
        kept = decompose(e.jacobian, tolerance)
        memory["decomposition"] = kept
        memory["decompositions"] = memory.get("decompositions", 0) + 1
        _check_consistent(kept, e, consistency)
        memory["reference"] = _condition(kept.pick @ e.jacobian @ kept.q1)
    return kept


def _split(kept: Decomposition, e: Equations) -> tuple[Array, Array, Array, Array]:
    """Return Q̂1 γ'', Q̂1, Q̂2 and z̈."""
    rows = kept.pick @ e.jacobian
    factor = lu_factor((rows @ kept.q1).T)
    q1 = lu_solve(factor, kept.q1.T).T
    q2 = kept.q2 - q1 @ (rows @ kept.q2)
    particular = q1 @ (kept.pick @ e.gamma)
    reduced = q2.T @ e.mass @ q2
    free = np.linalg.solve(reduced, q2.T @ (e.force - e.mass @ particular))
    return particular, q1, q2, free


def _condition(matrix: Array) -> float:
    return float(np.linalg.cond(matrix)) if matrix.size else 1.0
