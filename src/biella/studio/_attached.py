"""Runs in the studio that it has not started.

`AttachedSession` is a run of this process, which `biella run-realtime --studio` serves: pages see
everything. `WatchedSession` is one of another process, by the page that it keeps for
`biella watch`: all signals, ten times a second; its diagram where its file is named, and nothing
can be set.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import numpy as np

from ..cli._load import load_diagram
from ..errors import BiellaError
from ..scheduler.compile._flatten import flatten
from ..scheduler.compile.diagram._diagram import Diagram
from ..scheduler.compile.plan._plan import Plan
from ..scheduler.realtime._history import History
from ..scheduler.realtime._live import LiveRun
from ..scheduler.realtime._live_end import describe_briefly
from ..scheduler.realtime._start import stand_ins
from ..scheduler.realtime._watch import Glance, choose_page, glances, read_page
from ..scheduler.realtime.safety._rearm import request_rearm
from ..scheduler.results._signals import Signal
from ._marks import Marks
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
    obstacle = "the run belongs to the program that has started it"

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
        parameters = describe_parameters(self.run.plan, self._set)
        return [*self._described, parameters, events, self._marks.describe()]


def _draw(diagram: Diagram, name: str) -> tuple[Plan, list[Message]]:
    """Return the plan of a diagram, and what pages are told of it; devices are left out."""
    if diagram.name != name:
        raise BiellaError(f"the run is of `{name}`, but the file defines `{diagram.name}`.")
    flat = flatten(diagram)
    plan = diagram.compile(**{**stand_ins(flat, diagram.start_time), "flat": flat})
    return plan, [describe_diagram(diagram, plan)]


class WatchedSession(AbstractSession):
    """A run of another process.

    Parameters
    ----------
    run
        Its process or its diagram; if not given, that of the file, or the only one.
    file
        The Python file of its diagram, for the picture; without, only signals are known.
    """

    mode = "attached"
    obstacle = "the run belongs to another process"

    def __init__(self, run: str | None = None, file: Path | None = None) -> None:
        super().__init__()
        diagram = load_diagram(file) if file else None
        self._page = choose_page(run or (diagram.name if diagram else None))
        glance = read_page(self._page)
        if glance is None:
            raise BiellaError("the run has just ended.")
        self._glance: Glance = glance
        self._ended = False
        self._marks = Marks()
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
        self._plan: Plan | None = None
        self._picture: list[Message] = []
        if diagram:
            self._plan, self._picture = _draw(diagram, glance.name)
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
            self._take_events(glance.about.get("events"))
        self._ended = True
        self._ends.wait()

    def _take_events(self, events: Message | None) -> None:
        if not events:
            return
        new = min(events["total"] - self._marks.total, len(events["newest"]))
        told = self._marks.take(events["total"], events["newest"][-new:] if new > 0 else [])
        if told is not None:
            self.announce(told, f"marks {told['total']}")

    def introduce(self) -> Message:
        step = self._plan.step if self._plan else _SECONDS
        return {"name": self._glance.name, "file": "", "step": step}

    def describe(self) -> list[Message]:
        history = self._history
        signals = describe_signals(history.signals, history.columns, self._plan, _SECONDS)
        return [*self._picture, signals, self._marks.describe()]

    def state(self) -> Message:
        glance = self._glance
        about = glance.about
        state = "ended" if self._ended else "latched" if glance.latched else "running"
        if state == "running" and about.get("paused"):
            state = "paused"
        names = ("factor", "overruns", "lateness_p99", "overridden")
        return {
            "event": "state",
            "state": state,
            "time": glance.time,
            "tick": glance.tick,
            "reason": "",
            "begin": 0.0,
            **{name: about[name] for name in names if name in about},
            "devices": self._list_devices(),
        }

    def _list_devices(self) -> list[Message]:
        """Return the devices; their ages grow also while the run tells nothing."""
        glance = self._glance
        devices = [] if self._ended else glance.about.get("devices", [])
        return [
            device | {"age": None if device["age"] is None else device["age"] + glance.age}
            for device in devices
        ]

    def timing(self) -> Message | None:
        timing = self._glance.about.get("timing")
        return {"event": "timing", **timing} if timing else None

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
