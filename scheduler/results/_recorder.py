"""Recorders take rows from a run and turn them into a `Result`.

A row is the time and then the elements of all signals in declared order. `MemoryRecorder` keeps
them; `Hdf5Recorder` streams them to a file in flat memory.
"""

from __future__ import annotations

import contextlib
import os
import time
import weakref
import zlib
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
    dataset_name,
    is_result_file,
    release_unused,
    reserve_rows,
    write_about,
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
_FLUSH_SECONDS = 1.0


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
    """Streams rows to an HDF5 file that stays readable whatever happens to the process.

    Rows are gathered column by column in one block and written when it is full or a second old.
    The file is in HDF5's single-writer mode, so that `Result.from_hdf5` reads it while the run goes
    on, and after the process was killed; at most the last second is missing then. Other HDF5
    tools may need ``h5clear -s`` on a file that was left by a kill.

    A new file is written under its own name from the start. An earlier recording at `path` is
    replaced as soon as rows of the new one are on the disk; until then the new one is beside it,
    as ``name.new.h5`` for ``name.h5``. Any other file at `path` is an error. The file is locked
    against other recorders until `close`. What the Triggers named in `captures` have captured is
    written at the end.

    Raises
    ------
    ResultError
        If `path` is not a recording, is being recorded, or cannot be created; from `append` and
        `flush`, if the disk is full: the message has what was kept. The recorder then takes no more
        rows; `close` still returns a result.
    """

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
    ) -> None:
        super().__init__(signals, aliases, info, event_sources=event_sources)
        row_bytes = 8 * self.row_width
        chunk_rows = 1 << max(0, min(_CHUNK_BYTES // row_bytes, 1 << 14).bit_length() - 1)
        block_rows = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // row_bytes))
        self._block = np.empty((self.row_width, block_rows))
        self._filled = 0
        self._written = 0
        self._last_time = float("nan")
        self._failure: ResultError | None = None
        self._target = RecordingTarget(path, is_result_file)
        try:
            self._file = create_result_file(
                self._target.current,
                self.signals,
                self.info,
                captures=captures,
                chunk_rows=chunk_rows,
                plan=plan,
                event_sources=event_sources,
            )
            self._file.swmr_mode = True
            self._target.show()
        except BaseException as error:
            self._target.abandon()
            if isinstance(error, OSError | RuntimeError):
                raise ResultError(explain(error, self._target.path)) from error
            raise
        self._handle: int = self._file.id.get_vfd_handle()
        _recording.add(self)
        self._recording = str(self._file.attrs["recording"])
        self._datasets = [(self._file["time"], slice(0, 1))]
        row = 1
        for signal in self.signals.values():
            place = slice(row, row + signal.width)
            self._datasets.append((self._file[dataset_name(signal.path)], place))
            row += signal.width
        self._checksums = [0] * len(self._datasets)
        self._flushed_at = time.monotonic()

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
            filled = slice(self._filled, self._filled + count)
            self._block[:, filled] = rows[start : start + count].T
            self._filled += count
            start += count
            if self._filled == capacity:
                self._write_block()
        if time.monotonic() - self._flushed_at > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what was gathered, so that a reader sees it and a kill does not lose it."""
        if self._failure is not None:
            raise self._failure
        if self._filled:
            self._write_block()
        else:
            self._write_events()
        self._flushed_at = time.monotonic()

    def _write_block(self) -> None:
        """Write the buffered rows, then their count: the file stays valid after a kill."""
        count, end = self._filled, self._written + self._filled
        try:
            self.events.write(self._file, self.path)  # at no time are there rows without them
            reserve_rows(self._file, self.path, self._written, end)
        except OSError as error:
            self._lack_room(error)
            return
        checksums = []
        try:
            for (dataset, place), checksum in zip(self._datasets, self._checksums, strict=True):
                dataset.resize(end, axis=0)
                block = self._block[place, :count]
                part = block[0] if len(block) == 1 else np.ascontiguousarray(block.T)
                dataset[self._written : end] = part
                checksums.append(zlib.crc32(part.data, checksum))
            self._file.flush()
            self._file["rows"][()] = end
            self._file.flush()
        except (OSError, RuntimeError) as error:
            self._give_up(error)
        self._last_time = float(self._block[0, count - 1])
        self._written = end
        self._checksums = checksums
        self._filled = 0
        self._flushed_at = time.monotonic()
        self._take_place()

    def _write_events(self) -> None:
        try:
            self.events.write(self._file, self.path)
            self._file.flush()
        except OSError as error:
            self._lack_room(error)

    def _take_place(self) -> None:
        """Replace an earlier recording; where an open file cannot be renamed, `close` does it."""
        with contextlib.suppress(OSError):
            self._target.settle()

    def _write_captures(self, captures: list[Capture]) -> None:
        try:
            write_captures(self._file, self.path, captures)
            self._file.flush()
        except (OSError, RuntimeError) as error:
            self._failure = ResultError(
                f"{explain(error, self.path)} The captures of triggers are in the result, but "
                f"not in the file."
            )
            raise self._failure from error

    def _lack_room(self, error: OSError) -> None:
        """Take note that the gathered rows cannot be written now: nothing was touched yet."""
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
        raised_before = self._failure is not None
        captures = pack_captures(self.captures)
        with contextlib.suppress(ResultError):
            self.flush()
            self._write_captures(captures)
        if self._failure is not None:
            self.info["stopped"] = str(self._failure)
            captures = []
        # All go to their old places in the file, so a full disk does not matter.
        write_about(self._file, self.info, self.signals.aliases, captures)
        self.events.write_totals(self._file)
        self._file["checksums"][()] = self._checksums
        self._file["rows"][()] = self._written  # a write that failed may have been beyond
        self._file["complete"][()] = 1
        self._datasets.clear()
        self._file.close()
        _recording.discard(self)
        release_unused(self.path)
        if self._written or not self._has_lost_rows():
            self._take_place()
        self._target.release()
        self._block = np.empty((self.row_width, 0))
        self._result = Result(
            Hdf5Columns(self.path, self._recording, self._written),
            self.signals,
            info=self.info,
            captures=self.captures,
            events=self.events.read(),
        )
        if self._failure is not None and not raised_before:
            raise self._failure
        return self._result


_recording: weakref.WeakSet[Hdf5Recorder] = weakref.WeakSet()


def _let_go_in_child() -> None:
    """Keep a forked child, when it ends, from writing its copy of HDF5's caches to the files."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for recorder in _recording:
        os.dup2(nothing, recorder._handle, inheritable=False)
    os.close(nothing)
    _recording.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)
