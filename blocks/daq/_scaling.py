"""From volts to engineering units, and back."""

from __future__ import annotations

import numpy as np

from ... import _contract as contract
from ...errors import DiagramError
from ..basic.math._lookup import EXTRAPOLATIONS
from ..core._block import NativeBlock
from ..core._ports import Matrix, Numbers, Port, number, parameter
from ..core._vectors import require_choice, require_rising


class Scaling(NativeBlock):
    """Engineering units from what a sensor gives: y = sensitivity · u + zero, or by a table.

    A calibration table pairs readings with values, and between its points y follows a line. With
    ``inverse=True`` it goes the other way, from values to readings, as a simulated sensor or an
    output needs it; that undoes the other to rounding.

    Parameters
    ----------
    sensitivity
        Units of y for one unit of u.
    zero
        Value at u = 0.
    readings, values
        Instead of `sensitivity` and `zero`: a calibration table. Readings rise; for an inverse,
        values must rise or fall throughout.
    unit
        Unit of the values, that is, of the measured quantity.
    reading_unit
        Unit of the readings, that is, of the sensor output.
    inverse
        Whether u is a value and y a reading.
    extrapolation
        Beyond the table: go on ``"linear"``, ``"hold"`` the end, or stop with an ``"error"``.
    """

    kernel = "lookup_1d"

    def __init__(
        self,
        sensitivity: float | None = None,
        zero: float = 0.0,
        *,
        readings: Numbers | None = None,
        values: Matrix | None = None,
        unit: str | None = None,
        reading_unit: str = "V",
        inverse: bool = False,
        extrapolation: str = "linear",
    ) -> None:
        if (sensitivity is None) == (readings is None) or (readings is None) != (values is None):
            raise DiagramError(
                "Scaling takes a `sensitivity`, or a table of `readings` and `values`."
            )
        if sensitivity is not None:
            sensitivity = number("sensitivity", sensitivity, finite=True)
            zero = number("zero", zero, finite=True)
            if sensitivity == 0:
                raise DiagramError(f"`sensitivity` is a number other than 0, got {sensitivity!r}.")
            readings, values = [0.0, 1.0], [zero, zero + sensitivity]
        x, y = parameter("readings", readings).value, parameter("values", values).value
        require_rising("readings", parameter("readings", x))
        if y.shape != x.shape:
            raise DiagramError(
                f"a calibration pairs readings with values, got {x.size} and {y.size}."
            )
        if inverse:
            x, y = (y, x) if y[0] < y[-1] else (y[::-1], x[::-1])
            if not np.all(np.diff(x) > 0):
                raise DiagramError(
                    "an inverse needs `values` that rise or fall throughout; these turn back: "
                    f"{np.asarray(values).tolist()}."
                )
        units = (unit, reading_unit) if inverse else (reading_unit, unit)
        beyond = require_choice("extrapolation", extrapolation, EXTRAPOLATIONS)
        super().__init__(
            inputs=[Port("u", "n", units[0])],
            outputs=[Port("y", "n", units[1])],
            parameters=[
                parameter("x_points", x, unit=units[0], doc="inputs of the table"),
                parameter("y_points", y, unit=units[1], doc="outputs of the table"),
            ],
            integers=[x.size, 1, contract.LOOKUP_LINEAR, beyond, 0],
        )
        self.note = f"its input left the calibration, [{x[0]:g}, {x[-1]:g}]"
