"""What every method works on: the equations of motion of a system, in some set of coordinates.

M q̈ + Φ_qᵀ λ = Q with Φ(q, t) = 0, Φ_q q̇ + Φ_t = 0 and Φ_q q̈ = γ. The force of the constraints on
the system is -Φ_qᵀ λ.

In every set of coordinates a joint equation is made of dot products. `Shapes` lists the points and
directions fixed to bodies; a coordinate set provides only their position, their derivatives with
respect to q (Jacobian) and t (partial), and their acceleration for q̈ = 0 (rest). From
those follow Φ, Φ_q, Φ_t and γ of all rows, drivers and joint coordinates alike:

    x · y          Jacobian yᵀ x_q + xᵀ y_q,  rest  y · x_rest + x · y_rest + 2 ẋ · ẏ
    atan2(s, c)    Jacobian (c s_q - s c_q) / (s² + c²),  rest similarly, less 2 θ̇ (c ċ + s ṡ) / (…)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..elements._function_constraint import FunctionConstraint
from ..elements._rolling import RollingRow
from ..system._laws import AbstractLaw
from ..system._rotations import Array
from ._loads import Loads
from ._rolling import RollingEquation
from ._shapes import Field, Scalars, Shapes

if TYPE_CHECKING:
    from ..system._system import System


@dataclass(frozen=True, slots=True, eq=False)
class Equations:
    """The equations of motion at one state (t, q, v).

    Attributes
    ----------
    mass, force
        M and Q, with the gyroscopic terms in Q.
    phi, jacobian, phi_t, gamma
        Φ, Φ_q, Φ_t and γ, one row for each constraint.
    rate
        Φ̇ = Φ_q v + Φ_t.
    power
        Of all applied forces but gravity, in W.
    """

    mass: Array
    force: Array
    phi: Array
    jacobian: Array
    phi_t: Array
    gamma: Array
    rate: Array
    power: float = 0.0


class Model(Protocol):
    """What a method needs of a model; `AbstractModel` makes one of a `System`."""

    @property
    def base_rows(self) -> int:
        """How many rows, the first ones, tie the coordinates of each body to each other."""

    def evaluate(self, t: float, q: Array, v: Array, *, loads: bool = True) -> Equations:
        """Return the equations of motion at a state; `loads=False` skips Q for geometry alone."""

    def constraints(self, t: float, q: Array) -> tuple[Array, Array]:
        """Return Φ and Φ_q."""


@dataclass(frozen=True, slots=True)
class JointReaction:
    """What a joint does to its two bodies, in world axes: N at the markers, N m about them."""

    force_i: Array
    torque_i: Array
    force_j: Array
    torque_j: Array


class AbstractModel(ABC):
    """The equations of motion of a `System`; the center of mass is the origin of every body.

    Rows: first those that tie the coordinates of each body (base rows), then joints in order of
    making, then drivers and couplings. Angles in springs, stops and couplings are unwrapped from
    call to call, so that a model follows one motion at a time; `reset` forgets.

    Attributes
    ----------
    system
        What it was made of.
    q0, v0
        Coordinates and their rates in the given pose, before assembly.
    row_names
        Such as ``crank: U·U``, ``main: S x``, ``drive``.
    joint_rows
        The rows of each joint and driver, by name.
    base_rows
        How many of the first rows belong to bodies.
    """

    width: int
    """Coordinates of one body."""

    def __init__(self, system: System) -> None:
        system.validate()
        self.system = system
        self.bodies = system.bodies
        self.count = len(self.bodies)
        self.n = self.width * self.count
        self.shapes = Shapes(system)
        self.row_names = self._base_names()
        self._row_scalars: list[int] = []
        constants: list[float] = []
        for scalar, constant, name in self._base_scalars():
            self._add_row(scalar, name)
            constants.append(constant)
        self.base_rows = len(self.row_names)
        self.joint_rows: dict[str, slice] = {}
        for joint in system.joints:
            start = len(self.row_names)
            for row in joint.rows:
                scalar = self.shapes.row(joint, row)
                label = row.kind + (f" {'xyz'[row.component]}" if row.kind == "S" else "")
                axes = f"({row.a}, {row.b or 'd'})" if row.a else ""
                self._add_row(scalar, f"{joint.name}: {label}{axes}")
                constants.append(joint.length**2 if row.kind == "SS" and joint.length else 0.0)
            self.joint_rows[joint.name] = slice(start, len(self.row_names))
        self._laws: list[AbstractLaw] = []
        sums: list[tuple[int, list[tuple[int, float, float]]]] = []
        formulas: list[tuple[int, FunctionConstraint, list[tuple[int, float]]]] = []
        for item in system.constraints:
            terms = [
                (self.shapes.coordinate(term.joint, term.coordinate), term) for term in item.terms
            ]
            if isinstance(item, FunctionConstraint):
                places = [(n, term.joint.given_value(term.coordinate)) for n, term in terms]
                formulas.append((len(self._row_scalars), item, places))
            elif len(terms) > 1:
                given = [
                    (n, term.factor, term.joint.given_value(term.coordinate)) for n, term in terms
                ]
                sums.append((len(self._row_scalars), given))
            self.joint_rows[item.name] = slice(len(self.row_names), len(self.row_names) + 1)
            self._add_row(terms[-1][0], item.name)
            constants.append(0.0)
            self._laws.append(item.right_side)
        self.m = len(self.row_names)
        self._constants = np.array(constants)
        self.loads = Loads(system, self.shapes)
        rolls = [item for item in system.constraints if isinstance(item, RollingRow)]
        self._rolls = [
            (self.joint_rows[item.name].start - self.base_rows, RollingEquation(item, self.shapes))
            for item in rolls
        ]
        self.shapes.close()
        self._angular = np.array(self._row_scalars, dtype=int) < 0
        self._rows = np.array([self.shapes.scalar(k) for k in self._row_scalars], dtype=int)
        # Rows of couplings: of each coordinate its scalar, factor, whether it turns, given value.
        self._sums = [
            (row, [(self.shapes.scalar(n), factor, n < 0, value) for n, factor, value in terms])
            for row, terms in sums
        ]
        # Rows by formula: the formula, and of each coordinate the same but the factor.
        self._formulas = [
            (row, item, [(self.shapes.scalar(n), n < 0, value) for n, value in places])
            for row, item, places in formulas
        ]
        own = [row for row, _ in self._sums] + [row for row, _, _ in self._formulas]
        self._angular[own] = False
        self._angles: dict[int, float] = {}
        self._gravity = self._gravity_force()
        self.q0, self.v0 = self._start()

    def _add_row(self, scalar: int, name: str) -> None:
        self._row_scalars.append(scalar)
        self.row_names.append(name)

    # To be implemented by each set of coordinates.

    @abstractmethod
    def _start(self) -> tuple[Array, Array]:
        """Return q and v in the given pose."""

    @abstractmethod
    def _field(self, t: float, q: Array, v: Array) -> Field:
        """Return all points and directions, with width columns for the body each one is on."""

    @abstractmethod
    def mass(self, q: Array) -> Array:
        """Return M."""

    @abstractmethod
    def spins(self, q: Array) -> Array:
        """Return the Jacobian of ω in world axes of each body and the ground: (…, 3, width)."""

    @abstractmethod
    def rotations(self, q: Array) -> Array:
        """Return R of each body and of the ground."""

    @abstractmethod
    def wrench(self, body: int, q: Array, force: Array) -> tuple[Array, Array]:
        """Return force and torque about the center of mass, in world axes, of a Q of one body."""

    @abstractmethod
    def _gravity_force(self) -> Array:
        """Return the part of Q that is weight."""

    def _gyroscopic(self, q: Array, v: Array) -> Array | None:
        """Return the part of Q that is quadratic in v, or None for none."""
        return None

    def _base_scalars(self) -> list[tuple[int, float, str]]:
        """Return rows that are dot products of directions of one body, with their constants."""
        return []

    def _base_names(self) -> list[str]:
        """Return the names of base rows that are not dot products; `_base` gives them."""
        return []

    def _base(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Return Φ, Φ_q and γ of the rows in `_base_names`."""
        return np.zeros(0), np.zeros((0, self.n)), np.zeros(0)

    # What follows from it.

    def reset(self) -> None:
        """Forget the turns that angles have made."""
        self.loads.reset()
        self._angles.clear()

    def blocks(self, q: Array) -> Array:
        """Return q as one row for each body, without the ground."""
        return q.reshape(self.count, self.width)

    def _scalars(self, t: float, q: Array, v: Array) -> Scalars:
        return self.shapes.combine(self._field(t, q, v), v)

    def _residual(self, t: float, scalars: Scalars) -> Array:
        phi: Array = scalars.value[self._rows] - self._constants
        for row, terms in self._sums:
            phi[row] = sum(
                factor
                * (self._unwrapped(n, value, scalars.value[n]) if turns else scalars.value[n])
                for n, factor, turns, value in terms
            )
        for row, item, places in self._formulas:
            phi[row] = item.value(self._values(places, scalars), t)
        for k, law in enumerate(self._laws, len(self._rows) - len(self._laws)):
            phi[k] -= law.value(t)
        turn = self._angular
        phi[turn] = np.remainder(phi[turn] + np.pi, 2.0 * np.pi) - np.pi
        return phi

    def _unwrapped(self, scalar: int, given: float, value: float) -> float:
        """Return an angle of a coupling over all turns since the given pose."""
        last = self._angles.get(scalar, given)
        found = float(value + 2.0 * np.pi * round((last - value) / (2.0 * np.pi)))
        self._angles[scalar] = found
        return found

    def _values(self, places: list[tuple[int, bool, float]], scalars: Scalars) -> list[float]:
        """Return the coordinates of a formula, angles over all turns."""
        return [
            self._unwrapped(n, given, scalars.value[n]) if turns else float(scalars.value[n])
            for n, turns, given in places
        ]

    def _gradients(self, t: float, scalars: Scalars) -> list[tuple[list[float], float]]:
        """Return the derivatives of each formula by its coordinates and by time."""
        return [
            item.gradient(self._values(places, scalars), t) for _, item, places in self._formulas
        ]

    def _of_rows(self, of: Array, gradients: list[tuple[list[float], float]]) -> Array:
        """Return the values of scalars for the rows that use them."""
        found: Array = of[self._rows]
        for row, terms in self._sums:
            found[row] = sum(factor * of[n] for n, factor, _, _ in terms)
        for (row, _, places), (slopes, _) in zip(self._formulas, gradients, strict=True):
            found[row] = sum(slope * of[n] for (n, *_), slope in zip(places, slopes, strict=True))
        return found

    def constraints(self, t: float, q: Array, *, rates: bool = True) -> tuple[Array, Array]:
        """Return Φ and Φ_q; `rates=False` leaves out the rows of Φ_q that bind velocities alone."""
        field = self._field(t, q, np.zeros(self.n))
        scalars = self.shapes.combine(field, np.zeros(self.n))
        base, base_jacobian, _ = self._base(q, np.zeros(self.n))
        phi = self._residual(t, scalars)
        jacobian = self._of_rows(scalars.jacobian, self._gradients(t, scalars))
        for row, rolling in self._rolls:
            found = rolling.evaluate(self.shapes, field, np.zeros(self.n), self.spins(q))
            phi[row], jacobian[row] = found.phi, found.jacobian
            if rolling.item.binds_rates and not rates:
                jacobian[row] = 0.0
        return np.concatenate([base, phi]), np.concatenate([base_jacobian, jacobian])

    def evaluate(self, t: float, q: Array, v: Array, *, loads: bool = True) -> Equations:
        """Return the equations of motion at a state; `loads=False` skips Q for geometry alone."""
        field = self._field(t, q, v)
        scalars = self.shapes.combine(field, v)
        phi = self._residual(t, scalars)
        gradients = self._gradients(t, scalars)
        partial = self._of_rows(scalars.partial, gradients)
        gamma = -self._of_rows(scalars.rest, gradients)
        for (row, item, places), (_, by_time) in zip(self._formulas, gradients, strict=True):
            partial[row] += by_time
            jets = [
                (value, float(scalars.rate[n]), float(scalars.rest[n]))
                for value, (n, *_) in zip(self._values(places, scalars), places, strict=True)
            ]
            gamma[row] = -item.jet(jets, (t, 1.0, 0.0))[2]
        for k, law in enumerate(self._laws, len(self._rows) - len(self._laws)):
            _, rate, acceleration = law.jet(t)
            partial[k] -= rate
            gamma[k] += acceleration
        base, base_jacobian, base_gamma = self._base(q, v)
        of_rows = self._of_rows(scalars.jacobian, gradients)
        for row, rolling in self._rolls:
            found = rolling.evaluate(self.shapes, field, v, self.spins(q))
            phi[row], of_rows[row] = found.phi, found.jacobian
            partial[row], gamma[row] = found.partial, -found.rest
        jacobian = np.concatenate([base_jacobian, of_rows])
        phi_t = np.concatenate([np.zeros(base.size), partial])
        applied = self._applied(t, q, v, field, scalars) if loads else np.zeros(self.n)
        force = self._gravity + applied
        gyroscopic = self._gyroscopic(q, v)
        if gyroscopic is not None:
            force = force + gyroscopic
        return Equations(
            self.mass(q),
            force,
            np.concatenate([base, phi]),
            jacobian,
            phi_t,
            np.concatenate([base_gamma, gamma]),
            jacobian @ v + phi_t,
            float(applied @ v),
        )

    def _applied(self, t: float, q: Array, v: Array, field: Field, scalars: Scalars) -> Array:
        if not self.loads.elements:
            return np.zeros(self.n)
        force = np.zeros((self.count + 1, self.width))
        spins = self.spins(q)
        rates = np.zeros((self.count + 1, self.width))
        rates[:-1] = self.blocks(v)
        total = np.zeros(self.n)
        self.loads.add(t, field, scalars, spins, self.rotations(q), rates, force, total)
        result: Array = total + force[:-1].ravel()
        return result

    def forces(self, t: float, q: Array, v: Array) -> Array:
        """Return Q."""
        return self.evaluate(t, q, v).force

    def phi(self, q: Array, t: float) -> Array:
        """Return Φ."""
        return self.constraints(t, q)[0]

    def jacobian(self, q: Array, t: float) -> Array:
        """Return Φ_q."""
        return self.constraints(t, q)[1]

    def gamma(self, t: float, q: Array, v: Array) -> Array:
        """Return γ."""
        return self.evaluate(t, q, v).gamma

    def phi_t(self, q: Array, t: float) -> Array:
        """Return Φ_t."""
        return self.evaluate(t, q, np.zeros(self.n)).phi_t

    def marker(self, path: str, t: float, q: Array) -> Array:
        """Return p_WM of the marker ``body.marker``."""
        item = self.shapes.marker(path)
        value: Array = self._field(t, q, np.zeros(self.n)).value[item]
        return value

    def energy(self, q: Array, v: Array) -> float:
        """Return kinetic energy plus that of gravity, in J."""
        return float(0.5 * v @ self.mass(q) @ v - self._gravity @ q)

    def reactions(self, t: float, q: Array, lam: Array) -> dict[str, JointReaction]:
        """Return what each joint does to its bodies; those of a driver are in λ, effort = -λ."""
        field = self._field(t, q, np.zeros(self.n))
        _, jacobian = self.constraints(t, q)
        found = {}
        for joint in self.system.joints:
            rows = self.joint_rows[joint.name]
            force = -jacobian[rows].T @ lam[rows]
            ends = []
            for marker in (joint.first, joint.second):
                push = turn = np.zeros(3)
                if not marker.body.is_ground:
                    own = self.blocks(force)[marker.body.index]
                    push, turn = self.wrench(marker.body.index, q, own)
                    arm = field.value[self.shapes.point(marker)]
                    turn = turn - np.cross(arm - self.center(marker.body.index, q), push)
                ends.append((push, turn))
            # The ground feels the opposite of what its partner does, moved to its own marker.
            for n, marker in enumerate((joint.first, joint.second)):
                if marker.body.is_ground:
                    other = joint.second if n == 0 else joint.first
                    push, turn = ends[1 - n]
                    at = field.value[self.shapes.point(marker)]
                    arm = field.value[self.shapes.point(other)] - at
                    ends[n] = (-push, -turn - np.cross(arm, push))
            found[joint.name] = JointReaction(*ends[0], *ends[1])
        return found

    def center(self, body: int, q: Array) -> Array:
        """Return p_WC of a body."""
        own = self.blocks(q)[body]
        return np.array([own[0], own[1], 0.0]) if self.system.planar else own[:3].copy()
