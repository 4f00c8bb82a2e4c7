"""Storage of a result: in memory, or in an HDF5 file that is read on access.

The HDF5 layout, version 1: datasets ``time`` (n,) and ``signals/<path>`` (n,) or (n, width) with
the attributes ``path, index, width, unit, kind, sampled``; ``captures/<path>`` (k, 1 + width) with
the same ones, time and samples that a Trigger captured; ``events``, see `events._event_log`;
``about``, a JSON text with ``info``, ``aliases`` and what is known of the ``captures``; ``rows``,
how many rows count; ``complete``, whether the file was closed in order; ``checksums``, the CRC-32
of the rows of time and of each signal by its index, valid if the file is complete. The last four
have a fixed place in the file, so that they can be rewritten on a full disk. The
root carries ``biella_result`` (the version) and ``recording`` (a random name, by which a file that
was replaced under an open result is noticed).
"""

from __future__ import annotations

import json
import secrets
import time
import weakref
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..realtime.log._log import RunLog, create_log, read_log, write_log
from ._files import TargetLock, claim_space, find_recording_target, replacing
from ._hdf5_view import SIGNATURE, is_closed, is_marked, open_hdf5
from ._signals import ResultError, Signal, SignalTable
from .events._event_log import create_events, read_events, write_events
from .events._events import Events, EventSource

if TYPE_CHECKING:
    import h5py

T = TypeVar("T")
Array = NDArray[np.float64]
Capture = tuple[Signal, Array, object]
"""Of a Trigger: its signal, rows of time and samples, and what is known of them, or why there are
none."""

FORMAT_VERSION = 1
UNFINISHED = "the recording was not closed: the process ended during the run"

# HDF5 1.10 is the oldest format with single-writer-multiple-reader files, and so the most widely
# readable one that survives a killed writer.
LIBVER = ("v110", "v110")

_CHUNK_ELEMENTS = 1 << 17
_COPIED_ROWS = 1 << 17
_ABOUT_SPARE = 1 << 14
_ABOUT_CAPTURE = 1 << 10
_REPORT_SPARE = 1 << 18
_RESERVED_BYTES = 1 << 18
_INDEX_BYTES = 1 << 14
_SOURCE_BYTES = 64
_ATTEMPTS = 10  # to read a file that is being written
_PAUSE = 0.05  # s between them


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
        self, path: Path, recording: str, length: int, checksums: Mapping[str, int] | None = None
    ) -> None:
        self.path = path
        self.recording = recording
        self.length = length
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
        array = self._read(lambda file: self._load_rows(file, dataset, start, stop))
        checksum = self._checksums.get(dataset)
        if whole and checksum is not None and zlib.crc32(array.data) != checksum:
            raise ResultError(
                f"`{self.path}` is damaged: the checksum of `{dataset}` does not match. Use a "
                f"copy of the file, or its other signals."
            )
        array.flags.writeable = False
        if whole:
            self._held[dataset] = array
        return array

    @staticmethod
    def _load_rows(file: h5py.File, dataset: str, start: int, stop: int) -> Array:
        array: Array = file[dataset][start:stop]
        if len(array) != max(0, stop - start):
            raise ValueError(f"{dataset} has {len(array)} of {stop - start} rows")
        return array

    def read_captures(self) -> list[Capture]:
        """Return for each Trigger its signal, time and samples, and what is known of them."""

        def read(file: h5py.File) -> list[Capture]:
            known = json.loads(file["about"][()]).get("captures", {})
            datasets = list(file["captures"].values()) if "captures" in file else []
            datasets.sort(key=lambda dataset: int(dataset.attrs["index"]))
            found = []
            for dataset in datasets:
                signal = _read_signal(dataset)
                found.append((signal, dataset[:], known.get(signal.path, UNFINISHED)))
            return found

        return self._read(read)

    def read_events(self) -> Events:
        """Return the located events of the run."""
        return self._read(read_events)

    def _read(self, read: Callable[[h5py.File], T]) -> T:
        def read_if_same(file: h5py.File) -> T:
            if file.attrs["recording"] != self.recording:
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
            last = is_closed(path) or attempt == _ATTEMPTS - 1
        except FileNotFoundError:
            raise ResultError(f"There is no file `{path}`.") from None
        except OSError as error:
            raise ResultError(f"`{path}` cannot be read: {error.strerror}.") from error
        if start != SIGNATURE:
            raise ResultError(f"`{path}` is not a readable HDF5 file: it has no HDF5 signature.")
        try:
            with open_hdf5(path) as file:
                _check_version(file, path)
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
    if version != FORMAT_VERSION:
        raise ResultError(
            f"`{path}` is an HDF5 file, but not a biella result"
            + ("." if version is None else f" of version {FORMAT_VERSION}: it is {version}.")
        )


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:200]


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
) -> h5py.File:
    """Create a file with an empty, extendable dataset for time, each signal and each Trigger.

    With a `plan` there is room for the log of a real-time run, and for what it has to report; with
    `event_sources` for events.
    """
    import h5py

    about = _about(info, signals.aliases)
    spare = len(about) + _ABOUT_CAPTURE * len(captures)
    spare += _ABOUT_SPARE if plan is None else _REPORT_SPARE
    # See that there is room for an empty file, before HDF5 starts one that it cannot finish.
    path.touch()
    try:
        head = _RESERVED_BYTES + spare + len(plan or b"")
        head += sum(_SOURCE_BYTES + len(source.path) for source in event_sources)
        claim_space(path, 0, head + _INDEX_BYTES * (1 + len(signals) + len(captures)))
    except OSError:
        path.unlink()
        raise
    # Rows are only appended, so two chunks a dataset are cache enough. HDF5's own choice, 8 MB,
    # would add up to a lot.
    widest = max((signal.width for signal in signals.values()), default=1)
    cache = 2 * 8 * max(widest, min(chunk_rows * widest, _CHUNK_ELEMENTS))
    file = h5py.File(path, "w", libver=LIBVER, rdcc_nbytes=cache)
    file.attrs["biella_result"] = FORMAT_VERSION
    file.attrs["recording"] = recording or secrets.token_hex(8)

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
    file.create_dataset("about", data=np.array(about, dtype=f"S{spare}"))
    file.create_dataset("checksums", data=np.zeros(1 + len(signals), dtype=np.uint32))
    file.create_dataset("rows", data=np.int64(0))
    file.create_dataset("complete", data=np.int8(0))
    if plan is not None:
        create_log(file, plan)
    if event_sources:
        create_events(file, event_sources)
    return file


