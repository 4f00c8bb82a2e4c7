"""The other ends of the soak: processes that are devices and a bad network, and log all they see.

    python benchmarks/soak/soak_peers.py relay FOLDER SEED PEER_PORT
    python benchmarks/soak/soak_peers.py udp FOLDER LIFE PORT RELAY_PORT
    python benchmarks/soak/soak_peers.py serial FOLDER LIFE SEED

Each takes orders as lines on its standard input, such as ``mute``, and writes one `WIRE` record for
each frame that it sees, at once, so that one who is killed has told all that he did. The frames are
made by the tests' peer, which was written from docs/reference/frame.md and shares no code with the
engine.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import socket
import sys
import threading
import time
import tty
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from biella.scheduler.devices.virtual._udp_proxy import TO_DEVICE, TO_HOST, Faults, UdpProxy

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "scheduler" / "devices"))
from peer import FLOAT64, TRIPPED, Peer, parse, stuff, unstuff

PERIOD = 1e-3  # s between frames of a peer
TIMEOUT = 0.2  # s without a frame, on both sides
QUIET = Faults(delay=0.0005, jitter=0.001)
BAD = Faults(
    delay=0.0005, jitter=0.001, drop=0.05, duplicate=0.02, reorder=0.02, corrupt=0.02, replay=0.02
)
SLOW = Faults(delay=0.05, jitter=0.02, drop=0.05)
SERIAL_FAULTS = {
    "dropped": 0.05, "corrupted": 0.02, "duplicated": 0.02, "replayed": 0.02, "truncated": 0.01,
    "garbage": 0.01,
}  # fmt: skip
_REMEMBERED = 100  # frames that may come again
_LINE = 2048  # bytes that wait for the line, beyond which a frame is not begun

DOWN, UP = 0, 1  # to the device, to the host
WIRE = np.dtype(
    [
        ("time", "<f8"), ("way", "u1"), ("valid", "u1"), ("cut", "u1"), ("flags", "u1"),
        ("session", "<u2"), ("life", "<u2"), ("sequence", "<u4"), ("echo", "<u4"),
        ("values", "<f8", 3),
    ]
)  # fmt: skip
"""A frame on a wire: `cut` is one that did not get through, `life` that of the process."""


def mark(life: float, number: float) -> float:
    """Return what a device sends beside two numbers, so that no others pass for them."""
    return float((int(number) * 2654435761 + int(life) * 40503 + 12345) % (1 << 20))


class WireLog:
    """Records of frames, appended to a file; each is there as soon as it is written."""

    def __init__(self, path: Path, life: int = 0) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.life = life

    def note(self, way: int, values: Sequence[float], **fields: int) -> None:
        """Note what was said."""
        record = np.zeros((), dtype=WIRE)
        record["time"], record["way"], record["life"] = time.monotonic(), way, self.life
        for name, value in fields.items():
            record[name] = value
        record["values"][: len(values)] = values
        os.write(self._file, record.tobytes())

    def see(self, way: int, data: bytes, *, cut: bool = False) -> None:
        """Note a frame, or what is none."""
        try:
            frame = parse(data)
        except Exception:
            self.note(way, (), cut=cut)
            return
        self.note(
            way, frame.values[:3], cut=cut, valid=1, flags=frame.flags, session=frame.session,
            sequence=frame.sequence, echo=frame.echo,
        )  # fmt: skip


class Orders:
    """Lines from standard input, read by a thread of their own; the end of it ends the process."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            self._lines.append(line.strip())
        os._exit(0)

    def take(self) -> list[str]:
        """Return what has come."""
        taken = []
        while self._lines:
            taken.append(self._lines.popleft())
        return taken


def say(text: str) -> None:
    """Answer who gives orders."""
    print(text, flush=True)


def run_relay(folder: Path, seed: int, port: int) -> None:
    """Be the network before the UDP peer at `port`; all that passes to the host is logged."""
    wire, orders = WireLog(folder / "net.wire"), Orders()

    def watch(way: str, fate: str, data: bytes) -> None:
        if way == TO_DEVICE and fate in ("arrived", "cut"):
            wire.see(DOWN, data, cut=fate == "cut")
        elif way == TO_HOST and fate == "passed":
            wire.see(UP, data)

    kinds = {"quiet": QUIET, "bad": BAD, "slow": SLOW}
    with UdpProxy(("127.0.0.1", port), seed=seed, faults=BAD, watch=watch) as relay:
        say(f"{relay.port} {relay._back.getsockname()[1]}")
        while True:
            for order in orders.take():
                if order in kinds:
                    relay.faults = {TO_DEVICE: kinds[order], TO_HOST: kinds[order]}
                elif order in ("cut", "join"):
                    relay.is_cut = order == "cut"
                told = {"counts": relay.counts, "host": relay._host and relay._host[1]}
                say(json.dumps(told) if order == "counts" else order)
            time.sleep(0.005)


