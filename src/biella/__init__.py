"""biella: mechanisms and block diagrams that run offline, as FMUs, and against real hardware."""

from typing import TYPE_CHECKING

from .lazy import attach

if TYPE_CHECKING:
    from .blocks.multibody.system import System
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
    from .fmu.importer.fmu import Fmu
    from .scheduler.compile.diagram import Diagram
    from .scheduler.compile.plan import Plan
    from .scheduler.compile.subsystem import Subsystem
    from .scheduler.realtime.live import LiveRun
    from .scheduler.realtime.replay import replay
    from .scheduler.realtime.start import run_realtime
    from .scheduler.realtime.start import start as start
    from .scheduler.results.result import Result
    from .scheduler.run.linear_model import LinearModel
    from .scheduler.run.linearize import linearize
    from .scheduler.run.simulate import simulate
    from .scheduler.run.sweep import Sweep, sweep
else:
    __getattr__, __dir__ = attach(
        __name__,
        {
            ".blocks.multibody.system": ("System",),
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
            ".fmu.importer.fmu": ("Fmu",),
            ".scheduler.compile.diagram": ("Diagram",),
            ".scheduler.compile.plan": ("Plan",),
            ".scheduler.compile.subsystem": ("Subsystem",),
            ".scheduler.realtime.live": ("LiveRun",),
            ".scheduler.realtime.replay": ("replay",),
            ".scheduler.realtime.start": (
                "run_realtime",
                "start",
            ),
            ".scheduler.results.result": ("Result",),
            ".scheduler.run.linear_model": ("LinearModel",),
            ".scheduler.run.linearize": ("linearize",),
            ".scheduler.run.simulate": ("simulate",),
            ".scheduler.run.sweep": (
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
