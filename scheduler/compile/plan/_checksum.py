"""FNV-1a of 64 bits: the checksum in the head of a plan, as ``bl_hash`` in ``plan.c`` computes it.

    h ← (h ⊕ b)·P mod 2⁶⁴   for each byte b

The recurrence is solved for whole arrays. Only the lowest byte of h takes part in the exclusive or,
so h ⊕ b = h + d with d = (l ⊕ b) − l, l the lowest byte of h; and then h is a polynomial in P with
the coefficients d. The lowest bytes follow a recurrence of their own, modulo 256. P is odd, so
bit j of x·P is bit j of x plus what comes from the bits below it: with these known, bit j of all
bytes is a running exclusive or.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_START = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_MASK = (1 << 64) - 1
_CHUNK = 1 << 16
_FEW = 256
"""Bytes below which a plain loop is faster."""


def fnv1a(data: bytes) -> int:
    """Return the 64-bit FNV-1a hash of `data`; it guards against accidents, not against attacks."""
    if len(data) < _FEW:
        found = _START
        for byte in data:
            found = (found ^ byte) * _PRIME & _MASK
        return found
    found = _START
    powers = _list_powers(min(len(data), _CHUNK))
    for first in range(0, len(data), _CHUNK):
        part = np.frombuffer(
            data, dtype=np.uint8, count=min(_CHUNK, len(data) - first), offset=first
        )
        changes = _find_changes(part, found & 0xFF)
        # The products are taken modulo 2⁶⁴, as unsigned integers are.
        total = int((changes * powers[-part.size :]).sum(dtype=np.uint64))
        found = (found * int(powers[-part.size]) + total) & _MASK
    return found


def _list_powers(count: int) -> npt.NDArray[np.uint64]:
    """Return P^count, …, P², P."""
    powers = np.full(count, _PRIME, dtype=np.uint64)
    return np.multiply.accumulate(powers)[::-1]


def _find_changes(part: npt.NDArray[np.uint8], low: int) -> npt.NDArray[np.uint64]:
    """Return what each byte adds to the hash before it is multiplied.

    `low` is the lowest byte of the hash before the first one.
    """
    prime = np.uint8(_PRIME & 0xFF)
    after = np.zeros_like(part)  # lowest bytes after the exclusive or, from bit 0 upwards
    before = np.empty_like(part)
    for bit in range(8):
        mask = np.uint8(1 << bit)
        # Bit `bit` of the lowest byte, as far as the bits below decide it.
        np.multiply(after[:-1], prime, out=before[1:])
        before[0] = low
        after |= np.bitwise_xor.accumulate((before ^ part) & mask)
    np.multiply(after[:-1], prime, out=before[1:])
    before[0] = low
    return (after.astype(np.int64) - before.astype(np.int64)).astype(np.uint64)
