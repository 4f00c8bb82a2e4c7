"""Playing a recording: from arrays, or from a CSV or HDF5 file."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .... import _contract as contract
from ...._services import find_service
from ....errors import BiellaError, DiagramError, name_list, suggest
from ...core._block import NativeBlock
from ...core._ports import CONTINUOUS, TIMED, Matrix, Numbers, Port, parameter
from ...core._units import Unit, UnitError, equivalent, parse_unit
from ...core._vectors import require_choice

_INTERPOLATIONS = {"hold": contract.PLAYBACK_HOLD, "linear": contract.PLAYBACK_LINEAR}
_ENDS = {
    "hold": contract.PLAYBACK_END_HOLD,
    "repeat": contract.PLAYBACK_END_REPEAT,
    "zero": contract.PLAYBACK_END_ZERO,
    "stop": contract.PLAYBACK_END_STOP,
}

Array = npt.NDArray[np.float64]


def _require_times(times: Array) -> None:
    if times.ndim != 1 or times.size < 2:
        raise DiagramError(
            f"`times` is a list of at least two numbers, not an array of shape {times.shape}."
        )
    falls = np.flatnonzero(np.diff(times) < 0)
    if falls.size:
        n = int(falls[0])
        raise DiagramError(
            f"`times` must not fall: times[{n + 1}] = {times[n + 1]:g} comes after "
            f"times[{n}] = {times[n]:g}. Sort them; equal ones are a jump."
        )
    if times[0] == times[-1]:
        raise DiagramError(f"`times` has the one time {times[0]:g} only: give at least two.")


class Playback(NativeBlock):
    """A recording played back: y(t) from samples (times[i], values[i]).

    - hold: y = values[i] for times[i] <= t < times[i + 1]
    - linear: a straight line between samples

    Two samples with equal times are a jump: up to it the line leads to the first value, from that
    time on y is the second one, the limit from the right. Where continuous states depend on y, each
    sample ends a step of the solver, on the grid of ticks or off it, so that no step is integrated
    across a corner or a jump. Recordings with more than 16 samples per tick in the mean are
    interpolated within steps instead, and held ones are sampled at ticks; both hold for every
    recording with ``events="tick"``.

    Before the first time y is the first value. At the end:

    - ``"hold"``: the last value is held
    - ``"repeat"``: periodic, where the last time is the first one of the next period; also before
      the first time
    - ``"zero"``: 0 before the first and after the last time; also at the last time where each
      sample ends a step
    - ``"stop"``: as hold, and the run ends at the last time

    The samples are the parameters ``times`` and ``values``, fixed during a run.

    Parameters
    ----------
    times
        In seconds, at least two that differ; they may not fall. Equal ones are a jump.
    values
        One value, or one row, for each time.
    interpolation
        ``"linear"`` or ``"hold"``.
    end
        ``"hold"``, ``"repeat"``, ``"zero"`` or ``"stop"``.
    unit
        Unit of the output.
    """

    kernel = "playback"
    can_be_sampled = True

    def __init__(
        self,
        times: Numbers,
        values: Matrix,
        *,
        interpolation: str = "linear",
        end: str = "hold",
        unit: str | None = None,
    ) -> None:
        t = parameter(
            "times", times, unit="s", doc="times of the samples", tunable=False, hidden=True
        )
        v = parameter("values", values, unit=unit, doc="the samples", tunable=False, hidden=True)
        _require_times(t.value)
        if v.value.ndim not in (1, 2) or len(v.value) != t.value.size:
            raise DiagramError(
                f"`values` has shape {v.value.shape}; with {t.value.size} times it must be "
                f"({t.value.size},) or ({t.value.size}, width)."
            )
        how = require_choice("interpolation", interpolation, _INTERPOLATIONS)
        ending = require_choice("end", end, _ENDS)
        super().__init__(
            outputs=[Port("y", width=v.value.size // t.value.size, unit=unit)],
            parameters=[t, v],
            integers=[how, ending],
            rate=CONTINUOUS if interpolation == "linear" else TIMED,
            kernel="playback_stopping" if end == "stop" else None,
        )

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        signal: str | None = None,
        *,
        interpolation: str = "linear",
        end: str = "hold",
        unit: str | None = None,
    ) -> Self:
        """Play a signal of a file.

        Parameters
        ----------
        path
            A CSV file (times in the first column; the first row may hold names such as
            ``pid.u [N.m]``; two rows with equal times are a jump) or an HDF5 file that `Result`
            wrote.
        signal
            Its name in the file; may be left out if there is only one. In a CSV file without names
            all columns after the first are one vector.
        interpolation, end
            As in `Playback`.
        unit
            Unit of the output, instead of the one in the file.
        """
        times, values, found = read_samples(path, signal)
        return cls(
            times,
            values,
            interpolation=interpolation,
            end=end,
            unit=unit if unit is not None else found,
        )


def read_samples(path: str | Path, signal: str | None) -> tuple[Array, Array, str | None]:
    """Return the times, the values and the unit of a signal of a file: see `Playback.from_file`."""
    file = Path(path)
    if not file.is_file():
        raise DiagramError(f"there is no file `{file}` to play.")
    read = _read_hdf5 if file.suffix.lower() in (".h5", ".hdf5") else _read_csv
    return read(file, signal)


# `force[0] [N]` and `force[0]` are elements of `force`; in `x [1]` the space makes it a unit.
_HEADING = re.compile(
    r"(?P<name>.*?)(?:\[(?P<element>\d+)\])?\s*(?:\[(?P<unit>[^\[\]]*)\])?\s*\Z", re.S
)


@dataclass(frozen=True, slots=True)
class Column:
    """A signal of a CSV file: its values, its unit if the heading has one, its elements."""

    values: Array
    unit: str | None
    elements: tuple[int, ...]
    """Indices of a vector as the headings have them, rising; empty for a single column."""


def read_columns(path: str | Path) -> tuple[Array, dict[str, Column]]:
    """Return the times and the columns of a CSV file by name.

    The first column has times in seconds, which may not fall; two rows with equal times are a jump.
    Headings are such as ``motor.torque``, ``u [m]``, ``force[0] [N]``; elements make one vector, in
    the order of their indices. Without a row of headings, all columns are one vector named ``""``.

    Raises
    ------
    DiagramError
        With the line number: a cell that is not a finite number, a row with too few or too many
        cells, decreasing times, or two columns of the same name.
    """
    file = Path(path)
    try:
        with file.open(newline="", encoding="utf-8-sig") as opened:
            reader = csv.reader(opened)
            rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except OSError as error:
        raise DiagramError(f"cannot read `{file}`: {error.strerror}.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DiagramError(f"`{file}` is not a CSV file in UTF-8: {error}.") from error
    headings = [cell.strip() for cell in rows.pop(0)[1]] if rows and not _is_row(rows[0][1]) else []
    width = len(headings) or (len(rows[0][1]) if rows else 0)
    if width < 2 or not rows:
        other = {";", "\t"} & set("".join([*headings, *(rows[0][1] if rows else ())]))
        hint = f" Cells are separated by commas, not by {min(other)!r}." if other else ""
        raise DiagramError(
            f"`{file}` needs a column of times, at least one of values, and a row for each "
            f"time.{hint}"
        )
    table = np.array([_read_row(file, line, row, headings, width) for line, row in rows])
    falls = np.flatnonzero(np.diff(table[:, 0]) < 0)
    if falls.size:
        n = int(falls[0])
        raise DiagramError(
            f"`{file}`, line {rows[n + 1][0]}: the time {table[n + 1, 0]:g} s comes after "
            f"{table[n, 0]:g} s. Times must not fall; equal ones are a jump."
        )
    if not headings:
        return table[:, 0], {"": Column(_flat(table[:, 1:]), None, ())}
    return table[:, 0], _name_columns(file, headings, table)


def check_unit(path: Path, name: str, written: str | None, wanted: Any) -> None:
    """Reject a column whose heading has a different unit than the input it drives."""
    if written is None or not written.strip() or not isinstance(wanted, Unit):
        return
    try:
        unit = parse_unit(written)
    except UnitError:
        unit = None
    if str(wanted) == written.strip() or (unit is not None and equivalent(unit, wanted)):
        return
    raise DiagramError(
        f"column `{name}` of `{path}` is in {written}, but the input is in {wanted}: convert the "
        f"column, or leave the unit out of the heading."
    )


def _name_columns(path: Path, headings: list[str], table: Array) -> dict[str, Column]:
    places: dict[str, dict[int, int]] = {}
    units: dict[str, str | None] = {}
    for number, heading in enumerate(headings[1:], 1):
        match = _HEADING.match(heading)
        assert match is not None  # every part of the pattern may be empty
        name = match["name"].strip()
        if not name:
            raise DiagramError(f"`{path}`: column {number + 1} has no name in the first row.")
        element = -1 if match["element"] is None else int(match["element"])
        own = places.setdefault(name, {})
        if element in own or (own and -1 in (element, *own)):
            raise DiagramError(f"`{path}` has two columns `{heading}`: give each its own name.")
        own[element] = number
        # The values of an enumeration, as in `state [1=off; 2=on]`, are no unit.
        unit = None if "=" in (match["unit"] or "") else match["unit"]
        if units.setdefault(name, unit) != unit:
            raise DiagramError(
                f"`{path}`: the elements of `{name}` are in {units[name]} and {unit}."
            )
    found = {}
    for name, own in places.items():
        order = sorted(own)
        values = _flat(table[:, [own[element] for element in order]])
        found[name] = Column(values, units[name], () if order == [-1] else tuple(order))
    return found


def _read_row(
    path: Path, line: int, row: list[str], headings: list[str], width: int
) -> list[float]:
    where = f"`{path}`, line {line}"
    if len(row) != width:
        like = "the first row" if headings else "the first one"
        raise DiagramError(f"{where} has {len(row)} cells, but {like} {width}.")
    numbers = []
    for n, cell in enumerate(row):
        column = f"`{headings[n]}`" if headings and headings[n] else f"{n + 1}"
        try:
            number = float(cell)
        except ValueError:
            what = f"`{cell.strip()}` is not a number" if cell.strip() else "the cell is empty"
            raise DiagramError(f"{where}, column {column}: {what}.") from None
        if not math.isfinite(number):
            raise DiagramError(
                f"{where}, column {column}: {cell.strip()} is not finite. Leave the row out, or "
                f"fill in the value to be played."
            )
        numbers.append(number)
    return numbers


def _read_csv(path: Path, signal: str | None) -> tuple[Array, Array, str | None]:
    times, columns = read_columns(path)
    if "" in columns:
        if signal is not None:
            raise DiagramError(f"`{path}` has no names in its first row: leave `signal` out.")
        return times, columns[""].values, None
    chosen = columns[_choose(path, signal, list(columns), {})]
    return times, chosen.values, chosen.unit


def _read_hdf5(path: Path, signal: str | None) -> tuple[Array, Array, str | None]:
    try:
        result = find_service("Result").from_hdf5(path)
        chosen = _choose(path, signal, list(result), result.signals.aliases)
        return result.t, result[chosen], result.units[chosen]
    except DiagramError:
        raise
    except BiellaError as error:  # of the reader
        raise DiagramError(str(error)) from error


def _choose(path: Path, signal: str | None, names: list[str], aliases: dict[str, str]) -> str:
    if signal is None and len(names) == 1:
        return names[0]
    if signal in names:
        return str(signal)
    if aliases.get(str(signal)) in names:
        return aliases[str(signal)]
    problem = (
        f"`{path}` has {len(names)} signals: say which, signal=…."
        if signal is None
        else f"`{path}` has no signal `{signal}`.{suggest(signal, [*names, *aliases])}"
    )
    raise DiagramError(f"{problem} Signals: {name_list(names)}.")


def _flat(values: Array) -> Array:
    return values[:, 0] if values.shape[1] == 1 else values


def _is_row(cells: list[str]) -> bool:
    """Whether a first row has numbers and no headings: its first cell is a number."""
    try:
        float(cells[0])
    except ValueError:
        return False
    return True
