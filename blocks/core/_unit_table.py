"""The table of units: names, spellings, prefixes. ``_units.py`` has the class `Unit`.

The order of the table is the order of symbols in a canonical name: N.m, kg.m2, Pa.s, W/(m2.K).
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """A unit by powers of base units, a factor and an offset; see `biella.blocks.core._units`."""

    base: Mapping[str, int]
    factor: float = 1.0
    offset: float = 0.0
    prefixable: bool = False


def _entry(base: str, factor: float = 1.0, offset: float = 0.0, prefix: bool = False) -> Entry:
    """Make an entry from base units written as in ``kg m2 s-2``."""
    powers: dict[str, int] = {}
    for symbol, power in re.findall(r"([A-Za-z]+)(-?\d+)?", base):
        powers[symbol] = int(power or 1)
    return Entry(powers, factor, offset, prefix)


_TURN = 2.0 * math.pi
_LBF = 0.45359237 * 9.80665

TABLE: dict[str, Entry] = {
    "count": _entry("count"),
    "N": _entry("kg m s-2", prefix=True),
    "lbf": _entry("kg m s-2", _LBF),
    "Pa": _entry("kg m-1 s-2", prefix=True),
    "bar": _entry("kg m-1 s-2", 1e5, prefix=True),
    "atm": _entry("kg m-1 s-2", 101325.0),
    "psi": _entry("kg m-1 s-2", _LBF / 0.0254**2),
    "J": _entry("kg m2 s-2", prefix=True),
    "eV": _entry("kg m2 s-2", 1.602176634e-19, prefix=True),
    "W": _entry("kg m2 s-3", prefix=True),
    "hp": _entry("kg m2 s-3", 550.0 * 0.3048 * _LBF),
    "V": _entry("kg m2 s-3 A-1", prefix=True),
    "ohm": _entry("kg m2 s-3 A-2", prefix=True),
    "S": _entry("kg-1 m-2 s3 A2", prefix=True),
    "F": _entry("kg-1 m-2 s4 A2", prefix=True),
    "H": _entry("kg m2 s-2 A-2", prefix=True),
    "Wb": _entry("kg m2 s-2 A-1", prefix=True),
    "T": _entry("kg s-2 A-1", prefix=True),
    "C": _entry("s A", prefix=True),
    "P": _entry("kg m-1 s-1", 0.1, prefix=True),
    "St": _entry("m2 s-1", 1e-4, prefix=True),
    "lm": _entry("cd rad2", prefix=True),
    "lx": _entry("cd rad2 m-2", prefix=True),
    "kat": _entry("mol s-1", prefix=True),
    "g_n": _entry("m s-2", 9.80665),
    "g": _entry("kg", 1e-3, prefix=True),
    "t": _entry("kg", 1e3),
    "lb": _entry("kg", 0.45359237),
    "L": _entry("m3", 1e-3, prefix=True),
    "m": _entry("m", prefix=True),
    "inch": _entry("m", 0.0254),
    "ft": _entry("m", 0.3048),
    "A": _entry("A", prefix=True),
    "K": _entry("K", prefix=True),
    "degC": _entry("K", 1.0, 273.15),
    "degF": _entry("K", 5.0 / 9.0, 459.67 * 5.0 / 9.0),
    "mol": _entry("mol", prefix=True),
    "cd": _entry("cd", prefix=True),
    "Hz": _entry("s-1", prefix=True),
    "rpm": _entry("rad s-1", _TURN / 60.0),
    "s": _entry("s", prefix=True),
    "min": _entry("s", 60.0),
    "h": _entry("s", 3600.0),
    "d": _entry("s", 86400.0),
    "rad": _entry("rad", prefix=True),
    "sr": _entry("rad2", prefix=True),
    "rev": _entry("rad", _TURN),
    "deg": _entry("rad", math.pi / 180.0),
    "arcmin": _entry("rad", math.pi / 10800.0),
    "arcsec": _entry("rad", math.pi / 648000.0),
    "%": _entry("", 0.01),
    "ppm": _entry("", 1e-6),
}

SPELLINGS = {
    "counts": "count",
    "Ω": "ohm",
    "l": "L",
    "in": "inch",
    "°": "deg",
    "°C": "degC",
    "°F": "degF",
    "sec": "s",
    "hr": "h",
    "day": "d",
}

WORDS = {
    **{"newton": "N", "pascal": "Pa", "joule": "J", "watt": "W", "volt": "V", "ampere": "A"},
    **{"metre": "m", "meter": "m", "millimetre": "mm", "millimeter": "mm", "litre": "L"},
    **{"liter": "L", "kilogram": "kg", "gram": "g", "ton": "t", "second": "s", "minute": "min"},
    **{"hour": "h", "hertz": "Hz", "radian": "rad", "degree": "deg", "revolution": "rev"},
    **{"turn": "rev", "kelvin": "K", "celsius": "degC", "percent": "%", "tesla": "T"},
}
"""Units written out, which are not understood but can be suggested."""

PREFIXES = {
    **{"Y": 1e24, "Z": 1e21, "E": 1e18, "P": 1e15, "T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3},
    **{"h": 1e2, "da": 1e1, "d": 1e-1, "c": 1e-2, "m": 1e-3, "u": 1e-6, "n": 1e-9},
    **{"p": 1e-12, "f": 1e-15, "a": 1e-18, "z": 1e-21, "y": 1e-24},
}

ORDER = {symbol: position for position, symbol in enumerate(TABLE)}


def split_prefix(symbol: str) -> tuple[str, str] | None:
    """Return (prefix, canonical unit) of a symbol, or None if it is not in the table."""
    if symbol in SPELLINGS:
        return "", SPELLINGS[symbol]
    if symbol in TABLE:
        return "", symbol
    for length in (1, 2):
        prefix, rest = symbol[:length], symbol[length:]
        rest = SPELLINGS.get(rest, rest)
        if prefix in PREFIXES and rest in TABLE and TABLE[rest].prefixable:
            return prefix, rest
    return None


def suggest(symbol: str) -> str:
    """Return the nearest names: a forgotten dot, another case, a slip of the finger."""
    word = symbol.lower()
    near = [WORDS[name] for name in (word, word.removesuffix("s")) if name in WORDS]
    for cut in range(1, len(symbol)):
        if split_prefix(symbol[:cut]) and split_prefix(symbol[cut:]):
            near.append(f"{symbol[:cut]}.{symbol[cut:]}")
    names = [*TABLE, *SPELLINGS]
    names += [p + u for u, entry in TABLE.items() if entry.prefixable for p in "Mkcmu"]
    near += [name for name in names if name.lower() == symbol.lower()]
    near += difflib.get_close_matches(symbol, names, n=3, cutoff=0.6)
    unique = list(dict.fromkeys(near))[:3]
    if unique:
        return f"Did you mean {' or '.join(f'`{name}`' for name in unique)}?"
    return f"Known units: {', '.join(TABLE)}."
