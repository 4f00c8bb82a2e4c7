"""`AtomicFile`: the file that HDF5 writes to, whose changes take effect together.

HDF5 changes its index in place, in many writes, and does not survive a write that fails: it cannot
close the file, and takes the process with it. `AtomicFile` stands between HDF5 and the disk:

- New space, beyond the end of the last `commit`, is written at once: nothing refers to it yet.
- Pages that a commit has reached are changed in memory only. `commit` appends all changed pages and
  their CRC-32 to the file, a *write-ahead record*, then writes them to their places, then removes
  the record. A process that is killed at any instant leaves the state before or after a commit: the
  reader applies a record that is whole, see `read_record`, and ignores any other.
- A write that fails is kept in memory and reported to HDF5 as done; `commit` raises the error and
  can be repeated. With `sync`, the record is on the disk before its pages are changed: the same
  holds for a loss of power.

A record is `_HEAD`, the numbers of its pages, the pages, and `_TAIL` at the end of the file.
"""

from __future__ import annotations

import contextlib
import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

PAGE = 4096
_MAGIC = b"biellaWR"
_HEAD = struct.Struct("<8sQQ")  # magic, number of pages, size of the file when they are in place
_TAIL = struct.Struct("<QI8s")  # where the record begins, its CRC-32, magic


