"""Units of Adams View, in SI."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ....errors import DiagramError, name_list, suggest

_INCH, _FOOT, _POUND, _GRAVITY = 0.0254, 0.3048, 0.45359237, 9.80665

LENGTH = {
    "millimeter": 1e-3, "mm": 1e-3, "centimeter": 1e-2, "cm": 1e-2, "meter": 1.0, "m": 1.0,
    "kilometer": 1e3, "km": 1e3, "micrometer": 1e-6, "nanometer": 1e-9, "inch": _INCH,
    "in": _INCH, "foot": _FOOT, "ft": _FOOT, "yard": 3 * _FOOT, "mile": 5280 * _FOOT,
}  # fmt: skip
MASS = {
    "kilogram": 1.0, "kg": 1.0, "gram": 1e-3, "g": 1e-3, "milligram": 1e-6, "tonne": 1e3,
    "pound_mass": _POUND, "lbm": _POUND, "ounce_mass": _POUND / 16,
    "kpound_mass": 1e3 * _POUND, "slug": _POUND * _GRAVITY / _FOOT,
    "slinch": _POUND * _GRAVITY / _INCH,
}  # fmt: skip
FORCE = {
    "newton": 1.0, "n": 1.0, "knewton": 1e3, "kn": 1e3, "millinewton": 1e-3,
    "centinewton": 1e-2, "meganewton": 1e6, "dyne": 1e-5, "kilogram_force": _GRAVITY,
    "kg_force": _GRAVITY, "pound_force": _POUND * _GRAVITY, "lbf": _POUND * _GRAVITY,
    "ounce_force": _POUND * _GRAVITY / 16, "kpound_force": 1e3 * _POUND * _GRAVITY,
    "poundal": _POUND * _FOOT,
}  # fmt: skip
TIME = {
    "second": 1.0, "sec": 1.0, "s": 1.0, "millisecond": 1e-3, "ms": 1e-3, "microsecond": 1e-6,
    "minute": 60.0, "min": 60.0, "hour": 3600.0, "day": 86400.0,
}  # fmt: skip
ANGLE = {
    "degrees": math.pi / 180.0, "degree": math.pi / 180.0, "deg": math.pi / 180.0,
    "d": math.pi / 180.0, "radians": 1.0, "radian": 1.0, "rad": 1.0, "r": 1.0,
}  # fmt: skip
BASES: Mapping[str, Mapping[str, float]] = {
    "length": LENGTH,
    "mass": MASS,
    "force": FORCE,
    "time": TIME,
    "angle": ANGLE,
}

_PIECE = re.compile(r"\s*([*/-]?)\s*([a-z_]+)\s*(?:(?:\*\*|\^)\s*(-?\d{1,2}))?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Units:
    """Units of the numbers in a file: the SI value of one unit."""

    length: float
    mass: float
    force: float
    time: float
    angle: float

    def factor(self, **powers: int) -> float:
        """Return the SI value of a product of units, such as ``factor(force=1, length=-1)``."""
        return float(math.prod(getattr(self, base) ** power for base, power in powers.items()))

    def convert(self, value: float, text: str) -> float:
        """Return a number with a unit, such as ``newton/meter``, in the units of the file."""
        at, made = 0, value
        while at < len(text):
            match = _PIECE.match(text, at)
            if match is None or (match.group(1) and not at):
                raise DiagramError(f"`{text}` is no unit that is known here.")
            mark, name, power = match.groups()
            base, one = _find(name)
            # ``newton-mm`` is a product.
            made *= (one / getattr(self, base)) ** (int(power or 1) * (-1 if mark == "/" else 1))
            at = match.end()
        return made


def _find(name: str) -> tuple[str, float]:
    for base, known in BASES.items():
        if name.lower() in known:
            return base, known[name.lower()]
    everything = [unit for known in BASES.values() for unit in known]
    raise DiagramError(f"there is no unit `{name}`.{suggest(name, everything)}")


def choose(what: str, given: str, known: Iterable[str]) -> str:
    """Return the known word that `given` is or abbreviates."""
    names = list(known)
    word = given.lower()
    if word in names:
        return word
    found = [name for name in names if name.startswith(word)]
    if len(found) == 1 and word:
        return found[0]
    if len(found) > 1:
        raise DiagramError(f"`{given}` may mean {name_list(found)}: write more of it.")
    raise DiagramError(
        f"{what} is `{given[:60]}`.{suggest(given, names)} Known: {name_list(names, limit=99)}."
    )


def choose_unit(base: str, given: str) -> float:
    """Return the SI value of a unit of ``defaults units``, which may be abbreviated."""
    known = BASES[base]
    found = {known[name] for name in known if name.startswith(given.lower())}
    if given.lower() not in known and len(found) == 1 and given:
        return found.pop()  # such as "secon"; "sec" and "second" are the same
    return known[choose(f"the unit of {base}", given, known)]
