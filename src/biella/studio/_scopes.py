"""What scopes show: rows in bins, with the smallest and the largest value of each bin.

No peak is lost: each sample is in one bin, and its bin contains it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

HEAD = struct.Struct("<6I")
SAMPLES, POSES, LATEST, EFFORTS, MESH, FILE = 1, 2, 3, 4, 5, 6
HISTORY, WINDOW, SINGLE = 1, 2, 4  # flags of samples
MOMENT = 1  # flag of poses and values: those of a recorded moment
LAST = 1  # flag of a file
_MOST_BINS = 4000  # in a message
_MOST_VALUES = 1 << 18  # that are read at once: a recording may be larger than the memory


class AbstractRows(Protocol):
    """Recorded rows, numbered from the start of a run: those from `begin` to `end` are there."""

    @property
    def begin(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def interval(self) -> float: ...

    def read(self, first: int, end: int, columns: Sequence[int] | None = None) -> tuple[int, Array]:
        """Return rows as columns, and the number of the first."""

    def find(self, time: float) -> int:
        """Return the first row at this time or later."""


def pack(kind: int, number: int, columns: int, rows: int, flags: int, content: Array) -> bytes:
    """Return a binary message."""
    return HEAD.pack(kind, number, columns, rows, flags, 0) + content.astype("<f8").tobytes()


def decimate(first: int, rows: Array, size: int) -> Array:
    """Return bins of `size` rows: the time of the first row, then least and most of each column.

    Parameters
    ----------
    first
        Number of the first row; bins begin at multiples of `size`, so that they stay the same
        while rows are added.
    rows
        As columns, the time first.
    """
    count = rows.shape[1]
    starts = np.arange(-(first % size), count, size).clip(0)
    bins = np.empty((len(starts), 2 * len(rows) - 1))
    if not count:
        return bins[:0]
    bins[:, 0] = rows[0, starts]
    bins[:, 1::2] = np.fmin.reduceat(rows[1:], starts, axis=1).T
    bins[:, 2::2] = np.fmax.reduceat(rows[1:], starts, axis=1).T
    return bins


@dataclass
class Scope:
    """What one scope of a page shows.

    Attributes
    ----------
    number
        As the page counts it.
    signals
        Paths.
    columns
        Their columns in the rows; -1 where the present run has no such signal.
    rate
        Bins in a second of the diagram's time.
    history
        Seconds of the past to begin with.
    run
        Number of a run that is not the present one; None: the present one.
    """

    number: int
    signals: list[str]
    columns: list[int]
    rate: float
    history: float
    run: int | None = None
    _next: int | None = None  # first row of the bin to send next
    _from_start: bool = False  # of the run
    _is_cleared: bool = False

    def restart(self, columns: list[int]) -> None:
        """Show another run from its start."""
        self.columns, self._next, self._from_start = columns, None, True
        self._is_cleared = False

    def take(self, rows: AbstractRows, until: float | None = None) -> bytes | None:
        """Return the bins that are new or have grown; None if there are none.

        Rows after the time `until` count as not there yet.
        """
        size = max(1, round(1.0 / (self.rate * rows.interval)))
        end, flags = rows.end, 0
        if until is not None:
            end = min(end, rows.find(until + 0.5 * rows.interval))
        if self._next is None:
            self._from_start |= not end
            if not end:
                return self._clear()
            flags = HISTORY
            self._next = self._find_first(rows, end)
            self._next -= self._next % size
        if self._next >= end and not flags:
            return None
        content, size = self._read(rows, self._next, end, size)
        self._next = end - end % size
        return self._pack(content, size, flags)

    def _clear(self) -> bytes | None:
        """Return a message without bins, once: the page may still show those of another run."""
        if self._is_cleared:
            return None
        self._is_cleared = True
        return self._pack(np.empty((0, 1 + 2 * len(self.columns))), 1, HISTORY)

    def _find_first(self, rows: AbstractRows, end: int) -> int:
        _, last = rows.read(end - 1, end, [0])
        if self._from_start or not last.size:
            return rows.begin
        return rows.find(float(last[0, 0]) - self.history)

    def window(self, rows: AbstractRows, first: float, last: float, bins: int) -> bytes:
        """Return the bins between two times, with a sample before and after them."""
        begin, end = max(rows.begin, rows.find(first) - 1), min(rows.end, rows.find(last) + 2)
        size = max(1, -(-(end - begin) // max(1, bins)))
        return self._pack(*self._read(rows, begin, end, size), WINDOW)

    def _read(self, rows: AbstractRows, begin: int, end: int, size: int) -> tuple[Array, int]:
        size = max(size, -(-(end - begin) // _MOST_BINS))
        known = [column for column in self.columns if column >= 0]
        places = [0] + [k + 1 for k, column in enumerate(self.columns) if column >= 0]
        most = max(1, _MOST_VALUES // len(places) // size) * size
        parts = [np.empty((0, 1 + 2 * len(self.columns)))]
        while begin < end:
            stop = min(begin - begin % size + most, end)
            first, found = rows.read(begin, stop, [0, *known])
            table = np.full((1 + len(self.columns), found.shape[1]), np.nan)
            table[places] = found
            parts.append(decimate(first, table, size))
            begin = stop
        return np.concatenate(parts), size

    def _pack(self, bins: Array, size: int, flags: int) -> bytes:
        flags |= SINGLE if size == 1 else 0
        return pack(SAMPLES, self.number, 1 + 2 * len(self.columns), len(bins), flags, bins)