class AtomicFile(io.RawIOBase):
    """A new file for `h5py.File`, whose changes take effect by `commit`.

    Attributes
    ----------
    error
        Why the last write failed; None if it did not.
    discards
        Whether nothing more is written.
    """

    def __init__(self, path: Path, *, sync: bool = False) -> None:
        super().__init__()
        self._file: BinaryIO = path.open("w+b", buffering=0)
        self._sync = sync
        self._place = 0
        self._size = 0  # as HDF5 sees it
        self._reached = 0  # by the last commit, a multiple of a page
        self._pages: dict[int, bytearray] = {}
        # Pages of a whole record on the disk, not all in their places, and the size of the file.
        self._in_effect: tuple[dict[int, bytearray], int] | None = None
        self.discards = False
        self.error: OSError | None = None

    # Interface of a file object.

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        self._place = start + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def truncate(self, size: int | None = None) -> int:
        self._size = self._place if size is None else size
        return self._size

    def readinto(self, buffer: Any) -> int:
        wanted = memoryview(buffer).cast("B")[: max(0, self._size - self._place)]
        wanted[:] = self._read(self._place, len(wanted))
        self._place += len(wanted)
        return len(wanted)

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        start, end = self._place, self._place + len(view)
        below = min(max(start, self._reached), end)
        self._change(start, view[: below - start])
        if below < end:
            if self._pages and self._holds(below, end):
                self._change(below, view[below - start :])
            else:
                self._write_new(below, view[below - start :])
        self._place = end
        self._size = max(self._size, end)
        return len(view)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()

    # Beyond that of a file object.

    def commit(self) -> None:
        """Let all changes since the last commit take effect; OSError if that is not possible.

        After an error the file is as it was, and the commit can be repeated.
        """
        if self.discards:
            return
        has_record = False
        try:
            self._finish_record()  # before anything is written over it
            new = [number for number in self._pages if number * PAGE >= self._reached]
            self._place_pages(new)
            changed = [number for number in self._pages if number * PAGE < self._reached]
            if changed:
                self._write_record(changed)
                has_record = True
                pages = {number: bytearray(self._pages[number]) for number in changed}
                self._in_effect = pages, self._size
                self._finish_record()
            else:
                os.ftruncate(self._file.fileno(), self._size)
                self._synchronize()
            self._pages.clear()
            self.error = None
        except OSError as error:
            self.error = error
            if not has_record:
                raise
            # A whole record is in effect; the next commit begins with its pages.
        self._reached = _round_up(self._size)

    def overwrite(self, start: int, data: bytes) -> None:
        """Write to a place that HDF5 does not use, at once; OSError if that is not possible."""
        if self.discards:
            return
        _write_at(self._file, start, data)
        in_effect = self._in_effect[0] if self._in_effect else {}
        for number in range(start // PAGE, -(-(start + len(data)) // PAGE)):
            for page in filter(None, (self._pages.get(number), in_effect.get(number))):
                low, high = max(start, number * PAGE), min(start + len(data), (number + 1) * PAGE)
                page[low - number * PAGE : high - number * PAGE] = data[low - start : high - start]

    def discard(self) -> None:
        """Write nothing more: HDF5 may close the file, and the disk keeps the last commit."""
        self.discards = True

    def _read(self, start: int, size: int) -> bytes:
        found = bytearray(size)
        try:
            part = _read_at(self._file, start, size)
            found[: len(part)] = part
        except OSError as error:
            self.error = self.error or error
        if self._pages:
            for number in range(start // PAGE, -(-(start + size) // PAGE)):
                page = self._pages.get(number)
                if page is not None:
                    low, high = max(start, number * PAGE), min(start + size, (number + 1) * PAGE)
                    changed = page[low - number * PAGE : high - number * PAGE]
                    found[low - start : high - start] = changed
        return bytes(found)

    def _holds(self, start: int, end: int) -> bool:
        return any(number in self._pages for number in range(start // PAGE, -(-end // PAGE)))

    def _change(self, start: int, view: memoryview) -> None:
        """Change pages in memory."""
        end = start + len(view)
        for number in range(start // PAGE, -(-end // PAGE) if len(view) else start // PAGE):
            low, high = max(start, number * PAGE), min(end, (number + 1) * PAGE)
            page = self._pages.get(number)
            if page is None:
                whole = high - low == PAGE
                page = bytearray(PAGE if whole else self._read(number * PAGE, PAGE))
                self._pages[number] = page
            page[low - number * PAGE : high - number * PAGE] = view[low - start : high - start]

    def _write_new(self, start: int, view: memoryview) -> None:
        if self.discards:
            return
        try:
            if self.error is not None:
                raise self.error
            _write_at(self._file, start, view)
        except OSError as error:
            self.error = error
            self._change(start, view)

    def _finish_record(self) -> None:
        """Write the pages of a record that is in effect to their places, and remove it."""
        if self._in_effect is None:
            return
        pages, size = self._in_effect
        self._place_pages(list(pages), pages)
        self._synchronize()
        os.ftruncate(self._file.fileno(), size)
        self._synchronize()
        self._in_effect = None

    def _place_pages(self, numbers: list[int], pages: dict[int, bytearray] | None = None) -> None:
        """Write pages to their places, neighbors together; by default those in memory."""
        pages = self._pages if pages is None else pages
        numbers = sorted(numbers)
        first = 0
        for k in range(1, len(numbers) + 1):
            if k == len(numbers) or numbers[k] != numbers[k - 1] + 1:
                run = b"".join(pages[number] for number in numbers[first:k])
                _write_at(self._file, numbers[first] * PAGE, run)
                first = k

    def _write_record(self, numbers: list[int]) -> None:
        start = _round_up(max(self._size, os.fstat(self._file.fileno()).st_size))
        try:
            pages = {number: self._pages[number] for number in numbers}
            _write_at(self._file, start, make_record(start, self._size, pages))
            self._synchronize()
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file.fileno(), start)
            raise

    def _synchronize(self) -> None:
        if self._sync:
            os.fsync(self._file.fileno())


def make_record(start: int, size: int, pages: dict[int, bytearray]) -> bytes:
    """Return a write-ahead record that is written at `start`; the file then has `size` bytes."""
    numbers = np.array(list(pages), dtype="<u8").tobytes()
    body = b"".join([_HEAD.pack(_MAGIC, len(pages), size), numbers, *pages.values()])
    return body + _TAIL.pack(start, zlib.crc32(body, start & 0xFFFFFFFF), _MAGIC)


def read_record(file: BinaryIO) -> tuple[dict[int, bytes], int] | None:
    """Return the changed pages and the size of the file, if it ends with a whole record."""
    size = file.seek(0, os.SEEK_END)
    if size < _HEAD.size + _TAIL.size:
        return None
    tail = _read_at(file, size - _TAIL.size, _TAIL.size)
    if len(tail) < _TAIL.size:
        return None
    start, checksum, magic = _TAIL.unpack(tail)
    length = size - _TAIL.size - start
    if magic != _MAGIC or start % PAGE or length < _HEAD.size:
        return None
    body = _read_at(file, start, length)
    if len(body) < _HEAD.size:
        return None
    magic, count, size = _HEAD.unpack_from(body)
    if zlib.crc32(body, start & 0xFFFFFFFF) != checksum or magic != _MAGIC:
        return None
    if len(body) != _HEAD.size + count * (8 + PAGE):
        return None
    numbers = np.frombuffer(body, "<u8", count, _HEAD.size).tolist()
    first = _HEAD.size + 8 * count
    pages = {n: body[first + k * PAGE : first + (k + 1) * PAGE] for k, n in enumerate(numbers)}
    return pages, size


if hasattr(os, "pwrite"):  # not by the place of the file, which a forked child shares

    def _read_at(file: BinaryIO, start: int, size: int) -> bytes:
        parts = []
        while size and (part := os.pread(file.fileno(), size, start)):
            parts.append(part)
            start += len(part)
            size -= len(part)
        return b"".join(parts)

    def _write_at(file: BinaryIO, start: int, data: bytes | memoryview) -> None:
        view = memoryview(data)
        while view:  # a disk may take a part
            count = os.pwrite(file.fileno(), view, start)
            view, start = view[count:], start + count

else:

    def _read_at(file: BinaryIO, start: int, size: int) -> bytes:
        file.seek(start)
        parts = []
        while size and (part := file.read(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _write_at(file: BinaryIO, start: int, data: bytes | memoryview) -> None:
        file.seek(start)
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]


def _round_up(size: int) -> int:
    return -(-size // PAGE) * PAGE
