"""How redundant joints share a load: the rule of ``blocks/multibody/kernel/constraints/share.c``,
for analyses in Python.

Where constraints are redundant, accelerations are unique but multipliers are not: every δλ with
Φ_uᵀ δλ = 0 can be added. Of all reactions that balance the motion those of minimum norm are taken,

    Σ |F|² / k_F + |M|² / k_M + Σ τ² / k   → minimum

over all joints and over the efforts τ of drivers and couplings. F and M are the reaction on the
second body, about the second marker. k_F and k_M are given by `System.joint_stiffness`, for all
joints; a driver then counts as its joint does. If none are given, k_M = L² k_F, the same for all
joints, with L the largest distance between the markers of two joints on one body.
"""

from __future__ import annotations

from itertools import chain, combinations
from typing import TYPE_CHECKING

import numpy as np

from ....errors import DiagramError, name_list
from ..system._rotations import Array

if TYPE_CHECKING:
    from ..system._system import System
    from ._manifold import Manifold


def joint_stiffnesses(system: System) -> dict[str, tuple[float, float]]:
    """Return k_F and k_M of each joint by name; empty if none were given.

    Raises
    ------
    DiagramError
        If they were given for some joints only.
    """
    given = system._stiffnesses
    if not given:
        return {}
    names = [joint.name for joint in system.joints]
    names += [item.name for item in system.elements if item.row_count]
    missing = [name for name in names if name not in given]
    if missing:
        raise DiagramError(
            f"`{system.name}` has joint_stiffness(…) for some joints only: give it for "
            f"{name_list(f'`{name}`' for name in missing)} too, or for none."
        )
    return dict(given)


def mechanism_size(system: System) -> float:
    """Return L in m; 1 if no two joints are apart, because then forces and moments do not mix."""
    ends = [(joint.first, joint.second) for joint in system.joints]
    # A bearing held by a constraint is a joint of the engine's, too.
    ends += [e.ends for e in system.elements if e.row_count and e.ends]
    places: dict[str, list[Array]] = {}
    for marker in chain.from_iterable(ends):
        places.setdefault(marker.body.name, []).append(marker.position)
    lengths = [
        float(np.linalg.norm(a - b)) for own in places.values() for a, b in combinations(own, 2)
    ]
    return max(lengths, default=0.0) or 1.0


def compute_row_weights(model: Manifold) -> Array:
    """Return what the square of each multiplier of joints and drivers counts in the norm."""
    system = model.system
    stiffnesses, size = joint_stiffnesses(system), mechanism_size(system)
    weights = np.zeros(model.m - model.base_rows)
    for joint in system.joints:
        of_force, of_moment = stiffnesses.get(joint.name, (1.0, size**2))
        weights[model.rows(joint.name)] = [
            1.0 / of_moment
            if row.kind in ("d1", "angle")
            # The row of a distance is that of its square: its force is 2 λ length.
            else (2.0 * joint.length) ** 2 / of_force
            if row.kind == "SS" and joint.length
            else 1.0 / of_force
            for row in joint.rows
        ]
    for item in system.constraints:
        of_force, of_moment = stiffnesses.get(item.terms[-1].joint.name, (1.0, size**2))
        weights[model.rows(item.name)] = 1.0 / (of_moment if item.turns else of_force)
    return weights


def share(model: Manifold, lam: Array, null: Array) -> Array:
    """Return the multipliers of minimum norm; `null` has a basis of ker Φ_uᵀ as columns."""
    if not null.shape[1]:
        return lam
    roots = np.sqrt(compute_row_weights(model))
    shift = np.linalg.lstsq(roots[:, None] * null, -roots * lam, rcond=None)[0]
    return np.asarray(lam + null @ shift, dtype=np.float64)
