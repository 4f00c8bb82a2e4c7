"""The linear programs behind a drawing, against scipy's HiGHS."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from biella.scheduler.drawing import _program as program
from biella.scheduler.drawing._layering import _choose_edges

EXAMPLE = Path(__file__).parents[3] / "examples" / "04_slider_crank.py"


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
    assert found is not None
    assert (found >= -1e-9).all()
    assert (table @ found <= bounds + 1e-8).all()
    assert cost @ found == pytest.approx(expected.fun, abs=1e-8)


def test_what_is_large_or_takes_long_goes_to_scipy(monkeypatch):
    # Each unknown is at least one more than the one before.
    rows = [[(n, 1.0), (n + 1, -1.0)] for n in range(300)]
    assert len(rows) ** 2 > program._LARGEST_TABLE
    found = program.minimize(np.ones(301), rows, [-1.0] * 300)
    assert found == pytest.approx(np.arange(301))
    monkeypatch.setattr(program, "_MOST_PIVOTS", 3)
    found = program.minimize(np.ones(31), rows[:30], [-1.0] * 30)
    assert found == pytest.approx(np.arange(31))


def test_the_cheapest_whole_set_of_edges_cuts_every_loop():
    # Any two of three edges are a loop: halves of all would be cheaper than what can be cut.
    chosen = _choose_edges(np.array([1.0, 1.1, 1.2]), [[0, 1], [1, 2], [0, 2]])
    assert np.round(chosen) == pytest.approx(chosen, abs=1e-6)
    assert list(chosen > 0.5) == [True, True, False]
    assert list(_choose_edges(np.array([3.0, 1.0, 1.0]), [[0, 1], [0, 2]])) == [0.0, 1.0, 1.0]


def test_drawing_an_ordinary_diagram_does_not_import_scipy_optimize():
    """The import would take longer than all the rest of an export."""
    code = (
        "import runpy, sys\n"
        "from biella.fmu.exporter._documentation import draw_pictures\n"
        f"draw_pictures(runpy.run_path({str(EXAMPLE)!r})['diagram']())\n"
        "print('scipy.optimize' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert answer.stdout.strip() == "False"
