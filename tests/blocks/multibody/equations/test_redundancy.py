"""Redundant constraints, and reactions that are not unique."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from biella.blocks.multibody import System, mechanisms
from biella.blocks.multibody.reference_formulations import (
    make_model,
    report_redundancy,
)

from ..reference_formulations.formulation_cases import state


@pytest.mark.parametrize(
    ("make", "coordinates", "freedom", "redundant", "mobility"),
    [
        (mechanisms.slider_crank, "natural", 1, 2, -1),
        (mechanisms.five_bar, "euler", 1, 7, -6),
        (mechanisms.cardan, "euler", 0, 13, -13),
        (mechanisms.mcpherson, "natural", 4, 0, 4),
        (mechanisms.pendulum_on_cart, "natural", 2, 0, 2),
    ],
)
def test_redundancy_report(
    make: Callable[[], System], coordinates: Any, freedom: int, redundant: int, mobility: int
) -> None:
    """Published counts: five-bar 34 equations with 7 redundant, Cardan 13 (one driver here)."""
    model = make_model(make(), coordinates)
    q, v = state(model)
    report = report_redundancy(model, 0.0, q, v)
    assert (report.freedom, report.redundant, report.mobility) == (freedom, redundant, mobility)
    assert report.gap[0] > 1e6 * report.gap[1]
    assert report.consistent
    assert len(report.dependent) == redundant
    assert bool(report.undetermined) == bool(redundant)
    assert "drive" not in report.dependent
    e = model.evaluate(0.0, q, v)
    names = set(report.dependent)
    kept = [k for k, name in enumerate(model.row_names) if name not in names]
    assert np.linalg.matrix_rank(e.jacobian[kept], tol=1e-8) == report.rank == len(kept)
    # λ is unique exactly where dropping the row lowers the rank.
    for k, unique in enumerate(report.unique_rows):
        rest = np.delete(e.jacobian, k, axis=0)
        assert (np.linalg.matrix_rank(rest, tol=1e-8) < report.rank) == unique
    assert f"{redundant} redundant" in str(report)
