"""Reference models with the velocities of bodies as unknowns, for analyses.

u holds the velocity of the center of mass and the angular velocity of each body, in world axes: six
components, or three for planar systems (vx, vy, φ̇). With the coordinates q of
`reference_formulations` (position and Euler parameters, or x, y, φ) q̇ = N(q) u, and

    M_u = Nᵀ M N,   Q_u = Nᵀ Q,   Φ_u = Φ_q N,   Φ_u u = -Φ_t,   Φ_u u̇ = γ

with the same γ, because 2 G Ṅ u = 0. Only rows of joints and drivers remain: the update
p ← exp(δπ / 2) p preserves the norm of the Euler parameters.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..elements._element import Element
from ..equations._euler_parameters import EulerModel, transformations
from ..equations._model import AbstractModel
from ..equations._planar import PlanarModel
from ..joints._joint import Joint, joint_frames
from ..joints._revolute import REVOLUTE
from ..system._bodies import Body
from ..system._rotations import Array

if TYPE_CHECKING:
    from ..system._system import System

RANK = 1e-8
"""Singular values below this part of the largest one count as 0."""


@dataclass(frozen=True, slots=True, eq=False)
class SpeedEquations:
    """M_u, Q_u, Φ, Φ_u, Φ_t and γ at one state."""

    mass: Array
    force: Array
    phi: Array
    jacobian: Array
    phi_t: Array
    gamma: Array


@dataclass(frozen=True, slots=True, eq=False)
class BodyMotion:
    """The frame of one body, as the description has it: p_WB, R_WB, v_WB and ω_WB."""

    name: str
    position: Array
    rotation: Array
    velocity: Array
    angular_velocity: Array


@dataclass(frozen=True, slots=True, eq=False)
class CoordinateMotion:
    """A joint coordinate, its rate, its acceleration, and its Jacobian over u."""

    value: float
    rate: float
    acceleration: float
    jacobian: Array


class Manifold(AbstractModel):
    """A model in terms of body velocities, with all joint coordinates."""

    speeds_each: int
    """Speeds of one body."""

    @property
    def size(self) -> int:
        """Return the length of u."""
        return self.speeds_each * self.count

    def _base_scalars(self) -> list[tuple[int, float, str]]:
        # Called while scalars are still being collected: joint coordinates become some of them.
        self._coordinates = {
            (joint.name, number): self.shapes.coordinate(joint, number)
            for joint in self.system.joints
            for number in range(len(joint.coordinates))
        }
        return super()._base_scalars()

    def hold(self, t: float) -> None:
        """Let markers that move by a law stand where time t puts them, from now on."""
        self.shapes.place = self.shapes.places(t)[0]
        self.shapes.moving = []

    def basis(self, q: Array) -> Array:
        """Return N."""
        return np.eye(self.n)

    def speeds(self, q: Array, v: Array) -> Array:
        """Return u of q̇."""
        return v.copy()

    def move(self, q: Array, by: Array) -> Array:
        """Return q moved by δr and turned by δπ of each body, in world axes."""
        return q + by

    def turn(self, directions: Array, u: Array) -> Array:
        """Return ω × δπ of every body for each column of displacements, and 0 for δr."""
        return np.zeros_like(directions)

    def equations(self, t: float, q: Array, u: Array, *, loads: bool = True) -> SpeedEquations:
        """Return the equations of motion in speeds, without rows of bodies."""
        n = self.basis(q)
        e = self.evaluate(t, q, n @ u, loads=loads)
        own = slice(self.base_rows, None)
        return SpeedEquations(
            n.T @ e.mass @ n,
            n.T @ e.force,
            e.phi[own],
            e.jacobian[own] @ n,
            e.phi_t[own],
            e.gamma[own],
        )

    def closure(self, t: float, q: Array, *, rates: bool = True) -> tuple[Array, Array]:
        """Return Φ and Φ_u of joints and drivers; see `constraints`."""
        phi, jacobian = self.constraints(t, q, rates=rates)
        return phi[self.base_rows :], jacobian[self.base_rows :] @ self.basis(q)

    def rows(self, name: str) -> slice:
        """Return the rows of a joint or driver in Φ_u."""
        found = self.joint_rows[name]
        return slice(found.start - self.base_rows, found.stop - self.base_rows)

    def multipliers(self, own: Array) -> Array:
        """Return λ with zeros for the rows of bodies."""
        return np.concatenate([np.zeros(self.base_rows), own])

    def coordinates(
        self, t: float, q: Array, u: Array, u_t: Array
    ) -> dict[tuple[str, int], CoordinateMotion]:
        """Return how every joint coordinate moves, by joint and number; angles within ±π."""
        n = self.basis(q)
        scalars = self._scalars(t, q, n @ u)
        found = {}
        for key, number in self._coordinates.items():
            k = self.shapes.scalar(number)
            row = scalars.jacobian[k] @ n
            found[key] = CoordinateMotion(
                float(scalars.value[k]),
                float(scalars.rate[k]),
                float(row @ u_t + scalars.rest[k]),
                row,
            )
        return found

    def twist(self, body: Body, u: Array) -> tuple[Array, Array]:
        """Return velocity of the center of mass and angular velocity (or the like) of one body."""
        own = u[self.speeds_each * body.index : self.speeds_each * (body.index + 1)]
        if self.system.planar:
            return np.array([own[0], own[1], 0.0]), np.array([0.0, 0.0, own[2]])
        return own[:3].copy(), own[3:].copy()

    def body_motion(self, q: Array, u: Array) -> tuple[BodyMotion, ...]:
        """Return the frame of each body and how it moves."""
        rotations = self.rotations(q)
        made = []
        for body in self.bodies:
            rotation = rotations[body.index]
            arm = rotation @ body.com
            velocity, omega = self.twist(body, u)
            made.append(
                BodyMotion(
                    body.name,
                    self.center(body.index, q) - arm,
                    rotation,
                    velocity - np.cross(omega, arm),
                    omega,
                )
            )
        return tuple(made)


class SpatialManifold(Manifold, EulerModel):
    """Bodies in space."""

    speeds_each = 6

    def basis(self, q: Array) -> Array:
        """Return N: ṙ = v, ṗ = ½ Eᵀ ω."""
        e, _ = transformations(self.blocks(q)[:, 3:])
        made = np.zeros((self.count, 7, self.count, 6))
        every = np.arange(self.count)
        made[every, :3, every, :3] = np.eye(3)
        made[every, 3:, every, 3:] = 0.5 * e.transpose(0, 2, 1)
        return made.reshape(self.n, self.size)

    def speeds(self, q: Array, v: Array) -> Array:
        """Return u: ω = 2 E ṗ."""
        rates = self.blocks(v)
        e, _ = transformations(self.blocks(q)[:, 3:])
        omega = 2.0 * (e @ rates[:, 3:, None])[:, :, 0]
        return np.hstack([rates[:, :3], omega]).ravel()

    def move(self, q: Array, by: Array) -> Array:
        """Return r + δr and exp(δπ / 2) p, of length 1."""
        old, step = self.blocks(q), by.reshape(self.count, 6)
        half = 0.5 * np.linalg.norm(step[:, 3:], axis=1)
        # sin(x) / x, which numpy defines with π.
        e = 0.5 * np.sinc(half / np.pi)[:, None] * step[:, 3:]
        e0, p0, p = np.cos(half)[:, None], old[:, 3:4], old[:, 4:]
        turned = np.hstack(
            [
                e0 * p0 - (e * p).sum(1)[:, None],
                e0 * p + p0 * e + np.cross(e, p),
            ]
        )
        turned /= np.linalg.norm(turned, axis=1)[:, None]
        moved: Array = np.hstack([old[:, :3] + step[:, :3], turned]).ravel()
        return moved

    def turn(self, directions: Array, u: Array) -> Array:
        """Return ω × δπ."""
        blocks = directions.reshape(self.count, 6, -1)
        turned = np.zeros_like(blocks)
        turned[:, 3:] = np.cross(u.reshape(self.count, 6)[:, 3:, None], blocks[:, 3:], axis=1)
        return turned.reshape(directions.shape)


class PlanarManifold(Manifold, PlanarModel):
    """Bodies in the plane."""

    speeds_each = 3


def make_manifold(system: System) -> Manifold:
    """Return the model of a system."""
    return PlanarManifold(system) if system.planar else SpatialManifold(system)


def make_kinematic_model(system: System) -> Manifold:
    """Return the model of the bodies and joints alone: some forces are known to the engine only.

    A bearing held by a constraint is replaced by a hinge of the same name.
    """
    held = [item for item in system.elements if item.row_count]
    if held:
        system = copy.copy(system)
        system._parts = {**system._parts, **{item.name: _hinge(item) for item in held}}
    model = make_manifold(system)
    model.loads.elements = ()
    return model


def _hinge(element: Element) -> Joint:
    assert element.ends is not None
    ends = element.ends[1], element.ends[0]
    frames = joint_frames(REVOLUTE.type_in(planar=True), *ends)
    return Joint(element.name, REVOLUTE, *ends, *frames)


def split(jacobian: Array) -> tuple[int, Array, Array]:
    """Return the rank of Φ_u, a basis of the motions it allows and one of ker Φ_uᵀ, as columns."""
    left, sigma, right = np.linalg.svd(jacobian)
    rank = int((sigma > RANK * sigma.max(initial=0.0)).sum())
    return rank, right[rank:].T, left[:, rank:]


def least_squares(matrix: Array, right: Array) -> Array:
    """Return the least solution of least error."""
    if not matrix.size:
        return np.zeros(matrix.shape[1])
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=RANK)[0], dtype=np.float64)


def close(
    model: Manifold, t: float, q: Array, *, tolerance: float = 1e-12, iterations: int = 20
) -> tuple[Array, float]:
    """Return q with Φ = 0 near q by Gauss–Newton, and the error that is left."""
    phi, jacobian = model.closure(t, q, rates=False)
    error = float(np.abs(phi).max(initial=0.0))
    for _ in range(iterations):
        if error <= tolerance or not np.isfinite(error):
            break
        q = model.move(q, -least_squares(jacobian, phi))
        phi, jacobian = model.closure(t, q, rates=False)
        error = float(np.abs(phi).max(initial=0.0))
    return q, error
