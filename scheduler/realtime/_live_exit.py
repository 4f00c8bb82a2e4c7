"""Live runs end with their process: safe values first, however it ends."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING

from ..engine._library import contract

if TYPE_CHECKING:
    from ._live import LiveRun

_live: set[LiveRun] = set()


_EXIT_PATIENCE = 5.0  # s that the end of the process waits for a tick to end
_BITS = {
    getattr(signal, name): getattr(contract, name.replace("SIG", "BL_SIGNAL_"))
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGXCPU")
    if hasattr(signal, name)
}
_SIGNALS = [number for number in _BITS if number != signal.SIGINT]


def watch(run: LiveRun) -> None:
    """Make the run end safely with the process, also by a signal.

    Only signals with their default action are handled: one that is ignored, such as SIGHUP under
    nohup, stays ignored, and a handler of the program stays in place. The watchdog of the run
    handles them in C first; the handlers here follow when the main thread has time.
    """
    _live.add(run)
    run._pace.signals = 0
    # Last in, first out: runs end before their devices are closed, which are registered, too.
    atexit.unregister(_on_exit)
    atexit.register(_on_exit)
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _on_signal)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, on_interrupt)
    ours = (signal.SIG_DFL, signal.default_int_handler, _on_signal, on_interrupt)
    for number, bit in _BITS.items():
        if signal.getsignal(number) in ours:
            run._pace.signals |= bit
    run._fatal = frozenset(n for n in _BITS if signal.getsignal(n) is signal.SIG_DFL)


def take_default_action(run: LiveRun) -> None:
    """End the process by the signal that has ended a run, if nothing else handles it."""
    number = int(run._pace.signal)
    if number in run._fatal and signal.getsignal(number) is signal.SIG_DFL:
        os.kill(os.getpid(), number)


def forget(run: LiveRun) -> None:
    """Leave it alone: it is over."""
    _live.discard(run)


def restore_signals() -> None:
    """Restore the default actions when no run is left; only the main thread can do it."""
    if _live or threading.current_thread() is not threading.main_thread():
        return
    for number in _SIGNALS:
        if signal.getsignal(number) is _on_signal:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is on_interrupt:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_all(why: str = "interrupted by Ctrl-C") -> list[LiveRun]:
    """Tell all runs to end, and return them."""
    runs = list(_live)
    for run in runs:
        run._end(why)
    return runs


def _on_exit() -> None:
    for run in end_all("ended with the process"):
        if not run._over.wait(_EXIT_PATIENCE):
            run._leave_behind()
            continue
        run._settled.wait()


def on_interrupt(number: int, frame: FrameType | None) -> None:
    """End all runs at Ctrl-C, then do what Python does: at a prompt the run ends, too."""
    end_all()
    signal.default_int_handler(number, frame)


def _on_signal(number: int, frame: FrameType | None) -> None:
    """End all runs. A program that waits for one gets its result; one that waits for none ends.

    Runs are not waited for here but at the exit: the interrupted code may hold a lock that they
    need.
    """
    signal.signal(number, signal.SIG_DFL)
    runs = end_all(f"ended by {signal.Signals(number).name}")
    if any(run._waiting for run in runs):
        return
    if runs:
        raise SystemExit(128 + number)
    os.kill(os.getpid(), number)


def _forget_in_child() -> None:
    """Let a forked child end by itself: the threads of its runs exist in the parent only."""
    atexit.unregister(_on_exit)
    runs = list(_live)
    _live.clear()
    for run in runs:
        run._abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
