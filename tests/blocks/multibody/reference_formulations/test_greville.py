"""The pseudoinverse by Greville, and elimination with full pivoting."""

from __future__ import annotations

import numpy as np
import pytest

from biella.blocks.multibody.reference_formulations._greville import pseudoinverse
from biella.blocks.multibody.reference_formulations._partitioning import full_pivots


def test_greville_and_full_pivots() -> None:
    rng = np.random.default_rng(0)
    for shape, rank in (((4, 7), 4), ((7, 4), 4), ((6, 7), 3), ((7, 6), 3)):
        matrix = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
        assert pseudoinverse(matrix) == pytest.approx(
            np.linalg.pinv(matrix, rcond=1e-10), abs=1e-10
        )
        rows, columns = full_pivots(matrix)
        assert len(rows) == rank
        assert np.linalg.matrix_rank(matrix[np.ix_(rows, columns[:rank])]) == rank
