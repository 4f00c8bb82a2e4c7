"""Units of signals, in the form that FMI 2.0 gives them.

A unit is a product of powers of eight base units, a factor and an offset::

    value in base units = factor * value + offset
    base unit           = kg^a m^b s^c A^d K^e mol^f cd^g rad^h

so that a unit read here and a ``<BaseUnit>`` of a modelDescription.xml are the same thing.

The radian has its own exponent, as in FMI. Hence ``Hz`` (s^-1) and ``rad/s`` are different, and a
product of a torque and a speed is in ``N.m.rad/s``, not in ``W``: where a diagram needs watts, use
a ``Gain`` with given units. A newton meter and a joule are the same unit, as in the SI.

A ``count`` (of an encoder, of a converter) has a ninth exponent, which FMI does not have: in FMI
it is dimensionless, but ``count`` is never converted to ``1`` silently.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ...errors import UnitError as UnitError
from ._unit_table import ORDER, PREFIXES, TABLE, split_prefix, suggest

__all__ = [
    "BASE_UNITS",
    "DIMENSIONLESS",
    "Unit",
    "UnitError",
    "conversion",
    "equivalent",
    "format_unit",
    "parse_unit",
    "same_dimension",
]

BASE_UNITS = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")
"""The base units of FMI 2.0, in the order of `Unit.exponents`."""

Exponents = tuple[int, int, int, int, int, int, int, int]
Terms = dict[str, int]

_MAX_POWER = 99
_MAX_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit in FMI 2.0's form: value in base units = factor * value + offset.

    ``a * b``, ``a / b`` and ``a ** n`` give derived units with a canonical name. ``==`` compares
    the name too; use `equivalent` to ask whether two units measure the same thing alike.

    Parameters
    ----------
    name
        As the user wrote it; for derived units, the canonical name.
    exponents
        Exponents of kg, m, s, A, K, mol, cd, rad.
    factor, offset
        To base units.
    count
        Exponent of ``count``, which is not part of FMI.
    """

    name: str
    exponents: Exponents
    factor: float = 1.0
    offset: float = 0.0
    count: int = 0

    def __str__(self) -> str:
        return self.name

    def __mul__(self, other: Unit) -> Unit:
        return _unit_of(_combine(_terms_of(self), _terms_of(other), 1))

    def __truediv__(self, other: Unit) -> Unit:
        return _unit_of(_combine(_terms_of(self), _terms_of(other), -1))

    def __pow__(self, power: int) -> Unit:
        return _unit_of({symbol: n * power for symbol, n in _terms_of(self).items()})

    @property
    def is_dimensionless(self) -> bool:
        """Whether this is a plain number, up to a factor: ``1``, ``%``, ``ppm``."""
        return not any(self.exponents) and not self.count


def same_dimension(a: Unit, b: Unit) -> bool:
    """Return whether a value in `a` can be converted to `b`."""
    return a.exponents == b.exponents and a.count == b.count


def equivalent(a: Unit, b: Unit) -> bool:
    """Return whether a value in `a` is the same number in `b`, as in ``J`` and ``N.m``."""
    return (
        same_dimension(a, b)
        and math.isclose(a.factor, b.factor, rel_tol=1e-12)
        and math.isclose(a.offset, b.offset, rel_tol=1e-12)
    )


def conversion(a: Unit, b: Unit) -> tuple[float, float]:
    """Return (gain, offset) such that value in `b` = gain * value in `a` + offset.

    Raises
    ------
    UnitError
        If the two are not of one dimension.
    """
    if not same_dimension(a, b):
        raise UnitError(
            f"`{a}` cannot be converted to `{b}`: the first is {_base_form(a)}, "
            f"the second {_base_form(b)}."
        )
    return a.factor / b.factor, (a.offset - b.offset) / b.factor


def format_unit(unit: Unit) -> str:
    """Return the canonical name: ``N*m`` is ``N.m``, ``s⁻¹`` is ``1/s``, ``m/s^2`` is ``m/s2``.

    It has the form that Modelica tools use, so it serves as an FMI unit name, and `parse_unit`
    reads it back to an equivalent unit.
    """
    try:
        return _canonical_name(_terms_of(unit))
    except UnitError:
        return unit.name


