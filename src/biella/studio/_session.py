"""What the studio shows and controls: the diagram of a file, and its run.

Everything that takes long (loading, compiling, starting, stopping) is done by the main thread, in
`LiveSession.serve`. Pages are answered from the server's thread.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import queue
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..cli._load import load_diagram
from ..errors import BiellaError
from ..scheduler.compile._flatten import flatten
from ..scheduler.compile._model import Model
from ..scheduler.compile.diagram._diagram import Diagram
from ..scheduler.compile.plan._plan import Plan, read_value
from ..scheduler.realtime._history import History
from ..scheduler.realtime._live import LiveRun
from ..scheduler.realtime._live_end import describe_briefly, describe_timing
from ..scheduler.realtime._start import stand_ins, start_run
from ..scheduler.realtime.log._branch import Course
from ..scheduler.results._signals import Signal
from ..scheduler.run._simulate import choose_signals
from ._branches import STATES, Branches
from ._marks import Marks
from ._mechanism import Mechanism, find_mechanisms, list_systems, show_mechanisms
from ._messages import (
    Message,
    describe_diagram,
    describe_parameters,
    describe_problems,
    describe_signals,
    plain,
    read_number,
)
from ._scopes import AbstractRows
from .edit._offer import Offer
from .mechanism._journals import find_journals

_log = logging.getLogger("biella")
HISTORY = 256 << 20
"""Bytes of rows that are kept for scopes."""

SEEN = ("subscribe", "unsubscribe", "watch", "window", "poses", "mesh", "moment", "export")
BRANCHING = ("branch", "switch", "rename", "delete")
TUNING = ("set", "override", "release")
PUSHING = "push"
_CLOSED = "the studio is being closed."
_BROKEN = "the file has a problem: correct it first."
_LOOK_SECONDS = 0.25
_SPEED_SECONDS = 1.0


@dataclass(frozen=True, eq=False)
class View:
    """The rows of a run, and what is in them; another run has another view.

    Attributes
    ----------
    rows
        The rows.
    signals
        First column, and width, of each signal.
    described
        The signals.
    mechanisms
        Those whose poses are among the signals.
    """

    rows: AbstractRows
    signals: Mapping[str, tuple[int, int]]
    described: Mapping[str, Signal]
    mechanisms: Sequence[Mechanism] = ()

    def find_columns(self, paths: Sequence[str]) -> list[int]:
        """Return the columns of signals, one for each element; -1 if there is no such signal."""
        columns: list[int] = []
        for path in paths:
            first, width = self.signals.get(path, (-1, 1))
            columns += [first] if first < 0 else range(first, first + width)
        return columns


def view_history(history: History, mechanisms: Sequence[Mechanism] = ()) -> View:
    """Return the view of rows in memory."""
    widths = {item.path: (history.columns[item.path], item.width) for item in history.signals}
    described = {item.path: item for item in history.signals}
    return View(history, widths, described, mechanisms)


class AbstractSession(ABC):
    """What pages see.

    Attributes
    ----------
    announce
        Tells all pages something; set by the server.
    can
        What pages may ask for.
    obstacle
        Why there can be no branch.
    view
        The present run.
    """

    mode: str
    can: tuple[str, ...] = SEEN
    is_live = True
    obstacle = ""
    view: View

    def __init__(self) -> None:
        self.announce: Callable[..., None] = lambda message, key="": None
        self._ends = threading.Event()

    def serve(self) -> None:
        """Do the work of the main thread until `end`."""
        self._ends.wait()

    def end(self) -> None:
        """Let `serve` return."""
        self._ends.set()

    @abstractmethod
    def introduce(self) -> Message:
        """Return what the greeting has: name, file, mode, step, what is allowed."""

    @abstractmethod
    def describe(self) -> list[Message]:
        """Return what a new page has to know."""

    @abstractmethod
    def state(self) -> Message:
        """Return how the run is."""

    def list_problems(self) -> list[str]:
        """Return what is wrong with the file of the diagram."""
        return []

    def timing(self) -> Message | None:
        """Return lateness and execution times of the ticks so far; None if nothing runs."""
        return None

    def look(self) -> Message | None:
        """Return what has happened since the last call, for all pages."""
        return None

    def find_view(self, number: int) -> View | None:
        """Return the rows of a run; None if there is no such run."""
        return None

    def find_course(self, number: int | None) -> Course | None:
        """Return what else is known of a run that was kept."""
        return None

    def name_of(self, number: int | None) -> str:
        """Return the name of a run, None: of the present one, for the name of a file."""
        return str(self.introduce()["name"])

    def act(self, name: str, request: Message) -> Message | Future[Message] | None:
        """Do what a page asks for, in the server's thread."""
        raise BiellaError(f"`{name}` is not possible here.")


