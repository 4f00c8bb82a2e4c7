"""Values of parameters: numbers with units, references, and expressions of design variables."""

from __future__ import annotations

import math
from collections.abc import Callable

from ....errors import DiagramError, name_list, suggest
from ._expression import Call, Name, Node, Number, Operation, Vector, parse
from ._file import Value
from ._items import Entry, Item, as_number, as_reference
from ._model import Model
from ._units import Units

LARGEST = 1e90
"""Of numbers in a file: squares and products of a few of them do not overflow."""

CONSTANTS = {"pi": math.pi, "dtor": math.pi / 180.0, "rtod": 180.0 / math.pi}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "abs": abs, "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "log10": math.log10,
    "min": min, "max": max, "int": math.trunc,
}  # fmt: skip
_ANGULAR = ("sin", "cos", "tan", "asin", "acos", "atan", "atan2")


class Design:
    """Evaluates the parameters of a model, in its units."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.open: list[Item] = []

    @property
    def units(self) -> Units:
        """Return the units of the file."""
        missing = [base for base in ("length", "mass", "force", "time", "angle")
                   if base not in self.model.units]  # fmt: skip
        if missing:
            raise DiagramError(f"`defaults units` with {name_list(missing)} has to come before.")
        return self.model.made_units()

    def numbers(self, entry: Entry, count: int, of: str) -> list[float]:
        """Return `count` numbers of a parameter, in units of the file."""
        try:
            found: list[float] = []
            for value in entry.values:
                made = self.evaluate(self.as_node(value))
                found += made if isinstance(made, list) else [made]
        except DiagramError as error:
            raise self.placed(entry, of, error) from None
        if len(found) != count:
            wanted = "one number" if count == 1 else f"{count} numbers"
            raise DiagramError(
                f"{entry.place}: `{entry.name}` of `{of}` has {wanted}, got {len(found)}."
            )
        return found

    def placed(self, entry: Entry, of: str, error: DiagramError) -> DiagramError:
        """Return an error with the place of a parameter."""
        return DiagramError(
            [f"{entry.place}: `{entry.name}` of `{of}`: {text}" for text in error.problems]
        )

    def as_node(self, value: Value | Node) -> Node:
        if not isinstance(value, Value):
            return value
        if value.kind == "text":
            raise DiagramError(f"a number is expected, got the text `{value.text[:60]}`.")
        node = parse(value.text)
        if isinstance(node, Name):
            raise DiagramError(f"a number is expected, got `{value.text[:60]}`.")
        return node

    def item(self, entry: Entry, of: str, *kinds: str) -> Item:
        """Return the object that a parameter names."""
        name = as_reference(entry.values[0]) if len(entry.values) == 1 else None
        if name is None:
            raise DiagramError(f"{entry.place}: `{entry.name}` of `{of}` is one name.")
        try:
            return self.model.find(name, entry.part, kinds)
        except DiagramError as error:
            raise self.placed(entry, of, error) from None

    def text(self, entry: Entry, of: str) -> str:
        """Return the text of a parameter; long ones are written in several pieces."""
        pieces = []
        for value in entry.values:
            if not isinstance(value, Value):
                raise DiagramError(
                    f"{entry.place}: `{entry.name}` of `{of}` is a text in quotes, got an "
                    f"expression in parentheses."
                )
            pieces.append(value.text)
        return "".join(pieces)

    def fold(self, node: Node) -> Node:
        """Return the present value of an expression; poses are left as they are."""
        if isinstance(node, Call) and node.name.startswith(("loc_", "ori_")):
            return node
        if isinstance(node, Name) and node.text.casefold() not in CONSTANTS:
            try:
                if self.model.find(node.text).kind != "variable":
                    return node  # a reference to an object
            except DiagramError:
                pass
        return as_number(self.evaluate(node))

    # Expressions

    def evaluate(self, node: Node) -> float | list[float]:
        """Return the value of an expression in units of the file."""
        try:
            made = self._evaluate(node)
        except (ArithmeticError, ValueError, TypeError):
            raise DiagramError("the expression has no value.") from None
        except RecursionError:
            raise DiagramError("the expression is nested too deep.") from None
        for one in made if isinstance(made, list) else [made]:
            if isinstance(one, complex) or not math.isfinite(one):
                raise DiagramError("the expression has no finite value.")
            if abs(one) > LARGEST:
                raise DiagramError(f"{one:g} is too large.")
        return made

    def _evaluate(self, node: Node) -> float | list[float]:
        match node:
            case Number(value, unit):
                return value if unit is None else self.units.convert(value, unit)
            case Name(text):
                if text.casefold() in CONSTANTS:
                    return CONSTANTS[text.casefold()]
                return self.variable(self.model.find(text, (), ("variable",)))
            case Vector(items, unit):
                found = [self._scalar(item) for item in items]
                return [self.units.convert(one, unit) if unit else one for one in found]
            case Operation(mark, operands):
                values = [self._scalar(operand) for operand in operands]
                return _calculate(mark, values)
            case Call(name, arguments):
                if name == "eval" and len(arguments) == 1:
                    return self._evaluate(arguments[0])
                if name in _FUNCTIONS:
                    return float(_FUNCTIONS[name](*[self._scalar(one) for one in arguments]))
                if name in _ANGULAR:
                    raise DiagramError(
                        f"`{name}` in an expression of the model is not read: the unit of its "
                        f"angle depends on settings. Write the number."
                    )
                if name.startswith(("loc_", "ori_")):
                    raise DiagramError(
                        f"`{name.upper()}` is not read here: LOC_RELATIVE_TO and ORI_RELATIVE_TO "
                        f"are, as the whole of a location and of an orientation."
                    )
                known = sorted(_FUNCTIONS)
                raise DiagramError(
                    f"there is no function `{name}` here.{suggest(name, known)} "
                    f"Functions: {name_list(known, limit=99)}."
                )

    def _scalar(self, node: Node) -> float:
        value = self._evaluate(node)
        if isinstance(value, list):
            raise DiagramError("a vector stands where a number is expected.")
        return value

    def variable(self, item: Item) -> float:
        """Return the value of a design variable."""
        if item in self.open:
            ring = [*self.open[self.open.index(item) :], item]
            raise DiagramError(
                "variables depend on each other in a circle: "
                + " → ".join(f"`{one.name}` ({one.place.split(', ')[1]})" for one in ring)
            )
        entry = item.entries.get("real_value") or item.entries.get("integer_value")
        if entry is None:
            raise DiagramError(f"the variable `{item.name}` is no number.")
        if len(self.open) > 50:
            raise DiagramError("variables depend on each other over more than 50 levels.")
        self.open.append(item)
        try:
            return self.numbers(entry, 1, item.name)[0]
        finally:
            self.open.pop()


def _calculate(mark: str, values: list[float]) -> float:
    if len(values) == 1:
        return -values[0]
    a, b = values
    if mark == "+":
        return a + b
    if mark == "-":
        return a - b
    if mark == "*":
        return a * b
    return a / b if mark == "/" else float(a**b)
