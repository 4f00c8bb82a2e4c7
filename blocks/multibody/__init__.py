"""Mechanisms: bodies, joints and forces, described as data."""

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
from .elements.driver import Driver
from .elements.friction import Friction
from .elements.joint_load import JointLoad
from .elements.load import Load
from .elements.rubbing import Rubbing
from .elements.spring import Spring
from .elements.stop import Stop
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
    "Driver",
    "Formula",
    "Friction",
    "HuntCrossley",
    "Input",
    "Joint",
    "JointLoad",
    "LankaraniNikravesh",
    "Linear",
    "Load",
    "Marker",
    "Plant",
    "RigidContact",
    "Rubbing",
    "Sine",
    "Spring",
    "Stop",
    "System",
    "Table",
    "TorsionalSpring",
    "Wear",
    "contact_statistics",
    "hertz_stiffness",
]
