"""Checksums of blocks of rows: which rows a damaged file has lost.

Rows are written in blocks. The dataset ``blocks`` has one record a block: the row after its last
one, in two words, the CRC-32 of its part of each column, and the CRC-32 of these words. HDF5's own
checksums (the fletcher32 filter) are not used: they are of whole chunks, which are rewritten as
they fill, and do not tell which rows of a chunk are damaged.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import h5py

NAME = "blocks"
_CHUNK_WORDS = 1 << 14
_CHUNK_BLOCKS = 256


def create_blocks(parent: h5py.Group, columns: int) -> None:
    """Make room for the checksums of `columns` columns."""
    width = columns + 3
    rows = max(1, min(_CHUNK_BLOCKS, _CHUNK_WORDS // width))
    parent.create_dataset(
        NAME, shape=(0, width), maxshape=(None, width), chunks=(rows, width), dtype="<u4"
    )


def append_block(parent: h5py.Group, end: int, checksums: Sequence[int]) -> None:
    """Add a block whose last row is the one before `end`."""
    dataset = parent[NAME]
    count = len(dataset)
    words = np.array([end & 0xFFFFFFFF, end >> 32, *checksums, 0], dtype="<u4")
    words[-1] = zlib.crc32(words[:-1].tobytes())
    dataset.resize(count + 1, axis=0)
    dataset[count] = words


@dataclass(frozen=True)
class Blocks:
    """Blocks of rows: the row after the last one of each, and the checksum of each column."""

    ends: NDArray[np.int64]
    checksums: NDArray[np.uint32]

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """Return the first and the last but one number of the blocks that have these rows."""
        first = int(np.searchsorted(self.ends, start, "right"))
        last = int(np.searchsorted(self.ends, stop, "left"))
        return first, min(last + 1, len(self.ends)) if stop > start else first

    def first_row(self, number: int) -> int:
        """Return the first row of a block."""
        return int(self.ends[number - 1]) if number else 0

    def find_damage(
        self, column: int, array: NDArray[Any], first: int, last: int
    ) -> list[tuple[int, int]]:
        """Return the first and the last row of each stretch that does not match its checksums.

        `array` has the rows of the blocks `first` to `last` - 1 of a column.
        """
        found: list[tuple[int, int]] = []
        offset = self.first_row(first)
        for number in range(first, last):
            start, end = self.first_row(number), int(self.ends[number])
            part = np.ascontiguousarray(array[start - offset : end - offset])
            if zlib.crc32(part.data) != self.checksums[number, column]:
                if found and found[-1][1] == start - 1:
                    start = found.pop()[0]
                found.append((start, end - 1))
        return found


def read_blocks(parent: h5py.Group, rows: int, columns: int) -> Blocks:
    """Return the blocks; ValueError if they do not match `rows` or their own checksums."""
    words: NDArray[np.uint32] = parent[NAME][:]
    if words.shape[1] != columns + 3:
        raise ValueError("the checksums of rows have another number of columns")
    for record in words:
        if zlib.crc32(record[:-1].tobytes()) != record[-1]:
            raise ValueError("the checksums of rows do not match their own")
    ends = words[:, 0].astype(np.int64) | words[:, 1].astype(np.int64) << 32
    if np.any(np.diff(ends, prepend=0) < 0) or (ends[-1] if len(ends) else 0) != rows:
        raise ValueError(f"{rows} rows are there, and checksums of {ends[-1:].tolist() or 0}")
    return Blocks(ends, words[:, 2:-1])
