"""Baumgarte's stabilization [V 2.8, O 2.75, P 3.61]: γ becomes γ - 2 α Φ̇ - β² Φ.

The violation then dies out with the roots -α ± √(α² - β²). It fails with redundant rows, as index 1
does; λ contains the stabilizing force and is not a reaction: take that from `kkt`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..equations._model import Model
from ..system._rotations import Array
from ._kkt import solve


def deadbeat_gains(step: float) -> tuple[float, float]:
    """Return α = β = 1/Δt [V]; explicit Euler is stable below twice that."""
    return 1.0 / step, 1.0 / step


def period_gains(step: float, periods: float = 20.0, damping: float = 0.7) -> tuple[float, float]:
    """Return α = ε β and β = 2π / (η Δt) [O 2.80].

    Parameters
    ----------
    step
        Δt in s.
    periods
        η: period of the oscillation of the violation, in steps.
    damping
        ε, its damping ratio.
    """
    beta = 2.0 * np.pi / (periods * step)
    return damping * beta, beta


def accelerations(
    model: Model,
    t: float,
    q: Array,
    v: Array,
    memory: dict[str, Any],
    *,
    alpha: float = 10.0,
    beta: float = 10.0,
    check: bool = True,
) -> tuple[Array, Array]:
    """Return q̈ and λ; α and β in 1/s."""
    e = model.evaluate(t, q, v)
    return solve(e, e.gamma - 2.0 * alpha * e.rate - beta**2 * e.phi, check)
