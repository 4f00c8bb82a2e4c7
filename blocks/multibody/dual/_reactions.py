"""Joint forces of an RCCC mechanism: statics, inertia, friction and efficiency [V 6.27-6.55].

R̂_i = F + ε M is the wrench of link i-1 on link i at C_i, in frame i:

    R̂_{i+1} = T(i←i+1)ᵀ R̂_i - F̂(link i),   i = 1, 2, 3

F̂(link i) is the rate of change of its momentum, 0 for a link without mass. The components along z
of cylindrical joints are friction; with M_z of the input or output they leave six linear equations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ....errors import DiagramError, FormulationError
from ...core._vectors import require_choice
from ..system._rotations import Array
from ._momentum import RigidBody
from ._numbers import Dual
from ._rccc import RCCC, RCCCMotion, real_matrix, twists_of_links

Bodies = tuple[RigidBody | None, RigidBody | None, RigidBody | None]

_PASSES = 500
_AT_REST = 1e-9


def reactions(
    motion: RCCCMotion,
    *,
    input_torque: npt.ArrayLike | None = None,
    output_torque: npt.ArrayLike | None = None,
    bodies: Bodies = (None, None, None),
    along: Dual | None = None,
) -> Dual:
    """Return R̂₁ … R̂₄, of shape (…, 4, 3), in N and N m.

    Parameters
    ----------
    motion
        From `RCCC.motion`.
    input_torque, output_torque
        M_z1 or M_z4: give one of them; the other one is part of the result.
    bodies
        Links 1 to 3 in axes of frame i+1, with the pole C_{i+1}; ``None`` for one without mass.
    along
        F̂_z of joints 1 to 4, friction, on the last axis. F_z1, M_z1 and M_z4 of it are not used.

    Raises
    ------
    DiagramError
        If not exactly one of the torques is given.
    FormulationError
        If forces are not determined in a pose: sin θ2 = 0, or sin θ3 = 0 with an output torque.
    """
    if (input_torque is None) == (output_torque is None):
        raise DiagramError("give one of input_torque= and output_torque=.")
    shape = motion.coordinates.shape[:-1]
    if along is None:
        along = Dual(np.zeros(4))
    twists, rates = twists_of_links(motion)
    maps, shifts = [np.broadcast_to(np.eye(6), (*shape, 6, 6))], [np.zeros((*shape, 6))]
    for k in range(3):
        back = real_matrix(motion.displacements[..., k, :, :].T)
        shift = (back @ shifts[k][..., None])[..., 0]
        body = bodies[k]
        if body is not None:
            inertial = body.wrench(twists[k], rates[k])
            shift = shift - np.concatenate([inertial.real, inertial.dual], axis=-1)
        maps.append(back @ maps[k])
        shifts.append(shift)
    torque, at = (input_torque, 0) if output_torque is None else (output_torque, 3)
    # (joint, component of [F; M], its value)
    known = [(1, 2, along.real[..., 1]), (1, 5, along.dual[..., 1]), (2, 2, along.real[..., 2])]
    known += [(2, 5, along.dual[..., 2]), (3, 2, along.real[..., 3]), (at, 5, np.asarray(torque))]
    matrix = np.stack([maps[k][..., row, :] for k, row, _ in known], axis=-2)
    right = np.stack(
        [np.broadcast_to(value - shifts[k][..., row], shape) for k, row, value in known], axis=-1
    )
    if np.any(np.abs(np.sin(motion.coordinates.real[..., 1])) < _AT_REST):
        raise FormulationError(
            "forces are not determined where sin θ2 = 0: the output shaft cannot be moved by the "
            "input there."
        )
    first = np.linalg.solve(matrix, right[..., None])
    found = np.stack(
        [(each @ first)[..., 0] + shift for each, shift in zip(maps, shifts, strict=True)], axis=-2
    )
    return Dual(found[..., :3], found[..., 3:])


@dataclass(frozen=True, slots=True)
class Sleeve:
    """A plain bearing that rubs: pin diameter and distance of its supports, in m.

    M_z = -sgn(θ̇) [f (d/L) M_m + (f d/2) F_m], F_z = -sgn(ṡ) f (F_m + 2 M_m/L) with
    M_m = √(M_x² + M_y²), F_m = √(F_x² + F_y²) [V 6.53, 6.54].
    """

    diameter: float
    length: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.diameter) and self.diameter > 0):
            raise DiagramError(f"the diameter of a sleeve is positive, got {self.diameter!r}.")
        if not (np.isfinite(self.length) and self.length > 0):
            raise DiagramError(f"the length of a sleeve is positive, got {self.length!r}.")


@dataclass(frozen=True, slots=True, eq=False)
class Efficiency:
    """What friction costs at each angle of the input.

    Attributes
    ----------
    efficiency
        η = 1 - P_loss / (T₁ θ̇₁); below 0 the output must be driven too.
    losses
        Power lost in joints 1 to 4 along the last axis, in W.
    output_torque
        Torque that the output shaft delivers, in N m, positive along its rotation.
    reactions
        R̂₁ … R̂₄; M_z1 and M_z4 contain the friction of joints 1 and 4.
    friction
        F̂_z of friction in joints 1 to 4 along the last axis; without F_z of joint 1.
    motion
        The motion.
    """

    efficiency: Array
    losses: Array
    output_torque: Array
    reactions: Dual
    friction: Dual
    motion: RCCCMotion


def efficiency(
    mechanism: RCCC,
    angle: npt.ArrayLike,
    *,
    speed: float,
    torque: float,
    coefficient: npt.ArrayLike,
    sleeves: tuple[Sleeve, Sleeve, Sleeve, Sleeve],
    bodies: Bodies = (None, None, None),
    law: Literal["separate", "slip"] = "separate",
) -> Efficiency:
    """Return the efficiency of a mechanism whose joints rub, at angles of its input.

    The normal loads of each joint give its friction, which changes the loads: a fixed point is
    iterated from the loads without friction [V 6.49-6.55]. A joint at rest does not rub.

    Parameters
    ----------
    mechanism, angle
        The mechanism, and θ₁ in rad.
    speed, torque
        θ̇₁, constant, and the torque on the input shaft, in rad/s and N m; their product is
        positive.
    coefficient
        Of friction: one, or one for each joint.
    sleeves
        The bearings of joints 1 to 4.
    bodies
        As in `reactions`.
    law
        Of a joint that turns and slides. ``"separate"``: friction of the whole load in both
        directions, as in the source. ``"slip"``: against the slip w = (ṡ, θ̇ d/2) of the surfaces,
        N = F_m + 2 M_m/L: F_z = -f N ṡ/w, M_z = -f N (d/2) (θ̇ d/2)/w, as `JointFriction`. They
        agree where a joint only turns.

    Raises
    ------
    FormulationError
        If the fixed point does not converge: the friction exceeds what drives, the mechanism locks.
    """
    f = np.asarray(coefficient, dtype=np.float64)
    if f.shape not in ((), (4,)) or not (np.all(np.isfinite(f)) and np.all(f >= 0)):
        raise DiagramError(f"the coefficient of friction is at least 0, got {coefficient!r}.")
    if not (np.isfinite(speed * torque) and speed * torque > 0):
        raise DiagramError(
            f"speed and torque of the input have one sign, so that it drives; got {speed!r} and "
            f"{torque!r}."
        )
    require_choice("law", law, ("separate", "slip"))
    if len(sleeves) != 4:
        raise DiagramError(f"an RCCC mechanism has four joints, got {len(sleeves)} sleeves.")
    diameter = np.array([sleeve.diameter for sleeve in sleeves])
    length = np.array([sleeve.length for sleeve in sleeves])
    motion = mechanism.motion(angle, speed)
    turning, sliding = motion.rates.real, motion.rates.dual
    # A speed that is rounding has no direction.
    fastest = np.abs(turning).max(axis=-1, keepdims=True)
    turn = np.where(np.abs(turning) > _AT_REST * fastest, np.sign(turning), 0.0)
    slide = np.where(np.abs(sliding) > _AT_REST * fastest * diameter, np.sign(sliding), 0.0)
    slide[..., 0] = 0.0
    if law == "slip":
        surface = 0.5 * diameter * turning
        slip = np.hypot(np.abs(slide) * sliding, surface)
        slip = np.where(slip > 0, slip, 1.0)
        slide, turn = np.abs(slide) * sliding / slip, np.abs(turn) * surface / slip
    rub = Dual(np.zeros_like(turning))
    for _ in range(_PASSES):
        loads = reactions(motion, input_torque=torque + rub.dual[..., 0], bodies=bodies, along=rub)
        force = np.hypot(loads.real[..., 0], loads.real[..., 1])
        moment = np.hypot(loads.dual[..., 0], loads.dual[..., 1])
        new = Dual(
            -slide * f * (force + 2 * moment / length),
            -turn * f * (diameter / length * moment + 0.5 * diameter * force),
        )
        change = max(np.abs(new.real - rub.real).max(), np.abs(new.dual - rub.dual).max())
        size = max(np.abs(new.real).max(), np.abs(new.dual).max())
        rub = new
        if (
            change <= 1e-14 * size
            or not np.isfinite(size)
            or size > 1e6 * abs(torque) / min(length)
        ):
            break
    if not change <= 1e-10 * size:
        raise FormulationError(
            "friction and loads have no equilibrium that the iteration finds: friction takes more "
            "than the input gives, and the mechanism locks. Reduce the coefficient of friction, or "
            "the diameters over the lengths of the sleeves."
        )
    losses = np.abs(rub.dual * turning) + np.abs(rub.real * sliding)
    # M_z4 acts on the ground: the part that is not friction is the load.
    delivered = (loads.dual[..., 3, 2] - rub.dual[..., 3]) * np.sign(-turning[..., 3])
    eta = 1.0 - losses.sum(axis=-1) / (torque * speed)
    return Efficiency(eta, losses, delivered, loads, rub, motion)
