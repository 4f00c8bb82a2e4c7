"""How large a step of RK4 may be, from the fastest natural motion of a mechanism."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

import numpy as np

from ....errors import BiellaError, DiagramError
from ....services import find_service
from ..clearance import ClearanceRevolute
from ..forces import Bearing, Bushing, JointLoad, Load
from ..laws import Formula, Table
from ..rotations import freeze

if TYPE_CHECKING:
    from ..plant import Plant
    from ..system import System

RK4_LIMIT = 2.78
"""|λ| h up to which RK4 damps what is damped: 2.785 for real λ, 2.828 for imaginary ones."""

LARGEST_CHECKED = 40
"""Bodies up to which a diagram is checked before it runs: 0.1 s."""

CONTACT_DEPTH = 0.01
"""Depth of a contact, as a part of the clearance, whose stiffness is counted."""

CONTACT_STEPS = 10
"""In a contact, which lasts about as long as the largest stable step: fewer lose its energy."""


def warn_of_step(plant: Plant, step: float, rk4: bool) -> str:
    """Return a warning if RK4 is not stable with this step at the start, else nothing.

    Steps of any kind are too coarse where a contact in a clearance is over in a few.

    Mechanisms of more than `LARGEST_CHECKED` bodies are not looked at, nor those without springs,
    dampers and the like: their motions are as slow as they look.
    """
    system = plant.system
    if not rk4 and not any(isinstance(e, ClearanceRevolute) for e in system.elements):
        return ""
    if len(system.bodies) > LARGEST_CHECKED or not any(map(_may_be_stiff, system.elements)):
        return ""
    if plant.largest_step is None:
        try:
            plant.contact_time = _shortest_contact(system)
            plant.largest_step = min(_largest_stable_step(system), plant.contact_time)
        except BiellaError:  # it cannot start: running it says why
            plant.largest_step = plant.contact_time = math.inf
    limit = plant.largest_step
    if step <= limit or not rk4:
        return _warn_of_contacts(plant, step)
    substeps = math.ceil(step * plant.substeps / limit)
    return (
        f"RK4 is not stable with steps of {step:.3g} s: the fastest motion at the start allows up "
        f"to {limit:.3g} s. Take such a step, or mode='own_step' with substeps={substeps} or with "
        f"integrator='implicit'."
    )


def _warn_of_contacts(plant: Plant, step: float) -> str:
    limit = plant.contact_time / CONTACT_STEPS
    if step <= limit:
        return ""
    substeps = math.ceil(step * plant.substeps / limit)
    return (
        f"steps of {step:.3g} s are too coarse for contacts in clearances, which last about "
        f"{plant.contact_time:.2g} s: their restitution and forces will be wrong. Take steps of up "
        f"to {limit:.2g} s, mode='own_step' with substeps={substeps}, or a softer contact."
    )


def _shortest_contact(system: System) -> float:
    """Return about how long the shortest contact lasts, half a swing of what it stops.

    That is the largest stable step with all compliant contacts closed in all directions.
    """
    clearances = [e for e in system.elements if isinstance(e, ClearanceRevolute) and not e.rigid]
    return _largest_stable_step(system, closed=True) if clearances else math.inf


def _tie(element: ClearanceRevolute) -> Bushing:
    """Return what a contact is like while it lasts; a rigid one is as if it did not touch."""
    stiffness = 0.0 if element.rigid else element.stiffness_at(CONTACT_DEPTH * element.clearance)
    both = np.array([stiffness, stiffness, 0.0, 0.0, 0.0, 0.0])
    return Bushing(element.name, element.hole, element.pin, freeze(both), freeze(0.0 * both))


def _may_be_stiff(element: object) -> bool:
    if isinstance(element, JointLoad):
        return isinstance(element.effort, Formula | Table)
    return not isinstance(element, Load)


def largest_stable_step(system: System) -> float:
    """Return the largest stable step; see `System.largest_stable_step`."""
    return min(_largest_stable_step(system), _shortest_contact(system))


def _largest_stable_step(system: System, *, closed: bool = False) -> float:
    """Return the largest stable step as it starts, or with compliant contacts closed."""
    # Films and contacts are nowhere near linear over the usual difference.
    clearances = [e.film.clearance for e in system.elements if isinstance(e, Bearing)]
    clearances += [e.clearance for e in system.elements if isinstance(e, ClearanceRevolute)]
    difference = min([6e-6, *(1e-4 * clearance for clearance in clearances)])
    ties = {
        e.name: _tie(e)
        for e in system.elements
        if isinstance(e, ClearanceRevolute) and (closed or e.rigid)
    }
    tied = copy.copy(system)
    tied._parts = {**system._parts, **ties}
    model = find_service("compile_alone")(tied.block([], []), "plant")
    with model.open() as instance, np.errstate(over="ignore", invalid="ignore"):
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
    jacobian, fastest = np.stack(columns, axis=1), math.inf
    if np.isfinite(jacobian).all():
        # Differences of constraint-free directions leave eigenvalues of about the root of their
        # error.
        fastest = float(np.abs(np.linalg.eigvals(jacobian)).max())
    if not math.isfinite(fastest):
        raise DiagramError(
            f"the equations of motion of `{system.name}` overflow as it starts: accelerations are "
            f"not finite. Masses, inertias, lengths or stiffnesses are too large or too small for "
            f"double precision; quantities are in kg, kg m², m and N/m."
        )
    return RK4_LIMIT / fastest if fastest > 1e-3 else math.inf
