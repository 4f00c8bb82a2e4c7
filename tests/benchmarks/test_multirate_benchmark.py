"""Substeps for a circuit: fewer evaluations of the mechanism than short steps, at equal errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.engine

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "studies"


def test_the_mechanism_is_evaluated_less_often_at_equal_errors():
    """With jumps of the voltage that are not resolved by the step, but by the substeps."""
    from studies import multirate

    exact = multirate.find_exact(0.1)
    fast = multirate.measure(2e-3, 50, exact, 0.1)
    equal = multirate.find_equal(fast.error, exact, 0.1)
    assert equal.error <= fast.error < 2e-5
    assert equal.evaluations > 5 * fast.evaluations


def test_it_runs():
    command = [sys.executable, str(BENCHMARKS / "multirate.py"), "--quick"]
    assert (
        ": 1"
        in subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    )
