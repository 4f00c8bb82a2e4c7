"""Strokes: hulls and springs."""

from __future__ import annotations

import numpy as np

from biella.blocks.multibody.drawing._strokes import hull, zigzag


def test_a_hull_and_a_spring() -> None:
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5], [0.5, 0.0]])
    assert {tuple(p) for p in hull(square).tolist()} == {(0, 0), (1, 0), (1, 1), (0, 1)}
    line = zigzag(np.zeros(2), np.array([100.0, 0.0]), 5.0)
    assert line[0].tolist() == [0, 0] and line[-1].tolist() == [100, 0]
    assert (np.diff(line[:, 0]) >= 0).all() and np.abs(line[:, 1]).max() == 5.0
