"""Mass-orthogonal projections onto the constraints [O 2.103-2.115 corrected].

Position, from the integrated q*: minimize ½ (q - q*)ᵀ M (q - q*) subject to Φ(q) = 0,

    K Δq = -M (q - q*) - Φ_qᵀ (λ + α Φ),   λ ← λ + α Φ(q + Δq)

with Φ at the new point. Velocity: the same with Φ_q v + Φ_t = 0, which is linear.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ....errors import FormulationError
from ..system._rotations import Array
from ._model import Model


def _penalty(mass: Array, alpha: float | None) -> float:
    """Return α; by default 1e5 times the mean of the masses, where K keeps ten digits."""
    return 1e5 * float(np.diag(mass).mean()) if alpha is None else alpha


def project_position(
    model: Model,
    t: float,
    q: Array,
    v: Array,
    *,
    alpha: float | None = None,
    tolerance: float = 1e-12,
    iterations: int = 30,
) -> Array:
    """Return the nearest q, in the measure of mass, that satisfies Φ to `tolerance`.

    Raises
    ------
    FormulationError
        If it does not get there.
    """
    mass = model.evaluate(t, q, v, loads=False).mass
    penalty = _penalty(mass, alpha)
    new = q.copy()
    phi, jacobian = model.constraints(t, new)
    lam = np.zeros(len(phi))
    for _ in range(iterations):
        # At convergence λ holds the force that keeps q at its nearest point.
        if np.abs(phi).max(initial=0.0) <= tolerance:
            return new
        factor = cho_factor(mass + penalty * jacobian.T @ jacobian)
        right = -mass @ (new - q) - jacobian.T @ (lam + penalty * phi)
        new = new + cho_solve(factor, right)
        phi, jacobian = model.constraints(t, new)
        if not np.isfinite(phi).all():
            break
        lam = lam + penalty * phi
    if np.abs(phi).max(initial=0.0) <= tolerance:
        return new
    raise FormulationError(
        f"positions did not close: |Φ| = {np.abs(phi).max():.3g} after {iterations} iterations."
    )


def project_velocity(
    model: Model,
    t: float,
    q: Array,
    v: Array,
    *,
    alpha: float | None = None,
    tolerance: float = 1e-12,
    iterations: int = 30,
) -> Array:
    """Return the nearest v, in the measure of mass, with |Φ̇| ≤ `tolerance` max(1, |v|)."""
    e = model.evaluate(t, q, v, loads=False)
    penalty = _penalty(e.mass, alpha)
    factor = cho_factor(e.mass + penalty * e.jacobian.T @ e.jacobian)
    sigma = np.zeros(len(e.phi_t))
    new, rate = v, e.rate
    for _ in range(iterations):
        if np.abs(rate).max(initial=0.0) <= tolerance * max(1.0, float(np.abs(new).max())):
            break
        # In the form of a correction: K v = M v* - … would lose digits of v itself.
        new = v - cho_solve(factor, e.jacobian.T @ (sigma + penalty * (e.jacobian @ v + e.phi_t)))
        rate = e.jacobian @ new + e.phi_t
        sigma = sigma + penalty * rate
    return new
