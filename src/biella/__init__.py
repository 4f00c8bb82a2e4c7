"""biella: mechanisms and block diagrams that run offline, as FMUs, and against real hardware."""

from typing import TYPE_CHECKING

from ._lazy import attach

if TYPE_CHECKING:
    from .blocks.multibody.system._system import System
    from .errors import (
        BiellaDeprecationWarning,
        BiellaError,
        BiellaWarning,
        BindingError,
        BlockError,
        CouplingWarning,
        DeviceError,
        DiagramError,
        FmuError,
        FormulationError,
        OverrunError,
        PlanError,
        ResultError,
        UnitError,
        UnknownSignalError,
    )
    from .fmu.importer._fmu import Fmu
    from .scheduler.compile.diagram._diagram import Diagram
    from .scheduler.compile.diagram._subsystem import Subsystem
    from .scheduler.compile.plan._plan import Plan
    from .scheduler.realtime._live import LiveRun
    from .scheduler.realtime._start import run_realtime
    from .scheduler.realtime._start import start as start
    from .scheduler.realtime.log._replay import replay
    from .scheduler.results._result import Result
    from .scheduler.run._linear_model import LinearModel
    from .scheduler.run._linearize import linearize
    from .scheduler.run._simulate import simulate
    from .scheduler.run._sweep import Sweep, sweep
else:
    __getattr__, __dir__ = attach(
        __name__,
        {
            ".blocks.multibody.system._system": ("System",),
            ".errors": (
                "BiellaDeprecationWarning",
                "BiellaError",
                "BiellaWarning",
                "BindingError",
                "BlockError",
                "CouplingWarning",
                "DeviceError",
                "DiagramError",
                "FmuError",
                "FormulationError",
                "OverrunError",
                "PlanError",
                "ResultError",
                "UnitError",
                "UnknownSignalError",
            ),
            ".fmu.importer._fmu": ("Fmu",),
            ".scheduler.compile.diagram._diagram": ("Diagram",),
            ".scheduler.compile.plan._plan": ("Plan",),
            ".scheduler.compile.diagram._subsystem": ("Subsystem",),
            ".scheduler.realtime._live": ("LiveRun",),
            ".scheduler.realtime.log._replay": ("replay",),
            ".scheduler.realtime._start": (
                "run_realtime",
                "start",
            ),
            ".scheduler.results._result": ("Result",),
            ".scheduler.run._linear_model": ("LinearModel",),
            ".scheduler.run._linearize": ("linearize",),
            ".scheduler.run._simulate": ("simulate",),
            ".scheduler.run._sweep": (
                "Sweep",
                "sweep",
            ),
        },
    )

__version__ = "0.1.0"

__all__ = [
    "BiellaDeprecationWarning",
    "BiellaError",
    "BiellaWarning",
    "BindingError",
    "BlockError",
    "CouplingWarning",
    "DeviceError",
    "Diagram",
    "DiagramError",
    "Fmu",
    "FmuError",
    "FormulationError",
    "LinearModel",
    "LiveRun",
    "OverrunError",
    "Plan",
    "PlanError",
    "Result",
    "ResultError",
    "Subsystem",
    "Sweep",
    "System",
    "UnitError",
    "UnknownSignalError",
    "linearize",
    "replay",
    "run_realtime",
    "simulate",
    "sweep",
]
