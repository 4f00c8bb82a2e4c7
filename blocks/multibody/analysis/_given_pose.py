"""Fast check of the given pose: whether joints and drivers are closed, without a model.

Most poses are closed to the digits they were printed with. Only for the others is the machinery of
`pose` loaded, which takes longer than all the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..elements._element import Constraint
from ..elements._function_constraint import FunctionConstraint
from ..elements._rolling import RollingRow
from ..joints._joint import Joint
from ..plant._initial import Initial
from ..system._laws import Input
from ..system._rotations import Array

if TYPE_CHECKING:
    from ..system._system import System

_LARGEST = 50  # bodies: beyond that a search takes seconds
_PRINTED = 1e-5


def check_pose(system: System, inputs: Sequence[str] = (), initial: Initial | None = None) -> None:
    """Raise if the given pose cannot be assembled.

    Large systems are not checked, nor those whose initial pose depends on an input.

    Parameters
    ----------
    system
        The mechanism.
    inputs
        Paths of numbers that become inputs.
    initial
        Joint values that the initial state keeps.

    Raises
    ------
    DiagramError
        With the joints that will not close, and by how much.
    """
    laws = {f"{driver.name}.motion": driver.law for driver in system.drivers}
    for body in (system.ground, *system.bodies):
        for marker in body.markers.values():
            laws |= {f"{marker.path}.{axis}": law for axis, law in marker.motion.items()}
    moved = any(isinstance(law, Input) for law in laws.values()) or any(
        path.startswith(tuple(laws)) for path in inputs
    )
    if moved or len(system.bodies) > _LARGEST:
        return
    if (
        not initial
        and all(map(_is_closed, system.joints))
        and all(map(_is_met, system.constraints))
    ):
        return
    from ._manifold import make_kinematic_model
    from ._pose import find_start

    find_start(make_kinematic_model(system), 0.0, initial)


def _between(joint: Joint) -> Array:
    return joint.second.world_position - joint.first.world_position


def _is_closed(joint: Joint) -> bool:
    d = _between(joint)
    for row in joint.rows:
        if row.kind == "S":
            error = float(d[row.component])
        elif row.kind == "SS":
            error = float(np.linalg.norm(d)) - (joint.length or 0.0)
        elif row.kind == "angle":
            error = float(joint.given_axis("f_i") @ joint.given_axis("g_j"))
        else:
            error = float(
                joint.given_axis(row.a) @ (d if row.kind == "d2" else joint.given_axis(row.b))
            )
        if abs(error) > _PRINTED:
            return False
    return True


def _is_met(constraint: Constraint) -> bool:
    if isinstance(constraint, RollingRow):
        return constraint.binds_rates or abs(constraint.gap()) <= _PRINTED
    if isinstance(constraint, FunctionConstraint):
        values = [term.joint.given_value(term.coordinate) for term in constraint.terms]
        return abs(constraint.value(values, 0.0)) <= _PRINTED
    found = sum(term.factor * term.joint.given_value(term.coordinate) for term in constraint.terms)
    error = found - constraint.right_side.value(0.0)
    if constraint.driven and constraint.turns:
        error = float(np.remainder(error + np.pi, 2.0 * np.pi) - np.pi)
    return abs(error) <= _PRINTED
