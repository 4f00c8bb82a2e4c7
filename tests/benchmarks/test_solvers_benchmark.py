"""The benchmarks of solvers and events measure what they say."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.engine

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def solvers():
    return runpy.run_path(str(BENCHMARKS / "solvers.py"))


def test_costs_are_interpolated_at_equal_errors(solvers):
    """Cost 10 at an error of 1e-2, 1000 at 1e-6: 100 at 1e-4; a dominated point does not count."""
    curve = solvers["Curve"]("a", None, error=[1e-2, 3e-2, 1e-6, math.inf])
    cost = curve.cost_at(np.array([1e-1, 1e-4, 1e-6, 1e-7]), [10.0, 500.0, 1000.0, 1.0])
    assert cost == pytest.approx([math.nan, 100.0, 1000.0, math.nan], nan_ok=True)


@pytest.mark.parametrize("name", ["HIRES", "Kepler"])
def test_all_solvers_reach_the_reference(solvers, name, tmp_path):
    """At 1e-6 and 1e-8 all end near the reference; work and time are positive."""
    problem = next(p for p in (*solvers["STIFF"], *solvers["SMOOTH"]) if name in p.name)
    curves = solvers["measure_problem"](problem, [1e-6, 1e-8], True)
    assert curves[0].solver == "biella"
    assert len(curves) >= 4
    for curve in curves:
        assert curve.error[-1] < 1e-2
        assert all(time > 0 for time in curve.time)
        assert all(work is None or work > 50 for work in curve.work)
    rows, note = solvers["compare"](problem, curves)
    assert problem.name in note
    assert {row.target for row in rows} <= {"≥ 1× faster", "≤ 1.5×", ""}
    solvers["draw"]([(problem, curves)], tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000


def test_formulas_in_c_are_those_in_python(solvers):
    """The C text of a right-hand side, read as Python, gives the same numbers."""
    for problem in (*solvers["STIFF"], *solvers["SMOOTH"]):
        x = np.linspace(0.3, 1.7, len(problem.start))
        lines = [line for line in problem.c_source().splitlines() if "dx[" in line and "=" in line]
        found = [
            eval(line.split("=", 1)[1].strip().rstrip(";"), {"x": x, "sqrt": math.sqrt})
            for line in lines
        ]
        assert found == pytest.approx(problem.function()(0.0, x), rel=1e-12)


def test_events_are_measured_where_they_occur():
    """One event in every tick of the relay oscillator, none in the servo."""
    from workloads import events

    rows = events.measure(200, 1)
    assert len(rows) == 6
    assert all(row.ours > 0 and row.theirs > 0 for row in rows)
    for build, expected in (
        (lambda: events.build_relay(0.5e-3), 200),
        (lambda: events.build_switched(0.5e-3), 200),
        (events.build_servo, 0),
    ):
        instance = build().compile().instantiate()
        instance.run(200)
        assert instance.event_counts[0] == pytest.approx(expected, abs=1)
