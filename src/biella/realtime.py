"""Real-time runs: their handle, privileges and replay."""

from .scheduler.binding._rig import Binding, read_binding
from .scheduler.host._privileges import Privileges
from .scheduler.realtime._live import LiveRun
from .scheduler.realtime._realtime_report import RealtimeReport
from .scheduler.realtime._start import run_realtime
from .scheduler.realtime.log._replay import find_differences, replay

__all__ = [
    "Binding",
    "LiveRun",
    "Privileges",
    "RealtimeReport",
    "find_differences",
    "read_binding",
    "replay",
    "run_realtime",
]
