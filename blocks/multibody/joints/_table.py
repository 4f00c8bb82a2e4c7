"""The kinds of joints, and the methods of `System` that make them: one line for each."""

from __future__ import annotations

from ._base_constraints import BaseConstraintMethods
from ._cylindrical import CYLINDRICAL, CylindricalMethods
from ._distance import DISTANCE, DistanceMethods
from ._fixed import FIXED, FixedMethods
from ._guide import GUIDE, GuideMethods
from ._in_plane import IN_PLANE, InPlaneMethods
from ._joint import JointType
from ._planar import PLANAR_JOINT, PlanarMethods
from ._prismatic import PRISMATIC, PrismaticMethods
from ._revolute import REVOLUTE, RevoluteMethods
from ._spherical import SPHERICAL, SphericalMethods
from ._stiffness import StiffnessMethods
from ._universal import UNIVERSAL, UniversalMethods

KINDS = (
    FIXED,
    REVOLUTE,
    PRISMATIC,
    CYLINDRICAL,
    SPHERICAL,
    UNIVERSAL,
    PLANAR_JOINT,
    GUIDE,
    IN_PLANE,
    DISTANCE,
)
SPATIAL = {kind.name: kind.spatial for kind in KINDS}
PLANAR = {kind.name: kind.planar for kind in KINDS if isinstance(kind.planar, JointType)}


# The reference lists the methods of the last base first.
class JointMethods(
    StiffnessMethods,
    DistanceMethods,
    BaseConstraintMethods,
    InPlaneMethods,
    GuideMethods,
    PlanarMethods,
    UniversalMethods,
    SphericalMethods,
    CylindricalMethods,
    PrismaticMethods,
    RevoluteMethods,
    FixedMethods,
):
    """Adds joints between two markers, or between two bodies."""

    joint_kinds = KINDS
