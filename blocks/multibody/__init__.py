"""Mechanisms: bodies, joints and forces, described as data."""

from .analysis.contact_statistics import ContactStatistics, contact_statistics
from .bodies import Body, Marker
from .clearance import (
    ClearanceRevolute,
    HuntCrossley,
    LankaraniNikravesh,
    RigidContact,
    Wear,
    hertz_stiffness,
)
from .forces import (
    Bearing,
    Bushing,
    Driver,
    Friction,
    JointLoad,
    Load,
    Rubbing,
    Spring,
    Stop,
    TorsionalSpring,
)
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
