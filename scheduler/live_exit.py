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


def watch(run: LiveRun) -> None:
    """See to it that the run ends safely with the process, also by SIGTERM."""
    _live.add(run)
    # Last in, first out: runs end before their devices are closed, which are registered, too.
    atexit.unregister(_on_exit)
    atexit.register(_on_exit)
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)


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


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    """End all runs. Who waits for one gets its result; a process that waits for none ends."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    runs = _end_all("ended by SIGTERM")
    if any(run._waiting for run in runs):
        return
    for run in runs:
        run._settled.wait()
    if runs:
        raise SystemExit(128 + number)
    os.kill(os.getpid(), number)
