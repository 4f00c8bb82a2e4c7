"""Texts with a checksum at a fixed place of a file: sealed, and in two slots.

Two slots are written in turn, directly to the disk: at any instant one of them is whole, so that a
text survives a kill while it is rewritten, and needs no room on a full disk. A text that will not
change any more is written to both.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np

from ._atomic_file import AtomicFile

if TYPE_CHECKING:
    import h5py

_SLOT = struct.Struct("<QII")  # sequence number, length, CRC-32 of both and the text


def seal(text: bytes, capacity: int) -> bytes:
    """Return a text with its length and its CRC-32, padded to `capacity` bytes.

    Raises
    ------
    ValueError
        If it does not fit.
    """
    return _make_slot(0, text, capacity)


def unseal(data: bytes, what: str) -> bytes:
    """Return the text; ValueError, naming it as `what`, if it does not match its checksum."""
    found = _read_slot(data)
    if found is None:
        raise ValueError(f"{what} does not match its checksum")
    return found[1]


class Slots:
    """Two places of a dataset in a file that is being written."""

    def __init__(self, parent: h5py.Group, name: str, text: bytes, spare: int) -> None:
        self.capacity = _SLOT.size + len(text) + spare
        both = _make_slot(1, text, self.capacity) + bytes(self.capacity)
        dataset = parent.create_dataset(name, data=np.frombuffer(both, dtype=np.uint8))
        self._start: int = dataset.id.get_offset()
        self._sequence = 1

    @property
    def room(self) -> int:
        """Longest text that fits."""
        return self.capacity - _SLOT.size

    def write(self, file: AtomicFile, text: bytes, *, both: bool = False) -> None:
        """Write to the older slot, or to both, one after the other; OSError if not possible."""
        for _ in range(1 + both):
            number = (self._sequence) % 2
            slot = _make_slot(self._sequence + 1, text, self.capacity)
            file.overwrite(self._start + number * self.capacity, slot[: _SLOT.size + len(text)])
            self._sequence += 1


def read_slots(dataset: h5py.Dataset, what: str) -> bytes:
    """Return the newest text that is whole; ValueError, naming it as `what`, if none is."""
    return choose_slot(dataset[()].tobytes(), what)[1]


def choose_slot(data: bytes, what: str) -> tuple[int, bytes]:
    """Return sequence number and text of the newest slot that is whole."""
    half = len(data) // 2
    slots = [slot for part in (data[:half], data[half:]) if (slot := _read_slot(part))]
    if not slots:
        raise ValueError(f"{what} does not match its checksum")
    return max(slots)


def rewrite_slots(path: str, start: int, size: int, text: bytes) -> bool:
    """Replace the text in both slots of a closed file; false if it does not fit."""
    capacity = size // 2
    if _SLOT.size + len(text) > capacity:
        return False
    with open(path, "r+b", buffering=0) as file:
        file.seek(start)
        sequence, _ = choose_slot(file.read(size), "it")
        for number in (sequence + 1, sequence + 2):
            file.seek(start + (number + 1) % 2 * capacity)
            file.write(_make_slot(number, text, capacity))
    return True


def _make_slot(sequence: int, text: bytes, capacity: int) -> bytes:
    if _SLOT.size + len(text) > capacity:
        raise ValueError(f"{len(text)} bytes do not fit into {capacity - _SLOT.size}")
    head = struct.pack("<QI", sequence, len(text))
    slot = _SLOT.pack(sequence, len(text), zlib.crc32(text, zlib.crc32(head))) + text
    return slot + bytes(capacity - len(slot))


def _read_slot(data: bytes) -> tuple[int, bytes] | None:
    if len(data) < _SLOT.size:
        return None
    sequence, length, checksum = _SLOT.unpack_from(data)
    text = data[_SLOT.size : _SLOT.size + length]
    head = struct.pack("<QI", sequence, length)
    if len(text) != length or zlib.crc32(text, zlib.crc32(head)) != checksum:
        return None
    return sequence, text
