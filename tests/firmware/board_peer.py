"""The host's side of the wire frame in plain Python, written from its description alone."""

from __future__ import annotations

import math
import os
import select
import struct
import time
import tty
import zlib
from dataclasses import dataclass

FLOAT64, SAFE, TRIPPED = 1, 2, 4


@dataclass(frozen=True)
class Frame:
    values: tuple[float, ...]
    sequence: int
    echo: int = 0
    session: int = 0x1234
    flags: int = 0

    def pack(self) -> bytes:
        kind = "d" if self.flags & FLOAT64 else "f"
        head = (0xB1, self.flags, len(self.values), 0, self.session, 0, self.sequence, self.echo)
        body = struct.pack(f"<BBBBHHII{len(self.values)}{kind}", *head, *self.values)
        return body + struct.pack("<I", zlib.crc32(body))

    def encode(self) -> bytes:
        return cobs(self.pack()) + b"\0"


def unpack(data: bytes) -> Frame:
    """Of a frame that must be sound."""
    version, flags, count, zero, session, zeros, sequence, echo = struct.unpack_from(
        "<BBBBHHII", data
    )
    assert (version, zero, zeros) == (0xB1, 0, 0)
    assert zlib.crc32(data[:-4]) == struct.unpack("<I", data[-4:])[0]
    values = struct.unpack(f"<{count}{'d' if flags & FLOAT64 else 'f'}", data[16:-4])
    assert all(map(math.isfinite, values))
    return Frame(values, sequence, echo, session, flags)


def cobs(data: bytes) -> bytes:
    """Consistent overhead byte stuffing: runs without zeros, each after its length plus one."""
    coded = b""
    for run in data.split(b"\0"):
        while len(run) >= 254:
            coded, run = coded + b"\xff" + run[:254], run[254:]
        coded += bytes([len(run) + 1]) + run
    return coded


def uncobs(coded: bytes) -> bytes:
    data, at = b"", 0
    while at < len(coded):
        code = coded[at]
        run = coded[at + 1 : at + code]
        assert code and len(run) == code - 1
        at += code
        data += run + (b"\0" if code < 255 and at < len(coded) else b"")
    return data


class Line:
    """A serial port, by its path or its open file, made raw."""

    def __init__(self, port: str | int) -> None:
        self.fd = port if isinstance(port, int) else os.open(port, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self.fd)
        self._bytes = b""

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def send(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.fd, data) :]

    def receive(self, patience: float = 60.0) -> Frame:
        """The next frame."""
        until = time.monotonic() + patience
        self._bytes = self._bytes.lstrip(b"\0")
        while b"\0" not in self._bytes:
            ready, _, _ = select.select([self.fd], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError(f"no frame within {patience} s; so far {self._bytes.hex()}")
            self._bytes = (self._bytes + os.read(self.fd, 4096)).lstrip(b"\0")
        coded, _, self._bytes = self._bytes.partition(b"\0")
        return unpack(uncobs(coded))
