"""A system from an Adams View command file: parts, joints and motions; forces are in `_forces`.

The first marker of a joint here is J, the second is I: coordinates of Adams are those of I as seen
from J. Names are those of the file without the model; dots between become underscores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from ....errors import DiagramError
from ..joints._joint import Joint
from ..system._bodies import OWN_NAMES, Body, Marker
from ..system._problems import Problems
from ..system._rotations import Array
from ._design import Design
from ._frames import WORLD, Frame, Frames
from ._function import Measures, translate
from ._model import Item, Model, split_name
from ._units import choose

if TYPE_CHECKING:
    from ..system._system import System

PARALLEL = 1e-6
"""Sine of the angle between axes that still count as one: files have few digits."""


@dataclass(frozen=True, slots=True)
class AdamsModel:
    """What an Adams View command file describes.

    Attributes
    ----------
    system
        The mechanism.
    variables
        Values of its design variables by full name, in units of the file.
    ignored
        Commands that do not change the motion and were not used, each with its line.
    """

    system: System
    variables: Mapping[str, float] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def read_adams(path: str | Path, *, allow_nonphysical: bool = False) -> AdamsModel:
    """Read an Adams View command file; see `System.from_adams`.

    Returns
    -------
    AdamsModel
        The system, the design variables, and the commands that were ignored.
    """
    from ..system._system import System

    return build_model(System, path, allow_nonphysical)


def build_model(system_type: type[System], path: str | Path, allow_nonphysical: bool) -> AdamsModel:
    """Read a file; the system is a new `system_type`."""
    problems = Problems()
    model = Model(Path(path), problems)
    design = Design(model)
    model.fold = design.fold
    model.read()
    problems.stop()
    builder = Builder(model, design, allow_nonphysical)
    builder.build(system_type)
    problems.stop()
    return AdamsModel(builder.system, MappingProxyType(builder.variables), tuple(model.ignored))


class Builder:
    """Makes the parts of a system in the order in which they need each other."""

    system: System

    def __init__(self, model: Model, design: Design, allow_nonphysical: bool) -> None:
        self.model, self.design, self.problems = model, design, model.problems
        self.allow_nonphysical = allow_nonphysical
        self.units = design.units
        self.frames = Frames(model, design)
        self.names: dict[Item, str] = {}
        self.bodies: dict[Item, Body] = {}
        self.markers: dict[Item, Marker] = {}
        self.joints: dict[Item, Joint] = {}
        self.variables: dict[str, float] = {}

    def build(self, system_type: type[System]) -> None:
        from ._forces import add_force, add_spring_assembly

        system = self.system = system_type(self.model.name, self.read_gravity())
        parts = self.model.list_kind("part")
        ground = next(item for item in parts if item.sub == "ground")
        self.bodies[ground] = system.ground
        for item in parts:
            with self.placed(item):
                self.check_ground(item)
        joints, forces = self.model.list_kind("joint"), self.model.list_kind("force")
        assemblies = self.model.list_kind("ude")
        for item in (*parts, *joints, *self.model.list_kind("motion"), *forces, *assemblies):
            if item is not ground:
                self.names[item] = self.free_name(item)
        for item in self.model.list_kind("variable"):
            if item.entries.keys() & {"real_value", "integer_value"}:
                with self.placed(item):
                    self.variables[item.name] = self.design.variable(item)
        held = self.find_held([*joints, *forces, *assemblies])
        for item in parts:
            if item is not ground:
                with self.placed(item):
                    self.add_body(item, item not in held)
        self.problems.stop()  # the rest needs the bodies
        for item in self.model.list_kind("marker"):
            with self.placed(item):
                self.add_marker(item)
        self.problems.stop()
        for item in joints:
            with self.placed(item):
                self.add_joint(item)
        for item in self.model.list_kind("motion"):
            with self.placed(item):
                self.add_motion(item)
        for item in forces:
            with self.placed(item):
                add_force(self, item)
        for item in assemblies:
            with self.placed(item):
                add_spring_assembly(self, item)

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

    def find_held(self, ties: list[Item]) -> set[Item]:
        """Return the parts that joints and springs tie to the ground, over others."""
        graph: nx.Graph[Item] = nx.Graph()
        for tie in ties:
            ends = []
            names = [("i_marker_name", "j_marker_name"), ("i_part_name", "j_part_name"),
                     ("i_marker", "j_marker")]  # fmt: skip
            for pair in names:
                for name in pair:
                    entry = tie.entries.get(name)
                    if entry is None:
                        continue
                    try:
                        found = self.design.item(entry, tie.name, "marker", "part")
                    except DiagramError:
                        continue  # reported where the tie is made
                    ends.append(found if found.kind == "part" else self.part_of(found))
            loads = tie.sub in ("force_vector", "torque_vector", "general_force")
            loads = loads or tie.sub == "single_component_force"
            if len(ends) == 2 and not loads:
                graph.add_edge(*ends)
        ground = next(item for item in self.bodies)
        return set(nx.node_connected_component(graph, ground)) if ground in graph else set()

    def check_ground(self, item: Item) -> None:
        """Refuse a ground with another name or another place."""
        if item.sub != "ground":
            if self.option(item, "ground_part", ("no", "yes", "false", "true"), "no") in (
                "yes",
                "true",
            ):
                raise DiagramError(f"`{item.name}` is made the ground: call it `ground`.")
            return
        for name in ("location", "orientation"):
            if any(self.triple(item, name, 1.0)):
                raise DiagramError(
                    f"{item.entries[name].place}: the `{name}` of the ground is that of the world."
                )

    def add_body(self, item: Item, free: bool) -> None:
        where = self.frames.in_world(item)
        mass, com, inertia = self.read_mass(item, where)
        velocity, spin = self.read_velocity(item, where, com)
        self.bodies[item] = self.system.body(
            self.names[item],
            mass=mass,
            com=com,
            inertia=inertia,
            position=where.position,
            rotation=where.rotation,
            velocity=velocity,
            angular_velocity=spin,
            free=free,
            allow_nonphysical=self.allow_nonphysical,
        )

    def own_frame(self, item: Item, name: str) -> Frame | None:
        """Return a marker's frame on the part that names it."""
        if name not in item.entries:
            return None
        marker = self.end(item, name)
        if self.part_of(marker) is not item:
            raise DiagramError(
                f"{item.entries[name].place}: `{name}` of `{item.name}` is `{marker.name}`, which "
                f"is on another part."
            )
        return self.frames.on_part(marker)

    def read_mass(self, item: Item, where: Frame) -> tuple[float, Array, Array]:
        """Return mass, center of mass, and inertia about it in axes of the part.

        Products of inertia are positive integrals, ∫xy dm: in the tensor they have a minus sign.
        The moments are about the origin of the inertia marker, in its axes.
        """
        names = ("ixx", "iyy", "izz", "ixy", "iyz", "izx", "ixz")
        given = [name for name in names if name in item.entries]
        for name in ("material_type", "density"):
            if name in item.entries and "mass" not in item.entries:
                raise DiagramError(
                    f"{item.entries[name].place}: the mass of `{item.name}` is that of its shapes "
                    f"by `{name}`, which are not read: give `mass`, `center_of_mass_marker` and "
                    f"moments of inertia; Adams View shows them in Aggregate Mass."
                )
        mass = self.scalar(item, "mass", self.units.mass, 0.0)
        center = self.own_frame(item, "center_of_mass_marker")
        axes = self.own_frame(item, "inertia_marker") or center
        if (mass != 0.0 or given) and center is None:
            raise DiagramError(f"`{item.name}` has a mass and no `center_of_mass_marker`.")
        if center is None or axes is None:
            return mass, WORLD.position, np.zeros((3, 3))
        factor = self.units.factor(mass=1, length=2)
        xx, yy, zz, xy, yz, zx, xz = (self.scalar(item, name, factor, 0.0) for name in names)
        if "izx" in given and "ixz" in given:
            raise DiagramError(f"`{item.name}` has `izx` and `ixz`: they are the same.")
        zx += xz
        tensor = np.array([[xx, -xy, -zx], [-xy, yy, -yz], [-zx, -yz, zz]])
        turned = axes.rotation @ tensor @ axes.rotation.T
        if np.array_equal(axes.rotation, np.eye(3)):
            turned = tensor
        d = center.position - axes.position
        return mass, center.position, turned - mass * (d @ d * np.eye(3) - np.outer(d, d))

    def read_velocity(self, item: Item, where: Frame, com: Array) -> tuple[Array, Array]:
        """Return velocity of the part's origin and angular velocity, in world axes.

        vx … are of the center of mass in axes of the ground, or of the marker vm; wx … in axes of
        the center-of-mass marker, or of the marker wm. What is not set is found by assembly.
        """
        parts = []
        for what, factor in (
            ("v", self.units.factor(length=1, time=-1)),
            ("w", self.units.factor(angle=1, time=-1)),
        ):
            names = [what + axis for axis in "xyz"]
            values = np.array([
                0.0 if f"no_{name}" in item.entries else self.scalar(item, name, factor, 0.0)
                for name in names
            ])  # fmt: skip
            if values.any():
                values = self.axes_of(item, what, where) @ values
            parts.append(values)
        velocity, spin = parts
        return velocity - np.cross(spin, where.rotation @ com), spin

    def axes_of(self, item: Item, what: str, where: Frame) -> Array:
        if f"{what}m" in item.entries:
            return self.frames.in_world(self.end(item, f"{what}m")).rotation
        if what == "v":
            return WORLD.rotation
        center = self.own_frame(item, "center_of_mass_marker")
        return where.rotation @ (WORLD if center is None else center).rotation

    def add_marker(self, item: Item) -> None:
        part = self.part_of(item)
        if part not in self.bodies:
            return
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

    # Joints

    def joint_ends(self, item: Item) -> tuple[Marker, Marker]:
        """Return the markers I and J of a joint, which may be given by parts and a place."""
        has_markers = item.entries.keys() & {"i_marker_name", "j_marker_name"}
        has_parts = item.entries.keys() & {"i_part_name", "j_part_name"}
        if has_markers and (has_parts or item.entries.keys() & {"location", "orientation"}):
            raise DiagramError(
                f"`{item.name}` has markers, and parts or a location: one way says where it is."
            )
        if not has_parts:
            return self.ends(item)
        ends = []
        for name in ("i_part_name", "j_part_name"):
            if name not in item.entries:
                raise DiagramError(f"`{item.name}` has no `{name}`.")
            ends.append(self.design.item(item.entries[name], item.name, "part"))
        if ends[0] is ends[1]:
            raise DiagramError(f"`{item.name}` has the part `{ends[0].name}` twice.")
        if "location" not in item.entries:
            raise DiagramError(f"`{item.name}` has parts and no `location`.")
        if item.sub in ("universal", "hooke"):
            raise DiagramError(
                f"`{item.name}` is a {item.sub} joint, which has two axes: give it markers."
            )
        where = self.frames.in_world(item)
        i, j = (
            self.new_marker(self.bodies[part], self.names[item],
                            self.frames.in_world(part).seen(where))
            for part in ends
        )  # fmt: skip
        return i, j

    def add_joint(self, item: Item) -> None:
        name, s = self.names[item], self.system
        if "friction_enabled" in item.entries:
            friction = ("no", "yes", "off", "on", "preload_only")
            if self.option(item, "friction_enabled", friction, "no") not in ("no", "off"):
                raise DiagramError(
                    f"{item.entries['friction_enabled'].place}: `{item.name}` has friction, which "
                    f"is not read: switch it off, and add friction in Python with System.friction."
                )
        i, j = self.joint_ends(item)
        makers: dict[str, Any] = {
            "revolute": s.revolute, "translational": s.prismatic, "cylindrical": s.cylindrical,
            "spherical": s.spherical, "universal": s.universal, "fixed": s.fixed,
            "planar": s.planar_joint, "inline": s.guide, "inplane": s.in_plane,
            "at_point": s.spherical, "atpoint": s.spherical, "perpendicular": s.perpendicular,
        }  # fmt: skip
        if item.sub in makers:
            self.joints[item] = makers[item.sub](name, j, i)
        elif item.sub == "hooke":
            # z is along the shafts; the bars of the cross are y of J and x of I.
            ends = [
                self.new_marker(end.body, f"{end.name}_bar", Frame(end.position, _turn(end, by)))
                for end, by in ((j, 1), (i, 2))
            ]
            self.joints[item] = s.universal(name, *ends)
        else:
            # z of one at right angles to x and y of the other; `orientation` also x to y.
            pairs = [("x", "z"), ("y", "z")]
            pairs += [("x", "y")] if item.sub == "orientation" else []
            for a, b in pairs:
                s.perpendicular(f"{name}_{a}{b}", j, i, axes=(a, b))

    # Motions

    def add_motion(self, item: Item) -> None:
        joint_item = self.find_joint(item)
        joint = self.joints.get(joint_item)
        if joint is None:
            return  # the joint has a problem of its own
        kinds = [coordinate.kind for coordinate in joint.coordinates]
        if joint_item.sub not in ("revolute", "translational", "cylindrical"):
            raise DiagramError(
                f"`{item.name}` moves `{joint_item.name}`, a {joint_item.sub} joint: motions are "
                f"of revolute, translational and cylindrical joints."
            )
        only = {"length": "translational", "angle": "rotational"}[kinds[0]]
        freedom = self.option(
            item,
            "type_of_freedom",
            ("translational", "rotational"),
            only if len(kinds) == 1 else None,
        )
        kind = "length" if freedom == "translational" else "angle"
        if kind not in kinds:
            raise DiagramError(
                f"`{item.name}` is {freedom}, and `{joint_item.name}` is a {joint_item.sub} joint."
            )
        number = kinds.index(kind)
        order = ("displacement", "velocity", "acceleration")
        what = self.option(item, "time_derivative", order, "displacement")
        factor = self.units.length if kind == "length" else 1.0  # functions count in rad
        factor *= self.units.time ** -order.index(what)
        if "function" not in item.entries:
            raise DiagramError(f"`{item.name}` has no `function`.")
        law = self.function(item, "function", factor)
        if what != "displacement":
            start = joint.given_value(number)
            if not isinstance(law, float) or what == "acceleration":
                raise DiagramError(
                    f"{item.entries['function'].place}: `{item.name}` prescribes the {what}"
                    f"{' by a function of time' if what == 'velocity' else ''}: integrate it, and "
                    f"give it as displacement."
                )
            law = f"{start!r} + {law!r}*t"
        self.system.driver(self.names[item], joint, law, coordinate=number)

    def find_joint(self, item: Item) -> Item:
        """Return the joint that a motion moves."""
        if "joint_name" in item.entries:
            return self.design.item(item.entries["joint_name"], item.name, "joint")
        ends = self.end(item, "i_marker_name"), self.end(item, "j_marker_name")
        axis = self.option(item, "axis", ("x", "y", "z", "b1", "b2", "b3"), None)
        for joint in self.joints:
            names = joint.entries.keys() & {"i_marker_name", "j_marker_name"}
            if len(names) == 2 and axis in ("z", "b3"):
                found = self.end(joint, "i_marker_name"), self.end(joint, "j_marker_name")
                if found == ends and ("type_of_freedom" not in item.entries):
                    freedom = "rotational" if axis == "b3" else "translational"
                    if joint.sub == "cylindrical" or (joint.sub == "revolute") == (axis == "b3"):
                        self.check_only(item, freedom, joint)
                        return joint
        raise DiagramError(
            f"`{item.name}` moves two markers along or about `{axis}`: motions are read on joints, "
            f"with `joint_name`, or between the markers I and J of one, along z or about b3."
        )

    def check_only(self, item: Item, freedom: str, joint: Item) -> None:
        """Refuse a motion between markers of a joint with two coordinates."""
        if joint.sub == "cylindrical":
            raise DiagramError(
                f"`{item.name}` moves the markers of `{joint.name}`, a cylindrical joint: write "
                f"`joint_name = {joint.name}` and `type_of_freedom = {freedom}` instead."
            )


def _turn(marker: Marker, by: int) -> Array:
    """Return the axes of a marker with y (1) or x (2) in the place of z."""
    return np.roll(marker.rotation, by, axis=1)
