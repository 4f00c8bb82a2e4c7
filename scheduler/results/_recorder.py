"""Recorders take rows from a run and turn them into a `Result`.

A row is the time and then the elements of all signals in declared order. `MemoryRecorder` keeps
them; `Hdf5Recorder` streams them to a file in flat memory.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from ._files import RecordingTarget, explain
from ._result import Result
from ._result_file import (
    Capture,
    Hdf5Columns,
    MemoryColumns,
    create_result_file,
    is_result_file,
    read_result_file,
    write_captures,
)
from ._signals import ResultError, Signal, SignalTable
from .events._captures import Captures, pack_captures
from .events._event_log import EventLog
from .events._events import EventSource

Rows = NDArray[np.float64]

_BLOCK_ROWS = 1 << 16
_BLOCK_BYTES = 16 << 20
_CHUNK_BYTES = 4 << 20
AGE = 1.0
"""Seconds after which rows are in the file, unless told otherwise."""


class AbstractRecorder(ABC):
    """What a run writes to.

    Life of a recorder: `append` any number of times, then `close` once, which returns the result.
    As a context manager it is closed at the end of the block, also after an error, so that nothing
    recorded is lost.

    Parameters
    ----------
    signals
        In the order of the columns.
    aliases
        Shorter names, such as ``{"ref": "ref.y"}``.
    info
        What is known about the run so far; `info` may be changed until the recorder is closed.
    event_sources
        Blocks by their number in events.
    """

    def __init__(
        self,
        signals: Iterable[Signal],
        aliases: Mapping[str, str] | None = None,
        info: Mapping[str, object] | None = None,
        *,
        event_sources: Sequence[EventSource] = (),
    ) -> None:
        self.signals = SignalTable(signals, aliases)
        self.info: dict[str, object] = dict(info or {})
        self.captures: Captures = {}
        """What Triggers have captured; may be set until the recorder is closed."""
        self.events = EventLog(event_sources)
        """Located events; may be appended to until the recorder is closed."""
        self.row_width = 1 + self.signals.total_width
        self._result: Result | None = None

    @abstractmethod
    def _append(self, rows: Rows) -> None: ...

    @abstractmethod
    def _close(self) -> Result: ...

    def _drop(self, rows: Rows) -> None:
        raise AssertionError("rows are dropped only by recorders that survive a lack of room")

    def append(self, rows: Rows) -> None:
        """Take rows of shape (k, 1 + total width); they are copied.

        Raises
        ------
        ResultError
            If the shape is wrong, the recorder is closed, or the file cannot be written.
        """
        if self._result is not None:
            raise ResultError("This recorder is closed; start a new one for another run.")
        if rows.ndim != 2 or rows.shape[1] != self.row_width:
            raise ResultError(
                f"Rows have shape {rows.shape}; expected (k, {self.row_width}): "
                f"time and {self.row_width - 1} signal elements."
            )
        self._append(rows)

    def close(self) -> Result:
        """Finish, and return the result. A second call returns the same one."""
        if self._result is None:
            self._result = self._close()
        return self._result

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class MemoryRecorder(AbstractRecorder):
    """Keeps all rows in memory."""

    def __init__(
        self,
        signals: Iterable[Signal],
        aliases: Mapping[str, str] | None = None,
        info: Mapping[str, object] | None = None,
        *,
        event_sources: Sequence[EventSource] = (),
    ) -> None:
        super().__init__(signals, aliases, info, event_sources=event_sources)
        self._chunks: list[Rows] = []

    @property
    def rows_kept(self) -> int:
        """How many rows there are."""
        return sum(map(len, self._chunks))

    def _append(self, rows: Rows) -> None:
        self._chunks.append(np.array(rows, dtype=np.float64))

    def _close(self) -> Result:
        length = sum(len(chunk) for chunk in self._chunks)
        table = np.empty((self.row_width, length))
        end = length
        # Each chunk is freed as soon as it is copied, so that the peak stays near one copy.
        while self._chunks:
            chunk = self._chunks.pop()
            table[:, end - len(chunk) : end] = chunk.T
            end -= len(chunk)
        return Result(
            MemoryColumns(table, self.signals),
            self.signals,
            info=self.info,
            captures=self.captures,
            events=self.events.read(),
        )


class Hdf5Recorder(AbstractRecorder):
    """Streams rows to an HDF5 file that stays readable whatever happens to the process or the disk.

    Rows are gathered column by column in one block. It is written when it is full, when its oldest
    row has half the age that is allowed, and at once for the first rows. Each write takes effect as
    a whole, see ``storage/_atomic_file.py``: `Result.from_hdf5` reads the file while the run goes
    on and after the process was killed, and then has every row that was older than `age`.

    A new file is written under its own name from the start. An earlier recording at `path` is
    replaced as soon as rows of the new one are on the disk; until then the new one is beside it,
    as ``name.new.h5`` for ``name.h5``. Any other file at `path` is an error. The file is locked
    against other recorders until `close`. What the Triggers named in `captures` have captured is
    written at the end.

    Parameters
    ----------
    age
        Seconds after which a row is in the file.
    sync
        Wait for the disk at each write, so that a loss of power has no other effect than a kill.

    Attributes
    ----------
    worst_age
        Largest age in s that a row had when it was in the file.

    Raises
    ------
    ResultError
        If `path` is not a recording, is being recorded, or cannot be created; from `append` and
        `flush`, if the disk is full: the message has what was kept. The recorder then takes no more
        rows; `close` still returns a result.
    """

    chunk_rows = 1 << 14

    def __init__(
        self,
        path: str | Path,
        signals: Iterable[Signal],
        aliases: Mapping[str, str] | None = None,
        info: Mapping[str, object] | None = None,
        captures: Sequence[Signal] = (),
        *,
        plan: bytes | None = None,
        event_sources: Sequence[EventSource] = (),
        age: float = AGE,
        sync: bool = False,
    ) -> None:
        super().__init__(signals, aliases, info, event_sources=event_sources)
        if not age >= 0.0:
            raise ResultError(f"The age of rows must be 0 s or more, got {age}.")
        row_bytes = 8 * self.row_width
        chunk_rows = 1 << max(0, min(_CHUNK_BYTES // row_bytes, self.chunk_rows).bit_length() - 1)
        block_rows = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // row_bytes))
        self._block = np.empty((self.row_width, block_rows))
        self._filled = 0
        self._written = 0
        self._unsettled: Rows | None = None  # times of rows that are written but not yet in effect
        self._last_time = float("nan")
        self._failure: ResultError | None = None
        self._age = age
        self._oldest = np.inf  # when the first came of what is not in the file
        self.worst_age = 0.0
        self._target = RecordingTarget(path, is_result_file)
        try:
            with _use_of_hdf5:
                self._made = create_result_file(
                    self._target.current,
                    self.signals,
                    self.info,
                    captures=captures,
                    chunk_rows=chunk_rows,
                    plan=plan,
                    event_sources=event_sources,
                    sync=sync,
                )
                _recording.add(self)
            self._target.show()
        except BaseException as error:
            self._target.abandon()
            if isinstance(error, OSError | RuntimeError):
                raise ResultError(explain(error, self._target.path)) from error
            raise
        self._recording = str(self._made.head["recording"])
        self._places = [slice(0, 1)]
        for signal in self.signals.values():
            row = self._places[-1].stop
            self._places.append(slice(row, row + signal.width))

    @property
    def rows_kept(self) -> int:
        """How many rows are in the file."""
        return self._written

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._target.current

    def _append(self, rows: Rows) -> None:
        if self._failure is not None:
            raise self._failure
        capacity = self._block.shape[1]
        start = 0
        while start < len(rows):
            count = min(capacity - self._filled, len(rows) - start)
            if count == 0:  # there was no room for the block
                self._drop(rows[start:])
                break
            self._note_arrival()
            filled = slice(self._filled, self._filled + count)
            self._block[:, filled] = rows[start : start + count].T
            self._filled += count
            start += count
            if self._filled == capacity:
                self.flush()
        self._flush_if_due()

    def _note_arrival(self) -> None:
        """Note when the first came of what is not in the file."""
        if self._oldest == np.inf:
            self._oldest = time.monotonic()

    def _flush_if_due(self) -> None:
        is_first = self._filled and not self._written and self._unsettled is None
        if is_first or time.monotonic() - self._oldest >= self._age / 2:
            self.flush()

    def flush(self) -> None:
        """Write what was gathered, so that a reader sees it and a kill does not lose it."""
        if self._failure is not None:
            raise self._failure
        with _use_of_hdf5:
            if self._unsettled is not None and not self._commit():
                return  # there is still no room for the last block
            try:
                self._hand_over()
            except (OSError, RuntimeError) as error:  # of HDF5 itself
                self._give_up(error)
            self._commit()

    def _hand_over(self) -> None:
        """Give HDF5 what was gathered."""
        count, end = self._filled, self._written + self._filled
        self.events.write(self._made.file)
        if count:
            parts = []
            for place in self._places:
                block = self._block[place, :count]
                parts.append(block[0] if len(block) == 1 else np.ascontiguousarray(block.T))
            self._made.append(parts, end)
        self._unsettled = self._block[0, :count].copy()
        self._filled = 0

    def _commit(self) -> bool:
        """Let what HDF5 was given take effect; false if there is no room."""
        assert self._unsettled is not None
        oldest, now = self._oldest, time.monotonic()
        try:
            self._made.commit()
        except OSError as error:
            self._oldest = now  # when to try again
            self._lack_room(error)
            return False
        if len(self._unsettled):
            self._written += len(self._unsettled)
            self._last_time = float(self._unsettled[-1])
        self._unsettled = None
        self._oldest = now if self._filled else np.inf
        if np.isfinite(oldest):
            self.worst_age = max(self.worst_age, time.monotonic() - oldest)
        if self._written:
            self._take_place()
        return True

    def _take_place(self) -> None:
        """Replace an earlier recording; where an open file cannot be renamed, `close` does it."""
        with contextlib.suppress(OSError):
            self._target.settle()

    def _write_captures(self, captures: list[Capture]) -> None:
        try:
            write_captures(self._made, captures)
            self._made.commit()
        except OSError as error:
            self._failure = ResultError(
                f"{explain(error, self.path)} The captures of triggers are in the result, but "
                f"not in the file."
            )
            raise self._failure from error

    def _lack_room(self, error: OSError) -> None:
        """Take note that what was gathered cannot be written now; it can be tried again."""
        self._give_up(error)

    def _give_up(self, error: OSError | RuntimeError) -> NoReturn:
        self._failure = ResultError(f"{explain(error, self.path)} {self._what_was_kept()}")
        raise self._failure from error

    def _what_was_kept(self) -> str:
        kept = "no row was recorded."
        if self._written:
            kept = f"{self._written} rows, to t = {self._last_time:g} s, are in the file."
        elif self._target.pending:
            kept += f" `{self._target.path}` still contains the earlier recording."
        return (
            f"The recording stops: {kept} Free some space, record fewer signals, or decimate them."
        )

    def _has_lost_rows(self) -> bool:
        return self._failure is not None

    def _close(self) -> Result:
        with _use_of_hdf5:
            return self._finish()

    def _finish(self) -> Result:
        raised_before = self._failure is not None
        captures = pack_captures(self.captures)
        with contextlib.suppress(ResultError):
            self.flush()
            if captures and self._unsettled is None:
                self._write_captures(captures)
        if self._failure is not None:
            self.info["stopped"] = str(self._failure)
        if self._failure is not None or self._unsettled is not None:
            captures = []
        try:
            # In its old place in the file, so that a full disk does not matter.
            self._made.write_about(self.info, self.signals.aliases, captures)
            self._made.close(discard=self._failure is not None or self._unsettled is not None)
        except OSError as error:
            self._note_lost_end(error)
        _recording.discard(self)
        if self._written or not self._has_lost_rows():
            self._take_place()
        self._target.release()
        self._block = np.empty((self.row_width, 0))
        try:
            columns = read_result_file(self.path)[0]
        except ResultError:  # the disk is gone
            columns = Hdf5Columns(self.path, self._recording, self._written)
        self._result = Result(
            columns,
            self.signals,
            info=self.info,
            captures=self.captures,
            events=self.events.read(),
        )
        if self._failure is not None and not raised_before:
            raise self._failure
        return self._result

    def _note_lost_end(self, error: OSError) -> None:
        """Take note that the file cannot be closed: the reader takes it as left by a kill."""
        if self._failure is None:
            self._failure = ResultError(f"{explain(error, self.path)} {self._what_was_kept()}")


_recording: weakref.WeakSet[Hdf5Recorder] = weakref.WeakSet()


_use_of_hdf5 = threading.RLock()
"""Held while files are written, so that no child is forked in the middle of it."""


def _let_go_in_child() -> None:
    """Keep a forked child, when it ends, from writing its copy of HDF5's caches to the files."""
    _use_of_hdf5.release()
    for recorder in _recording:
        recorder._made.disk.discard()


def _close_left() -> None:
    """Close files that were not closed before the interpreter ends: HDF5 would call it later."""
    for recorder in list(_recording):
        if not recorder._made.disk.discards:
            with contextlib.suppress(Exception):
                recorder.flush()
        with contextlib.suppress(Exception):
            recorder._made.close(discard=recorder._unsettled is not None)
    _recording.clear()


atexit.register(_close_left)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_use_of_hdf5.acquire,
        after_in_parent=_use_of_hdf5.release,
        after_in_child=_let_go_in_child,
    )
