"""Where parts, markers and points are: locations and orientation angles, from frame to frame.

The angles a, b, c of ``body313`` turn about z, then about the new x, then about the new z:
R = R_z(a) R_x(b) R_z(c). Those of ``space…`` turn about axes that stay: R = R_k(c) R_j(b) R_i(a).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ....errors import DiagramError
from ..system._rotations import Array, freeze, rotation_about
from ._design import Design
from ._expression import Call, Name, Node
from ._file import Value
from ._items import Entry, Item
from ._model import Model

_AXES = np.eye(3)


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame p in m, R in another one."""

    position: Array
    rotation: Array

    def then(self, inner: Frame) -> Frame:
        """Return a frame given in this one, in that in which this one is given."""
        return Frame(
            freeze(self.position + self.rotation @ inner.position),
            freeze(self.rotation @ inner.rotation),
        )

    def seen(self, outer: Frame) -> Frame:
        """Return an outer frame, given beside this one, as seen from this one."""
        turned = self.rotation.T
        return Frame(
            freeze(turned @ (outer.position - self.position)), freeze(turned @ outer.rotation)
        )


WORLD = Frame(freeze(np.zeros(3)), freeze(np.eye(3)))


def turn(axis: int, angle: float) -> Array:
    """Return the rotation about x, y or z (0, 1, 2) by an angle in rad.

    Multiples of 90° have a matrix of whole numbers, as drawn, not cos 90° = 6e-17.
    """
    quarters = angle / (math.pi / 2.0)
    if abs(quarters) < 1e6 and abs(quarters - round(quarters)) < 1e-14 * max(1.0, abs(quarters)):
        turned = np.array(rotation_about(_AXES[axis], round(quarters) * math.pi / 2.0))
        return np.round(turned) + 0.0
    return np.array(rotation_about(_AXES[axis], angle))


def rotation_from_angles(convention: str, angles: list[float]) -> Array:
    """Return the rotation of three angles in rad, by the name of Adams of their sequence."""
    axes = [int(digit) - 1 for digit in convention[-3:]]
    made = np.eye(3)
    for axis, angle in zip(axes, angles, strict=True):
        one = turn(axis, angle)
        made = made @ one if convention.startswith("body") else one @ made
    return freeze(made)


