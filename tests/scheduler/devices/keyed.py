"""Both sides of authenticated frames, written from docs/reference/frame.md with hashlib alone."""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from collections.abc import Callable

from .peer import FLOAT64, SAFE, Frame

KEY = bytes(range(100, 132))
HOST, DEVICE = b"\x80", b"\xc0"
NONE = bytes(16)
_HEAD = struct.Struct("<BBBBHHII")
_HELLO = struct.Struct("<BBHHHII16s16s")


def mac(key: bytes, message: bytes) -> bytes:
    """Return the 32 bytes of the code."""
    return hashlib.blake2s(message, key=key).digest()


def sign(key: bytes, body: bytes) -> bytes:
    """Return `body` with its tag."""
    return body + mac(key, body)[:16]


def is_hello(data: bytes) -> bool:
    return len(data) == 64 and data[0] == 0xB2 and bool(data[1] & 0x80)


class Hello:
    """A message of the handshake: `kind` is HOST or DEVICE."""

    def __init__(self, kind: bytes, host: bytes, device: bytes = NONE, *, session: int = 0,
                 number: int = 0) -> None:  # fmt: skip
        self.kind, self.host, self.device = kind, host, device
        self.session, self.number = session, number

    def pack(self, key: bytes = KEY) -> bytes:
        wraps, sequence = divmod(self.number, 2**32)
        fields = 0xB2, self.kind[0], 0, self.session, wraps, sequence, 0, self.host, self.device
        return sign(key, _HELLO.pack(*fields))

    @staticmethod
    def parse(data: bytes, key: bytes = KEY) -> Hello:
        assert is_hello(data) and hmac.compare_digest(sign(key, data[:-16]), data)
        _, kind, zero, session, wraps, sequence, zeros, host, device = _HELLO.unpack(data[:-16])
        assert zero == zeros == 0
        return Hello(bytes([kind]), host, device, session=session, number=sequence + (wraps << 32))


class Session:
    """Keys and numbers of one side."""

    def __init__(self, kind: bytes, host: bytes, device: bytes, key: bytes = KEY) -> None:
        self.number = int.from_bytes(host[:2], "little")
        keys = [mac(key, b"biella 2" + way + host + device) for way in (HOST, DEVICE)]
        self.outgoing, self.incoming = keys if kind == HOST else keys[::-1]
        self.sent = 0

    def pack(self, *values: float, echo: int = 0, flags: int = 0, sent: int | None = None) -> bytes:
        """Return the next frame, or that of the number `sent`."""
        self.sent = self.sent + 1 if sent is None else sent
        wraps, sequence = divmod(self.sent, 2**32)
        kind = "d" if flags & FLOAT64 else "f"
        head = _HEAD.pack(0xB2, flags, len(values), 0, self.number, wraps, sequence, echo)
        return sign(self.outgoing, head + struct.pack(f"<{len(values)}{kind}", *values))

    def parse(self, data: bytes) -> Frame:
        """Return what a frame says; AssertionError if it is not of this session."""
        assert hmac.compare_digest(sign(self.incoming, data[:-16]), data)
        version, flags, count, zero, session, wraps, sequence, echo = _HEAD.unpack_from(data)
        assert (version, zero, session) == (0xB2, 0, self.number)
        kind = "d" if flags & FLOAT64 else "f"
        values = struct.unpack(f"<{count}{kind}", data[16:-16])
        return Frame(values, session, sequence + (wraps << 32), echo, flags)


class KeyedDevice:
    """The device's side. `reply` is what it sends next by itself, if it has something to say."""

    def __init__(
        self, key: bytes = KEY, draw: Callable[[], bytes] = lambda: os.urandom(16)
    ) -> None:
        self.key, self.draw = key, draw
        self.nonce = draw()
        self.session: Session | None = None
        self.is_safe = True
        self.taken = 0
        self.heard: list[Frame] = []
        self.hellos: list[Hello] = []

    def answer(self, host: bytes = NONE) -> bytes:
        own = self.session
        return Hello(DEVICE, host, self.nonce, session=own.number if own else 0,
                     number=own.sent if own else 0).pack(self.key)  # fmt: skip

    def hear(self, data: bytes) -> bytes:
        """Take what has come; return the answer to a hello."""
        if is_hello(data):
            hello = Hello.parse(data, self.key)
            assert hello.kind == HOST
            self.hellos.append(hello)
            present = self.session.number if self.session else 0
            if hello.device == self.nonce and (self.is_safe or hello.session == present):
                self.session = Session(DEVICE, hello.host, hello.device, self.key)
                self.taken, self.is_safe, self.nonce = hello.number, True, self.draw()
            return self.answer(hello.host)
        assert self.session is not None, "a frame before a session"
        frame = self.session.parse(data)
        if frame.sequence > self.taken:
            self.taken, self.is_safe = frame.sequence, bool(frame.flags & SAFE)
            self.heard.append(frame)
        return b""

    def frame(self, *values: float, flags: int = 0) -> bytes:
        """Return the next frame."""
        assert self.session is not None
        return self.session.pack(*values, echo=self.taken % 2**32, flags=flags)


class KeyedHost:
    """The host's side."""

    def __init__(self, key: bytes = KEY, nonce: bytes | None = None) -> None:
        self.key = key
        self.nonce = nonce or b"\x01" + os.urandom(15)
        self.session: Session | None = None

    def call(self) -> bytes:
        return Hello(HOST, self.nonce).pack(self.key)

    def begin(self, answer: bytes, *, replaces: int = 0, number: int = 0) -> bytes:
        """Return what begins a session after the answer to a call."""
        hello = Hello.parse(answer, self.key)
        assert hello.host == self.nonce and hello.kind == DEVICE
        self.session = Session(HOST, self.nonce, hello.device, self.key)
        self.session.sent = number
        return Hello(HOST, self.nonce, hello.device, session=replaces, number=number).pack(self.key)
