"""Pseudoinverses against numpy's and each other, and elimination with full pivoting."""

from __future__ import annotations

import numpy as np
import pytest

from biella.blocks.multibody import mechanisms
from biella.blocks.multibody.reference_formulations import assemble, make_model
from biella.blocks.multibody.reference_formulations._partitioning import full_pivots
from biella.blocks.multibody.reference_formulations._pseudoinverses import PSEUDOINVERSES

SHAPES = (((4, 7), 4), ((7, 4), 4), ((6, 7), 3), ((7, 6), 3), ((5, 5), 5), ((3, 5), 1), ((1, 4), 1))


@pytest.mark.parametrize("name", PSEUDOINVERSES)
def test_every_method_gives_that_of_numpy(name: str) -> None:
    rng = np.random.default_rng(0)
    for shape, rank in SHAPES:
        matrix = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
        expected = np.linalg.pinv(matrix, rcond=1e-10)
        scale = np.abs(expected).max()
        assert PSEUDOINVERSES[name](matrix) == pytest.approx(expected, abs=1e-10 * scale)
        given = matrix.copy()
        PSEUDOINVERSES[name](given)
        np.testing.assert_array_equal(given, matrix)
    assert (PSEUDOINVERSES[name](np.zeros((3, 4))) == np.zeros((4, 3))).all()


@pytest.mark.parametrize("name", ["varga", "householder", "gram-schmidt"])
def test_moore_and_penrose_hold_for_nearly_dependent_rows(name: str) -> None:
    """Rows 1e-6 apart: A A⁺ A = A to the rounding of their condition, 1e-9.

    Greville's recursion loses the square of it.
    """
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(5, 8))
    matrix[4] = matrix[0] + 1e-6 * rng.normal(size=8)
    found = PSEUDOINVERSES[name](matrix)
    assert matrix @ found @ matrix == pytest.approx(matrix, abs=1e-8)
    assert pytest.approx(matrix @ found, abs=1e-8) == (matrix @ found).T
    assert pytest.approx(found @ matrix, abs=1e-8) == (found @ matrix).T


@pytest.mark.parametrize("name", PSEUDOINVERSES)
def test_the_five_bar_with_redundant_rows(name: str) -> None:
    """23 independent of 30 joint rows, in an exact pose."""
    model = make_model(mechanisms.five_bar(), "euler")
    _, jacobian = model.constraints(0.0, assemble(model))
    expected = np.linalg.pinv(jacobian, rcond=1e-8)
    assert PSEUDOINVERSES[name](jacobian) == pytest.approx(expected, abs=1e-9)


def test_full_pivots() -> None:
    rng = np.random.default_rng(0)
    for shape, rank in SHAPES:
        matrix = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
        rows, columns = full_pivots(matrix)
        assert len(rows) == rank
        assert np.linalg.matrix_rank(matrix[np.ix_(rows, columns[:rank])]) == rank
