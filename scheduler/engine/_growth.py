"""Why a run has ended with values that are not finite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...blocks.core._stiffness import find_largest_step
from ...errors import BiellaError

if TYPE_CHECKING:
    from ._engine import Instance

_MOST_STATES = 100


def explain_growth(instance: Instance) -> str:
    """Return the likely cause and the remedy, from the eigenvalues at the start; or nothing.

    The plan is started again with the same parameters and linearized by differences.
    """
    plan = instance.plan
    states, parameters = int(instance.layout.states), int(instance.layout.parameters)
    if not 0 < states <= _MOST_STATES or plan.external:
        return ""
    solver = plan.solver
    try:
        with type(instance)(plan) as again, np.errstate(all="ignore"):
            again.explains = False
            again.values[:parameters] = instance.values[:parameters]
            again.touch()
            again.initialize()
            jacobian = differentiate(again, states)
    except BiellaError:
        return ""
    if not np.isfinite(jacobian).all():
        return ""
    eigenvalues = np.linalg.eigvals(jacobian)
    limit, growth = find_largest_step(eigenvalues, solver), float(eigenvalues.real.max())
    if plan.multirate:
        substeps = int(plan.multirate["substeps"])
        substep = plan.step / substeps
        if substep > limit * (1.0 + 1e-6):
            fastest = float(np.abs(eigenvalues).max())
            return (
                f" The likely cause is the substeps: at the start the fastest eigenvalue is |λ| = "
                f"{fastest:.3g} 1/s, for which `{solver}` is stable with substeps of up to "
                f"{limit:.3g} s, not {substep:.3g} s. Use substeps="
                f"{int(np.ceil(plan.step / limit))} or more in d.integrate, if the block that has "
                f"this eigenvalue is named there."
            )
    elif plan.step > limit * (1.0 + 1e-6):
        fastest = float(np.abs(eigenvalues).max())
        return (
            f" The likely cause is the step: at the start the fastest eigenvalue is |λ| = "
            f"{fastest:.3g} 1/s (time constant {1.0 / fastest:.3g} s), for which `{solver}` is "
            f"stable with steps of up to {limit:.3g} s, not {plan.step:.3g} s. Use such a "
            f"step, or an implicit solver: solver='backward_euler'."
        )
    if growth > 1e-6 * max(1.0, float(np.abs(eigenvalues).max())):
        return (
            f" The diagram is unstable at the start: a mode grows with a time constant of "
            f"{1.0 / growth:.3g} s. Check gains and signs of its feedback."
        )
    return ""


def differentiate(run: Instance, states: int) -> np.ndarray:
    """Return the Jacobian of the derivatives of all states, by differences."""
    columns = []
    for n in range(states):
        kept, state_derivatives = float(run.states[n]), []
        size = 1e-6 * max(1.0, abs(kept))
        for value in (kept + size, kept - size):
            run.states[n] = value
            run.touch()
            state_derivatives.append(run.derivatives())
        run.states[n] = kept
        columns.append((state_derivatives[0] - state_derivatives[1]) / (2.0 * size))
    return np.stack(columns, axis=1)
