"""Hostile frames against a real-time run: none becomes data, each is counted, none ends the run.

Genuine values carry a mark; hostile ones do not, so that one that was taken shows in the log.
"""

from __future__ import annotations

import dataclasses
import os
import random
import struct
import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import pytest

from biella import Diagram, run_realtime
from biella.blocks import Constant, Gain
from biella.scheduler.devices import _registry as registry
from biella.scheduler.devices._driver import DeviceDriver
from biella.scheduler.devices._registry import kind_of

from .peer import (
    FLOAT64,
    Peer,
    SerialEnd,
    TcpEnd,
    UdpEnd,
    free_tcp_port,
    parse,
    sign,
    stuff,
    wait_for,
)

pytestmark = pytest.mark.engine

NOT_FINITE = [float("nan"), float("inf"), -float("inf")]
AT_ONCE = 20  # hostile frames between two genuine ones
BATCHES = [pytest.param(100), pytest.param(5000, marks=pytest.mark.slow)]


def mark(number):
    return float((int(number) * 2654435761 + 77) % 65521)


def diagram():
    d = Diagram("fuzzed", step=1e-3)
    said = d.add(Constant([0.0, mark(0)]), name="said")
    d.connect(said, d.add(Gain(1.0), name="seen"))
    d.add(Constant(5.0), name="told")
    d.connect(d["told"], d.add(Gain(1.0), name="lever"))
    return d


def rig(**options):
    return {
        "devices": {
            "board": {
                "timeout": 60.0,
                "receive": {"said": {"width": 2, "safe": [0, mark(0)]}},
                "send": {"told": {"safe": 0}},
                **options,
            }
        },
        "signals": {"said": "board.said", "told": "board.told"},
    }


class Run:
    """A real-time run of the diagram, and what must become of all that it was sent."""

    def __init__(self, stack, **options):
        self.live = stack.enter_context(
            run_realtime(diagram(), bind=rig(**options), overrun="skip")
        )
        self.frames = self.corrupt = self.stale = 0

    @property
    def counts(self):
        return self.live._devices["board"].counts

    def settle(self):
        """Wait until all that was sent is counted, and as what it is."""

        def all_came():
            c = self.counts
            came = c["frames"] + c["corrupt"] + c["stale"]
            return came >= self.frames + self.corrupt + self.stale

        wait_for(all_came)
        counts = self.counts
        expected = (self.frames, self.corrupt, self.stale)
        assert (counts["frames"], counts["corrupt"], counts["stale"]) == expected

    def check(self, least):
        """Judge the log: only marked values, none older than those before."""
        result = self.live.stop()
        numbers, marks = result["said"].T
        np.testing.assert_array_equal(marks, [mark(number) for number in numbers])
        assert (np.diff(numbers) >= 0).all() and numbers[-1] >= least
        assert result.info["realtime"]["end"] == "cancel"


# --- frames ---


def random_bytes(draw, good, peer):
    return draw.randbytes(draw.randrange(1, 80)), "corrupt"


def truncated(draw, good, peer):
    return good[: draw.randrange(1, len(good))], "corrupt"


def longer(draw, good, peer):
    return good + draw.randbytes(draw.randrange(1, 3000)), "corrupt"


