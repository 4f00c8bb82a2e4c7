"""Dual numbers, lines and screws, and the RCCC mechanism and Cardan joint described with them.

`Dual` is a number a + ε a₀, a vector or a matrix; with it the equations of rotations become those
of displacements in space. Independent of the engine, it is the oracle of its spatial joints.
"""

from ._clearance import PlayRCCC, clearance_screw, split_zxz
from ._displacements import (
    about,
    about_x,
    about_z,
    displacement,
    frame_of_points,
    position_of,
    skew,
)
from ._momentum import RigidBody
from ._numbers import Dual, arctan2, as_dual, solve, stack
from ._rccc import RCCC, RCCCMotion
from ._reactions import Efficiency, Sleeve, efficiency, reactions
from ._screws import Axis, angle_between, axis, change_pole, cross, dot, line, norm, power

__all__ = [
    "RCCC",
    "Axis",
    "Dual",
    "Efficiency",
    "PlayRCCC",
    "RCCCMotion",
    "RigidBody",
    "Sleeve",
    "about",
    "about_x",
    "about_z",
    "angle_between",
    "arctan2",
    "as_dual",
    "axis",
    "change_pole",
    "clearance_screw",
    "cross",
    "displacement",
    "dot",
    "efficiency",
    "frame_of_points",
    "line",
    "norm",
    "position_of",
    "power",
    "reactions",
    "skew",
    "solve",
    "split_zxz",
    "stack",
]
