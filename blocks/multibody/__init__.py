"""Mechanisms: bodies, joints and forces, described as data."""

from typing import Any

from ...deprecation import renamed_attribute
from .analysis.contact_statistics import ContactStatistics, contact_statistics
from .bodies import Body, Marker
from .elements.bearing import Bearing
from .elements.bushing import Bushing
from .elements.clearance import (
    ClearanceRevolute,
    HuntCrossley,
    LankaraniNikravesh,
    RigidContact,
    Wear,
    hertz_stiffness,
)
from .elements.coupling import Coupling
from .elements.driver import JointDriver
from .elements.friction import Friction
from .elements.joint_friction import JointFriction
from .elements.joint_load import JointLoad
from .elements.load import Load
from .elements.spring import Spring
from .elements.stop import EndStop
from .elements.torsional_spring import TorsionalSpring
from .joints import Joint
from .laws import AbstractLaw, Constant, Formula, Input, Linear, Sine, Table
from .plant import Plant
from .system import System

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
    "LankaraniNikravesh",
    "Linear",
    "Load",
    "Marker",
    "Plant",
    "RigidContact",
    "Sine",
    "Spring",
    "System",
    "Table",
    "TorsionalSpring",
    "Wear",
    "contact_statistics",
    "hertz_stiffness",
]


def __getattr__(name: str) -> Any:
    return renamed_attribute(__name__, name)
