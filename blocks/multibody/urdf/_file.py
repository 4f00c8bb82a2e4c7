"""Reading a URDF file: links and joints as data, each with the line it stands on.

The file format is specified in https://wiki.ros.org/urdf/XML: meters, kilograms and radians; `rpy`
are turns about the fixed axes x, y, z, in this order; `ixy` and its like are elements of the tensor
about the center of mass, in axes of the `<origin>` of `<inertial>`. Shapes, materials, sensors
and elements of other programs are passed over.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from xml.parsers import expat

import numpy as np

from ....errors import BiellaWarning, DiagramError, name_list, suggest
from ..system._bodies import read_inertia
from ..system._rotations import Array, freeze, rotation_about

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")

FAR = 100.0
"""A length in m that no robot has: the file was probably written in mm."""
_LARGEST = 1e100
MANY_TURNS = 4.0 * np.pi
"""An angle in rad that is probably one in degrees."""


@dataclass(frozen=True, slots=True, eq=False)
class UrdfLink:
    """A link: mass in kg, center of mass and inertia about it, in axes of the link."""

    name: str
    line: int
    mass: float
    com: Array
    inertia: Array


@dataclass(frozen=True, slots=True, eq=False)
class UrdfJoint:
    """A joint: where its frame is on the parent link, which is the frame of the child at 0."""

    name: str
    line: int
    kind: str
    parent: str
    child: str
    position: Array
    rotation: Array
    axis: Array
    limits: tuple[float, float] | None
    damping: float
    friction: float


Item = TypeVar("Item", UrdfLink, UrdfJoint)


@dataclass(frozen=True, slots=True)
class Robot:
    """Content of a file; links and joints in the order of the file."""

    path: Path
    name: str
    links: dict[str, UrdfLink]
    joints: dict[str, UrdfJoint]

    def at(self, item: UrdfLink | UrdfJoint) -> str:
        """Return how an error calls a link or joint."""
        what = "link" if isinstance(item, UrdfLink) else "joint"
        return f"{self.path.name}, line {item.line}: {what} `{item.name}`"


def read_robot(path: str | Path, allow_nonphysical: bool) -> Robot:
    """Read a file; raise a `DiagramError` with all links and joints that are not right."""
    path = Path(path)
    root = _parse(path)
    if root.tag != "robot":
        raise DiagramError(
            f"{root.place} has <{root.tag}> outermost: a URDF file has <robot> there. SDF and MJCF "
            f"are other formats."
        )
    robot = Robot(path, root.attributes.get("name") or path.stem, {}, {})
    problems: list[str] = []
    for element in root.children:
        try:
            if element.tag == "link":
                _keep(robot, robot.links, _read_link(element, allow_nonphysical))
            elif element.tag == "joint":
                _keep(robot, robot.joints, _read_joint(element))
        except DiagramError as error:
            problems += error.problems
    if not robot.links and not problems:
        problems.append(f"{root.place} has a robot without any <link>.")
    if problems:
        raise DiagramError(problems)
    return robot


def _keep(robot: Robot, known: dict[str, Item], item: Item) -> None:
    if item.name in known:
        raise DiagramError(
            f"{robot.at(item)} is there already, on line {known[item.name].line}: names are unique."
        )
    known[item.name] = item


@dataclass(frozen=True, slots=True)
class _Element:
    """An element of the file; `place` is the file and the line."""

    tag: str
    attributes: dict[str, str]
    place: str
    line: int
    children: list[_Element] = field(default_factory=list)

    def child(self, tag: str) -> _Element | None:
        """Return the only child with this tag, or None."""
        found = [child for child in self.children if child.tag == tag]
        if len(found) > 1:
            raise DiagramError(f"{found[1].place}: a second <{tag}> in <{self.tag}>: keep one.")
        return found[0] if found else None

    def need(self, tag: str, of: str) -> _Element:
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


def _parse(path: Path) -> _Element:
    """Return the outermost element. Entities are rejected: they can grow without bound."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DiagramError(f"cannot read the URDF file {path}: {error.strerror}.") from None
    parser = expat.ParserCreate()
    top = _Element("", {}, path.name, 0)
    stack = [top]

    def place() -> str:
        return f"{path.name}, line {parser.CurrentLineNumber}"

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag.startswith("xacro:"):
            raise DiagramError(
                f"{place()}: <{tag}> is a macro. Expand the file first: xacro {path.name} > "
                f"{path.name.split('.')[0]}.urdf"
            )
        made = _Element(tag, attributes, place(), parser.CurrentLineNumber)
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


