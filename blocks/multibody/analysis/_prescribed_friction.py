"""Friction from joint reactions in a prescribed motion.

The motion is known, so that the slip of every bearing is. Normal loads follow from reactions, and
these from friction: Φ_uᵀ λ = Q_u + Q_f(λ) - M_u u̇, solved by iteration as in the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ....errors import DiagramError, name_list
from ..elements.friction._joint_friction import JointFriction
from ..elements.friction._joint_stiction import JointStiction
from ..elements.friction._pivots import pivot_efforts
from ..joints._joint import Joint
from ..system._laws import AbstractLaw
from ..system._rotations import Array

if TYPE_CHECKING:
    from ._manifold import CoordinateMotion, Manifold

_PASSES = 1000
_TOLERANCE = 1e-11
"""Of the largest load: multipliers by least squares have a rounding error of about 1e-13."""
_LEAST_LOAD = 1e-9
"""In N: an oil film has friction without a load, of which its coefficient is infinite."""


class PrescribedFriction:
    """Takes friction from reactions out of the loads of a model, and finds it instead.

    Parameters
    ----------
    model
        Its other loads remain.
    """

    def __init__(self, model: Manifold) -> None:
        self.model = model
        self._elements = [
            item for item in model.loads.elements if isinstance(item, JointFriction | JointStiction)
        ]
        model.loads.elements = tuple(
            item for item in model.loads.elements if item not in self._elements
        )

    def find(
        self,
        t: float,
        q: Array,
        u: Array,
        u_t: Array,
        solve: Callable[[Array], Array],
    ) -> Array:
        """Return the multipliers of the motion at a time.

        Parameters
        ----------
        t, q, u, u_t
            The motion.
        solve
            Returns the multipliers for given forces in speeds, in addition to the other loads.

        Raises
        ------
        DiagramError
            If friction and reactions make each other grow.
        """
        lam = solve(np.zeros(self.model.size))
        if not self._elements:
            return lam
        moving = self.model.coordinates(t, q, u, u_t)
        shares = [self._unit_efforts(item, moving, u) for item in self._elements]
        if not any(slip for slip, *_ in shares):
            return lam
        self._require_pivots()
        places = {
            body.name: (body.position, body.rotation) for body in self.model.body_motion(q, u)
        }
        places["ground"] = (np.zeros(3), np.eye(3))
        # All is linear but for the roots in the loads.
        base = self._parts(t, q, lam, places)
        more = [solve(unit) - lam for _, unit, _ in shares]
        response = np.array([
            self._parts(t, q, change, places, {(item.joint.name, item.coordinate): effort})
            for item, change, (_, _, effort) in zip(self._elements, more, shares, strict=True)
        ])  # fmt: skip
        loads = _loads(self._elements, base)
        strengths = np.zeros(len(loads))
        for _ in range(_PASSES):
            before = loads.copy()
            for n, item in enumerate(self._elements):  # each with the newest of the others
                strengths[n] = _strength(item, t, shares[n][0], loads[n])
                loads = _loads(self._elements, base + np.tensordot(strengths, response, 1))
            if not np.isfinite(loads).all() or loads.max() > 1e100:
                break
            if np.abs(loads - before).max() <= _TOLERANCE * loads.max():
                changed: Array = lam + strengths @ np.array(more)
                return changed
        names = ", ".join(f"`{item.name}`" for item in self._elements)
        raise DiagramError(
            f"friction {names} and the reactions that it causes have no end at t = {t:g} s: each "
            f"makes the other grow. A joint locks itself: take a smaller coefficient, or a longer "
            f"bearing."
        )

    def _require_pivots(self) -> None:
        """Refuse efforts that tilt the pivots of a universal joint and are not known here."""
        system = self.model.system
        known = {driver.name for driver in system.drivers} | {e.name for e in self._elements}
        for item in self._elements:
            if not item.joint.has_pivots:
                continue
            names = [name for name in pivot_efforts(system, item.joint) if name not in known]
            if names:
                raise DiagramError(
                    f"friction `{item.name}` follows from the moments that tilt the pivots of "
                    f"`{item.joint.name}`, a universal joint: kinematics() and inverse_dynamics() "
                    f"do not know those of {name_list(f'`{name}`' for name in names)}. Replace the "
                    f"joint by two revolutes with a body of mass 0 between them, or take a run."
                )

    def _efforts_of_drivers(self, lam: Array) -> dict[tuple[str, int], float]:
        """Return the efforts of drivers on joint coordinates, -λ."""
        found: dict[tuple[str, int], float] = {}
        for driver in self.model.system.drivers:
            effort = -float(lam[self.model.rows(driver.name)][0])
            key = driver.joint.name, driver.coordinate
            found[key] = found.get(key, 0.0) + effort
        return found

    def _parts(
        self,
        t: float,
        q: Array,
        lam: Array,
        places: dict[str, tuple[Array, Array]],
        own: Mapping[tuple[str, int | None], float] | None = None,
    ) -> Array:
        """Return what presses in each bearing: F_x, F_y, M_x, M_y, M_z about its middle.

        In a spherical joint F and two zeros. `own`: the efforts of friction on coordinates, which
        tilt the other pivots of universal joints.
        """
        pivots = any(item.joint.has_pivots for item in self._elements)
        efforts = self._efforts_of_drivers(lam) if pivots else {}
        for (name, number), effort in (own or {}).items():
            if number is not None:
                efforts[name, number] = efforts.get((name, number), 0.0) + effort
        reactions = self.model.reactions(t, q, self.model.multipliers(lam))
        rows = []
        for item in self._elements:
            joint: Joint = item.joint
            ends = (joint.first, joint.frame_i), (joint.second, joint.frame_j)
            points = [
                places[marker.body.name][0] + places[marker.body.name][1] @ marker.place(t)[0]
                for marker, _ in ends
            ]
            middle = 0 if item.middle == "first" else 1
            marker, frame = ends[middle]
            axes = places[marker.body.name][1] @ frame
            reaction = reactions[joint.name]
            force = reaction.force_j
            torque = reaction.torque_j + np.cross(points[1] - points[middle], force)
            if joint.is_ball:
                rows.append([*force, 0.0, 0.0])
                continue
            if joint.has_pivots:
                other = 1 - middle
                across, frame = ends[other]
                along = (places[across.body.name][1] @ frame)[:, 2]
                torque = torque + efforts.get((joint.name, other), 0.0) * along
            z = 0 if joint.first.body.system.planar and _slides(joint) else 2
            x, y = axes[:, (z + 1) % 3], axes[:, (z + 2) % 3]
            rows.append([x @ force, y @ force, x @ torque, y @ torque, axes[:, z] @ torque])
        return np.array(rows)

    def _unit_efforts(
        self,
        item: JointFriction | JointStiction,
        moving: dict[tuple[str, int], CoordinateMotion],
        u: Array,
    ) -> tuple[float, Array, float]:
        """Return the slip of the surfaces, and for a friction of 1 N the forces in speeds.

        The third is the effort on the coordinate of a pivot.
        """
        if item.joint.is_ball:
            return self._unit_torque(item, u)
        arms = {"length": 1.0, "angle": 0.5 * (item.diameter or 0.0)}
        rates = []
        numbers = (
            (item.coordinate,)
            if item.joint.has_pivots and item.coordinate is not None
            else range(len(item.joint.coordinates))
        )
        for number in numbers:
            of = item.joint.coordinates[number]
            motion = moving[item.joint.name, number]
            rates.append((arms[of.kind] * motion.rate, arms[of.kind] * motion.jacobian))
        slip = float(np.linalg.norm([rate for rate, _ in rates]))
        if slip == 0.0:
            return 0.0, np.zeros(self.model.size), 0.0
        smooth = np.tanh(slip / item.smoothing_speed) if isinstance(item, JointFriction) else 1.0
        unit = sum((rate * row for rate, row in rates), np.zeros(self.model.size))
        effort = -smooth / slip * rates[0][0] * arms["angle"]
        return slip, -smooth / slip * unit, effort

    def _unit_torque(
        self, item: JointFriction | JointStiction, u: Array
    ) -> tuple[float, Array, float]:
        """Return the same of a spherical joint: a torque against ω of the second body."""
        assert isinstance(item, JointFriction)
        ends = [marker.body for marker in (item.joint.first, item.joint.second)]
        spins = [np.zeros(3) if b.is_ground else self.model.twist(b, u)[1] for b in ends]
        omega, forces = spins[1] - spins[0], np.zeros(self.model.size)
        rate, radius = float(np.linalg.norm(omega)), 0.5 * (item.diameter or 0.0)
        if rate == 0.0:
            return 0.0, forces, 0.0
        slip = rate * radius
        torque = -radius * np.tanh(slip / item.smoothing_speed) * omega / rate
        for body, sign in zip(ends, (-1.0, 1.0), strict=True):
            if not body.is_ground:
                at = self.model.speeds_each * body.index
                forces[at + 3 : at + 6] += sign * torque
        return slip, forces, 0.0


def _slides(joint: Joint) -> bool:
    """Return whether a joint slides and does not turn."""
    return all(of.kind == "length" for of in joint.coordinates)


def _loads(elements: Sequence[JointFriction | JointStiction], parts: Array) -> Array:
    """Return the normal loads; see `JointFriction`."""
    found = []
    for item, row in zip(elements, parts, strict=True):
        if item.joint.is_ball:
            found.append(float(np.linalg.norm(row)))
            continue
        load = float(np.hypot(row[0], row[1]))
        if item.length is not None:
            load += 2.0 / item.length * float(np.hypot(row[2], row[3]))
        guide = _slides(item.joint) and not item.joint.first.body.system.planar
        if guide and item.diameter is not None:
            load += 2.0 / item.diameter * abs(float(row[4]))
        found.append(load)
    return np.array(found)


def _strength(item: JointFriction | JointStiction, t: float, slip: float, load: float) -> float:
    if not isinstance(item.coefficient, AbstractLaw):
        return item.coefficient * load
    load = max(load, _LEAST_LOAD)
    return load * item.coefficient.evaluate(t=t, v=slip, N=load)
