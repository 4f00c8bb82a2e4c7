"""Signals in CAN frames, compared with cantools."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import cantools
import numpy as np
import pytest
from cantools.database.can import Message, Signal
from cantools.database.conversion import BaseConversion

from biella import Diagram, DiagramError, simulate
from biella.blocks import Constant
from biella.errors import DeviceError
from biella.fmu.can import (
    CanFdTransmit,
    CanMessage,
    CanNode,
    CanSignal,
    CanTransmit,
    decode_can,
    load_messages,
)

pytestmark = pytest.mark.engine


def load_with_cantools(path: Path) -> dict[str, Any]:
    database: Any = cantools.database.load_file(path)
    return {message.name: message for message in database.messages}


def some_signals(dice, size, start=0):
    """Signals that lie behind each other, of either byte order, as cantools has them."""
    found: list[Signal] = []
    bit = start
    while True:
        is_float = dice.random() < 0.2
        length = dice.choice([32, 64]) if is_float else dice.randint(1, dice.choice([5, 17, 64]))
        if bit + length > 8 * size:
            return found
        is_big = dice.random() < 0.5
        if is_big:  # its own bytes, from the most significant bit of the next free one on
            bit = -(-bit // 8) * 8
            if bit + -(-length // 8) * 8 > 8 * size:
                return found
        found.append(
            Signal(
                f"s{len(found)}",
                bit + 7 if is_big else bit,
                length,
                "big_endian" if is_big else "little_endian",
                is_signed=not is_float and dice.random() < 0.5,
                conversion=BaseConversion.factory(
                    scale=dice.choice([1, 0.5, 0.01, 3, -0.25]),
                    offset=dice.choice([0, -40, 1000.5]),
                    is_float=is_float,
                ),
            )
        )
        bit += -(-length // 8) * 8 if is_big else length


def choose_value(dice, signal):
    if signal.is_float:
        return float(np.float32(dice.uniform(-1e3, 1e3)))
    bits = min(signal.length - signal.is_signed, 52)  # more are no double
    raw = dice.choice([0, 2**bits - 1, dice.randrange(2**bits)])
    if signal.is_signed:
        raw = dice.choice([raw, -raw - 1])
    return float(raw * signal.scale + signal.offset)


def exchange(messages, given, **options):
    """Send each message once; return the frames, and what the other node has received."""
    d = Diagram("can", step=1e-3)
    sender = d.add(CanNode(list(messages), **options), name="a")
    receiver = d.add(CanNode(receives=list(messages), **options), name="b")
    d.connect(sender.terminal("CAN"), receiver.terminal("CAN"))
    for n, (name, value) in enumerate(given.items()):
        d.connect(d.add(Constant(value), name=f"c{n}"), sender[name])
    result = simulate(d, 1e-3)
    data = bytes.fromhex(result.info["binaries"]["a.tx_data"])
    frames: dict[int, Any] = {getattr(f, "identifier", -1): f for f in decode_can(data)}
    return frames, {name: result[f"b.{name}"][-1] for name in given}


def test_random_signals_have_the_bits_of_cantools(tmp_path):
    dice = random.Random(18)
    sizes = [1, 2, 5, 8, 8, 8, 8, 8, 12, 24, 64, 64]
    messages = [
        Message(
            0x100 + n,
            f"M{n}",
            size,
            some_signals(dice, size, dice.randrange(4)),
            is_fd=size > 8,
            is_extended_frame=n % 3 == 0,
            cycle_time=10,
        )
        for n, size in enumerate(sizes)
    ]
    path = tmp_path / "random.dbc"
    database = cantools.database.can.Database(messages)
    path.write_text(database.as_dbc_string())
    by_name = load_with_cantools(path)
    values = {
        name: {s.name: choose_value(dice, s) for s in m.signals} for name, m in by_name.items()
    }
    given = {f"{m}.{s}": value for m, some in values.items() for s, value in some.items()}
    assert len(given) > 40
    frames, received = exchange(by_name, given, database=path)
    for name, message in by_name.items():
        expected = message.encode(values[name], strict=False)
        frame = frames[message.frame_id]
        assert frame.data == expected, name
        assert frame.extended == message.is_extended_frame
        assert isinstance(frame, CanFdTransmit if message.length > 8 else CanTransmit)
        decoded = message.decode(expected, decode_choices=False)
        for signal, value in decoded.items():
            assert received[f"{name}.{signal}"] == pytest.approx(float(value), rel=1e-15), signal


def test_values_are_rounded_like_those_of_cantools():
    signal = CanSignal("x", 3, 9, signed=True, scale=0.25, offset=-1.5)
    oracle: Any = Message(
        5,
        "M",
        8,
        [Signal("x", 3, 9, is_signed=True,
                conversion=BaseConversion.factory(scale=0.25, offset=-1.5))],
    )  # fmt: skip
    for value in (0.0, 0.1, 0.125, 0.375, -3.3, 62.25, -65.5):
        frames, received = exchange([CanMessage("M", 5, [signal], period=1.0)], {"M.x": value})
        data = oracle.encode({"x": value}, strict=False)
        assert frames[5].data == data
        assert received["M.x"] == oracle.decode(data)["x"]


MULTIPLEXED = """VERSION ""
NS_ :
BS_:
BU_: A
BO_ 300 Choice: 8 A
 SG_ page M : 0|8@1+ (1,0) [0|255] "" A
 SG_ one m1 : 8|16@1- (0.1,0) [-100|100] "rad/s" A
 SG_ two m2 : 8|8@1+ (1,0) [0|200] "furlong" A
 SG_ always : 56|8@1+ (1,0) [0|255] "" A
