"""Registers of Modbus: words of numbers, requests, and what does not fit."""

from __future__ import annotations

import math

import pytest

from biella.errors import DeviceError
from biella.scheduler.devices.fieldbus._modbus_registers import Register, find_range


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int16", -2.0, [0xFFFE]),
        ("uint16", 65535.0, [0xFFFF]),
        ("int32", -2.0, [0xFFFF, 0xFFFE]),
        ("uint32", 0x12345678, [0x1234, 0x5678]),
        ("float32", 1.0, [0x3F80, 0x0000]),  # IEEE 754
        ("float64", -2.5, [0xC004, 0, 0, 0]),
    ],
)
def test_numbers_stand_as_the_standard_says(kind, value, expected):
    big = Register("x", 0, "holding", 0, kind, "big")
    little = Register("x", 0, "holding", 0, kind, "little")
    assert big.encode(value) == expected
    assert little.encode(value) == expected[::-1]
    assert big.decode(expected) == little.decode(expected[::-1]) == value
    for end in find_range(kind):
        if math.isfinite(end):
            assert big.decode(big.encode(end)) == end
            with pytest.raises(DeviceError, match=f"channel `x`: .* does not fit {kind}"):
                big.encode(2.0 * end if end else -1.0)
