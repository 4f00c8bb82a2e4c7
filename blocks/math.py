"""Arithmetic."""

from __future__ import annotations

from typing import Any

from ..errors import DiagramError
from .block import NativeBlock
from .ports import Port, Same, parameter, periodic


class Gain(NativeBlock):
    """A gain: y = k u.

    Parameters
    ----------
    k
        A number; a vector, one factor for each element of u; or a matrix, y = K u.
    unit
        Of the output; without one any unit is taken and none is given.
    period, offset
        Sample time in seconds; inherited if not given.
    """

    kernel = "gain"

    def __init__(
        self, k: Any = 1.0, *, unit: str | None = None, period: float | None = None, offset: float = 0.0
    ) -> None:
        gain = parameter("k", k, doc="gain")
        shape = gain.value.shape
        if len(shape) > 2:
            raise DiagramError(f"a Gain is a number, a vector or a matrix, not of shape {shape}.")
        if len(shape) == 2:
            self.kernel = "matrix_gain"  # type: ignore[misc]
        width = shape[-1] if shape else "n"
        super().__init__(
            inputs=[Port("u", width=width)],
            outputs=[Port("y", width=shape[0] if shape else "n", unit=unit)],
            parameters=[gain],
            rate=periodic(period, offset),
        )


class Sum(NativeBlock):
    """A sum with signs: y = ± u1 ± u2 ….

    Parameters
    ----------
    signs
        One ``+`` or ``-`` for each input, such as ``"+-"``.
    """

    kernel = "sum"

    def __init__(
        self, signs: str = "++", *, period: float | None = None, offset: float = 0.0
    ) -> None:
        if not signs or set(signs) - {"+", "-"}:
            raise DiagramError(f"Sum wants signs such as '+-', got {signs!r}.")
        super().__init__(
            inputs=[Port(f"u{n}", width="n", unit=Same()) for n in range(1, len(signs) + 1)],
            outputs=[Port("y", width="n", unit=Same())],
            rate=periodic(period, offset),
            integers=[1 if sign == "+" else -1 for sign in signs],
        )
