"""Derivatives that a driver card gives, compared with those of its position."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.formula._formula import Formula, Number
from ..analysis._jets import evaluate
from ..system._problems import doubt
from ._expression import read_expression
from ._file import Block

if TYPE_CHECKING:
    from ._read import _Reader

_GIVEN = re.compile(r"psi(i?t|i?tt|i?q|i?qt)(?:\(\s*([0-9]{1,9})\s*\))?$")
TOLERANCE = 1e-6


def check_driver(
    reader: _Reader,
    block: Block,
    formula: Formula,
    refer: Callable[[str], str],
    constants: Mapping[str, float],
    variables: Mapping[str, str],
) -> None:
    """Warn about derivatives that are not those of the position, and keys that are none.

    Parameters
    ----------
    reader, block
        That of the cards, and the block of the driver.
    formula
        Its position.
    refer
        Returns what stands for a variable in a formula.
    constants, variables
        Values by name, and what stands for coordinates in the position by their names in cards: a
        path, or ``(-path)`` for an Euler parameter whose sign is the other one here.
    """
    found: dict[tuple[str, str], Formula] = {}
    places: dict[tuple[str, str], str] = {}
    before = len(reader.problems.texts)
    for key, entry in block.entries.items():
        if key in ("position", "name"):
            continue
        match = _GIVEN.match(key.lower().replace("_", ""))
        what = match.group(1).removeprefix("i") if match else ""
        if match is None or ("q" in what) != (match.group(2) is not None):
            doubt(entry.place, f"`{key[:60]}` is not a key of this card and is ignored.")
            continue
        with reader.placed(entry.place):
            kind = (what, f"q{int(match.group(2))}" if "q" in what else "")
            if kind in places:
                reader.problems.add(entry.place, f"`{key}` is there already: {places[kind]}.")
            elif kind[1]:
                reader.find_quantity(kind[1])
            places[kind] = entry.place
            found[kind] = read_expression(entry, refer)
    for what, label in (("t", "PSI_t"), ("tt", "PSI_tt")):
        if (what, "") not in places:
            reader.problems.add(block.place, f"block {block.tag} has no `{label}`.")
    if len(reader.problems.texts) > before:
        return
    for name in list(variables):
        for what in ("q", "qt"):  # 0 in the original program
            if (what, name) not in places:
                found[what, name] = Formula("0", Number(0.0))
    _compare(block, formula, found, places, constants, variables)


def _compare(
    block: Block,
    formula: Formula,
    found: dict[tuple[str, str], Formula],
    places: Mapping[tuple[str, str], str],
    constants: Mapping[str, float],
    variables: Mapping[str, str],
) -> None:
    """Warn about each derivative that is another one than that of the position, at some points."""
    random = np.random.default_rng(1)
    for _ in range(5):
        at = {_path(text)[0]: float(random.uniform(0.1, 0.9)) for text in variables.values()}
        at |= {"t": float(random.uniform(0.1, 0.9)), **constants}
        for (what, name), given in list(found.items()):
            path, sign = _path(variables.get(name, ""))
            expected = _value(_differentiate, formula, at, what, path)
            value = _value(_evaluate, given, at)
            if not np.isfinite(expected):
                continue
            expected *= sign
            if abs(value - expected) <= TOLERANCE * max(1.0, abs(expected)):
                continue
            del found[what, name]
            place = places.get((what, name))
            if place is None:
                doubt(
                    block.place,
                    f"block {block.tag} has no `PSI_{what}({name[1:]})`: 0 in the original "
                    f"program. Here the derivatives are those of `position`: at one point it is "
                    f"{expected:.6g}.",
                )
            elif np.isfinite(value):
                doubt(
                    place,
                    "this is not the derivative of `position`, which alone is used: at one point "
                    f"it is {value:.6g} instead of {expected:.6g}.",
                )
            else:
                doubt(place, f"this has no finite value where `position` has {expected:.6g}.")


def _value(find: Callable[..., float], *given: Any) -> float:
    """Return a number, or NaN where there is none."""
    try:
        return find(*given)
    except (ArithmeticError, ValueError):
        return math.nan


def _evaluate(formula: Formula, at: Mapping[str, float]) -> float:
    return evaluate(formula.term, {key: (x, 0.0, 0.0) for key, x in at.items()})[0]


def _path(text: str) -> tuple[str, float]:
    """Return the path of what stands for a coordinate, and its sign."""
    negative = text.startswith("(-")
    path = text.removeprefix("(-").removesuffix(")") if negative else text
    return path.strip("'"), -1.0 if negative else 1.0


def _differentiate(formula: Formula, at: Mapping[str, float], what: str, path: str) -> float:
    """Return a derivative with respect to t, or to a coordinate, or to both."""

    def along(*names: str) -> tuple[float, float, float]:
        return evaluate(formula.term, {key: (x, float(key in names), 0.0) for key, x in at.items()})

    if what in ("t", "tt"):
        return along("t")[len(what)]
    if not path:
        return 0.0
    if what == "q":
        return along(path)[1]
    return 0.5 * (along(path, "t")[2] - along(path)[2] - along("t")[2])
