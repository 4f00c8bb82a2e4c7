"""Pseudoinverses A⁺ by four methods [V 2.82-2.86]: their difficulty is the rank.

Pivots and rows below `tolerance` of the largest count as 0, so that all methods accept redundant
rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import qr, solve_triangular

from ..system._rotations import Array
from ._partitioning import Indices


def greville(matrix: Array, tolerance: float = 1e-8) -> Array:
    """Return A⁺, row by row [V 2.86 corrected].

    Each row a adds d = a A⁺ and c = a - d A; b = c / (c·c), or b = d (A⁺)ᵀ / (1 + d·d) if the row
    depends on those above, |c| ≤ tolerance |a|; then A⁺ ← [A⁺ - bᵀ d, bᵀ]. Rows at the
    round-off level of the longest row are treated as dependent too. Where a row is nearly
    dependent, |c| = δ |a|, rounding errors grow as 1/δ²; those of the other methods as 1/δ.
    """
    rows, columns = matrix.shape
    noise = 1e-13 * float(np.linalg.norm(matrix, axis=1).max(initial=0.0))
    inverse = np.zeros((columns, rows))
    for k, a in enumerate(matrix):
        above = inverse[:, :k]
        d = a @ above
        c = a - d @ matrix[:k]
        if np.linalg.norm(c) > max(noise, tolerance * float(np.linalg.norm(a))):
            b = c / (c @ c)
        else:
            b = above @ d / (1.0 + d @ d)
        inverse[:, :k] = above - np.outer(b, d)
        inverse[:, k] = b
    return inverse


def varga(matrix: Array, tolerance: float = 1e-8) -> Array:
    """Return A⁺ by two QR decompositions [V 2.85], the first one with pivots.

    A P = U [G1; 0], G1ᵀ = Vᵀ [G2ᵀ; 0], A⁺ = P Vᵀ [G2⁻¹ 0; 0 0] Uᵀ.
    """
    u, triangle, pivots = qr(matrix, pivoting=True)
    size = np.abs(np.diag(triangle))
    rank = int((size > tolerance * size.max(initial=0.0)).sum())
    inverse = np.zeros(matrix.T.shape)
    if rank:
        v, g2 = qr(triangle[:rank].T, mode="economic")
        inverse[pivots] = v @ solve_triangular(g2, u[:, :rank].T, trans=1)
    return inverse


def householder(matrix: Array, tolerance: float = 1e-8) -> Array:
    """Return A⁺ as least squares by Householder's reflections with column pivots.

    Q A P = [R11 R12; 0 0]. Of all x = P [R11⁻¹ (Q b); 0] + N y, N = P [-R11⁻¹ R12; I], with the
    same residual the shortest one is taken, for every column b of the identity.
    """
    rows, columns = matrix.shape
    left, reflected, order = matrix.copy(), np.eye(rows), np.arange(columns)
    largest, rank = 0.0, 0
    for k in range(min(rows, columns)):
        length = np.linalg.norm(left[k:, k:], axis=0)
        j = k + int(np.argmax(length))
        largest = max(largest, float(length.max()))
        if length.max() <= tolerance * largest:
            break
        left[:, [k, j]], order[[k, j]] = left[:, [j, k]], order[[j, k]]
        v = left[k:, k].copy()
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        v /= np.linalg.norm(v)
        left[k:] -= 2.0 * np.outer(v, v @ left[k:])
        reflected[k:] -= 2.0 * np.outer(v, v @ reflected[k:])
        rank = k + 1
    inverse = np.zeros((columns, rows))
    if rank:
        triangle = left[:rank, :rank]
        basic = np.zeros((columns, rows))
        basic[order[:rank]] = solve_triangular(triangle, reflected[:rank])
        null = np.zeros((columns, columns - rank))
        null[order[:rank]] = -solve_triangular(triangle, left[:rank, rank:])
        null[order[rank:]] = np.eye(columns - rank)
        across = qr(null, mode="economic")[0] if rank < columns else null
        inverse = basic - across @ (across.T @ basic)
    return inverse


def gram_schmidt(matrix: Array, tolerance: float = 1e-8) -> Array:
    """Return A⁺ by modified Gram-Schmidt twice: A P = Q1 R, Rᵀ P' = Q2 L, A⁺ = P Q2 L⁻ᵀ P'ᵀ Q1ᵀ."""
    q1, triangle, order = _orthogonalize(matrix, tolerance)
    q2, lower, again = _orthogonalize(triangle.T, 0.0)
    inverse = np.zeros(matrix.T.shape)
    if len(triangle):
        inverse[order] = q2 @ solve_triangular(lower, q1.T[again], trans=1)
    return inverse


def _orthogonalize(matrix: Array, tolerance: float) -> tuple[Array, Array, Indices]:
    """Return Q, R and the order of columns with A P = Q R, each new column taken out at once."""
    left, order = matrix.copy(), np.arange(matrix.shape[1])
    most = min(matrix.shape)
    q, r = np.zeros((len(matrix), most)), np.zeros((most, matrix.shape[1]))
    largest, rank = 0.0, 0
    for k in range(most):
        length = np.linalg.norm(left[:, k:], axis=0)
        j = k + int(np.argmax(length))
        largest = max(largest, float(length.max()))
        if length.max() <= tolerance * largest:
            break
        for table in (left, r):
            table[:, [k, j]] = table[:, [j, k]]
        order[[k, j]] = order[[j, k]]
        for _ in range(2):  # once more: nearly dependent columns lose their angles at first
            part = q[:, :k].T @ left[:, k]
            left[:, k] -= q[:, :k] @ part
            r[:k, k] += part
        r[k, k] = np.linalg.norm(left[:, k])
        q[:, k] = left[:, k] / r[k, k]
        r[k, k + 1 :] = q[:, k] @ left[:, k + 1 :]
        left[:, k + 1 :] -= np.outer(q[:, k], r[k, k + 1 :])
        rank = k + 1
    return q[:, :rank], r[:rank], order


PSEUDOINVERSES: dict[str, Callable[[Array], Array]] = {
    "greville": greville,
    "varga": varga,
    "householder": householder,
    "gram-schmidt": gram_schmidt,
}
"""Every method by name, besides the singular value decomposition of numpy."""
