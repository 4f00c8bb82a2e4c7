"""Planar bodies [P 3]: three coordinates, q = (x, y, φ), of the center of mass.

A point s has the Jacobian [I | Ω R s] and the rest -φ̇² R s.
"""

from __future__ import annotations

import numpy as np

from ..system._rotations import Array, angle_of
from ._model import AbstractModel
from ._shapes import Field

_OMEGA = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
_LIFT = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])


class PlanarModel(AbstractModel):
    """A planar system; vectors have a third component, which is 0."""

    width = 3

    def _start(self) -> tuple[Array, Array]:
        q, v = np.zeros((2, self.count, 3))
        masses = []
        for n, body in enumerate(self.bodies):
            arm = body.rotation @ body.com
            turning = body.angular_velocity[2]
            q[n] = [*(body.position + arm)[:2], angle_of(body.rotation)]
            v[n] = [*(body.velocity + turning * _OMEGA @ arm)[:2], turning]
            masses += [body.mass, body.mass, body.inertia[2, 2]]
        self._mass = np.diag(masses)
        return q.ravel(), v.ravel()

    def rotations(self, q: Array) -> Array:
        """Return R."""
        phi = np.append(self.blocks(q)[:, 2], 0.0)
        made = np.zeros((self.count + 1, 3, 3))
        made[:, 0, 0] = made[:, 1, 1] = np.cos(phi)
        made[:, 1, 0] = np.sin(phi)
        made[:, 0, 1] = -made[:, 1, 0]
        made[:, 2, 2] = 1.0
        return made

    def _field(self, t: float, q: Array, v: Array) -> Field:
        body, flag = self.shapes.body, self.shapes.flag
        place, rate, acceleration = self.shapes.places(t)
        r = self.rotations(q)[body]
        arm = (r @ place[:, :, None])[:, :, 0]
        # Directions along z stand still: they are the axes of joints.
        turned = arm @ _OMEGA.T
        flat = arm @ _LIFT
        omega = np.append(self.blocks(v)[:, 2], 0.0)[body][:, None]
        origin = np.vstack([self.blocks(q), np.zeros(3)])[body] @ _LIFT
        jacobian = flag[:, None, None] * _LIFT
        jacobian[:, :, 2] = turned
        partial = np.zeros(place.shape)
        rest = -(omega**2) * flat
        if rate is not None and acceleration is not None:
            partial = (r @ rate[:, :, None])[:, :, 0]
            rest = rest + 2.0 * omega * (partial @ _OMEGA.T)
            rest = rest + (r @ acceleration[:, :, None])[:, :, 0]
        return Field(flag[:, None] * origin + arm, jacobian, partial, rest)

    def mass(self, q: Array) -> Array:
        """Return M, which is constant."""
        return self._mass

    def spins(self, q: Array) -> Array:
        """Return the Jacobian of ω, along z."""
        jacobian = np.zeros((self.count + 1, 3, 3))
        jacobian[:, 2, 2] = 1.0
        return jacobian

    def wrench(self, body: int, q: Array, force: Array) -> tuple[Array, Array]:
        """Return (Q_x, Q_y, 0) and (0, 0, Q_φ)."""
        return np.array([force[0], force[1], 0.0]), np.array([0.0, 0.0, force[2]])

    def _gravity_force(self) -> Array:
        force = np.zeros((self.count, 3))
        for n, body in enumerate(self.bodies):
            force[n] = body.mass * (self.system.gravity @ _LIFT)
        return force.ravel()