def reserve_rows(file: h5py.File, path: Path, start: int, end: int) -> None:
    """Claim the space for rows `start` to `end` of every dataset, or raise OSError."""
    growth = _RESERVED_BYTES
    for dataset in (file["time"], *file.get("signals", {}).values()):
        chunk_rows = dataset.chunks[0]
        chunks = -(-end // chunk_rows) - -(-start // chunk_rows)
        growth += _INDEX_BYTES + chunks * chunk_rows * dataset.dtype.itemsize * (
            dataset.shape[1] if dataset.ndim == 2 else 1
        )
    claim_space(path, file.id.get_filesize(), growth)


def write_captures(file: h5py.File, path: Path, captures: Sequence[Capture]) -> None:
    """Write time and samples of what Triggers captured, or raise OSError."""
    for signal, rows, _ in captures:
        dataset = file[dataset_name(signal.path, "captures")]
        chunks = -(-len(rows) // dataset.chunks[0])
        size = 8 * chunks * dataset.chunks[0] * dataset.shape[1]
        claim_space(path, file.id.get_filesize(), _RESERVED_BYTES + size)
        dataset.resize(len(rows), axis=0)
        if len(rows):
            dataset[:] = rows


def release_unused(path: Path) -> None:
    """Give back what was claimed beyond the end that a closed file declares."""
    with path.open("rb+") as file:
        # The end-of-file address of a superblock of version 3, HDF5 file format II.A.
        file.seek(28)
        file.truncate(int.from_bytes(file.read(8), "little"))


def write_about(
    file: h5py.File,
    info: Mapping[str, object],
    aliases: Mapping[str, str],
    captures: Sequence[Capture] = (),
) -> None:
    """Rewrite the description of the run in its place; what does not fit there is left out."""
    capacity = file["about"].dtype.itemsize
    text = _about(info, aliases, captures)
    if len(text) > capacity:
        short = {key: value for key, value in info.items() if len(str(value)) < 200}
        text = _about(short, aliases, captures)
    if len(text) <= capacity:
        file["about"][()] = text


def rewrite_about(
    path: Path,
    info: Mapping[str, object],
    aliases: Mapping[str, str],
    captures: Sequence[Capture] = (),
) -> None:
    """Rewrite the description of the run in a file that is complete."""
    import h5py

    with h5py.File(path, "r+", libver=LIBVER) as file:
        write_about(file, info, aliases, captures)


def _about(
    info: Mapping[str, object], aliases: Mapping[str, str], captures: Sequence[Capture] = ()
) -> bytes:
    known = {signal.path: about for signal, _, about in captures}
    about = {"info": dict(info), "aliases": dict(aliases), "captures": known}
    return json.dumps(about, default=_plain).encode()


def _plain(value: object) -> object:
    """Turn numpy scalars into numbers, and anything else that JSON does not support into text."""
    return value.item() if isinstance(value, np.generic) else str(value)


def read_result_file(
    path: Path,
) -> tuple[Hdf5Columns, SignalTable, dict[str, object], RunLog | None]:
    """Read what a file holds, without the numbers.

    After a kill the datasets may be longer than the rows that were written in all of them.
    """
    return read_hdf5(path, partial(_read_description, path))


def _read_description(
    path: Path, file: h5py.File
) -> tuple[Hdf5Columns, SignalTable, dict[str, object], RunLog | None]:
    found = []
    length = int(file["rows"][()])
    for dataset in file["signals"].values() if "signals" in file else ():
        found.append((int(dataset.attrs["index"]), _read_signal(dataset)))
    found.sort(key=lambda pair: pair[0])
    if not 0 <= length <= len(file["time"]):
        raise ValueError(f"{length} rows are declared, and {len(file['time'])} are there")
    text = json.loads(file["about"][()])
    info: dict[str, object] = text["info"]
    checksums = {}
    if not file["complete"][()]:
        info["stopped"] = UNFINISHED
    elif "checksums" in file:
        names = ["time", *(dataset_name(signal.path) for _, signal in found)]
        checksums = dict(zip(names, file["checksums"][()].tolist(), strict=True))
    columns = Hdf5Columns(path, str(file.attrs["recording"]), length, checksums)
    log = read_log(file, path, read_hdf5)
    return columns, SignalTable((signal for _, signal in found), text["aliases"]), info, log


def _read_signal(dataset: h5py.Dataset) -> Signal:
    about = dict(dataset.attrs)
    unit = about.get("unit")
    return Signal(
        str(about["path"]),
        int(about["width"]),
        None if unit is None else str(unit),
        str(about["kind"]),  # type: ignore[arg-type]
        bool(about["sampled"]),
        tuple(str(name) for name in about.get("names", ())),
    )


def _copy(read: Callable[[slice], Array], dataset: h5py.Dataset, length: int) -> int:
    """Copy all rows to a dataset; return their checksum."""
    dataset.resize(length, axis=0)
    checksum = 0
    for start in range(0, length, _COPIED_ROWS):
        rows = slice(start, min(start + _COPIED_ROWS, length))
        part = np.ascontiguousarray(read(rows))
        dataset[rows] = part
        checksum = zlib.crc32(part.data, checksum)
    return checksum


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
            file = create_result_file(
                temporary,
                signals,
                info,
                captures=[signal for signal, _, _ in captures],
                recording=recording,
                chunk_rows=chunk_rows,
                event_sources=events.blocks if events is not None else (),
            )
            with file:
                reserve_rows(file, temporary, 0, columns.length)
                checksums = [_copy(columns.time, file["time"], columns.length)]
                for signal in signals:
                    dataset = file[dataset_name(signal)]
                    checksums.append(_copy(partial(columns.read, signal), dataset, columns.length))
                if log is not None:
                    write_log(file, temporary, log)
                write_captures(file, temporary, captures)
                if events is not None:
                    write_events(file, temporary, events)
                write_about(file, info, signals.aliases, captures)
                file["checksums"][()] = checksums
                file["rows"][()] = columns.length
                file["complete"][()] = 1
            release_unused(temporary)
    finally:
        lock.release()
