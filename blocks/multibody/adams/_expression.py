"""Expressions of Adams View: arithmetic, names of objects, calls, vectors in braces, units.

Expressions of a model, in parentheses, are evaluated when it is read (`_design`); functions of
time, in quotes, become formulas (`_function`). Both have this grammar.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ....errors import DiagramError

DEEPEST = 60
"""Levels of an expression."""
LONGEST_ROW = 100
"""Sums or products without parentheses."""
LONGEST = 20_000
"""Characters of an expression."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?P<unit>[A-Za-z_]\w*)?"
    r"|(?P<name>\.?(?:[A-Za-z_$]\w*|(?<=\.)\"[^\"]*\")(?:\.(?:\w+|\"[^\"]*\"))*)"
    r"|(?P<text>\"[^\"]*\"|'[^']*')"
    r"|(?P<mark>\*\*|//|[-+*/^(){},:]))"
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number, maybe with a unit."""

    value: float
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Name:
    """A name of an object, or of a constant or variable."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function of arguments."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """Arithmetic: ``+ - * / **`` of two, or ``-`` of one."""

    mark: str
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Vector:
    """Numbers in braces."""

    items: tuple[Node, ...]
    unit: str | None = None


Node = Number | Name | Call | Operation | Vector


def parse(text: str) -> Node:
    """Return an expression as a tree; raise a `DiagramError` that quotes it."""
    if len(text) > LONGEST:
        raise DiagramError(f"an expression of {len(text)} characters is too long.")
    return _Parser(text).parse()


class _Parser:
    """Reads an expression from left to right: sums, products, signs, powers, values."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = self.level = 0
        self.tokens: list[tuple[str, str, str, int]] = []
        place, end = 0, len(text.rstrip())
        while place < end:
            match = _TOKEN.match(text, place)
            if match is None:
                raise self.fail(f"`{text[place:].strip()[:20]}` cannot be read")
            kind = next(name for name in ("number", "name", "text", "mark") if match.group(name))
            self.tokens.append((kind, match.group(kind), match.group("unit") or "", match.end()))
            place = match.end()

    def fail(self, why: str) -> DiagramError:
        return DiagramError(f"{why}, in `{self.text[:200]}`.")

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def expect(self, mark: str) -> None:
        if self.peek() != mark:
            got = f"`{self.peek()}`" if self.peek() else "the end"
            raise self.fail(f"expected `{mark}`, got {got}")
        self.at += 1

    def parse(self) -> Node:
        made = self.sum()
        if self.peek():
            raise self.fail(f"`{self.peek()}` is not expected")
        return made

    def sum(self) -> Node:
        self.level += 1
        if self.level > DEEPEST:
            raise self.fail(f"it is nested too deep, at most {DEEPEST} levels")
        made = self.product()
        count = 0
        while self.peek() in ("+", "-"):
            mark = self.peek()
            self.at += 1
            made = Operation(mark, (made, self.product()))
            count = self.limit(count)
        self.level -= 1
        return made

    def product(self) -> Node:
        made = self.signed()
        count = 0
        while self.peek() in ("*", "/"):
            mark = self.peek()
            self.at += 1
            made = Operation(mark, (made, self.signed()))
            count = self.limit(count)
        return made

    def limit(self, count: int) -> int:
        """Count operations in a row, each of which is a level of the tree."""
        if count >= LONGEST_ROW:
            raise self.fail(f"there are more than {LONGEST_ROW} operations in a row")
        return count + 1

    def signed(self) -> Node:
        negative = False
        while self.peek() in ("+", "-"):
            negative ^= self.peek() == "-"
            self.at += 1
        made = self.power()
        if not negative:
            return made
        if isinstance(made, Number):
            return Number(-made.value, made.unit)
        return Operation("-", (made,))

    def power(self) -> Node:
        made = self.value()
        if self.peek() in ("**", "^"):
            self.at += 1
            negative = False
            while self.peek() in ("+", "-"):
                negative ^= self.peek() == "-"
                self.at += 1
            exponent = self.value()
            if negative:
                exponent = Operation("-", (exponent,))
            made = Operation("**", (made, exponent))
            if self.peek() in ("**", "^"):
                raise self.fail("a**b**c: write parentheses")
        return made

    def value(self) -> Node:
        if self.at == len(self.tokens):
            raise self.fail("the expression ends too early")
        kind, token, unit, _ = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return self.number(token, unit)
        if token == "(":
            made = self.sum()
            self.expect(")")
            return made
        if token == "{":
            return self.vector()
        if kind != "name":
            raise self.fail(f"`{token}` is not expected")
        if self.peek() != "(":
            return Name(token)
        self.at += 1
        arguments = [self.sum()]
        while self.peek() in (",", ":"):
            self.at += 1
            arguments.append(self.sum())
        self.expect(")")
        return Call(token.lower(), tuple(arguments))

    def number(self, token: str, unit: str) -> Node:
        value = float(token)
        if value == float("inf"):
            raise self.fail(f"`{token}` is too large")
        if not unit and self.peek() == "(":
            unit = self.unit_in_parentheses()
        return Number(value, unit or None)

    def unit_in_parentheses(self) -> str:
        """Return the unit of ``7801.0(kg/meter**3)``."""
        start = self.tokens[self.at][3]
        while self.peek() != ")":
            self.at += 1
            if self.at >= len(self.tokens):
                raise self.fail("a unit in parentheses is not closed")
        end = self.tokens[self.at][3] - 1
        self.at += 1
        return self.text[start:end].strip() or "?"

    def vector(self) -> Node:
        items = [self.sum()]
        while self.peek() == ",":
            self.at += 1
            items.append(self.sum())
        self.expect("}")
        # ``{1, 2, 3}mm``: a name that touches the brace.
        end = self.tokens[self.at - 1][3]
        unit = None
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "name":
            unit = self.tokens[self.at][1]
            if self.text[end : end + len(unit)] == unit:
                self.at += 1
            else:
                unit = None
        if len(items) == 1 and isinstance(items[0], Vector) and unit is None:
            return items[0]  # Adams View writes {{0, 0, 0}} too
        return Vector(tuple(items), unit)
