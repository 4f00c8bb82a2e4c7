"""The engine's frames against the tests' own (tests/scheduler/devices/peer.py) and against fixed
bytes (frames.toml)."""

import ctypes
import math
import random
import re
import struct
import tomllib
import zlib
from ctypes import byref, c_double, c_uint8
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biella.scheduler.engine._library import contract

from .. import peer
from ..native import engine

pytestmark = pytest.mark.engine

VECTORS = tomllib.loads((Path(__file__).parent / "frames.toml").read_text())
FRAMES, REFUSED = VECTORS["frames"], VECTORS["refused"]
FINE = bytes.fromhex(REFUSED["fine"])


def _bytes(data: bytes) -> ctypes.Array[c_uint8]:
    return (c_uint8 * len(data)).from_buffer_copy(data)


def write(frame: peer.Frame) -> bytes:
    """Return what the engine makes of a frame; nothing if it refuses."""
    head = contract.bl_frame_head(frame.sequence, frame.echo, frame.session, frame.flags)
    out = (c_uint8 * 2060)()
    values = (c_double * (len(frame.values) + 1))(*frame.values)
    size = engine().bl_frame_write(byref(head), values, len(frame.values), out)
    return bytes(out[:size])


def read(data: bytes, count: int) -> peer.Frame | None:
    """Return what the engine reads from bytes; None if it refuses."""
    head = contract.bl_frame_head()
    values = (c_double * 256)(*[-7.0] * 256)
    if not engine().bl_frame_read(_bytes(data), len(data), count, byref(head), values):
        assert set(values) == {-7.0} and bytes(head) == bytes(len(bytes(head)))
        return None
    return peer.Frame(tuple(values[:count]), head.session, head.sequence, head.echo, head.flags)


