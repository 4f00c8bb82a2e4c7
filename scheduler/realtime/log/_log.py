"""`RunLog`: the input log of a real-time run, for its replay.

In an HDF5 file of a result it is the group ``log``: ``plan``, the bytes that the engine ran;
``input_log``, all that entered from outside, with its tick; ``entries`` and ``ticks``, how many of
these count, and up to which tick they are complete; ``checksum``, their CRC-32, together with the
number of entries that it is of. The last three have a fixed place in the file.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...results._files import claim_space
from ..loop._pace import ENTRY, InputLog

if TYPE_CHECKING:
    import h5py

ReadLater = Callable[[Path, "Callable[[h5py.File], InputLog]"], InputLog]
_CHUNK = 1 << 14
_INDEX_BYTES = 1 << 14
_COPIED = 1 << 20


class RunLog:
    """What entered a run from outside.

    Attributes
    ----------
    plan
        What the engine ran.
    ticks
        Number of ticks covered by the input log.
    """

    def __init__(self, plan: bytes, ticks: int, read_input_log: Callable[[], InputLog]) -> None:
        self.plan = plan
        self.ticks = ticks
        self._read_input_log = read_input_log

    @cached_property
    def input_log(self) -> InputLog:
        """All that changed anything: tick, place in the engine's values, value, kind and origin.

        Entries from before the start have tick -1.
        """
        return self._read_input_log()


def create_log(file: h5py.File, plan: bytes) -> None:
    """Make room for a log in a new result file."""
    group = file.create_group("log")
    group.create_dataset("plan", data=np.frombuffer(plan, dtype=np.uint8))
    group.create_dataset("journal", shape=(0,), maxshape=(None,), chunks=(_CHUNK,), dtype=ENTRY)
    group.create_dataset("entries", data=np.int64(0))
    group.create_dataset("ticks", data=np.int64(0))
    group.create_dataset("checksum", data=np.zeros(2, dtype=np.int64))


def append_input_log(file: h5py.File, path: Path, entries: InputLog, ticks: int) -> None:
    """Append to an input log and mark it complete up to `ticks`; OSError if there is no
    room.
    """
    group = file["log"]
    start = int(group["entries"][()])
    end = start + len(entries)
    if len(entries):
        chunks = -(-end // _CHUNK) - -(-start // _CHUNK)
        growth = _INDEX_BYTES + chunks * _CHUNK * ENTRY.itemsize
        claim_space(path, file.id.get_filesize(), growth)
        group["journal"].resize(end, axis=0)
        group["journal"][start:end] = entries
        before, count = group["checksum"][()].tolist()
        if count != start:  # a write that failed has got as far as that
            before = zlib.crc32(np.ascontiguousarray(group["journal"][:start]).data)
        group["checksum"][()] = zlib.crc32(np.ascontiguousarray(entries).data, before), end
        file.flush()
    group["entries"][()] = end
    group["ticks"][()] = ticks


def read_log(file: h5py.File, path: Path, read_later: ReadLater) -> RunLog | None:
    """Return the log in a result file, None if it has none; the input log is read on access.

    `read_later` opens the file at `path` then and calls a function with it.
    """
    if "log" not in file:
        return None
    group = file["log"]
    plan = group["plan"][()].tobytes()
    return RunLog(plan, int(group["ticks"][()]), partial(read_later, path, _read_input_log))


def _read_input_log(file: h5py.File) -> InputLog:
    group = file["log"]
    found: InputLog = group["journal"][: int(group["entries"][()])]
    found = found.astype(ENTRY, copy=False)
    if "checksum" in group:
        checksum, count = group["checksum"][()].tolist()
        if count == len(found) and checksum != zlib.crc32(np.ascontiguousarray(found).data):
            raise ValueError("the input log does not agree with its checksum")
    return found


def write_log(file: h5py.File, path: Path, log: RunLog) -> None:
    """Write a whole log into a new result file."""
    create_log(file, log.plan)
    for start in range(0, max(1, len(log.input_log)), _COPIED):
        append_input_log(file, path, log.input_log[start : start + _COPIED], log.ticks)
