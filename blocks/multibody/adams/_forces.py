"""Springs, bushings, forces and torques of an Adams View command file.

A positive force between markers pushes them apart; a positive torque turns I about z of J.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....errors import DiagramError
from ..system._bodies import Body
from ..system._rotations import Array
from ._builder import PARALLEL, Builder
from ._frames import Frame
from ._function import Measures
from ._items import Item, as_reference
from ._joints import find_angle

SPRING_DEFINITION = ".mdi.forces.spring"
"""The assembly that the spring button of Adams View makes."""

Law = float | str


def add_force(b: Builder, item: Item) -> None:
    """Add a force element of the file to the system."""
    adders = {
        "translational_spring_damper": _add_spring,
        "rotational_spring_damper": _add_torsional_spring,
        "bushing": _add_bushing,
        "single_component_force": _add_single,
        "force_vector": _add_vectors,
        "torque_vector": _add_vectors,
        "general_force": _add_vectors,
    }
    adders[item.sub](b, item)


def add_spring_assembly(b: Builder, item: Item) -> None:
    """Add a spring as the spring button of Adams View makes it: an assembly with variables."""
    entry = item.entries.get("definition_name")
    definition = as_reference(entry.values[0]) if entry is not None else None
    if definition is None or definition.casefold() != SPRING_DEFINITION:
        raise DiagramError(
            f"`{item.name}` is an assembly of the definition `{definition}`, which is not read: "
            f".MDI.Forces.spring is. Add its parts in Python."
        )
    ends = []
    for name in ("i_marker", "j_marker"):
        if name not in item.entries:
            raise DiagramError(f"`{item.name}` has no variable `{name}`.")
        ends.append(b.markers[b.design.item(item.entries[name], item.name, "marker")])
    b.check_two(item, *ends)
    coefficients = []
    for what, factor in (
        ("stiffness", b.units.factor(force=1, length=-1)),
        ("damping", b.units.factor(force=1, length=-1, time=1)),
    ):
        mode = b.option(item, f"{what}_mode", ("linear", "none", "spline"), "linear")
        if mode == "spline":
            raise DiagramError(f"{item.entries[f'{what}_mode'].place}: `{item.name}` has a spline.")
        value = b.scalar(item, f"{what}_coefficient", factor, 0.0) if mode == "linear" else 0.0
        coefficients.append(value)
    if b.scalar(item, "preload", b.units.force, 0.0) != 0.0:
        raise DiagramError(
            f"{item.entries['preload'].place}: `{item.name}` has a preload: write it as `force "
            f"create element_like translational_spring_damper`, where its sign is documented."
        )
    mode_entry = item.entries.get("free_length_mode")
    mode = "design_length" if mode_entry is None else b.design.text(mode_entry, item.name)
    if mode.casefold() == "design_length":
        length = float(np.linalg.norm(ends[0].world_position - ends[1].world_position))
    else:
        length = b.scalar(item, "free_length", b.units.length)
    b.system.spring(
        b.names[item], *ends, stiffness=coefficients[0], damping=coefficients[1],
        free_length=length,
    )  # fmt: skip


def _add_spring(b: Builder, item: Item) -> None:
    """F = preload - damping ṙ - stiffness (r - displacement_at_preload), positive apart."""
    stiffness = b.scalar(item, "stiffness", b.units.factor(force=1, length=-1), 0.0)
    damping = b.scalar(item, "damping", b.units.factor(force=1, length=-1, time=1), 0.0)
    preload = b.scalar(item, "preload", b.units.force, 0.0)
    length = _reference(b, item, stiffness, b.units.length)
    i, j = b.ends(item)
    b.system.spring(
        b.names[item], i, j, stiffness=stiffness, damping=damping, free_length=length,
        force=-preload + 0.0,
    )  # fmt: skip


def _reference(b: Builder, item: Item, stiffness: float, factor: float) -> float:
    """Return ``displacement_at_preload``, without which a stiffness means nothing."""
    name = "displacement_at_preload"
    if stiffness != 0.0 and name not in item.entries:
        raise DiagramError(
            f"`{item.name}` has a stiffness and no `{name}`: give the length or angle at which its "
            f"force is the preload."
        )
    return b.scalar(item, name, factor, 0.0)


def _add_torsional_spring(b: Builder, item: Item) -> None:
    """T = preload - damping ȧ - stiffness (a - displacement_at_preload), on I about z of J."""
    factor = b.units.factor(force=1, length=1, angle=-1)
    stiffness = b.scalar(item, "stiffness", factor, 0.0)
    damping = b.scalar(item, "damping", factor * b.units.time, 0.0)
    preload = b.scalar(item, "preload", b.units.factor(force=1, length=1), 0.0)
    reference = _reference(b, item, stiffness, b.units.angle)
    angle = find_angle(b, item)
    if angle is None:
        raise DiagramError(
            f"`{item.name}` acts about z of its markers, between parts without a revolute or "
            f"cylindrical joint about that axis: the angle is then not defined here. Use a bushing."
        )
    b.system.torsional_spring(
        b.names[item], angle.joint, stiffness=stiffness, damping=damping,
        free_angle=angle.sign * (reference - angle.offset), torque=-angle.sign * preload + 0.0,
        coordinate=angle.number,
    )  # fmt: skip


def _add_bushing(b: Builder, item: Item) -> None:
    """The force on I in axes of J is -stiffness x - damping ẋ, with x of I as seen from J."""
    for name in ("force_preload", "torque_preload"):
        if any(b.triple(item, name, 1.0)):
            raise DiagramError(
                f"{item.entries[name].place}: `{item.name}` has a preload, which bushings here "
                f"do not have: add a force in Python."
            )
    along = b.units.factor(force=1, length=-1)
    about = b.units.factor(force=1, length=1, angle=-1)
    i, j = b.ends(item)
    b.system.bushing(
        b.names[item], j, i,
        stiffness=[*b.triple(item, "stiffness", along), *b.triple(item, "tstiffness", about)],
        damping=[*b.triple(item, "damping", along * b.units.time),
                 *b.triple(item, "tdamping", about * b.units.time)],
    )  # fmt: skip


def _add_single(b: Builder, item: Item) -> None:
    freedom = b.option(item, "type_of_freedom", ("translational", "rotational"), None)
    alone = b.option(item, "action_only", ("on", "off", "yes", "no"), "off") in ("on", "yes")
    if "function" not in item.entries:
        raise DiagramError(f"`{item.name}` has no `function`.")
    if alone:
        _add_action(b, item, freedom)
    elif freedom == "translational":
        i, j = b.ends(item)
        speed = b.units.factor(length=1, time=-1)
        measures = _between(b, item, {
            "dm": f"(l/{b.units.length!r})", "vr": f"(v/{speed!r})",
        })  # fmt: skip
        law = b.function(item, "function", b.units.force, measures)
        b.system.spring(b.names[item], i, j, force=_negate(law))
    else:
        _add_torque(b, item)


def _between(b: Builder, item: Item, measures: dict[str, str]) -> Measures:
    """Return measures of the markers of an element, in both orders."""
    i, j = b.end(item, "i_marker_name"), b.end(item, "j_marker_name")
    return {(name, *pair): text for name, text in measures.items() for pair in ((i, j), (j, i))}


def _add_action(b: Builder, item: Item, freedom: str) -> None:
    """Add a force at I along z of J, or a torque about it, without reaction on J."""
    effort = "force" if freedom == "translational" else "torque"
    factor = b.units.force * (b.units.length if effort == "torque" else 1.0)
    law = b.function(item, "function", factor)
    on = b.markers[b.end(item, "i_marker_name")]
    along = b.end(item, "j_marker_name")
    part = b.part_of(along)
    add = getattr(b.system, effort)
    if on.body.is_ground:
        return
    if b.bodies[part] is on.body:
        frame = Frame(on.position, b.frames.on_part(along).rotation)
        add(b.names[item], b.new_marker(on.body, b.names[item], frame), law)
    elif part.sub == "ground":
        direction = b.frames.in_world(along).rotation[:, 2]
        add(b.names[item], on, [_scale(law, one) for one in direction], frame="world")
    else:
        raise DiagramError(
            f"`{item.name}` acts along z of `{along.name}`, on a third part: J is on the ground or "
            f"on the part of I."
        )


def _add_torque(b: Builder, item: Item) -> None:
    """Add a torque about z of J on I, and its reaction."""
    i, j = b.ends(item)
    factor = b.units.factor(force=1, length=1)
    angle = find_angle(b, item)
    if angle is None:
        law = b.function(item, "function", factor)
        apart = float(np.linalg.norm(np.cross(i.world_rotation[:, 2], j.world_rotation[:, 2])))
        if apart > PARALLEL or i.world_rotation[:, 2] @ j.world_rotation[:, 2] < 0:
            raise DiagramError(
                f"`{item.name}` is a torque with reaction, and z of its markers have different "
                f"directions."
            )
        for marker, value, name in ((i, law, ""), (j, _negate(law), "_reaction")):
            if not marker.body.is_ground:
                b.system.torque(b.names[item] + name, marker, value)
        return
    q = f"({angle.sign!r}*q + {angle.offset!r})"
    rate = b.units.factor(time=-1)
    law = b.function(item, "function", factor, _angles(b, item, q, f"({angle.sign / rate!r}*v)"))
    law = law if angle.sign > 0 else _negate(law)
    if isinstance(law, str) and _is_of_motion(law):
        b.system.torsional_spring(
            b.names[item], angle.joint, torque=_negate(law), coordinate=angle.number
        )
    else:
        b.system.torque(b.names[item], angle.joint, law, coordinate=angle.number)


def _angles(b: Builder, item: Item, angle: str, rate: str) -> Measures:
    """Return AZ and WZ of I as seen from J; of J as seen from I they have the other sign."""
    i, j = b.end(item, "i_marker_name"), b.end(item, "j_marker_name")
    return {
        ("az", i, j): angle, ("wz", i, j): rate,
        ("az", j, i): f"(-{angle})", ("wz", j, i): f"(-{rate})",
    }  # fmt: skip


def _is_of_motion(law: str) -> bool:
    from ...core.formula._formula import read_formula

    return any(one.name in ("q", "v") for one in read_formula(law, ("t", "q", "v")).variables())


def _add_vectors(b: Builder, item: Item) -> None:
    """Add a force at I, a torque on I, or both, with components in axes of the reference."""
    on = b.markers[b.end(item, "i_marker_name")]
    reaction = _find_reaction(b, item)
    name = "ref_marker_name" if "ref_marker_name" in item.entries else "i_marker_name"
    reference = b.end(item, name)
    part = b.part_of(reference)
    if reaction is on.body:
        raise DiagramError(f"`{item.name}` acts and reacts on one part.")
    if part.sub != "ground" and b.bodies[part] is not on.body:
        raise DiagramError(
            f"`{item.name}` has components in axes of `{reference.name}`, on a third part: it is "
            f"on the ground or on the part of I."
        )
    in_world = part.sub == "ground"
    rotation = b.frames.in_world(reference).rotation
    rotation = rotation if in_world else b.frames.on_part(reference).rotation
    made = 0
    for effort, factor in (
        ("force", b.units.force),
        ("torque", b.units.factor(force=1, length=1)),
    ):
        names = [f"{axis}_{effort}_function" for axis in "xyz"]
        laws = [b.function(item, one, factor) for one in names]
        if not any(laws):
            continue
        if reaction is not None and (effort == "force" or not in_world):
            raise DiagramError(
                f"`{item.name}` has a reaction on `{reaction.name}` at a point that moves on it, "
                f"or in axes of another part: only a reaction on the ground is read."
            )
        title = b.names[item] + ("_torque" if made else "")
        add = getattr(b.system, effort)
        frame = "world" if in_world else "body"
        values = _turn(rotation, laws)
        if not on.body.is_ground:
            add(title, on, values, frame=frame)
            made += 1
        if reaction is not None:
            other = b.new_marker(reaction, title, Frame(np.zeros(3), np.eye(3)))
            add(f"{title}_reaction", other, [_negate(one) for one in values], frame=frame)


def _find_reaction(b: Builder, item: Item) -> Body | None:
    """Return the body on which the reaction acts; None if it is the ground."""
    parts = []
    if "j_part_name" in item.entries:
        parts.append(b.design.item(item.entries["j_part_name"], item.name, "part"))
    if "j_floating_marker_name" in item.entries:
        entry = item.entries["j_floating_marker_name"]
        marker = b.design.item(entry, item.name, "floating_marker", "marker")
        parts.append(b.part_of(marker))
    if not parts:
        raise DiagramError(f"`{item.name}` has neither `j_floating_marker_name` nor `j_part_name`.")
    body = b.bodies[parts[0]]
    return None if body.is_ground else body


def _turn(rotation: Array, laws: Sequence[Law]) -> list[Law]:
    """Return the components of a vector in outer axes."""
    made: list[Law] = []
    for row in rotation:
        terms = [_scale(law, one) for one, law in zip(row, laws, strict=True)]
        constant = sum(term for term in terms if isinstance(term, float))
        texts = [term for term in terms if isinstance(term, str)]
        if texts and constant != 0.0:
            texts.append(f"({constant!r})")
        made.append(" + ".join(texts) if texts else float(constant))
    return made


def _scale(law: Law, factor: float) -> Law:
    if factor == 0.0:
        return 0.0
    if isinstance(law, float):
        return law * float(factor)
    return law if factor == 1.0 else f"({float(factor)!r})*({law})"


def _negate(law: Law) -> Law:
    return -law + 0.0 if isinstance(law, float) else f"-({law})"
