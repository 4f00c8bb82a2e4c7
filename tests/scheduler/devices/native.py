"""Devices of the engine as the tests hold them: channels, ticks, and a driver made from lambdas."""

from __future__ import annotations

import ctypes
import errno
import math
from collections.abc import Sequence
from ctypes import (
    POINTER,
    byref,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_void_p,
)
from typing import Any

from biella.scheduler.devices.native import ChannelRecord as Channel
from biella.scheduler.devices.native import CountsRecord as Counts
from biella.scheduler.engine.engine import library

OK, ERROR_BLOCK, ERROR_ARGUMENT = 0, -8, -9
STOP, HOLD, SAFE = range(3)
SEND_SAFE = 1
DOUBLE, CHECKSUM, ANSWERS = 1, 2, 4
MS = 1_000_000
AGE, ALIVE, DELAY = 1000, 1001, 1002


class State(ctypes.Structure):
    """Mirrors the first part of bl_device: what a driver fills in."""

    _fields_ = [
        ("driver", c_void_p),
        ("state", c_void_p),
        ("name", c_char * 64),
        ("ins", POINTER(Channel)),
        ("outs", POINTER(Channel)),
        ("in_count", c_int32),
        ("out_count", c_int32),
        ("received", POINTER(c_double)),
        ("sending", POINTER(c_double)),
        ("safe", POINTER(c_double)),
        ("sequence", c_uint32),
        ("echo", c_uint32),
        ("tripped", c_bool),
    ]


Receive = ctypes.CFUNCTYPE(c_int, POINTER(State), c_int64)
Send = ctypes.CFUNCTYPE(c_int, POINTER(State), c_uint32, c_int)
Wait = ctypes.CFUNCTYPE(c_int, POINTER(State), c_int64)
Reopen = ctypes.CFUNCTYPE(c_int, POINTER(State))
Close = ctypes.CFUNCTYPE(None, POINTER(State))
Enter = ctypes.CFUNCTYPE(None, c_void_p, c_int64, c_double)


class Driver(ctypes.Structure):
    """Mirrors bl_driver."""

    _fields_ = [
        ("name", c_char_p),
        ("receive", Receive),
        ("send", Send),
        ("wait", Wait),
        ("reopen", Reopen),
        ("close", Close),
    ]


def engine() -> Any:
    """Return the library with what it has for devices declared."""
    lib = library()
    message = [c_char_p, c_size_t]
    serial = [c_char_p, c_char_p, *[c_int32] * 4, *message]
    network = [c_char_p, c_char_p, c_int32, c_char_p, c_int32, *[c_int32] * 3, *message]
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "bl_device_open": (c_void_p, [POINTER(Driver), c_void_p, c_char_p, c_int32, c_int32]),
        "bl_device_close": (None, [c_void_p]),
        "bl_device_set_channels": (c_int, [c_void_p, POINTER(Channel), POINTER(Channel)]),
        "bl_device_set_loss": (c_int, [c_void_p, c_int64, c_int32]),
        "bl_device_set_slots": (None, [c_void_p, c_int64, c_int64, c_int64]),
        "bl_device_take": (c_int, [c_void_p, c_int64, c_int64, Enter, c_void_p]),
        "bl_device_give": (c_int, [c_void_p, c_int64, POINTER(c_double)]),
        "bl_device_make_safe": (None, [c_void_p, c_int64]),
        "bl_device_get_counts": (None, [c_void_p, POINTER(Counts)]),
        "bl_device_why": (c_char_p, [c_void_p]),
        "bl_device_is_alive": (c_int, [c_void_p]),
        "bl_serial_open": (c_void_p, serial),
        "bl_text_open": (c_void_p, serial),
        "bl_udp_open": (c_void_p, network),
        "bl_tcp_open": (c_void_p, network),
        "bl_udp_bound_port": (c_int32, [c_void_p]),
    }
    for name, (result, arguments) in signatures.items():
        if hasattr(lib, name):
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments
    return lib


def channel(
    name: str,
    slot: int = -1,
    *,
    scale: float = 1.0,
    offset: float = 0.0,
    limits: tuple[float, float] = (-math.inf, math.inf),
    safe: float = 0.0,
    saturates: bool = False,
) -> Channel:
    """Return a channel with the binding's defaults."""
    return Channel(name.encode(), slot, scale, offset, *limits, safe, saturates)


