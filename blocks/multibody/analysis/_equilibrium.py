"""Equilibrium: where all forces balance, and whether the mechanism stays there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.linalg import eigh

from ....errors import DiagramError
from ..drawing._poses import Poses
from ..equations._model import JointReaction
from ..system._rotations import Array
from ._manifold import BodyMotion, Manifold, close, make_manifold
from ._pose import as_poses, assemble_model
from ._reduced import STILL, Reduced, compute_stiffness, reduce_pose

if TYPE_CHECKING:
    from ..system._system import System

_LARGEST_TURN = 0.3


@dataclass(frozen=True, slots=True, eq=False)
class Equilibrium:
    """A static equilibrium.

    Attributes
    ----------
    bodies
        The frame of each body, at rest.
    stability
        ``"stable"`` if K_r is positive definite, ``"unstable"`` if some motion has negative
        stiffness, ``"neutral"`` if some has zero stiffness, such as the spin of a balanced wheel.
    stiffnesses
        Eigenvalues μ of K_r p = μ M_r p in 1/s², ascending; empty without degrees of freedom.
    residual
        Largest remaining generalized force, relative to the largest one at the start.
    reactions
        Reaction of each joint; loads of redundant joints are distributed by minimum norm.
    efforts
        Holding effort of each driver, in N or N m.
    iterations
        Number of iterations.
    coordinates
        q of `manifold`.
    time
        In s, of drivers, moving markers and forces.
    not_unique
        Joints and drivers whose forces depend on the load distribution among redundant joints.
    """

    bodies: tuple[BodyMotion, ...]
    stability: Literal["stable", "neutral", "unstable"]
    stiffnesses: Array
    residual: float
    reactions: dict[str, JointReaction] = field(repr=False)
    efforts: dict[str, float]
    iterations: int
    coordinates: Array = field(repr=False)
    time: float = 0.0
    not_unique: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> BodyMotion:
        """Return the frame of a body."""
        return {body.name: body for body in self.bodies}[name]

    @property
    def poses(self) -> Poses:
        """Return the poses in the form accepted by `System.draw`."""
        return as_poses(self.time, self.bodies)


def equilibrium(system: System, t: float = 0.0, tolerance: float = 1e-9) -> Equilibrium:
    """Find where all forces balance; see `System.equilibrium`.

    Each step solves K_r p = r, with every eigenvalue of K_r made positive, so that it descends even
    with negative stiffness. A step is limited to a rotation of 0.3 rad of any body, and halved
    while it overshoots.
    """
    model = make_manifold(system)
    model.hold(t)
    q = assemble_model(model, t).coordinates
    here = reduce_pose(model, t, q)
    scale = max(here.largest, float(np.abs(model._gravity).max(initial=0.0)), 1e-12)
    reach = _extent(model)
    iterations = 0
    while np.abs(here.residual).max(initial=0.0) > tolerance * scale:
        if iterations == 300:
            raise DiagramError(_say_restless(model, here))
        iterations += 1
        stiffness = compute_stiffness(model, t, q, here.basis, here.lam)
        step = _downhill(stiffness, here)
        motion = here.basis @ step
        step *= min(1.0, _LARGEST_TURN / max(1e-300, _size(model, motion, reach)))
        slope = float(here.residual @ step)
        for _ in range(12):
            trial, error = close(model, t, model.move(q, here.basis @ step))
            if error < 1e-9:
                there = reduce_pose(model, t, trial)
                # The work of the net force along the step, still positive or smaller than before.
                ending = float((here.basis @ step) @ (there.basis @ there.residual))
                if ending > -0.9 * slope:
                    break
            step, slope = 0.5 * step, 0.5 * slope
        else:
            raise DiagramError(_say_restless(model, here))
        q, here = trial, there
    stiffness = compute_stiffness(model, t, q, here.basis, here.lam)
    values = _ratios(stiffness, here.mass)
    limit = STILL**2 * float(np.abs(values).max(initial=0.0)) + 1e-6
    stability: Literal["stable", "neutral", "unstable"] = "stable"
    if (values < limit).any():
        stability = "unstable" if (values < -limit).any() else "neutral"
    return Equilibrium(
        model.body_motion(q, np.zeros(model.size)),
        stability,
        values,
        float(np.abs(here.residual).max(initial=0.0)) / scale,
        model.reactions(t, q, model.multipliers(here.lam)),
        {d.name: -float(here.lam[model.rows(d.name)][0]) for d in system.constraints},
        iterations,
        q,
        t,
        tuple(
            name
            for name in model.joint_rows
            if np.abs(here.null[model.rows(name)]).max(initial=0.0) > 1e-7
        ),
    )


def _metric(mass: Array) -> Array:
    """Return M_r, a little of 1 added so that it is positive where bodies have no mass."""
    return mass + 1e-12 * max(float(np.trace(mass)), 1e-12) * np.eye(len(mass))


def _ratios(stiffness: Array, mass: Array) -> Array:
    if not len(mass):
        return np.zeros(0)
    values: Array = eigh(0.5 * (stiffness + stiffness.T), _metric(mass), eigvals_only=True)
    return values


def _downhill(stiffness: Array, here: Reduced) -> Array:
    values, vectors = eigh(0.5 * (stiffness + stiffness.T), _metric(here.mass))
    floor = 1e-9 * float(np.abs(values).max()) + 1e-9
    if values[0] > floor:
        # Forces that follow bodies make K_r unsymmetric; near the end its own inverse is best.
        step = np.asarray(np.linalg.solve(stiffness, here.residual), dtype=np.float64)
        if step @ here.residual > 0.0:
            return step
    shares = (vectors.T @ here.residual) / np.maximum(np.abs(values), floor)
    moved: Array = vectors @ shares
    return moved


def _extent(model: Manifold) -> float:
    """Return the largest distance between markers of one body: what 1 rad moves."""
    lengths = [
        float(np.linalg.norm(first.position - second.position))
        for body in model.bodies
        for first in body.markers.values()
        for second in body.markers.values()
    ]
    return max(lengths, default=0.0) or 1.0


def _size(model: Manifold, motion: Array, reach: float) -> float:
    """Return the largest turn in a motion, a displacement counted as one over `reach`."""
    twists = [model.twist(body, motion) for body in model.bodies]
    return max(
        max(float(np.linalg.norm(v)) / reach, float(np.linalg.norm(omega))) for v, omega in twists
    )


def _say_restless(model: Manifold, here: Reduced) -> str:
    push = here.basis @ np.linalg.solve(_metric(here.mass), here.residual)
    fastest = max(model.bodies, key=lambda body: np.linalg.norm(model.twist(body, push)))
    return (
        f"`{model.system.name}` finds no equilibrium from the given pose: `{fastest.name}` is "
        f"pushed the most where it gave up. Does a spring or a joint hold it? Give a pose nearer "
        f"to the equilibrium."
    )
