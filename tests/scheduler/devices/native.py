"""Devices of the engine as the tests hold them: channels, ticks, and a driver made from lambdas."""

from __future__ import annotations

import errno
import math
from collections.abc import Sequence
from ctypes import (
    byref,
    c_double,
)
from typing import Any

from biella.scheduler.engine._library import contract, library

OK, ERROR_BLOCK = contract.BL_OK, contract.BL_ERROR_BLOCK
ERROR_ARGUMENT = contract.BL_ERROR_ARGUMENT
STOP, HOLD, SAFE = contract.BL_LOSS_STOP, contract.BL_LOSS_HOLD, contract.BL_LOSS_SAFE
SEND_SAFE = contract.BL_SEND_SAFE
DOUBLE, CHECKSUM = contract.BL_WIRE_DOUBLE, contract.BL_WIRE_CHECKSUM
ANSWERS = contract.BL_WIRE_ANSWERS
MS = 1_000_000
AGE, ALIVE, DELAY = 1000, 1001, 1002


Channel = contract.bl_channel
Counts = contract.bl_device_counts
CALLS: dict[str, Any] = {field[0]: field[1] for field in contract.bl_driver._fields_}


def engine() -> Any:
    """Return the library."""
    return library()


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
        self._enter = contract.bl_enter(self._note)
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
        """Wait as the real-time thread does for a device that is its clock."""
        return self.state.driver.contents.wait(self.handle, deadline)

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
    def state(self) -> contract.bl_device:
        return contract.bl_device.from_address(self.handle)

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
        self._driver = contract.bl_driver(
            b"script",
            CALLS["receive"](self._receive),
            CALLS["send"](self._send),
            CALLS["wait"](),
            CALLS["reopen"](lambda d: 0 if self.back else -errno.ENOENT),
            CALLS["close"](self._close),
        )

    def open(self, in_count: int, out_count: int, name: str = "board") -> int | None:
        return engine().bl_device_open(
            byref(self._driver), None, name.encode(), in_count, out_count
        )

    def _receive(self, d: int, now: int) -> int:
        if self.error:
            return -self.error
        state = contract.bl_device.from_address(d)
        for frame in self.frames:
            for k, value in enumerate(frame):
                state.received[k] = value
            state.sequence += 1
        state.tripped = self.tripped
        state.echo = (self.sent[-1][0] if self.sent else 0) if self.echo is None else self.echo
        taken, self.frames = len(self.frames), []
        return taken

    def _send(self, d: int, sequence: int, flags: int) -> int:
        if self.send_error:
            return -self.send_error
        state = contract.bl_device.from_address(d)
        self.sent.append((sequence, flags, [state.sending[k] for k in range(state.out_count)]))
        return 0

    def _close(self, d: int) -> None:
        self.closed += 1
