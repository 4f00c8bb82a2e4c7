"""Runs in the studio that it has not started.

`AttachedSession` is a run of this process, which `biella run-realtime --studio` serves: pages see
everything. `WatchedSession` is one of another process, by the page that it keeps for
`biella watch`: all signals, ten times a second; no diagram, and nothing can be set.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future

import numpy as np

from ..errors import BiellaError
from ..scheduler.compile.diagram._diagram import Diagram
from ..scheduler.realtime._history import History
from ..scheduler.realtime._live import LiveRun
from ..scheduler.realtime._live_end import describe_briefly
from ..scheduler.realtime._watch import Glance, choose_page, glances, read_page
from ..scheduler.realtime.safety._rearm import request_rearm
from ..scheduler.results._signals import Signal
from ._messages import Message, describe_diagram, describe_parameters, describe_signals
from ._session import SEEN, TUNING, AbstractRunSession, AbstractSession, view_history

_SECONDS = 0.1
_BYTES = 64 << 20


class AttachedSession(AbstractRunSession):
    """A run that a program has started, and that pages watch and control: it is not started again.

    Parameters
    ----------
    run
        The run; it keeps its newest rows.
    diagram
        What it runs.
    """

    mode = "attached"

    def __init__(self, run: LiveRun, diagram: Diagram) -> None:
        super().__init__()
        self.can = (*SEEN, "run", "pause", *TUNING, "rearm", "safe_stop")
        if not describe_briefly(run)["devices"]:
            self.can += ("step", "factor")
        self._take_run(run, describe_diagram(diagram, run.plan))

    def introduce(self) -> Message:
        assert self.run is not None
        plan = self.run.plan
        return {"name": plan.name, "file": "", "step": plan.step}

    def describe(self) -> list[Message]:
        assert self.run is not None
        events: Message = {"event": "events", "list": self._events}
        return [*self._described, describe_parameters(self.run.plan, self._set), events]


class WatchedSession(AbstractSession):
    """A run of another process.

    Parameters
    ----------
    run
        Its process or its diagram; the only one if not given.
    """

    mode = "attached"

    def __init__(self, run: str | None = None) -> None:
        super().__init__()
        self._page = choose_page(run)
        glance = read_page(self._page)
        if glance is None:
            raise BiellaError("the run has just ended.")
        self._glance: Glance = glance
        self._ended = False
        signals = [
            Signal(
                path,
                len(value) if isinstance(value, list) else 1,
                glance.units[path],
                "enumeration" if glance.names.get(path) else "real",
                names=tuple(glance.names.get(path, ())),
            )
            for path, value in glance.values.items()
        ]
        self._history = History(signals, _SECONDS, _BYTES)
        self.view = view_history(self._history)
        self.can = SEEN
        if os.name == "posix":
            self.can += ("rearm", "safe_stop")

    def serve(self) -> None:
        """Read the page of the run until it ends, and then until `end`."""
        for glance in glances(self._page):
            if self._ends.is_set():
                return
            if glance.tick > self._glance.tick or not self._history.end:
                values = [np.ravel(value) for value in glance.values.values()]
                self._history.take(np.concatenate([[glance.time], *values])[None])
            self._glance = glance
        self._ended = True
        self._ends.wait()

    def introduce(self) -> Message:
        return {"name": self._glance.name, "file": "", "step": _SECONDS}

    def describe(self) -> list[Message]:
        history = self._history
        return [describe_signals(history.signals, history.columns, None, _SECONDS)]

    def state(self) -> Message:
        glance = self._glance
        state = "ended" if self._ended else "latched" if glance.latched else "running"
        return {
            "event": "state",
            "state": state,
            "time": glance.time,
            "tick": glance.tick,
            "reason": "",
            "begin": 0.0,
        }

    def _do_safe_stop(self, request: Message) -> None:
        os.kill(self._glance.pid, signal.SIGTERM)  # a live run ends safely by it

    def _do_rearm(self, request: Message) -> Future[Message]:
        future: Future[Message] = Future()

        def ask() -> None:
            try:
                request_rearm(self._page, self._glance)
                future.set_result({})
            except Exception as error:
                future.set_exception(error)

        future.set_running_or_notify_cancel()
        threading.Thread(target=ask, name="biella rearm", daemon=True).start()  # may take seconds
        return future

    def act(self, name: str, request: Message) -> Message | Future[Message] | None:
        if self._ended:
            raise BiellaError("the run has ended.")
        act: Callable[[Message], Future[Message] | None] = getattr(self, f"_do_{name}")
        return act(request)
