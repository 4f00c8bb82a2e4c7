"""Objects of a model with their parameters, and names."""

from __future__ import annotations

from dataclasses import dataclass, field

from ....errors import DiagramError
from ._expression import Name, Node, Number, Vector
from ._file import Value

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """Values of a parameter. Expressions are parsed; `frame` is that of a location.

    Attributes
    ----------
    values
        Words and texts, or parsed expressions.
    frame
        Name of the object in whose axes a location or orientation is given; None for the world.
    convention
        Sequence of the orientation angles.
    part
        Key of the default part, for names that are not complete.
    """

    name: str
    values: tuple[Value | Node, ...]
    place: str
    frame: str | None = None
    convention: str = "body313"
    part: Key = ()


@dataclass(slots=True, eq=False)
class Item:
    """An object of the model: part, marker, joint …, with its parameters by name."""

    kind: str
    sub: str
    name: str
    key: Key
    place: str
    entries: dict[str, Entry] = field(default_factory=dict)
    active: bool = True


def split_name(name: str) -> list[str]:
    """Return the words of a name between its dots; a word may stand in quotes."""
    words: list[str] = [""]
    quoted = False
    for character in name.strip():
        if character == '"':
            quoted = not quoted
        elif character == "." and not quoted:
            words.append("")
        else:
            words[-1] += character
    words = words[1:] if words[0] == "" and len(words) > 1 else words
    if not all(words):
        raise DiagramError(f"`{name[:60]}` is no name.")
    return words


def as_reference(value: Value | Node) -> str | None:
    """Return the name that a value is, or None if it is something else."""
    if isinstance(value, Value):
        return value.text if value.kind != "expression" else None
    return value.text if isinstance(value, Name) else None


def as_number(value: float | list[float]) -> Node:
    """Return a value as a node."""
    if isinstance(value, list):
        return Vector(tuple(Number(one) for one in value))
    return Number(value)
