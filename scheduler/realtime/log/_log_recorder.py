"""Recorders of real-time runs: they also take the input log, and no failure of theirs ends a run.

Where there is no room, on the disk or in memory, new rows are dropped and their times are noted;
recording continues when space is available. The input log is kept as long as possible, because a
run without a whole one cannot be replayed.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from ...results._files import explain
from ...results._recorder import AGE, AbstractRecorder, Hdf5Recorder, MemoryRecorder, Rows
from ...results._result import Result
from ...results._signals import ResultError, Signal
from ...results.events._events import EventSource
from .._history import History
from ..loop._pace import ENTRY, InputLog
from ._log import RunLog, append_input_log

_LARGEST_IN_MEMORY = 2 << 30  # bytes
_LARGEST_BESIDE_HISTORY = 256 << 20
_LARGEST_INPUT_LOG = 1 << 22  # entries that wait for room


class AbstractLogRecorder(AbstractRecorder):
    """What a real-time run writes to.

    Attributes
    ----------
    dropped
        First and last time of stretches of rows that were not kept.
    rows_dropped, entries_dropped
        How many rows, and how many entries of the input log, were not kept.
    trouble
        Why, in words; empty if there never was any.
    worst_age
        Largest age in s that a row had when it was safe.
    """

    def __init__(
        self,
        signals: Iterable[Signal],
        aliases: Mapping[str, str] | None = None,
        info: Mapping[str, object] | None = None,
        *,
        event_sources: Sequence[EventSource] = (),
    ) -> None:
        super().__init__(signals, aliases, info, event_sources=event_sources)
        self.dropped: list[tuple[float, float]] = []
        self.rows_dropped = 0
        self.entries_dropped = 0
        self.trouble = ""
        self.worst_age = 0.0
        self._goes_on = False  # whether the last row was dropped, too

    @abstractmethod
    def append_input_log(self, entries: InputLog, ticks: int) -> None:
        """Append entries; with them the input log is complete for the first `ticks` ticks."""

    def flush_if_due(self) -> None:
        """Write what has the age to be written; `take` does so, too."""

    def note_reached(self, ticks: int, start: float, step: float) -> None:
        """Note how many ticks the run has made, so that a reader knows what a kill has lost."""

    @abstractmethod
    def settle(self) -> None:
        """Write what can be written, and drop the rest: after this, nothing more is dropped."""

    @property
    @abstractmethod
    def rows_kept(self) -> int:
        """How many rows are recorded; complete after `settle`."""

    @property
    def place(self) -> str:
        """Where the rows are, for a message."""
        return "in memory"

    @property
    def left_alone(self) -> str:
        """An earlier recording that was not replaced, because this one got no row; else empty."""
        return ""

    def take(self, rows: Rows) -> None:
        """Take rows as `append` does, but never fail."""
        before = self.rows_dropped
        try:
            self.append(rows)
        except ResultError as error:
            self.trouble = str(error)
            self._drop(rows)
        dropped = self.rows_dropped - before
        if dropped == len(rows) and self._goes_on and len(self.dropped) > 1:
            (first, _), (_, last) = self.dropped[-2:]  # one stretch
            self.dropped[-2:] = [(first, last)]
        self._goes_on = dropped > 0

    def _drop(self, rows: Rows) -> None:
        if len(rows):
            self.dropped.append((float(rows[0, 0]), float(rows[-1, 0])))
            self.rows_dropped += len(rows)


class MemoryLogRecorder(MemoryRecorder, AbstractLogRecorder):
    """Keeps all in memory, up to a limit."""

    def __init__(
        self,
        signals: Iterable[Signal],
        aliases: Mapping[str, str] | None = None,
        info: Mapping[str, object] | None = None,
        *,
        plan: bytes,
        limit: int = _LARGEST_IN_MEMORY,
        event_sources: Sequence[EventSource] = (),
    ) -> None:
        super().__init__(signals, aliases, info, event_sources=event_sources)
        self._plan = plan
        self._left = limit
        self._input_log: list[InputLog] = []
        self._ticks = 0

    def _append(self, rows: Rows) -> None:
        kept = min(len(rows), max(0, self._left // (8 * self.row_width)))
        self._left -= 8 * self.row_width * kept
        if kept:
            super()._append(rows[:kept])
        if kept < len(rows):
            self.trouble = (
                "The memory limit of the recording is reached: stream it to a file, out='run.h5'."
            )
            self._drop(rows[kept:])

    def append_input_log(self, entries: InputLog, ticks: int) -> None:
        if self.entries_dropped or entries.nbytes > self._left:
            self.entries_dropped += len(entries)
            return
        self._left -= entries.nbytes
        if len(entries):  # a run without end has none most of the time
            self._input_log.append(entries)
        self._ticks = ticks

    def settle(self) -> None:
        pass

    def _close(self) -> Result:
        result = super()._close()
        input_log = np.concatenate(self._input_log) if self._input_log else np.empty(0, ENTRY)
        result.log = RunLog(self._plan, self._ticks, lambda: input_log)
        return result


class HistoryLogRecorder(MemoryLogRecorder):
    """Keeps the input log in memory, up to a limit, and of the rows what the history has."""

    def __init__(
        self,
        history: History,
        aliases: Mapping[str, str] | None = None,
        info: Mapping[str, object] | None = None,
        *,
        plan: bytes,
        limit: int = _LARGEST_BESIDE_HISTORY,
        event_sources: Sequence[EventSource] = (),
    ) -> None:
        super().__init__(
            history.signals, aliases, info, plan=plan, limit=limit, event_sources=event_sources
        )
        self._history = history

    @property
    def rows_kept(self) -> int:
        return self._history.end - self._history.begin

    def _append(self, rows: Rows) -> None:
        """The run gives them to the history."""

    def _close(self) -> Result:
        _, rows = self._history.read(self._history.begin, self._history.end)
        self._chunks = [rows.T]
        return super()._close()


class Hdf5LogRecorder(Hdf5Recorder, AbstractLogRecorder):
    """Streams to a file; rows and input log take effect together."""

    chunk_rows = 1 << 11  # those that are not full are written again and again

    def __init__(
        self,
        path: str | Path,
        signals: Iterable[Signal],
        aliases: Mapping[str, str] | None = None,
        info: Mapping[str, object] | None = None,
        captures: Sequence[Signal] = (),
        *,
        plan: bytes,
        event_sources: Sequence[EventSource] = (),
        age: float = AGE,
        sync: bool = False,
    ) -> None:
        super().__init__(
            path, signals, aliases, info, captures, plan=plan, event_sources=event_sources,
            age=age, sync=sync,
        )  # fmt: skip
        self._waiting: list[InputLog] = []
        self._waiting_ticks = self._logged_ticks = 0
        self._unsettled_entries = 0
        self._is_settled = False

    def append_input_log(self, entries: InputLog, ticks: int) -> None:
        waiting = sum(map(len, self._waiting))
        if self.entries_dropped or waiting + len(entries) > _LARGEST_INPUT_LOG:
            self.entries_dropped += len(entries)
            return
        if len(entries):
            self._waiting.append(entries)
        if ticks > self._waiting_ticks:
            self._note_arrival()
        self._waiting_ticks = ticks

    def flush_if_due(self) -> None:
        with contextlib.suppress(ResultError):
            self._flush_if_due()

    def note_reached(self, ticks: int, start: float, step: float) -> None:
        with contextlib.suppress(OSError):
            self._made.write_reached(ticks, start, step)

    def _hand_over(self) -> None:
        super()._hand_over()
        if self._waiting or self._waiting_ticks != self._logged_ticks:
            entries = np.concatenate(self._waiting) if self._waiting else np.empty(0, ENTRY)
            append_input_log(self._made.file, entries, self._waiting_ticks)
            self._unsettled_entries = len(entries)
            self._logged_ticks = self._waiting_ticks
            self._waiting.clear()

    def _commit(self) -> bool:
        done = super()._commit()
        if done:
            self._unsettled_entries = 0
        return done

    def _lack_room(self, error: OSError) -> None:
        self.trouble = explain(error, self._target.path)

    def _note_lost_end(self, error: OSError) -> None:
        self._lack_room(error)

    @property
    def place(self) -> str:
        return f"in `{self.path}`"

    @property
    def left_alone(self) -> str:
        return str(self._target.path) if self._target.pending else ""

    def _has_lost_rows(self) -> bool:
        return self.rows_dropped > 0

    def settle(self) -> None:
        if self._is_settled:
            return
        with contextlib.suppress(ResultError):
            self.flush()
        self._is_settled = True
        if self._unsettled is not None:
            self._drop(self._unsettled[:, None])
        self._drop(self._block[:, : self._filled].T)
        self.dropped.sort()
        self._filled = 0
        self.entries_dropped += sum(map(len, self._waiting)) + self._unsettled_entries
        self._waiting.clear()
        self._unsettled_entries = 0

    def flush(self) -> None:
        """Write the buffered rows; those without space remain buffered."""
        if not self._is_settled:
            super().flush()

    def _close(self) -> Result:
        self.settle()
        try:
            result = super()._close()
        except ResultError:
            assert self._result is not None
            result = self._result
        with contextlib.suppress(ResultError):  # the disk may be gone
            result.log = Result.from_hdf5(self.path).log
        return result
