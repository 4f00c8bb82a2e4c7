"""biella: mechanisms and block diagrams that run offline, as FMUs, and against real hardware."""

from .blocks.multibody import System
from .errors import BiellaError, BiellaWarning, BlockError, DiagramError
from .scheduler.diagram import Diagram
from .scheduler.linearize import linearize
from .scheduler.plan import Plan
from .scheduler.simulate import simulate
from .scheduler.subsystem import Subsystem

__version__ = "0.1.0"

__all__ = [
    "BiellaError",
    "BiellaWarning",
    "BlockError",
    "Diagram",
    "DiagramError",
    "Plan",
    "Subsystem",
    "System",
    "linearize",
    "simulate",
]
