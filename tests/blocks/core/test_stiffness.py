"""The largest stable step of explicit solvers, against their regions of stability."""

from math import inf, sqrt

import numpy as np
import pytest

from biella.blocks.core._stiffness import find_largest_step

# Where |R(z)| = 1 on the negative real axis. Of dopri5: Hairer and Wanner, Solving Ordinary
# Differential Equations II, section IV.2, figure 2.1 shows 3.3.
REAL_AXIS = {"euler": 2.0, "heun": 2.0, "rk3": 2.5127453266, "rk4": 2.7852935634}


def find_step(eigenvalues: list[complex], solver: str) -> float:
    return find_largest_step(np.array(eigenvalues, np.complex128), solver)


@pytest.mark.parametrize("solver", REAL_AXIS)
@pytest.mark.parametrize("rate", [0.1, 1e4])
def test_a_decay_is_stable_up_to_the_end_of_the_real_axis(solver, rate):
    assert find_step([-rate], solver) == pytest.approx(REAL_AXIS[solver] / rate, rel=1e-8)


def test_dopri5_reaches_a_little_further_than_rk4():
    assert 3.0 < find_step([-1.0], "dopri5") < 3.5


@pytest.mark.parametrize(("solver", "limit"), [("rk3", sqrt(3.0)), ("rk4", 2.0 * sqrt(2.0))])
def test_an_undamped_oscillation_is_stable_up_to_the_end_of_the_imaginary_axis(solver, limit):
    # |R| touches 1 with a high order there: the bound 1 + 1e-9 moves the end by about 1e-9.
    assert find_step([10j, -10j], solver) == pytest.approx(limit / 10.0, rel=1e-6)


def test_the_fastest_motion_decides():
    fast = find_step([-1.0, -100.0, -3.0], "rk4")
    assert fast == pytest.approx(find_step([-100.0], "rk4"), rel=1e-9)


@pytest.mark.parametrize(
    ("eigenvalues", "solver"),
    [([5.0], "rk4"), ([0.0], "rk4"), ([], "rk4"), ([1j, -1j], "euler"), ([-1e9], "implicit")],
)
def test_what_limits_no_step(eigenvalues, solver):
    """Growth of its own, constants, and oscillations that no step holds; implicit solvers."""
    assert find_largest_step(np.array(eigenvalues, dtype=complex), solver) == inf