class AbstractRunSession(AbstractSession):
    """A live run that pages see and control.

    Attributes
    ----------
    run
        The present run, or the last one; None before the first.
    """

    def __init__(self) -> None:
        super().__init__()
        self.run: LiveRun | None = None
        self.view = view_history(History([], 1.0, 0))
        self._described: list[Message] = []  # diagram, signals, mechanisms
        self._set: dict[str, Any] = {}  # parameters and inputs that pages have set
        self._events: list[Message] = []
        self._numbers = itertools.count()  # of events
        self._failure = ""  # of the last run
        self._marks = Marks()
        self._speed = (0.0, 0.0, 0.0)  # when it was measured, the run's time then, the speed

    def _show(self, model: Model, history: History, picture: Message) -> None:
        """Describe a compiled diagram, and the rows of its run, to pages."""
        systems = list_systems(model.flat)
        found = find_mechanisms(systems, history.columns)
        mechanisms = [mechanism.describe() for mechanism in found]
        before = self._described
        if {"event": "mechanisms", "list": mechanisms} not in before:
            for item in found:
                for text in item.problems:
                    self._note(item.path, text)
        self._described = [
            picture,
            describe_signals(history.signals, history.columns, model, history.interval),
            {"event": "mechanisms", "list": mechanisms},
            {"event": "journals", "list": find_journals(model.flat, systems, history.columns)},
        ]
        for number, message in enumerate(self._described):
            if number >= len(before) or message != before[number]:
                self.announce(message)
        self.announce(describe_parameters(model, self._set))
        self.view = view_history(history, found)

    def _take_run(self, run: LiveRun, picture: Message) -> None:
        """Let pages see another run from now on."""
        assert isinstance(run.plan, Model)
        self.run = run
        self._marks = Marks(self._marks.run + 1, run._recorder.events)
        self._speed = (time.monotonic(), run.time, 0.0)
        self._show(run.plan, run.history, picture)

    def _note(self, block: str, text: str) -> None:
        """Tell pages something that has happened."""
        event = {"time": self.run.time if self.run else 0.0, "block": block, "text": text}
        self._events = [*self._events[-99:], event]
        self.announce({"event": "events", "list": [event]}, f"events {next(self._numbers)}")

    def _note_warnings(self, caught: Sequence[warnings.WarningMessage]) -> None:
        for item in caught:
            self._note("", str(item.message))

    def state(self) -> Message:
        run = self.run
        if run is None:
            return {"event": "state", "state": "none", "time": 0.0, "tick": 0, "reason": ""}
        now, at = time.monotonic(), run.time
        then, before, speed = self._speed
        if now - then >= _SPEED_SECONDS:
            speed = (at - before) / (now - then)
            self._speed = (now, at, speed)
        report, latched = describe_briefly(run), run.latched
        state = "running"
        if not run.running:
            state = "failed" if report["failed"] else "ended"
        elif latched:
            state = "latched"
        elif report["paused"]:
            state = "paused"
        names = ("factor", "overruns", "lateness_p99", "overridden", "devices")
        return {
            "event": "state",
            "state": state,
            "time": at,
            "tick": run.tick,
            "actual_factor": speed,
            "reason": latched or self._failure or report["reason"],
            "begin": self._find_begin(),
            **{name: report[name] for name in names},
        }

    def timing(self) -> Message | None:
        return None if self.run is None else {"event": "timing", **describe_timing(self.run)}

    def look(self) -> Message | None:
        return self._marks.look()

    def _find_begin(self) -> float:
        """Return the time of the oldest row."""
        rows = self.view.rows
        _, found = rows.read(rows.begin, rows.begin + 1, [0])
        return float(found[0, 0]) if found.size else 0.0

    def act(self, name: str, request: Message) -> Message | Future[Message] | None:
        act: Callable[[Message], Message | None] = getattr(self, f"_do_{name}")
        return act(request)

    def _is_going(self) -> bool:
        return self.run is not None and self.run.running

    def _require_run(self) -> LiveRun:
        if self.run is None or not self.run.running:
            raise BiellaError("nothing runs: start a run first.")
        return self.run

    def _do_run(self, request: Message) -> None:
        self._require_run().resume()

    def _do_pause(self, request: Message) -> None:
        self._require_run().pause()

    def _do_step(self, request: Message) -> None:
        self._require_run().step(request.get("ticks", 1))

    def _do_factor(self, request: Message) -> None:
        self._require_run().factor = read_number(request, "value", math.nan)

    def _do_rearm(self, request: Message) -> None:
        self._require_run().rearm()

    def _do_safe_stop(self, request: Message) -> None:
        self._require_run()._end("stopped from the studio")

    def _do_set(self, request: Message) -> None:
        path, value = _read_path(request), _read_value(request)
        run = self._require_run()
        run[path] = value
        self._note_set(run.plan, path, value)

    def _note_set(self, plan: Plan, path: str, value: Any) -> None:
        """Remember what was set, and tell all pages."""
        _, shape = plan.find_settable(path)
        self._set[path] = np.asarray(value, dtype=np.float64)
        shape = () if path in plan.inputs and shape == (1,) else shape
        message = {"event": "changed", "path": path, "value": plain(value, shape)}
        self.announce(message, f"changed {path}")

    def _do_push(self, request: Message) -> None:
        path = request.get("mechanism")
        mechanism = next((item for item in self.view.mechanisms if item.path == path), None)
        if mechanism is None:
            raise BiellaError(f"there is no mechanism {path!r}.")
        self._require_run()._set_inputs(mechanism.read_push(request))

    def _do_override(self, request: Message) -> None:
        self._require_run().override(_read_path(request), _read_value(request))

    def _do_release(self, request: Message) -> None:
        path = request.get("path")
        self._require_run().release(None if path is None else _read_path(request))


