"""The augmented Lagrangian formulation."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from biella.blocks.multibody.reference_formulations import (
    METHODS,
    Equations,
    FormulationError,
)

Array = np.ndarray[Any, np.dtype[np.float64]]


class Bar:
    """Oldani's planar bar [O 2.5.5]: y - l sin ϑ, y + l sin ϑ and ϑ, of rank 2."""

    base_rows = 0

    def __init__(self, m: float = 1.5, force: tuple[float, float] = (3.0, 2.0)) -> None:
        self.m, self.force = m, force

    def constraints(self, t: float, q: Array) -> tuple[Array, Array]:
        y, angle, length = q[1], q[2], 0.4
        side = length * np.sin(angle)
        slope = length * np.cos(angle)
        jacobian = np.array([[0, 1, -slope], [0, 1, slope], [0, 0, 1.0]])
        return np.array([y - side, y + side, angle]), jacobian

    def evaluate(self, t: float, q: Array, v: Array, *, loads: bool = True) -> Equations:
        phi, jacobian = self.constraints(t, q)
        mass = np.diag([self.m, self.m, 0.1])
        zero = np.zeros(3)
        return Equations(
            mass, np.array([*self.force, 0.0]), phi, jacobian, zero, zero, jacobian @ v
        )


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0, 1e3, 1e5, 1e7])
def test_contraction_of_the_augmented_lagrangian(alpha: float) -> None:
    """Case (h): ÿ shrinks by m / (m + 2 α) for every α > 0, and the load is shared equally."""
    bar = Bar()
    memory: dict[str, Any] = {}
    method = METHODS["augmented lagrangian"]
    qdd, lam = method(bar, 0.0, np.zeros(3), np.zeros(3), memory, alpha=alpha)
    heights = [each[1] for each in memory["history"]]
    ratio = bar.m / (bar.m + 2.0 * alpha)
    assert heights[0] == pytest.approx(2.0 / (bar.m + 2.0 * alpha), rel=1e-12)
    # The corrections lose to round-off once ÿ is 1e-16 of where it began.
    for one, two in pairwise(heights):
        if abs(two) > 1e-10:
            assert two / one == pytest.approx(ratio, rel=1e-4)
    assert len(heights) >= 2
    assert heights[1] / heights[0] == pytest.approx(ratio, rel=1e-6)
    assert qdd == pytest.approx([2.0, 0.0, 0.0], abs=1e-10)
    assert lam == pytest.approx([1.0, 1.0, 0.0], abs=1e-8)
    with pytest.raises(FormulationError, match="singular"):
        METHODS["kkt"](bar, 0.0, np.zeros(3), np.zeros(3), {})
