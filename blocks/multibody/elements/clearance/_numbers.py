"""Checks of the numbers of contact laws and wear."""

from __future__ import annotations

import math
from typing import Any

from .....errors import DiagramError
from ...system._reading import read_number


def check(owner: str, name: str, value: Any, least: float, most: float = math.inf) -> float:
    """Return a number between two others."""
    number = read_number(f"`{name}` of {owner}", value)
    if number < least or number > most:
        wanted = f"between {least:g} and {most:g}" if most < math.inf else f"at least {least:g}"
        raise DiagramError(f"`{name}` of {owner} is {wanted}, got {number:g}.")
    return number


def check_positive(owner: str, name: str, value: Any, unit: str, hint: str = "") -> float:
    """Return a positive number."""
    number = read_number(f"`{name}` of {owner}", value)
    if number <= 0:
        raise DiagramError(f"`{name}` of {owner} is positive, in {unit}; got {number:g}.{hint}")
    return number
