"""CAN operations of FMI-LS-BUS, against packed structures of C and the tables of the standard."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biella import FmuError
from biella.fmu.can import (
    ArbitrationLost,
    BusError,
    CanFdTransmit,
    CanTransmit,
    CanXlTransmit,
    Configuration,
    Confirm,
    FormatError,
    Operation,
    Status,
    Wakeup,
    decode_can,
    encode_can,
)
from biella.scheduler.engine.build import find_compiler

EVERY: list[Operation] = [
    CanTransmit(0x7FF, b"\1\0\xff"),
    CanFdTransmit(0x1FFFFFFF, bytes(range(12)), extended=True, bit_rate_switch=True),
    CanXlTransmit(
        0x123, b"\t", simple_extended=True, data_type=3, network=4, acceptance=0xDEADBEEF
    ),
    Confirm(0x7FF),
    ArbitrationLost(0x100),
    BusError(0x15, 4, 2, True),
    Configuration(1, 500_000),
    Configuration(4, 2),
    Status(3),
    Wakeup(),
    FormatError(b"\xab\0"),
]
"""The same as in ``can_operations.c``."""
SIZES = [19, 29, 23, 12, 12, 15, 13, 10, 9, 8, 12]
"""Lengths by the table of operations: 16 + 3, 17 + 12, 22 + 1, …"""


def test_bytes_are_those_of_the_structures_of_c(tmp_path):
    library = tmp_path / "operations.so"
    source = Path(__file__).with_name("can_operations.c")
    flags = ["-std=c11", "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run([*find_compiler().command, *flags], check=True, timeout=300)
    buffer = ctypes.create_string_buffer(1000)
    loaded = ctypes.CDLL(str(library))
    loaded.write_operations.restype = ctypes.c_size_t
    size = loaded.write_operations(buffer)
    assert encode_can(EVERY) == buffer.raw[:size]
    assert decode_can(buffer.raw[:size]) == EVERY
    assert [len(encode_can([one])) for one in EVERY] == SIZES


def test_a_frame_byte_by_byte():
    """ID 0x123 with two bytes of data: OP code 0x10, length 18, little-endian."""
    data = encode_can([CanTransmit(0x123, b"\xca\xfe", remote=False)])
    assert data.hex(" ") == "10 00 00 00 12 00 00 00 23 01 00 00 00 00 02 00 ca fe"


def test_nothing_is_no_operation():
    assert decode_can(b"") == []
    assert encode_can([]) == b""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("10 00 00", "end within the head of one, at byte 0"),
        ("99 00 00 00 08 00 00 00", "unknown CAN operation 0x99 at byte 0"),
        ("42 00 00 00 07 00 00 00", "has the length 7; 8 bytes follow"),
        ("20 00 00 00 0c 00 00 00 01", "has the length 12; 9 bytes follow"),
        ("42 00 00 00 09 00 00 00 00", "0x42 at byte 0: unpack requires a buffer of 0 bytes"),
        ("41 00 00 00 09 00 00 00 04", "status is 4, not 1 to 3"),
        ("40 00 00 00 0a 00 00 00 04 03", "behavior after a lost arbitration is 3"),
        ("40 00 00 00 0a 00 00 00 05 01", "parameter is 5, not 1 to 4"),
        ("40 00 00 00 08 00 00 00", "0x40 at byte 0"),
        ("10 00 00 00 10 00 00 00 23 01 00 00 02 00 00 00", "extended is 2, neither 0 nor 1"),
        ("10 00 00 00 10 00 00 00 23 01 00 00 00 00 01 00", "0 bytes of data instead of 1"),
        ("10 00 00 00 10 00 00 00 00 08 00 00 00 00 00 00", "0x800 has more than 11 bits"),
        ("42 00 00 00 08 00 00 00 99 00 00 00 08 00 00 00", "0x99 at byte 8"),
    ],
)
def test_what_is_not_an_operation_is_named_with_its_place(data, message):
    with pytest.raises(FmuError, match=message):
        decode_can(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (CanTransmit(0x800), "more than 11 bits"),
        (CanTransmit(1 << 29, extended=True), "more than 29 bits"),
        (CanTransmit(1, bytes(9)), "at most 8 bytes, not 9"),
        (CanFdTransmit(1, bytes(9)), "0 to 8, 12, 16, … 64 bytes, not 9"),
        (CanXlTransmit(1, b""), "1 to 2048 bytes"),
        (CanXlTransmit(1, b"x", network=256), "cannot be encoded"),
        (Confirm(-1), "cannot be encoded"),
        (BusError(1, 7, 1, False), "error is 7, not 1 to 6"),
        (Configuration(1, 1 << 32), "cannot be encoded"),
        ("text", "is no CAN operation"),
    ],
)
def test_what_cannot_be_sent_is_refused(operation, message):
    with pytest.raises(FmuError, match=message):
        encode_can([operation])


@given(st.binary(max_size=64))
def test_any_bytes_are_operations_or_an_error(data):
    """What is decoded is encoded to the same bytes; nothing else than FmuError is raised."""
    try:
        found = decode_can(data)
    except FmuError:
        return
    assert encode_can(found) == data


@given(st.lists(st.sampled_from(EVERY), max_size=6))
def test_any_operations_come_back(operations):
    assert decode_can(encode_can(operations)) == operations
