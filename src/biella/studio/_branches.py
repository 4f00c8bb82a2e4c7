"""The runs of a session beside the present one: what branches leave, and how they are continued.

A branch ends the present run, which is kept under its name with its newest rows, its input log and
its saved states, and starts another one that repeats it up to a moment: see
``scheduler/realtime/log/_branch.py``. Switching back to a kept run continues it at its end. All of
it is done by the session's main thread.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..blocks.external._external_input import RECEIVED
from ..errors import BiellaError, name_list
from ..scheduler.compile._model import Model
from ..scheduler.compile.plan._plan import Plan
from ..scheduler.realtime._live import LiveRun
from ..scheduler.realtime._live_end import describe_briefly
from ..scheduler.realtime.log._branch import Course, branch, end_course, find_differences
from ._mechanism import list_push_inputs
from ._messages import Message, read_number

if TYPE_CHECKING:
    from ._session import LiveSession, View

STATES = 32 << 20
"""Bytes of saved states of a run."""

_MOST_RUNS = 8
_KEPT = 32 << 20  # bytes of rows of a run that is not the present one
_LONGEST_NAME = 40
_LOOK_SECONDS = 0.01
_ROWS_SECONDS = 2.0
_FIRST = "run"


@dataclass(frozen=True, eq=False)
class Identity:
    """What pages call a run.

    Attributes
    ----------
    number
        Runs are counted from 1; a number is not used twice.
    parent
        Number of the run that it continues; 0 for none.
    since
        The diagram's time in s from which on it is another one.
    """

    number: int
    name: str
    parent: int = 0
    since: float = 0.0


@dataclass(frozen=True, eq=False)
class KeptRun:
    """A run that has ended and can be continued.

    Attributes
    ----------
    view
        Its newest rows.
    """

    identity: Identity
    course: Course
    view: View


class Branches:
    """The runs of a session."""

    def __init__(self, session: LiveSession) -> None:
        self._session = session
        self._kept: dict[int, KeptRun] = {}
        self._present = Identity(1, _FIRST)
        self._number = 1
        self._files = 1
        self._before: Course | None = None  # that the present run continues
        self._obstacle = ""

    def begin(self) -> None:
        """Forget all runs: the present one begins anew."""
        self._number += 1
        self._kept = {}
        self._present = Identity(self._number, _FIRST)
        self._before, self._obstacle, self._files = None, "", 1
        self._announce()

    def find_view(self, number: int) -> View | None:
        """Return the rows of a run; None if there is no such run."""
        if number == self._present.number:
            return self._session.view
        kept = self._kept.get(number)
        return kept.view if kept is not None else None

    def find_course(self, number: int) -> Course | None:
        """Return what is known of a kept run."""
        kept = self._kept.get(number)
        return kept.course if kept is not None else None

    def name_of(self, number: int) -> str:
        """Return the name of a run; that of the present one if there is no such run."""
        kept = self._kept.get(number)
        return (kept.identity if kept is not None else self._present).name

    def describe(self) -> Message:
        """Return the list of runs, as pages see it."""
        kept = [
            {**_describe(item.identity), "end": item.course.end} for item in self._kept.values()
        ]
        runs = [*kept, {**_describe(self._present), "end": None}]
        return {
            "event": "runs",
            "present": self._present.number,
            "list": sorted(runs, key=lambda item: item["number"]),
            "hint": self._hint(),
        }

    def obstacle(self) -> str:
        """Return why there can be no branch now; empty if there can."""
        run = self._session.run
        if self._obstacle or run is None:
            return self._obstacle
        if run.running and run._devices:
            return (
                f"the run has devices ({_quote(run._devices)}): end it first. A branch then "
                f"plays their inputs back from the log"
            )
        if run._pace.entries_lost or run._recorder.entries_dropped:
            return "entries of the input log were lost, so the run cannot be repeated"
        return ""

    def _hint(self) -> str:
        run = self._session.run
        if run is None or run.states.every:
            return ""
        if run.plan.external:
            why = f"{run.plan.name_external()} keeps its state outside the engine"
        else:
            why = "the state of the diagram is too large to be saved during ticks"
        return f"A branch repeats the run from its start: {why}."

    def _announce(self) -> None:
        self._session.announce(self.describe())

    # What pages ask for.

    def branch(self, request: Message) -> Message:
        """Continue the present run from a moment, under another name."""
        run = self._require_run()
        time = read_number(request, "t", math.nan)
        number = self._number + 1
        name = self._read_name(request, f"branch {len(self._kept) + 1}")
        if len(self._kept) >= _MOST_RUNS - 1:
            raise BiellaError(f"up to {_MOST_RUNS} runs are kept: delete one first.")
        paused = self._is_paused(run, request)
        kept = self._end_present(run)
        course = kept.course
        tick = course.find_tick(time)
        since = course.plan.start_time + tick * course.plan.step
        self._number = number
        self._continue(kept, tick, Identity(number, name, kept.identity.number, since), paused)
        return {"run": number, "t": since}

    def switch(self, request: Message) -> Message:
        """Continue a kept run at its end; the present one is kept instead."""
        run = self._require_run()
        target = self._find(request)
        paused = self._is_paused(run, request)
        self._end_present(run)
        # Pages read the list meanwhile: it is replaced as a whole.
        self._kept = {n: kept for n, kept in self._kept.items() if n != target.identity.number}
        try:
            self._continue(target, target.course.ticks, target.identity, paused)
        except BaseException:
            self._kept = {**self._kept, target.identity.number: target}
            self._announce()
            raise
        return {"run": target.identity.number, "t": target.course.end}

    def rename(self, request: Message) -> Message:
        """Give a run another name."""
        number = request.get("run")
        name = self._read_name(request, None)
        if number == self._present.number:
            self._present = replace(self._present, name=name)
        else:
            kept = self._find(request)
            identity = replace(kept.identity, name=name)
            self._kept = {**self._kept, identity.number: replace(kept, identity=identity)}
        self._announce()
        return {}

    def delete(self, request: Message) -> Message:
        """Forget a kept run."""
        gone = self._find(request).identity.number
        self._kept = {number: kept for number, kept in self._kept.items() if number != gone}
        self._announce()
        return {}

    def _require_run(self) -> LiveRun:
        run = self._session.run
        if run is None:
            raise BiellaError("nothing was run yet: start a run first.")
        if obstacle := self.obstacle():
            raise BiellaError(f"{obstacle}.")
        return run

    def _is_paused(self, run: LiveRun, request: Message) -> bool:
        paused = request.get("paused")
        if paused is None:
            return not run.running or bool(describe_briefly(run)["paused"])
        return paused is True

    def _find(self, request: Message) -> KeptRun:
        number = request.get("run")
        kept = self._kept.get(number) if isinstance(number, int) else None
        if kept is None:
            known = name_list([str(item) for item in self._kept]) if self._kept else "none"
            raise BiellaError(f"`run` is the number of a kept run ({known}), got {number!r}.")
        return kept

    def _read_name(self, request: Message, default: str | None) -> str:
        name = request.get("name", default)
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise BiellaError(f"`name` is a text, got {name!r}.")
        name = name.strip()[:_LONGEST_NAME]
        identities = [self._present, *(kept.identity for kept in self._kept.values())]
        used = {item.name for item in identities if item.number != request.get("run")}
        if name in used and "name" in request:
            raise BiellaError(f"there is a run `{name}` already.")
        number = 2
        unique = name
        while unique in used:
            unique, number = f"{name} ({number})", number + 1
        return unique

    # Ending and continuing.

    def _end_present(self, run: LiveRun) -> KeptRun:
        """End the present run and keep it."""
        self._session._end_run()
        course = end_course(run, self._before, _KEPT)
        kept = KeptRun(self._present, course, self._session._view_course(course))
        self._kept = {**self._kept, self._present.number: kept}
        return kept

    def _continue(self, source: KeptRun, tick: int, identity: Identity, paused: bool) -> None:
        """Let a run that repeats another one up to a tick be the present one."""
        session, course = self._session, source.course
        earlier, settings = session.run, session._set
        present, before = self._present, self._before
        assert earlier is not None
        try:
            run = branch(
                course,
                tick,
                history=session.history,
                states=STATES,
                out=self._next_file(session._log),
                factor=session._factor,
                paused=paused,
            )
            _let_go(run)
            session._set = _read_settings(run)
            self._present, self._before = identity, course
            session._take_continued(run)
            self._announce()
            if unlike := self._await_repeated(course, run, tick):
                run._end("it did not repeat the earlier run")
                session._collect()
                self._obstacle = (
                    f"repeating the run gave other values of {_quote(unlike)}: a block changes "
                    f"more than the state that it declares, so there can be no branch"
                )
                raise BiellaError(f"{self._obstacle}.")
        except BaseException:
            # The present run has ended, and stays the present one.
            self._present, self._before, session._set = present, before, settings
            self._kept = {n: kept for n, kept in self._kept.items() if n != present.number}
            session._take_continued(earlier)
            self._announce()
            raise
        self._note_playback(course)

    def _await_repeated(self, course: Course, run: LiveRun, tick: int) -> list[str]:
        """Wait until a run is live; return the signals that it did not repeat."""
        while run.running and run.tick < tick:
            run._over.wait(_LOOK_SECONDS)
        if not min(tick, run.tick):
            return []  # a paused run has no row before its first tick
        last = course.plan.start_time + (min(tick, run.tick) - 1.5) * course.plan.step
        every = int(run._options["every"])
        for _ in range(round(_ROWS_SECONDS / _LOOK_SECONDS)):
            rows = run.history
            _, found = rows.read(rows.end - 1, rows.end, [0])
            if not run.running or (
                found.size and found[0, 0] >= last - (every - 1) * rows.interval
            ):
                break
            run._over.wait(_LOOK_SECONDS)
        return find_differences(course, run, min(tick, run.tick))

    def _note_playback(self, course: Course) -> None:
        outside = [*course.devices, *course.workers]
        if outside:
            self._session._note(
                "",
                f"Inputs from {_quote(outside)} are played back from the log until "
                f"t = {course.end:.6g} s, and are held after that.",
            )

    def _next_file(self, log: Path | None) -> Path | None:
        """Return the file of the next run: each has its own."""
        if log is None:
            return None
        self._files += 1
        return log.with_name(f"{log.stem}-{self._files}{log.suffix}")


def _quote(names: Iterable[str]) -> str:
    return name_list([f"`{name}`" for name in names])


def _describe(identity: Identity) -> dict[str, Any]:
    return {
        "number": identity.number,
        "name": identity.name,
        "parent": identity.parent,
        "since": identity.since,
    }


def _let_go(run: LiveRun) -> None:
    """End the push that a run repeats: who pushed has let go, or will let go of this run."""
    inputs = run.plan.inputs
    pushes = list_push_inputs(run.plan.flat) if isinstance(run.plan, Model) else set()
    pushes = {path for path in pushes if path in inputs}
    if any(run._first_values[inputs[path].slot] for path in pushes):
        with contextlib.suppress(BiellaError):  # it has ended already
            run._set_inputs(dict.fromkeys(pushes, 0.0))


def _read_settings(run: LiveRun) -> dict[str, Any]:
    """Return the parameters and inputs of a run that are not those of its diagram."""
    plan, values = run.plan, run._first_values
    found: dict[str, Any] = {}
    for path in _list_settable(plan):
        where, _ = plan.find_settable(path)
        if values[where].tobytes() != plan.first_values[where].tobytes():
            found[path] = np.array(values[where])
    return found


def _list_settable(plan: Plan) -> Sequence[str]:
    parameters = [path for path in plan.parameters if path.rpartition(".")[2] != RECEIVED]
    pushes = list_push_inputs(plan.flat) if isinstance(plan, Model) else ()
    return [*parameters, *(path for path in plan.inputs if path not in pushes)]
