"""Functions of one and of two inputs."""

from __future__ import annotations

from ....errors import DiagramError, name_list, suggest
from ...core._block import NativeBlock
from ...core._ports import INHERITED, SWITCHING, Port

# In the order of blocks/basic/math/function.c.
_SMOOTH = (
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "cbrt", "square", "reciprocal",
)  # fmt: skip
_JUMPING = ("floor", "ceil", "round", "trunc")
_PAIRS = ("atan2", "hypot", "pow", "mod")
FUNCTIONS = (*_SMOOTH, *_JUMPING, *_PAIRS)
"""Functions of a `Function` block."""


class Function(NativeBlock):
    """A function, element by element: y = f(u), or y = f(u1, u2).

    - of ``u``: sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh, exp, expm1,
      log, log1p, log2, log10, sqrt, cbrt, square, reciprocal, floor, ceil, round, trunc
    - of ``u1`` and ``u2``: atan2(u1, u2), hypot, pow (u1 to the power u2), mod (u1 modulo u2, with
      the sign of u2)

    Angles are in rad. round takes halves away from zero. Inputs accept any unit; units are not
    checked. floor, ceil, round, trunc and mod jump: at ticks, or where events are located, when
    their input does. A value outside the domain, such as the log of -1, stops the run.

    Parameters
    ----------
    name
        One of the above.
    unit
        Unit of the output.
    """

    kernel = "function"
    elementwise = True

    def __init__(self, name: str, *, unit: str | None = None) -> None:
        if name not in FUNCTIONS:
            raise DiagramError(
                f"there is no function {name!r}.{suggest(str(name), FUNCTIONS)} "
                f"Functions: {name_list(FUNCTIONS, 40)}. For a formula use an Expression."
            )
        pair = name in _PAIRS
        otherwise = SWITCHING if name in _JUMPING or name == "mod" else INHERITED
        super().__init__(
            inputs=[Port(port, width="n") for port in (("u1", "u2") if pair else ("u",))],
            outputs=[Port("y", width="n", unit=unit)],
            integers=[_PAIRS.index(name) if pair else FUNCTIONS.index(name)],
            rate=otherwise,
            kernel="function_pair" if pair else None,
        )
