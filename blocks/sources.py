"""Sources: blocks without inputs."""

from __future__ import annotations

from typing import Any

from .block import NativeBlock
from .ports import CONSTANT, Port, parameter


class Constant(NativeBlock):
    """A constant: y = value.

    Parameters
    ----------
    value
        A number or a vector.
    unit
        Of the output.
    """

    kernel = "constant"

    def __init__(self, value: Any, *, unit: str | None = None) -> None:
        held = parameter("value", value, unit=unit, doc="the constant")
        super().__init__(
            outputs=[Port("y", width=held.value.size, unit=unit)], parameters=[held], rate=CONSTANT
        )
