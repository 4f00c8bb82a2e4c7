"""Formulas evaluated in Python together with their first and second derivatives.

A jet is (value, first, second derivative) with respect to one variable; the rules below carry it
through a formula exactly. At a kink of `abs`, `min`, `clip` … the derivative is that of one side,
and of `floor`, comparisons and the like it is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from ...core.formula._formula import Apply, Chain, Number, Term, Variable

Jet = tuple[float, float, float]
Real = Callable[[float], float]


def _nothing(_: float) -> float:
    return 0.0


def _sign(x: float) -> float:
    return 1.0 if x > 0 else -1.0 if x < 0 else x


# f, f' and f'' of every operation on one value.
_UNARY: dict[str, tuple[Real, Real, Real]] = {
    "negate": (lambda x: -x, lambda x: -1.0, _nothing),
    "not": (lambda x: float(not x), _nothing, _nothing),
    "truth": (lambda x: float(bool(x)), _nothing, _nothing),
    "square": (lambda x: x * x, lambda x: 2.0 * x, lambda x: 2.0),
    "abs": (abs, _sign, _nothing),
    "sign": (_sign, _nothing, _nothing),
    "floor": (math.floor, _nothing, _nothing),
    "ceil": (math.ceil, _nothing, _nothing),
    "round": (round, _nothing, _nothing),
    "sqrt": (math.sqrt, lambda x: 0.5 / math.sqrt(x), lambda x: -0.25 / (x * math.sqrt(x))),
    "exp": (math.exp, math.exp, math.exp),
    "log": (math.log, lambda x: 1.0 / x, lambda x: -1.0 / x**2),
    "log10": (
        math.log10,
        lambda x: 1.0 / (x * math.log(10.0)),
        lambda x: -1.0 / (x**2 * math.log(10.0)),
    ),
    "sin": (math.sin, math.cos, lambda x: -math.sin(x)),
    "cos": (math.cos, lambda x: -math.sin(x), lambda x: -math.cos(x)),
    "tan": (
        math.tan,
        lambda x: 1.0 + math.tan(x) ** 2,
        lambda x: 2.0 * math.tan(x) * (1.0 + math.tan(x) ** 2),
    ),
    "asin": (math.asin, lambda x: (1.0 - x * x) ** -0.5, lambda x: x * (1.0 - x * x) ** -1.5),
    "acos": (math.acos, lambda x: -((1.0 - x * x) ** -0.5), lambda x: -x * (1.0 - x * x) ** -1.5),
    "atan": (math.atan, lambda x: 1.0 / (1.0 + x * x), lambda x: -2.0 * x / (1.0 + x * x) ** 2),
    "sinh": (math.sinh, math.cosh, math.sinh),
    "cosh": (math.cosh, math.sinh, math.cosh),
    "tanh": (
        math.tanh,
        lambda x: 1.0 - math.tanh(x) ** 2,
        lambda x: -2.0 * math.tanh(x) * (1.0 - math.tanh(x) ** 2),
    ),
}

_STEPS: dict[str, Callable[[float, float], float]] = {
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "greater_equal": lambda a, b: a >= b,
    "greater": lambda a, b: a > b,
    "and": lambda a, b: bool(a and b),
    "or": lambda a, b: bool(a or b),
    "floor_divide": lambda a, b: a // b,
}


def evaluate(term: Term, variables: Mapping[str, Jet]) -> Jet:
    """Return the jet of a formula.

    Derivatives are computed only for arguments that vary: the value of ``sqrt(t)`` at 0 is valid
    although its derivative is infinite.

    Raises
    ------
    ArithmeticError, ValueError
        Where it has no value.
    """
    match term:
        case Number(value):
            return (value, 0.0, 0.0)
        case Variable(name, index, _):
            return variables[name if index is None else f"{name}[{index}]"]
        case Chain(operations, arguments):
            values = [evaluate(argument, variables)[0] for argument in arguments]
            pairs = zip(operations, values, values[1:], strict=False)
            return (float(all(_STEPS[name](a, b) for name, a, b in pairs)), 0.0, 0.0)
        case Apply(operation, arguments):
            return _apply(operation, [evaluate(argument, variables) for argument in arguments])


def _apply(operation: str, jets: list[Jet]) -> Jet:
    if operation in _UNARY:
        return _compose(_UNARY[operation], jets[0])
    if operation in _STEPS:
        return (float(_STEPS[operation](jets[0][0], jets[1][0])), 0.0, 0.0)
    if operation == "select":
        return jets[1] if jets[0][0] else jets[2]
    if operation == "clip":
        value, low, high = jets
        return low if value[0] < low[0] else high if value[0] > high[0] else value
    return _BINARY[operation](jets[0], jets[1])


def _compose(rules: tuple[Real, Real, Real], x: Jet) -> Jet:
    """Return the jet of f(x): f, f' x', f'' x'² + f' x''."""
    value = float(rules[0](x[0]))
    if x[1] == 0.0 and x[2] == 0.0:
        return (value, 0.0, 0.0)
    slope = rules[1](x[0])
    return (value, slope * x[1], rules[2](x[0]) * x[1] ** 2 + slope * x[2])


def _add(a: Jet, b: Jet) -> Jet:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def _subtract(a: Jet, b: Jet) -> Jet:
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def _multiply(a: Jet, b: Jet) -> Jet:
    return (
        a[0] * b[0],
        a[1] * b[0] + a[0] * b[1],
        a[2] * b[0] + 2.0 * a[1] * b[1] + a[0] * b[2],
    )


def _divide(a: Jet, b: Jet) -> Jet:
    value = a[0] / b[0]
    first = (a[1] - value * b[1]) / b[0]
    return (value, first, (a[2] - 2.0 * first * b[1] - value * b[2]) / b[0])


def _power(a: Jet, b: Jet) -> Jet:
    value = math.pow(a[0], b[0])
    if a[1] == a[2] == b[1] == b[2] == 0.0:
        return (value, 0.0, 0.0)
    if b[1] == b[2] == 0.0:
        n = b[0]
        slope = n * a[0] ** (n - 1.0) if n else 0.0
        bend = n * (n - 1.0) * a[0] ** (n - 2.0) if n not in (0.0, 1.0) else 0.0
        return (value, slope * a[1], bend * a[1] ** 2 + slope * a[2])
    exponent = _multiply(b, _compose(_UNARY["log"], a))
    return (value, *_compose(_UNARY["exp"], exponent)[1:])


def _atan2(y: Jet, x: Jet) -> Jet:
    value = math.atan2(y[0], x[0])
    if y[1] == y[2] == x[1] == x[2] == 0.0:
        return (value, 0.0, 0.0)
    square = x[0] ** 2 + y[0] ** 2
    first = (x[0] * y[1] - y[0] * x[1]) / square
    growth = 2.0 * (x[0] * x[1] + y[0] * y[1])
    return (value, first, (x[0] * y[2] - y[0] * x[2] - first * growth) / square)


def _hypot(a: Jet, b: Jet) -> Jet:
    squares = _add(_multiply(a, a), _multiply(b, b))
    jet = _compose(_UNARY["sqrt"], squares)
    return (math.hypot(a[0], b[0]), jet[1], jet[2])


def _modulo(a: Jet, b: Jet) -> Jet:
    turns = a[0] // b[0]
    return (a[0] % b[0], a[1] - turns * b[1], a[2] - turns * b[2])


_BINARY: dict[str, Callable[[Jet, Jet], Jet]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "power": _power,
    "atan2": _atan2,
    "hypot": _hypot,
    "modulo": _modulo,
    "min": lambda a, b: a if a[0] <= b[0] else b,
    "max": lambda a, b: a if a[0] >= b[0] else b,
}