def parse_unit(text: str) -> Unit:
    """Read a unit such as ``rad/s``, ``N·m``, ``kg m^2``, ``W/(m2.K)``, ``s^-1``, ``%`` or ``1``.

    Products are written with ``*``, ``·``, ``.`` or a space; powers as ``^2``, ``**2``, ``²`` or
    ``2`` right after the symbol. After a ``/`` a product needs parentheses, because ``J/kg.K`` is
    read in two ways by people. A unit with an offset (``degC``, ``degF``) stands alone.

    Raises
    ------
    UnitError
        With the position of the error and the nearest known names.
    """
    if not isinstance(text, str):
        raise UnitError(f"a unit is a text, such as 'rad/s', got {text!r}.")
    return _read_unit(text)


@lru_cache(maxsize=4096)
def _read_unit(text: str) -> Unit:
    return _unit_of(_parse_terms(text), text.strip())


# From terms (symbol -> power) to a unit, and back.


def _unit_of(terms: Terms, name: str | None = None) -> Unit:
    """Evaluate terms, in canonical order so that equal terms give equal bits."""
    canonical = _canonical_name(terms)
    powers = dict.fromkeys((*BASE_UNITS, "count"), 0)
    factor, offset = 1.0, 0.0
    for symbol in _sorted(terms):
        prefix, unit = split_prefix(symbol) or ("", symbol)
        entry, power = TABLE[unit], terms[symbol]
        if entry.offset and (len(terms) > 1 or power != 1):
            raise UnitError(
                f"`{symbol}` has an offset, so it must stand alone; in `{name or canonical}` use K."
            )
        offset = entry.offset
        for base, exponent in entry.base.items():
            powers[base] += exponent * power
        try:
            factor *= (entry.factor * PREFIXES.get(prefix, 1.0)) ** power
        except OverflowError:
            factor = math.inf
    if max(map(abs, powers.values())) > _MAX_POWER or not 0.0 < factor < math.inf:
        raise UnitError(f"`{name or canonical}` is too large a power to be a unit.")
    count = powers.pop("count")
    kg, m, s, ampere, kelvin, mol, cd, rad = powers.values()
    exponents = (kg, m, s, ampere, kelvin, mol, cd, rad)
    return Unit(name or canonical, exponents, factor, offset, count)


def _terms_of(unit: Unit) -> Terms:
    """Return the terms of a unit; a unit of unknown name is expressed in base units."""
    try:
        terms = _parse_terms(unit.name)
        if equivalent(_unit_of(terms), unit):
            return terms
    except UnitError:
        pass
    if unit.factor != 1.0 or unit.offset != 0.0:
        raise UnitError(
            f"`{unit}` is not in the table of units, so it has no products or powers; "
            f"convert the signal to {_base_form(unit)} first."
        )
    terms = {symbol: n for symbol, n in zip(BASE_UNITS, unit.exponents, strict=True) if n}
    return terms | ({"count": unit.count} if unit.count else {})


def _combine(a: Terms, b: Terms, sign: int) -> Terms:
    result = dict(a)
    for symbol, power in b.items():
        result[symbol] = result.get(symbol, 0) + sign * power
    return {symbol: power for symbol, power in result.items() if power}


def _sorted(terms: Terms) -> list[str]:
    def key(symbol: str) -> tuple[int, str]:
        _, unit = split_prefix(symbol) or ("", symbol)
        return ORDER[unit], symbol

    return sorted((symbol for symbol in terms if terms[symbol]), key=key)


def _canonical_name(terms: Terms) -> str:
    above = [_power(s, terms[s]) for s in _sorted(terms) if terms[s] > 0]
    below = [_power(s, -terms[s]) for s in _sorted(terms) if terms[s] < 0]
    numerator = ".".join(above) or "1"
    if not below:
        return numerator
    return f"{numerator}/{below[0]}" if len(below) == 1 else f"{numerator}/({'.'.join(below)})"


def _power(symbol: str, power: int) -> str:
    return symbol if power == 1 else f"{symbol}{power}"


def _base_form(unit: Unit) -> str:
    """Describe a unit for a message: `60 s`, `rad/s`, `a plain number`."""
    terms = {symbol: n for symbol, n in zip(BASE_UNITS, unit.exponents, strict=True) if n}
    if unit.count:
        terms["count"] = unit.count
    return f"in {_canonical_name(terms)}" if terms else "a plain number"


