"""`History`: the newest rows of a run in bounded memory, for readers during the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..results._signals import Signal

Array = NDArray[np.float64]


class History:
    """The newest rows of a run in a ring: one thread writes, any thread reads, neither waits.

    Rows are counted from the start of the run. Those from `begin` to `end` are there.

    Parameters
    ----------
    signals
        In the order of the columns, after the time.
    interval
        Time between rows in s.
    size
        Largest size in bytes; 0 for none.

    Attributes
    ----------
    columns
        Of each signal, by path: the first one.
    """

    def __init__(self, signals: Sequence[Signal], interval: float, size: int) -> None:
        self.signals = list(signals)
        self.interval = interval
        self.columns: dict[str, int] = {}
        width = 1
        for signal in self.signals:
            self.columns[signal.path] = width
            width += signal.width
        self.capacity = size // (8 * width)
        self._rows = np.empty((width, self.capacity))  # pages are taken as they are written
        self.end = 0
        self._reserved = 0  # rows up to here are there, or just being written

    @property
    def begin(self) -> int:
        """The oldest row that is there."""
        return max(0, self._reserved - self.capacity)

    def take(self, rows: Array) -> None:
        """Append rows: the time, and the elements of all signals."""
        if not self.capacity:
            return
        end = self.end + len(rows)
        rows = rows[-self.capacity :]
        first = end - len(rows)
        self._reserved = end
        while first < end:
            place = first % self.capacity
            count = min(end - first, self.capacity - place)
            self._rows[:, place : place + count] = rows[-(end - first) :][:count].T
            first += count
        self.end = end

    def read(self, first: int, end: int, columns: Sequence[int] | None = None) -> tuple[int, Array]:
        """Return rows as columns, and the number of the first: older ones are no longer there."""
        chosen: Any = slice(None) if columns is None else list(columns)
        end = min(end, self.end)
        first = min(max(first, self.begin), end)
        parts, row = [self._rows[chosen, :0]], first
        while row < end:
            place = row % self.capacity
            count = min(end - row, self.capacity - place)
            parts.append(self._rows[chosen, place : place + count])
            row += count
        found = np.concatenate(parts, axis=1)
        gone = min(max(0, self.begin - first), end - first)  # overwritten meanwhile
        return first + gone, found[:, gone:]

    def find(self, time: float) -> int:
        """Return the first row at this time or later."""
        low, high = self.begin, self.end
        while low < high:
            middle = (low + high) // 2
            if self._rows[0, middle % self.capacity] < time:
                low = middle + 1
            else:
                high = middle
        return low
