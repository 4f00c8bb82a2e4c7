"""Initial values and limits of states, shared by blocks with states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import DiagramError
from ._ports import Parameter, Width, parameter


def make_initial(value: Any, doc: str, *, tunable: bool = False) -> tuple[Parameter, Width]:
    """Return the parameter ``initial`` and the width of the block: a vector fixes it."""
    start = parameter("initial", value, doc=doc, tunable=tunable)
    if start.value.ndim > 1:
        raise DiagramError(
            f"parameter `initial` is a number or a vector, not of shape {start.value.shape}."
        )
    return start, start.value.size if start.value.ndim else "n"


def make_limits(limits: Any, width: Width) -> tuple[list[Parameter], Width]:
    """Return the parameters ``lower`` and ``upper`` of ``limits=(lower, upper)``, and the width.

    Each limit is a number or a vector; an infinite one does not limit. Without limits the list is
    empty.
    """
    if limits is None:
        return [], width
    if not isinstance(limits, Sequence | np.ndarray) or len(limits) != 2:
        raise DiagramError(f"limits are a pair (lower, upper), got {limits!r}.")
    given = [
        parameter(name, value, finite=False, doc=f"{name} limit").value
        for name, value in zip(("lower", "upper"), limits, strict=True)
    ]
    try:
        lower, upper = np.broadcast_arrays(*given)
    except ValueError:
        raise DiagramError(
            f"the limits have shapes {given[0].shape} and {given[1].shape}: make them alike."
        ) from None
    if lower.ndim > 1 or np.isnan(lower).any() or np.isnan(upper).any() or (lower > upper).any():
        raise DiagramError(f"limits are numbers or vectors with lower <= upper, got {limits!r}.")
    if lower.ndim:
        if width not in ("n", lower.size):
            raise DiagramError(f"`initial` has {width} values, but the limits have {lower.size}.")
        width = lower.size
    pair = [
        parameter("lower", lower, finite=False, doc="the state stays at or above it"),
        parameter("upper", upper, finite=False, doc="the state stays at or below it"),
    ]
    return pair, width
