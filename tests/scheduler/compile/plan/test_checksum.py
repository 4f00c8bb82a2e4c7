"""The checksum of a plan in Python is the one that the engine computes."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biella.scheduler.compile.plan._checksum import _CHUNK, _FEW, fnv1a
from biella.scheduler.engine._library import library


def engine_hash(data: bytes) -> int:
    function = library().bl_hash
    function.restype, function.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
    return int(function(data, len(data)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", 0xCBF29CE484222325),
        (b"a", 0xAF63DC4C8601EC8C),
        (b"foobar", 0x85944171F73967E8),
    ],
)
def test_published_values(text: bytes, expected: int) -> None:
    """From the test vectors of FNV's authors (draft-eastlake-fnv, appendix C)."""
    assert fnv1a(text) == expected


@pytest.mark.parametrize(
    "size",
    [1, _FEW - 1, _FEW, _FEW + 1, _CHUNK - 1, _CHUNK, _CHUNK + 1, 3 * _CHUNK + 7],
)
@pytest.mark.parametrize("fill", ["random", "zeros", "ones"])
def test_arrays_and_loops_agree_with_the_engine(size: int, fill: str) -> None:
    made = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    data = {"random": made.tobytes(), "zeros": bytes(size), "ones": b"\xff" * size}[fill]
    assert fnv1a(data) == engine_hash(data)


@given(st.binary(min_size=_FEW, max_size=2 * _FEW))
def test_any_bytes(data: bytes) -> None:
    assert fnv1a(data) == engine_hash(data)
