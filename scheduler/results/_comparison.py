"""Comparing two results, signal by signal, at the times they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...blocks.core._units import UnitError, equivalent, parse_unit

if TYPE_CHECKING:
    from rich.console import Group

    from ._result import Result

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Two times closer than this part of a step are one time: k * 1e-3 and k * 5 * 2e-4 differ by bits.
_SAME_TIME = 1e-6


@dataclass(frozen=True, slots=True)
class SignalDifference:
    """How one signal differs.

    Parameters
    ----------
    path
        The signal.
    max_abs
        Largest ``|a - b|``; infinite where only one is finite.
    max_rel
        Largest ``|a - b| / max(|a|, |b|)``.
    first_time
        First time outside the tolerance, in s; None if all agrees.
    note
        Why the signals cannot be compared, such as other widths; empty if they can.
    """

    path: str
    max_abs: float = float("nan")
    max_rel: float = float("nan")
    first_time: float | None = None
    note: str = ""

    def __bool__(self) -> bool:
        """Whether the signals agree within the tolerance."""
        return self.first_time is None and not self.note


@dataclass(frozen=True, slots=True)
class Comparison:
    """The report of `Result.compare`: true if everything agrees, and printable.

    Parameters
    ----------
    signals
        One entry per compared signal.
    only_left, only_right
        Signals that only one of the results has.
    times
        How many times were compared, and how many the left and the right result have.
    rtol, atol
        The tolerance.
    """

    signals: tuple[SignalDifference, ...]
    only_left: tuple[str, ...]
    only_right: tuple[str, ...]
    times: tuple[int, int, int]
    rtol: float
    atol: float

    def __bool__(self) -> bool:
        missing = self.only_left or self.only_right
        return bool(self.signals and self.times[0] and all(self.signals) and not missing)

    def __getitem__(self, path: str) -> SignalDifference:
        return next(signal for signal in self.signals if signal.path == path)

    @property
    def notes(self) -> list[str]:
        """Return notes besides the table: different times, missing signals."""
        common, left, right = self.times
        notes = []
        if common < max(left, right):
            notes.append(f"Compared at the {common} common times of {left} and {right}.")
        if not self.signals:
            notes.append("The results have no signal in common.")
        if self.only_left:
            notes.append(f"Only in the first: {', '.join(self.only_left)}.")
        if self.only_right:
            notes.append(f"Only in the second: {', '.join(self.only_right)}.")
        return notes

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        verdict = "agree within" if self else "do not agree within"
        headline = f"The results {verdict} rtol={self.rtol:g}, atol={self.atol:g}."
        table = Table("signal", "max abs", "max rel", "first outside", "")
        for signal in self.signals:
            if signal.note:
                table.add_row(Text(signal.path), "", "", "", Text(signal.note, "red"))
                continue
            outside = "" if signal.first_time is None else f"t = {signal.first_time:g} s"
            mark = Text("ok", "green") if signal else Text("differs", "red")
            numbers = f"{signal.max_abs:.3g}", f"{signal.max_rel:.3g}"
            table.add_row(Text(signal.path), *numbers, outside, mark)
        notes = [Text(note) for note in self.notes]
        return Group(Text(headline), table if self.signals else "", *notes)

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=100, color_system=None, force_jupyter=False)
        with console.capture() as capture:
            console.print(self)
        return capture.get().rstrip()


def compare_results(
    left: Result, right: Result, rtol: float, atol: float, names: Sequence[str] | None
) -> Comparison:
    """Compare; see `Result.compare`."""
    if names is None:
        paths = [path for path in left.signals if path in right.signals]
        only_left = tuple(path for path in left.signals if path not in right.signals)
        only_right = tuple(path for path in right.signals if path not in left.signals)
    else:
        paths = list(names)
        only_left = only_right = ()
    rows_left, rows_right = _common_times(left.t, right.t)
    differences = []
    for path in paths:
        a, b = left[path], right[path]
        note = _obstacle(left, right, path)
        if note:
            differences.append(SignalDifference(path, note=note))
        else:
            pair = a[rows_left], b[rows_right]
            differences.append(_difference(path, *pair, left.t[rows_left], rtol, atol))
    times = (len(rows_left), left.length, right.length)
    return Comparison(tuple(differences), only_left, only_right, times, rtol, atol)


def _common_times(left: Array, right: Array) -> tuple[Indices, Indices]:
    """Return the rows of either side that are at one time."""
    if left.size == 0 or right.size == 0:
        empty = np.empty(0, dtype=np.intp)
        return empty, empty
    if np.array_equal(left, right):
        rows = np.arange(left.size)
        return rows, rows
    steps = [float(np.median(np.diff(t))) for t in (left, right) if t.size > 1]
    tolerance = _SAME_TIME * min(steps, default=1.0)
    after = np.clip(np.searchsorted(right, left), 0, right.size - 1)
    before = np.clip(after - 1, 0, None)
    nearest = np.where(np.abs(right[before] - left) < np.abs(right[after] - left), before, after)
    rows = np.flatnonzero(np.abs(right[nearest] - left) <= tolerance)
    return rows, nearest[rows]


def _obstacle(left: Result, right: Result, path: str) -> str:
    """Say why two signals cannot be compared, or nothing."""
    a, b = left[path], right[path]
    if a.shape[1:] != b.shape[1:]:
        return f"width {_width(a)} against {_width(b)}"
    unit_a, unit_b = (side.signals.locate(path)[0].unit for side in (left, right))
    if unit_a is None or unit_b is None or unit_a == unit_b:
        return ""
    try:
        same = equivalent(parse_unit(unit_a), parse_unit(unit_b))
    except UnitError:
        same = False
    return "" if same else f"unit {unit_a} against {unit_b}"


def _width(array: Array) -> int:
    return 1 if array.ndim == 1 else array.shape[1]


def _difference(
    path: str, a: Array, b: Array, t: Array, rtol: float, atol: float
) -> SignalDifference:
    if not len(t):
        return SignalDifference(path, 0.0, 0.0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        gap = np.abs(a - b)
        # Equal infinities, and not-a-number on both sides, are not a difference.
        gap[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
        gap[np.isnan(gap)] = np.inf
        scale = np.fmax(np.abs(a), np.abs(b))
        relative = np.where(gap == 0.0, 0.0, gap / scale)
        relative[np.isnan(relative)] = np.inf
        outside = gap > atol + rtol * np.where(np.isfinite(b), np.abs(b), 0.0)
    late = outside if outside.ndim == 1 else outside.any(axis=1)
    first = float(t[np.argmax(late)]) if late.any() else None
    return SignalDifference(path, float(gap.max()), float(relative.max()), first)
