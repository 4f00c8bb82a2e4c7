"""Solids on paper: circles, cylinders and arrows as they are seen."""

from __future__ import annotations

import numpy as np
import pytest

from biella.blocks.multibody.drawing._paper import Paper
from biella.blocks.multibody.drawing._view import View

X, Y, Z = np.eye(3)
PAPER = Paper(View(X, Y, True), scale=100.0, size=1.0)


def test_points_are_scaled() -> None:
    assert PAPER.at((0.5, -0.25, 7.0)) == pytest.approx([50.0, -25.0])


@pytest.mark.parametrize("angle", [0.0, 0.4, np.pi / 2])
def test_a_circle_is_an_ellipse_with_the_cosine_of_its_slant(angle: float) -> None:
    """The axis is inclined from the eye by `angle`, in the y-z plane: the width in x stays."""
    axis = np.cos(angle) * Z + np.sin(angle) * Y
    ring = PAPER.ring(np.zeros(2), axis, 10.0, np.linspace(0.0, 2.0 * np.pi, 721))
    assert np.ptp(ring, axis=0) == pytest.approx([20.0, 20.0 * np.cos(angle)], abs=1e-3)


def test_a_ring_turns_about_its_axis_from_its_lowest_point() -> None:
    quarter = PAPER.ring(np.zeros(2), Z, 10.0, np.array([0.0, np.pi / 2]))
    assert quarter == pytest.approx(np.array([[0.0, -10.0], [10.0, 0.0]]), abs=1e-12)


def test_a_cylinder_is_a_circle_from_its_end_and_has_a_near_end_otherwise() -> None:
    assert len(PAPER.barrel(np.zeros(2), Z, 30.0, 5.0)) == 1
    outline, end = PAPER.barrel(np.zeros(2), X, 30.0, 5.0)
    assert np.ptp(outline.points, axis=0) == pytest.approx([30.0, 10.0])
    assert np.ptp(end.points, axis=0) == pytest.approx([0.0, 10.0], abs=1e-12)


def test_a_sheet_and_a_spiral_have_their_sizes() -> None:
    assert np.ptp(PAPER.sheet(np.zeros(2), X, Y, 4.0), axis=0) == pytest.approx([8.0, 8.0])
    reach = np.linalg.norm(PAPER.spiral(np.zeros(2), Z, 2.0, 6.0), axis=1)
    assert reach[[0, -1]] == pytest.approx([2.0, 6.0])
    assert (np.diff(reach) > 0.0).all()
