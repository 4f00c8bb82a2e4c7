"""Opening HDF5 files for reading such that a damaged file is an error and never a hang.

A file that was not closed, because it is still being recorded or its process was killed, is marked
as open for writing in its superblock, and HDF5 does not open it, or only in its SWMR mode (single
writer, multiple readers). In that mode HDF5 reads metadata with a wrong checksum again and again,
with pauses that double each time, and does not return. `open_hdf5` never uses the mode. Instead,
HDF5 reads an unclosed file through a view in which the superblock has no such mark, the file ends
at its present size, and the pages of a write-ahead record, see `_atomic_file`, are in their places.
The file is consistent at any instant; where a read meets a write, the checksum shows it, and the
caller can read again.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._atomic_file import PAGE, read_record

if TYPE_CHECKING:
    import h5py

SIGNATURE = b"\x89HDF\r\n\x1a\n"

# HDF5 file format 3.0, II.A, superblock of versions 2 and 3, with addresses of 8 bytes.
_SUPERBLOCK = 48
_VERSION_AT, _FLAGS_AT, _END_AT, _CHECKSUM_AT = 8, 11, 28, 44

_WORD = 0xFFFFFFFF
_SEARCHED = 1 << 16


def is_marked(path: Path, attribute: str) -> bool:
    """Return whether a file is HDF5 and has an attribute of this name near its start.

    The library is not used: the file may be damaged.
    """
    with path.open("rb") as file:
        head = file.read(_SEARCHED)
    return head.startswith(SIGNATURE) and attribute.encode() in head


def is_closed(path: Path) -> bool:
    """Return whether a file was closed properly; true for files that are not HDF5."""
    with path.open("rb") as file:
        start = file.read(_SUPERBLOCK)
        return not _is_open(start) and (not start.startswith(SIGNATURE) or not read_record(file))


def open_hdf5(path: Path) -> h5py.File:
    """Open an HDF5 file for reading: finished, being written, or left by a killed process.

    Raises
    ------
    OSError
        If it is not there, no HDF5 file, truncated or damaged.
    """
    import h5py

    if is_closed(path):
        return h5py.File(path, "r", locking=False)
    return h5py.File(_View(path), "r", locking=False)


def _is_open(superblock: bytes) -> bool:
    return (
        len(superblock) == _SUPERBLOCK
        and superblock.startswith(SIGNATURE)
        and superblock[_VERSION_AT] == 3
        and superblock[_FLAGS_AT] != 0
    )


class _View(io.RawIOBase):
    """A file with the superblock that it would have if it were closed now."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = path.open("rb", buffering=0)
        self._pages: dict[int, bytes] = {}
        self._size = os.fstat(self._file.fileno()).st_size
        if record := read_record(self._file):
            self._pages, self._size = record
        self._place = 0
        self._file.seek(0)
        start = self._file.read(_SUPERBLOCK)
        head = bytearray(self._pages[0][:_SUPERBLOCK] if 0 in self._pages else start)
        head[_FLAGS_AT] = 0
        head[_END_AT : _END_AT + 8] = self._size.to_bytes(8, "little")
        head[_CHECKSUM_AT:] = compute_checksum(bytes(head[:_CHECKSUM_AT])).to_bytes(4, "little")
        self._head = bytes(head)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        self._place = start + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: Any) -> int:
        wanted = memoryview(buffer).cast("B")[: max(0, self._size - self._place)]
        self._file.seek(self._place)
        count = self._file.readinto(wanted) or 0
        if self._pages:
            count = self._apply_pages(wanted, count)
        if self._place < _SUPERBLOCK:
            part = self._head[self._place : self._place + count]
            wanted[: len(part)] = part
        self._place += count
        return count

    def _apply_pages(self, wanted: memoryview, count: int) -> int:
        """Put changed pages over what was read; return how much of it there is then."""
        start, end = self._place, self._place + len(wanted)
        wanted[count:] = bytes(len(wanted) - count)
        for number in range(start // PAGE, -(-end // PAGE)):
            if (page := self._pages.get(number)) is not None:
                low, high = max(start, number * PAGE), min(end, (number + 1) * PAGE)
                wanted[low - start : high - start] = page[
                    low - number * PAGE : high - number * PAGE
                ]
        return len(wanted)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def compute_checksum(data: bytes) -> int:
    """Return the checksum of HDF5 metadata: Bob Jenkins' lookup3, `hashlittle` with 0."""
    a = b = c = (0xDEADBEEF + len(data)) & _WORD
    place = 0
    while len(data) - place > 12:
        a, b, c = _add(data, place, a, b, c)
        for x, y, z in ((4, 6, 8), (16, 19, 4)):
            a = ((a - c) & _WORD) ^ _rotate(c, x)
            c = (c + b) & _WORD
            b = ((b - a) & _WORD) ^ _rotate(a, y)
            a = (a + c) & _WORD
            c = ((c - b) & _WORD) ^ _rotate(b, z)
            b = (b + a) & _WORD
        place += 12
    if place == len(data):
        return c
    a, b, c = _add(data, place, a, b, c)
    for x, y, z in ((14, 11, 25), (16, 4, 14)):
        c = ((c ^ b) - _rotate(b, x)) & _WORD
        a = ((a ^ c) - _rotate(c, y)) & _WORD
        b = ((b ^ a) - _rotate(a, z)) & _WORD
    return ((c ^ b) - _rotate(b, 24)) & _WORD


def _add(data: bytes, place: int, a: int, b: int, c: int) -> tuple[int, int, int]:
    words = [int.from_bytes(data[place + k : place + k + 4], "little") for k in (0, 4, 8)]
    return (a + words[0]) & _WORD, (b + words[1]) & _WORD, (c + words[2]) & _WORD


def _rotate(x: int, bits: int) -> int:
    return ((x << bits) | (x >> (32 - bits))) & _WORD
