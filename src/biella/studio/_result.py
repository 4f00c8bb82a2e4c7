"""A recorded run in the studio: a result or log file, with its diagram if that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..cli._load import load_diagram
from ..errors import BiellaError
from ..scheduler.compile._flatten import FlatDiagram, flatten
from ..scheduler.compile.diagram._diagram import Diagram
from ..scheduler.compile.plan._plan import Plan
from ..scheduler.realtime._start import stand_ins
from ..scheduler.results._result import Result
from ._mechanism import Mechanism, find_mechanisms, list_systems, show_mechanisms
from ._messages import Message, describe_diagram, describe_parameters, describe_signals
from ._session import AbstractSession, View
from .mechanism._journals import find_journals

if TYPE_CHECKING:
    from ..blocks.multibody.system._system import System

Array = NDArray[np.float64]

_MOST_EVENTS = 1000


class RecordedRows:
    """The rows of a result, read from its file as they are asked for.

    Attributes
    ----------
    columns
        Of each signal, by path: the first one.
    interval
        Usual time between rows in s.
    """

    begin = 0

    def __init__(self, result: Result) -> None:
        self._result = result
        self._times = result.t
        self.end = result.length
        self.columns: dict[str, int] = {}
        self._owners: list[tuple[str, int]] = [("", 0)]
        for path in result:
            self.columns[path] = len(self._owners)
            self._owners += [(path, k) for k in range(result.signals[path].width)]
        self.interval = float(np.median(np.diff(self._times))) if self.end > 1 else 1.0

    def read(self, first: int, end: int, columns: Sequence[int] | None = None) -> tuple[int, Array]:
        """Return rows as columns, and the number of the first."""
        end = min(end, self.end)
        first = min(max(first, 0), end)
        chosen = range(len(self._owners)) if columns is None else columns
        table = np.empty((len(chosen), end - first))
        kept: dict[str, Array] = {}
        for row, column in enumerate(chosen):
            path, element = self._owners[column]
            if not path:
                table[row] = self._times[first:end]
                continue
            if path not in kept:
                kept[path] = self._result.read(path, slice(first, end)).reshape(end - first, -1)
            table[row] = kept[path][:, element]
        return first, table

    def find(self, time: float) -> int:
        """Return the first row at this time or later."""
        return int(np.searchsorted(self._times, time))


def view_result(result: Result, rows: RecordedRows, mechanisms: Sequence[Mechanism] = ()) -> View:
    """Return the view of a recorded run."""
    widths = {path: (rows.columns[path], result.signals[path].width) for path in result}
    return View(rows, widths, {path: result.signals[path] for path in result}, mechanisms)


class _Other:
    """A result that is compared."""

    def __init__(self, file: Path) -> None:
        result = read_rows(file)
        self.file = file
        self.times = result.t
        self.view = view_result(result, RecordedRows(result))


def read_rows(file: Path) -> Result:
    """Return the result in a file that has rows."""
    result = Result.from_hdf5(file)
    if not result.length:
        raise BiellaError(f"`{file}` has no rows.")
    return result


class ResultSession(AbstractSession):
    """A recorded run.

    Parameters
    ----------
    file
        The result or log.
    source
        The diagram, or its Python file: its picture has subsystems, its mechanisms move.
    others
        Further results, to be compared with the first one.
    systems
        Further mechanisms, by the paths of blocks that do not contain their description: FMUs.

    Attributes
    ----------
    unseen
        Mechanisms of the diagram whose poses were not recorded.
    """

    mode = "result"
    is_live = False
    obstacle = "the run is recorded"

    def __init__(
        self,
        file: Path,
        source: Path | Diagram | None = None,
        *,
        others: Sequence[Path] = (),
        systems: Mapping[str, System] | None = None,
    ) -> None:
        super().__init__()
        self._file = file
        self._result = result = read_rows(file)
        self._rows = RecordedRows(result)
        systems = dict(systems or {})
        known: FlatDiagram | None = None
        plan: Plan | None = Plan(result.log.plan, {}) if result.log is not None else None
        picture: Diagram | Plan | None = plan
        if source is not None:
            diagram = source if isinstance(source, Diagram) else load_diagram(source)
            flat = show_mechanisms(flatten(diagram))
            model = diagram.compile(**{**stand_ins(flat, diagram.start_time), "flat": flat})
            systems = list_systems(model.flat) | systems
            picture, plan, known = diagram, model, model.flat
        mechanisms = find_mechanisms(systems, self._rows.columns)
        moving = {mechanism.path for mechanism in mechanisms}
        self.unseen = [path for path in systems if path not in moving]
        self._described = [
            describe_signals(
                list(result.signals.values()), self._rows.columns, plan, self._rows.interval
            ),
            {"event": "mechanisms", "list": [item.describe() for item in mechanisms]},
            {"event": "journals", "list": find_journals(known, systems, self._rows.columns)},
            {"event": "events", "list": _list_events(result)},
        ]
        if plan is not None and picture is not None:
            self._described.insert(0, describe_diagram(picture, plan))
            self._described.append(describe_parameters(plan, {}))
        self.view = view_result(result, self._rows, mechanisms)
        self._others = {n: _Other(path) for n, path in enumerate(others, 2)}
        if others:
            self._described.append(self._describe_runs())

    def introduce(self) -> Message:
        info = self._result.info
        name = str(info.get("diagram") or self._file.stem)
        return {"name": name, "file": self._file.name, "step": self._rows.interval}

    def describe(self) -> list[Message]:
        return self._described

    def _describe_runs(self) -> Message:
        found = [(1, self._file, self._result.t)]
        found += [(number, other.file, other.times) for number, other in self._others.items()]
        names = _name_files([file for _, file, _ in found])
        return {
            "event": "runs",
            "present": 1,
            "list": [
                {
                    "number": number, "name": name, "parent": 0, "since": float(times[0]),
                    "end": float(times[-1]),
                }
                for name, (number, _, times) in zip(names, found, strict=True)
            ],
            "hint": "",
        }  # fmt: skip

    def find_view(self, number: int) -> View | None:
        if number == 1:
            return self.view
        other = self._others.get(number)
        return other.view if other is not None else None

    def name_of(self, number: int | None) -> str:
        other = self._others.get(number or 0)
        return (other.file if other is not None else self._file).stem

    def state(self) -> Message:
        times = self._result.t
        return {
            "event": "state",
            "state": "ended",
            "time": float(times[-1]),
            "begin": float(times[0]),
            "tick": self._rows.end - 1,
            "reason": str(self._result.info.get("stopped") or ""),
        }


def _name_files(files: Sequence[Path]) -> list[str]:
    """Return the shortest names that tell files apart."""
    for parts in range(1, 1 + max(len(file.parts) for file in files)):
        names = ["/".join(file.with_suffix("").parts[-parts:]) for file in files]
        if len(set(names)) == len(names):
            return names
    return [f"{file.stem} ({number})" for number, file in enumerate(files, 1)]


def _list_events(result: Result) -> list[Message]:
    return [
        {"time": event.time, "block": event.source, "text": event.kind}
        for event in result.events[:_MOST_EVENTS]
    ]
