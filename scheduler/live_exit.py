"""Live runs end with their process: safe values first, however it ends."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .live import LiveRun

_live: set[LiveRun] = set()


_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGTERM", "SIGHUP")  # the latter: its terminal is closed, or out of reach
    if hasattr(signal, name)
]


def watch(run: LiveRun) -> None:
    """See to it that the run ends safely with the process, also by a signal."""
    _live.add(run)
    # Last in, first out: runs end before their devices are closed, which are registered, too.
    atexit.unregister(_on_exit)
    atexit.register(_on_exit)
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _SIGNALS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _on_signal)


def forget(run: LiveRun) -> None:
    """Leave it alone: it is over."""
    _live.discard(run)


def _end_all(why: str) -> list[LiveRun]:
    runs = list(_live)
    for run in runs:
        run._end(why)
    return runs


def _on_exit() -> None:
    for run in _end_all("ended with the process"):
        run._settled.wait()


def _on_signal(number: int, frame: FrameType | None) -> None:
    """End all runs. Who waits for one gets its result; a process that waits for none ends.

    Runs are not waited for here but at the exit: what was interrupted may have a lock that they
    need.
    """
    signal.signal(number, signal.SIG_DFL)
    runs = _end_all(f"ended by {signal.Signals(number).name}")
    if any(run._waiting for run in runs):
        return
    if runs:
        raise SystemExit(128 + number)
    os.kill(os.getpid(), number)
