"""Results of runs: signals, spectra, comparisons, reports."""

from .scheduler.realtime.realtime_report import RealtimeReport
from .scheduler.realtime.replay import find_differences
from .scheduler.results.comparison import Comparison, SignalDifference
from .scheduler.results.coupling_report import ConnectionReport, CouplingReport
from .scheduler.results.result import Result
from .scheduler.results.signals import Signal
from .scheduler.results.spectra import Orbit, OrderSpectrum, Spectrum, Waterfall
from .scheduler.run.sweep import Sweep

__all__ = [
    "Comparison",
    "ConnectionReport",
    "CouplingReport",
    "Orbit",
    "OrderSpectrum",
    "RealtimeReport",
    "Result",
    "Signal",
    "SignalDifference",
    "Spectrum",
    "Sweep",
    "Waterfall",
    "find_differences",
]
