"""`MechanismReport`: degrees of freedom and redundant constraints of a mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ....errors import BiellaError
from ..equations._redundancy import RedundancyReport, report_redundancy
from ..plant._initial import Initial
from ..system._rotations import Array
from ._joint_friction import describe_ambiguity, find_doubtful
from ._manifold import RANK, Manifold, make_kinematic_model
from ._pose import Assembly, assemble_model

if TYPE_CHECKING:
    from ..system._system import System

_COMPONENTS = ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")


@dataclass(frozen=True, slots=True, eq=False)
class MechanismReport:
    """Degrees of freedom, redundancy and assembly of a mechanism; `str` gives a summary.

    Attributes
    ----------
    name, bodies, joints, drivers
        Name of the system and numbers of its parts; a bearing held by a constraint counts as a
        joint.
    freedom
        Degrees of freedom: number of speeds minus the rank of Φ_u.
    mobility
        Kutzbach count of equations [V 1.11]; differs from `freedom` by `redundant`.
    rows, rank
        Number of equations of joints and drivers, and the number that are independent.
    redundant
        rows - rank.
    threshold, gap
        Singular values of the Jacobian below `threshold`, relative to the largest one, count as 0;
        `gap` holds the smallest value above and the largest value below it. The rank is reliable if
        they are far apart.
    dependent
        Rows implied by the others, by joint, such as ``{"C4": ["S z", "d1(f_i, h_j)"]}``. The
        choice among equivalent rows is arbitrary; their number is not.
    consistent
        Whether redundant rows agree on velocities and accelerations.
    not_unique
        Components of the reaction of each joint (Fx … Tz, world axes) that depend on the load
        distribution among redundant equations; ``["effort"]`` for drivers.
    unique
        Joints and drivers whose reactions are unique.
    doubtful_friction
        Friction elements that depend on reactions that are not unique.
    assembly
        Gaps in the given pose, corrections, velocities.
    velocities_given
        Whether the description has any velocity that is not 0.
    largest_step
        Largest stable step of RK4 in s; None if unknown.
    """

    name: str
    bodies: int
    joints: int
    drivers: int
    freedom: int
    mobility: int
    rows: int
    rank: int
    redundant: int
    threshold: float
    gap: tuple[float, float]
    dependent: dict[str, list[str]]
    consistent: bool
    not_unique: dict[str, list[str]]
    unique: tuple[str, ...]
    doubtful_friction: tuple[str, ...]
    assembly: Assembly = field(repr=False)
    velocities_given: bool
    largest_step: float | None

    def __str__(self) -> str:
        a = self.assembly
        lines = [
            f"{self.name}: {self.bodies} bodies, {self.joints} joints, {self.drivers} drivers",
            f"  degrees of freedom   {self.freedom}   (Kutzbach count: {self.mobility})",
            f"  equations            {self.rows}, rank {self.rank}: {self.redundant} redundant",
            f"  assembly             bodies moved by up to {a.correction:.3g} m, turned by up to "
            f"{np.degrees(a.turn):.3g}°; {a.error:.1g} is left open",
        ]
        lines += [f"    `{name}` was open by {gap}" for name, gap in a.gaps.items()]
        if self.rows:
            dropped = f", the next is {self.gap[1]:.1g}" if self.redundant else ""
            lines.append(
                f"  rank is sure by      {self.gap[0]:.2g}, the smallest singular value that counts"
                f"{dropped} (threshold {self.threshold:g}, all relative to the largest)"
            )
        changed = max(a.velocity_correction, a.spin_correction) > 1e-9
        if changed:
            why = "those given are impossible" if self.velocities_given else "drivers ask for it"
            lines.append(
                f"  velocities           changed by up to {a.velocity_correction:.3g} m/s, "
                f"{a.spin_correction:.3g} rad/s: {why}"
            )
        if changed or a.gaps:
            lines += [f"    `{name}` was changed by {of}" for name, of in a.changes.items()]
        if self.largest_step is not None:
            lines.append(f"  RK4 is stable up to  {self.largest_step:.3g} s a step")
        if self.dependent:
            lines.append("  implied by the other equations:")
            lines += [f"    `{name}`: {', '.join(rows)}" for name, rows in self.dependent.items()]
        if self.not_unique:
            lines.append(
                "  warning: these reactions are not unique. Only flexibility determines how the "
                "load is shared:"
            )
            lines += [f"    `{name}`: {', '.join(of)}" for name, of in self.not_unique.items()]
            lines.append(f"  unique reactions: {', '.join(self.unique) or 'none'}")
        if self.doubtful_friction:
            lines.append(f"  warning: {describe_ambiguity(self.doubtful_friction)}")
        if not self.consistent:
            lines.append(
                "  warning: redundant equations contradict each other: the mechanism cannot move "
                "as its drivers or moving markers ask."
            )
        if a.rate_error > 1e-7:
            lines.append(f"  warning: no velocities fit all drivers; {a.rate_error:.2g} is missed.")
        return "\n".join(lines)


def report(system: System, t: float = 0.0, initial: Initial | None = None) -> MechanismReport:
    """Look at a mechanism in its assembled pose; see `System.report`."""
    model = make_kinematic_model(system)
    assembly = assemble_model(model, t, initial)
    q, u = assembly.coordinates, assembly.speeds
    found = report_redundancy(model, t, q, model.basis(q) @ u, RANK)
    dependent: dict[str, list[str]] = {}
    for name in found.dependent:
        owner, _, row = name.partition(": ")
        dependent.setdefault(owner, []).append(row or "motion")
    not_unique = _shared(model, t, q, found)
    joints = model.system.joints
    named = [joint.name for joint in joints] + [item.name for item in system.constraints]
    given = any(body.velocity.any() or body.angular_velocity.any() for body in system.bodies)
    return MechanismReport(
        system.name,
        len(system.bodies),
        len(joints),
        len(system.drivers),
        found.freedom,
        found.mobility,
        found.equations - model.base_rows,
        found.rank - model.base_rows,
        found.redundant,
        RANK,
        found.gap,
        dependent,
        found.consistent,
        not_unique,
        tuple(name for name in named if name not in not_unique),
        find_doubtful(model, assembly, t, found),
        assembly,
        given,
        _largest_step(system),
    )


def _shared(model: Manifold, t: float, q: Array, found: RedundancyReport) -> dict[str, list[str]]:
    """Return the components of reactions that the kernel of Φ_qᵀ changes."""
    if not found.redundant:
        return {}
    _, jacobian = model.constraints(t, q)
    left = np.linalg.svd(jacobian)[0]
    kernel = left[:, found.rank :]
    sizes: dict[str, Array] = {joint.name: np.zeros(6) for joint in model.system.joints}
    for lam in kernel.T:
        for name, reaction in model.reactions(t, q, lam).items():
            parts = np.concatenate([reaction.force_j, reaction.torque_j])
            sizes[name] = np.maximum(sizes[name], np.abs(parts))
    shared = {
        name: [label for label, value in zip(_COMPONENTS, size, strict=True) if value > 1e-7]
        for name, size in sizes.items()
    }
    for item in model.system.constraints:
        if np.abs(kernel[model.joint_rows[item.name]]).max() > 1e-7:
            shared[item.name] = ["effort"]
    return {name: labels for name, labels in shared.items() if labels}


def _largest_step(system: System) -> float | None:
    known = getattr(system, "largest_stable_step", None)
    if known is None:
        return None
    try:
        return float(known())
    except BiellaError:
        # A mechanism that the engine cannot take still has a report.
        return None
