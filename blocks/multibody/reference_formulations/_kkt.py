"""Index 1 with Lagrange multipliers [V 2.2, O 2.73, P 3.58].

    [[M, Φ_qᵀ], [Φ_q, 0]] [q̈; λ] = [Q; γ]

The matrix is regular if Φ_q has full row rank and M is positive definite where Φ_q q̈ = 0. With
redundant rows it is singular, and this method raises an error. Drift of Φ and Φ̇ is unbounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack

from ....errors import FormulationError
from ..equations._model import Equations, Model
from ..system._rotations import Array

SINGULAR = 1e-15
"""Reciprocal condition of the scaled matrix below which it counts as singular."""


def solve(equations: Equations, gamma: Array, check: bool = True) -> tuple[Array, Array]:
    """Return q̈ and λ for a given right-hand side of the constraints.

    The rows are brought to the scale of M first, so that the condition means something.

    Raises
    ------
    FormulationError
        If the matrix is singular and `check` is set; else the numbers are what elimination gives.
    """
    jacobian = equations.jacobian
    n, m = equations.mass.shape[0], jacobian.shape[0]
    scale = float(np.abs(np.diag(equations.mass)).mean())
    matrix = np.zeros((n + m, n + m))
    matrix[:n, :n] = equations.mass
    matrix[n:, :n] = scale * jacobian
    matrix[:n, n:] = matrix[n:, :n].T
    right = np.concatenate([equations.force, scale * gamma])
    lu, pivots, info = lapack.dgetrf(matrix)
    if info == 0:
        condition = float(lapack.dgecon(lu, np.abs(matrix).sum(0).max())[0])
    if info or (check and condition < SINGULAR):
        raise FormulationError(
            "the matrix [[M, Φ_qᵀ], [Φ_q, 0]] is singular: constraints are redundant, or a body "
            "without inertia is loose. Use the augmented Lagrangian, a null space or QTZ."
        )
    solution = lapack.dgetrs(lu, pivots, right)[0]
    return solution[:n], scale * solution[n:]


def accelerations(
    model: Model, t: float, q: Array, v: Array, memory: dict[str, Any], *, check: bool = True
) -> tuple[Array, Array]:
    """Return q̈ and λ.

    Parameters
    ----------
    model, t, q, v
        The state.
    memory
        What a method keeps from step to step; nothing here.
    check
        Whether to reject a singular matrix.
    """
    equations = model.evaluate(t, q, v)
    return solve(equations, equations.gamma, check)
