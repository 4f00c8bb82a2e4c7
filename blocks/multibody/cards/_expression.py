"""The expression language of cards, translated to formulas.

``^`` is the power, a division is real, ``step(x)`` is 1 for x ≥ 0 and else 0. Coordinates are
``q1`` … and their rates ``qp1`` …, seven for each body: place and Euler parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ....errors import DiagramError, name_list, suggest
from ...core.formula._formula import Formula, Number, read_formula
from ._file import Entry

FUNCTIONS = {
    **dict.fromkeys(("abs", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "exp", "log"), 1),
    **dict.fromkeys(("sinh", "cosh", "tanh", "sign", "step"), 1),
    **dict.fromkeys(("atan2", "min", "max"), 2),
}
"""Functions by name, with their number of arguments; of min and max the least."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eEdD][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<mark>[-+*/^(),]))",
    re.ASCII,
)
DEEPEST = 100
"""Levels of parentheses."""
LONGEST_NUMBER = 400
"""Characters of a number."""

Names = Callable[[str], str]
"""Returns what stands for a variable in the formula; raises a `DiagramError` if it is unknown."""


def translate(entry: Entry, names: Names) -> str:
    """Return the formula of an entry; raise a `DiagramError` with its place."""
    try:
        return _Translator(entry.value, names).translate()
    except DiagramError as error:
        raise DiagramError(
            [f"{entry.place}: `{entry.key}`: {text}" for text in error.problems]
        ) from None


def read_expression(entry: Entry, names: Names) -> Formula:
    """Return the formula of an entry as it was read; raise a `DiagramError` with its place."""
    text = translate(entry, names)
    try:
        return read_formula(text, ("t",), dotted=True)
    except DiagramError as error:
        raise DiagramError(
            [f"{entry.place}: `{entry.key}`: {text}" for text in error.problems]
        ) from None


def as_value(formula: Formula) -> float | str:
    """Return the number of a constant formula, or its text."""
    return formula.term.value if isinstance(formula.term, Number) else formula.text


class _Translator:
    """Reads an expression from left to right: sums, products, signs, powers, values."""

    def __init__(self, text: str, names: Names) -> None:
        self.text = text
        self.names = names
        self.tokens: list[tuple[str, str]] = []
        self.place = 0
        self.level = 0
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                raise self.fail(f"`{text[position:].strip()[:20]}` cannot be read")
            kind = match.lastgroup or ""
            self.tokens.append((kind, match.group(kind)))
            position = match.end()

    def fail(self, why: str) -> DiagramError:
        return DiagramError(f"{why}, in `{self.text[:200]}`.")

    def peek(self) -> str:
        return self.tokens[self.place][1] if self.place < len(self.tokens) else ""

    def take(self) -> tuple[str, str]:
        if self.place == len(self.tokens):
            raise self.fail("the expression ends too early")
        self.place += 1
        return self.tokens[self.place - 1]

    def expect(self, mark: str) -> None:
        if self.peek() != mark:
            got = f"`{self.peek()}`" if self.peek() else "the end"
            raise self.fail(f"expected `{mark}`, got {got}")
        self.place += 1

    def translate(self) -> str:
        made = self.sum()
        if self.peek():
            raise self.fail(f"`{self.peek()}` is not expected")
        return made

    def sum(self) -> str:
        self.level += 1
        if self.level > DEEPEST:
            raise self.fail(f"it is nested too deep, at most {DEEPEST} levels")
        made = self.product()
        while self.peek() in ("+", "-"):
            made += f" {self.take()[1]} {self.product()}"
        self.level -= 1
        return made

    def product(self) -> str:
        made = self.signed()
        while self.peek() in ("*", "/"):
            made += self.take()[1] + self.signed()
        return made

    def signed(self) -> str:
        marks = ""
        while self.peek() in ("+", "-"):
            marks += self.take()[1]
        return ("-" if marks.count("-") % 2 else "") + self.power()

    def power(self) -> str:
        made = self.value()
        if self.peek() == "^":
            self.place += 1
            sign = ""
            while self.peek() in ("+", "-"):
                sign += self.take()[1]
            made += f"**{'-' if sign.count('-') % 2 else ''}{self.value()}"
            if self.peek() == "^":
                raise self.fail("a^b^c has no order that is documented: write parentheses")
        return made

    def value(self) -> str:
        kind, token = self.take()
        if kind == "number":
            if len(token) > LONGEST_NUMBER:
                raise self.fail(f"`{token[:20]}…` is a number of {len(token)} characters")
            return str(int(token)) if token.isdecimal() else token.lower().replace("d", "e")
        if token == "(":
            made = self.sum()
            self.expect(")")
            return f"({made})"
        if kind != "name":
            raise self.fail(f"`{token}` is not expected")
        if self.peek() == "(":
            return self.call(token)
        if token in FUNCTIONS:
            raise self.fail(f"`{token}` is a function: write `{token}(…)`")
        return "pi" if token == "pi" else self.names(token)

    def call(self, name: str) -> str:
        if name not in FUNCTIONS:
            raise self.fail(
                f"there is no function `{name}`.{suggest(name, FUNCTIONS)} "
                f"Functions: {name_list(sorted(FUNCTIONS), limit=99)}; it stands"
            )
        self.expect("(")
        arguments = [self.sum()]
        while self.peek() == ",":
            self.place += 1
            arguments.append(self.sum())
        self.expect(")")
        wanted = FUNCTIONS[name]
        many = name in ("min", "max")
        if len(arguments) < wanted or (len(arguments) > wanted and not many):
            raise self.fail(f"`{name}` takes {wanted} argument{'s' * (wanted > 1)}")
        if name == "step":
            return f"where({arguments[0]} >= 0, 1, 0)"
        return f"{name}({', '.join(arguments)})"
