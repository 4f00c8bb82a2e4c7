"""Real-time runs: their handle, privileges and replay."""

from .scheduler.binding.rig import Binding, read_binding
from .scheduler.host.privileges import Privileges
from .scheduler.realtime.live import LiveRun
from .scheduler.realtime.realtime_report import RealtimeReport
from .scheduler.realtime.replay import find_differences, replay
from .scheduler.realtime.start import run_realtime

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
