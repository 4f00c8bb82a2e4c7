"""How large a step of RK4 may be, from the fastest natural motion of a mechanism."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

import numpy as np

from ...._services import find_service
from ....errors import BiellaError, DiagramError

if TYPE_CHECKING:
    from ..plant._plant import Plant
    from ..system._system import System

RK4_LIMIT = 2.78
"""Limit of |λ| h for the stability of RK4: 2.785 for real λ, 2.828 for imaginary λ."""

MULTIRATE_LIMIT = 2.63
"""The same for the slow part of multirate steps: 2.634 for real λ, 2.732 for imaginary λ."""

LARGEST_CHECKED = 40
"""Bodies up to which a diagram is checked before it runs: 0.1 s."""

CONTACT_DEPTH = 0.01
"""Depth of a contact, as a part of the clearance, whose stiffness is counted."""

CONTACT_STEPS = 10
"""In a contact, which lasts about as long as the largest stable step: fewer lose its energy."""


def warn_of_step(plant: Plant, step: float, rk4: bool, multirate: bool = False) -> str:
    """Return a warning if RK4 is not stable with this step at the start, else nothing.

    Steps of any kind are too coarse where a contact in a clearance is over in a few.

    Mechanisms of more than `LARGEST_CHECKED` bodies are not checked, nor those without springs,
    dampers and similar elements, which have no fast dynamics.
    """
    system = plant.system
    if not rk4 and not any(e.is_contact for e in system.elements):
        return ""
    if len(system.bodies) > LARGEST_CHECKED or not any(e.may_be_stiff for e in system.elements):
        return ""
    if plant.largest_step is None:
        try:
            plant.contact_time = _shortest_contact(system)
            plant.largest_step = min(_largest_stable_step(system), plant.contact_time)
        except BiellaError:  # it has no initial state: the run reports the reason
            plant.largest_step = plant.contact_time = math.inf
    limit = plant.largest_step * (MULTIRATE_LIMIT / RK4_LIMIT if multirate else 1.0)
    if step <= limit or not rk4:
        return _warn_of_contacts(plant, step)
    substeps = math.ceil(step * plant.substeps / limit)
    return (
        f"RK4 is not stable with steps of {step:.3g} s: the fastest motion at the start allows up "
        f"to {limit:.3g} s. Take such a step, or mode='internal' with substeps={substeps} or with "
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
        f"to {limit:.2g} s, mode='internal' with substeps={substeps}, or a softer contact."
    )


def _shortest_contact(system: System) -> float:
    """Return about how long the shortest contact lasts, half a swing of what it stops.

    That is the largest stable step with all compliant contacts closed in all directions.
    """
    compliant = any(e.is_contact and not e.is_rigid for e in system.elements)
    return _largest_stable_step(system, closed=True) if compliant else math.inf


def largest_stable_step(system: System) -> float:
    """Return the largest stable step; see `System.largest_stable_step`."""
    return min(_largest_stable_step(system), _shortest_contact(system))


def _largest_stable_step(system: System, *, closed: bool = False) -> float:
    """Return the largest stable step as it starts, or with compliant contacts closed."""
    # Films and contacts are nowhere near linear over the usual difference.
    difference = min([6e-6, *(1e-4 * e.play for e in system.elements if e.play is not None)])
    ties = {
        e.name: e.tie(CONTACT_DEPTH)
        for e in system.elements
        if e.is_contact and (closed or e.is_rigid)
    }
    tied = copy.copy(system)
    tied._parts = {**system._parts, **ties}
    model = find_service("compile_alone")(tied.block([], []), "plant")
    with model.open() as instance, np.errstate(over="ignore", invalid="ignore"):
        instance.initialize()
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