def flipped(draw, good, peer):
    """Up to three bits, which a CRC-32 always finds in a frame of this length."""
    spoilt = bytearray(good)
    for bit in draw.sample(range(8 * len(good)), draw.randint(1, 3)):
        spoilt[bit // 8] ^= 1 << bit % 8
    return bytes(spoilt), "corrupt"


def changed(draw, good, peer):
    """A frame with its CRC, but one that no device sends."""
    frame = parse(good)
    hostile = (frame.values[0] + 1.0, -1.0)
    bad = draw.choice(NOT_FINITE)
    changes = draw.choice([
        {"version": draw.choice([0, 0xB0, 0xB2, 0xFF])},
        {"count": draw.choice([0, 1, 3, 255])},
        {"values": (*hostile, 1.0)},
        {"values": (hostile[0],)},
        {"values": ()},
        {"values": draw.choice([(bad, hostile[1]), (hostile[0], bad)])},
        {"flags": frame.flags ^ FLOAT64, "count": 5},
    ])  # fmt: skip
    return bytes(dataclasses.replace(frame, **({"values": hostile} | changes))), "corrupt"


def not_zero(draw, good, peer):
    """Bytes that must be 0 are not, and the CRC is right."""
    body = bytearray(good[:-4])
    body[draw.choice([3, 6, 7])] = draw.randrange(1, 256)
    return sign(bytes(body)), "corrupt"


def other_session(draw, good, peer):
    session = draw.choice([s for s in (1, 0xFFFF, peer.session ^ 1) if s != peer.session])
    return bytes(dataclasses.replace(parse(good), session=session, values=(1.0, -1.0))), "stale"


def wrong_sequence(draw, good, peer):
    """The last one again, an older one, or so far ahead that it is behind."""
    back = draw.choice([0, 1, draw.randrange(2, 2**31), 2**31])
    sequence = (peer.sent - back) % 2**32
    frame = dataclasses.replace(parse(good), sequence=sequence, values=(9.0, -1.0))
    return bytes(frame), "stale"


def old_echo(draw, good, peer):
    """Newer by its number, but it knows less than the one before."""
    if peer.echo < 2:
        return wrong_sequence(draw, good, peer)
    echo, ahead = draw.randrange(1, peer.echo), peer.sent + draw.randrange(1, 1000)
    frame = dataclasses.replace(parse(good), sequence=ahead, echo=echo, values=(9.0, -1.0))
    return bytes(frame), "stale"


HOSTILE = [
    random_bytes, truncated, longer, flipped, changed, not_zero, other_session, wrong_sequence,
    old_echo,
]  # fmt: skip


class PairedPeer(Peer):
    """A device that says marked numbers."""

    def genuine(self):
        number = self.sent + 1
        return self.frame(number, mark(number), flags=FLOAT64)


def hear_newest(peer, frames):
    for data in frames:
        if 0 < (parse(data).sequence - peer.echo) % 2**32 < 2**31:
            peer.hear(data)


def fuzz_frames(run, batches, send, hear):
    draw, peer = random.Random(6), PairedPeer()
    hear_newest(peer, hear())
    for _ in range(batches):
        good = peer.genuine()
        send(good)
        run.frames += 1
        for _ in range(AT_ONCE):
            data, kind = draw.choice(HOSTILE)(draw, good, peer)
            setattr(run, kind, getattr(run, kind) + send(data, kind))
        run.settle()
        hear_newest(peer, hear())
    run.check(least=batches)


@pytest.mark.parametrize("batches", BATCHES)
def test_datagrams(batches):
    with ExitStack() as stack:
        end = UdpEnd()
        stack.callback(end.close)
        run = Run(stack, driver="udp", host=end.host, port=end.port, precision="float64")
        first, sender = end.socket.recvfrom(65536)
        end.to = sender[1]
        waiting = [first]

        def send(data, kind=""):
            end.write_frame(data)
            return 1

        def hear():
            heard, waiting[:] = waiting + end.frames(), []
            return heard

        fuzz_frames(run, batches, send, hear)


@pytest.mark.parametrize("batches", BATCHES)
def test_frames_on_a_serial_line(batches, tmp_path):
    with ExitStack() as stack:
        end = SerialEnd(tmp_path)
        stack.callback(end.close)
        run = Run(stack, driver="serial", port=str(end.path), precision="float64")
        write_all(end, b"\0")
        fuzz_line(run, batches, lambda data: write_all(end, data), end.frames)


@pytest.mark.parametrize("batches", BATCHES)
@pytest.mark.parametrize("connects", ["we", "it"])
def test_frames_on_a_connection(batches, connects):
    with ExitStack() as stack:
        end = TcpEnd()
        stack.callback(end.close)
        place: dict[str, Any] = {"host": end.host, "port": end.port}
        if connects == "it":
            place = {"bind_port": free_tcp_port()}
        run = Run(stack, driver="tcp", precision="float64", **place)
        if connects == "it":
            end.connect(place["bind_port"])
        else:
            end.accept()
        draw = random.Random(12)

        def send(data):
            """In pieces of any size."""
            while data:
                cut = draw.choice([1, 7, 4096, len(data)])
                end.open_connection.sendall(data[:cut])
                data = data[cut:]

        fuzz_line(run, batches, send, end.frames)


def fuzz_line(run, batches, write, hear):
    """Fuzz a line of bytes, where noise spoils what is stuffed, too."""
    draw, genuine = random.Random(8), [b""]

    def send(data, kind=""):
        line = stuff(data)
        if not kind:
            genuine[0] = line
        elif kind == "corrupt" and draw.random() < 0.3:
            line = spoil_line(draw, genuine[0])
        write(line + b"\0")
        return sum(bool(piece) for piece in line.split(b"\0"))

    fuzz_frames(run, batches, send, hear)


def spoil_line(draw, line):
    """Return what noise on the line makes of a frame that is stuffed."""
    kind = draw.randrange(3)
    if kind == 0:
        return line[: draw.randrange(1, len(line))]
    return draw.randbytes(draw.randrange(1, 3000)) if kind == 1 else flipped(draw, line, None)[0]


def write_all(end, data):
    """Write to a line whose reader may be slow."""
    while data:
        try:
            data = data[os.write(end.master, data) :]
        except BlockingIOError:
            time.sleep(5e-4)


# --- lines of text ---


def line_of(number):
    text = b"%d,%d" % (number, mark(number))
    total = 0
    for byte in text:
        total ^= byte
    return text + b"*%02X" % total


def hostile_line(draw, good):
    kinds = [
        lambda: good[: draw.randrange(1, len(good))],
        lambda: draw.randbytes(draw.randrange(1, 60)),
        lambda: draw.randbytes(9000),  # longer than any line
        lambda: good.partition(b"*")[0],  # no checksum
        lambda: b"1,2,3" + good,
        lambda: draw.choice([b"nan,1*", b"inf,2*", b"0x10,1*", b"1e999,1*"]) + b"00",
        lambda: (
            bytes(a ^ (b == at) << draw.randrange(8) for b, a in enumerate(good))
            if (at := draw.randrange(len(good))) >= 0
            else b""
        ),
    ]
    line = draw.choice(kinds)()
    return line if line.upper() != good.upper() else good[:-1]


@pytest.mark.parametrize("batches", BATCHES)
def test_lines_of_text(batches, tmp_path):
    draw = random.Random(9)
    with ExitStack() as stack:
        end = SerialEnd(tmp_path)
        stack.callback(end.close)
        run = Run(stack, driver="text", port=str(end.path), checksum=True)
        write_all(end, b"\n")
        for number in range(1, batches + 1):
            good = line_of(number)
            write_all(end, good + b"\n")
            run.frames += 1
            for _ in range(AT_ONCE):
                line = hostile_line(draw, good)
                write_all(end, line + b"\n")
                run.corrupt += sum(bool(piece.removesuffix(b"\r")) for piece in line.split(b"\n"))
            run.settle()
            end.read()
        run.check(least=batches)


# --- CAN ---

DBC = """VERSION ""

BS_:

BU_: host drive

BO_ 256 Command: 8 host
 SG_ Told : 0|16@1- (0.01,0) [-300|300] "" drive

BO_ 512 Pair: 8 drive
 SG_ Number : 0|32@1+ (1,0) [0|4294967295] "" host
 SG_ Mark : 32|32@1- (1,0) [0|0] "" host

SIG_VALTYPE_ 512 Mark : 1;
"""


@pytest.mark.parametrize("batches", BATCHES)
def test_messages_on_a_can_bus(batches, tmp_path):
    can = pytest.importorskip("can")
    draw, channel = random.Random(10), f"fuzz {batches}"
    (tmp_path / "drive.dbc").write_text(DBC)
    table = rig(driver="can", interface="virtual", channel=channel, dbc=str(tmp_path / "drive.dbc"))
    table["devices"]["board"] |= {
        "receive": {
            "number": {"message": "Pair", "signal": "Number"},
            "mark": {"message": "Pair", "signal": "Mark", "safe": mark(0)},
        },
        "send": {"told": {"safe": 0, "message": "Command", "signal": "Told"}},
    }
    table["signals"] = {"number": "board.number", "mark": "board.mark", "told": "board.told"}
    d = Diagram("fuzzed", step=1e-3)
    for name in ("number", "mark", "told"):
        d.connect(d.add(Constant(0.0), name=name), d.add(Gain(1.0), name=f"sink_{name}"))

    def hostile():
        data = struct.pack("<If", draw.randrange(2**32), -1.0)
        return draw.choice([
            {"arbitration_id": draw.randrange(513, 2048), "data": data},
            {"arbitration_id": 512, "data": data[: draw.randrange(8)]},
            {"arbitration_id": 512, "data": data, "is_extended_id": True},
            {"arbitration_id": 512, "is_remote_frame": True, "dlc": 8},
            {"arbitration_id": 512, "data": data, "is_error_frame": True},
            {"arbitration_id": 512, "data": struct.pack("<If", 7, draw.choice(NOT_FINITE))},
        ])  # fmt: skip

    with can.Bus(interface="virtual", channel=channel) as bus, run_realtime(d, bind=table) as live:
        for number in range(1, batches + 1):
            for _ in range(AT_ONCE):
                bus.send(can.Message(**({"is_extended_id": False} | hostile())))
            if number % 20 == 0:  # and let it be seen before the genuine one comes
                wait_for(partial(lambda tick: live.tick > tick + 5, live.tick))
            pair = struct.pack("<If", number, mark(number))
            bus.send(can.Message(arbitration_id=512, data=pair, is_extended_id=False))
            wait_for(partial(lambda number: live.latest("number") == number, number))
        result = live.stop()
    pairs = zip(result["number"], result["mark"], strict=True)
    assert all(found == mark(number) for number, found in pairs)
    device = result.info["realtime"]["devices"]["board"]
    assert device["frames"] >= batches
    assert device["losses"] == 0  # a message with a NaN is not a reason to lose the bus


# --- drivers in Python ---


class HostileDriver(DeviceDriver):
    """Reads a marked number and, more often, what it may not."""

    retry = 1e-3
    draw = random.Random(11)
    number = 0
    faults = 0

    def read(self):
        if threading.current_thread().name != "biella driver board":
            raise AssertionError
        kind = HostileDriver.draw.randrange(10)
        HostileDriver.faults += kind < 9
        if kind == 0:
            raise OSError("gone")
        if kind == 1:
            raise SystemExit
        if kind == 2:
            raise KeyboardInterrupt
        wrong = [
            [float("nan"), 1.0], [1.0], [1.0, 2.0, 3.0], "text", [None, 1.0], object(),
        ]  # fmt: skip
        if kind < 9:
            return wrong[kind - 3]
        HostileDriver.number += 1
        return [HostileDriver.number, mark(HostileDriver.number)]


@pytest.mark.parametrize("batches", BATCHES)
def test_a_driver_in_python(batches, monkeypatch):
    monkeypatch.setattr(HostileDriver, "number", 0)
    monkeypatch.setattr(HostileDriver, "faults", 0)
    known = registry.find_driver
    monkeypatch.setattr(
        registry, "find_driver",
        lambda name: (kind_of(name, HostileDriver), "") if name == "hostile" else known(name),
    )  # fmt: skip
    monkeypatch.setattr("biella.scheduler.binding._rig.find_driver", registry.find_driver)
    with ExitStack() as stack:
        run = Run(stack, driver="hostile", on_loss="hold")
        wait_for(lambda: HostileDriver.number >= min(batches, 500))
        wait_for(lambda: run.counts["frames"] > 0)
        assert run.counts["losses"] > 0
        run.check(least=1)
        assert HostileDriver.faults > HostileDriver.number
