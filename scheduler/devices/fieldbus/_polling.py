"""Base of drivers that poll their values: one exchange every period."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import ClassVar

from ....errors import DeviceError
from .._driver import DeviceDriver, Setup
from .._options import Option

FLOAT32_RANGE = (-(2.0 - 2.0**-23) * 2.0**127, (2.0 - 2.0**-23) * 2.0**127)
FLOAT64_RANGE = (-math.inf, math.inf)


class AbstractPollingDriver(DeviceDriver):
    """A driver that every `period` writes the newest outputs and then reads all inputs.

    Both wait for an answer, up to `patience` seconds for each: the timeout of the device.
    """

    options: ClassVar[Mapping[str, Option]] = {
        "period": Option("number", "period of the exchange in s", 0.01, low=0, high=3600),
    }

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.patience = setup.timeout if math.isfinite(setup.timeout) else self.timeout
        self._reported: Sequence[float] | None = None
        self._due = 0.0

    def ask(self) -> Sequence[float]:
        """Return what all inputs are now."""
        raise NotImplementedError

    def tell(self, values: Sequence[float]) -> None:
        """Set all outputs now."""
        raise NotImplementedError

    def start(self) -> None:
        """Exchange once, so that rejected requests are reported before the run starts."""
        self._reported, self._due = None, 0.0
        if self.setup.receive:
            self.ask()

    def read(self) -> Sequence[float] | None:
        """Do an exchange if it is time."""
        now = time.monotonic()
        if now < self._due:
            return None
        self._due = now + self.setup.options["period"]
        if self._reported is not None:
            self.tell(self._reported)
            self._reported = None
        return self.ask() if self.setup.receive else None

    def write(self, values: Sequence[float]) -> None:
        """Remember the outputs for the next exchange."""
        self._reported = list(values)

    def safe(self, values: Sequence[float]) -> None:
        """Write the safe values immediately."""
        self._reported = None
        self.tell(values)


def find_whole_range(bits: int, signed: bool) -> tuple[float, float]:
    """Return the least and the greatest double that are whole numbers of so many bits."""
    low, end = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
    return low, min(end - 1.0, math.nextafter(end, 0.0))


def check_room(name: str, value: float, kind: str, limits: tuple[float, float]) -> None:
    """Raise a DeviceError if a number does not fit its type."""
    if not limits[0] <= value <= limits[1]:
        raise DeviceError(f"channel `{name}`: {value:g} does not fit {kind}")


def check_finite(name: str, value: float) -> None:
    """Raise a DeviceError if the value of a channel is not a finite number."""
    if not math.isfinite(value):
        raise DeviceError(f"channel `{name}` reads {value}, which is not a number")
