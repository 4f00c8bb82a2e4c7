"""How large a step of RK4 may be, from the fastest natural motion of a mechanism."""

from __future__ import annotations

import math

import numpy as np

from ...errors import BiellaError
from .forces import Bearing, JointLoad, Load
from .laws import Formula, Table
from .plant import Plant
from .system import System

RK4_LIMIT = 2.78
"""|λ| h up to which RK4 damps what is damped: 2.785 for real λ, 2.828 for imaginary ones."""

LARGEST_CHECKED = 40
"""Bodies up to which a diagram that is compiled is checked: 0.1 s."""


def warn_of_step(plant: Plant, step: float) -> str:
    """Return a warning if RK4 is not stable with this step at the start, else nothing.

    Mechanisms of more than `LARGEST_CHECKED` bodies are not looked at, nor those without springs,
    dampers and the like: their motions are as slow as they look.
    """
    system = plant.system
    if len(system.bodies) > LARGEST_CHECKED or not any(map(_may_be_stiff, system.elements)):
        return ""
    if plant.largest_step is None:
        try:
            plant.largest_step = largest_stable_step(system)
        except BiellaError:  # it cannot start: running it says why
            plant.largest_step = math.inf
    limit = plant.largest_step
    if step <= limit:
        return ""
    substeps = math.ceil(step * plant.substeps / limit)
    return (
        f"RK4 is not stable with steps of {step:.3g} s: the fastest motion at the start allows up "
        f"to {limit:.3g} s. Take such a step, or mode='own_step' with substeps={substeps} or with "
        f"integrator='implicit'."
    )


def _may_be_stiff(element: object) -> bool:
    if isinstance(element, JointLoad):
        return isinstance(element.effort, Formula | Table)
    return not isinstance(element, Load)


def largest_stable_step(system: System) -> float:
    """Return the largest stable step; see `System.largest_stable_step`."""
    from ...scheduler.diagram import Diagram
    from ...scheduler.engine import Instance

    # A film is nowhere near linear over the usual difference.
    clearances = [e.film.clearance for e in system.elements if isinstance(e, Bearing)]
    difference = min([6e-6, *(1e-4 * clearance for clearance in clearances)])
    # Only derivatives are asked for. With rk4, compiling would ask for this very number.
    diagram = Diagram(system.name, solver="euler")
    plant = diagram.add(Plant(system), name="plant")
    plant.doubt = ""  # who runs the mechanism is told
    with Instance(diagram.compile()) as instance:
        instance.initialise()
        states = instance.states.copy()
        columns = []
        for n, kept in enumerate(states):
            size = difference * max(1.0, abs(kept))
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
