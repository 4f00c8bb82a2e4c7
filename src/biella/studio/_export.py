"""What pages download: rows of a run as CSV or HDF5, written as results are, and sent in parts."""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import BiellaError
from ..scheduler.realtime.log._log import RunLog
from ..scheduler.results._result import Result
from ._scopes import FILE, HEAD, LAST

if TYPE_CHECKING:
    from ..scheduler.realtime.log._branch import Course
    from ._session import View

FORMATS = ("csv", "h5")
_MOST_VALUES = 1 << 25
_MOST_BYTES = 1 << 30  # of files of all pages that are not received yet
_PART = 1 << 20  # bytes of a message
_writing = threading.Lock()


@contextlib.contextmanager
def taking_turns() -> Iterator[None]:
    """Let one file be written at a time: pages that only look must not fill memory or disk.

    Raises
    ------
    BiellaError
        If the files that pages have not received yet are large enough.
    """
    with _writing:
        if sum(file.size for file in list(_waiting)) >= _MOST_BYTES:
            raise BiellaError("too many large downloads at once: wait until they have arrived.")
        yield


class ExportedFile:
    """A temporary file that a page downloads; it is removed with the object.

    Attributes
    ----------
    size
        In bytes.
    """

    def __init__(self, number: int, result: Result, format_: str) -> None:
        self._number = number
        folder = tempfile.mkdtemp(prefix="biella-studio-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        path = Path(folder, f"export.{format_}")
        (result.to_csv if format_ == "csv" else result.to_hdf5)(path)
        self.size = path.stat().st_size
        self._path, self._sent = path, 0
        _waiting.add(self)

    def take(self) -> bytes | None:
        """Return the next part as a message; None after the last one."""
        if self._sent > self.size or (self._sent == self.size and self._sent):
            return None
        with self._path.open("rb") as file:
            file.seek(self._sent)
            content = file.read(_PART)
        self._sent += len(content) or 1
        flags = LAST if self._sent >= self.size else 0
        return HEAD.pack(FILE, self._number, len(content), 0, flags, 0) + content


_waiting: weakref.WeakSet[ExportedFile] = weakref.WeakSet()


def choose_rows(
    view: View, paths: Sequence[str], first: float | None, last: float | None, info: dict[str, Any]
) -> Result:
    """Return some signals of a view between two times, at full resolution, as a result."""
    rows = view.rows
    begin = rows.begin if first is None else rows.find(first)
    end = rows.end if last is None else rows.find(float(np.nextafter(last, np.inf)))
    width = 1 + sum(view.signals[path][1] for path in paths)
    if (end - begin) * width > _MOST_VALUES:
        raise BiellaError(
            f"{end - begin} rows of {width} values are too many to be sent to a page: choose a "
            f"shorter time, or record with --log."
        )
    if end <= begin:
        raise BiellaError("nothing is recorded in this time.")
    _, table = rows.read(begin, end, [0, *view.find_columns(paths)])
    columns, place = {}, 1
    for path in paths:
        signal = view.described[path]
        values = table[place : place + signal.width].T
        columns[signal] = values if signal.width > 1 else values[:, 0]
        place += signal.width
    return Result.from_arrays(table[0], columns, info=info)


def add_log(result: Result, course: Course) -> None:
    """Add the input log of a run, so that it can be replayed from the file."""
    entries = course.input_log
    result.log = RunLog(course.plan.data, course.ticks, lambda: entries)


def name_file(name: str, format_: str) -> str:
    """Return a name that every file system takes."""
    return (re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run") + f".{format_}"
