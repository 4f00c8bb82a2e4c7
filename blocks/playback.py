"""Playing a recording: from arrays, or from a CSV or HDF5 file."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..errors import DiagramError, name_list, suggest
from .block import NativeBlock
from .ports import CONTINUOUS, EVERY_TICK, Port, parameter, periodic
from .vectors import require_choice, require_rising

Array = npt.NDArray[np.float64]


class Playback(NativeBlock):
    """A recording played back: y(t) from samples (times[i], values[i]).

    - hold: y = values[i] for times[i] <= t < times[i + 1]
    - linear: a straight line between samples

    Before the first time y is the first value. At the end:

    - ``"hold"``: the last value goes on
    - ``"repeat"``: starts over, with the last time taken for the first one of the next round; also
      backwards, before the first time
    - ``"zero"``: 0 before the first and after the last time
    - ``"stop"``: as hold, and the run ends at the last time

    The samples are the parameters ``times`` and ``values``, fixed during a run.

    Parameters
    ----------
    times
        In seconds, strictly increasing, at least two.
    values
        One value, or one row, for each time.
    interpolation
        ``"linear"`` or ``"hold"``.
    end
        ``"hold"``, ``"repeat"``, ``"zero"`` or ``"stop"``.
    unit
        Of the output.
    period, offset
        Sample time in seconds; without one, linear playback is continuous and held samples come at
        every tick.
    """

    kernel = "playback"

    def __init__(
        self,
        times: Any,
        values: Any,
        *,
        interpolation: str = "linear",
        end: str = "hold",
        unit: str | None = None,
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        t = parameter(
            "times", times, unit="s", doc="times of the samples", tunable=False, hidden=True
        )
        v = parameter("values", values, unit=unit, doc="the samples", tunable=False, hidden=True)
        require_rising("times", t)
        if v.value.ndim not in (1, 2) or len(v.value) != t.value.size:
            raise DiagramError(
                f"`values` has shape {v.value.shape}; with {t.value.size} times it must be "
                f"({t.value.size},) or ({t.value.size}, width)."
            )
        linear = require_choice("interpolation", interpolation, ("hold", "linear"))
        ending = require_choice("end", end, ("hold", "repeat", "zero", "stop"))
        if end == "stop":
            self.kernel = "playback_stopping"  # type: ignore[misc]
        super().__init__(
            outputs=[Port("y", width=v.value.size // t.value.size, unit=unit)],
            parameters=[t, v],
            integers=[linear, ending],
            rate=periodic(period, offset, CONTINUOUS if linear else EVERY_TICK),
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
        period: float | None = None,
        offset: float = 0.0,
    ) -> Self:
        """Play a signal of a file.

        Parameters
        ----------
        path
            A CSV file (times in the first column; the first row may hold names such as
            ``pid.u [N.m]``) or an HDF5 file that `Result` wrote.
        signal
            Its name in the file; may be left out if there is only one. In a CSV file without names
            all columns after the first are one vector.
        interpolation, end, period, offset
            As in `Playback`.
        unit
            Of the output, instead of the one in the file.
        """
        times, values, found = read_samples(path, signal)
        return cls(
            times,
            values,
            interpolation=interpolation,
            end=end,
            unit=unit if unit is not None else found,
            period=period,
            offset=offset,
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


def _read_csv(path: Path, signal: str | None) -> tuple[Array, Array, str | None]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row]
    names = rows.pop(0) if rows and not _is_number(rows[0][0]) else []
    try:
        table = np.array(rows, dtype=np.float64)
    except ValueError as error:
        raise DiagramError(f"`{path}` is not a table of numbers: {error}.") from None
    if table.ndim != 2 or table.shape[1] < 2 or (names and len(names) != table.shape[1]):
        raise DiagramError(
            f"`{path}` wants a column of times and at least one of values, with as many names."
        )
    if not names:
        if signal is not None:
            raise DiagramError(f"`{path}` has no names in its first row: leave `signal` out.")
        return table[:, 0], _flat(table[:, 1:]), None
    columns: dict[str, list[int]] = {}
    units: dict[str, str | None] = {}
    for number, heading in enumerate(names[1:], 1):
        match = _HEADING.match(heading)
        assert match is not None  # every part of the pattern may be empty
        name = match["name"].strip()
        columns.setdefault(name, []).append(number)
        units[name] = match["unit"]
    chosen = _choose(path, signal, list(columns), {})
    return table[:, 0], _flat(table[:, columns[chosen]]), units[chosen]


def _read_hdf5(path: Path, signal: str | None) -> tuple[Array, Array, str | None]:
    import h5py

    try:
        # A recording whose writer was killed, or is still at work, opens only in this mode.
        with h5py.File(path, "r", libver=("v110", "v110"), swmr=True) as file:
            if "biella_result" not in file.attrs:
                raise DiagramError(f"`{path}` is an HDF5 file, but no result of biella.")
            length = int(file["rows"][()])
            datasets = {str(d.attrs["path"]): d for d in file.get("signals", {}).values()}
            aliases = json.loads(file["about"][()])["aliases"]
            chosen = datasets[_choose(path, signal, list(datasets), aliases)]
            unit = chosen.attrs.get("unit")
            return file["time"][:length], chosen[:length], None if unit is None else str(unit)
    except OSError as error:
        raise DiagramError(f"`{path}` is not a readable HDF5 file: {error}.") from error


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


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