# The grammar.

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_LOOKALIKES = str.maketrans({"µ": "u", "μ": "u", "\u2126": "Ω", "⋅": "·", "\u2212": "-"})
_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<power>\*\*|\^)|(?P<times>[*·.])|(?P<over>/)|(?P<open>\()|(?P<close>\))"
    r"|(?P<number>[+-]?\d+)|(?P<raised>[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)|(?P<symbol>[A-Za-zΩ°%_]+)"
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    spaced: bool


def _tokens(text: str, source: str) -> Iterator[_Token]:
    position, spaced = 0, False
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _mistake(source, position, f"`{source[position]}` has no meaning in a unit.")
        kind = match.lastgroup or ""
        if kind != "space":
            yield _Token(kind, match.group(), position, spaced)
        spaced = kind == "space"
        position = match.end()
    yield _Token("end", "", len(text), spaced)


def _parse_terms(text: str) -> Terms:
    if not isinstance(text, str):
        raise UnitError(f"A unit is a text such as 'rad/s', not {text!r}.")
    if not text.strip():
        raise UnitError("A unit is empty. Write '1' for a plain number, or give no unit at all.")
    if len(text) > _MAX_LENGTH:
        raise UnitError(f"A unit of {len(text)} characters is too long: `{text[:40]}…`.")
    parser = _Parser(text)
    terms = parser.product()
    if parser.here.kind != "end":
        raise parser.mistake(f"unexpected `{parser.here.text}`.")
    return {symbol: power for symbol, power in terms.items() if power}


class _Parser:
    """Recursive descent: product = factor { (times | over | nothing) factor }."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = list(_tokens(source.translate(_LOOKALIKES), source))
        self.index = 0

    @property
    def here(self) -> _Token:
        return self.tokens[self.index]

    def mistake(self, reason: str) -> UnitError:
        return _mistake(self.source, self.here.start, reason)

    def product(self) -> Terms:
        terms = self.factor()
        divided = False
        while self.here.kind in ("times", "over", "symbol", "open") or (
            self.here.kind == "number" and self.here.spaced and self.here.text == "1"
        ):
            over = self.here.kind == "over"
            if divided and not over:
                raise self.mistake(
                    "a product after `/` can be read in two ways; "
                    "use parentheses, as in `J/(kg.K)`, or move it before the `/`."
                )
            divided = divided or over
            if self.here.kind in ("times", "over"):
                self.index += 1
            terms = _combine(terms, self.factor(), -1 if over else 1)
        return terms

    def factor(self) -> Terms:
        token = self.here
        if token.kind == "symbol":
            terms = {self.symbol(token): 1}
        elif token.kind == "open":
            self.index += 1
            terms = self.product()
            if self.here.kind != "close":
                raise self.mistake("a `(` is not closed.")
        elif token.kind == "number" and token.text == "1":
            terms = {}
        elif token.kind == "number":
            raise self.mistake(f"`{token.text}` is a number, not a unit; scale the signal instead.")
        else:
            raise self.mistake("a unit is missing here.")
        self.index += 1
        power = self.power()
        return {symbol: n * power for symbol, n in terms.items()}

    def power(self) -> int:
        token = self.here
        if token.kind == "power":
            self.index += 1
            token = self.here
            if token.kind != "number":
                raise self.mistake("a whole number must follow the power sign.")
        elif token.spaced or token.kind not in ("number", "raised"):
            return 1
        value = int(token.text.translate(_SUPERSCRIPTS))
        if not 0 < abs(value) <= _MAX_POWER:
            raise self.mistake(f"a power must lie between 1 and {_MAX_POWER}, or be negative.")
        self.index += 1
        return value

    def symbol(self, token: _Token) -> str:
        found = split_prefix(token.text)
        if found is None:
            raise self.mistake(f"unknown unit `{token.text}`. {suggest(token.text)}")
        return "".join(found)


def _mistake(source: str, position: int, reason: str) -> UnitError:
    return UnitError(f"Unit `{source}`, at character {position + 1}: {reason}")


DIMENSIONLESS = parse_unit("1")
"""The unit of a plain number."""
