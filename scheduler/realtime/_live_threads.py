"""The two threads of a live run: the real-time loop, and the recorder of its rows and input log."""

from __future__ import annotations

import contextlib
import logging
import math
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...errors import BiellaError
from ..compile.plan._plan import Plan
from . import _live_exit as live_exit
from ._live_end import describe_for_watch, finish
from ._watch import Page
from .loop._pace import CLOCK_WALL
from .safety._rearm import LatchNotice

if TYPE_CHECKING:
    from ._live import LiveRun
    from ._live_setup import Pipes

_log = logging.getLogger("biella")
_DRAIN_SECONDS = 0.02
_SWITCH_SECONDS = 5e-4
_SHOW_SECONDS = 0.1
_ABOUT_BYTES, _DEVICE_BYTES = 1 << 14, 1 << 10


def run_loop(run: LiveRun) -> None:
    """Execute the real-time loop: body of the real-time thread."""
    try:
        with _privileged(run), _short_turns(bool(run.plan.python_blocks)):
            run._status = run._pace.run(run._instance, run._ticks)
    except BaseException as error:
        run._failure = error
    finally:
        run._over.set()


@contextlib.contextmanager
def _privileged(run: LiveRun) -> Iterator[None]:
    if run._privileges is None and run._pace.clock != CLOCK_WALL:
        yield
        return
    from ..host._privileges import Privileges, hold

    with hold(run._privileges or Privileges()) as grants:
        run._grants = grants
        yield


def record(run: LiveRun) -> None:
    """Record until the loop ends, then close the run: body of the recorder thread."""
    page: Page | None = None
    notice = LatchNotice(run, None)
    shown_at = -math.inf
    try:
        page = _open_page(run.plan, run._pipes, len(run._devices))
        notice = LatchNotice(run, page.path if page else None)
        while not run._over.wait(_DRAIN_SECONDS):
            _drain(run)
            notice.look()
            if page is not None and time.monotonic() >= shown_at + _SHOW_SECONDS:
                shown_at = time.monotonic()
                _show(run, page)
        _drain(run)
        finish(run)
    except BaseException as error:
        run._failure = run._failure or error
        run._end(f"the recorder failed: {error}")
    finally:
        run._over.wait()  # the loop works on what is closed here
        try:
            notice.close()
            if page is not None:
                page.close()
            run._last_frame = run._pipes.mailbox.take()
            for worker in run._workers:
                worker.wait()
            with run._lock:
                run._closed = True
                run._stack.close()
            run._outer.close()
        except BaseException as error:
            run._failure = run._failure or error
        live_exit.forget(run)
        run._settled.set()
        live_exit.take_default_action(run)


def _drain(run: LiveRun) -> None:
    """Record pending rows, and before them what entered the run up to their ticks.

    Entries of a tick reach the input log before its row, and that before the tick completes.
    """
    ticks = int(run._pace.done)
    rows = run._pipes.rows.pull()
    entries = run._pipes.input_log.pull()
    run.states.collect()
    recorder, plan = run._recorder, run.plan
    recorder.note_reached(ticks, plan.start_time, plan.step)
    recorder.events.append(run._pipes.events.pull())
    recorder.append_input_log(entries, ticks)
    if len(rows):
        rows[:, 0] = plan.start_time + rows[:, 0] * plan.step
        run.history.take(rows)
        recorder.take(rows)
    else:
        recorder.flush_if_due()
    if recorder.trouble and run._options["on_log_failure"] == "stop":
        run._end(f"the log is not complete: {recorder.trouble.rstrip('.')}")


def _show(run: LiveRun, page: Page) -> None:
    """Update the monitors."""
    frame = run._pipes.mailbox.take()
    if frame is not None:
        about: dict[str, Any] = {}
        try:
            about = describe_for_watch(run)
        except Exception:  # what only shows a run must not end it
            _log.debug("the page of the run has no figures of it", exc_info=True)
        page.write(frame, latched=bool(run.latched), about=about)


def _open_page(plan: Plan, pipes: Pipes, devices: int) -> Page | None:
    """Open the monitoring page; the run continues without one if that fails."""
    try:
        return Page(plan, pipes.place, _ABOUT_BYTES + devices * _DEVICE_BYTES)
    except (OSError, BiellaError):
        return None


def has_begun(thread: threading.Thread) -> bool:
    """Return whether a thread has been started, even if Ctrl-C interrupted its start."""
    for _ in range(100):
        if thread.ident is not None:
            return True
        time.sleep(1e-3)
    return False


@contextlib.contextmanager
def _short_turns(needed: bool) -> Iterator[None]:
    """Shorten the thread switch interval: other threads may hold the interpreter for 5 ms."""
    before = sys.getswitchinterval()
    if needed:
        sys.setswitchinterval(min(before, _SWITCH_SECONDS))
    try:
        yield
    finally:
        if needed:
            sys.setswitchinterval(before)
