"""Euler parameters [V 1.1-1.4]: 7 coordinates for each body, q = (r, p), p of length 1.

G = [-e, -ẽ + e0 I] [V 1.6]; ω in body axes is L ṗ with L = 2 G / (pᵀp), where the division keeps
everything exact also where p has drifted off the unit sphere. A point s of a body has the Jacobian
[I | -A s̃ L] and the rest A (ω̃² s + ω̇_rest × s), ω̇_rest = -2 (p·ṗ / p·p) ω, which is 0 on the
sphere: the rows of [V 1.24-1.41] follow from them.

The mass matrix diag(m I, Lᵀ J L) [V 1.53] has rank 6 of 7: a change of p along p turns nothing.
"""

from __future__ import annotations

import numpy as np

from ..system._rotations import Array, quaternion_from_rotation
from ._model import AbstractModel
from ._shapes import Field


def skews(a: Array) -> Array:
    """Return ã of every row."""
    made = np.zeros((len(a), 3, 3))
    made[:, 0, 1], made[:, 0, 2], made[:, 1, 2] = -a[:, 2], a[:, 1], -a[:, 0]
    made[:, 1, 0], made[:, 2, 0], made[:, 2, 1] = a[:, 2], -a[:, 1], a[:, 0]
    return made


def transformations(p: Array) -> tuple[Array, Array]:
    """Return E = [-e, ẽ + e0 I] and G = [-e, -ẽ + e0 I] of every row of p [V 1.5-1.6]."""
    e0, e = p[:, 0, None, None], p[:, 1:]
    turned, scaled = skews(e), e0 * np.eye(3)
    first = -e[:, :, None]
    return (
        np.concatenate([first, turned + scaled], axis=2),
        np.concatenate([first, scaled - turned], axis=2),
    )


