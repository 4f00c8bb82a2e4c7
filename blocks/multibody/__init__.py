"""Mechanisms: bodies, joints and forces, described as data."""

from .bodies import Body, Marker
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
from .system import System

__all__ = [
    "AbstractLaw",
    "Bearing",
    "Body",
    "Bushing",
    "Constant",
    "Driver",
    "Formula",
    "Friction",
    "Input",
    "Joint",
    "JointLoad",
    "Linear",
    "Load",
    "Marker",
    "Rubbing",
    "Sine",
    "Spring",
    "Stop",
    "System",
    "Table",
    "TorsionalSpring",
]
