"""A diagram with one actuator on UDP, and a board that records every frame and echoes it."""

from __future__ import annotations

import math
import socket
import struct
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from biella import Diagram
from biella.blocks import Gain, Port, PythonBlock, Sine

sys.path.append(str(Path(__file__).parents[4]))
from tests.scheduler.devices.keyed import KeyedDevice

SAFE_FLAG = 2
LIVE, SAFE = 5.0, -1.0
_HEAD = struct.Struct("<BBBBHHII")


class Board:
    """Answers every frame, as docs/reference/frame.md says; `seen` has time, value and flags."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(600)
        self.socket.bind(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self.seen: list[tuple[float, float, int]] = []
        self.answers = True
        self._sent = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                data, sender = self.socket.recvfrom(65536)
            except OSError:
                return
            if not data:
                return
            head = _HEAD.unpack_from(data)
            self.seen.append((time.monotonic(), struct.unpack_from("<f", data, 16)[0], head[1]))
            if self.answers:
                self._sent += 1
                body = _HEAD.pack(0xB1, head[1] & 2, 1, 0, head[4], 0, self._sent, head[6])
                body += struct.pack("<f", 0.0)
                self.socket.sendto(body + struct.pack("<I", zlib.crc32(body)), sender)

    @property
    def last(self) -> float:
        return self.seen[-1][1] if self.seen else math.nan

    @property
    def is_safe(self) -> bool:
        return bool(self.seen) and self.seen[-1][1] == SAFE and bool(self.seen[-1][2] & SAFE_FLAG)

    def close(self) -> None:
        self.socket.sendto(b"", self.socket.getsockname())
        self._thread.join(60)
        self.socket.close()


class KeyedBoard(Board):
    """The same with a key: only what is authenticated is seen. `restart` is a power cycle."""

    def __init__(self) -> None:
        self.device = KeyedDevice()
        self.refused = 0
        super().__init__()

    def restart(self) -> None:
        self.device = KeyedDevice()

    def _serve(self) -> None:
        while True:
            try:
                data, sender = self.socket.recvfrom(65536)
            except OSError:
                return
            if not data:
                return
            device = self.device
            count = len(device.heard)
            try:
                reply = device.hear(data)
            except AssertionError:  # of another session, or forged
                self.refused += 1
                reply = b"" if device.session else device.answer()
            for frame in device.heard[count:]:
                self.seen.append((time.monotonic(), frame.values[0], frame.flags))
                reply = device.frame(0.0, flags=frame.flags & SAFE_FLAG)
            if reply:
                self.socket.sendto(reply, sender)


class Hanging(PythonBlock):
    """Passes its input on; while `gate` is set, it does not return."""

    def __init__(self, gate: threading.Event) -> None:
        super().__init__(inputs=[Port("u")], outputs=[Port("y")])
        self.gate = gate

    def output(self, t: float, x: Any, u: Any) -> Any:
        while self.gate.is_set():
            time.sleep(1e-3)
        return u


class After(PythonBlock):
    """Calls `action` in its update of the first tick, which follows the first live value."""

    def __init__(self, action: Callable[[], object]) -> None:
        super().__init__(inputs=[Port("u")], outputs=[Port("y")], state=[0.0], period=1e-3)
        self.action = action

    def output(self, t: float, x: Any, u: Any) -> Any:
        return x[0]

    def update(self, t: float, x: Any, u: Any) -> Any:
        if t == 0.0:
            self.action()
        return [u]


def build(
    gate: threading.Event | None = None,
    step: float = 1e-3,
    after: Callable[[], object] | None = None,
) -> Diagram:
    """The actuator gets 5, within a millionth; `after` is called when it has had the first."""
    d = Diagram("rig", step=step)
    last: Any = d.add(Sine(frequency=1e-9, phase=math.pi / 2, amplitude=LIVE), name="source")
    if gate is not None:
        block = d.add(Hanging(gate), name="slow")
        d.connect(last, block)
        last = block
    amplifier = d.add(Gain(1.0), name="amplifier")
    d.connect(last, amplifier)
    if after is not None:
        d.connect(last, d.add(After(after), name="after"))
    return d


def bind(port: int, key: str = "", **run: Any) -> dict[str, Any]:
    """Bind the amplifier to the board; without a timeout, so that only the run's limits act."""
    drive: dict[str, Any] = {
        "driver": "udp", "host": "127.0.0.1", "port": port, "timeout": 600.0,
        "send": {"u": {"limits": [-10, 10], "safe": SAFE}},
        "receive": {"y": {"limits": [-10, 10]}},
    }  # fmt: skip
    if key:
        drive["key"] = key
    return {"run": run, "devices": {"drive": drive}, "blocks": {"amplifier": {"device": "drive"}}}


def wait_until(condition: Any) -> None:
    """Wait, but not for ever."""
    limit = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < limit, "it did not happen"
        time.sleep(1e-3)
