"""Branches: a run that repeats an earlier one up to some tick, and is live from then on.

A `Course` is what is kept of a run that has ended: its input log, saved states and newest rows. A
branch begins at the last saved state before its tick, or at the start of the run if there is none,
and repeats the input log up to the tick, as `replay` does: it has the same bits. Inputs that came
from devices and workers are played back beyond the tick, as far as the log has them, and are held
after that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import BiellaError
from ...compile.plan._plan import Plan, PortInfo
from ...engine._library import library
from ...results.events._events import EVENT
from .._history import History
from .._live import LiveRun
from ..loop._pace import (
    ENTER_OVERRIDE,
    ENTER_RELEASE,
    ENTER_SET,
    FROM_TIMING,
    FROM_WORKER,
    InputLog,
)

Array = NDArray[np.float64]
_REPEATED_TICKS = 16


@dataclass(frozen=True, eq=False)
class Course:
    """What is kept of a run that has ended.

    Attributes
    ----------
    input_log
        All of it, from the start; entries from before have tick -1.
    ticks
        Number of completed ticks.
    states
        Ticks and saved states, the oldest first.
    rows
        The newest rows.
    events
        Located events.
    devices
        Their names; inputs from them are in the log.
    gap
        What is missing in the input log, in words; empty if nothing is.
    """

    plan: Plan
    options: Mapping[str, Any]
    compiled_with: Mapping[str, Any]
    input_log: InputLog
    ticks: int
    states: Sequence[tuple[int, bytes]]
    rows: History
    events: NDArray[Any]
    devices: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    gap: str = ""

    @property
    def end(self) -> float:
        """The diagram's time in s at the end."""
        return self.plan.start_time + self.ticks * self.plan.step

    def find_tick(self, time: float) -> int:
        """Return the tick nearest to a time."""
        tick = round((time - self.plan.start_time) / self.plan.step)
        return min(max(tick, 0), self.ticks)


def end_course(run: LiveRun, before: Course | None = None, size: int = 0) -> Course:
    """Return the course of a run that has ended, which itself continued the course `before`.

    Parameters
    ----------
    size
        Largest size of the rows that are kept, in bytes.
    """
    result = run.result
    log = result.log
    report = result.info["realtime"]
    gap = before.gap if before is not None else ""
    if log is None or report["entries_lost"]:
        gap = f"{report['entries_lost']} entries of its input log were lost"
    history = run.history
    rows = History(history.signals, history.interval, size)
    first = max(history.begin, history.end - rows.capacity)
    rows.take(history.read(first, history.end)[1].T)
    return Course(
        plan=run.plan,
        options=run._options,
        compiled_with=result.info.get("compiled_with") or {},
        input_log=log.input_log if log is not None else np.empty(0),
        ticks=run.tick,
        states=run.states.kept,
        rows=rows,
        events=result.events.log,
        devices=tuple(run._devices) or (before.devices if before is not None else ()),
        workers=tuple(w.path for w in run._workers)
        or (before.workers if before is not None else ()),
        gap=gap,
    )


@dataclass(frozen=True, eq=False)
class Past:
    """What a run continues from.

    Attributes
    ----------
    state
        Its tick, and the saved state; None for the start.
    end
        The tick up to which the input log is repeated.
    input_log
        Of the earlier run, from its start.
    rows
        Those before the state.
    events
        Likewise.
    """

    state: tuple[int, bytes] | None
    end: int
    input_log: InputLog
    rows: Array
    events: NDArray[Any] = field(default_factory=lambda: np.empty(0, EVENT))

    @property
    def begin(self) -> int:
        """The first tick that is repeated."""
        return self.state[0] if self.state is not None else 0

    def resume(self, run: LiveRun) -> None:
        """Bring a run that is being set up to the saved state."""
        log, pace, instance = self.input_log, run._pace, run._instance
        early = log[(log["tick"] >= 0) & (log["tick"] < self.begin)]
        if self.state is not None:
            # An override restarts the solver: the state comes after it.
            for slot, value in _list_overrides(early).items():
                instance.check(library().bl_probe_override(instance.handle, slot, value))
            instance.restore(self.state[1])
        run._recorder.append_input_log(early, self.begin)
        run._recorder.events.append(self.events)
        if len(self.rows):
            run.history.take(self.rows)
            run._recorder.take(self.rows)
        pace.replay_from(self._list_repeated())
        pace.done, pace.replay_end = self.begin, self.end
        # What the handle knows of the settings.
        done = log[log["tick"] <= self.end]
        set_ = done[done["kind"] == ENTER_SET]
        run._first_values[set_["slot"]] = set_["value"]
        overridden = _list_overrides(done)
        run._overridden = {port.path: port for port in _find_ports(run.plan, overridden)}

    def _list_repeated(self) -> InputLog:
        """Return the entries that are repeated: those from outside also after the end."""
        log, origin = self.input_log, self.input_log["from"]
        outside = (origin >= 0) | (origin == FROM_WORKER)
        own = (log["tick"] < self.end) | ((log["tick"] == self.end) & (origin != FROM_TIMING))
        repeated: InputLog = log[(log["tick"] >= self.begin) & (own | outside)]
        return repeated


