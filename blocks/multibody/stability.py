"""How large a step of RK4 may be, from the fastest natural motion of a mechanism."""

from __future__ import annotations

import math

import numpy as np

from .plant import Plant
from .system import System

RK4_LIMIT = 2.78
"""|λ| h up to which RK4 damps what is damped: 2.785 for real λ, 2.828 for imaginary ones."""


def largest_stable_step(system: System) -> float:
    """Return the largest stable step; see `System.largest_stable_step`."""
    from ...scheduler.diagram import Diagram
    from ...scheduler.engine import Instance

    diagram = Diagram(system.name)
    diagram.add(Plant(system), name="plant")
    with Instance(diagram.compile()) as instance:
        instance.initialise()
        states = instance.states.copy()
        columns = []
        for n, kept in enumerate(states):
            size = 6e-6 * max(1.0, abs(kept))
            slopes = []
            for value in (kept + size, kept - size):
                instance.states[n] = value
                instance.touch()
                slopes.append(instance.derivatives())
            instance.states[n] = kept
            columns.append((slopes[0] - slopes[1]) / (2.0 * size))
    # Differences of constraint-free directions leave eigenvalues of about the root of their error.
    fastest = float(np.abs(np.linalg.eigvals(np.stack(columns, axis=1))).max())
    return RK4_LIMIT / fastest if fastest > 1e-3 else math.inf