def stuff(data: bytes) -> bytes:
    out = (c_uint8 * (len(data) + len(data) // 254 + 1))()
    return bytes(out[: engine().bl_stuff(_bytes(data), len(data), out)])


def unstuff(data: bytes, room: int = 5000) -> bytes:
    out = (c_uint8 * (room + 1))()
    return bytes(out[: engine().bl_unstuff(_bytes(data), len(data), out, room)])


@pytest.mark.parametrize("name", FRAMES)
def test_fixed_bytes(name):
    entry = FRAMES[name]
    data, count = bytes.fromhex(entry["bytes"]), entry["count"]
    values = entry["values"] * (count if len(entry["values"]) == 1 else 1)
    frame = peer.Frame(
        tuple(values), entry["session"], entry["sequence"], entry["echo"], entry["flags"]
    )
    assert write(frame) == data == bytes(frame)
    assert read(data, count) == frame == peer.parse(data)
    stuffed = bytes.fromhex(entry["stuffed"])
    assert stuff(data) == stuffed == peer.stuff(data)
    assert unstuff(stuffed) == data


@pytest.mark.parametrize("name", [name for name in REFUSED if name != "fine"])
def test_fixed_bytes_that_nobody_takes(name):
    data = bytes.fromhex(REFUSED[name])
    assert read(FINE, 2) is not None
    assert read(data, 2) is None
    right = zlib.crc32(data[:-4]).to_bytes(4, "little") == data[-4:]
    assert right == (name != "crc")


def test_the_page_shows_the_example():
    page = (Path(__file__).parents[4] / "docs" / "reference" / "frame.md").read_text()
    data = bytes.fromhex(FRAMES["example"]["bytes"])
    rows = re.findall(r"^\| ((?:`[0-9a-f ]+` ?)+)\|", page, re.MULTILINE)
    assert bytes.fromhex("".join(rows).replace("`", "")) == data
    assert stuff(data).hex(" ") + " 00\n" in page


finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
heads = {
    "session": st.integers(0, 2**16 - 1),
    "sequence": st.integers(0, 2**32 - 1),
    "echo": st.integers(0, 2**32 - 1),
}
frames = st.one_of(
    st.builds(
        peer.Frame,
        values=st.lists(finite, max_size=255).map(tuple),
        flags=st.sampled_from([0, 2, 4, 6]),
        **heads,
    ),
    st.builds(
        peer.Frame,
        values=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=255).map(tuple),
        flags=st.sampled_from([1, 3, 5, 7]),
        **heads,
    ),
)


@given(frames)
def test_both_implementations_agree(frame):
    data = bytes(frame)
    assert write(frame) == data
    assert read(data, len(frame.values)) == frame
    assert read(data, len(frame.values) + 1) is None


@given(st.binary(max_size=700))
def test_stuffing_agrees_and_leaves_no_zero(data):
    stuffed = stuff(data)
    assert stuffed == peer.stuff(data)
    assert 0 not in stuffed
    assert unstuff(stuffed) == data == peer.unstuff(stuffed)


@pytest.mark.parametrize("size", [0, 1, 253, 254, 255, 508, 509, 2060])
def test_stuffing_at_the_edges_of_blocks(size):
    for data in (b"\1" * size, b"\0" * size, b"\1" * (size - 1) + b"\0" * (size > 0)):
        stuffed = stuff(data)
        assert stuffed == peer.stuff(data)
        assert len(stuffed) <= size + size // 254 + 1
        assert unstuff(stuffed) == data
        if size:
            assert unstuff(stuffed, size) == data
            assert unstuff(stuffed, size - 1) == b""  # no room


def test_a_zero_within_a_block_is_no_stuffing():
    assert unstuff(b"\3\1\2") == b"\1\2"
    assert unstuff(b"\3\1\0") == unstuff(b"\3\0\2") == unstuff(b"\0") == b""


@given(st.binary(max_size=400))
def test_unstuffing_anything(data):
    try:
        wanted = peer.unstuff(data)
        if any(0 in data[k + 1 : k + data[k]] for k in _codes(data)):
            wanted = b""
    except ValueError:
        wanted = b""
    assert unstuff(data) == wanted


def _codes(data):
    at = 0
    while at < len(data):
        yield at
        at += data[at]


def test_every_flipped_bit_is_noticed():
    for bit in range(8 * len(FINE)):
        spoilt = bytearray(FINE)
        spoilt[bit // 8] ^= 1 << bit % 8
        assert read(bytes(spoilt), 2) is None


def test_every_cut_is_noticed():
    for size in range(len(FINE)):
        assert read(FINE[:size], 2) is None
        assert read(FINE[len(FINE) - size :], 2) is None
    assert read(FINE + b"\0", 2) is None
    assert read(FINE + FINE, 2) is None


def test_random_bytes_are_no_frame():
    draw = random.Random(7)
    for _ in range(20000):
        data = bytearray(draw.randbytes(draw.randrange(60)))
        data[: draw.randrange(17)] = FINE[: draw.randrange(17)]
        assert read(bytes(data), draw.randrange(4)) is None


@pytest.mark.parametrize("bits", ["7fc00000", "7f800001", "7f800000", "ff800000"])
def test_what_is_not_finite_is_no_frame(bits):
    for place in range(3):
        values = [b"\0\0\x80\x3f"] * 3
        values[place] = bytes.fromhex(bits)[::-1]
        body = bytes(peer.Frame((0, 0, 0)))[:16] + b"".join(values)
        assert read(peer.sign(body), 3) is None
    wide = struct.pack("<d", math.nan if bits.startswith("7fc") else math.inf)
    body = bytes(peer.Frame((0.0,), flags=1))[:16] + wide
    assert read(peer.sign(body), 1) is None


def test_what_does_not_fit_is_not_written():
    for value in (math.nan, math.inf, -math.inf, 3.5e38, -1e300):
        assert write(peer.Frame((0.0, value))) == b""
    assert write(peer.Frame((1e300,), flags=1)) != b""
    for value in (math.nan, math.inf):
        assert write(peer.Frame((value,), flags=1)) == b""
    largest = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
    again = read(write(peer.Frame((largest,))), 1)
    assert again is not None and again.values == (largest,)


def test_the_crc_is_the_usual_one():
    def call(data: bytes, size: int) -> int:
        return int(engine().bl_crc32(_bytes(data), size))

    assert call(b"123456789", 9) == 0xCBF43926
    for data in (b"", b"\0", bytes(range(256)) * 3):
        assert call(data, len(data)) == zlib.crc32(data)