class Device:
    """A device that is ticked by hand. Inputs go to slots 0, 1 …; outputs are read from there."""

    def __init__(
        self,
        handle: int | None,
        ins: Sequence[Channel] | int = 0,
        outs: Sequence[Channel] | int = 0,
        *,
        timeout: int = 0,
        on_loss: int = HOLD,
    ) -> None:
        self.library = engine()
        assert handle
        self.handle = handle
        self.tick = 0
        self.values: dict[int, float] = {}
        self.entered: dict[int, float] = {}
        self.status = OK
        self._enter = Enter(self._note)
        if isinstance(ins, int):
            ins = [channel(f"in{k}", k) for k in range(ins)]
        if isinstance(outs, int):
            outs = [channel(f"out{k}", k) for k in range(outs)]
        self.set_status = self.library.bl_device_set_channels(
            handle, (Channel * len(ins))(*ins), (Channel * len(outs))(*outs)
        )
        assert self.library.bl_device_set_loss(handle, timeout, on_loss) == OK
        self.library.bl_device_set_slots(handle, AGE, ALIVE, DELAY)

    def _note(self, context: int | None, slot: int, value: float) -> None:
        assert math.isfinite(value)
        self.entered[slot] = self.values[slot] = value

    def take(self, now: int, tick: int | None = None) -> dict[int, float]:
        """Take what has come; return the channels' values that entered, by slot."""
        self.tick = self.tick if tick is None else tick
        self.entered = {}
        self.status = self.library.bl_device_take(self.handle, self.tick, now, self._enter, None)
        return {k: v for k, v in self.entered.items() if k < AGE}

    def give(self, *values: float) -> int:
        """Give the values of the present tick, and go to the next."""
        self.status = self.library.bl_device_give(
            self.handle, self.tick, (c_double * max(1, len(values)))(*values)
        )
        self.tick += 1
        return self.status

    def wait(self, deadline: int) -> int:
        """Wait as the paced thread does for a device that is its clock."""
        return Driver.from_address(self.state.driver).wait(byref(self.state), deadline)

    def make_safe(self) -> None:
        self.library.bl_device_make_safe(self.handle, self.tick)

    @property
    def counts(self) -> dict[str, int]:
        """The counters that are not zero."""
        counts = Counts()
        self.library.bl_device_get_counts(self.handle, byref(counts))
        names = [field[0] for field in Counts._fields_]
        return {name: getattr(counts, name) for name in names if getattr(counts, name)}

    @property
    def why(self) -> str:
        return self.library.bl_device_why(self.handle).decode()

    @property
    def state(self) -> State:
        return ctypes.cast(self.handle, POINTER(State)).contents

    def close(self) -> None:
        self.library.bl_device_close(self.handle)
        self.handle = 0

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        if self.handle:
            self.close()


class Script:
    """A driver that does what a test says: frames to give, errors to return, what was sent."""

    def __init__(self) -> None:
        self.frames: list[Sequence[float]] = []
        self.echo: int | None = 0
        self.tripped = False
        self.error = 0
        self.send_error = 0
        self.back = False
        self.sent: list[tuple[int, int, list[float]]] = []
        self.closed = 0
        self._driver = Driver(
            b"script",
            Receive(self._receive),
            Send(self._send),
            Wait(),
            Reopen(lambda d: 0 if self.back else -errno.ENOENT),
            Close(self._close),
        )

    def open(self, in_count: int, out_count: int, name: str = "board") -> int | None:
        return engine().bl_device_open(
            byref(self._driver), None, name.encode(), in_count, out_count
        )

    def _receive(self, d: Any, now: int) -> int:
        if self.error:
            return -self.error
        state = d.contents
        for frame in self.frames:
            for k, value in enumerate(frame):
                state.received[k] = value
            state.sequence += 1
        state.tripped = self.tripped
        state.echo = (self.sent[-1][0] if self.sent else 0) if self.echo is None else self.echo
        taken, self.frames = len(self.frames), []
        return taken

    def _send(self, d: Any, sequence: int, flags: int) -> int:
        if self.send_error:
            return -self.send_error
        state = d.contents
        self.sent.append((sequence, flags, [state.sending[k] for k in range(state.out_count)]))
        return 0

    def _close(self, d: Any) -> None:
        self.closed += 1
