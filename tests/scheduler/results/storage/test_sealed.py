"""Texts with a checksum: any flipped bit is found, and one of two slots is whole at any instant."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from biella.scheduler.results.storage._atomic_file import AtomicFile
from biella.scheduler.results.storage._sealed import (
    Slots,
    choose_slot,
    read_slots,
    rewrite_slots,
    seal,
    unseal,
)


def test_a_sealed_text_and_each_of_its_bits() -> None:
    data = seal(b"a text", 40)
    assert len(data) == 40 and unseal(data, "it") == b"a text"
    for bit in range(8 * 22):  # the rest is padding
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match="the summary does not match its checksum"):
            unseal(bytes(flipped), "the summary")
    with pytest.raises(ValueError, match="25 bytes do not fit into 24"):
        seal(bytes(25), 40)


def make(path: Path) -> tuple[AtomicFile, h5py.File, Slots]:
    disk = AtomicFile(path)
    file = h5py.File(disk, "w")
    slots = Slots(file, "about", b"first", 10)
    file.flush()
    disk.commit()
    return disk, file, slots


def test_the_newest_text_is_read_and_the_one_before_if_it_is_torn(tmp_path: Path) -> None:
    disk, file, slots = make(tmp_path / "f.h5")
    assert slots.room == 15
    start, size = file["about"].id.get_offset(), file["about"].size
    assert read_slots(file["about"], "it") == b"first"
    for text in (b"second", b"third", b"a fourth one"):
        before = (tmp_path / "f.h5").read_bytes()[start : start + size]
        slots.write(disk, text)
        after = (tmp_path / "f.h5").read_bytes()[start : start + size]
        assert choose_slot(after, "it")[1] == text
        for count in range(size):  # a write that ended early
            torn = bytes(
                b if a == b or n < count else a
                for n, (a, b) in enumerate(zip(before, after, strict=True))
            )
            assert choose_slot(torn, "it")[1] in (text, choose_slot(before, "it")[1])
    file.close()
    disk.close()


def test_a_text_in_both_slots_survives_any_flipped_bit(tmp_path: Path) -> None:
    disk, file, slots = make(tmp_path / "f.h5")
    start, size = file["about"].id.get_offset(), file["about"].size
    slots.write(disk, b"the end", both=True)
    file.close()
    disk.commit()
    disk.close()
    data = (tmp_path / "f.h5").read_bytes()[start : start + size]
    for bit in range(8 * size):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert choose_slot(bytes(flipped), "it")[1] == b"the end"
    with pytest.raises(ValueError, match="it does not match its checksum"):
        choose_slot(bytes(size), "it")
    assert rewrite_slots(str(tmp_path / "f.h5"), start, size, b"another")
    with h5py.File(tmp_path / "f.h5") as again:
        both = again["about"][()].tobytes()
        assert read_slots(again["about"], "it") == b"another"
    assert np.frombuffer(both, np.uint8).size == size and both.count(b"another") == 2
    assert not rewrite_slots(str(tmp_path / "f.h5"), start, size, bytes(100))
