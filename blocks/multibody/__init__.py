"""Mechanisms: bodies, joints and forces, described as data."""

from typing import Any

from ..._deprecation import renamed_attribute
from .analysis._contact_statistics import ContactStatistics, contact_statistics
from .elements._bushing import Bushing
from .elements._coupling import Coupling
from .elements._driver import JointDriver
from .elements._joint_load import JointLoad
from .elements._load import Load
from .elements._spring import Spring
from .elements._stop import EndStop
from .elements._torsional_spring import TorsionalSpring
from .elements.bearing._bearing import Bearing
from .elements.clearance._clearance import (
    ClearanceRevolute,
    HuntCrossley,
    LankaraniNikravesh,
    RigidContact,
    Wear,
    hertz_stiffness,
)
from .elements.friction._friction import Friction
from .elements.friction._joint_friction import JointFriction
from .elements.friction._joint_stiction import JointStiction
from .elements.friction._stiction import Stiction
from .joints._joint import Joint
from .plant._plant import Plant
from .system._bodies import Body, Marker
from .system._laws import AbstractLaw, Constant, Formula, Input, Linear, Sine, Table
from .system._system import System

__all__ = [
    "AbstractLaw",
    "Bearing",
    "Body",
    "Bushing",
    "ClearanceRevolute",
    "Constant",
    "ContactStatistics",
    "Coupling",
    "EndStop",
    "Formula",
    "Friction",
    "HuntCrossley",
    "Input",
    "Joint",
    "JointDriver",
    "JointFriction",
    "JointLoad",
    "JointStiction",
    "LankaraniNikravesh",
    "Linear",
    "Load",
    "Marker",
    "Plant",
    "RigidContact",
    "Sine",
    "Spring",
    "Stiction",
    "System",
    "Table",
    "TorsionalSpring",
    "Wear",
    "contact_statistics",
    "hertz_stiffness",
]


def __getattr__(name: str) -> Any:
    return renamed_attribute(__name__, name)
