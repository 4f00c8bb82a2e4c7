"""The device's side of the frame, written from docs/reference/frame.md, not from the engine's C."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import select
import socket
import struct
import sys
import termios
import time
import zlib
from array import array
from collections.abc import Callable, Sequence
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
        self.sent = (self.sent + 1) % 2**32
        return bytes(Frame(values, self.session, self.sent, self.echo, flags))


class StreamEnd:
    """The other end of a line of bytes."""

    rest = b""

    def write(self, data: bytes) -> None:
        raise NotImplementedError

    def read(self) -> bytes:
        """Return all that has come."""
        raise NotImplementedError

    def read_until(self, end: bytes, count: int = 1) -> list[bytes]:
        """Return as many messages as have come, at least `count`."""
        messages: list[bytes] = []

        def enough() -> bool:
            *whole, self.rest = (self.rest + self.read()).split(end)
            messages.extend(piece for piece in whole if piece)
            return len(messages) >= count

        wait_for(enough)
        return messages

    def write_frame(self, *frames: bytes) -> None:
        self.write(b"".join(stuff(frame) + b"\0" for frame in frames))

    def frames(self, count: int = 1) -> list[bytes]:
        """Return the whole frames that have come, at least `count`."""
        return [unstuff(piece) for piece in self.read_until(b"\0", count)]


class SerialEnd(StreamEnd):
    """The other end of a serial line: the master of a pty, whose slave has a name that stays.

    It is a terminal that echoes and edits lines until somebody makes it raw.

    Bytes take a moment from one end to the other, so both `write` and `frames` see that they came.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ttyTest"
        self.plug_in()

    def plug_in(self) -> None:
        self.master, self.slave = os.openpty()
        os.set_blocking(self.master, False)
        fresh = self.path.with_suffix(".new")
        fresh.symlink_to(os.ttyname(self.slave))
        fresh.rename(self.path)
        self.rest = b""

    def pull_out(self) -> None:
        os.close(self.master)
        os.close(self.slave)
        self.master = self.slave = -1

    def write(self, data: bytes) -> None:
        waiting = self._waiting()
        assert waiting + len(data) < 4096, "more than the line holds"
        assert os.write(self.master, data) == len(data)
        wait_for(lambda: self._waiting() == waiting + len(data))

    def _waiting(self) -> int:
        count = array("i", [0])
        fcntl.ioctl(self.slave, termios.FIONREAD, count)
        return count[0]

    def read(self) -> bytes:
        data = b""
        while select.select([self.master], [], [], 0)[0]:
            data += os.read(self.master, 65536)
        return data

    @property
    def speeds(self) -> tuple[int, int]:
        """Of the slave, in and out, as Linux keeps them: struct termios2."""
        line = fcntl.ioctl(self.slave, 0x802C542A, bytes(44))
        return struct.unpack_from("<II", line, 36)

    def close(self) -> None:
        if self.master >= 0:
            self.pull_out()


class UdpEnd:
    """The other end of a UDP device. On loopback a datagram has come when it is sent."""

    def __init__(self, family: int = socket.AF_INET) -> None:
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.settimeout(60)
        self.host = "127.0.0.1" if family == socket.AF_INET else "::1"
        self.socket.bind((self.host, 0))
        self.port: int = self.socket.getsockname()[1]
        self.to = 0

    def write_frame(self, *frames: bytes) -> None:
        for frame in frames:
            self.socket.sendto(frame, (self.host, self.to))

    def frames(self, count: int = 1) -> list[bytes]:
        """Return the datagrams that have come, at least `count`."""
        got: list[bytes] = []

        def enough() -> bool:
            while select.select([self.socket], [], [], 0)[0]:
                got.append(self.socket.recv(65536))
            return len(got) >= count

        wait_for(enough)
        return got

    def close(self) -> None:
        self.socket.close()


class TcpEnd(StreamEnd):
    """The other end of a connection, whichever side begins it: `accept`, or `connect`.

    On loopback bytes have come when they have left, so `write` sees that they have.
    """

    connection: socket.socket | None = None

    def __init__(self, family: int = socket.AF_INET, receive_buffer: int = 0) -> None:
        self.family = family
        self.host = "127.0.0.1" if family == socket.AF_INET else "::1"
        self.port = 0
        self.receive_buffer = receive_buffer
        self.listen()

    def listen(self) -> None:
        """Be there for who connects, always at the same port."""
        self.listener = socket.socket(self.family, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self.receive_buffer:
            buffer = socket.SO_RCVBUF, self.receive_buffer
            self.listener.setsockopt(socket.SOL_SOCKET, *buffer)
        self.listener.bind((self.host, self.port))
        self.listener.listen()
        self.port = self.listener.getsockname()[1]

    def accept(self) -> None:
        wait_for(lambda: bool(select.select([self.listener], [], [], 0)[0]))
        self._begin(self.listener.accept()[0])

    def connect(self, port: int) -> None:
        self._begin(socket.create_connection((self.host, port), timeout=60))

    def _begin(self, connection: socket.socket) -> None:
        self.connection, self.rest, self.has_ended = connection, b"", False
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def open_connection(self) -> socket.socket:
        assert self.connection is not None, "there is no connection"
        return self.connection

    def write(self, data: bytes) -> None:
        self.open_connection.sendall(data)
        wait_for(lambda: self._count_unsent() == 0)

    def _count_unsent(self) -> int:
        count = array("i", [0])
        if sys.platform == "linux":
            fcntl.ioctl(self.open_connection, 0x894B, count)  # SIOCOUTQNSD
        return count[0]

    def read(self) -> bytes:
        data = b""
        while not self.has_ended and select.select([self.open_connection], [], [], 0)[0]:
            try:
                piece = self.open_connection.recv(65536)
            except ConnectionError:
                piece = b""
            data += piece
            self.has_ended = not piece
        return data

    def hang_up(self) -> None:
        self.open_connection.close()
        self.connection = None

    def close(self) -> None:
        self.listener.close()
        if self.connection:
            self.hang_up()


def free_tcp_port(host: str = "127.0.0.1") -> int:
    with socket.socket(
        socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM
    ) as trial:
        trial.bind((host, 0))
        return trial.getsockname()[1]


def wait_for(condition: Callable[[], bool]) -> None:
    """Return when `condition` holds: at once, or as soon as the kernel has done its part."""
    for _ in range(20000):
        if condition():
            return
        time.sleep(0.001)
    raise TimeoutError