class Frames:
    """Frames of the objects of a model, each computed once."""

    def __init__(self, model: Model, design: Design) -> None:
        self.model, self.design = model, design
        self.length = design.units.length
        self.angle = design.units.angle
        self.world: dict[Item, Frame] = {}
        self.local: dict[Item, Frame] = {}
        self.open: list[Item] = []

    def in_world(self, item: Item) -> Frame:
        """Return the frame of a part, marker or point in the world."""
        if item.sub == "ground":
            return WORLD
        if item not in self.world:
            self.world[item] = self.resolve(item)
        return self.world[item]

    def on_part(self, item: Item) -> Frame:
        """Return the frame of a marker or point on its part."""
        self.in_world(item)
        return self.local[item]

    def resolve(self, item: Item) -> Frame:
        """Compute a frame; raise a `DiagramError` if it depends on itself."""
        if item in self.open:
            ring = [*self.open[self.open.index(item) :], item]
            raise DiagramError(
                f"{item.place}: locations are relative to each other in a circle: "
                + " → ".join(f"`{one.name}` ({one.place.split(', ')[1]})" for one in ring)
            )
        if len(self.open) > 100:
            raise DiagramError(f"{item.place}: `{item.name}` is relative to too many others.")
        self.open.append(item)
        try:
            part = self.model.owner(item.key) if item.kind != "part" else None
            position, kept_position = self.read_location(item, part)
            rotation, kept_rotation = self.read_orientation(item, part)
        finally:
            self.open.pop()
        world = Frame(position, rotation)
        if part is not None:
            seen = self.in_world(part).seen(world)
            # What is given in axes of the part keeps its digits.
            self.local[item] = Frame(
                seen.position if kept_position is None else kept_position,
                seen.rotation if kept_rotation is None else kept_rotation,
            )
        return world

    def read_location(self, item: Item, part: Item | None) -> tuple[Array, Array | None]:
        """Return the position in the world, and on the part if it is given there."""
        entry = item.entries.get("location")
        if entry is None:
            outer = self.in_world(part) if part is not None else WORLD
            return outer.position, freeze(np.zeros(3)) if part is not None else None
        outer, own = self.reference(entry, item, part)
        call = _find_call(entry, "loc_relative_to")
        if call is not None:
            self.check_reference(entry, item, part, outer)
            values, frame = self.read_call(entry, item, call)
            point = Frame(freeze(np.array(values) * self.length), WORLD.rotation)
            return frame.then(point).position, None
        numbers = np.array(self.design.numbers(entry, 3, item.name)) * self.length
        placed = outer.then(Frame(freeze(numbers), WORLD.rotation)).position
        return placed, freeze(numbers) if own else None

    def read_orientation(self, item: Item, part: Item | None) -> tuple[Array, Array | None]:
        """Return the rotation in the world, and on the part if it is given there."""
        entry = item.entries.get("orientation")
        if entry is None:
            outer = self.in_world(part) if part is not None else WORLD
            return outer.rotation, WORLD.rotation if part is not None else None
        outer, own = self.reference(entry, item, part)
        call = _find_call(entry, "ori_relative_to")
        if call is not None:
            self.check_reference(entry, item, part, outer)
            values, frame = self.read_call(entry, item, call)
            inner = self.turn_by(entry, values)
            return freeze(frame.rotation @ inner), None
        angles = self.design.numbers(entry, 3, item.name)
        inner = self.turn_by(entry, angles)
        return freeze(outer.rotation @ inner), inner if own else None

    def turn_by(self, entry: Entry, angles: list[float]) -> Array:
        return rotation_from_angles(entry.convention, [one * self.angle for one in angles])

    def reference(self, entry: Entry, item: Item, part: Item | None) -> tuple[Frame, bool]:
        """Return the frame of a location, and whether it is the part of the object."""
        if entry.frame is None:
            return WORLD, part is not None and part.sub == "ground"
        try:
            found = self.model.find(entry.frame, entry.part, ("part", "marker"))
        except DiagramError as error:
            raise self.design.placed(entry, item.name, error) from None
        return self.in_world(found), found is part

    def check_reference(self, entry: Entry, item: Item, part: Item | None, outer: Frame) -> None:
        """Refuse an expression whose frame is not that in which Adams keeps the result."""
        kept = self.in_world(part) if part is not None else WORLD
        same = np.array_equal(kept.position, outer.position)
        if not (same and np.array_equal(kept.rotation, outer.rotation)):
            raise DiagramError(
                f"{entry.place}: `{entry.name}` of `{item.name}` is an expression, and relative to "
                f"`{entry.frame or 'ground'}`, which is not its part: what it means is not clear. "
                f"Add `relative_to = {part.name if part is not None else 'ground'}`."
            )

    def read_call(self, entry: Entry, item: Item, call: Call) -> tuple[list[float], Frame]:
        """Return the numbers and the frame of LOC_RELATIVE_TO({x, y, z}, frame)."""
        if len(call.arguments) != 2 or not isinstance(call.arguments[1], Name):
            raise DiagramError(
                f"{entry.place}: `{entry.name}` of `{item.name}`: `{call.name.upper()}` has three "
                f"numbers in braces and the name of a marker, point or part."
            )
        try:
            values = self.design.evaluate(call.arguments[0])
            kinds = ("part", "marker", "point")
            found = self.model.find(call.arguments[1].text, entry.part, kinds)
        except DiagramError as error:
            raise self.design.placed(entry, item.name, error) from None
        if not isinstance(values, list) or len(values) != 3:
            raise DiagramError(
                f"{entry.place}: `{entry.name}` of `{item.name}` has three numbers in braces."
            )
        return values, self.in_world(found)


def _find_call(entry: Entry, name: str) -> Call | None:
    """Return the call that an entry is, or None."""
    if len(entry.values) != 1:
        return None
    node: Value | Node = entry.values[0]
    if isinstance(node, Call) and node.name == "eval" and len(node.arguments) == 1:
        node = node.arguments[0]
    return node if isinstance(node, Call) and node.name == name else None
