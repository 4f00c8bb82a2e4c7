"""The linear programs behind a drawing, against scipy's HiGHS."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from biella.scheduler.drawing import program

EXAMPLE = Path(__file__).parents[2] / "examples" / "04_slider_crank.py"


@pytest.mark.parametrize("seed", range(60))
def test_the_optimum_is_that_of_highs(seed):
    # Whole numbers, some of the costs zero: many solutions meet in a corner, as in drawings.
    rng = np.random.default_rng(seed)
    height, width = rng.integers(1, 30, 2)
    table = rng.integers(-2, 3, (height, width)).astype(float)
    bounds = rng.integers(-5, 6, height).astype(float)
    cost = rng.random(width) * (rng.random(width) > 0.2)
    expected = linprog(cost, A_ub=table, b_ub=bounds)
    found = program._dual_simplex(cost, table, bounds)
    if expected.status != 0:
        assert found is None
        return
    assert (found >= -1e-9).all()
    assert (table @ found <= bounds + 1e-8).all()
    assert cost @ found == pytest.approx(expected.fun, abs=1e-8)


def test_what_is_large_or_takes_long_goes_to_scipy(monkeypatch):
    rows = 300
    # Each at least one more than the one before.
    table = np.eye(rows, rows + 1) - np.eye(rows, rows + 1, k=1)
    cost, bounds = np.ones(rows + 1), np.full(rows, -1.0)
    assert table.size > program._LARGEST_TABLE
    assert program.minimise(cost, table, bounds) == pytest.approx(np.arange(rows + 1))
    monkeypatch.setattr(program, "_MOST_PIVOTS", 3)
    assert program.minimise(cost[:31], table[:30, :31], bounds[:30]) == pytest.approx(np.arange(31))


def test_drawing_an_ordinary_diagram_does_not_import_scipy_optimize():
    """The import would take longer than all the rest of an export."""
    code = (
        "import runpy, sys\n"
        "from biella.fmu.documentation import draw_pictures\n"
        f"draw_pictures(runpy.run_path({str(EXAMPLE)!r})['diagram']())\n"
        "print('scipy.optimize' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "False"
