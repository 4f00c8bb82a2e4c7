"""Greville's pseudoinverse, row by row [V 2.86 corrected]."""

from __future__ import annotations

import numpy as np

from ..system._rotations import Array


def pseudoinverse(matrix: Array, tolerance: float = 1e-8) -> Array:
    """Return A⁺.

    Each row a adds d = a A⁺ and c = a - d A; b = c / (c·c), or b = d (A⁺)ᵀ / (1 + d·d) if the row
    depends on those above, |c| ≤ tolerance |a|; then A⁺ ← [A⁺ - bᵀ d, bᵀ]. Rows at the
    round-off level of the longest row are treated as dependent too.
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
