"""Checksums of blocks of rows: which blocks rows are in, and which are damaged."""

from __future__ import annotations

import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

from biella.scheduler.results.storage._checked_blocks import (
    append_block,
    create_blocks,
    read_blocks,
)

SIZES = [3, 0, 4, 1, 8]
ROWS = sum(SIZES)
COLUMN = np.arange(float(ROWS))


@pytest.fixture
def file(tmp_path: Path):
    with h5py.File(tmp_path / "b.h5", "w") as made:
        create_blocks(made, 2)
        end = 0
        for size in SIZES:
            part = COLUMN[end : end + size]
            end += size
            append_block(made, end, [zlib.crc32(part.data), 7])
        yield made


def test_every_range_of_rows_is_covered_by_its_blocks(file):
    blocks = read_blocks(file, ROWS, 2)
    assert blocks.ends.tolist() == np.cumsum(SIZES).tolist()
    for start in range(ROWS):
        for stop in range(start + 1, ROWS + 1):
            first, last = blocks.span(start, stop)
            low, high = blocks.first_row(first), int(blocks.ends[last - 1])
            assert low <= start and stop <= high
            assert blocks.find_damage(0, COLUMN[low:high], first, last) == []
    assert blocks.span(4, 4)[0] == blocks.span(4, 4)[1]


def test_damaged_rows_are_named_and_neighbors_are_one_stretch(file):
    blocks = read_blocks(file, ROWS, 2)
    first, last = blocks.span(0, ROWS)
    for rows, expected in [([4], [(3, 6)]), ([0, 5], [(0, 2), (3, 6)]), ([7, 15], [(7, 15)])]:
        damaged = COLUMN.copy()
        damaged[rows] += 1.0
        found = blocks.find_damage(0, damaged, first, last)
        assert found == ([(0, 6)] if rows == [0, 5] else expected)


def test_beyond_32_bits(tmp_path):
    with h5py.File(tmp_path / "large.h5", "w") as made:
        create_blocks(made, 1)
        append_block(made, 2**31 - 1, [1])
        append_block(made, 2**33 + 5, [2])
        blocks = read_blocks(made, 2**33 + 5, 1)
        assert blocks.ends.tolist() == [2**31 - 1, 2**33 + 5]
        assert blocks.span(2**32, 2**32 + 1) == (1, 2)


def test_a_table_that_is_damaged_itself(file):
    for place in range(5):
        words = file["blocks"][2]
        changed = words.copy()
        changed[place] ^= 1 << 5
        file["blocks"][2] = changed
        with pytest.raises(ValueError, match="do not match their own"):
            read_blocks(file, ROWS, 2)
        file["blocks"][2] = words
    with pytest.raises(ValueError, match="17 rows are there, and checksums of"):
        read_blocks(file, ROWS + 1, 2)
    with pytest.raises(ValueError, match="another number of columns"):
        read_blocks(file, ROWS, 3)
