"""Counts and initial states of the ready mechanisms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from biella.blocks.multibody import System, mechanisms

from .pose import Pose, jacobian, rank


@pytest.mark.parametrize(
    ("make", "rows", "independent", "columns", "closure"),
    [
        (lambda: mechanisms.slider_crank("revolute"), 19, 17, 18, 2e-8),
        (lambda: mechanisms.slider_crank("spherical", drive="as listed"), 13, 13, 18, 2e-8),
        (lambda: mechanisms.slider_crank(planar=True), 8, 8, 9, 2e-8),
        (mechanisms.mcpherson, 26, 26, 30, 1e-9),
        (mechanisms.five_bar, 30, 23, 24, 1e-9),
        (mechanisms.cardan, 30, 17, 18, 1e-15),
        (mechanisms.four_bar, 8, 8, 9, 1e-15),
        (lambda: mechanisms.four_bar(5), 32, 32, 33, 1e-15),
        (lambda: mechanisms.four_bar(planar=False), 20, 17, 18, 1e-15),
        (lambda: mechanisms.four_bar(3, planar=False), 50, 41, 42, 1e-15),
        (mechanisms.pendulum_on_cart, 4, 4, 6, 1e-15),
        (mechanisms.rotor, 1, 1, 6, 0.0),
    ],
)
def test_counts(
    make: Callable[[], System], rows: int, independent: int, columns: int, closure: float
) -> None:
    """Rows and ranks are the published ones; the data close to the digits they are printed with."""
    system = make()
    system.validate()
    matrix = jacobian(system)
    assert matrix.shape == (rows, columns)
    assert rank(matrix) == independent
    assert np.abs(Pose(system).rows(system)).max() <= closure
    assert system.mobility == columns - rows - len(system.drivers)


def test_initial_speeds_of_the_four_bars_are_consistent() -> None:
    """Velocities of A02 satisfy all constraints at velocity level, so that energy starts exact."""
    for planar in (True, False):
        s = mechanisms.four_bar(3, planar=planar)
        speeds = [
            np.concatenate([body.velocity, body.angular_velocity])[
                [0, 1, 5] if planar else slice(6)
            ]
            for body in s.bodies
        ]
        assert np.abs(jacobian(s) @ np.concatenate(speeds)).max() < 1e-9  # as exact as differences