class Device(Peer):
    """What both peers are: one who says a marked number each millisecond, and has a watchdog."""

    def __init__(self, life: int, log: WireLog) -> None:
        super().__init__()
        self.life, self.log = life, log
        self.mute = False
        self.heard_at = time.monotonic()

    def take(self, data: bytes) -> None:
        """Hear a frame of the host, unless it is old."""
        self.log.see(DOWN, data)
        try:
            frame = parse(data)
        except Exception:
            return
        if self.session in (0, frame.session) and 0 < (frame.sequence - self.echo) % 2**32 < 2**31:
            self.session, self.echo = frame.session, frame.sequence
            self.heard_at = time.monotonic()

    def next_frame(self) -> bytes:
        tripped = time.monotonic() - self.heard_at > TIMEOUT
        number = self.sent + 1
        values = (self.life, number, mark(self.life, number))
        return self.frame(*values, flags=FLOAT64 | (TRIPPED if tripped else 0))


def pace(due: float) -> float:
    """Return when the next frame is due; those that were missed are left out."""
    return max(due + PERIOD, time.monotonic())


def run_udp(folder: Path, life: int, port: int, relay_port: int) -> None:
    """Be a device on UDP."""
    device, orders = Device(life, WireLog(folder / "net_peer.wire", life)), Orders()
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.bind(("127.0.0.1", port))
    line.setblocking(False)
    due = time.monotonic()
    say("ready")
    while True:
        if select.select([line], [], [], max(0.0, due - time.monotonic()))[0]:
            with contextlib.suppress(OSError):
                device.take(line.recv(65536))
            continue
        due = pace(due)
        for order in orders.take():
            device.mute = order == "mute"
            say(order)
        if not device.mute:
            line.sendto(device.next_frame(), ("127.0.0.1", relay_port))


class SerialLine:
    """The far end of a pty whose near end has a name that stays; drops what it has no room for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.is_plugged = False
        self.plug_in()

    def plug_in(self) -> None:
        self.master, self._slave = os.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self.master, False)
        fresh = self._path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(os.ttyname(self._slave))
        fresh.rename(self._path)
        self._pending, self._rest = b"", b""
        self.is_plugged = True

    def pull_out(self) -> None:
        # The name goes first: the number of a pty that is closed may be somebody else's next.
        self._path.unlink()
        os.close(self.master)
        os.close(self._slave)
        self.is_plugged = False

    def read(self, wait: float) -> list[bytes]:
        """Return the messages that have come within `wait` seconds."""
        if not self.is_plugged:
            time.sleep(wait)
            return []
        if not select.select([self.master], [], [], wait)[0]:
            return []
        *whole, self._rest = (self._rest + os.read(self.master, 65536)).split(b"\0")
        return [piece for piece in whole if piece]

    @property
    def has_room(self) -> bool:
        """Whether the line takes more, or is far behind."""
        self._push()
        return len(self._pending) <= _LINE

    def write(self, messages: Sequence[bytes]) -> None:
        self._pending += b"".join(stuff(message) + b"\0" for message in messages)
        self._push()

    def _push(self) -> None:
        with contextlib.suppress(BlockingIOError):
            if self._pending:
                self._pending = self._pending[os.write(self.master, self._pending) :]


def spoil(data: bytes, draw: random.Random) -> bytes:
    """Flip one to three bits."""
    spoilt = bytearray(data)
    for bit in draw.sample(range(8 * len(data)), draw.randint(1, 3)):
        spoilt[bit // 8] ^= 1 << bit % 8
    return bytes(spoilt)


def faulty(
    data: bytes, past: Sequence[bytes], draw: random.Random, counts: Counter[str]
) -> list[bytes]:
    """Return the messages, before stuffing, that a bad line makes of a frame."""
    hit = {name for name, chance in SERIAL_FAULTS.items() if draw.random() < chance}
    counts.update(hit)
    out = [] if "dropped" in hit else [spoil(data, draw) if "corrupted" in hit else data]
    if "duplicated" in hit:
        out = out * 2
    if "replayed" in hit:
        out.append(draw.choice(past))
    if "truncated" in hit:
        out.append(data[: draw.randrange(1, len(data))])
    if "garbage" in hit:
        out.append(draw.randbytes(draw.randrange(1, 60)))
    return out


def run_serial(folder: Path, life: int, seed: int) -> None:
    """Be a device on a serial line, which is a bad one."""
    log, orders = WireLog(folder / "line.wire", life), Orders()
    device, line = Device(life, log), SerialLine(folder / "tty")
    draw, counts = random.Random(f"{seed} {life}"), Counter[str]()
    past: deque[bytes] = deque(maxlen=_REMEMBERED)
    due, bad = time.monotonic(), True
    say("ready")
    while True:
        for message in line.read(max(0.0, due - time.monotonic())):
            try:
                device.take(unstuff(message))
            except ValueError:
                log.note(DOWN, ())
        if time.monotonic() < due:
            continue
        due = pace(due)
        for order in orders.take():
            if order in ("mute", "speak"):
                device.mute = order == "mute"
            elif order == "unplug":
                line.pull_out()
            elif order == "plug":
                line.plug_in()
            elif order in ("bad", "quiet"):
                bad = order == "bad"
            say(json.dumps(counts) if order == "counts" else order)
        if device.mute or not line.is_plugged or not line.has_room:
            continue
        frame = device.next_frame()
        past.append(frame)
        messages = faulty(frame, past, draw, counts) if bad else [frame]
        for message in messages:
            log.see(UP, message)
        line.write(messages)


def main() -> None:
    """Be one of them."""
    role, folder, *numbers = sys.argv[1:]
    roles = {"relay": run_relay, "udp": run_udp, "serial": run_serial}
    roles[role](Path(folder), *map(int, numbers))


if __name__ == "__main__":
    main()
