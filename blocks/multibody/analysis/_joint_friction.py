"""Whether the friction that joints get from their reactions is in doubt: redundant joints.

Where joints are redundant, accelerations are unique but reactions are not. They share a load by the
rule of `sharing`, and friction that follows from them depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....errors import BiellaError, name_list
from ..equations._redundancy import RedundancyReport, report_redundancy
from ..system._rotations import Array
from ._manifold import RANK, Manifold, make_kinematic_model
from ._pose import Assembly, assemble_model

if TYPE_CHECKING:
    from ..system._system import System

LARGEST_CHECKED = 40
"""Bodies up to which a diagram that is compiled is checked."""


def find_doubtful(
    model: Manifold, assembly: Assembly, t: float, found: RedundancyReport
) -> tuple[str, ...]:
    """Return the names of friction whose normal load the kernel of Φ_qᵀ changes."""
    joint_frictions = {
        item.name: (item.follows_reaction_of, getattr(item, "coordinate", None))
        for item in model.system.elements
        if item.follows_reaction_of
    }
    if not joint_frictions or not found.redundant:
        return ()
    q = assembly.coordinates
    _, jacobian = model.constraints(t, q)
    kernel = np.linalg.svd(jacobian)[0][:, found.rank :]
    rotations = {body.name: body.rotation for body in assembly.bodies} | {"ground": np.eye(3)}
    doubtful = set()
    for lam in kernel.T:
        reactions = model.reactions(t, q, lam)
        for name, (joint, coordinate) in joint_frictions.items():
            reaction = reactions[joint.name]
            if joint.is_ball:
                if float(np.linalg.norm(reaction.force_j)) > 1e-7:
                    doubtful.add(name)
                continue
            on_first = joint.has_pivots and coordinate == 0
            frame = (
                rotations[joint.first.body.name] @ joint.frame_i
                if on_first
                else rotations[joint.second.body.name] @ joint.frame_j
            )
            axis = frame[:, "fgh".index(joint.slide.along[0] if joint.slide else "h")]
            parts = [_across(reaction.force_j, axis), _across(reaction.torque_j, axis)]
            if all(of.kind == "length" for of in joint.coordinates):
                parts.append(abs(float(reaction.torque_j @ axis)))
            if max(parts) > 1e-7:
                doubtful.add(name)
    return tuple(name for name in joint_frictions if name in doubtful)


def warn_of_doubt(system: System) -> str:
    """Return a warning of friction that follows from reactions that are not unique, if any does."""
    if len(system.bodies) > LARGEST_CHECKED:
        return ""
    try:
        model = make_kinematic_model(system)
        assembly = assemble_model(model, 0.0)
    except BiellaError:  # it has no initial state: the run reports the reason
        return ""
    q, u = assembly.coordinates, assembly.speeds
    found = report_redundancy(model, 0.0, q, model.basis(q) @ u, RANK)
    names = find_doubtful(model, assembly, 0.0, found)
    return describe_ambiguity(names) if names else ""


def describe_ambiguity(names: tuple[str, ...]) -> str:
    """Describe the ambiguity and the remedy."""
    return (
        f"friction {name_list(f'`{name}`' for name in names)} follows from reactions that are not "
        f"unique, because joints are redundant: its size depends on how they share the load. "
        f"Replace redundant joints by ones that leave more free; System.report() names them."
    )


def _across(vector: Array, axis: Array) -> float:
    return float(np.linalg.norm(np.cross(axis, vector)))
