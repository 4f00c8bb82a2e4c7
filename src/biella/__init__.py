"""biella: mechanisms and block diagrams that run offline, as FMUs, and against real hardware."""

from typing import TYPE_CHECKING, Any

from .blocks.multibody import System
from .errors import BiellaError, BiellaWarning, BlockError, DiagramError
from .scheduler.compile.diagram import Diagram
from .scheduler.compile.plan import Plan
from .scheduler.compile.subsystem import Subsystem
from .scheduler.realtime.replay import replay
from .scheduler.realtime.start import start
from .scheduler.results.result import Result
from .scheduler.run.linearize import linearize
from .scheduler.run.simulate import simulate
from .scheduler.run.sweep import sweep

if TYPE_CHECKING:
    from .fmu.importer.fmu import Fmu

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
        from .fmu.importer.fmu import Fmu

        return Fmu
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
