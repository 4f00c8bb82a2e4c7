"""Elements of a URDF file, each with its place, and what several of them have in common."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from ....errors import BiellaWarning, DiagramError, name_list, suggest
from ..system._rotations import Array, freeze, rotation_about

FAR = 100.0
"""A length in m that no robot has: the file was probably written in mm."""
_LARGEST = 1e100
MANY_TURNS = 4.0 * np.pi
"""An angle in rad that is probably one in degrees."""


@dataclass(frozen=True, slots=True)
class Element:
    """An element of the file; `place` is the file and the line."""

    tag: str
    attributes: dict[str, str]
    place: str
    line: int
    children: list[Element] = field(default_factory=list)

    def child(self, tag: str) -> Element | None:
        """Return the only child with this tag, or None."""
        found = [child for child in self.children if child.tag == tag]
        if len(found) > 1:
            raise DiagramError(f"{found[1].place}: a second <{tag}> in <{self.tag}>: keep one.")
        return found[0] if found else None

    def need(self, tag: str, of: str) -> Element:
        """Return the only child with this tag, which must be there."""
        found = self.child(tag)
        if found is None:
            raise DiagramError(
                f"{self.place}: {of} has no <{tag}> in <{self.tag}>."
                f"{suggest(tag, [child.tag for child in self.children])}"
            )
        return found

    def text(self, attribute: str) -> str:
        """Return an attribute that must be there."""
        found = self.attributes.get(attribute, "")
        if not found:
            raise DiagramError(
                f"{self.place}: <{self.tag}> has no `{attribute}`."
                f"{suggest(attribute, self.attributes)} It has: {name_list(self.attributes)}."
            )
        return found

    def name(self) -> str:
        """Return its name, which paths such as ``arm.position`` must be able to hold."""
        name = self.text("name")
        if "." in name:
            raise DiagramError(
                f"{self.place}: {self.tag} `{name}` has a dot in its name. Dots part a body from "
                f"its markers and outputs here: rename it in the file."
            )
        return name

    def numbers(
        self, attribute: str, default: tuple[float, ...], *, finite: bool = True
    ) -> tuple[float, ...]:
        """Return the numbers of an attribute, as many as in the default."""
        if attribute not in self.attributes:
            return default
        tokens = self.attributes[attribute].split()
        what = f"{self.place}: `{attribute}` of <{self.tag}>"
        for token in tokens:
            if not _is_number(token, finite):
                raise DiagramError(
                    f"{what} has {token!r}, which is not a {'finite ' if finite else ''}number. "
                    f"Numbers are separated by blanks and have no units: m, kg and rad are implied."
                )
            if _LARGEST < abs(float(token)) < np.inf:
                raise DiagramError(
                    f"{what} has {token!r}, which is beyond ±{_LARGEST:g}: squares and products of "
                    f"such numbers overflow."
                )
        if len(tokens) != len(default):
            raise DiagramError(
                f"{what} must be {len(default)} numbers, got {self.attributes[attribute]!r}."
            )
        return tuple(float(token) for token in tokens)

    def number(self, attribute: str) -> float:
        """Return a number that must be there."""
        self.text(attribute)
        return self.numbers(attribute, (0.0,))[0]


def _is_number(token: str, finite: bool) -> bool:
    try:
        value = float(token)
    except ValueError:
        return False
    return "_" not in token and not np.isnan(value) and (not finite or bool(np.isfinite(value)))


def parse(path: Path) -> Element:
    """Return the outermost element. Entities are rejected: they can grow without bound."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DiagramError(f"cannot read the URDF file {path}: {error.strerror}.") from None
    parser = expat.ParserCreate()
    top = Element("", {}, path.name, 0)
    stack = [top]

    def place() -> str:
        return f"{path.name}, line {parser.CurrentLineNumber}"

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag.startswith("xacro:"):
            raise DiagramError(
                f"{place()}: <{tag}> is a macro. Expand the file first: xacro {path.name} > "
                f"{path.name.split('.')[0]}.urdf"
            )
        made = Element(tag, attributes, place(), parser.CurrentLineNumber)
        stack[-1].children.append(made)
        stack.append(made)

    def refuse(*_: Any) -> None:
        raise DiagramError(
            f"{place()}: a document type is declared. URDF needs none, and the entities in it "
            f"may stand for other files or for endless text: delete the declaration."
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise DiagramError(
            f"{path.name}, line {error.lineno}, column {error.offset + 1}: this is not well-formed "
            f"XML: {expat.ErrorString(error.code)}."
        ) from None
    except (LookupError, ValueError) as error:
        raise DiagramError(f"{path.name}: its text cannot be decoded: {error}.") from None
    return top.children[0]


def rotation_from_rpy(roll: float, pitch: float, yaw: float) -> Array:
    """Return Rz(yaw) Ry(pitch) Rx(roll)."""
    x, y, z = np.eye(3)
    turned = rotation_about(z, yaw) @ rotation_about(y, pitch) @ rotation_about(x, roll)
    return freeze(turned)


def read_origin(parent: Element, of: str) -> tuple[Array, Array]:
    """Return p and R of the <origin> of an element; 0 and the identity if it has none."""
    origin = parent.child("origin")
    if origin is None:
        return freeze(np.zeros(3)), freeze(np.eye(3))
    xyz = origin.numbers("xyz", (0.0, 0.0, 0.0))
    rpy = origin.numbers("rpy", (0.0, 0.0, 0.0))
    if max(map(abs, xyz)) > FAR:
        doubt(f"{origin.place}: {of} has its origin at {xyz} m. Lengths are in m: are these mm?")
    if max(map(abs, rpy)) > MANY_TURNS:
        doubt(f"{origin.place}: {of} has rpy {rpy} rad. Angles are in rad: are these degrees?")
    return freeze(xyz), rotation_from_rpy(*rpy)


def doubt(text: str) -> None:
    warnings.warn(text, BiellaWarning, stacklevel=2)
