"""Registers of Modbus: words of numbers, requests, and what does not fit."""

from __future__ import annotations

import math

import pytest

from biella.errors import DeviceError
from biella.scheduler.binding._rig import Channel
from biella.scheduler.devices.fieldbus._modbus_registers import (
    Register,
    check_channels,
    find_range,
    gather,
    locate,
)


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


def test_a_bit_is_a_bit():
    coil = Register("on", 0, "coil", 7, "bit", "big")
    assert coil.size == 1 and coil.end == 8
    assert [coil.encode(value) for value in (0.0, 0.4, 0.6, 1.0)] == [[0], [0], [1], [1]]
    assert [coil.decode([word]) for word in (0, 1, 0xFF00)] == [0.0, 1.0, 1.0]
    with pytest.raises(DeviceError, match="channel `on`: 2 does not fit bit"):
        coil.encode(2.0)


def make(name, address, kind="input", type="int16", **options):
    about = {"kind": kind, "address": address, "type": type, "word_order": "", **options}
    return Channel(name, width=about.pop("width", 1), safe=about.pop("safe", None), options=about)


def test_elements_of_a_channel_follow_each_other():
    found = locate([make("a", 10, type="float32", width=3), make("b", 2)], "little")
    assert [(r.name, r.number, r.address, r.size) for r in found] == [
        ("a[0]", 0, 10, 2),
        ("a[1]", 1, 12, 2),
        ("a[2]", 2, 14, 2),
        ("b", 3, 2, 1),
    ]
    assert {r.order for r in found} == {"little"}
    own = locate([make("a", 0, type="int32", word_order="big")], "little")
    assert own[0].order == "big"


def test_neighbors_are_gathered_and_come_back_to_their_places():
    channels = [make("c", 4, type="int32"), make("a", 0), make("b", 1), make("d", 3, "holding")]
    spans = gather(locate(channels, "big"), 125, 2000)
    assert [str(span) for span in spans] == ["holding 3", "input 0 to 1", "input 4 to 5"]
    values = [0.0] * 4
    words = {"holding 3": [7], "input 0 to 1": [1, 0xFFFF], "input 4 to 5": [0, 9]}
    for span in spans:
        span.decode(words[str(span)], values)
        assert span.encode(values) == words[str(span)]
    assert values == [9.0, 1.0, -1.0, 7.0]


def test_no_number_is_cut_by_the_end_of_a_request():
    spans = gather(locate([make("a", 0, type="float64", width=10)], "big"), 10, 100)
    assert [span.count for span in spans] == [8] * 5
    bits = gather(locate([make("b", 0, "coil", "bit", width=10)], "big"), 10, 4)
    assert [span.count for span in bits] == [4, 4, 2]


@pytest.mark.parametrize(
    ("channels", "written", "message"),
    [
        ([make("a", 0)], True, "`a`: an input register cannot be written"),
        ([make("a", 0, "discrete", "")], True, "`a`: a discrete input cannot be written"),
        ([make("a", 0, type="")], False, "`a`: type is missing"),
        ([make("a", 0, "coil")], False, "`a`: the type for kind `coil` must be a bit"),
        ([make("a", 0, type="bit")], False, "must be a numeric type, got bit"),
        ([make("a", 65535, type="int32")], False, "ends at input 65536, but the last address is"),
        ([make("a", 65532, type="float64", width=2)], False, "ends at input 65539"),
        (
            [make("a", 0, "holding", "uint16", safe=(-1.0,))],
            True,
            "safe value -1 stands as -1 in the register, which is uint16: from 0 to 65535",
        ),
        (
            [make("a", 0, type="float64"), make("b", 3)],
            False,
            "channels `a` and `b` both read input 3: `a` is input 0 to 3",
        ),
    ],
)
def test_channels_that_cannot_be_are_problems(channels, written, message):
    (problem,) = check_channels(channels, written)
    assert message in problem


def test_channels_of_other_kinds_may_have_the_same_address():
    channels = [make("a", 0), make("b", 0, "holding"), make("c", 0, "coil", ""), make("d", 1)]
    assert check_channels(channels, written=False) == []
