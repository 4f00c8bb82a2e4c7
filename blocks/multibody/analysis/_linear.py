"""Small motions about a state: matrices and natural motions; see `_reduced` and `moving`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from ....errors import DiagramError
from ..system._rotations import Array
from ._equilibrium import Equilibrium, equilibrium
from ._manifold import Manifold, make_manifold
from ._moving import STILL as STILL_MOVING
from ._moving import compute_rates
from ._pose import Assembly
from ._prescribed import find_coordinate
from ._reduced import STILL, compute_damping, compute_stiffness, reduce_pose

if TYPE_CHECKING:
    from ..system._system import System


@dataclass(frozen=True, slots=True, eq=False)
class BodyShape:
    """Complex amplitude of a body in a mode: origin of its frame in m, rotation in rad."""

    displacement: np.ndarray
    rotation: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """A mode: e^(s t) times its shape.

    Attributes
    ----------
    eigenvalue
        s in 1/s; of a conjugate pair the one with positive imaginary part.
    frequency
        Natural frequency |s| / 2π in Hz.
    damping
        Ratio -Re s / |s|: 1 for a monotonic decay, -1 for a monotonic growth, 0 for an
        undamped or rigid-body mode.
    shape
        Of each body, by name; the largest displacement or rotation is 1.
    """

    eigenvalue: complex
    frequency: float
    damping: float
    shape: dict[str, BodyShape] = field(repr=False)

    @property
    def damped_frequency(self) -> float:
        """Return |Im s| / 2π in Hz."""
        return abs(self.eigenvalue.imag) / (2.0 * np.pi)


@dataclass(frozen=True, slots=True, eq=False)
class Linearization:
    """M_r p̈ + C_r ṗ + K_r p = r about a pose at rest, or about a motion.

    Attributes
    ----------
    mass, damping, stiffness
        M_r, C_r and K_r; about a motion C_r and K_r include gyroscopic and centrifugal terms.
    residual
        r; 0 in equilibrium, and about a motion.
    basis
        V: velocity of the center of mass and angular velocity of each body for unit ṗ, in world
        axes.
    names
        Of p, if they are joint coordinates.
    coordinates
        q of `manifold`.
    """

    mass: Array
    damping: Array
    stiffness: Array
    residual: Array
    basis: Array = field(repr=False)
    names: tuple[str, ...]
    coordinates: Array = field(repr=False)
    model: Manifold = field(repr=False)
    still: float = field(default=STILL, repr=False)
    """Eigenvalues below this fraction of the largest one count as 0."""

    @property
    def state_matrix(self) -> Array:
        """Return A of d/dt (p, ṗ) = A (p, ṗ): [[0, 1], [-M_r⁻¹ K_r, -M_r⁻¹ C_r]]."""
        size = len(self.mass)
        made = np.zeros((2 * size, 2 * size))
        made[:size, size:] = np.eye(size)
        made[size:, :size] = -np.linalg.solve(self.mass, self.stiffness)
        made[size:, size:] = -np.linalg.solve(self.mass, self.damping)
        return made

    def modes(self) -> list[Mode]:
        """Return the modes by ascending frequency, one for each conjugate pair."""
        size = len(self.mass)
        if not size:
            return []
        values, vectors = np.linalg.eig(self.state_matrix)
        still = self.still * float(np.abs(values).max())
        found = []
        for value, vector in zip(values, vectors.T, strict=True):
            s = complex(value)
            if abs(s) > still and s.imag >= 0.0:
                shape = self._shape(vector[:size])
                found.append(Mode(s, abs(s) / (2.0 * np.pi), -s.real / abs(s), shape))
        # Without stiffness 0 is an eigenvalue once or twice; the shapes are the kernel of K_r.
        root = np.linalg.cholesky(self.mass)
        half = solve_triangular(root, self.stiffness, lower=True)
        scaled = solve_triangular(root, half.T, lower=True).T
        _, ratios, shapes = np.linalg.svd(scaled)
        still = max(still**2, self.still**2 * float(ratios.max()))
        loose = [
            Mode(0j, 0.0, 0.0, self._shape(solve_triangular(root.T, shape)))
            for ratio, shape in zip(ratios, shapes, strict=True)
            if ratio <= still
        ]
        return loose + sorted(found, key=lambda mode: (mode.frequency, -mode.damping))

    def _shape(self, p: np.ndarray) -> dict[str, BodyShape]:
        motion = self.basis @ p
        motion = motion / motion[np.argmax(np.abs(motion))]
        frames = [self.model.body_motion(self.coordinates, part) for part in
                  (motion.real, motion.imag)]  # fmt: skip
        return {
            real.name: BodyShape(
                real.velocity + 1j * imaginary.velocity,
                real.angular_velocity + 1j * imaginary.angular_velocity,
            )
            for real, imaginary in zip(*frames, strict=True)
        }


def linearize(
    system: System,
    at: Equilibrium | Assembly | None = None,
    coordinates: Sequence[str] | None = None,
    t: float = 0.0,
) -> Linearization:
    """Return the small motions about a pose; see `System.linearize`."""
    if at is None:
        at = equilibrium(system, t)
    model = make_manifold(system)
    q, t = at.coordinates, at.time
    moving = isinstance(at, Assembly) and bool(np.any(at.speeds))
    if not moving:
        model.hold(t)
    here = reduce_pose(model, t, q)
    basis = here.basis
    if coordinates is not None:
        basis = basis @ _coordinate_map(system, model, t, q, basis, coordinates)
    mass = model.equations(t, q, np.zeros(model.size)).mass
    reduced = basis.T @ mass @ basis
    if len(reduced) and np.linalg.eigvalsh(here.mass)[0] <= 1e-12 * np.trace(here.mass):
        raise DiagramError(
            f"`{system.name}` can move in a way that has no inertia, so it has no natural motion. "
            f"Give mass and inertia to the bodies that are free to move."
        )
    if isinstance(at, Assembly) and moving:
        keys = [find_coordinate(system, name) for name in coordinates or ()]
        by_place, by_rate = compute_rates(
            model, t, q, at.speeds, here.basis, [(joint.name, number) for joint, number in keys]
        )
        return Linearization(
            reduced,
            -reduced @ by_rate,
            -reduced @ by_place,
            np.zeros(len(reduced)),
            basis,
            tuple(coordinates or ()),
            q,
            model,
            STILL_MOVING,
        )
    return Linearization(
        reduced,
        compute_damping(model, t, q, basis),
        compute_stiffness(model, t, q, basis, here.lam),
        basis.T @ (here.basis @ here.residual),
        basis,
        tuple(coordinates or ()),
        q,
        model,
    )


def _coordinate_map(
    system: System, model: Manifold, t: float, q: Array, basis: Array, names: Sequence[str]
) -> Array:
    """Return the matrix that makes joint coordinates the unknowns of a basis."""
    still = np.zeros(model.size)
    moving = model.coordinates(t, q, still, still)
    found = [find_coordinate(system, name) for name in names]
    rows = np.array([moving[joint.name, number].jacobian for joint, number in found])
    rows = rows.reshape(len(names), model.size) @ basis
    freedom = basis.shape[1]
    if len(names) != freedom or np.linalg.cond(rows) > 1e8:
        raise DiagramError(
            f"`{system.name}` has {freedom} degrees of freedom: `coordinates` must be that many "
            f"joint coordinates that together determine the motion; got {list(names)}."
        )
    return np.linalg.inv(rows)
