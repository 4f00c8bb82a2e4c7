"""Results of runs: signals, spectra, comparisons, reports."""

from .scheduler.realtime._realtime_report import RealtimeReport
from .scheduler.realtime.log._replay import find_differences
from .scheduler.results._comparison import Comparison, SignalDifference
from .scheduler.results._coupling_report import ConnectionReport, CouplingReport
from .scheduler.results._error_estimate import ErrorEstimate
from .scheduler.results._result import Result
from .scheduler.results._signals import Signal
from .scheduler.results._spectra import Orbit, OrderSpectrum, Spectrum, Waterfall
from .scheduler.results.events._events import Event, Events
from .scheduler.results.events._timeline import Interval, Timeline
from .scheduler.run._sweep import Sweep

__all__ = [
    "Comparison",
    "ConnectionReport",
    "CouplingReport",
    "ErrorEstimate",
    "Event",
    "Events",
    "Interval",
    "Orbit",
    "OrderSpectrum",
    "RealtimeReport",
    "Result",
    "Signal",
    "SignalDifference",
    "Spectrum",
    "Sweep",
    "Timeline",
    "Waterfall",
    "find_differences",
]
