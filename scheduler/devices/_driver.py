"""Drivers in Python: each runs in a separate thread, behind mailboxes that never block a tick."""

from __future__ import annotations

import contextlib
import importlib
import logging
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from ctypes import POINTER, byref, c_double, c_int32, c_uint32
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..._deprecation import warn_deprecated
from ...errors import BiellaWarning, DeviceError
from ..engine._library import library
from ._native import Device, DeviceContext, count_values
from ._options import Option

if TYPE_CHECKING:
    from ..binding._rig import Channel, DeviceEntry

_SAFE = 1
_OPENING = 10.0  # s that a driver may take to open
_PATIENCE = 2.0  # s that one may take to end, before it counts as stuck
_QUIET = logging.NullHandler()


class Setup:
    """Configuration of a driver: its table of the binding.

    Attributes
    ----------
    name
        Name of the device.
    options
        Values of the driver's own `DeviceDriver.options`.
    receive, send
        The channels from the device and to it; see `biella.devices.Channel`.
    folder
        Folder to which file names in the options are relative.
    step
        Base step of the run in seconds.
    timeout
        Seconds of silence after which the device counts as lost.
    """

    def __init__(self, entry: DeviceEntry, around: DeviceContext) -> None:
        self.name = entry.name
        self.options: Mapping[str, Any] = entry.options
        self.receive: tuple[Channel, ...] = tuple(entry.receive.values())
        self.send: tuple[Channel, ...] = tuple(entry.send.values())
        self.folder: Path = around.folder
        self.step = around.step
        self.timeout = entry.timeout or float("inf")

    @property
    def inputs(self) -> tuple[Channel, ...]:
        """Deprecated name of `receive`."""
        warn_deprecated("`Setup.inputs`", "`Setup.receive`")
        return self.receive

    @property
    def outputs(self) -> tuple[Channel, ...]:
        """Deprecated name of `send`."""
        warn_deprecated("`Setup.outputs`", "`Setup.send`")
        return self.send

    @property
    def safe(self) -> tuple[float, ...]:
        """The raw safe values of all outputs."""
        return tuple(channel.raw(value) for channel in self.send for value in channel.safe or ())


