"""Functions of Adams, in quotes, translated to formulas.

The functions count in the units of the file and angles in radians; ``30d`` is 30 degrees. A
formula counts in SI: ``time`` becomes ``(t/T)``, where T is the unit of time in s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from ....errors import DiagramError, name_list, suggest
from ...core.formula._formula import Number as FormulaNumber
from ...core.formula._formula import read_formula
from ._design import CONSTANTS, Design
from ._expression import Call, Name, Node, Number, Operation, Vector, parse
from ._items import Item

LONGEST = 4000
"""Characters of a formula."""

Measures = Mapping[tuple[str, Item, Item], str]
"""What stands for a measure of two markers, such as ``DM(i, j)``, in units of the file."""

_PLAIN = {
    **dict.fromkeys(("abs", "sqrt", "exp", "log", "log10", "sin", "cos", "tan", "asin", "acos",
                     "atan", "sinh", "cosh", "tanh"), 1),
    **dict.fromkeys(("atan2", "max", "min"), 2),
}  # fmt: skip
MEASURES = (
    "dm", "dx", "dy", "dz", "vm", "vr", "vx", "vy", "vz", "ax", "ay", "az", "wm", "wx", "wy", "wz",
    "psi", "theta", "phi", "yaw", "pitch", "roll", "fm", "fx", "fy", "fz", "tm", "tx", "ty", "tz",
    "accm", "accx", "accy", "accz", "wdtm", "wdtx", "wdty", "wdtz", "varval", "arrval", "joint",
    "jprim", "motion", "sforce", "vforce", "gforce", "spdp", "bush", "dif", "dif1", "sensval",
    "bistop", "impact", "incang",
)  # fmt: skip


def translate(text: str, design: Design, factor: float, measures: Measures) -> float | str:
    """Return a function as a number or the text of a formula, times the SI value of its unit.

    Raises
    ------
    DiagramError
        If it depends on what a formula here cannot know.
    """
    try:
        made = _Translator(design, measures).write(parse(text))
    except RecursionError:
        raise DiagramError("the function is nested too deep.") from None
    made = made if factor == 1.0 else f"{factor!r}*({made})"
    _limit(made)
    formula = read_formula(made, ("t", "l", "q", "v"))
    return formula.term.value if isinstance(formula.term, FormulaNumber) else formula.text


def _limit(text: str) -> str:
    if len(text) > LONGEST:
        raise DiagramError("the function is too long as a formula: simplify it.")
    return text


class _Translator:
    """Writes formulas; each piece can stand between any operators."""

    def __init__(self, design: Design, measures: Measures) -> None:
        self.design, self.measures = design, measures
        unit = design.units.time
        self.time = "t" if unit == 1.0 else f"(t/{unit!r})"

    def write(self, node: Node) -> str:
        match node:
            case Number(value, unit):
                return _write_number(self.number(value, unit))
            case Name(text):
                return self.name(text)
            case Operation("-", (one,)):
                return f"(-{self.write(one)})"
            case Operation(mark, (a, b)):
                return _limit(f"({self.write(a)} {mark} {self.write(b)})")
            case Call(name, arguments):
                return _limit(self.call(name, arguments))
            case Vector():
                raise DiagramError("a function has no vectors in braces.")
        raise AssertionError(node)

    def number(self, value: float, unit: str | None) -> float:
        if unit is None:
            return value
        if unit.lower() == "d":
            return value * (math.pi / 180.0)
        raise DiagramError(f"`{value:g}{unit}`: a number in a function has no unit but d, degrees.")

    def name(self, text: str) -> str:
        lower = text.casefold()
        if lower == "time":
            return self.time
        if lower in CONSTANTS:
            return "pi" if lower == "pi" else repr(CONSTANTS[lower])
        try:
            item = self.design.model.find(text)
        except DiagramError:
            raise DiagramError(
                f"`{text[:60]}` is neither `time` nor a variable of the model."
                f"{suggest(lower, ['time', *CONSTANTS])}"
            ) from None
        if item.kind != "variable":
            raise DiagramError(f"`{text[:60]}` is a {item.kind}, not a number.")
        return _write_number(self.design.variable(item))

    def call(self, name: str, arguments: tuple[Node, ...]) -> str:
        if name in _SPECIAL:
            least, most, write = _SPECIAL[name]
            self.count(name, arguments, least, most)
            return write(*map(self.write, arguments))
        if name in _PLAIN:
            self.count(name, arguments, _PLAIN[name], _PLAIN[name])
            return f"{name}({', '.join(map(self.write, arguments))})"
        if name in MEASURES:
            return self.measure(name, arguments)
        known = sorted((*_PLAIN, *_SPECIAL))
        raise DiagramError(
            f"there is no function `{name.upper()[:60]}` here.{suggest(name, known)} "
            f"Functions: {name_list(map(str.upper, known), limit=99)}."
        )

    def count(self, name: str, arguments: tuple[Node, ...], least: int, most: int) -> None:
        if not least <= len(arguments) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise DiagramError(f"`{name.upper()}` takes {wanted} arguments, got {len(arguments)}.")

    def measure(self, name: str, arguments: tuple[Node, ...]) -> str:
        """Return the variable that a measure is, if the element has it."""
        said = f"{name.upper()}({', '.join(_say(one) for one in arguments)})"
        ends = []
        for argument in arguments[:2]:
            if not isinstance(argument, Name):
                break
            try:
                ends.append(self.design.model.find(argument.text, (), ("marker",)))
            except DiagramError:
                break
        # A third marker would be that of the axes or of the observer.
        if len(ends) == len(arguments) == 2 and (key := (name, ends[0], ends[1])) in self.measures:
            return self.measures[key]
        usable = sorted({
            f"{one.upper()}({i.name}, {j.name})" for one, i, j in self.measures
        })  # fmt: skip
        raise DiagramError(
            f"`{said[:160]}` depends on the motion. Here the function may depend on "
            f"{name_list(['time', *usable])}; add other forces in Python."
        )


def _write_number(value: float) -> str:
    return repr(value) if value >= 0 else f"({value!r})"


def _say(node: Node) -> str:
    return node.text if isinstance(node, Name) else "…"


def _ramp(x: str, x0: str, x1: str) -> str:
    """Return how far x is from x0 to x1, from 0 to 1."""
    a, b = _as_float(x0), _as_float(x1)
    if a is not None and b is not None and not a < b:
        raise DiagramError(f"a step runs from {a:g} to {b:g}: its start must be before its end.")
    return f"clip(({x} - {x0})/({x1} - {x0}), 0, 1)"


def _as_float(text: str) -> float | None:
    try:
        return float(text.strip("()"))
    except ValueError:
        return None


def _step(x: str, x0: str, h0: str, x1: str, h1: str) -> str:
    s = _ramp(x, x0, x1)
    return f"({h0} + ({h1} - {h0})*{s}**2*(3 - 2*{s}))"


def _step5(x: str, x0: str, h0: str, x1: str, h1: str) -> str:
    s = _ramp(x, x0, x1)
    return f"({h0} + ({h1} - {h0})*{s}**3*(10 - 15*{s} + 6*{s}**2))"


def _havsin(x: str, x0: str, h0: str, x1: str, h1: str) -> str:
    return f"({h0} + ({h1} - {h0})*0.5*(1 - cos(pi*{_ramp(x, x0, x1)})))"


def _shf(x: str, x0: str, a: str, w: str, phase: str = "0.0", offset: str = "0.0") -> str:
    return f"({a}*sin({w}*({x} - {x0}) - {phase}) + {offset})"


def _poly(x: str, x0: str, *coefficients: str) -> str:
    terms = [coefficients[0]]
    terms += [f"{a}*({x} - {x0})**{n}" for n, a in enumerate(coefficients[1:], 1)]
    return f"({' + '.join(terms)})"


def _if(x: str, negative: str, zero: str, positive: str) -> str:
    return f"where({x} < 0, {negative}, where({x} > 0, {positive}, {zero}))"


_SPECIAL: dict[str, tuple[int, int, Callable[..., str]]] = {
    "step": (5, 5, _step),
    "step5": (5, 5, _step5),
    "havsin": (5, 5, _havsin),
    "shf": (4, 6, _shf),
    "poly": (3, 33, _poly),
    "if": (4, 4, _if),
    "sign": (2, 2, lambda a, b: f"(abs({a})*where({b} < 0, -1, 1))"),
    "dim": (2, 2, lambda a, b: f"max({a} - {b}, 0)"),
}
