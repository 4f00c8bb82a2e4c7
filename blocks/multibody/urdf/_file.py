"""Reading a URDF file: links and joints as data, each with the line it stands on.

The file format is specified in https://wiki.ros.org/urdf/XML: meters, kilograms and radians; `rpy`
are turns about the fixed axes x, y, z, in this order; `ixy` and its like are elements of the tensor
about the center of mass, in axes of the `<origin>` of `<inertial>`. Shapes are for pictures only.
Sensors and elements of other programs are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from ....errors import DiagramError, name_list, suggest
from ..system._bodies import read_inertia
from ..system._rotations import Array, freeze
from ..system._visuals import Visual
from ._element import FAR, MANY_TURNS, Element, doubt, parse, read_origin
from ._visual import read_materials, read_visuals

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")


@dataclass(frozen=True, slots=True, eq=False)
class UrdfLink:
    """A link: mass in kg, center of mass and inertia about it, and shapes, in axes of the link."""

    name: str
    line: int
    mass: float
    com: Array
    inertia: Array
    visuals: tuple[Visual, ...] = ()


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
    root = parse(path)
    if root.tag != "robot":
        raise DiagramError(
            f"{root.place} has <{root.tag}> outermost: a URDF file has <robot> there. SDF and MJCF "
            f"are other formats."
        )
    robot = Robot(path, root.attributes.get("name") or path.stem, {}, {})
    problems: list[str] = []
    materials: dict[str, tuple[float, ...]] = {}
    try:
        materials = read_materials(root)
    except DiagramError as error:
        doubt(f"shapes have no colors: {' '.join(error.problems)}")
    for element in root.children:
        try:
            if element.tag == "link":
                link = _read_link(element, allow_nonphysical)
                visuals = tuple(read_visuals(element, materials, path))
                _keep(robot, robot.links, replace(link, visuals=visuals))
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


def _read_link(element: Element, allow_nonphysical: bool) -> UrdfLink:
    name = element.name()
    of = f"link `{name}`"
    inertial = element.child("inertial")
    if inertial is None:
        close = suggest("inertial", [child.tag for child in element.children])
        if close:
            raise DiagramError(f"{element.place}: {of} has no <inertial>.{close}")
        return UrdfLink(name, element.line, 0.0, freeze(np.zeros(3)), freeze(np.zeros((3, 3))))
    com, axes = read_origin(inertial, of)
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
        doubt(
            f"{given.place}: {of} of {mass:g} kg turns as if its mass were "
            f"{np.sqrt(largest / mass):.3g} m away from its center. Inertia is in kg m²: is this "
            f"in kg mm² or g mm²?"
        )
    return UrdfLink(name, element.line, mass, com, freeze(axes @ tensor @ axes.T))


def _read_joint(element: Element) -> UrdfJoint:
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
    position, rotation = read_origin(element, of)
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


def _read_axis(element: Element, of: str, kind: str) -> Array:
    # Joints without an axis are often given one of zeros.
    given = None if kind in ("fixed", "floating") else element.child("axis")
    axis = np.array((1.0, 0.0, 0.0) if given is None else given.numbers("xyz", (1.0, 0.0, 0.0)))
    largest = float(np.abs(axis).max())
    if given is not None and largest == 0.0:
        raise DiagramError(f"{given.place}: the axis of {of} has no direction: it is (0, 0, 0).")
    axis = axis / largest  # so that no square underflows
    return freeze(axis / np.linalg.norm(axis))


def _read_dynamics(element: Element, of: str) -> tuple[float, float]:
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


def _read_limits(element: Element, of: str, kind: str) -> tuple[float, float] | None:
    """Return the limits; `effort` and `velocity` are of the motor, not of the joint."""
    given = element.child("limit")
    if given is None or kind not in ("revolute", "prismatic"):
        return None
    lower, upper = (given.numbers(what, (0.0,), finite=False)[0] for what in ("lower", "upper"))
    largest = max((abs(one) for one in (lower, upper) if np.isfinite(one)), default=0.0)
    if kind == "revolute" and largest > MANY_TURNS:
        doubt(
            f"{given.place}: {of} turns between {lower:g} and {upper:g} rad. Angles are in rad: "
            f"are these degrees?"
        )
    return lower, upper
