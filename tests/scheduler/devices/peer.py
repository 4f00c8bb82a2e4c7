"""The device's side of the frame, written from docs/frame.md and not from the engine's C."""

from __future__ import annotations

import dataclasses
import errno
import os
import select
import socket
import struct
import termios
import tty
import zlib
from collections.abc import Sequence
from pathlib import Path

FLOAT64, SAFE, TRIPPED = 1, 2, 4
_HEAD = struct.Struct("<BBBBHHII")


@dataclasses.dataclass(frozen=True)
class Frame:
    """What a frame says. The last two are there to write wrong ones."""

    values: Sequence[float] = ()
    session: int = 0
    sequence: int = 1
    echo: int = 0
    flags: int = 0
    count: int | None = None
    version: int = 0xB1

    def __bytes__(self) -> bytes:
        count = len(self.values) if self.count is None else self.count
        kind = "d" if self.flags & FLOAT64 else "f"
        head = _HEAD.pack(
            self.version, self.flags, count, 0, self.session, 0, self.sequence, self.echo
        )
        return sign(head + struct.pack(f"<{len(self.values)}{kind}", *self.values))


def sign(body: bytes) -> bytes:
    """Return `body` with its CRC."""
    return body + struct.pack("<I", zlib.crc32(body))


def parse(data: bytes) -> Frame:
    """Return what a frame says; ValueError if it is none."""
    if len(data) < 20 or zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
        raise ValueError("CRC")
    version, flags, count, zero, session, zeros, sequence, echo = _HEAD.unpack_from(data)
    if version != 0xB1 or zero or zeros:
        raise ValueError("form")
    kind = "d" if flags & FLOAT64 else "f"
    values = struct.unpack(f"<{count}{kind}", data[16:-4])
    return Frame(values, session, sequence, echo, flags)


def stuff(data: bytes) -> bytes:
    """COBS: cut at zeros (a zero added at the end), each piece in blocks of at most 254 bytes."""
    out = bytearray()
    for number, piece in enumerate(pieces := data.split(b"\0")):
        while len(piece) >= 254:
            out += b"\xff" + piece[:254]
            piece = piece[254:]
            if not piece and number == len(pieces) - 1:
                return bytes(out)
        out += bytes([len(piece) + 1]) + piece
    return bytes(out)


def unstuff(data: bytes) -> bytes:
    """Undo `stuff`."""
    out = bytearray()
    while data:
        code = data[0]
        if code == 0 or len(data) < code:
            raise ValueError("COBS")
        out += data[1:code]
        data = data[code:]
        if code < 255 and data:
            out += b"\0"
    return bytes(out)


class Peer:
    """A device that speaks frames: keeps its session, counts, echoes."""

    def __init__(self) -> None:
        self.session = 0
        self.sent = 0
        self.echo = 0
        self.heard: list[Frame] = []

    def hear(self, data: bytes) -> Frame:
        frame = parse(data)
        self.session, self.echo = frame.session, frame.sequence
        self.heard.append(frame)
        return frame

    def frame(self, *values: float, flags: int = 0) -> bytes:
        """Return the next frame."""
        self.sent += 1
        return bytes(Frame(values, self.session, self.sent, self.echo, flags))


class SerialEnd:
    """The other end of a serial line: the master of a pty, whose slave has a name that stays."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ttyTest"
        self.master = -1
        self.rest = b""
        self.plug_in()

    def plug_in(self) -> None:
        self.master, slave = os.openpty()
        tty.setraw(slave)
        os.set_blocking(self.master, False)
        fresh = self.path.with_suffix(".new")
        fresh.symlink_to(os.ttyname(slave))
        fresh.rename(self.path)
        os.close(slave)
        self.rest = b""

    def pull_out(self) -> None:
        os.close(self.master)
        self.master = -1

    def write(self, data: bytes) -> None:
        """Write all; what the line has taken can be read at the other end at once."""
        while data:
            try:
                data = data[os.write(self.master, data) :]
            except BlockingIOError:
                select.select([], [self.master], [], 1.0)

    def read(self) -> bytes:
        """Return all that has come."""
        data = b""
        while True:
            try:
                data += os.read(self.master, 65536)
            except BlockingIOError:
                return data
            except OSError as error:  # no slave is open
                if error.errno == errno.EIO:
                    return data
                raise

    def frames(self) -> list[bytes]:
        """Return the whole frames that have come."""
        *whole, self.rest = (self.rest + self.read()).split(b"\0")
        return [unstuff(piece) for piece in whole if piece]

    def close(self) -> None:
        if self.master >= 0:
            self.pull_out()

    @property
    def baud(self) -> int:
        return termios.tcgetattr(self.master)[4]


class UdpEnd:
    """The other end of a UDP device."""

    def __init__(self, family: int = socket.AF_INET) -> None:
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
        self.port: int = self.socket.getsockname()[1]
        self.to: tuple[str, int] | None = None

    def write(self, data: bytes) -> None:
        assert self.to is not None
        self.socket.sendto(data, self.to)

    def frames(self) -> list[bytes]:
        """Return the datagrams that have come."""
        got = []
        while select.select([self.socket], [], [], 0)[0]:
            data, sender = self.socket.recvfrom(65536)
            self.to = self.to or sender
            got.append(data)
        return got

    def close(self) -> None:
        self.socket.close()