class LiveSession(AbstractRunSession):
    """The diagram of a Python file, run as often as pages ask for it.

    Parameters
    ----------
    file
        The file.
    bind
        The binding of its runs to devices.
    log
        Where runs are recorded; by default only the newest rows are kept, in memory.
    reactions, pushes
        As of `show_mechanisms`; by default with runs that have no devices.

    Attributes
    ----------
    history
        Bytes of rows that are kept for scopes.
    branches
        The runs beside the present one.
    """

    mode = "studio"

    def __init__(
        self,
        file: Path,
        bind: Path | None = None,
        log: Path | None = None,
        factor: float | None = None,
        *,
        reactions: bool | None = None,
        pushes: bool | None = None,
    ) -> None:
        super().__init__()
        free = bind is None
        self._edit = partial(
            show_mechanisms,
            reactions=free if reactions is None else reactions,
            pushes=(pushed := free if pushes is None else pushes),
        )
        self.file, self._bind, self._log = file, bind, log
        self._factor = factor
        self._diagram: Diagram | None = None
        self._model: Model | None = None
        self._picture: Message = {}
        self._problems: Message = {"event": "problems", "list": []}
        self._jobs: queue.Queue[tuple[Callable[[Message], Message | None], Message, Future[Any]]]
        self._jobs = queue.Queue(64)
        self._stamp: tuple[float, ...] = ()
        self._collected = False
        self._cannot_start = False  # the problems are those of a start
        self.history = HISTORY
        self.branches = Branches(self)
        self._offer = Offer(self._find_file())
        self.can = (*SEEN, "run", "pause", "restart", "stop", *TUNING, *BRANCHING)
        self.can += self._offer.can
        self.can += ("step", "factor") if bind is None else ("rearm", "safe_stop")
        self.can += (PUSHING,) if pushed else ()

    def refuse_edits(self, reason: str) -> None:
        """Let no page change the file."""
        self.can = tuple(name for name in self.can if name not in self._offer.can)
        self._offer.refuse(reason)

    # Main thread.

    def load(self) -> None:
        """Load the file; what is wrong with it becomes the problems."""
        self._stamp = self._read_stamp()
        self._offer.begin()
        loaded: Diagram | None = None
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                loaded = self._read_diagram()
                self._take_diagram(loaded)
            self._note_warnings(caught)
            self._cannot_start = False
            self._problems = {"event": "problems", "list": []}
        except Exception as error:  # also of the user's blocks, while they are compiled
            if not isinstance(error, BiellaError):
                _log.debug("`%s` cannot be loaded", self.file, exc_info=True)
                error = BiellaError(f"{type(error).__name__}: {error}")
            names = [*self._model_paths(), *(self._show_draft(loaded) if loaded else ())]
            self._problems = describe_problems(error, list(dict.fromkeys(names)))
        self.announce(self._problems)
        # A diagram that does not compile can be changed all the same: to correct it.
        self._offer.take(loaded)
        self.announce(self._offer.message)

    def list_problems(self) -> list[str]:
        return [problem["text"] for problem in self._problems["list"]]

    def _find_file(self) -> Path | None:
        """Return the file of the diagram, if it has one that can be changed."""
        return self.file

    def _read_diagram(self) -> Diagram:
        diagram: Diagram = load_diagram(self.file)
        return diagram

    def _take_diagram(self, diagram: Diagram) -> None:
        flat = self._edit(flatten(diagram))
        model = diagram.compile(**{**stand_ins(flat, diagram.start_time), "flat": flat})
        ports = choose_signals(model, ["*"])
        history = History([port.signal for port in ports], model.step, 0)
        picture = describe_diagram(diagram, model)
        self._keep_settings(model)
        self._diagram, self._model, self._picture = diagram, model, picture
        if not self._is_kept():
            self._show(model, history, picture)

    def _show_draft(self, diagram: Diagram) -> list[str]:
        """Draw a diagram that does not compile, unless a run goes on; return what it has."""
        try:
            draft = describe_diagram(diagram, None)
        except Exception:
            _log.debug("`%s` cannot be drawn", self.file, exc_info=True)
            return []
        if not self._is_going():
            draft["blocks"] = self._picture.get("blocks", {})
            self._described = [draft, *self._described[1:]]
            self.announce(draft)
        picture = draft["picture"]
        return [item["path"] for item in (*picture["boxes"], *picture["frames"])]

    def _is_kept(self) -> bool:
        """Return whether the present run goes on when the file is saved: one with devices does."""
        return self._bind is not None and self._is_going()

    def _keep_settings(self, model: Model) -> None:
        """Forget what pages have set where the file has another value now."""
        before = self._model
        kept = {}
        for path, value in dict(self._set).items():  # pages may set more meanwhile
            try:
                where, _ = model.find_settable(path)
                default = model.first_values[where]
                place, _ = before.find_settable(path) if before else (where, ())
                old = before.first_values[place] if before else default
                if np.array_equal(default, old, equal_nan=True):
                    kept[path] = value
            except BiellaError:
                continue
        self._set = kept

    def _model_paths(self) -> list[str]:
        return [block.path for block in self._model.blocks] if self._model else []

    def _start(self, paused: bool) -> None:
        if self._diagram is None:
            raise BiellaError(_BROKEN)
        self._end_run()
        self._failure = ""
        # As fast as possible is not an option of a run, but a change of one.
        given = {"record": ["*"], "out": self._log, "factor": self._factor or None}
        parameters = dict(self._set)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                run = start_run(
                    self._diagram,
                    given,
                    {},
                    bind=self._bind,
                    parameters=parameters,
                    edit=self._edit,
                    history=self.history,
                    states=STATES,
                    paused=paused,
                )
                if self._factor == 0.0:
                    try:
                        run.factor = 0.0
                    except BiellaError:  # nobody else has the run
                        run.stop()
                        raise
        except BiellaError as error:
            self._cannot_start = True
            self._problems = describe_problems(error, self._model_paths())
            self.announce(self._problems)
            raise
        self._note_warnings(caught)
        self._take_continued(run)
        self.branches.begin()
        if self._cannot_start:
            self._cannot_start = False
            self._problems = {"event": "problems", "list": []}
            self.announce(self._problems)
        for path, value in dict(self._set).items():
            if value is not parameters.get(path):  # set while the run was started
                try:
                    run[path] = value
                except BiellaError as error:
                    self._note("", str(error))

    def _take_continued(self, run: LiveRun) -> None:
        self._take_run(run, self._picture)
        self._collected = not run.running

    def _view_course(self, course: Course) -> View:
        """Return the rows of a run that is kept."""
        assert isinstance(course.plan, Model)
        found = find_mechanisms(list_systems(course.plan.flat), course.rows.columns)
        return view_history(course.rows, found)

    def _end_run(self) -> None:
        if self.run is not None:
            self.run._end("stopped from the studio")
            self._collect()

    def _collect(self) -> None:
        """Wait for the end of the run, and note what it has to say."""
        if self.run is None or self._collected:
            return
        self._collected = True
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                self.run.wait()
            except Exception as error:  # such as of the recorder
                self._failure = str(error)
                self._note(getattr(error, "path", "") or "", str(error))
        self._note_warnings(caught)

    def serve(self) -> None:
        """Do what pages ask for, and look at the file, until `end`."""
        try:
            while not self._ends.is_set():
                self._work()
                if self.run is not None and not self.run.running:
                    self._collect()
                if self._read_stamp() != self._stamp:
                    self._reload()
        finally:
            try:
                self._end_run()
            finally:
                self._ends.set()
                self._refuse_jobs()

    def _refuse_jobs(self) -> None:
        """Answer requests that nobody will work on, so that the server does not wait for them."""
        with contextlib.suppress(queue.Empty):
            while True:
                *_, future = self._jobs.get_nowait()
                if future.set_running_or_notify_cancel():
                    future.set_exception(BiellaError(_CLOSED))

    def _work(self) -> None:
        try:
            job, request, future = self._jobs.get(timeout=_LOOK_SECONDS)
        except queue.Empty:
            return
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(job(request))
        except BiellaError as error:
            future.set_exception(error)
        except BaseException as error:
            future.set_exception(BiellaError(f"{type(error).__name__}: {error}"))
            if not isinstance(error, Exception):
                raise
            _log.exception("a request of a page failed")

    def _read_stamp(self) -> tuple[float, ...]:
        with contextlib.suppress(OSError):
            about = self.file.stat()
            return about.st_mtime_ns, about.st_size, about.st_ino
        return ()

    def _reload(self) -> None:
        """Read the saved file; a run without devices begins again with it."""
        before = self._model
        self.load()
        if self._model is before:
            return
        if self._is_kept():
            self._note("", "the file was saved: the run with devices uses it after a restart.")
            return
        self.announce({"event": "reload"})
        if self._is_going():
            with contextlib.suppress(BiellaError):
                self._start(describe_briefly(self._require_run())["paused"])
        elif self.run is not None:
            self._collect()
            self.run = None
            self.branches.begin()

    # Any thread.

    def introduce(self) -> Message:
        model = self._model
        return {
            "name": model.name if model else self.file.stem,
            "file": self.file.name,
            "step": model.step if model else None,
        }

    def describe(self) -> list[Message]:
        messages = [*self._described]
        model: Plan | None = self._model
        if self.run is not None and self._is_kept():
            model = self.run.plan
        if model is not None:
            messages.append(describe_parameters(model, self._set))
        events: Message = {"event": "events", "list": self._events}
        marks, branches = self._marks.describe(), self.branches.describe()
        return [*messages, self._problems, self._offer.message, events, marks, branches]

    def state(self) -> Message:
        state = super().state() | {"obstacle": self.branches.obstacle()}
        if self.run is not None and self.run.running and self.run.tick < self.run._pace.replay_end:
            state["state"] = "repeating"
        return state

    def find_view(self, number: int) -> View | None:
        return self.branches.find_view(number)

    def find_course(self, number: int | None) -> Course | None:
        return self.branches.find_course(number) if number is not None else None

    def name_of(self, number: int | None) -> str:
        return f"{super().name_of(number)} {self.branches.name_of(number or 0)}"

    def act(self, name: str, request: Message) -> Message | Future[Message] | None:
        if name == "run" and self._is_going():
            return super().act(name, request)
        if name == "palette":
            return self._offer.list_palette()
        job: Callable[[Message], Message | None] | None = {
            "run": self._start_going,
            "restart": self._start_going,
            "stop": self._stop,
            "edit": self._offer.edit,
        }.get(name)
        if name in BRANCHING:
            return self._put(getattr(self.branches, name), request)
        if name == "step" and not self._is_going():
            job = self._start_stepping
        if job is None:
            return super().act(name, request)
        if name not in ("step", "edit") and self.run is not None:
            self.run._end("stopped from the studio")
        return self._put(job, request)

    def _put(self, job: Callable[[Message], Message | None], request: Message) -> Future[Message]:
        """Leave something to the main thread."""
        future: Future[Message] = Future()
        try:
            self._jobs.put_nowait((job, request, future))
        except queue.Full:
            raise BiellaError("too many requests at once.") from None
        if self._ends.is_set():
            self._refuse_jobs()
        return future

    def _start_going(self, request: Message) -> None:
        self._start(False)

    def _start_stepping(self, request: Message) -> None:
        self._start(True)
        self._do_step(request)

    def _stop(self, request: Message) -> None:
        self._end_run()  # also one that was being started

    def _do_factor(self, request: Message) -> None:
        value = read_number(request, "value", math.nan)
        if self._is_going():
            self._require_run().factor = value
        elif value < 0.0:
            raise BiellaError(f"factor must be 0 or more, got {value!r}.")
        self._factor = value

    def _do_set(self, request: Message) -> None:
        if self._is_going():
            super()._do_set(request)
            return
        if self._model is None:
            raise BiellaError(_BROKEN)
        path, value = _read_path(request), _read_value(request)
        where, shape = self._model.find_settable(path)
        value = read_value(path, value, shape, self._model.first_values[where])
        self._note_set(self._model, path, value.reshape(shape))


_WORDS = {"Infinity": np.inf, "-Infinity": -np.inf}


def _read_path(request: Message) -> str:
    path = request.get("path")
    if not isinstance(path, str):
        raise BiellaError(f"`path` is a text, got {path!r}.")
    return path


def _read_value(request: Message) -> Any:
    """Return numbers; the infinite ones are words in JSON."""

    def read(value: Any, depth: int) -> Any:
        if isinstance(value, list) and depth < 4:
            return [read(item, depth + 1) for item in value]
        if isinstance(value, str) and value in _WORDS:
            return _WORDS[value]
        if isinstance(value, bool | int | float):
            try:
                return float(value)
            except OverflowError:
                pass
        raise BiellaError(f"`value` is a number or a list of numbers, got {value!r}.")

    if "value" not in request:
        raise BiellaError("`value` is missing.")
    return read(request["value"], 0)
