"""Blocks with continuous states."""

from __future__ import annotations

from typing import Any

from .block import NativeBlock
from .ports import CONTINUOUS, Derived, Port, parameter
from .units import Unit, parse_unit


def _times_seconds(unit: Unit) -> Unit:
    return unit * parse_unit("s")


class Integrator(NativeBlock):
    """An integrator: dx/dt = u, y = x, x(0) = initial."""

    kernel = "integrator"

    def __init__(self, initial: Any = 0.0) -> None:
        start = parameter("initial", initial, doc="state at the start", tunable=False)
        width = start.value.size if start.value.ndim else "n"
        super().__init__(
            inputs=[Port("u", width=width)],
            outputs=[Port("y", width=width, unit=Derived(_times_seconds, ("u",)))],
            parameters=[start],
            rate=CONTINUOUS,
            feedthrough=False,
            states=width,
        )
