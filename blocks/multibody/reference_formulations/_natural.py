"""Natural coordinates [O 2.3-2.4]: 12 for each body, with a constant mass matrix.

q = (g, a, b, c): the center of mass g and the tips of three unit vectors U = a - g, V = b - g,
W = c - g, the axes of the body. A point s = (x, y, z) is at C q with the constant matrix
C = [(1-x-y-z) I | x I | y I | z I] [O 2.12], a direction at D q with D = [-(x+y+z) I | x I | y I |
z I]. Six rows keep the axes of each body orthonormal [O 2.33].
"""

from __future__ import annotations

import numpy as np

from ....errors import DiagramError
from ..equations._model import AbstractModel
from ..equations._shapes import Field
from ..system._rotations import Array, skew

_EYE = np.eye(3)


def mass_block(mass: float, inertia: Array) -> Array:
    """Return N of M = N ⊗ I3: Lᵀ diag(m, P) L with P = ½ tr(I) 1 - I, the integral of ρ x xᵀ.

    It is [O 2.22-2.29] with its first row corrected.
    """
    second = 0.5 * np.trace(inertia) * _EYE - inertia
    full = np.zeros((4, 4))
    full[0, 0] = mass
    full[1:, 1:] = second
    left = np.eye(4)
    left[1:, 0] = -1.0
    result: Array = left.T @ full @ left
    return result


class NaturalModel(AbstractModel):
    """A system in natural coordinates."""

    width = 12

    def _start(self) -> tuple[Array, Array]:
        self._refuse_euler_parameters()
        q, v = np.zeros((2, self.count, 4, 3))
        for n, body in enumerate(self.bodies):
            turning = skew(body.angular_velocity)
            q[n, 0] = body.position + body.rotation @ body.com
            v[n, 0] = body.velocity + turning @ body.rotation @ body.com
            q[n, 1:] = q[n, 0] + body.rotation.T
            v[n, 1:] = v[n, 0] + (turning @ body.rotation).T
        self._mass = np.zeros((self.n, self.n))
        for n, body in enumerate(self.bodies):
            own = slice(12 * n, 12 * n + 12)
            self._mass[own, own] = np.kron(mass_block(body.mass, body.inertia), _EYE)
        self._constant = self._coefficients(self.shapes.place, self.shapes.flag)
        self._ground = np.concatenate([np.zeros(3), _EYE.ravel()])
        return q.ravel(), v.ravel()

    def _refuse_euler_parameters(self) -> None:
        """Raise if a constraint is on Euler parameters, which no item C q or D q is."""
        for item in self.system.constraints:
            for term in item.terms:
                if term.joint.coordinates[term.coordinate].kind == "euler":
                    raise DiagramError(
                        f"`{item.name}` is a constraint on Euler parameters, which natural "
                        f"coordinates do not have: take coordinates='euler'."
                    )

    def _base_scalars(self) -> list[tuple[int, float, str]]:
        rows = []
        for n, body in enumerate(self.bodies):
            axes = [self.shapes.direction(n, axis) for axis in _EYE]
            for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0)):
                scalar = self.shapes.product((axes[i], 0), (axes[j], 0))
                rows.append((scalar, float(i == j), f"{body.name}: {'UVW'[i]}·{'UVW'[j]}"))
        return rows

    @staticmethod
    def _coefficients(place: Array, flag: Array) -> Array:
        """Return C or D of every item: (items, 3, 12)."""
        numbers = np.concatenate([(flag - place.sum(1))[:, None], place], axis=1)
        result: Array = (numbers[:, None, :, None] * _EYE[None, :, None, :]).reshape(-1, 3, 12)
        return result

    def _padded(self, q: Array, ground: Array) -> Array:
        own: Array = np.vstack([self.blocks(q), ground])[self.shapes.body]
        return own[:, :, None]

    def _field(self, t: float, q: Array, v: Array) -> Field:
        place, rate, acceleration = self.shapes.places(t)
        none = np.zeros(place.shape)
        own = self._padded(q, self._ground)
        if rate is None or acceleration is None:
            return Field((self._constant @ own)[:, :, 0], self._constant, none, none)
        still = np.zeros(len(place))
        c = self._coefficients(place, self.shapes.flag)
        c_v = self._coefficients(rate, still)
        c_a = self._coefficients(acceleration, still)
        moving = self._padded(v, np.zeros(12))
        rest = c_a @ own + 2.0 * c_v @ moving
        return Field((c @ own)[:, :, 0], c, (c_v @ own)[:, :, 0], rest[:, :, 0])

    def mass(self, q: Array) -> Array:
        """Return M, which is constant."""
        return self._mass

    def _axes(self, q: Array) -> Array:
        own = q.reshape(-1, 4, 3)
        axes = own[:, 1:] - own[:, :1]
        return np.concatenate([axes, _EYE[None]])

    def rotations(self, q: Array) -> Array:
        """Return [U V W]."""
        return self._axes(q).transpose(0, 2, 1)

    def spins(self, q: Array) -> Array:
        """Return the Jacobian of ω = ½ (U × U̇ + V × V̇ + W × Ẇ)."""
        axes = self._axes(q)
        jacobian = np.zeros((self.count + 1, 3, 12))
        for n, row in enumerate(axes):
            blocks = [0.5 * skew(axis) for axis in row]
            jacobian[n] = np.hstack([-blocks[0] - blocks[1] - blocks[2], *blocks])
        return jacobian

    def wrench(self, body: int, q: Array, force: Array) -> tuple[Array, Array]:
        """Return the sum of the blocks, and U × Q_a + V × Q_b + W × Q_c."""
        blocks = force.reshape(4, 3)
        torque = np.cross(self._axes(q)[body], blocks[1:]).sum(0)
        return blocks.sum(0), torque

    def _gravity_force(self) -> Array:
        force = np.zeros((self.count, 12))
        for n, body in enumerate(self.bodies):
            force[n, :3] = body.mass * self.system.gravity
        return force.ravel()
