"""Parts of an Adams View command file: mass, inertia, place and initial velocity of bodies."""

from __future__ import annotations

import networkx as nx
import numpy as np

from ....errors import DiagramError
from ..system._rotations import Array
from ._builder import Builder
from ._frames import WORLD, Frame
from ._items import Item


def find_held(b: Builder, ties: list[Item]) -> set[Item]:
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
                    found = b.design.item(entry, tie.name, "marker", "part")
                except DiagramError:
                    continue  # reported where the tie is made
                ends.append(found if found.kind == "part" else b.part_of(found))
        loads = tie.sub in ("force_vector", "torque_vector", "general_force")
        loads = loads or tie.sub == "single_component_force"
        if len(ends) == 2 and not loads:
            graph.add_edge(*ends)
    ground = next(item for item in b.bodies)
    return set(nx.node_connected_component(graph, ground)) if ground in graph else set()


def check_ground(b: Builder, item: Item) -> None:
    """Refuse a ground with another name or another place."""
    if item.sub != "ground":
        if b.option(item, "ground_part", ("no", "yes", "false", "true"), "no") in (
            "yes",
            "true",
        ):
            raise DiagramError(f"`{item.name}` is made the ground: call it `ground`.")
        return
    for name in ("location", "orientation"):
        if any(b.triple(item, name, 1.0)):
            raise DiagramError(
                f"{item.entries[name].place}: the `{name}` of the ground is that of the world."
            )


def add_body(b: Builder, item: Item, free: bool) -> None:
    """Add the body of a part."""
    where = b.frames.in_world(item)
    mass, com, inertia = _read_mass(b, item, where)
    velocity, spin = _read_velocity(b, item, where, com)
    b.bodies[item] = b.system.body(
        b.names[item],
        mass=mass,
        com=com,
        inertia=inertia,
        position=where.position,
        rotation=where.rotation,
        velocity=velocity,
        angular_velocity=spin,
        free=free,
        allow_nonphysical=b.allow_nonphysical,
    )


def _own_frame(b: Builder, item: Item, name: str) -> Frame | None:
    """Return a marker's frame on the part that names it."""
    if name not in item.entries:
        return None
    marker = b.end(item, name)
    if b.part_of(marker) is not item:
        raise DiagramError(
            f"{item.entries[name].place}: `{name}` of `{item.name}` is `{marker.name}`, which "
            f"is on another part."
        )
    return b.frames.on_part(marker)


def _read_mass(b: Builder, item: Item, where: Frame) -> tuple[float, Array, Array]:
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
    mass = b.scalar(item, "mass", b.units.mass, 0.0)
    center = _own_frame(b, item, "center_of_mass_marker")
    axes = _own_frame(b, item, "inertia_marker") or center
    if (mass != 0.0 or given) and center is None:
        raise DiagramError(f"`{item.name}` has a mass and no `center_of_mass_marker`.")
    if center is None or axes is None:
        return mass, WORLD.position, np.zeros((3, 3))
    factor = b.units.factor(mass=1, length=2)
    xx, yy, zz, xy, yz, zx, xz = (b.scalar(item, name, factor, 0.0) for name in names)
    if "izx" in given and "ixz" in given:
        raise DiagramError(f"`{item.name}` has `izx` and `ixz`: they are the same.")
    zx += xz
    tensor = np.array([[xx, -xy, -zx], [-xy, yy, -yz], [-zx, -yz, zz]])
    turned = axes.rotation @ tensor @ axes.rotation.T
    if np.array_equal(axes.rotation, np.eye(3)):
        turned = tensor
    d = center.position - axes.position
    return mass, center.position, turned - mass * (d @ d * np.eye(3) - np.outer(d, d))


def _read_velocity(b: Builder, item: Item, where: Frame, com: Array) -> tuple[Array, Array]:
    """Return velocity of the part's origin and angular velocity, in world axes.

    vx … are of the center of mass in axes of the ground, or of the marker vm; wx … in axes of
    the center-of-mass marker, or of the marker wm. What is not set is found by assembly.
    """
    parts = []
    for what, factor in (
        ("v", b.units.factor(length=1, time=-1)),
        ("w", b.units.factor(angle=1, time=-1)),
    ):
        names = [what + axis for axis in "xyz"]
        values = np.array([
            0.0 if f"no_{name}" in item.entries else b.scalar(item, name, factor, 0.0)
            for name in names
        ])  # fmt: skip
        if values.any():
            values = _axes_of(b, item, what, where) @ values
        parts.append(values)
    velocity, spin = parts
    return velocity - np.cross(spin, where.rotation @ com), spin


def _axes_of(b: Builder, item: Item, what: str, where: Frame) -> Array:
    if f"{what}m" in item.entries:
        return b.frames.in_world(b.end(item, f"{what}m")).rotation
    if what == "v":
        return WORLD.rotation
    center = _own_frame(b, item, "center_of_mass_marker")
    return where.rotation @ (WORLD if center is None else center).rotation