class EulerModel(AbstractModel):
    """A system in Cartesian coordinates and Euler parameters."""

    width = 7

    def _start(self) -> tuple[Array, Array]:
        q, v = np.zeros((2, self.count, 7))
        for n, body in enumerate(self.bodies):
            p = quaternion_from_rotation(body.rotation)
            q[n] = [*(body.position + body.rotation @ body.com), *p]
            arm = np.cross(body.angular_velocity, body.rotation @ body.com)
            e, _ = transformations(p[None])
            v[n] = [*(body.velocity + arm), *(0.5 * e[0].T @ body.angular_velocity)]
        self._masses = np.array([body.mass for body in self.bodies])
        self._inertias = np.array([body.inertia for body in self.bodies])
        return q.ravel(), v.ravel()

    def _padded(self, q: Array) -> Array:
        ground = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
        return np.vstack([self.blocks(q), ground])

    def _turns(self, q: Array) -> tuple[Array, Array]:
        """Return A and L of each body and of the ground."""
        p = self._padded(q)[:, 3:]
        square = (p * p).sum(1)[:, None, None]
        e, g = transformations(p)
        return e @ g.transpose(0, 2, 1) / square, 2.0 * g / square

    def _spin(self, q: Array, v: Array, turn: Array) -> tuple[Array, Array]:
        """Return ω and ω̇_rest of each body and of the ground, in body axes."""
        p, p_v = self._padded(q)[:, 3:], np.zeros((self.count + 1, 4))
        p_v[:-1] = self.blocks(v)[:, 3:]
        omega = (turn @ p_v[:, :, None])[:, :, 0]
        growth = (p * p_v).sum(1) / (p * p).sum(1)
        return omega, -2.0 * growth[:, None] * omega

    def _field(self, t: float, q: Array, v: Array) -> Field:
        body, flag = self.shapes.body, self.shapes.flag
        place, rate, acceleration = self.shapes.places(t)
        rotation, turn = self._turns(q)
        omega, rest = self._spin(q, v, turn)
        a, spinning = rotation[body], skews(omega)
        jacobian = np.zeros((len(place), 3, 7))
        jacobian[:, :, :3] = flag[:, None, None] * np.eye(3)
        jacobian[:, :, 3:] = -a @ skews(place) @ turn[body]
        value = flag[:, None] * self._padded(q)[body, :3] + (a @ place[:, :, None])[:, :, 0]
        inner = (spinning @ spinning + skews(rest))[body] @ place[:, :, None]
        partial = np.zeros(place.shape)
        if rate is not None and acceleration is not None:
            partial = (a @ rate[:, :, None])[:, :, 0]
            inner = inner + 2.0 * spinning[body] @ rate[:, :, None] + acceleration[:, :, None]
        field = Field(value, jacobian, partial, (a @ inner)[:, :, 0])
        if self.shapes.euler:
            self._fill_euler(field, q, v)
        return field

    def _fill_euler(self, field: Field, q: Array, v: Array) -> None:
        """Put Euler parameters over their length into items: (e0, 0, 0) or (e1, e2, e3).

        As rotations they depend on the direction of p alone. With s = p·p and f = e s^(-1/2):
        f̈ = -ė s^(-3/2) ṡ + e (¾ s^(-5/2) ṡ² - ½ s^(-3/2) s̈), ṡ = 2 p·ṗ, s̈ = 2 ṗ·ṗ.
        """
        poses, rates = self.blocks(q)[:, 3:], self.blocks(v)[:, 3:]
        for item, part in self.shapes.euler.items():
            p, p_v = poses[self.shapes.body[item]], rates[self.shapes.body[item]]
            pick = np.zeros((3, 4))
            if part == 0:
                pick[0, 0] = 1.0
            else:
                pick[:, 1:] = np.eye(3)
            s, s_v, s_a = float(p @ p), 2.0 * float(p @ p_v), 2.0 * float(p_v @ p_v)
            field.value[item] = pick @ p * s**-0.5
            field.jacobian[item] = 0.0
            field.jacobian[item, :, 3:] = pick @ (np.eye(4) - np.outer(p, p) / s) * s**-0.5
            field.partial[item] = 0.0
            field.rest[item] = -(pick @ p_v) * s**-1.5 * s_v + pick @ p * (
                0.75 * s**-2.5 * s_v**2 - 0.5 * s**-1.5 * s_a
            )

    def _base_names(self) -> list[str]:
        return [f"{body.name}: p·p" for body in self.bodies]

    def _base(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Return p·p - 1, 2 p and -2 ṗ·ṗ."""
        p, p_v = self.blocks(q)[:, 3:], self.blocks(v)[:, 3:]
        jacobian = np.zeros((self.count, self.count, 7))
        jacobian[np.arange(self.count), np.arange(self.count), 3:] = 2.0 * p
        return (
            (p * p).sum(1) - 1.0,
            jacobian.reshape(self.count, self.n),
            -2.0 * (p_v * p_v).sum(1),
        )

    def mass(self, q: Array) -> Array:
        """Return M = diag(m I, Lᵀ J L), of rank 6 for each body."""
        _, turn = self._turns(q)
        turn = turn[:-1]
        mass = np.zeros((self.count, 7, self.count, 7))
        for n in range(self.count):
            mass[n, :3, n, :3] = self._masses[n] * np.eye(3)
            mass[n, 3:, n, 3:] = turn[n].T @ self._inertias[n] @ turn[n]
        return mass.reshape(self.n, self.n)

    def rotations(self, q: Array) -> Array:
        """Return A."""
        return self._turns(q)[0]

    def spins(self, q: Array) -> Array:
        """Return the Jacobian A L of ω in world axes."""
        rotation, turn = self._turns(q)
        return np.concatenate([np.zeros((self.count + 1, 3, 3)), rotation @ turn], axis=2)

    def wrench(self, body: int, q: Array, force: Array) -> tuple[Array, Array]:
        """Return f and A n with Q_p = Lᵀ n."""
        rotation, turn = self._turns(q)
        own = turn[body]
        torque = np.linalg.solve(own @ own.T, own @ force[3:])
        return force[:3].copy(), rotation[body] @ torque

    def _gravity_force(self) -> Array:
        force = np.zeros((self.count, 7))
        for n, body in enumerate(self.bodies):
            force[n, :3] = body.mass * self.system.gravity
        return force.ravel()

    def _gyroscopic(self, q: Array, v: Array) -> Array:
        """Return -Lᵀ (ω × J ω + J ω̇_rest): as 8 Ġᵀ J Ġ p [V 4.31], but for a part along p."""
        _, turn = self._turns(q)
        omega, rest = self._spin(q, v, turn)
        momentum = (self._inertias @ omega[:-1, :, None])[:, :, 0]
        torque = np.cross(omega[:-1], momentum) + (self._inertias @ rest[:-1, :, None])[:, :, 0]
        force = np.zeros((self.count, 7))
        force[:, 3:] = -(turn[:-1].transpose(0, 2, 1) @ torque[:, :, None])[:, :, 0]
        return force.ravel()
