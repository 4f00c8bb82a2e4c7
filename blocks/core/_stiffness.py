"""Whether an explicit solver is stable with a step, for motions whose eigenvalues are known."""

from __future__ import annotations

from math import factorial, inf

import numpy as np
import numpy.typing as npt

Eigenvalues = npt.NDArray[np.complex128]

# R(z) of x' = λ x, z = λ h: 1 + z + z²/2 + … up to the order, and what dopri5 adds.
_POLYNOMIALS = {
    solver: [1.0 / factorial(k) for k in range(order + 1)]
    for solver, order in {"euler": 1, "heun": 2, "rk3": 3, "rk4": 4, "dopri5": 5}.items()
}
_POLYNOMIALS["dopri5"].append(1.0 / 600.0)
MULTIRATE_RK4 = "rk4 with substeps"
"""The method of order 4 for the slow part of a multirate step (solvers/multirate.c), by which it is
stable up to |λ| h = 2.63 for real λ, rk4 up to 2.78."""
MULTIRATE_FIFTH = -504509.0 / 310272000.0
"""The coefficient of z⁵ in its R(z), from its table; the others are those of rk4."""
_POLYNOMIALS[MULTIRATE_RK4] = [*_POLYNOMIALS["rk4"], MULTIRATE_FIFTH]


def find_largest_step(eigenvalues: Eigenvalues, solver: str) -> float:
    """Return the largest step with which no decaying motion grows; infinity if any will do.

    Motions that grow by themselves do not count, nor those of implicit solvers.
    """
    if solver not in _POLYNOMIALS:
        return inf
    poles = np.asarray(eigenvalues, dtype=np.complex128)
    poles = poles[(poles.real <= 0.0) & np.isfinite(poles) & (np.abs(poles) > 0.0)]
    # Those on the imaginary axis neither grow nor decay: there, orders below 3 are never stable.
    still = np.abs(poles.real) <= 1e-9 * np.abs(poles)
    if solver in ("euler", "heun", "dopri5"):
        poles = poles[~still]
    if poles.size == 0:
        return inf
    coefficients = _POLYNOMIALS[solver][::-1]

    def is_stable(step: float) -> bool:
        return bool((np.abs(np.polyval(coefficients, step * poles)) <= 1.0 + 1e-9).all())

    high = 4.0 / float(np.abs(poles).max())  # no region reaches further
    low = high
    while not is_stable(low) and low > 1e-12 * high:
        low *= 0.5
    high = min(high, 2.0 * low)
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_stable(middle) else (low, middle)
    return low


def warn_of_poles(eigenvalues: Eigenvalues, step: float, solver: str) -> str:
    """Return a warning if `solver` is not stable with `step` in s for these, else nothing."""
    limit = find_largest_step(eigenvalues, solver)
    if step <= limit * (1.0 + 1e-6):
        return ""
    fastest = float(np.abs(eigenvalues).max())
    return (
        f"the solver `{solver}` is not stable with steps of {step:.3g} s: the fastest eigenvalue, "
        f"|λ| = {fastest:.3g} 1/s (time constant {1.0 / fastest:.3g} s), allows up to "
        f"{limit:.3g} s. Take such a step, or an implicit solver: solver='backward_euler'."
    )
