"""Formulas in strings: parsed safely and compiled to programs for the engine's stack machine.

A formula is parsed with Python's grammar and never evaluated by Python: syntax that is not on the
list below is rejected. ``blocks/core/formula/formula.c`` runs the program. The opcodes in its
header and in this file are in the same order.
"""

from __future__ import annotations

import ast
import math
import operator
import struct
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from .... import _contract as contract
from ....errors import DiagramError, name_list, suggest

LONGEST = 4000
"""Characters of one formula."""
DEEPEST = 100
"""Levels of one formula; the sum of n terms has n levels."""
TALLEST = 64
"""Values on the stack of the engine."""

CONSTANTS = {"pi": math.pi, "e": math.e}
TIME = "t"


def _sign(x: float) -> float:
    return 1.0 if x > 0 else -1.0 if x < 0 else x


def _clip(x: float, low: float, high: float) -> float:
    return low if x < low else high if x > high else x


def _select(condition: float, yes: float, no: float) -> float:
    return yes if condition else no


def _unfolded(*_: float) -> float:
    raise AssertionError("an opcode that no formula names")


# Every opcode of formula.h by its name there: its number of operands and its function.
_OPCODES: dict[str, tuple[int, Callable[..., float]]] = {
    "store": (1, _unfolded),
    "constant": (0, _unfolded),
    "input": (0, _unfolded),
    "parameter": (0, _unfolded),
    "time": (0, _unfolded),
    "tuck": (2, _unfolded),
    "swap": (2, _unfolded),
    "select": (3, _select),
    "clip": (3, _clip),
    "add": (2, operator.add),
    "subtract": (2, operator.sub),
    "multiply": (2, operator.mul),
    "divide": (2, operator.truediv),
    "power": (2, math.pow),
    "floor_divide": (2, operator.floordiv),
    "modulo": (2, operator.mod),
    "less": (2, operator.lt),
    "less_equal": (2, operator.le),
    "equal": (2, operator.eq),
    "not_equal": (2, operator.ne),
    "greater_equal": (2, operator.ge),
    "greater": (2, operator.gt),
    "and": (2, lambda a, b: bool(a and b)),
    "or": (2, lambda a, b: bool(a or b)),
    "min": (2, min),
    "max": (2, max),
    "atan2": (2, math.atan2),
    "hypot": (2, math.hypot),
    "negate": (1, operator.neg),
    "not": (1, operator.not_),
    "truth": (1, bool),
    "square": (1, lambda x: x * x),
    "abs": (1, abs),
    "sign": (1, _sign),
    "floor": (1, math.floor),
    "ceil": (1, math.ceil),
    "round": (1, round),
    "sqrt": (1, math.sqrt),
    "exp": (1, math.exp),
    "log": (1, math.log),
    "log10": (1, math.log10),
    "sin": (1, math.sin),
    "cos": (1, math.cos),
    "tan": (1, math.tan),
    "asin": (1, math.asin),
    "acos": (1, math.acos),
    "atan": (1, math.atan),
    "sinh": (1, math.sinh),
    "cosh": (1, math.cosh),
    "tanh": (1, math.tanh),
}
_NUMBERS: dict[str, int] = {
    name: getattr(contract, f"BL_FORMULA_{name.upper()}") for name in _OPCODES
}

FUNCTIONS = {
    **{name: name for name in list(_OPCODES)[list(_OPCODES).index("abs") :]},
    **{name: name for name in ("atan2", "hypot", "min", "max", "clip")},
    "mod": "modulo",
    "pow": "power",
    "where": "select",
}
"""Functions that a formula may call, and their opcodes."""

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "modulo",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.GtE: "greater_equal",
    ast.Gt: "greater",
}
_ADVICE: dict[type[ast.AST], str] = {
    ast.BitXor: "`^`: a power is `**`",
    ast.BitAnd: "`&`: write `and`",
    ast.BitOr: "`|`: write `or`",
    ast.Invert: "`~`: write `not`",
    ast.MatMult: "`@`: use a Gain with a matrix",
    ast.LShift: "`<<`: multiply by a power of 2",
    ast.RShift: "`>>`: divide by a power of 2",
    ast.Is: "`is`: write `==`",
    ast.IsNot: "`is not`: write `!=`",
    ast.In: "`in`: write comparisons",
    ast.NotIn: "`not in`: write comparisons",
    ast.Attribute: "a dot: write `sin(x)`, not `math.sin(x)`, and name an input without dots",
    ast.Lambda: "a lambda",
    ast.NamedExpr: "`:=`: give each result its own output",
    ast.Tuple: "a comma here: give each result its own output, {'y1': '…', 'y2': '…'}",
    ast.List: "a list: give a list of formulas for a vector output",
    ast.JoinedStr: "a string",
    ast.Starred: "`*` before an argument",
    ast.Slice: "a slice: take single elements, `u[2]`",
}


