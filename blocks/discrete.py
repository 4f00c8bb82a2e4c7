"""Blocks with a sample time."""

from __future__ import annotations

from typing import Any

from .block import NativeBlock
from .ports import SAMPLED, Port, Same, parameter, periodic


class UnitDelay(NativeBlock):
    """A delay of one sample: y[n] = u[n-1], y[0] = initial.

    Parameters
    ----------
    initial
        Output before the first sample.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    """

    kernel = "unit_delay"

    def __init__(
        self, initial: Any = 0.0, *, period: float | None = None, offset: float = 0.0
    ) -> None:
        start = parameter("initial", initial, doc="output before the first sample", tunable=False)
        width = start.value.size if start.value.ndim else "n"
        super().__init__(
            inputs=[Port("u", width=width, unit=Same(), kind=Same())],
            outputs=[Port("y", width=width, unit=Same(), kind=Same())],
            parameters=[start],
            rate=periodic(period, offset, SAMPLED),
            feedthrough=False,
            memory=width,
        )
