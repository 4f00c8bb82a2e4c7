"""`Result`: the recorded signals of a run, by path."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..realtime._realtime_report import RealtimeReport
from ..realtime.log._log import RunLog
from ._comparison import Comparison, compare_results
from ._coupling_report import CouplingReport, report_couplings
from ._error_estimate import LARGEST_ERROR, ErrorEstimate, Samples, estimate_errors
from ._files import replacing
from ._result_file import (
    AbstractColumns,
    Hdf5Columns,
    MemoryColumns,
    read_result_file,
    rewrite_about,
    write_result_file,
)
from ._signals import ResultError, Signal, SignalTable
from .events._captures import Captures, find_capture, pack_captures, unpack_captures
from .events._events import EVENT, Events

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from ._spectra import Orbit, OrderSpectrum, Spectrum, Waterfall
    from .events._timeline import Timeline

Array = NDArray[np.float64]

_CSV_ROWS = 10_000
_SHOWN_ROWS = 20


class ScopeView(TypedDict):
    """One Scope block: a title, its signals, and the label of each in the plot."""

    title: str
    signals: list[str]
    labels: list[str]


class Result(Mapping[str, Array]):
    """Recorded signals over time, read by path: ``result["encoder.speed"]``.

    A signal is an array of shape (n,), or (n, width) for a vector; ``result["force[2]"]`` is one
    element of a vector, and ``result["ref"]`` the only output of the block ``ref``. Arrays are
    read-only: copy one to change it. A result from an HDF5 file reads each signal on access: a
    long recording need not fit in memory.

    Parameters
    ----------
    columns
        Storage of the values.
    signals
        Descriptions of the signals.
    info
        Metadata of the run: ``diagram, step, solver, plan_hash, wall_time, ticks, stopped`` (the
        reason why the run ended early, or None).
    """

    def __init__(
        self,
        columns: AbstractColumns,
        signals: SignalTable,
        *,
        info: Mapping[str, object] | None = None,
        captures: Captures | None = None,
        events: Events | None = None,
    ) -> None:
        self._columns = columns
        self.signals = signals
        self.info: dict[str, Any] = dict(info or {})
        self.checkpoint: bytes | None = None
        """The engine's state at the end, from which another run can continue."""
        self.error_samples: Samples | None = None
        """What `error_estimate` is computed from."""
        self._captures = captures
        self._events = events
        self.log: RunLog | None = None
        """External inputs of a real-time run, for `biella.replay`."""

    @classmethod
    def from_arrays(
        cls,
        t: ArrayLike,
        signals: Mapping[str, ArrayLike]
        | Mapping[Signal, ArrayLike]
        | Mapping[str | Signal, ArrayLike],
        *,
        units: Mapping[str, str] | None = None,
        aliases: Mapping[str, str] | None = None,
        info: Mapping[str, object] | None = None,
    ) -> Result:
        """Return a result made from arrays, for instance to compare a run with a measurement.

        A key is a path, or a `Signal` with more detail; an array has shape (n,) or (n, width).
        """
        time = np.asarray(t, dtype=np.float64)
        table, rows = [], [time.reshape(1, -1)]
        for key, values in signals.items():
            array = np.asarray(values, dtype=np.float64)
            path = key.path if isinstance(key, Signal) else key
            if array.ndim not in (1, 2) or len(array) != time.size:
                raise ResultError(
                    f"`{path}` has shape {array.shape}; with {time.size} times it must be "
                    f"({time.size},) or ({time.size}, width)."
                )
            width = 1 if array.ndim == 1 else array.shape[1]
            unit = (units or {}).get(path)
            table.append(key if isinstance(key, Signal) else Signal(key, width, unit))
            rows.append(array.reshape(time.size, width).T)
        described = SignalTable(table, aliases)
        return cls(MemoryColumns(np.vstack(rows), described), described, info=info)

    @classmethod
    def from_hdf5(cls, path: str | Path) -> Result:
        """Open a result file: finished, still being recorded, or left by a killed process.

        Signals are read from the file on access. ``info["stopped"]`` reports a file that was never
        closed.

        Raises
        ------
        ResultError
            If there is no such file, it is not a result, or it is truncated or damaged.
        """
        columns, signals, info, log = read_result_file(Path(path))
        result = cls(columns, signals, info=info)
        result.log = log
        return result

    @cached_property
    def error_estimate(self) -> ErrorEstimate | None:
        """Estimated error of fixed steps; if None, ``info["error_estimate"]`` has the reason."""
        if self.error_samples is None:
            return ErrorEstimate.from_description(self.info.get("error_estimate"))
        return estimate_errors(self.error_samples, self)

    def store_error_estimate(self) -> None:
        """Add the error estimate to the description of the run, in its file if it has one."""
        if self.error_estimate is None:
            return
        self.info["error_estimate"] = self.error_estimate.describe()
        if isinstance(self._columns, Hdf5Columns):
            kept = pack_captures(self.captures)
            rewrite_about(self._columns.path, self.info, self.signals.aliases, kept)

    def is_stored_in(self, path: str | Path) -> bool:
        """Return whether the signals are read from this file."""
        columns, file = self._columns, Path(path)
        return isinstance(columns, Hdf5Columns) and file.exists() and file.samefile(columns.path)

    @cached_property
    def t(self) -> Array:
        """Times in s, shape (n,)."""
        return self._columns.time()

    @property
    def captures(self) -> Captures:
        """The capture of each Trigger, or the reason why there is none."""
        if self._captures is None:
            kept = self._columns.read_captures() if isinstance(self._columns, Hdf5Columns) else []
            self._captures = unpack_captures(kept)
        return self._captures

    @property
    def events(self) -> Events:
        """Located events: ``result.events.times("relay")``, ``result.events[0].source``.

        Empty with ``events="tick"``, and for files that were written without events.
        """
        if self._events is None:
            columns, none = self._columns, Events(np.empty(0, EVENT))
            self._events = columns.read_events() if isinstance(columns, Hdf5Columns) else none
        return self._events

    @property
    def scopes(self) -> list[ScopeView]:
        """Recorded signals of the diagram's Scope blocks."""
        views = self.info.get("scopes") or []
        assert isinstance(views, list)
        return [view for view in views if all(name in self for name in view["signals"])]

    def coupling_report(self, tolerance: float = 1e-3) -> CouplingReport:
        """Return a report on the coupling of blocks with an internal solver and its accuracy.

        The report prints as a table. It lists the error of each connection, and the step that
        would keep it below `tolerance`, relative to the largest value of the signal. Both need
        ``estimate_error=1`` in `simulate`.
        """
        couplings: Any = self.info.get("couplings", [])
        step: Any = self.info.get("step", 0.0)
        solver: Any = self.info.get("solver", "")
        together: Any = self.info.get("together", [])
        return report_couplings(couplings, step, tolerance, solver, together)

    def realtime_report(self) -> RealtimeReport:
        """Return the timing of a real-time run: lateness, execution, overruns, blocks, devices.

        The report prints as a table; its values are in ``info["realtime"]``.
        """
        info: Any = self.info.get("realtime")
        if info is None:
            raise ResultError("this result is not of a real-time run: use `biella.run_realtime`.")
        return RealtimeReport(info, str(self.info.get("diagram", "")))

    def timeline(self, name: str) -> Timeline:
        """Return the intervals in which the states of a StateMachine were active.

        The timeline prints as a table and plots as bars; ``machine.draw(active=timeline.at(12.0))``
        highlights the states that are active at 12 s.

        Parameters
        ----------
        name
            Path of the block, such as ``heater``. Its output ``state`` must be recorded; those of
            parallel regions are included if they are.

        Raises
        ------
        UnknownSignalError
            If there is no such block or it is not a state machine, with the valid names.
        """
        from .events._timeline import read_timeline

        return read_timeline(self, name)

    def capture(self, name: str) -> Result:
        """Return the capture of a Trigger block: the signal ``u`` around its event.

        ``info["trigger_time"]`` is the time of the event. The capture is a `Result`, which can be
        plotted and saved.
        """
        return find_capture(self.captures, name)

    @property
    def paths(self) -> list[str]:
        """Paths of all signals, in recorded order."""
        return list(self.signals)

    @property
    def units(self) -> dict[str, str | None]:
        """Unit of each signal as declared, None where it has none."""
        return {path: signal.unit for path, signal in self.signals.items()}

    @property
    def length(self) -> int:
        """Number of recorded times."""
        return self._columns.length

    def read(self, name: str, rows: slice = slice(None)) -> Array:
        """Return some rows of a signal; from a file, only these are read.

        Raises
        ------
        UnknownSignalError
            With the nearest names and the list of valid ones.
        """
        signal, element = self.signals.locate(name)
        values = self._columns.read(signal.path, rows)
        if element is None or signal.width == 1:
            return values
        return values[:, element]

    def __getitem__(self, name: str) -> Array:
        return self.read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.signals)

    def __len__(self) -> int:
        return len(self.signals)

    def __contains__(self, name: object) -> bool:
        try:
            self.signals.locate(str(name))
        except KeyError:
            return False
        return True

    # Results are equal by identity only; `compare` compares their values.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def plot(
        self,
        *signals: str | Sequence[str],
        path: str | Path | None = None,
        title: str | None = None,
        start: float | None = None,
        stop: float | None = None,
        events: bool | Sequence[str] = False,
    ) -> Figure:
        """Draw signals over time, and return the matplotlib figure.

        A notebook shows it. In a script, ``plot(…).show()`` opens a window and waits until it is
        closed, and `path` saves it.

        Names alone are grouped by unit, one axes a unit: ``plot("ref", "encoder.speed", "pid")``.
        With any list among them, each argument has its own axes: ``plot(["ref", "y"], "u")``.
        Without names, each Scope block of the diagram has one axes; without Scope blocks, all
        signals are drawn.

        Parameters
        ----------
        signals
            Names, or lists of names.
        path
            Where to save the figure; the extension decides the format.
        title
            Above the figure; the name of the diagram if not given, "" for none.
        start, stop
            Part of the time to draw, in s.
        events
            Mark located events: of all blocks, or of those that `Events.of` selects. Each block has
            a row of marks below the signals; up to 60 events are also lines through the signals.
        """
        from ._plotting import plot_result, save_figure

        figure = plot_result(self, signals, title=title, start=start, stop=stop, events=events)
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def psd(
        self,
        name: str,
        *,
        resolution: float | None = None,
        period: float | None = None,
        start: float | None = None,
        stop: float | None = None,
    ) -> Spectrum:
        """Return the one-sided power spectral density of a signal, by Welch's method.

        Parameters
        ----------
        name
            A signal, or one element of a vector.
        resolution
            Frequency resolution in Hz: segments of 1 / resolution seconds, with a Hann window and
            50 % overlap. By default each segment is an eighth of the recording.
        period
            Sample time of a held signal, such as that of an ADC; one sample is used per period.
        start, stop
            Time range to analyze, in s.
        """
        from ._spectra import compute_psd

        return compute_psd(self, name, period, resolution, start=start, stop=stop)

    def waterfall(
        self,
        name: str,
        *shaft: str,
        speed: str | None = None,
        angle: str | None = None,
        resolution: float | None = None,
        overlap: float = 0.75,
        period: float | None = None,
        start: float | None = None,
        stop: float | None = None,
    ) -> Waterfall:
        """Return the amplitude spectra of short segments of a signal, over time or speed.

        Parameters
        ----------
        name
            A signal, or one element of a vector.
        speed, angle
            Signal with the speed or the angle of a shaft, to draw over its speed.
        resolution
            Frequency resolution in Hz: segments of 1 / resolution seconds; by default an eighth of
            the recording.
        overlap
            Fraction of a segment shared with the next one.
        period, start, stop
            As of `psd`.
        """
        from ._spectra import compute_waterfall, require_named

        require_named(self, f"waterfall({name!r}", shaft)
        return compute_waterfall(
            self, name, speed, angle, period, resolution, overlap, start=start, stop=stop
        )

    def orders(
        self,
        name: str,
        *shaft: str,
        angle: str | None = None,
        speed: str | None = None,
        highest: float = 10.0,
        turns: int = 8,
        overlap: float = 0.5,
        period: float | None = None,
        start: float | None = None,
        stop: float | None = None,
    ) -> OrderSpectrum:
        """Return amplitudes over multiples of a shaft's speed: order tracking.

        A cubic spline resamples the signal at equal angles of the shaft, with enough samples per
        turn to lose no information. Blocks of whole turns are transformed with a Hann window. The
        orders of a run-up stay sharp, where a spectrum over frequency would smear them.

        Parameters
        ----------
        name
            A signal, or one element of a vector.
        angle, speed
            Signal with the shaft's angle or with its speed; one of them. An angle that jumps by
            whole turns needs two samples a turn.
        highest
            Highest order.
        turns
            Turns per block: orders are 1 / turns apart.
        overlap
            Fraction of a block shared with the next one, rounded to whole turns.
        period, start, stop
            As of `psd`.
        """
        from ._spectra import compute_orders, require_named

        require_named(self, f"orders({name!r}", shaft)
        return compute_orders(
            self, name, speed, angle, highest, turns, overlap, period, start=start, stop=stop
        )

    def orbit(
        self,
        x: str,
        y: str,
        *shaft: str,
        angle: str | None = None,
        speed: str | None = None,
        period: float | None = None,
        start: float | None = None,
        stop: float | None = None,
    ) -> Orbit:
        """Return the path of a shaft's center from two signals, with a mark for each turn.

        Parameters
        ----------
        x, y
            Signals, or elements of a vector, in one unit.
        angle, speed
            Signal with the shaft's angle or its speed, for the marks and for `Orbit.component`.
        period, start, stop
            As of `psd`.
        """
        from ._spectra import compute_orbit, require_named

        require_named(self, f"orbit({x!r}, {y!r}", shaft)
        return compute_orbit(self, x, y, speed, angle, period, start=start, stop=stop)

    def to_csv(self, path: str | Path) -> None:
        """Write a CSV file: one column per element, named with its unit, as in ``pid.u [N.m]``.

        Enumerations are numbers; their heading has the names: ``heater.state [1=off; 2=on]``.
        Numbers have as many digits as an exact round trip requires. The file is written
        atomically.
        """
        header = ["time [s]"]
        for signal in self.signals.values():
            unit = "" if signal.unit is None else f" [{signal.unit}]"
            if signal.names:
                values = "; ".join(f"{n}={name}" for n, name in enumerate(signal.names, 1))
                unit = f" [{values}]"
            header += [name + unit for name in signal.element_names]
        with replacing(path) as temporary, temporary.open("x", newline="", encoding="utf-8") as f:
            csv.writer(f, lineterminator="\n").writerow(header)
            for start in range(0, self.length, _CSV_ROWS):
                f.writelines(self._csv_lines(slice(start, start + _CSV_ROWS)))

    def _csv_lines(self, rows: slice) -> Iterator[str]:
        columns: list[Iterator[str]] = [map(repr, self._columns.time(rows).tolist())]
        for signal in self.signals.values():
            values = self._columns.read(signal.path, rows)
            text = repr if signal.kind == "real" else "{:g}".format
            for column in np.atleast_2d(values.T):
                columns.append(map(text, column.tolist()))
        return (",".join(row) + "\n" for row in zip(*columns, strict=True))

    def to_hdf5(self, path: str | Path) -> None:
        """Write atomically an HDF5 file that `from_hdf5` reads back without loss."""
        captures, info = pack_captures(self.captures), dict(self.info)
        if self.error_estimate is not None:
            info["error_estimate"] = self.error_estimate.describe()
        write_result_file(
            Path(path), self._columns, self.signals, info, captures, self.log, self.events
        )

    def to_mdf4(self, path: str | Path) -> None:
        """Write atomically an MDF4 file (ASAM MDF 4.10) for measurement tools.

        One channel per element, with its unit; booleans are bytes, integers 64 bits wide.
        Enumerations are integers that tools show by name (value to text conversion). Located
        events are the text channel ``events``, in a group of its own. Needs asammdf:
        ``pip install 'biella[mdf]'``.
        """
        from ._mdf import write_mdf

        write_mdf(self, Path(path))

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas DataFrame: time as index, one column per element, units in ``attrs``.

        Enumerations are numbers from 1 on; ``attrs["names"]`` has the names of their values.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ResultError(
                "to_pandas needs pandas, which is not installed: pip install 'biella[pandas]'."
            ) from error
        data: dict[str, Array] = {}
        for signal in self.signals.values():
            columns = np.atleast_2d(self[signal.path].T)
            data |= dict(zip(signal.element_names, columns, strict=True))
        frame = pd.DataFrame(data, index=pd.Index(self.t, name="time"))
        frame.attrs["units"] = self.units
        frame.attrs["names"] = {path: s.names for path, s in self.signals.items() if s.names}
        return frame

    def compare(
        self,
        other: Result,
        rtol: float = 1e-9,
        atol: float = 1e-12,
        signals: Sequence[str] | None = None,
    ) -> Comparison:
        """Compare with a reference: ``|self - other| <= atol + rtol * |other|`` at common times.

        The report is true if all signals agree, and prints as a table. A signal in only one of the
        results is a difference, unless `signals` selects the signals to compare.
        """
        return compare_results(self, other, rtol, atol, signals)

    def _summary(self) -> tuple[str, list[tuple[str, ...]], str]:
        """Return a headline, rows under `_SUMMARY_HEAD`, and closing lines."""
        name = self.info.get("diagram")
        headline = f"Result of {name!r}" if name else "Result"
        headline += f": {len(self)} signal{'s' * (len(self) != 1)}, {self.length} times"
        if self.length:
            last = slice(self.length - 1, self.length)
            first_t, last_t = self._columns.time(slice(0, 1))[0], self._columns.time(last)[0]
            headline += f", t = {first_t:g} to {last_t:g} s"
        if stopped := self.info.get("stopped"):
            headline += f"; stopped: {stopped}"
        estimate = self.error_estimate
        if estimate is not None and estimate.largest > LARGEST_ERROR:
            headline += f"; estimated error up to {estimate.largest:.1g} of a range"
        if incomplete := self.info.get("recording"):
            headline += f"; the recording is not complete: {incomplete}"
        rows: list[tuple[str, ...]] = []
        for signal in list(self.signals.values())[:_SHOWN_ROWS]:
            value = ""
            if self.length and signal.width == 1:
                value = signal.format_value(self._columns.read(signal.path, last)[0])
            rows.append((signal.path, signal.unit or "", signal.kind, str(signal.width), value))
        more = len(self) - len(rows)
        closing = [f"… and {more} more"] if more else []
        closing += [self.events.describe()] if self.events.total else []
        return headline, rows, "\n  ".join(closing)

    def __repr__(self) -> str:
        headline, rows, more = self._summary()
        if not rows:
            return headline
        rows.insert(0, _SUMMARY_HEAD)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [headline]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  " + "  ".join(cells).rstrip())
        return "\n".join(lines + ([f"  {more}"] if more else []))

    def _repr_html_(self) -> str:
        from ..notebook._result import show_result

        headline, _, more = self._summary()
        return show_result(self, headline, more)


_SUMMARY_HEAD = ("signal", "unit", "kind", "width", "last value")
