"""Clocks of FMI 3.0: which of them the engine activates, and when."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import FmuError
from ...scheduler.engine._library import contract
from ._variables import Group

_TIMED = ("constant", "fixed", "tunable", "changing", "countdown")


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock of an FMU.

    Attributes
    ----------
    name, reference
        Of the variable.
    causality
        ``"input"``, ``"output"`` or ``"local"``.
    variability
        FMI's intervalVariability.
    interval
        In seconds; None if the description has none.
    shift
        Time of the first activation after the start, in seconds.
    """

    name: str
    reference: int
    causality: str
    variability: str
    interval: float | None
    shift: float

    @property
    def kind(self) -> int | None:
        """How the engine treats it; None: it is not activated, or not looked at."""
        if self.variability == "triggered" and self.causality in ("input", "output"):
            is_input = self.causality == "input"
            return contract.HOST_CLOCK_TRIGGERED if is_input else contract.HOST_CLOCK_OUTPUT
        if self.causality != "input" or self.variability not in _TIMED:
            return None
        if self.variability == "constant":
            return contract.HOST_CLOCK_CONSTANT
        if self.variability in ("changing", "countdown"):
            changing = self.variability == "changing"
            return contract.HOST_CLOCK_CHANGING if changing else contract.HOST_CLOCK_COUNTDOWN
        if self.interval is not None:
            return contract.HOST_CLOCK_SET
        fixed = self.variability == "fixed"
        return contract.HOST_CLOCK_ASKED if fixed else contract.HOST_CLOCK_TUNABLE

    def check(self, label: str) -> None:
        """Raise an error if its times are not usable."""
        needed = self.kind in (contract.HOST_CLOCK_CONSTANT, contract.HOST_CLOCK_SET)
        if needed and not (self.interval is not None and 0.0 < self.interval < math.inf):
            raise FmuError(
                f"the clock `{self.name}` of {label} is {self.variability}, but its interval is "
                f"{self.interval}: a positive number of seconds is required."
            )
        if not 0.0 <= self.shift < math.inf:
            raise FmuError(f"the clock `{self.name}` of {label} has the shift {self.shift} s.")


def note_clock_times(root: Any, model: Any) -> None:
    """Add the times of clocks to a description of FMI 3.0, which FMPy does not read."""
    elements = {element.get("name"): element for element in root.findall("ModelVariables/Clock")}
    for variable in model.modelVariables:
        if variable.type != "Clock" or variable.name not in elements:
            continue
        attributes = elements[variable.name]
        resolution = _number(attributes.get("resolution"))
        for what in ("interval", "shift"):
            value = _number(attributes.get(f"{what}Decimal"))
            counter = _number(attributes.get(f"{what}Counter"))
            if value is None and counter is not None and resolution:
                value = counter / resolution
            setattr(variable, f"{what}Decimal", value)


def list_clocks(model: Any) -> dict[str, Clock]:
    """Return the clocks of a description, by name."""
    return {
        v.name: Clock(
            v.name,
            int(v.valueReference),
            v.causality or "local",
            v.intervalVariability or "",
            v.intervalDecimal,
            v.shiftDecimal or 0.0,
        )
        for v in model.modelVariables
        if v.type == "Clock"
    }


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def active_clocks(clocks: Iterable[Clock], label: str) -> list[Clock]:
    """Return the clocks that the engine activates or looks at."""
    found = [clock for clock in clocks if clock.kind is not None]
    if len(found) > contract.HOST_LARGEST_CLOCKS:
        raise FmuError(
            f"{label} has {len(found)} clocks; up to {contract.HOST_LARGEST_CLOCKS} are supported."
        )
    for clock in found:
        clock.check(label)
    return found


def encode_clocks(clocks: Sequence[Clock], groups: Sequence[Group]) -> list[int]:
    """Return the integers of ``clocks.h``; `groups` are the inputs and the outputs."""
    if not clocks:
        return []
    numbers = [len(clocks)]
    for clock in clocks:
        assert clock.kind is not None
        reference = struct.unpack("<i", struct.pack("<I", clock.reference))[0]
        numbers += [reference, clock.kind, *_words(clock.interval or 0.0), *_words(clock.shift)]
    places = {clock.name: n for n, clock in enumerate(clocks)}
    value = 0
    for group in groups:
        for scalar in group.scalars:
            mask = sum(1 << places[name] for name in set(scalar.clocks) if name in places)
            if mask:
                numbers += [value, *struct.unpack("<ii", struct.pack("<Q", mask))]
            value += scalar.size
    return numbers


def _words(value: float) -> tuple[int, int]:
    low, high = struct.unpack("<ii", struct.pack("<d", value))
    return low, high