def _read_origin(parent: _Element, of: str) -> tuple[Array, Array]:
    """Return p and R of the <origin> of an element; 0 and the identity if it has none."""
    origin = parent.child("origin")
    if origin is None:
        return freeze(np.zeros(3)), freeze(np.eye(3))
    xyz = origin.numbers("xyz", (0.0, 0.0, 0.0))
    rpy = origin.numbers("rpy", (0.0, 0.0, 0.0))
    if max(map(abs, xyz)) > FAR:
        _doubt(f"{origin.place}: {of} has its origin at {xyz} m. Lengths are in m: are these mm?")
    if max(map(abs, rpy)) > MANY_TURNS:
        _doubt(f"{origin.place}: {of} has rpy {rpy} rad. Angles are in rad: are these degrees?")
    return freeze(xyz), rotation_from_rpy(*rpy)


def _doubt(text: str) -> None:
    warnings.warn(text, BiellaWarning, stacklevel=2)


def _read_link(element: _Element, allow_nonphysical: bool) -> UrdfLink:
    name = element.name()
    of = f"link `{name}`"
    inertial = element.child("inertial")
    if inertial is None:
        close = suggest("inertial", [child.tag for child in element.children])
        if close:
            raise DiagramError(f"{element.place}: {of} has no <inertial>.{close}")
        return UrdfLink(name, element.line, 0.0, freeze(np.zeros(3)), freeze(np.zeros((3, 3))))
    com, axes = _read_origin(inertial, of)
    mass = inertial.need("mass", of).number("value")
    if mass < 0:
        raise DiagramError(f"{inertial.place}: {of} has mass {mass:g} kg: it must not be negative.")
    given = inertial.need("inertia", of)
    xx, xy, xz, yy, yz, zz = map(given.number, ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    try:
        tensor = read_inertia(name, tensor, False, allow_nonphysical)
    except DiagramError as error:
        raise DiagramError([f"{given.place}: {text}" for text in error.problems]) from None
    # √(I / m) is a length: a tensor in kg mm² shows by it.
    largest = float(np.trace(tensor)) / 2.0
    if mass > 0 and largest > mass * FAR**2:
        _doubt(
            f"{given.place}: {of} of {mass:g} kg turns as if its mass were "
            f"{np.sqrt(largest / mass):.3g} m away from its center. Inertia is in kg m²: is this "
            f"in kg mm² or g mm²?"
        )
    return UrdfLink(name, element.line, mass, com, freeze(axes @ tensor @ axes.T))


def _read_joint(element: _Element) -> UrdfJoint:
    name = element.name()
    of = f"joint `{name}`"
    kind = element.text("type")
    if kind not in KINDS:
        raise DiagramError(
            f"{element.place}: {of} has type `{kind}`.{suggest(kind, KINDS)} "
            f"Types: {name_list(KINDS)}."
        )
    mimic = element.child("mimic")
    if mimic is not None:
        raise DiagramError(
            f"{mimic.place}: {of} follows `{mimic.attributes.get('joint', '?')}` by <mimic>, which "
            f"is not supported: no joint here couples two coordinates. Delete <mimic> to let it "
            f"move freely or by a driver with a separate law, or make it fixed."
        )
    position, rotation = _read_origin(element, of)
    damping, friction = _read_dynamics(element, of)
    return UrdfJoint(
        name,
        element.line,
        kind,
        element.need("parent", of).text("link"),
        element.need("child", of).text("link"),
        position,
        rotation,
        _read_axis(element, of, kind),
        _read_limits(element, of, kind),
        damping,
        friction,
    )


def _read_axis(element: _Element, of: str, kind: str) -> Array:
    # Joints without an axis are often given one of zeros.
    given = None if kind in ("fixed", "floating") else element.child("axis")
    axis = np.array((1.0, 0.0, 0.0) if given is None else given.numbers("xyz", (1.0, 0.0, 0.0)))
    largest = float(np.abs(axis).max())
    if given is not None and largest == 0.0:
        raise DiagramError(f"{given.place}: the axis of {of} has no direction: it is (0, 0, 0).")
    axis = axis / largest  # so that no square underflows
    return freeze(axis / np.linalg.norm(axis))


def _read_dynamics(element: _Element, of: str) -> tuple[float, float]:
    given = element.child("dynamics")
    if given is None:
        return 0.0, 0.0
    damping, friction = (given.numbers(what, (0.0,))[0] for what in ("damping", "friction"))
    if min(damping, friction) < 0:
        raise DiagramError(
            f"{given.place}: {of} has damping {damping:g} and friction {friction:g}: neither may "
            f"be negative."
        )
    return damping, friction


def _read_limits(element: _Element, of: str, kind: str) -> tuple[float, float] | None:
    """Return the limits; `effort` and `velocity` are of the motor, not of the joint."""
    given = element.child("limit")
    if given is None or kind not in ("revolute", "prismatic"):
        return None
    lower, upper = (given.numbers(what, (0.0,), finite=False)[0] for what in ("lower", "upper"))
    largest = max((abs(one) for one in (lower, upper) if np.isfinite(one)), default=0.0)
    if kind == "revolute" and largest > MANY_TURNS:
        _doubt(
            f"{given.place}: {of} turns between {lower:g} and {upper:g} rad. Angles are in rad: "
            f"are these degrees?"
        )
    return lower, upper
