"""What all makers of parts, joints and forces need: values in SI, names, markers, errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ....errors import DiagramError
from ..joints._joint import Joint
from ..system._bodies import OWN_NAMES, Body, Marker
from ._design import Design
from ._frames import Frame, Frames
from ._function import Measures, translate
from ._items import Item, split_name
from ._model import Model
from ._units import choose

if TYPE_CHECKING:
    from ..system._system import System

PARALLEL = 1e-6
"""Sine of the angle between axes that still count as one: files have few digits."""


class Builder:
    """The system that is made of a model, and what its objects became in it."""

    def __init__(
        self, system_type: type[System], model: Model, design: Design, allow_nonphysical: bool
    ) -> None:
        self.model, self.design, self.problems = model, design, model.problems
        self.allow_nonphysical = allow_nonphysical
        self.units = design.units
        self.frames = Frames(model, design)
        self.names: dict[Item, str] = {}
        self.bodies: dict[Item, Body] = {}
        self.markers: dict[Item, Marker] = {}
        self.joints: dict[Item, Joint] = {}
        self.system = system_type(model.name, self.read_gravity())

    @contextmanager
    def placed(self, item: Item) -> Iterator[None]:
        """Note errors with the line of the object, unless they have one."""
        try:
            yield
        except DiagramError as error:
            for text in error.problems:
                known = text.startswith(f"{self.model.path.name}, line ")
                self.problems.texts.append(text if known else f"{item.place}: {text}")

    def free_name(self, item: Item) -> str:
        """Return a name that no part of the system has."""
        base = "_".join(split_name(item.name)[1:]).replace(".", "_").replace("'", "_")
        taken = {"ground", "gravity", *OWN_NAMES, *self.names.values()}
        name, number = base, 2
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        return name

    # Values

    def scalar(self, item: Item, name: str, factor: float, default: float | None = None) -> float:
        """Return a number of an object in SI; an error if it is missing and has no default."""
        entry = item.entries.get(name)
        if entry is None:
            if default is None:
                raise DiagramError(f"`{item.name}` has no `{name}`.")
            return default
        return self.design.numbers(entry, 1, item.name)[0] * factor

    def triple(self, item: Item, name: str, factor: float) -> list[float]:
        """Return three numbers of an object in SI; 0 if they are not given."""
        entry = item.entries.get(name)
        if entry is None:
            return [0.0] * 3
        return [one * factor for one in self.design.numbers(entry, 3, item.name)]

    def option(self, item: Item, name: str, known: tuple[str, ...], default: str | None) -> str:
        """Return a word of an object in full."""
        entry = item.entries.get(name)
        if entry is None:
            if default is None:
                raise DiagramError(f"`{item.name}` has no `{name}`: {' or '.join(known)}.")
            return default
        try:
            return choose(f"`{name}`", self.design.text(entry, item.name), known)
        except DiagramError as error:
            raise self.design.placed(entry, item.name, error) from None

    def function(
        self, item: Item, name: str, factor: float, measures: Measures | None = None
    ) -> float | str:
        """Return a function of an object in SI: a number or a formula."""
        entry = item.entries.get(name)
        if entry is None:
            return 0.0
        text = self.design.text(entry, item.name)
        if not text.strip():
            raise DiagramError(
                f"{entry.place}: `{name}` of `{item.name}` is empty. Adams View writes functions "
                f"at the end of a file, under `Function definitions`: is the file complete?"
            )
        if text.lstrip().casefold().startswith("user"):
            raise DiagramError(f"{entry.place}: `{name}` of `{item.name}` is a subroutine.")
        try:
            return translate(text, self.design, factor, measures or {})
        except DiagramError as error:
            raise self.design.placed(entry, item.name, error) from None

    def end(self, item: Item, name: str) -> Item:
        """Return a marker that an object names."""
        entry = item.entries.get(name)
        if entry is None:
            raise DiagramError(f"`{item.name}` has no `{name}`.")
        found = self.design.item(entry, item.name, "marker")
        if not self.part_of(found).active:
            raise DiagramError(
                f"{entry.place}: `{item.name}` has the marker `{found.name}`, whose part is "
                f"switched off, and is not switched off itself."
            )
        return found

    def part_of(self, marker: Item) -> Item:
        """Return the part that a marker is on."""
        part = self.model.owner(marker.key)
        assert part is not None
        return part

    def read_gravity(self) -> tuple[float, float, float]:
        fields = self.model.list_kind("gravity")
        if len(fields) > 1:
            raise DiagramError(
                f"{fields[1].place}: there is a second field of gravity, `{fields[1].name}`, "
                f"beside `{fields[0].name}`: keep one."
            )
        if not fields:
            return (0.0, 0.0, 0.0)
        factor = self.units.factor(length=1, time=-2)
        x, y, z = (self.scalar(fields[0], f"{axis}_component_gravity", factor, 0.0)
                   for axis in "xyz")  # fmt: skip
        return x, y, z

    # Parts

    def add_marker(self, item: Item) -> None:
        part = self.part_of(item)
        if part not in self.bodies:
            return  # a part that is switched off
        frame = self.frames.on_part(item)
        name = split_name(item.name)[-1]
        self.markers[item] = self.new_marker(self.bodies[part], name, frame)

    def new_marker(self, body: Body, base: str, frame: Frame) -> Marker:
        """Add a marker to a body, with a name that is free."""
        base = base.replace(".", "_")
        name, number = base, 2
        while name in body.markers or name in OWN_NAMES:
            name, number = f"{base}_{number}", number + 1
        return body.marker(name, frame.position, rotation=frame.rotation)

    def ends(self, item: Item) -> tuple[Marker, Marker]:
        """Return the markers I and J of an object, which are on two parts."""
        i, j = self.end(item, "i_marker_name"), self.end(item, "j_marker_name")
        self.check_two(item, self.markers[i], self.markers[j])
        return self.markers[i], self.markers[j]

    def check_two(self, item: Item, i: Marker, j: Marker) -> None:
        """Refuse an object between two markers of one part."""
        if i.body is j.body:
            raise DiagramError(
                f"`{item.name}` has both markers on `{i.body.name}`: they must be on two parts."
            )
