"""Storage of a result: in memory, or in an HDF5 file that is read on access.

The HDF5 layout, version 2:

- ``time`` (n,) and ``signals/<path>`` (n,) or (n, width), with the attributes ``path, index, width,
  unit, kind, sampled`` for other programs;
- ``blocks``, the checksums of rows, see ``storage/_checked_blocks.py``;
- ``captures/<path>`` (k, 1 + width), time and samples that a Trigger captured;
- ``events``, see `events._event_log`; ``log``, see ``realtime/log/_log.py``;
- ``about``, a JSON text in two slots, see ``storage/_sealed.py``: ``info``, ``aliases``,
  ``signals``, what is known of the ``captures``, the ``biella`` and the ``engine`` that wrote the
  file, and whether it is ``complete``;
- ``reached``, likewise: how far a real-time run had come, rewritten 50 times a second.

The root carries ``biella_result`` (the version), ``biella`` (the release) and ``recording`` (a
random name, by which a file that was replaced under an open result is noticed).
``storage/_atomic_file.py`` has how the file is written, ``storage/_format_1.py`` how version 1 is
read.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import time
import weakref
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ... import __version__ as VERSION
from ..realtime.log._log import RunLog, create_log, read_log, write_log
from ._files import TargetLock, find_recording_target, is_locked, replacing
from ._signals import ResultError, Signal, SignalTable
from .events._event_log import create_events, read_events, write_events
from .events._events import Events, EventSource
from .storage import _format_1 as format_1
from .storage._atomic_file import AtomicFile
from .storage._checked_blocks import Blocks, append_block, create_blocks, read_blocks
from .storage._hdf5_view import SIGNATURE, is_closed, is_marked, open_hdf5
from .storage._references import check_references
from .storage._sealed import Slots, read_slots, rewrite_slots

if TYPE_CHECKING:
    import h5py

T = TypeVar("T")
Array = NDArray[np.float64]
Capture = tuple[Signal, Array, object]
"""Of a Trigger: its signal, rows of time and samples, and what is known of them, or why there are
none."""

FORMAT_VERSION = 2
UNFINISHED = "the recording was not closed: the process ended during the run"
_GOING_ON = "the recording is not closed: the run is still going on"

# HDF5 1.10 is the oldest format whose metadata have checksums throughout.
LIBVER = ("v110", "v110")

_CHUNK_ELEMENTS = 1 << 17
_COPIED_ROWS = 1 << 14
_ABOUT_SPARE = 1 << 14
_ABOUT_CAPTURE = 1 << 10
_REPORT_SPARE = 1 << 18
_REACHED_SPARE = 64
_ATTEMPTS = 10  # to read a file that is being written
_PAUSE = 0.05  # s between them
_DAMAGE_SHOWN = 4


class AbstractColumns(ABC):
    """The recorded numbers, column by column."""

    length: int

    @abstractmethod
    def time(self, rows: slice = slice(None)) -> Array:
        """Return times, shape (n,)."""

    @abstractmethod
    def read(self, path: str, rows: slice = slice(None)) -> Array:
        """Return a signal, shape (n,) for width 1, else (n, width)."""


class MemoryColumns(AbstractColumns):
    """Columns in memory: `table` has time in row 0 and then one row per signal element."""

    def __init__(self, table: Array, signals: SignalTable) -> None:
        if table.shape[0] != 1 + signals.total_width:
            raise ResultError(
                f"The table has {table.shape[0]} rows; time and the signals need "
                f"{1 + signals.total_width}."
            )
        table.flags.writeable = False
        self.length = table.shape[1]
        self._table = table
        self._place: dict[str, int | slice] = {}
        row = 1
        for signal in signals.values():
            end = row + signal.width
            self._place[signal.path] = row if signal.width == 1 else slice(row, end)
            row = end

    def time(self, rows: slice = slice(None)) -> Array:
        return self._table[0, rows]

    def read(self, path: str, rows: slice = slice(None)) -> Array:
        return self._table[self._place[path], rows].T


class Hdf5Columns(AbstractColumns):
    """Columns in an HDF5 file, which is opened only while a signal is read.

    A referenced signal is not read twice; an unreferenced one uses no memory.
    """

    def __init__(
        self,
        path: Path,
        recording: str,
        length: int,
        *,
        version: int = FORMAT_VERSION,
        columns: Sequence[str] = (),
        blocks: Blocks | None = None,
        checksums: Mapping[str, int] | None = None,
    ) -> None:
        self.path = path
        self.recording = recording
        self.length = length
        self.version = version
        self._columns = {name: number for number, name in enumerate(columns)}
        self._blocks = blocks
        self._checksums = checksums or {}
        self._held: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()

    def time(self, rows: slice = slice(None)) -> Array:
        return self._load("time", rows)

    def read(self, path: str, rows: slice = slice(None)) -> Array:
        return self._load(dataset_name(path), rows)

    def _load(self, dataset: str, rows: slice) -> Array:
        start, stop, _ = rows.indices(self.length)
        whole = (start, stop) == (0, self.length)
        if whole and (held := self._held.get(dataset)) is not None:
            return np.asarray(held)
        if self._blocks is None:
            array = self._load_rows(dataset, start, stop)
            checksum = self._checksums.get(dataset) if whole else None
            if checksum is not None and zlib.crc32(array.data) != checksum:
                raise self._damage(dataset, [(start, stop - 1)])
        else:
            array = self._load_checked(self._blocks, dataset, start, stop)
        array.flags.writeable = False
        if whole:
            self._held[dataset] = array
        return array

    def _load_checked(self, blocks: Blocks, dataset: str, start: int, stop: int) -> Array:
        first, last = blocks.span(start, stop)
        offset = blocks.first_row(first)
        end = int(blocks.ends[last - 1]) if last > first else offset
        array = self._load_rows(dataset, offset, end)
        if damage := blocks.find_damage(self._columns[dataset], array, first, last):
            raise self._damage(dataset, damage)
        return array[start - offset : max(start, stop) - offset]

    def _load_rows(self, dataset: str, start: int, stop: int) -> Array:
        def load(file: h5py.File) -> Array:
            array: Array = file[dataset][start:stop]
            if len(array) != max(0, stop - start):
                raise ValueError(f"{dataset} has {len(array)} of {stop - start} rows")
            return array

        return self._read(load)

    def _damage(self, dataset: str, damage: list[tuple[int, int]]) -> ResultError:
        """Return the error that names the rows, and their times if these are sound."""
        shown = ", ".join(f"{first} to {last}" for first, last in damage[:_DAMAGE_SHOWN])
        if len(damage) > _DAMAGE_SHOWN:
            shown += f" and {len(damage) - _DAMAGE_SHOWN} more stretches"
        when = ""
        if dataset != "time" and self._blocks is not None:
            with contextlib.suppress(ResultError):
                ends = [self.time(slice(row, row + 1))[0] for row in (damage[0][0], damage[-1][1])]
                when = f" (t = {ends[0]:.9g} to {ends[1]:.9g} s)"
        return ResultError(
            f"`{self.path}` is damaged: rows {shown} of `{dataset}`{when} do not match their "
            f"checksum. Use a copy of the file, its other rows (Result.read), or its other signals."
        )

    def read_captures(self) -> list[Capture]:
        """Return for each Trigger its signal, time and samples, and what is known of them."""

        def read(file: h5py.File) -> list[Capture]:
            if self.version == 1:
                captures = format_1.read_captures(file)
                return [(signal, rows, known or UNFINISHED) for signal, rows, known in captures]
            about = read_about(file)
            found = []
            for declared in about["capture_signals"]:
                signal = _make_signal(declared)
                rows = file[dataset_name(signal.path, "captures")][:]
                known = about["captures"].get(signal.path, UNFINISHED)
                if about["capture_checksums"].get(signal.path, 0) != _checksum(rows):
                    raise ValueError(f"the capture of {signal.path} does not match its checksum")
                found.append((signal, rows, known))
            return found

        return self._read(read)

    def read_events(self) -> Events:
        """Return the located events of the run."""
        return self._read(read_events)

    def _read(self, read: Callable[[h5py.File], T]) -> T:
        def read_if_same(file: h5py.File) -> T:
            if read_recording(file) != self.recording:
                raise ResultError(
                    f"`{self.path}` was replaced by another recording since this result was "
                    "opened. Open it again with Result.from_hdf5, or record to another file."
                )
            return read(file)

        return read_hdf5(self.path, read_if_same)


def dataset_name(path: str, group: str = "signals") -> str:
    """Return where a signal is in the file: a slash would make a group, a lone dot is one."""
    name = path.replace("%", "%25").replace("/", "%2F")
    return f"{group}/" + ("%2E" if name == "." else name)


def is_result_file(path: Path) -> bool:
    """Return whether a file is a result of biella, whole or damaged."""
    return is_marked(path, "biella_result")


def read_hdf5(path: Path, read: Callable[[h5py.File], T]) -> T:
    """Return what `read` finds in a result file: finished, being written, or left by a kill.

    Raises
    ------
    ResultError
        If there is no such file, it is not a result, or it is truncated or damaged.
    """
    for attempt in range(_ATTEMPTS):
        try:
            with path.open("rb") as raw:
                start = raw.read(len(SIGNATURE))
            is_written = is_locked(path) or not is_closed(path)
            last = not is_written or attempt == _ATTEMPTS - 1
        except FileNotFoundError:
            raise ResultError(f"There is no file `{path}`.") from None
        except OSError as error:
            raise ResultError(f"`{path}` cannot be read: {error.strerror}.") from error
        if start != SIGNATURE:
            raise ResultError(f"`{path}` is not a readable HDF5 file: it has no HDF5 signature.")
        try:
            with open_hdf5(path) as file:
                _check_version(file, path)
                check_references(file, path)
                return read(file)
        except (ResultError, MemoryError):
            raise
        except Exception as error:  # what HDF5 and h5py raise of damaged metadata is of any kind
            if last:
                raise ResultError(
                    f"`{path}` cannot be read: it is truncated or damaged ({_one_line(error)})."
                ) from error
        time.sleep(_PAUSE)  # it was written to at that moment
    raise AssertionError("the last attempt returns or raises")


def _check_version(file: h5py.File, path: Path) -> None:
    version = file.attrs.get("biella_result")
    if version is None:
        raise ResultError(f"`{path}` is an HDF5 file, but not a biella result.")
    if not 1 <= version <= FORMAT_VERSION:
        release = file.attrs.get("biella", b"a later release")
        release = release.decode() if isinstance(release, bytes) else str(release)
        raise ResultError(
            f"`{path}` is a biella result of version {version}, written by biella {release}; this "
            f"release, {VERSION}, reads versions 1 to {FORMAT_VERSION}. Read it with that release."
        )


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:200]


@dataclass
class ResultFile:
    """A result file that is being written.

    Attributes
    ----------
    file
        As HDF5 sees it.
    disk
        What HDF5 writes to.
    about, reached
        Texts that are rewritten in their places.
    head
        Content of ``about`` that does not change.
    """

    path: Path
    file: h5py.File
    disk: AtomicFile
    about: Slots
    reached: Slots
    head: dict[str, object]

    def commit(self) -> None:
        """Let all changes take effect, or raise OSError."""
        self.file.flush()
        self.disk.commit()

    def append(self, parts: Sequence[Array], end: int) -> None:
        """Append a block of rows, one part for each dataset, which then have `end` rows."""
        checksums = []
        for name, part in zip(self.columns, parts, strict=True):
            dataset = self.file[name]
            dataset.resize(end, axis=0)
            if len(part):
                dataset[end - len(part) : end] = part
            checksums.append(_checksum(part))
        append_block(self.file, end, checksums)

    @property
    def columns(self) -> list[str]:
        """Names of the datasets of rows."""
        signals: Any = self.head["signals"]
        return list_columns(signal[0] for signal in signals)

    def write_about(
        self,
        info: Mapping[str, object],
        aliases: Mapping[str, str],
        captures: Sequence[Capture] = (),
    ) -> None:
        """Mark the file as complete; OSError if that is not possible.

        What does not fit of `info` is left out.
        """
        text = make_about(self.head, info, aliases, captures, complete=True, room=self.about.room)
        self.about.write(self.disk, text, both=True)

    def write_reached(self, ticks: int, start: float, step: float) -> None:
        """Note how far a run has come; OSError if that is not possible."""
        text = json.dumps({"ticks": ticks, "start": start, "step": step}).encode()
        self.reached.write(self.disk, text)

    def close(self, *, discard: bool = False) -> None:
        """Close the file with the last commit; OSError if what HDF5 writes at the end is not.

        With `discard`, the disk is not written to any more.
        """
        if discard:
            self.disk.discard()
        try:
            self.file.close()
            self.disk.commit()
        finally:
            self.disk.discard()
            self.disk.close()


def create_result_file(
    path: Path,
    signals: SignalTable,
    info: Mapping[str, object],
    *,
    captures: Sequence[Signal] = (),
    recording: str | None = None,
    chunk_rows: int = 16384,
    plan: bytes | None = None,
    event_sources: Sequence[EventSource] = (),
    sync: bool = False,
) -> ResultFile:
    """Create a file with an empty, extendable dataset for time, each signal and each Trigger.

    With a `plan` there is room for the log of a real-time run, and for what it has to report; with
    `event_sources` for events. With `sync`, each commit is on the disk when it returns.
    """
    import h5py

    from ..engine._library import engine_build

    recording = recording or secrets.token_hex(8)
    head: dict[str, object] = {
        "recording": recording,
        "biella": VERSION,
        "engine": engine_build(),
        "signals": [_describe(signal) for signal in signals.values()],
        "capture_signals": [_describe(signal) for signal in captures],
    }
    if plan is not None:
        head["plan_checksum"] = zlib.crc32(plan)
    about = make_about(head, info, signals.aliases)
    spare = _ABOUT_CAPTURE * len(captures) + (_ABOUT_SPARE if plan is None else _REPORT_SPARE)
    # Rows are only appended, so two chunks a dataset are cache enough. HDF5's own choice, 8 MB,
    # would add up to a lot.
    widest = max((signal.width for signal in signals.values()), default=1)
    cache = 2 * 8 * max(widest, min(chunk_rows * widest, _CHUNK_ELEMENTS))
    disk = AtomicFile(path, sync=sync)
    file = h5py.File(disk, "w", libver=LIBVER, rdcc_nbytes=cache)
    file.attrs["biella_result"] = FORMAT_VERSION
    file.attrs["biella"] = np.bytes_(VERSION)  # of fixed length: HDF5 has a checksum of it
    file.attrs["recording"] = np.bytes_(recording)

    def create(name: str, width: int) -> h5py.Dataset:
        tail = () if width == 1 else (width,)
        rows = max(1, min(chunk_rows, _CHUNK_ELEMENTS // width))
        return file.create_dataset(
            name,
            shape=(0, *tail),
            maxshape=(None, *tail),
            chunks=(rows, *tail),
            dtype="<f8",
        )

    def describe(dataset: h5py.Dataset, index: int, signal: Signal) -> None:
        attributes = dataset.attrs
        attributes["path"] = signal.path
        attributes["index"] = index
        attributes["width"] = signal.width
        attributes["kind"] = signal.kind
        attributes["sampled"] = signal.sampled
        if signal.unit is not None:
            attributes["unit"] = signal.unit
        if signal.names:
            attributes["names"] = list(signal.names)

    create("time", 1).attrs["unit"] = "s"
    for index, signal in enumerate(signals.values()):
        describe(create(dataset_name(signal.path), signal.width), index, signal)
    for index, signal in enumerate(captures):
        describe(create(dataset_name(signal.path, "captures"), 1 + signal.width), index, signal)
    create_blocks(file, 1 + len(signals))
    slots = Slots(file, "about", about, spare)
    reached = Slots(file, "reached", b"{}", _REACHED_SPARE)
    if plan is not None:
        create_log(file, plan)
    if event_sources:
        create_events(file, event_sources)
    made = ResultFile(path, file, disk, slots, reached, head)
    try:
        made.commit()
    except OSError:
        with contextlib.suppress(OSError):
            made.close(discard=True)
        path.unlink()
        raise
    return made


def write_captures(target: ResultFile, captures: Sequence[Capture]) -> None:
    """Write time and samples of what Triggers captured; they take effect by the next commit."""
    for signal, rows, _ in captures:
        dataset = target.file[dataset_name(signal.path, "captures")]
        dataset.resize(len(rows), axis=0)
        if len(rows):
            dataset[:] = rows


def rewrite_about(
    path: Path,
    info: Mapping[str, object],
    aliases: Mapping[str, str],
    captures: Sequence[Capture] = (),
) -> None:
    """Rewrite the description of the run in a file that is complete."""

    def find(file: h5py.File) -> tuple[dict[str, object], int, int]:
        dataset = file["about"]
        about = read_about(file)
        keep = ("recording", "biella", "engine", "signals", "capture_signals", "plan_checksum")
        head = {key: about[key] for key in keep if key in about}
        return head, int(dataset.id.get_offset()), int(dataset.size)

    head, start, size = read_hdf5(path, find)
    text = make_about(head, info, aliases, captures, complete=True, room=size // 2)
    rewrite_slots(str(path), start, size, text)


def make_about(
    head: Mapping[str, object],
    info: Mapping[str, object],
    aliases: Mapping[str, str],
    captures: Sequence[Capture] = (),
    *,
    complete: bool = False,
    room: int | None = None,
) -> bytes:
    """Return the description of a file; where `room` is short, without long parts of `info`."""
    about = {
        **head,
        "complete": complete,
        "aliases": dict(aliases),
        "captures": {signal.path: known for signal, _, known in captures},
        "capture_checksums": {signal.path: _checksum(rows) for signal, rows, _ in captures},
    }
    text = json.dumps({**about, "info": dict(info)}, default=_plain).encode()
    if room is None or len(text) <= room:
        return text
    short = {key: value for key, value in info.items() if len(str(value)) < 200}
    return json.dumps({**about, "info": short}, default=_plain).encode()


def read_about(file: h5py.File) -> dict[str, Any]:
    """Return the description in a file of version 2; ValueError if it is damaged."""
    about: dict[str, Any] = json.loads(read_slots(file["about"], "the description of the run"))
    return about


def read_recording(file: h5py.File) -> str:
    """Return the random name of a recording."""
    name = file.attrs["recording"]
    return name.decode() if isinstance(name, bytes) else str(name)


def list_columns(paths: Iterable[str]) -> list[str]:
    """Return the names of the datasets of rows."""
    return ["time", *(dataset_name(path) for path in paths)]


def _checksum(rows: Array) -> int:
    return zlib.crc32(np.ascontiguousarray(rows).data) if len(rows) else 0


def _plain(value: object) -> object:
    """Turn numpy scalars into numbers, and anything else that JSON does not support into text."""
    return value.item() if isinstance(value, np.generic) else str(value)


def _describe(signal: Signal) -> list[object]:
    return [
        signal.path, signal.width, signal.unit, signal.kind, signal.sampled, list(signal.names),
    ]  # fmt: skip


def _make_signal(described: Sequence[Any]) -> Signal:
    path, width, unit, kind, sampled, names = described
    return Signal(path, width, unit, kind, sampled, tuple(names))


def read_result_file(
    path: Path,
) -> tuple[Hdf5Columns, SignalTable, dict[str, object], RunLog | None]:
    """Read what a file holds, without the numbers."""
    return read_hdf5(path, partial(_read_description, path))


def _read_description(
    path: Path, file: h5py.File
) -> tuple[Hdf5Columns, SignalTable, dict[str, object], RunLog | None]:
    if file.attrs["biella_result"] == 1:
        return _read_version_1(path, file)
    about = read_about(file)
    recording = str(about["recording"])
    if recording != read_recording(file):
        raise ValueError("its parts belong to different recordings")
    signals = [_make_signal(described) for described in about["signals"]]
    names = list_columns(signal.path for signal in signals)
    length = len(file["time"])
    blocks = read_blocks(file, length, len(names))
    info: dict[str, object] = about["info"]
    log = read_log(file, path, read_hdf5, about.get("plan_checksum"))
    if not about["complete"]:
        info |= _describe_end(path, file, log)
    columns = Hdf5Columns(path, recording, length, columns=names, blocks=blocks)
    return columns, SignalTable(signals, about["aliases"]), info, log


def _read_version_1(
    path: Path, file: h5py.File
) -> tuple[Hdf5Columns, SignalTable, dict[str, object], RunLog | None]:
    found = format_1.read_description(file)
    if not found.is_complete:
        found.info["stopped"] = UNFINISHED
    names = list_columns(signal.path for signal in found.signals)
    checksums = dict(zip(names, found.checksums, strict=True)) if found.checksums else {}
    recording = read_recording(file)
    columns = Hdf5Columns(path, recording, found.length, version=1, checksums=checksums)
    signals = SignalTable(found.signals, found.aliases)
    return columns, signals, found.info, read_log(file, path, read_hdf5)


def _describe_end(path: Path, file: h5py.File, log: RunLog | None) -> dict[str, object]:
    """Return how a recording ended that was not closed, and what of the run is lost."""
    if is_locked(path):
        return {"stopped": _GOING_ON}
    reached = json.loads(read_slots(file["reached"], "how far the run has come"))
    if log is None or not reached:
        return {"stopped": UNFINISHED, "lost": None}
    lost = max(0, reached["ticks"] - log.ticks)
    if not lost:
        return {"stopped": f"{UNFINISHED}; no tick up to {reached['ticks']} is lost", "lost": None}
    first, last = (
        reached["start"] + tick * reached["step"] for tick in (log.ticks, reached["ticks"] - 1)
    )
    return {
        "stopped": (
            f"{UNFINISHED}; at least {lost} ticks, t = {first:.9g} to {last:.9g} s, are lost"
        ),
        "lost": {"ticks": lost, "first": first, "last": last},
    }


def write_result_file(
    path: Path,
    columns: AbstractColumns,
    signals: SignalTable,
    info: Mapping[str, object],
    captures: Sequence[Capture] = (),
    log: RunLog | None = None,
    events: Events | None = None,
) -> None:
    """Write a result as an HDF5 file, whole or not at all; only another result is replaced."""
    target = find_recording_target(path, is_result_file)
    lock = TargetLock(target)
    recording = None
    if isinstance(columns, Hdf5Columns) and target.exists() and target.samefile(columns.path):
        recording = columns.recording
    chunk_rows = max(1, min(columns.length, 16384))
    try:
        with replacing(target) as temporary:
            made = create_result_file(
                temporary,
                signals,
                info,
                captures=[signal for signal, _, _ in captures],
                recording=recording,
                chunk_rows=chunk_rows,
                plan=None if log is None else log.plan,
                event_sources=events.blocks if events is not None else (),
            )
            try:
                for start in range(0, columns.length, _COPIED_ROWS):
                    rows = slice(start, min(start + _COPIED_ROWS, columns.length))
                    parts = [columns.time(rows), *(columns.read(path, rows) for path in signals)]
                    made.append(parts, rows.stop)
                    if made.disk.error is not None:
                        raise made.disk.error
                if log is not None:
                    write_log(made.file, log)
                write_captures(made, captures)
                if events is not None:
                    write_events(made.file, events)
                made.commit()
                made.write_about(info, signals.aliases, captures)
            except BaseException:
                with contextlib.suppress(OSError):
                    made.close(discard=True)
                raise
            made.close()
    finally:
        lock.release()
