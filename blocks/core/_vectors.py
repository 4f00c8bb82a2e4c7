"""Parameters that are one number for all elements of a signal, or a vector of one for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import DiagramError
from ._ports import Parameter, parameter


def limits(name: str, value: Any, *, doc: str, minimum: float | None = None) -> Parameter:
    """Make a parameter that may be infinite, but is a number."""
    made = parameter(name, value, doc=doc, finite=False, minimum=minimum)
    if np.isnan(made.value).any():
        raise DiagramError(f"parameter `{name}` must not be NaN; for no limit give inf.")
    return made


def align(parameters: Sequence[Parameter]) -> tuple[list[Parameter], int | None]:
    """Broadcast all parameters to one length and return it; it is None if all of them are numbers.

    A kernel then finds the value of parameter j for element k at ``p[j n + k]``, or at ``p[j]`` for
    all elements if there are only numbers.

    Raises
    ------
    DiagramError
        If one is a matrix, or two vectors differ in length.
    """
    lengths: dict[int, str] = {}
    for item in parameters:
        if item.value.ndim > 1:
            raise DiagramError(
                f"parameter `{item.name}` is a number or a vector, not of shape {item.value.shape}."
            )
        if item.value.ndim == 1:
            lengths.setdefault(item.value.size, item.name)
    if len(lengths) > 1:
        found = ", ".join(f"`{name}` has {length}" for length, name in lengths.items())
        raise DiagramError(f"vectors of one block need the same length: {found}.")
    if not lengths:
        return list(parameters), None
    (length,) = lengths
    return [
        parameter(
            item.name,
            np.broadcast_to(item.value, (length,)),
            unit=item.unit,
            doc=item.doc,
            tunable=item.tunable,
            finite=False,
            minimum=item.minimum,
            maximum=item.maximum,
        )
        for item in parameters
    ], length


def require_order(low: Parameter, high: Parameter) -> None:
    """Raise a `DiagramError` unless `low` is nowhere above `high`."""
    if np.any(np.broadcast_arrays(low.value > high.value)):
        raise DiagramError(
            f"`{low.name}` must not be above `{high.name}`, got {low.value.tolist()} and "
            f"{high.value.tolist()}."
        )


def require_positive(item: Parameter) -> None:
    """Raise a `DiagramError` unless all values are above zero."""
    if not np.all(item.value > 0):
        raise DiagramError(f"`{item.name}` must be positive, got {item.value.tolist()}.")


def require_one_positive(name: str, value: Any, unit: str = "") -> float:
    """Return a number above zero, or raise a `DiagramError`."""
    made = parameter(name, value).value
    if made.ndim or not made > 0:
        what = f"one positive number, in {unit}" if unit else "one positive number"
        raise DiagramError(f"`{name}` is {what}; got {value!r}.")
    return float(made)


def require_whole(name: str, value: Any, least: int, most: int) -> int:
    """Return a whole number from `least` to `most`, or raise a `DiagramError`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise DiagramError(f"`{name}` is a whole number from {least} to {most}, got {value!r}.")
    return int(value)


def require_rising(name: str, item: Parameter) -> None:
    """Raise a `DiagramError` unless `item`, for the user `name`, is a list of rising numbers."""
    values = item.value
    if values.ndim != 1 or values.size < 2:
        raise DiagramError(
            f"`{name}` is a list of at least two numbers, not an array of shape {values.shape}."
        )
    falls = np.flatnonzero(np.diff(values) <= 0)
    if falls.size:
        n = int(falls[0])
        raise DiagramError(
            f"`{name}` must rise: {name}[{n + 1}] = {values[n + 1]:g} comes after "
            f"{name}[{n}] = {values[n]:g}. Sort them, and drop double ones."
        )


def require_choice(what: str, given: str, valid: Sequence[str] | Mapping[str, int]) -> int:
    """Return the number of `given`, or raise a `DiagramError` that lists what is valid.

    The number is that of a mapping, such as to the constants of a kernel, or else the position.
    """
    if not isinstance(given, str) or given not in valid:
        raise DiagramError(f"{what} is one of {', '.join(map(repr, valid))}; got {given!r}.")
    return valid[given] if isinstance(valid, Mapping) else list(valid).index(given)


def make_record(size: int, fields: Mapping[int, int]) -> list[int]:
    """Return a record as C reads it, each of its `size` fields given by its number there."""
    assert len(fields) == size
    return [fields[number] for number in range(size)]