class DeviceDriver:
    """Base class of device drivers in Python; a subclass is registered as an entry point.

    All methods are called from one thread of the driver, in this order:

    1. ``__init__(setup)``: stores the configuration only.
    2. `open`: acquires the hardware; `start`: starts it. Their exceptions are reported to the user,
       and the run does not start.
    3. At each tick: `write` with the newest outputs, then `read`. Without new outputs, `read` is
       called every `poll` seconds.
    4. `safe` in place of `write`: when a run ends for any reason; when the run has been silent for
       longer than the device's timeout; when `read` or `write` has raised an exception or has
       exceeded that timeout; after the driver is reopened; and as the last call before `close`.
    5. `close`, always, once `open` was called.

    An exception in `read` or `write` marks the device as lost, with its text as the reason. After
    `retry` seconds the driver is closed, opened and started again. A driver that hangs does not
    delay the run: its data become stale, and the device is lost after its timeout. If the driver
    still hangs when the run ends, `safe` is called from another thread.

    Values are raw: the binding scales them. Each array has one number per element of each channel.
    """

    options: ClassVar[Mapping[str, Option]] = {}
    """Valid keys of ``[devices.NAME]`` for this driver."""
    channel_options: ClassVar[Mapping[str, Option]] = {}
    """Valid keys of each channel."""
    timeout: ClassVar[float] = 0.5
    """Default timeout in seconds; the binding may override it. A device with inputs is lost after
    this time without new values. Outputs are made safe after this time without new outputs."""
    poll: ClassVar[float] = 1e-3
    """Seconds between two calls of `read` without new outputs."""
    retry: ClassVar[float | None] = 1.0
    """Seconds from a loss to the attempt to reopen the device; None: never."""
    answers_at_once: ClassVar[bool] = False
    """Whether values read after a write reflect that write: true for a card, false for a bus."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    @classmethod
    def check(cls, setup: Setup) -> list[str]:
        """Return the problems of a binding; called before any device is opened."""
        return []

    def holds(self, channel: Channel) -> tuple[float, float]:
        """Return the smallest and the largest raw value of an output that the wire can represent.

        It is called after `open`. Values outside are treated as outside the channel's limits.
        """
        return -float("inf"), float("inf")

    def open(self) -> None:
        """Acquire the hardware."""

    def start(self) -> None:
        """Start the hardware."""

    def read(self) -> Sequence[float] | None:
        """Return the newest values of all inputs, or None if there are no new ones; never wait."""
        return None

    def write(self, values: Sequence[float]) -> None:
        """Set all outputs."""

    def safe(self, values: Sequence[float]) -> None:
        """Set all outputs to their safe values."""
        self.write(values)

    def close(self) -> None:
        """Release the hardware."""


class DriverDevice(Device):
    """An open device whose driver is a thread of Python."""

    def __init__(self, entry: DeviceEntry, around: DeviceContext, driver: DeviceDriver) -> None:
        self._lib = library()
        outs = count_values(entry.send)
        self._in_count = count_values(entry.receive)
        handle = self._lib.bl_mailbox_device_open(entry.name.encode(), self._in_count, outs)
        if not handle:
            raise DeviceError(f"the device `{entry.name}` cannot be opened: out of memory.")
        super().__init__(entry, handle)
        self._device = handle  # for the thread, also when it is left behind
        self.driver = driver
        self._outs = (c_double * max(1, outs))()
        self._out_count = outs
        self._safe = Setup(entry, around).safe
        self._sequence, self._flags = c_uint32(), c_int32()
        self._ready, self._ending = threading.Event(), threading.Event()
        self._failure: BaseException | None = None
        self._watchdog = entry.timeout or driver.timeout
        self._heard = 0.0  # when outputs came last; 0: not yet, or already answered by safe values
        self._thread = threading.Thread(
            target=self._work, name=f"biella driver {entry.name}", daemon=True
        )
        self._thread.start()
        opened = self._ready.wait(_OPENING)
        if not opened or self._failure is not None:
            reason = _say(self._failure) if opened else f"it does not respond within {_OPENING:g} s"
            self._end()
            raise DeviceError(
                f"the device `{entry.name}` cannot be opened: {reason}."
            ) from self._failure

    def map_channel(
        self,
        ins: Mapping[str, int],
        outs: Mapping[str, int],
        status: tuple[int, int, int] = (-1, -1, -1),
    ) -> None:
        """Set the slots of a channel in the engine; see `Device.map_channel`."""
        outputs = self.entry.send.items()
        fitting = {name: _narrow(channel, self.driver) for name, channel in outputs}
        self.entry = replace(self.entry, send=fitting)
        super().map_channel(ins, outs, status)

    def close(self) -> None:
        """Make the outputs safe, then end the driver and its thread."""
        if self.handle:
            self._end()

    def _end(self) -> None:
        self._ending.set()
        self._thread.join(_PATIENCE)
        if not self._thread.is_alive():
            super().close()
            return
        # The thread may still use the engine's device: do not close it.
        self._let_go()
        last = threading.Thread(target=self._make_safe, daemon=True)
        last.start()
        last.join(_PATIENCE)
        tried = "does not return" if last.is_alive() else "was called from another thread"
        warnings.warn(
            f"the driver of `{self.name}` does not respond: its `safe` {tried}. Its thread is "
            f"abandoned.",
            BiellaWarning,
            stacklevel=3,
        )

    # Everything below runs in the driver's own thread.

    def _work(self) -> None:
        if not self._open():
            self._ready.set()
            return
        self._ready.set()
        while not self._ending.is_set():
            try:
                self._exchange()
            except BaseException as error:
                self._lose(error)
                if not self._regain():
                    return
        self._make_safe()
        self._shut()

    def _open(self) -> bool:
        try:
            self.driver.open()
            self.driver.start()
        except BaseException as error:
            self._failure = error
            self._shut()
            return False
        return True

    def _exchange(self) -> None:
        driver, began = self.driver, time.monotonic()
        wait = round(max(driver.poll, 1e-5) * 1e9)
        if self._lib.bl_mailbox_device_take(
            self._device, wait, self._outs, byref(self._sequence), byref(self._flags)
        ):
            values = self._outs[: self._out_count]
            if self._flags.value & _SAFE:
                driver.safe(values)
                self._heard = 0.0
            else:
                driver.write(values)
                self._heard = time.monotonic()
        elif self._heard and time.monotonic() - self._heard > self._watchdog:
            driver.safe(self._safe)
            self._heard = 0.0
        read = driver.read()
        if self._heard and 0 < self.entry.timeout < time.monotonic() - began:
            # The driver hung and was lost: it has not received the safe values sent meanwhile.
            driver.safe(self._safe)
            self._heard = 0.0
        if read is not None:
            self._post(read)

    def _post(self, read: Sequence[float]) -> None:
        values = np.asarray(read, dtype=np.float64).ravel()
        if values.size != self._in_count:
            raise DeviceError(f"read returned {values.size} values instead of {self._in_count}")
        echo = self._sequence.value if self.driver.answers_at_once else 0
        pointer = np.ascontiguousarray(values).ctypes.data_as(POINTER(c_double))
        if self._lib.bl_mailbox_device_post(self._device, pointer, echo) != 0:
            raise DeviceError(f"read returned a value that is not finite: {values.tolist()}")

    def _lose(self, error: BaseException) -> None:
        self._lib.bl_mailbox_device_fail(self._device, _say(error).encode())
        self._heard = 0.0
        self._make_safe()
        self._shut()

    def _regain(self) -> bool:
        """Reopen a lost driver, with retries; return False if the run ends before."""
        while self.driver.retry is not None and not self._ending.wait(self.driver.retry):
            if self._open() and self._greet():
                self._forget()
                self._lib.bl_mailbox_device_return(self._device)
                return True
        return False

    def _greet(self) -> bool:
        """Send safe values to a reopened device: it may still hold outputs from before the loss."""
        try:
            self.driver.safe(self._safe)
        except BaseException:
            self._shut()
            return False
        return True

    def _forget(self) -> None:
        """Discard outputs from before the loss that were never written."""
        self._lib.bl_mailbox_device_take(
            self._device, 0, self._outs, byref(c_uint32()), byref(c_int32())
        )

    def _make_safe(self) -> None:
        with contextlib.suppress(BaseException):
            self.driver.safe(self._safe)

    def _shut(self) -> None:
        with contextlib.suppress(BaseException):
            self.driver.close()


def load_package(driver: str, name: str) -> Any:
    """Import a package without output; raise DeviceError with the install command if missing."""
    try:
        package = importlib.import_module(name)
    except ImportError:
        raise DeviceError(
            f"the driver `{driver}` needs the package of `{name}`: pip install 'biella[{driver}]'"
        ) from None
    # The exception is reported as the reason of the loss: suppress the package's own output.
    logging.getLogger(name.partition(".")[0]).addHandler(_QUIET)
    return package


def _narrow(channel: Channel, driver: DeviceDriver) -> Channel:
    """Return an output with its limits restricted to the range of its driver."""
    ends = [channel.scale * raw + channel.offset for raw in driver.holds(channel)]
    return replace(channel, low=max(channel.low, min(ends)), high=min(channel.high, max(ends)))


def _say(error: BaseException | None) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