BA_DEF_ BO_ "GenMsgCycleTime" INT 0 65535;
BA_DEF_DEF_ "GenMsgCycleTime" 0;
BA_ "GenMsgCycleTime" BO_ 300 20;
"""


@pytest.fixture
def multiplexed(tmp_path):
    path = tmp_path / "choice.dbc"
    path.write_text(MULTIPLEXED)
    return path


@pytest.mark.parametrize("page", [1, 2, 3])
def test_the_multiplexer_chooses_signals(multiplexed, page):
    message = load_messages(multiplexed)["Choice"]
    assert message.period == 0.02
    assert [s.multiplexed for s in message.signals] == [(), (1,), (2,), ()]
    given = {"page": page, "one": -12.3, "two": 150, "always": 7}
    present = {1: ["page", "one", "always"], 2: ["page", "two", "always"], 3: ["page", "always"]}
    frames, received = exchange(
        ["Choice"], {f"Choice.{n}": float(v) for n, v in given.items()}, database=multiplexed
    )
    if page < 3:  # cantools refuses a page without signals
        oracle = load_with_cantools(multiplexed)["Choice"]
        assert frames[300].data == oracle.encode({n: given[n] for n in present[page]})
    else:
        assert frames[300].data == bytes([3, 0, 0, 0, 0, 0, 0, 7])
    for name, value in given.items():
        expected = value if name in present[page] else 0.0  # as it was initially
        assert received[f"Choice.{name}"] == pytest.approx(expected, rel=1e-15)


def test_frames_of_can_fd_switch_the_rate_by_their_attribute(multiplexed):
    text = MULTIPLEXED.replace(": 8 A", ": 16 A") + (
        'BA_DEF_ BO_ "CANFD_BRS" ENUM "0","1";\nBA_DEF_DEF_ "CANFD_BRS" "0";\n'
    )
    for value, switches in (("", False), ('BA_ "CANFD_BRS" BO_ 300 1;\n', True)):
        multiplexed.write_text(text + value)
        message = load_messages(multiplexed)["Choice"]
        assert message.fd and message.bit_rate_switch is switches


def test_units_that_are_known_are_those_of_ports(multiplexed):
    node = CanNode(["Choice"], database=multiplexed)
    units = {port.name: str(port.unit) for port in node.inputs if port.unit is not None}
    assert units["Choice.one"] == "rad/s" and "Choice.two" not in units


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "a b"}, "must be named by an identifier"),
        ({"length": 0}, "has 0 bits; 1 to 64"),
        ({"is_float": True}, "has 16 bits; a float has 32 or 64"),
        ({"start": 49}, "is not within the 8 bytes of the message"),
        ({"start": 57, "byte_order": "big_endian"}, "is not within the 8 bytes"),
        ({"byte_order": "middle"}, "has the byte order 'middle'"),
        ({"scale": 0.0}, "has the scale 0.0"),
        ({"initial": 65536.0}, "has the initial value 65536, outside its range from 0 to 65535"),
        ({"minimum": 2.0, "initial": 0}, "has the initial value 0, outside its range from 2 to"),
        ({"minimum": 7.0, "maximum": 6.0}, "has no values: its range is from 7 to 6"),
        ({"multiplexed": (1,)}, "is multiplexed, and none is the multiplexer"),
        ({"multiplexer": True, "signed": True}, "must be an integer without sign"),
    ],
)
def test_a_signal_that_cannot_be(changes, message):
    with pytest.raises(DiagramError, match=f"the CAN message `M`: its signal .*{message}"):
        CanMessage("M", 1, [CanSignal(**({"name": "x", "start": 0, "length": 16} | changes))])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "1"}, "its name must be an identifier"),
        ({"identifier": 1 << 11}, "its identifier 2048 is not a number of 11 bits"),
        ({"identifier": 1 << 29, "extended": True}, "is not a number of 29 bits"),
        ({"size": 9}, "9 bytes of data; it may have 0, 1, 2, 3, 4, 5, 6, 7, 8"),
        ({"size": 9, "fd": True}, "8, 12, 16, 20, 24, 32, 48, 64"),
        ({"bit_rate_switch": True}, "only frames of CAN FD switch the rate"),
        ({"period": 0.0}, "its period must be a positive number"),
        ({"delay": -1.0}, "its delay must be a number of seconds from 0 on"),
        ({"signals": [CanSignal("x", 0, 8), CanSignal("x", 8, 8)]}, "have one name"),
        (
            {"signals": [CanSignal("x", 0, 9), CanSignal("y", 15, 8, "big_endian")]},
            "its signals `x` and `y` overlap at bit 8",
        ),
        (
            {"signals": [CanSignal("p", 0, 8, multiplexer=True),
                         CanSignal("q", 8, 8, multiplexer=True)]},
            "it has several multiplexers",
        ),
    ],
)  # fmt: skip
def test_a_message_that_cannot_be(changes, message):
    with pytest.raises(DiagramError, match=message):
        CanMessage(**({"name": "M", "identifier": 1, "signals": []} | changes))


def test_a_database_that_cannot_be_read(tmp_path):
    with pytest.raises(DeviceError, match="there is no file"):
        load_messages(tmp_path / "missing.dbc")
    (tmp_path / "broken.dbc").write_text("BO_ what")
    with pytest.raises(DeviceError, match="cannot be read as a DBC file"):
        load_messages(tmp_path / "broken.dbc")


def test_initial_values_are_those_of_the_file_or_nearest_to_zero(multiplexed):
    multiplexed.write_text(
        MULTIPLEXED.replace("(1,0) [0|200]", "(1,20) [0|0]")
        + 'BA_DEF_ SG_ "GenSigStartValue" FLOAT -1E9 1E9;\n'
        'BA_DEF_DEF_ "GenSigStartValue" 0;\n'
        'BA_ "GenSigStartValue" SG_ 300 one 55;\nBA_ "GenSigStartValue" SG_ 300 always 999;\n'
    )
    signals = {s.name: s.first_value for s in load_messages(multiplexed)["Choice"].signals}
    assert signals == {"page": 0.0, "one": pytest.approx(5.5), "two": 20.0, "always": 255.0}
    oracle = load_with_cantools(multiplexed)["Choice"]
    assert oracle.get_signal_by_name("one").initial == pytest.approx(5.5)


def test_nested_multiplexers_are_refused(tmp_path):
    nested = MULTIPLEXED.replace("SG_ two m2 : 8|8", "SG_ two m2M : 24|8").replace(
        "SG_ always :", "SG_ deep m5 :"
    )
    path = tmp_path / "nested.dbc"
    path.write_text(nested + "SG_MUL_VAL_ 300 deep two 5-5;\n")
    with pytest.raises(DiagramError, match="`Choice` has several multiplexers"):
        load_messages(path)
