"""What is measured of a motion, alike for all participants: closure, energy, final positions.

Of a free body also the angular momentum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mechanisms.plants import ZERO, Array, Plant


class Meter:
    """Watches a plant step by step: largest gap of a joint, largest error of the energy balance."""

    def __init__(self, plant: Plant) -> None:
        self.plant = plant
        bodies, joints = plant.bodies, plant.joints
        self._mass = np.array([body.mass for body in bodies])
        self._inertia = np.array([body.inertia for body in bodies])
        # The ground is one more body, the last: index -1 finds it.
        self._first = np.array([joint.first for joint in joints])
        self._second = np.array([joint.second for joint in joints])
        self._at_first = np.array([joint.at_first for joint in joints])
        self._at_second = np.array([joint.at_second for joint in joints])
        axes = np.array(
            [joint.axis if joint.kind == "cylindrical" else ZERO for joint in joints]
        ).reshape(-1, 3)
        length = np.linalg.norm(axes, axis=1, keepdims=True)
        self._free = axes / np.where(length > 0, length, 1)
        """Directions, in axes of the first body, in which a gap is none."""
        self._angle = self._turned = 0.0
        self._energy: float | None = None
        self._momentum: Array | None = None
        self.closure = 0.0
        self.drift = 0.0
        self.momentum_drift = 0.0
        """Of the angular momentum about the origin, relative; only of what no joint holds."""

    def see(self, p: Array, R: Array, v: Array, w: Array) -> None:
        """Look at one instant: positions, rotations and velocities of all bodies, in the world.

        Velocities `v` are of the centers of mass. Energies are compared with those of the first
        instant seen, plus the work of the torque.
        """
        if self.plant.joints:
            self.closure = max(self.closure, self._largest_gap(p, R))
        else:
            self._follow_momentum(p, R, v, w)
        energy = self._balance(p, R, v, w)
        if self._energy is None:
            self._energy = energy
        self.drift = max(self.drift, abs(energy - self._energy))

    def _largest_gap(self, p: Array, R: Array) -> float:
        p_all = np.vstack([p, np.zeros(3)])
        R_all = np.concatenate([R, np.eye(3)[None]])

        def points(body: Array, local: Array) -> Array:
            where: Array = p_all[body] + np.einsum("ijk,ik->ij", R_all[body], local)
            return where

        gap = points(self._second, self._at_second) - points(self._first, self._at_first)
        free = np.einsum("ijk,ik->ij", R_all[self._first], self._free)
        gap -= free * np.sum(gap * free, axis=1, keepdims=True)
        return float(np.linalg.norm(gap, axis=1).max())

    def _follow_momentum(self, p: Array, R: Array, v: Array, w: Array) -> None:
        spin = np.einsum("ijk,ik->ij", R, self._inertia * np.einsum("ikj,ik->ij", R, w))
        momentum = np.sum(spin + np.cross(p, self._mass[:, None] * v), axis=0)
        if self._momentum is None:
            self._momentum = momentum
        apart = float(np.linalg.norm(momentum - self._momentum) / np.linalg.norm(self._momentum))
        self.momentum_drift = max(self.momentum_drift, apart)

    def _balance(self, p: Array, R: Array, v: Array, w: Array) -> float:
        """Give kinetic and potential energy less the work of the torque so far."""
        w_body = np.einsum("ikj,ik->ij", R, w)
        kinetic = (self._mass @ np.sum(v**2, axis=1) + np.sum(self._inertia * w_body**2)) / 2
        potential = -self._mass @ (p @ np.array(self.plant.gravity))
        n = np.array(self.plant.normal)
        if self.plant.torque:
            # The angle of the first body about the normal, with its turns.
            u = np.roll(n, 1)
            turned = R[0] @ u
            angle = float(np.arctan2(np.dot(np.cross(u, turned), n), np.dot(u, turned)))
            self._turned += (angle - self._angle + np.pi) % (2 * np.pi) - np.pi
            self._angle = angle
        return float(kinetic + potential - self.plant.torque * self._turned)

    def answer(self, p: Array, R: Array) -> dict[str, Any]:
        """Give what is reported of a run that ended here."""
        return {
            "closure_m": self.closure,
            "energy_drift_J": self.drift,
            "momentum_drift": self.momentum_drift,
            "points": final_points(self.plant, p, R),
        }


def final_points(plant: Plant, p: Array, R: Array) -> dict[str, list[float]]:
    """Give the places of the named points of a plant."""
    return {
        name: [float(x) for x in p[body] + R[body] @ np.array(local)]
        for name, (body, local) in plant.points.items()
    }
