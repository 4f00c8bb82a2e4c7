"""Sparse factors of the Jacobian, against dense ones."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram
from biella.blocks import Expression, Integrator
from biella.scheduler.engine._library import contract

pytestmark = pytest.mark.engine


def test_a_grid_is_solved_as_with_dense_factors():
    """x' = A x on 8 by 8 points with random weights: one step is (1 - h A)⁻¹ x(0).

    With the exact Jacobian one iteration leads there, and a second one confirms it.
    """
    size, h = 8, 0.2
    rng = np.random.default_rng(3)
    n = size * size
    a = np.zeros((n, n))
    for k in range(n):
        row, column = divmod(k, size)
        near = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
        for i, j in near:
            if 0 <= i < size and 0 <= j < size:
                a[k, i * size + j] = rng.uniform(1.0, 9.0)
        a[k, k] = -a[k].sum() - 1.0
    start = rng.uniform(-1.0, 1.0, n)
    d = Diagram("grid", step=h, solver="backward_euler")
    x = [d.add(Integrator(float(value)), f"x{k}") for k, value in enumerate(start)]
    for k in range(n):
        used = np.flatnonzero(a[k])
        formula = " + ".join(f"({float(a[k, j])!r})*x{j}" for j in used)
        rate = d.add(Expression(formula), f"f{k}")
        for j in used.tolist():
            d.connect(x[j], rate[f"x{j}"])
        d.connect(rate, x[k])
    with d.compile().instantiate() as instance:
        instance.run(1)
        np.testing.assert_allclose(
            instance.states, np.linalg.solve(np.eye(n) - h * a, start), rtol=1e-9, atol=1e-12
        )
        first = contract.BL_EVENT_COUNTERS + contract.BL_SOLVER_EVALUATIONS
        assert instance.counters[first] <= 20
