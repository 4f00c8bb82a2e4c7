"""Arithmetic. See also `Function` and `Expression`."""

from __future__ import annotations

from .... import _contract as contract
from ....errors import DiagramError
from ...core._block import NativeBlock
from ...core._ports import (
    INHERITED,
    SWITCHING,
    Derived,
    Kind,
    Matrix,
    Numbers,
    Port,
    Same,
    parameter,
)
from ...core._units import DIMENSIONLESS, Unit, UnitError
from ...core._vectors import require_choice

_CONVERSIONS = {
    "real": contract.CONVERT_REAL,
    "integer": contract.CONVERT_INTEGER,
    "boolean": contract.CONVERT_BOOLEAN,
}


class Gain(NativeBlock):
    """A gain: y = k u.

    Parameters
    ----------
    k
        A number; a vector, one factor for each element of u; or a matrix, y = K u.
    unit
        Unit of the output; without one any unit is taken and none is given.
    """

    kernel = "gain"

    def __init__(self, k: Matrix = 1.0, *, unit: str | None = None) -> None:
        gain = parameter("k", k, doc="gain")
        shape = gain.value.shape
        if len(shape) > 2:
            raise DiagramError(f"a Gain is a number, a vector or a matrix, not of shape {shape}.")
        width = shape[-1] if shape else "n"
        self.elementwise = len(shape) < 2
        super().__init__(
            inputs=[Port("u", width=width)],
            outputs=[Port("y", width=shape[0] if shape else "n", unit=unit)],
            parameters=[gain],
            kernel="matrix_gain" if len(shape) == 2 else None,
        )


class Sum(NativeBlock):
    """A sum with signs: y = ± u1 ± u2 …, all in one unit.

    Parameters
    ----------
    signs
        One ``+`` or ``-`` for each input, such as ``"+-"``.
    """

    kernel = "sum"
    elementwise = True

    def __init__(self, signs: str = "++") -> None:
        _require_signs("Sum", signs, "+-")
        super().__init__(
            inputs=[Port(f"u{n}", width="n", unit=Same()) for n in range(1, len(signs) + 1)],
            outputs=[Port("y", width="n", unit=Same())],
            integers=[1 if sign == "+" else -1 for sign in signs],
        )


class Product(NativeBlock):
    """A product and quotient, element by element: y = u1 · u2 / u3 ….

    The unit is that of the product, if all inputs have one. A division by zero stops the run.

    Parameters
    ----------
    signs
        One ``*`` or ``/`` for each input, such as ``"**/"``; ``"/"`` alone is 1 / u1.
    unit
        Unit of the output, instead of the derived one.
    """

    kernel = "product"
    elementwise = True

    def __init__(self, signs: str = "**", *, unit: str | None = None) -> None:
        _require_signs("Product", signs, "*/")
        names = tuple(f"u{n}" for n in range(1, len(signs) + 1))

        def derive(*units: Unit) -> Unit | None:
            product = DIMENSIONLESS
            try:
                for sign, factor in zip(signs, units, strict=True):
                    product = product * factor if sign == "*" else product / factor
            except UnitError:
                return None  # a temperature with an offset has no products
            return product

        super().__init__(
            inputs=[Port(name, width="n") for name in names],
            outputs=[Port("y", width="n", unit=unit or Derived(derive, names))],
            integers=[1 if sign == "*" else -1 for sign in signs],
        )


class Divide(Product):
    """A quotient, element by element: y = u1 / u2.

    Parameters
    ----------
    unit
        Unit of the output, instead of the derived one.
    """

    def __init__(self, *, unit: str | None = None) -> None:
        super().__init__(
            "*/",
            unit=unit,
        )


class Abs(NativeBlock):
    """The magnitude: y = |u|, in the unit of u."""

    kernel = "abs"
    elementwise = True

    def __init__(self) -> None:
        super().__init__(
            inputs=[Port("u", width="n", unit=Same())],
            outputs=[Port("y", width="n", unit=Same())],
        )


class Sign(NativeBlock):
    """The sign: y = -1, 0 or 1. It jumps: at ticks, or where events are located, at zeros of u."""

    kernel = "sign"
    piecewise_constant = True

    def __init__(self) -> None:
        super().__init__(
            inputs=[Port("u", width="n")],
            outputs=[Port("y", width="n")],
            rate=SWITCHING,
        )


class MinMax(NativeBlock):
    """The smallest or the largest: y = min(u1, u2, …) or y = max(u1, u2, …), in their unit.

    Parameters
    ----------
    mode
        ``"min"`` or ``"max"``.
    inputs
        How many, compared element by element; a single one gives its smallest or largest element.
    """

    kernel = "minmax"

    def __init__(self, mode: str, inputs: int = 2) -> None:
        largest = require_choice("mode", mode, ("min", "max"))
        if inputs < 1:
            raise DiagramError(f"MinMax needs at least one input, got inputs={inputs!r}.")
        super().__init__(
            inputs=[Port(f"u{n}", width="n", unit=Same()) for n in range(1, inputs + 1)],
            outputs=[Port("y", width="n" if inputs > 1 else 1, unit=Same())],
            integers=[largest],
        )


class Polynomial(NativeBlock):
    """A polynomial, element by element: y = c[0] u^n + c[1] u^(n-1) + … + c[n].

    Parameters
    ----------
    coefficients
        The highest power first, as in `numpy.polyval`.
    unit
        Unit of the output; the input takes any.
    """

    kernel = "polynomial"

    def __init__(self, coefficients: Numbers, *, unit: str | None = None) -> None:
        c = parameter("coefficients", coefficients, doc="the highest power first")
        if c.value.ndim != 1:
            raise DiagramError(f"`coefficients` are a list, not of shape {c.value.shape}.")
        super().__init__(
            inputs=[Port("u", width="n")],
            outputs=[Port("y", width="n", unit=unit)],
            parameters=[c],
        )


class Convert(NativeBlock):
    """A signal as another kind.

    - to real: y = u
    - to integer: y = the nearest whole number, halves away from zero
    - to boolean: y = 1 if u is not 0, else 0

    The last two jump: at ticks, or where events are located, when u does.

    Parameters
    ----------
    to
        ``"real"``, ``"integer"`` or ``"boolean"``.
    """

    kernel = "convert"

    def __init__(self, to: Kind) -> None:
        kind = require_choice("to", to, _CONVERSIONS)
        unit = None if to == "boolean" else Same()
        super().__init__(
            inputs=[Port("u", width="n", unit=unit, kind=Same())],
            outputs=[Port("y", width="n", unit=unit, kind=to)],
            rate=INHERITED if to == "real" else SWITCHING,
            integers=[kind],
        )


def _require_signs(block: str, signs: str, valid: str) -> None:
    if not isinstance(signs, str) or not signs or set(signs) - set(valid):
        raise DiagramError(
            f"{block} needs one `{valid[0]}` or `{valid[1]}` for each input, such as {valid!r}; "
            f"got {signs!r}."
        )
