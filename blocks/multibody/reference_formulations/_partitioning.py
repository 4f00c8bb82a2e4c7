"""Coordinate partitioning [V 2.9-2.17]: dependent u, independent v, by LU, Gauss-Jordan or QR.

    M̂ v̈ = F̂,   ü = Φ_u⁻¹ (γ - Φ_v v̈),   λ = Φ_u⁻ᵀ (F^u - M^uv v̈ - M^uu ü)

with M̂ = M^vv - M^vu H - Hᵀ (M^uv - M^uu H) and H = Φ_u⁻¹ Φ_v. The partition is retained until the
least singular value of Φ_u has halved. LU and Gauss-Jordan with full pivoting take the same rows
and coordinates and drop redundant rows, whose λ is then 0; Gauss-Jordan clears the rows above a
pivot too, which leaves Φ_u⁻¹. QR mixes rows, and its λ is that of least norm.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import lu_factor, lu_solve, qr

from ....errors import FormulationError
from ..equations._model import Model
from ..system._rotations import Array

Indices = npt.NDArray[np.intp]
By = Literal["lu", "gauss-jordan", "qr"]
Solver = Callable[..., Array]

RANK = 1e-8
"""Pivots below this part of the largest one count as 0."""

KEEP = 0.5
"""A new partition is made where the least singular value of Φ_u falls below this part of what it
was when u was chosen. Much less would be late: an independent coordinate near the end of its range,
such as cos ϑ near 1, leaves no solution for the others one step later."""


def full_pivots(matrix: Array, tolerance: float = RANK) -> tuple[Indices, Indices]:
    """Return the rows and columns that Gauss elimination with full pivoting takes, in order."""
    left = matrix.copy()
    rows, columns = np.arange(left.shape[0]), np.arange(left.shape[1])
    largest = float(np.abs(left).max(initial=0.0))
    rank = 0
    while rank < min(left.shape):
        below = np.abs(left[rank:, rank:])
        if below.max() <= tolerance * largest:
            break
        i, j = (rank + k for k in divmod(int(np.argmax(below)), below.shape[1]))
        left[[rank, i]], rows[[rank, i]] = left[[i, rank]], rows[[i, rank]]
        left[:, [rank, j]], columns[[rank, j]] = left[:, [j, rank]], columns[[j, rank]]
        factors = left[rank + 1 :, rank] / left[rank, rank]
        left[rank + 1 :, rank:] -= np.outer(factors, left[rank, rank:])
        rank += 1
    return rows[:rank], columns


def gauss_jordan(matrix: Array) -> Array:
    """Return the inverse of a square matrix by elimination with full pivots.

    Raises
    ------
    LinAlgError
        If a pivot is 0.
    """
    n = len(matrix)
    left, right = matrix.copy(), np.eye(n)
    order = np.arange(n)
    for k in range(n):
        i, j = (k + at for at in divmod(int(np.argmax(np.abs(left[k:, k:]))), n - k))
        for table in (left, right):
            table[[k, i]] = table[[i, k]]
        left[:, [k, j]], order[[k, j]] = left[:, [j, k]], order[[j, k]]
        pivot = left[k, k]
        if pivot == 0.0:
            raise np.linalg.LinAlgError("a pivot of the elimination is 0")
        factors = left[:, k] / pivot
        factors[k] = 0.0
        left -= np.outer(factors, left[k])
        right -= np.outer(factors, right[k])
        left[k], right[k] = left[k] / pivot, right[k] / pivot
    inverse = np.empty_like(right)
    inverse[order] = right
    return inverse


def _choose(jacobian: Array, by: str, memory: dict[str, Any]) -> None:
    if by != "qr":
        rows, columns = full_pivots(jacobian)
        mix: Array = np.eye(len(jacobian))[rows]
    else:
        left, right, columns = qr(jacobian, pivoting=True)
        size = np.abs(np.diag(right))
        rows = np.flatnonzero(size > RANK * size.max(initial=0.0))
        mix = left[:, : len(rows)].T
    rank = len(rows)
    memory["mix"], memory["u"], memory["v"] = mix, columns[:rank], np.sort(columns[rank:])
    memory.pop("least", None)
    memory["partitions"] = memory.get("partitions", 0) + 1


def partition(jacobian: Array, by: By, memory: dict[str, Any]) -> tuple[Array, Solver]:
    """Return the rows that mix Φ_q to Φ_u and Φ_v, and what solves Φ_u; choose u and v if due."""
    if "u" not in memory:
        _choose(jacobian, by, memory)
    mix, square, least = _reduce(jacobian, by, memory)
    if least < KEEP * memory.get("least", 0.0):
        _choose(jacobian, by, memory)
        mix, square, least = _reduce(jacobian, by, memory)
    memory.setdefault("least", least)
    if by == "gauss-jordan":
        inverse = gauss_jordan(square)
        return mix, lambda right, trans=0: (inverse.T if trans else inverse) @ right
    return mix, partial(lu_solve, lu_factor(square))


def _reduce(jacobian: Array, by: str, memory: dict[str, Any]) -> tuple[Array, Array, float]:
    """Return the rows that mix, Φ_u and its least singular value."""
    if by == "qr":
        memory["mix"] = qr(jacobian[:, memory["u"]], mode="economic")[0].T
    mix: Array = memory["mix"]
    square = mix @ jacobian[:, memory["u"]]
    least = float(np.linalg.svd(square, compute_uv=False)[-1]) if square.size else 1.0
    return mix, square, least


def accelerations(
    model: Model,
    t: float,
    q: Array,
    v: Array,
    memory: dict[str, Any],
    *,
    by: By = "lu",
) -> tuple[Array, Array]:
    """Return q̈ and λ; `memory` keeps the partition."""
    e = model.evaluate(t, q, v)
    mix, solve = partition(e.jacobian, by, memory)
    u, w = memory["u"], memory["v"]
    h = solve(mix @ e.jacobian[:, w])
    g = solve(mix @ e.gamma)
    mass, force = e.mass, e.force
    uu, uv, vu, vv = (mass[np.ix_(*pair)] for pair in ((u, u), (u, w), (w, u), (w, w)))
    reduced = vv - vu @ h - h.T @ (uv - uu @ h)
    right = force[w] - vu @ g - h.T @ (force[u] - uu @ g)
    qdd = np.zeros(len(q))
    qdd[w] = np.linalg.solve(reduced, right)
    qdd[u] = g - h @ qdd[w]
    lam = solve(force[u] - uv @ qdd[w] - uu @ qdd[u], trans=1)
    result: Array = mix.T @ lam
    return qdd, result


def correct(
    model: Model,
    t: float,
    q: Array,
    v: Array,
    memory: dict[str, Any],
    *,
    by: By = "lu",
    tolerance: float = 1e-12,
    iterations: int = 20,
) -> tuple[Array, Array]:
    """Return q and v with fixed independent coordinates and the dependent ones solved for.

    This is what makes the method: only v is integrated, u follows from Φ(u, v) = 0 by Newton.
    """
    new = q.copy()
    phi, jacobian = model.constraints(t, new)
    for _ in range(iterations):
        if np.abs(phi).max(initial=0.0) <= tolerance:
            break
        mix, solve = partition(jacobian, by, memory)
        new[memory["u"]] -= solve(mix @ phi)
        phi, jacobian = model.constraints(t, new)
        if not np.isfinite(phi).all():
            break
    if not np.abs(phi).max(initial=0.0) <= tolerance:
        raise FormulationError(
            f"dependent coordinates did not close: |Φ| = {np.abs(phi).max():.3g}."
        )
    e = model.evaluate(t, new, v)
    mix, solve = partition(e.jacobian, by, memory)
    u, w = memory["u"], memory["v"]
    rates = v.copy()
    rates[u] = -solve(mix @ (e.jacobian[:, w] @ v[w] + e.phi_t))
    return new, rates
