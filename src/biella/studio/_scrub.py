"""Recorded moments: the values and the poses of one row, marked so that a page tells them from new
ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import BiellaError
from ._scopes import HEAD, LATEST, MOMENT, pack

if TYPE_CHECKING:
    from ._session import View

_SLACK = 1e-6  # of the time between rows: sliders round


def find_row(view: View, time: float) -> int:
    """Return the row nearest to a time.

    Raises
    ------
    BiellaError
        If there are no rows.
    """
    rows = view.rows
    if rows.end <= rows.begin:
        raise BiellaError("nothing is recorded yet.")
    row = rows.find(time)
    if row > rows.begin:
        first, found = rows.read(row - 1, row + 1, [0])
        times = found[0]
        if first == row - 1 and (len(times) < 2 or time - times[0] < times[1] - time):
            row -= 1
    return min(max(row, rows.begin), rows.end - 1)


def show_moment(
    view: View, time: float, efforts: Collection[str] = ()
) -> tuple[float, Iterator[bytes]]:
    """Return the time of the row nearest to `time`, and the messages that show it.

    Those of mechanisms in `efforts` have their forces, too.
    """
    row = find_row(view, time)
    _, found = view.rows.read(row, row + 1)
    if not found.shape[1]:
        raise BiellaError("this moment is no longer recorded.")

    def messages() -> Iterator[bytes]:
        yield pack(LATEST, 0, len(found) - 1, 1, MOMENT, found[:, 0])
        for number, mechanism in enumerate(view.mechanisms):
            shown = [mechanism.pose_at(view.rows, row, number)]
            if mechanism.path in efforts:
                shown.append(mechanism.efforts_at(view.rows, row, number))
            yield from (mark(message) for message in shown if message is not None)

    return float(found[0, 0]), messages()


def show_values(view: View, run: int, time: float, shown: View) -> bytes:
    """Return the message with the values of a run at a time, between rows where that has a meaning.

    They are those of the row before for signals that hold between rows, and NaN where the run has
    no rows or no such signal. Their order is that of the view `shown`.
    """
    rows, paths = view.rows, list(shown.signals)
    widths = [shown.signals[path][1] for path in paths]
    columns = np.array(find_columns(view, paths, widths), dtype=np.intp)
    known = np.flatnonzero(columns >= 0)
    slack = _SLACK * rows.interval
    after = rows.find(time - slack)
    _, found = rows.read(max(after - 1, rows.begin), after + 1, [0, *columns[known].tolist()])
    times, table = found[0], found[1:]
    values = np.full(len(columns), np.nan)
    near = np.flatnonzero(np.abs(times - time) <= slack)
    if len(near):
        values[known] = table[:, near[0]]
    elif len(times) == 2 and times[0] < time < times[1]:
        share = (time - times[0]) / (times[1] - times[0])
        held = np.repeat([shown.described[path].holds_between_ticks for path in paths], widths)
        between = table[:, 0] + share * (table[:, 1] - table[:, 0])
        values[known] = np.where(held[known], table[:, 0], between)
    elif len(times) and abs(time - times[-1]) < rows.interval:
        values[known] = table[:, -1]
    return pack(LATEST, run, len(values), 1, MOMENT, np.concatenate([[time], values]))


def find_columns(view: View, paths: Sequence[str], widths: Sequence[int]) -> list[int]:
    """Return the columns of signals; -1 where the view has none, or one of another width."""
    columns: list[int] = []
    for path, width in zip(paths, widths, strict=True):
        first, own = view.signals.get(path, (-1, width))
        columns += range(first, first + width) if first >= 0 and own == width else [-1] * width
    return columns


def mark(message: bytes) -> bytes:
    """Return a binary message with the flag of a recorded moment."""
    head = list(HEAD.unpack_from(message))
    head[4] |= MOMENT
    return HEAD.pack(*head) + message[HEAD.size :]
