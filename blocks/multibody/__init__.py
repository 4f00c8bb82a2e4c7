"""Mechanisms: bodies, joints and forces, described as data."""

from typing import Any

from ..._deprecation import renamed_attribute
from .adams._build import AdamsModel, read_adams
from .analysis._contact_statistics import ContactStatistics, contact_statistics
from .cards._read import Cards, read_s3d
from .elements._bushing import Bushing
from .elements._coupling import Coupling
from .elements._curve import CurveConstraint
from .elements._driver import JointDriver
from .elements._formula_constraint import FormulaConstraint
from .elements._joint_load import JointLoad
from .elements._load import Load
from .elements._rolling import RollingRow
from .elements._spring import Spring
from .elements._stop import EndStop
from .elements._torsional_spring import TorsionalSpring
from .elements.bearing._bearing import Bearing
from .elements.clearance._clearance import (
    ClearanceRevolute,
    HuntCrossley,
    LankaraniNikravesh,
    RigidContact,
    hertz_stiffness,
)
from .elements.clearance._wear import Wear
from .elements.contact._cam_design import CamDesign, cam_for_face, cam_for_roller
from .elements.contact._contact import ShapeContact
from .elements.contact._shapes import (
    Bore,
    CamProfile,
    Capsule,
    Cylinder,
    HoleProfile,
    PinProfile,
    Plane,
    Shape,
    Socket,
    Sphere,
)
from .elements.friction._friction import Friction
from .elements.friction._friction_laws import film_friction, stribeck_friction
from .elements.friction._joint_friction import JointFriction
from .elements.friction._joint_stiction import JointStiction
from .elements.friction._spherical_friction import SphericalFriction
from .elements.friction._stiction import Stiction
from .joints._joint import Joint
from .model_based._force_propagation import ForcePropagation
from .model_based._inverse_dynamics import InverseDynamics
from .model_based._jacobian import Jacobian
from .model_based._mass_matrix import MassMatrix
from .plant._plant import Plant
from .system._bodies import Body, Marker
from .system._laws import AbstractLaw, Constant, Formula, Input, Linear, Sine, Table
from .system._orientation import from_angles, from_axis_angle, from_roll_pitch_yaw
from .system._system import System

__all__ = [
    "AbstractLaw",
    "AdamsModel",
    "Bearing",
    "Body",
    "Bore",
    "Bushing",
    "CamDesign",
    "CamProfile",
    "Capsule",
    "Cards",
    "ClearanceRevolute",
    "Constant",
    "ContactStatistics",
    "Coupling",
    "CurveConstraint",
    "Cylinder",
    "EndStop",
    "ForcePropagation",
    "Formula",
    "FormulaConstraint",
    "Friction",
    "HoleProfile",
    "HuntCrossley",
    "Input",
    "InverseDynamics",
    "Jacobian",
    "Joint",
    "JointDriver",
    "JointFriction",
    "JointLoad",
    "JointStiction",
    "LankaraniNikravesh",
    "Linear",
    "Load",
    "Marker",
    "MassMatrix",
    "PinProfile",
    "Plane",
    "Plant",
    "RigidContact",
    "RollingRow",
    "Shape",
    "ShapeContact",
    "Sine",
    "Socket",
    "Sphere",
    "SphericalFriction",
    "Spring",
    "Stiction",
    "System",
    "Table",
    "TorsionalSpring",
    "Wear",
    "cam_for_face",
    "cam_for_roller",
    "contact_statistics",
    "film_friction",
    "from_angles",
    "from_axis_angle",
    "from_roll_pitch_yaw",
    "hertz_stiffness",
    "read_adams",
    "read_s3d",
    "stribeck_friction",
]


def __getattr__(name: str) -> Any:
    return renamed_attribute(__name__, name)
