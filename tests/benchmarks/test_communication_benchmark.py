"""The two published coupling cases: adaptive communication takes fewer steps for equal errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

pytestmark = pytest.mark.engine

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "studies"


@pytest.mark.filterwarnings("ignore::biella.errors.CouplingWarning")
@pytest.mark.parametrize("number", [0, 1])
def test_adaptive_steps_are_fewer_at_equal_error(number):
    """Rejected steps count, and so do the steps of members that iterations repeat."""
    from studies.communication import CASES, compare

    case = CASES[number]
    ((_, adaptive, fixed),) = compare(case, [1e-3], [2, 4, 8, 16, 32, 64])
    assert adaptive.error < 3e-3
    assert adaptive.exceeded == 0
    assert fixed.error == adaptive.error
    factor = {"quarter car": 2.5, "dual mass oscillator": 1.2}[case.name]
    assert fixed.steps > factor * adaptive.steps
    assert fixed.advances > factor * adaptive.advances


@pytest.mark.parametrize("number", [0, 1])
def test_the_closed_form_is_that_of_the_equations(number):
    """As the papers state them, integrated by scipy."""
    from studies.communication import CASES, exact

    case = CASES[number]
    m1, m2 = case.masses
    (k1, c1, r1), (k2, c2, r2) = case.own
    k, c = case.between

    def rate(_, z):
        x1, x2, v1, v2 = z
        force = k * (x2 - x1) + c * (v2 - v1)
        return [
            v1, v2, (force - k1 * (x1 - r1) - c1 * v1) / m1,
            (-force - k2 * (x2 - r2) - c2 * v2) / m2,
        ]  # fmt: skip

    start = [*case.start, 0.0, 0.0]
    x1, x2, v1, v2 = solve_ivp(
        rate, (0, case.until), start, method="DOP853", rtol=1e-10, atol=1e-12
    ).y[:, -1]
    found = exact(case, 10)[-1] + [case.start[0], 0.0, case.start[1], 0.0]
    assert found == pytest.approx([x1, v1, x2, v2], rel=1e-6, abs=1e-8)


def test_a_fixed_run_with_the_same_error_is_interpolated():
    """Second order: a hundredth of the error takes ten times the steps."""
    from studies.communication import Run, _match

    fixed = [Run(1e-2, 100, 200), Run(1e-4, 1000, 2000)]
    assert _match(fixed, 1e-3).steps == pytest.approx(100 * np.sqrt(10))
    assert _match(fixed, 1e-3).advances == pytest.approx(200 * np.sqrt(10))
    assert np.isnan(_match(fixed, 1e-5).steps)


def test_the_command_prints_both_tables():
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "communication.py"), "--quick"],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    assert "quarter car: jacobi, extrapolation 2" in done.stdout
    assert "dual mass oscillator: newton, extrapolation 1" in done.stdout
    assert done.stdout.count("1e-04") >= 2
