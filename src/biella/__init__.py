"""biella: mechanisms and block diagrams that run offline, as FMUs, and against real hardware."""

from typing import TYPE_CHECKING, Any

from .blocks.multibody import System
from .errors import BiellaError, BiellaWarning, BlockError, DiagramError
from .scheduler.diagram import Diagram
from .scheduler.linearize import linearize
from .scheduler.plan import Plan
from .scheduler.realtime import start
from .scheduler.replay import replay
from .scheduler.result import Result
from .scheduler.simulate import simulate
from .scheduler.subsystem import Subsystem
from .scheduler.sweep import sweep

if TYPE_CHECKING:
    from .fmu.importer import Fmu

__version__ = "0.1.0"

__all__ = [
    "BiellaError",
    "BiellaWarning",
    "BlockError",
    "Diagram",
    "DiagramError",
    "Fmu",
    "Plan",
    "Result",
    "Subsystem",
    "System",
    "linearize",
    "replay",
    "simulate",
    "start",
    "sweep",
]


def __getattr__(name: str) -> Any:
    """Import what is not needed by most only when it is asked for."""
    if name == "Fmu":
        from .fmu.importer import Fmu

        return Fmu
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
