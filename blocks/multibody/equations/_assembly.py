"""Initial values that satisfy the constraints."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ....errors import FormulationError
from ..system._rotations import Array
from ._model import AbstractModel
from ._projections import project_position, project_velocity


def assemble(
    model: AbstractModel,
    t: float = 0.0,
    q: Array | None = None,
    *,
    by: Literal["projection", "levenberg-marquardt"] = "projection",
    tolerance: float = 1e-12,
) -> Array:
    """Return positions that close all joints, near the given ones.

    Parameters
    ----------
    model, t, q
        What to close, when, and the first guess: that of the description if not given.
    by
        ``"projection"``: the nearest in the measure of mass. ``"levenberg-marquardt"``: least
        squares of Φ [V 4.3.2], which takes worse guesses.
    tolerance
        Of every |Φ|.

    Raises
    ------
    FormulationError
        With the joints that will not close, and by how much.
    """
    guess = model.q0 if q is None else q
    if by == "levenberg-marquardt":
        closed, phi = _levenberg_marquardt(model, t, guess, tolerance)
    else:
        try:
            closed = project_position(model, t, guess, np.zeros(model.n), tolerance=tolerance)
            return closed
        except FormulationError:
            closed, phi = _levenberg_marquardt(model, t, guess, tolerance)
    if np.abs(phi).max(initial=0.0) <= tolerance:
        return closed
    worst = sorted(
        ((float(np.abs(phi[rows]).max()), name) for name, rows in model.joint_rows.items()),
        reverse=True,
    )
    listed = ", ".join(f"`{name}` by {size:.3g}" for size, name in worst if size > tolerance)
    raise FormulationError(
        f"the positions of `{model.system.name}` cannot be closed. Joints left open: {listed}."
    )


def _levenberg_marquardt(
    model: AbstractModel, t: float, q: Array, tolerance: float
) -> tuple[Array, Array]:
    """Return q and Φ where the sum of squares of Φ is least near q."""
    damping = 1e-3
    phi, jacobian = model.constraints(t, q)
    for _ in range(200):
        if np.abs(phi).max(initial=0.0) <= tolerance or damping > 1e12:
            break
        matrix = jacobian.T @ jacobian + damping * np.eye(len(q))
        trial = q - np.linalg.solve(matrix, jacobian.T @ phi)
        new_phi, new_jacobian = model.constraints(t, trial)
        if new_phi @ new_phi < phi @ phi:
            q, phi, jacobian = trial, new_phi, new_jacobian
            damping = max(damping * 0.1, 1e-14)
        else:
            damping *= 10.0
    return q, phi


def consistent_velocity(
    model: AbstractModel, t: float, q: Array, v: Array | None = None
) -> tuple[Array, float]:
    """Return the nearest velocities that the joints allow, and the largest change made."""
    given = model.v0 if v is None else v
    found = project_velocity(model, t, q, given, tolerance=1e-13)
    return found, float(np.abs(found - given).max(initial=0.0))
