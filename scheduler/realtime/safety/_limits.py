"""Limits of a real-time run: how long a tick may take, how late it may be, and what follows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from ctypes import byref
from numbers import Real
from typing import Any

from ....errors import BiellaError, BiellaWarning, name_list, suggest
from ...compile.plan._plan import Plan
from ...engine._library import library
from ..loop._pace import Pace

SHORTEST, SHORTEST_STRICT = 1.0, 0.25
"""Default limits in s are at least this; the second if the first overrun ends the run."""
PERIODS = 10
"""And at least so many periods."""
ON_TRIP = ("latch", "stop")


def set_limits(pace: Pace, plan: Plan, options: dict[str, Any], devices: Iterable[Any]) -> None:
    """Set the limits of `pace`; completes those in `options` that are not given.

    By default a run that sends values to devices is limited, all others are not.
    """
    default = _choose_limit(plan, options) if any(map(has_outputs, devices)) else 0.0
    for name in ("watchdog", "max_stall"):
        given = options.get(name)
        if given is None:
            given = options[name] = default
        value = float(given) if isinstance(given, Real) else math.nan
        if not value >= 0.0:
            raise BiellaError(f"{name} must be a time in s, 0 for no limit, got {given!r}.")
        setattr(pace, name, round(1e9 * value) if value < 9e9 else 0)
        if 0.0 < value < 1e-3:
            raise BiellaError(
                f"{name} must be at least 1 ms, got {value:g} s: threads wake up later than that "
                f"now and then. 0 sets no limit."
            )
    on_trip = options.setdefault("on_trip", ON_TRIP[0])
    if on_trip not in ON_TRIP:
        raise BiellaError(
            f"on_trip must be one of {name_list(ON_TRIP)}, got {on_trip!r}."
            f"{suggest(str(on_trip), ON_TRIP)}"
        )
    pace.ends_if_latched = int(on_trip == "stop")


def _choose_limit(plan: Plan, options: Mapping[str, Any]) -> float:
    strict = options["overrun"] == "stop" and not options["max_overruns"]
    shortest = SHORTEST_STRICT if strict else SHORTEST
    return max(shortest, PERIODS * plan.step / float(options["factor"]))


def has_outputs(device: Any) -> bool:
    """Return whether values are sent to a device."""
    entry = getattr(device, "entry", None)
    return bool(entry is not None and entry.send)


def warn_of_python_drivers(plan: Plan, devices: Iterable[Any], *, stacklevel: int) -> None:
    """Warn of outputs that the watchdog cannot reach while Python is busy.

    Only if the diagram has Python blocks: without them a tick cannot hang in Python.
    """
    slow = [d.name for d in devices if has_outputs(d) and hasattr(d, "driver")]
    if slow and plan.python_blocks:
        names = name_list(slow)
        warnings.warn(
            f"the driver of {names} is written in Python: if a Python block does not return and "
            f"keeps the interpreter, its safe values are not sent. Rely on the watchdog of the "
            f"device, or use a driver in C.",
            BiellaWarning,
            stacklevel=stacklevel + 1,
        )


def describe_latch(pace: Pace) -> str:
    """Return why a run is latched; empty if it is not."""
    text: bytes | None = library().bl_pace_latch(byref(pace))
    return (text or b"").decode(errors="replace")
