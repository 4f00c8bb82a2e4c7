"""`RunLog`: the input log of a real-time run, for its replay.

In an HDF5 file of a result it is the group ``log``: ``plan``, the bytes that the engine ran, whose
CRC-32 is in ``about``; ``journal``, all that entered from outside, with its tick; ``blocks``, for
each part that was appended the entry after its last one, its CRC-32, and up to which tick the input
log is complete with it, see ``results/storage/_checked_blocks.py``. In version 1, ``entries`` and
``ticks`` have how many entries count, and up to which tick, and ``checksum`` the CRC-32 of all.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...results.storage._checked_blocks import Blocks, append_block, create_blocks, read_blocks
from ..loop._pace import ENTRY, InputLog

if TYPE_CHECKING:
    import h5py

ReadLater = Callable[[Path, "Callable[[h5py.File], InputLog]"], InputLog]
_CHUNK = 1 << 11
_COPIED = 1 << 16
_COLUMNS = 3  # checksum, and the ticks in two words
_SHOWN = 4


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
    create_blocks(group, _COLUMNS)


def append_input_log(file: h5py.File, entries: InputLog, ticks: int) -> None:
    """Append to an input log, which is then complete up to `ticks`."""
    group = file["log"]
    start = len(group["journal"])
    end = start + len(entries)
    checksum = 0
    if len(entries):
        entries = np.ascontiguousarray(entries)
        group["journal"].resize(end, axis=0)
        group["journal"][start:end] = entries
        checksum = zlib.crc32(entries.data)
    append_block(group, end, [checksum, ticks & 0xFFFFFFFF, ticks >> 32])


def read_log(
    file: h5py.File, path: Path, read_later: ReadLater, checksum: int | None = None
) -> RunLog | None:
    """Return the log in a result file, None if it has none; the input log is read on access.

    `read_later` opens the file at `path` then and calls a function with it; `checksum` is the
    CRC-32 of the plan.
    """
    if "log" not in file:
        return None
    group = file["log"]
    plan = group["plan"][()].tobytes()
    if checksum is not None and zlib.crc32(plan) != checksum:
        raise ValueError("the plan does not match its checksum")
    if "ticks" in group:  # version 1
        return RunLog(plan, int(group["ticks"][()]), partial(read_later, path, _read_version_1))
    blocks = read_blocks(group, len(group["journal"]), _COLUMNS)
    ticks = _ticks_of(blocks, len(blocks.ends) - 1) if len(blocks.ends) else 0
    return RunLog(plan, ticks, partial(read_later, path, _read_input_log))


def _ticks_of(blocks: Blocks, number: int) -> int:
    low, high = blocks.checksums[number, 1:].tolist()
    return int(low | high << 32)


def _read_input_log(file: h5py.File) -> InputLog:
    group = file["log"]
    found: InputLog = group["journal"][:]
    blocks = read_blocks(group, len(found), _COLUMNS)
    damaged = [
        f"{_ticks_of(blocks, k - 1) if k else 0} to {_ticks_of(blocks, k)}"
        for k, end in enumerate(blocks.ends.tolist())
        if zlib.crc32(np.ascontiguousarray(found[blocks.first_row(k) : end]).data)
        != (blocks.checksums[k, 0] if end > blocks.first_row(k) else 0)
    ]
    if damaged:
        shown = ", ".join(damaged[:_SHOWN]) + (" and more" if len(damaged) > _SHOWN else "")
        raise ValueError(
            f"the input log of ticks {shown} does not match its checksum, so the run cannot be "
            f"replayed"
        )
    return found.astype(ENTRY, copy=False)


def _read_version_1(file: h5py.File) -> InputLog:
    group = file["log"]
    found: InputLog = group["journal"][: int(group["entries"][()])]
    found = found.astype(ENTRY, copy=False)
    if "checksum" in group:
        checksum, count = group["checksum"][()].tolist()
        if count == len(found) and checksum != zlib.crc32(np.ascontiguousarray(found).data):
            raise ValueError("the input log does not match its checksum")
    return found


def write_log(file: h5py.File, log: RunLog) -> None:
    """Write a whole log into a new result file."""
    for start in range(0, max(1, len(log.input_log)), _COPIED):
        append_input_log(file, log.input_log[start : start + _COPIED], log.ticks)
