"""Formulas as text of cards, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable

from ....errors import DiagramError
from ...core.formula._formula import Apply, Chain, Number, Term, Variable

_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "^"}
_CALLS = {
    *("abs", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "exp", "log"),
    *("sinh", "cosh", "tanh", "sign", "atan2", "min", "max"),
}
ZERO, ONE = Number(0.0), Number(1.0)


def write_term(term: Term, refer: Callable[[Variable], str]) -> str:
    """Return a formula as an expression of cards.

    Parameters
    ----------
    term
        The formula.
    refer
        Returns what stands for a variable; raises a `DiagramError` if nothing does.
    """

    def write(term: Term) -> str:
        match term:
            case Number(value):
                return repr(value) if value >= 0.0 else f"({value!r})"
            case Variable():
                return refer(term)
            case Chain():
                raise DiagramError("comparisons in line cannot be expressed")
        operation, given = term.operation, term.arguments
        if operation == "select":
            return _write_select(given)
        parts = [write(argument) for argument in given]
        if operation in _SIGNS:
            return f"({parts[0]}{_SIGNS[operation]}{parts[1]})"
        if operation == "square":
            return f"({parts[0]}^2)"
        if operation == "negate":
            return f"(-{parts[0]})"
        if operation in _CALLS:
            return f"{operation}({','.join(parts)})"
        if operation == "hypot":
            return f"sqrt({parts[0]}^2+{parts[1]}^2)"
        if operation == "log10":
            return f"(log({parts[0]})/log(10))"
        raise DiagramError(f"`{operation}` cannot be expressed")

    def _write_select(given: tuple[Term, ...]) -> str:
        test, yes, no = given
        if not isinstance(test, Apply) or len(test.arguments) != 2:
            raise DiagramError("a condition that is not one comparison cannot be expressed")
        a, b = test.arguments
        if test.operation in ("less", "greater_equal"):
            step, swapped = _step(a, b), test.operation == "less"
        elif test.operation in ("greater", "less_equal"):
            step, swapped = _step(b, a), test.operation == "greater"
        else:
            raise DiagramError(f"the condition `{test.operation}` cannot be expressed")
        yes, no = (no, yes) if swapped else (yes, no)
        if no == ZERO:
            return step if yes == ONE else f"({write(yes)}*{step})"
        if yes == ZERO:
            return f"({write(no)}*(1-{step}))"
        return f"({write(yes)}*{step}+{write(no)}*(1-{step}))"

    def _step(a: Term, b: Term) -> str:
        return f"step({write(a)})" if b == ZERO else f"step({write(a)}-{write(b)})"

    return write(term)


def add(a: Term, b: Term) -> Term:
    """Return a + b."""
    return b if a == ZERO else a if b == ZERO else Apply("add", (a, b))


def multiply(a: Term, b: Term) -> Term:
    """Return a b."""
    if ZERO in (a, b):
        return ZERO
    return b if a == ONE else a if b == ONE else Apply("multiply", (a, b))


def _negate(a: Term) -> Term:
    return Number(-a.value + 0.0) if isinstance(a, Number) else Apply("negate", (a,))


def _call(name: str, *of: Term) -> Term:
    return Apply(name, of)


def _power(a: Term, n: float) -> Term:
    return Apply("power", (a, Number(n)))


def _inner(operation: str, x: Term) -> Term:
    """Return the derivative of a function of one value."""
    match operation:
        case "negate":
            return Number(-1.0)
        case "square":
            return multiply(Number(2.0), x)
        case "sqrt":
            return multiply(Number(0.5), _power(x, -0.5))
        case "exp" | "sinh":
            return _call("cosh" if operation == "sinh" else "exp", x)
        case "log":
            return _power(x, -1.0)
        case "sin" | "cos":
            return _call("cos", x) if operation == "sin" else _negate(_call("sin", x))
        case "tan":
            return _power(_call("cos", x), -2.0)
        case "cosh":
            return _call("sinh", x)
        case "tanh":
            return _power(_call("cosh", x), -2.0)
        case "asin" | "acos":
            made = _power(_call("subtract", ONE, _call("square", x)), -0.5)
            return made if operation == "asin" else _negate(made)
        case "atan":
            return _power(add(ONE, _call("square", x)), -1.0)
    raise DiagramError(f"the derivative of `{operation}` cannot be written")


def differentiate(term: Term, name: str) -> Term:
    """Return the derivative with respect to a variable."""
    match term:
        case Number():
            return ZERO
        case Variable():
            return ONE if term.name == name else ZERO
        case Chain():
            raise DiagramError("a comparison has no derivative")
    operation, given = term.operation, term.arguments
    rates = [differentiate(argument, name) for argument in given]
    if all(rate == ZERO for rate in rates):
        return ZERO
    if len(given) == 1:
        return multiply(_inner(operation, given[0]), rates[0])
    (a, b), (da, db) = given[:2], rates[:2]
    match operation:
        case "add":
            return add(da, db)
        case "subtract":
            return add(da, _negate(db) if db != ZERO else ZERO)
        case "multiply":
            return add(multiply(da, b), multiply(a, db))
        case "divide":
            lost = ZERO if db == ZERO else _negate(_call("divide", multiply(a, db), _power(b, 2.0)))
            return add(ZERO if da == ZERO else _call("divide", da, b), lost)
        case "power" if isinstance(b, Number):
            return multiply(multiply(b, _power(a, b.value - 1.0)), da)
    raise DiagramError(f"the derivative of `{operation}` cannot be written")
