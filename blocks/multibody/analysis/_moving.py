"""A state in motion, seen along the small motions about it that the joints leave.

Let ξ be how far a motion is from the one that starts at (t, q, u), in the coordinates of `move`,
and δu how much its speeds differ. With V an orthonormal basis of the motions that joints and
drivers allow, which goes along with the motion without turning in itself (V̇ = -Φ_u⁺ Φ̇_u V),

    ξ = V p,   δu = V s + Z p,   ξ̇ = δu + ω × ξ_π,   δu̇ = ∂a/∂q ξ + ∂a/∂u δu
    ṗ = G p + s,   ṡ = (Vᵀ ∂u̇/∂p + V̇ᵀ Z) p + Vᵀ ∂u̇/∂s s,   G = Vᵀ ω × V_π

where Z p is what the joints add because their axes have moved, a(t, q, u) the accelerations that
fulfill all equations, and ω × acts on the rotations ξ_π of each body, which are in world axes. All
velocity terms are in it: gyroscopic, centrifugal, Coriolis, and forces that depend on speeds.

Where the motion is steady in world axes (a spinning axisymmetric rotor) this does not change
with time. Otherwise it holds for an instant: its eigenvalues do not determine stability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..system._rotations import Array
from ._manifold import RANK, Manifold, close, least_squares, split

_DIFFERENCE = 1e-5
STILL = 1e-5
"""Eigenvalues below this part of the largest one count as 0: the root of the rounding in u̇."""


def compute_rates(
    model: Manifold,
    t: float,
    q: Array,
    u: Array,
    basis: Array,
    coordinates: Sequence[tuple[str, int]] = (),
) -> tuple[Array, Array]:
    """Return ∂p̈/∂p and ∂p̈/∂ṗ, that is -M_r⁻¹ K_r and -M_r⁻¹ C_r.

    Parameters
    ----------
    model, t, q, u
        The state, on the constraints.
    basis
        V, orthonormal.
    coordinates
        Joint coordinates used as p, by joint and index; by default p are the coordinates of V.
    """
    size, freedom = model.size, basis.shape[1]

    def look(p: Array, s: Array) -> Array:
        place, speeds, accelerations = _nearby(model, t, q, u, basis, p, s)
        found = model.coordinates(t, place, speeds, accelerations) if coordinates else {}
        rates = [(found[key].rate, found[key].acceleration) for key in coordinates]
        return np.concatenate([speeds, accelerations, np.array(rates).T.ravel()])

    none, columns = np.zeros(freedom), []
    for e in np.eye(freedom):
        h = _DIFFERENCE / float(np.abs(basis @ e).max())
        columns.append(_differentiate(lambda h, e=e: look(h * e, none), h))  # type: ignore[misc]
    for e in np.eye(freedom):
        h = _DIFFERENCE * max(1.0, float(np.abs(u).max()))
        columns.append(_differentiate(lambda h, e=e: look(none, h * e), h))  # type: ignore[misc]
    changes = np.array(columns).T
    if coordinates:
        rate, second = changes[2 * size :].reshape(2, freedom, 2 * freedom)
        here = model.coordinates(t, q, u, np.zeros(size))
        value = np.array([here[key].jacobian for key in coordinates]) @ basis
        known = np.concatenate([np.hstack([value, np.zeros_like(value)]), rate])
        matrix = np.linalg.solve(known.T, second.T).T
        return matrix[:, :freedom], matrix[:, freedom:]
    extra, by_place = changes[:size, :freedom], changes[size : 2 * size, :freedom]
    turning = basis.T @ model.turn(basis, u)
    by_place = basis.T @ by_place + _basis_rate(model, t, q, u, basis).T @ extra
    by_speed = basis.T @ changes[size : 2 * size, freedom:]
    # ṗ = G p + s in place of s.
    return by_place - by_speed @ turning, by_speed + turning


def _differentiate(f: Callable[[float], Array], h: float) -> Array:
    """Return f'(0) to order four."""
    near, far = f(h) - f(-h), f(2.0 * h) - f(-2.0 * h)
    return (8.0 * near - far) / (12.0 * h)


def _nearby(
    model: Manifold, t: float, q: Array, u: Array, basis: Array, p: Array, s: Array
) -> tuple[Array, Array, Array]:
    """Return q, u and u̇ at p and s, put on the constraints by the least way."""
    place, _ = close(model, t, model.move(q, basis @ p))
    speeds = u + basis @ s
    e = model.equations(t, place, speeds)
    speeds = speeds - least_squares(e.jacobian, e.jacobian @ speeds + e.phi_t)
    e = model.equations(t, place, speeds)
    _, free, _ = split(e.jacobian)
    tied = least_squares(e.jacobian, e.gamma)
    mass = free.T @ e.mass
    own = np.linalg.solve(mass @ free, free.T @ e.force - mass @ tied)
    return place, speeds, tied + free @ own


def _basis_rate(model: Manifold, t: float, q: Array, u: Array, basis: Array) -> Array:
    """Return V̇ = -Φ_u⁺ Φ̇_u V along the motion."""
    _, jacobian = model.closure(t, q)
    if not jacobian.size:
        return np.zeros_like(basis)
    rate = _differentiate(
        lambda h: model.closure(t + h, model.move(q, h * u))[1] @ basis,
        _DIFFERENCE / float(np.abs(u).max()),
    )
    return -np.linalg.pinv(jacobian, rcond=RANK) @ rate