def _list_overrides(entries: InputLog) -> dict[int, float]:
    """Return the slots that are overridden after these entries, with their values."""
    found: dict[int, float] = {}
    for entry in entries[entries["kind"] != ENTER_SET]:
        slot = int(entry["slot"])
        found.pop(slot, None)
        if entry["kind"] == ENTER_OVERRIDE:
            found[slot] = float(entry["value"])
        else:
            assert entry["kind"] == ENTER_RELEASE
    return found


def _find_ports(plan: Plan, slots: Mapping[int, float]) -> list[PortInfo]:
    ports = {port.slot: port for block in plan.blocks for port in block.outputs}
    return [ports[slot] for slot in slots if slot in ports]


def branch(
    course: Course,
    tick: int,
    *,
    history: int = 0,
    states: int = 0,
    out: Any = None,
    factor: float | None = None,
    paused: bool = False,
) -> LiveRun:
    """Start a run that repeats a course up to a tick, and is live from then on.

    It has no devices.

    Raises
    ------
    BiellaError
        If the input log has a gap.
    """
    if course.gap:
        raise BiellaError(f"the run cannot be repeated: {course.gap}.")
    state = _choose_state(course, tick)
    begin = state[0] if state is not None else 0
    plan, rows = course.plan, course.rows
    begin_time = plan.start_time + (begin - 0.5) * plan.step
    _, found = rows.read(rows.begin, rows.find(begin_time))
    kept = course.events[course.events["time"] < begin_time + 0.5 * plan.step]
    past = Past(state, tick, course.input_log, np.ascontiguousarray(found.T), kept)
    options = {**course.options, "out": out, "guard": False}
    if str(options["clock"]).startswith("device:"):
        options["clock"] = "wall"
    if factor:
        options["factor"] = factor
    run = LiveRun(
        plan,
        options,
        compiled_with=course.compiled_with,
        history=history,
        states=states,
        past=past,
        paused=paused,
    )
    run.states.inherit([item for item in course.states if item[0] <= begin])
    if factor == 0.0:
        run._pace.factor = 0.0
    run._begin()
    return run


def _choose_state(course: Course, tick: int) -> tuple[int, bytes] | None:
    """Return the state to begin at.

    With Python blocks some ticks are repeated at least: `find_differences` then sees a state that
    was not declared.
    """
    if course.plan.python_blocks:
        tick -= _REPEATED_TICKS
    return max((item for item in course.states if item[0] <= tick), default=None)


def find_differences(course: Course, run: LiveRun, tick: int) -> list[str]:
    """Return the signals of a branch that do not repeat the rows of the course before a tick."""
    before = course.plan.start_time + (tick - 0.5) * course.plan.step
    tables = []
    for rows in (course.rows, run.history):
        _, found = rows.read(rows.begin, rows.find(before))
        tables.append(found)
    _, mine, theirs = np.intersect1d(tables[0][0], tables[1][0], True, return_indices=True)
    a, b = tables[0][:, mine], tables[1][:, theirs]
    unlike = np.flatnonzero((a.view(np.int64) != b.view(np.int64)).any(axis=1))
    owners = [""] + [item.path for item in course.rows.signals for _ in range(item.width)]
    return list(dict.fromkeys(owners[k] for k in unlike))
