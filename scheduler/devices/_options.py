"""Options in a table of a binding: which there are, what they may be, and what is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...errors import name_list, suggest
from ..results._result import Result

Say = Callable[[str, str], None]
"""Called with a key and what is wrong with its value."""

_WANTED = {
    "number": "a number",
    "whole": "a whole number",
    "text": "text in quotes",
    "flag": "true or false",
    "texts": "a list of texts",
    "table": "a table",
    "recording": "the name of a file",
}


@dataclass(frozen=True, slots=True)
class Option:
    """One key that a table may have.

    Parameters
    ----------
    kind
        ``"number"``, ``"whole"``, ``"text"``, ``"flag"``, ``"texts"``, ``"table"`` or
        ``"recording"``: a file, or in Python a `Result`.
    doc
        One line, for people.
    default
        Its value if it is not given.
    required
        Whether it must be given.
    low, high
        Of a number, both included.
    choices
        Of a text.
    """

    kind: Literal["number", "whole", "text", "flag", "texts", "table", "recording"]
    doc: str = ""
    default: Any = None
    required: bool = False
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()

    def read(self, value: Any) -> tuple[Any, str]:
        """Return the value and an empty text, or the default and what is wrong."""
        if not self._fits(value):
            return self.default, f"must be {_WANTED[self.kind]}, got {show(value)}."
        if self.kind in ("number", "whole"):
            number = float(value) if self.kind == "number" else int(value)
            if not self.low <= number <= self.high:
                return self.default, f"must be {self._range()}, got {show(value)}."
            return number, ""
        if isinstance(value, str) and "\0" in value:
            return self.default, f"must not contain a NUL character, got {show(value)}."
        if self.choices and value not in self.choices:
            known = ", ".join(self.choices)
            return self.default, f"must be one of {known}, got {show(value)}." + suggest(
                value, self.choices
            )
        return value, ""

    def _fits(self, value: Any) -> bool:
        if self.kind == "number":
            return is_number(value)
        if self.kind == "whole":
            return isinstance(value, int) and not isinstance(value, bool)
        if self.kind == "texts":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        if self.kind == "recording":
            return isinstance(value, str | Result)
        return isinstance(value, {"text": str, "flag": bool, "table": dict}[self.kind])

    def _range(self) -> str:
        if self.high == math.inf:
            return f"{self.low:g} or more"
        if self.low == -math.inf:
            return f"{self.high:g} or less"
        return f"between {self.low:g} and {self.high:g}"


def read_options(
    table: Mapping[str, Any], known: Mapping[str, Option], say: Say, of: str = ""
) -> dict[str, Any]:
    """Return the values of all `known` options; `say` is called for every problem."""
    values: dict[str, Any] = {}
    for key, option in known.items():
        values[key] = option.default
        if key in table:
            values[key], wrong = option.read(table[key])
            if wrong:
                say(key, wrong)
        elif option.required:
            say(key, f"is missing: {option.doc or _WANTED[option.kind]}.")
    for key in table:
        if key not in known:
            say(key, f"is not an option{of}.{suggest(key, known)} Options: {name_list(known)}.")
    return values


def is_number(value: Any) -> bool:
    """Tell whether `value` is a finite number, and not true or false."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def show(value: Any, limit: int = 60) -> str:
    """Return a value of a TOML file for a message."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Result):
        return "a Result"
    try:
        text = repr(value)
    except ValueError:  # whole numbers of thousands of digits
        text = "a number of very many digits"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
