"""`Timeline`: which states of a state machine were active, and when."""

from __future__ import annotations

import html
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ....errors import suggest
from .._signals import ResultError, Signal, UnknownSignalError

if TYPE_CHECKING:
    from ....blocks.core._figure import ShownFigure
    from .._result import Result

INACTIVE = "inactive"
_STATE = "state"
_SHOWN_ROWS = 40
_READ_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A visit of a state.

    Attributes
    ----------
    start, end
        In s: the times of the sample at which the state was first seen, and of the one at which
        another was; the last interval ends with the recording.
    state
        Path of the state in the machine, such as ``run.fast``.
    """

    start: float
    end: float
    state: str

    @property
    def duration(self) -> float:
        """In s."""
        return self.end - self.start


class Timeline:
    """The active states of a machine over time, as recorded; it prints as a table.

    ``result.timeline("heater")`` makes one. A visit that begins and ends between two recorded
    samples is not seen.

    Attributes
    ----------
    name
        Path of the block.
    regions
        Intervals by region, in the order of time: ``""`` is the machine itself, others are the
        paths of parallel regions, such as ``run.logging``. Where a region is not active it has no
        interval.
    """

    def __init__(self, name: str, regions: Mapping[str, tuple[Interval, ...]]) -> None:
        self.name = name
        self.regions: Mapping[str, tuple[Interval, ...]] = MappingProxyType(dict(regions))

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """The intervals of the machine itself, without those of parallel regions."""
        return self.regions[""]

    @property
    def visits(self) -> dict[str, int]:
        """How often each state was entered, by path; states that were never active are absent."""
        found: dict[str, int] = {}
        for intervals in self.regions.values():
            for one in intervals:
                found[one.state] = found.get(one.state, 0) + 1
        return found

    def durations(self) -> dict[str, float]:
        """Return the time in s that each state was active in all, by path."""
        found: dict[str, float] = {}
        for intervals in self.regions.values():
            for one in intervals:
                found[one.state] = found.get(one.state, 0.0) + one.duration
        return found

    def at(self, t: float) -> tuple[str, ...]:
        """Return the paths of the states that are active at a time, for ``machine.draw(active=…)``.

        At the time of a change it is the new state.

        Raises
        ------
        ResultError
            If `t` is outside the recording.
        """
        first, last = self.intervals[0].start, self.intervals[-1].end
        if not first <= t <= last:
            raise ResultError(
                f"`{self.name}` was recorded from {first:g} to {last:g} s, not at {t:g} s."
            )
        found = []
        for intervals in self.regions.values():
            n = bisect_right(intervals, t, key=lambda one: one.start) - 1
            # A region may be inactive; the last interval of a recording includes its end.
            if n >= 0 and (t < intervals[n].end or t == last == intervals[n].end):
                found.append(intervals[n].state)
        return tuple(found)

    def plot(
        self,
        path: str | Path | None = None,
        *,
        title: str | None = None,
        start: float | None = None,
        stop: float | None = None,
    ) -> ShownFigure:
        """Draw the intervals as horizontal bars, one row for each region, and return the figure.

        Each state has a color. Its name is written on bars that are long enough, otherwise in a
        legend.

        Parameters
        ----------
        path
            Where to save the figure; the extension decides the format.
        title
            Above the figure; the name of the block if not given, "" for none.
        start, stop
            Part of the time to draw, in s.
        """
        from .._plotting import save_figure
        from ._timeline_plot import plot_timeline

        figure = plot_timeline(self, title=title, start=start, stop=stop)
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        several = len(self.regions) > 1
        for region, intervals in self.regions.items():
            for one in intervals:
                row = (f"{one.start:.6g}", f"{one.end:.6g}", f"{one.duration:.6g}", one.state)
                rows.append((region or "(machine)", *row) if several else row)
        return rows

    def _head(self) -> tuple[str, ...]:
        head = ("start [s]", "end [s]", "duration [s]", "state")
        return ("region", *head) if len(self.regions) > 1 else head

    def __repr__(self) -> str:
        rows = self._rows()
        shown = [self._head(), *rows[:_SHOWN_ROWS]]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        lines = [f"Timeline of {self.name!r}: {_count(len(rows))}"]
        for row in shown:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  " + "  ".join(cells).rstrip())
        if len(rows) > _SHOWN_ROWS:
            lines.append(f"  … and {len(rows) - _SHOWN_ROWS} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = self._rows()

        def line(cells: tuple[str, ...], tag: str) -> str:
            inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
            return f"<tr>{inner}</tr>"

        body = "".join(line(row, "td") for row in rows[:_SHOWN_ROWS])
        more = len(rows) - _SHOWN_ROWS
        return (
            f"<p>Timeline of {html.escape(self.name)}: {_count(len(rows))}</p>"
            f"<table><thead>{line(self._head(), 'th')}</thead><tbody>{body}</tbody></table>"
            + (f"<p>… and {more} more</p>" if more > 0 else "")
        )


def read_timeline(result: Result, name: str) -> Timeline:
    """Return the timeline of the state machine at the path `name`; see `Result.timeline`."""
    name = name.removesuffix(f".{_STATE}")
    machines = list_machines(result)
    if name not in machines:
        raise UnknownSignalError(_explain(result, name, machines))
    if not result.length:
        raise ResultError(f"`{name}` has no timeline: nothing was recorded.")
    regions = {}
    for signal in result.signals.values():
        if not _is_state(signal) or not signal.path.startswith(f"{name}."):
            continue
        region = signal.path[len(name) + 1 :].removesuffix(_STATE).removesuffix(".")
        regions[region] = _read_intervals(result, signal, region)
    return Timeline(name, {region: regions[region] for region in sorted(regions, key=bool)})


def list_machines(result: Result) -> list[str]:
    """Return the paths of the state machines whose output ``state`` was recorded."""
    paths = {
        signal.path.removesuffix(f".{_STATE}"): signal
        for signal in result.signals.values()
        if _is_state(signal)
    }

    def is_region(path: str) -> bool:
        around = (path[:n] for n, letter in enumerate(path) if letter == ".")
        return paths[path].names[0] == INACTIVE and any(one in paths for one in around)

    return [path for path in paths if not is_region(path)]


def _is_state(signal: Signal) -> bool:
    named = signal.kind == "enumeration" and bool(signal.names) and signal.width == 1
    return named and signal.path.endswith(f".{_STATE}")


def _explain(result: Result, name: str, machines: list[str]) -> str:
    if any(path == name or path.startswith(f"{name}.") for path in result.signals):
        text = f"`{name}` is not a state machine whose output `{name}.{_STATE}` was recorded."
    else:
        text = f"`{name}` was not recorded.{suggest(name, machines)}"
    if machines:
        return f"{text} State machines: {', '.join(machines)}."
    return f"{text} No state machine was recorded."


def _read_intervals(result: Result, signal: Signal, region: str) -> tuple[Interval, ...]:
    """Return the intervals of one output; a long recording is read in parts."""
    t = result.t
    starts: list[int] = []
    values: list[float] = []
    for first in range(0, result.length, _READ_ROWS):
        part = np.asarray(result.read(signal.path, slice(first, first + _READ_ROWS)))
        changes = np.flatnonzero(np.diff(part)) + 1
        if not values or part[0] != values[-1]:
            changes = np.concatenate([[0], changes])
        starts += (changes + first).tolist()
        values += part[changes].tolist()
    ends = [*starts[1:], result.length - 1]
    found = []
    for start, end, value in zip(starts, ends, values, strict=True):
        state = signal.format_value(value)
        if region and state == INACTIVE:
            continue
        path = f"{region}.{state}" if region else state
        found.append(Interval(float(t[start]), float(t[end]), path))
    return tuple(found)


def _count(number: int) -> str:
    return "1 interval" if number == 1 else f"{number} intervals"