@dataclass(frozen=True, slots=True)
class Number:
    """A constant."""

    value: float


@dataclass(frozen=True, slots=True)
class Variable:
    """An input, a parameter or the time; of a vector, one element."""

    name: str
    index: int | None
    column: int


@dataclass(frozen=True, slots=True)
class Apply:
    """An operation on what stands below it, by the name of its opcode."""

    operation: str
    arguments: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """Comparisons in line: a < b < c, with b computed once."""

    operations: tuple[str, ...]
    arguments: tuple[Term, ...]


Term = Number | Variable | Apply | Chain


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula that was read: its text, and what it computes."""

    text: str
    term: Term

    def variables(self) -> list[Variable]:
        """Return where it uses inputs, parameters or time, from left to right."""
        return sorted(_variables(self.term), key=lambda variable: variable.column)

    def fail(self, column: int, why: str) -> DiagramError:
        """Return an error that points at `column`."""
        return _error(self.text, column, why)


def read_formula(text: str, declared: Iterable[str] = (), *, dotted: bool = False) -> Formula:
    """Read a formula.

    Parameters
    ----------
    text
        An expression in Python's grammar; see `Expression` for the permitted syntax.
    declared
        Names that mean inputs or parameters even where a constant has the same name.
    dotted
        Whether names may have dots, ``slider.x``; other characters then stand in quotes,
        ``'piston pin.angle'``.

    Raises
    ------
    DiagramError
        If the text is not a valid formula; the message marks the position.
    """
    if not isinstance(text, str):
        raise DiagramError(f"a formula is a string such as 'k*sin(theta)', got {text!r}.")
    if len(text) > LONGEST:
        raise DiagramError(
            f"a formula of {len(text)} characters is too long: at most {LONGEST}. "
            f"Split it into several Expressions."
        )
    text = " ".join(text.split())
    if "#" in text or "\0" in text:
        character = "#" if "#" in text else "\0"
        raise _error(text, text.index(character), f"a formula cannot hold {character!r}")
    _check_brackets(text)
    try:
        with warnings.catch_warnings():  # such as that of "1if": it is about Python, not formulas
            warnings.simplefilter("ignore")
            tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        if not text:
            raise DiagramError("a formula is empty: write one such as 'k*u'.") from None
        column = error.offset - 1 if error.offset and error.lineno == 1 else len(text)
        raise _error(text, column, f"this cannot be read ({error.msg})") from None
    except (ValueError, MemoryError, RecursionError):
        raise _error(text, 0, f"this is nested too deep: at most {DEEPEST} levels") from None
    return Formula(text, _Reader(text, frozenset(declared), dotted).read(tree.body, 1))


def write_program(
    formula: Formula,
    sources: Mapping[str, Callable[[int], tuple[int, ...]]],
    destination: tuple[int, int],
) -> list[int]:
    """Return the words that compute `formula` and store it.

    Parameters
    ----------
    sources
        For each name, the instruction that fetches an element of it.
    destination
        Number of the output port, and element.
    """
    words, height = _emit(formula.term, sources)
    if height > TALLEST:
        raise formula.fail(
            0, f"this needs {height} values at a time, at most {TALLEST} fit: split it in two"
        )
    return [*words, _NUMBERS["store"], *destination]


def fetch_input(port: int) -> Callable[[int], tuple[int, ...]]:
    """Return how an element of an input is fetched."""
    return lambda element: (_NUMBERS["input"], port, element)


def fetch_parameter(first: int) -> Callable[[int], tuple[int, ...]]:
    """Return how an element of the parameter that starts at `first` is fetched."""
    return lambda element: (_NUMBERS["parameter"], first + element)


def fetch_time(_: int) -> tuple[int, ...]:
    """Return how the time is fetched."""
    return (_NUMBERS["time"],)


def as_kind(formula: Formula, kind: str) -> Formula:
    """Return `formula` with its value made to fit an output of that kind."""
    operation = {"boolean": "truth", "integer": "round", "enumeration": "round"}.get(kind)
    return Formula(formula.text, Apply(operation, (formula.term,))) if operation else formula


class _Reader:
    """Converts Python's syntax tree to formula nodes; rejects everything else."""

    def __init__(self, text: str, declared: frozenset[str], dotted: bool) -> None:
        self.text = text
        self.declared = declared
        self.dotted = dotted

    def read(self, node: ast.expr, level: int) -> Term:
        if level > DEEPEST:
            raise self.fail(node, f"this is nested too deep: at most {DEEPEST} levels")
        level += 1
        if self.dotted and (path := _dotted_name(node)):
            return Variable(path, None, self.column(node))
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return self.number(node, value)
            case ast.Name(id=name):
                return self.name(node, name)
            case ast.Subscript(value=ast.Name(id=name), slice=place):
                return self.element(node, name, place)
            case ast.Subscript(value=of, slice=place) if self.dotted and (path := _dotted_name(of)):
                return self.element(node, path, place)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.read(operand, level)
            case ast.UnaryOp(op=ast.USub() | ast.Not() as unary, operand=operand):
                name = "not" if isinstance(unary, ast.Not) else "negate"
                return self.apply(node, name, (self.read(operand, level),))
            case ast.UnaryOp(op=other_unary):
                raise self.refuse(node, other_unary)
            case ast.BinOp(left=left, op=binary, right=right):
                if type(binary) not in _BINARY:
                    raise self.refuse(node, binary)
                both = (self.read(left, level), self.read(right, level))
                return self.apply(node, _BINARY[type(binary)], both)
            case ast.BoolOp(op=boolean, values=values):
                name = "and" if isinstance(boolean, ast.And) else "or"
                return self.fold_left(node, name, [self.read(value, level) for value in values])
            case ast.Compare(left=left, ops=ops, comparators=others):
                for comparison in ops:
                    if type(comparison) not in _COMPARISONS:
                        raise self.refuse(node, comparison)
                names = tuple(_COMPARISONS[type(comparison)] for comparison in ops)
                terms = tuple(self.read(value, level) for value in (left, *others))
                return self.apply(node, names[0], terms) if len(names) == 1 else Chain(names, terms)
            case ast.IfExp(test=test, body=body, orelse=other):
                parts = tuple(self.read(part, level) for part in (test, body, other))
                return self.apply(node, "select", parts)
            case ast.Call():
                return self.call(node, level)
            case _:
                raise self.refuse(node, node)

    def number(self, node: ast.expr, value: float) -> Number:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.fail(node, "this number is too large")
        return Number(number)

    def name(self, node: ast.expr, name: str) -> Term:
        if name in CONSTANTS and name not in self.declared:
            return Number(CONSTANTS[name])
        if name in FUNCTIONS:
            raise self.fail(node, f"`{name}` is a function: write `{name}(…)`")
        return Variable(name, None, self.column(node))

    def element(self, node: ast.expr, name: str, place: ast.expr) -> Variable:
        if not (isinstance(place, ast.Constant) and type(place.value) is int):
            if isinstance(place, ast.Slice | ast.Tuple):
                raise self.refuse(place, ast.Slice())
            raise self.fail(place, "an index is a whole number, from 0: `u[2]`")
        if place.value >= 1 << 20:
            raise self.fail(place, f"the index {place.value} is too large")
        if name in FUNCTIONS or name == TIME:
            raise self.fail(node, f"`{name}` has no elements")
        return Variable(name, place.value, self.column(node))

    def call(self, node: ast.Call, level: int) -> Term:
        if not isinstance(node.func, ast.Name):
            raise self.refuse(node.func, node.func)
        name = node.func.id
        if name not in FUNCTIONS:
            raise self.fail(
                node,
                f"there is no function `{name}`.{suggest(name, FUNCTIONS)} "
                f"Functions: {name_list(sorted(FUNCTIONS), limit=99)}",
            )
        if node.keywords:
            raise self.fail(node, f"`{name}` takes no named arguments")
        arguments = [self.read(argument, level) for argument in node.args]
        operation = FUNCTIONS[name]
        wanted = _OPCODES[operation][0]
        if name in ("min", "max"):
            if len(arguments) < 2:
                raise self.fail(node, f"`{name}` takes two arguments or more")
            return self.fold_left(node, operation, arguments)
        if len(arguments) != wanted:
            plural = "argument" if wanted == 1 else "arguments"
            raise self.fail(node, f"`{name}` takes {wanted} {plural}, got {len(arguments)}")
        return self.apply(node, operation, tuple(arguments))

    def fold_left(self, node: ast.expr, operation: str, terms: list[Term]) -> Term:
        result = terms[0]
        for term in terms[1:]:
            result = self.apply(node, operation, (result, term))
        return result

    def apply(self, node: ast.expr, operation: str, terms: tuple[Term, ...]) -> Term:
        """Apply an operation: now, if it is on constants."""
        if operation == "power" and terms[1] == Number(2.0) and not isinstance(terms[0], Number):
            return Apply("square", terms[:1])
        values = [term.value for term in terms if isinstance(term, Number)]
        if len(values) < len(terms):
            return Apply(operation, terms)
        try:
            value = float(_OPCODES[operation][1](*values))
        except (ArithmeticError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            part = ast.get_source_segment(self.text, node) or ""
            raise self.fail(node, f"`{_shorten(part)}` has no finite value")
        return Number(value)

    def column(self, node: ast.expr) -> int:
        return len(self.text.encode()[: node.col_offset].decode())

    def fail(self, node: ast.expr, why: str) -> DiagramError:
        return _error(self.text, self.column(node), why)

    def refuse(self, node: ast.expr, what: ast.AST) -> DiagramError:
        if isinstance(what, ast.Constant):
            words = f"{_shorten(repr(what.value))}: it has real numbers only"
        else:
            words = _ADVICE.get(type(what), f"Python's {type(what).__name__}")
        return self.fail(node, f"a formula cannot hold {words}")


def _emit(
    term: Term, sources: Mapping[str, Callable[[int], tuple[int, ...]]]
) -> tuple[list[int], int]:
    """Return the words that push `term`, and how many places they need."""
    match term:
        case Number(value):
            return [_NUMBERS["constant"], *struct.unpack("<ii", struct.pack("<d", value))], 1
        case Variable(name, index, _):
            return list(sources[name](index or 0)), 1
        case Apply(operation, arguments):
            words, height = _emit_all(arguments, sources)
            return [*words, _NUMBERS[operation]], height
        case Chain(operations, arguments):
            tuck, swap = _NUMBERS["tuck"], _NUMBERS["swap"]
            words, height = _emit(arguments[0], sources)
            for n, operation in enumerate(operations):
                # On the stack: n verdicts, and the left operand on top.
                more, needed = _emit(arguments[n + 1], sources)
                words += more
                height = max(height, n + 1 + needed)
                # A tuck needs one place more: no more than the operand after it.
                last = n == len(operations) - 1
                words += [_NUMBERS[operation]] if last else [tuck, _NUMBERS[operation], swap]
            return [*words, *[_NUMBERS["and"]] * (len(operations) - 1)], height


def _emit_all(
    terms: tuple[Term, ...], sources: Mapping[str, Callable[[int], tuple[int, ...]]]
) -> tuple[list[int], int]:
    words, height = [], 0
    for below, term in enumerate(terms):
        more, needed = _emit(term, sources)
        words += more
        height = max(height, below + needed)
    return words, height


def _variables(term: Term) -> Iterator[Variable]:
    if isinstance(term, Variable):
        yield term
    elif not isinstance(term, Number):
        for argument in term.arguments:
            yield from _variables(argument)


def _check_brackets(text: str) -> None:
    """Reject deep nesting before Python's parser, which may exhaust its stack on it."""
    level = 0
    for column, character in enumerate(text):
        level += (character in "([{") - (character in ")]}")
        if level > DEEPEST:
            raise _error(text, column, f"this is nested too deep: at most {DEEPEST} levels")


def _dotted_name(node: ast.expr) -> str:
    """Return ``a.b.c``, or what stands in quotes; empty if this is neither."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    match node:
        case ast.Constant(value=str() as quoted):
            return ".".join([quoted, *reversed(parts)])
        case ast.Name(id=name) if parts:
            return ".".join([name, *reversed(parts)])
    return ""


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "…"


def _error(text: str, column: int, why: str) -> DiagramError:
    first = max(0, column - 50)
    shown = text[first : column + 30]
    pointer = " " * (column - first) + "^"
    return DiagramError(f"in a formula, column {column + 1}: {why}.\n    {shown}\n    {pointer}")
