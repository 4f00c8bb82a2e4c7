"""What a mechanism can show: the catalog of its outputs, and their records in the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from .... import _contract as contract
from ....errors import DiagramError, name_list, suggest
from ...core._ports import Kind, Port
from ..elements._element import AbstractElement, Output
from ..elements._named_coordinates import frame_of
from ..joints._joint import ANGLE, Joint
from ..system._bodies import Body
from ..system._orientation import sequence_axes
from ._initial import coordinate_name
from ._tables import Tables, nearest_first

if TYPE_CHECKING:
    from ..system._system import System

_MARKER = {
    "position": (contract.MB_OUT_POSITION, 3, "m", "position of {} in world axes"),
    "rotation": (
        contract.MB_OUT_QUATERNION,
        4,
        None,
        "Euler parameters e0, e1, e2, e3 of {} against the world",
    ),
    "velocity": (contract.MB_OUT_VELOCITY, 3, "m/s", "velocity of {} in world axes"),
    "angular_velocity": (
        contract.MB_OUT_ANGULAR_VELOCITY,
        3,
        "rad/s",
        "angular velocity of {} in world axes",
    ),
    "acceleration": (contract.MB_OUT_ACCELERATION, 3, "m/s2", "acceleration of {} in world axes"),
    "angular_acceleration": (
        contract.MB_OUT_ANGULAR_ACCELERATION,
        3,
        "rad/s2",
        "angular acceleration of {} in world axes",
    ),
}
_BODY = {
    **{axis: f"{axis} of the frame of {{}}" for axis in "xyz"},
    **{f"e{n}": f"Euler parameter e{n} of {{}}, of continuous sign" for n in range(4)},
}
_LISTED = ("roll_pitch_yaw", "rotation_vector", "angles_ZXZ", "angles_ZYX")
"""Angles in the list of outputs; the other sequences exist for bodies and markers as well."""
_SYSTEM: dict[str, tuple[int, int, str | None, str]] = {
    "kinetic_energy": (contract.MB_OUT_KINETIC, 0, "J", "of all bodies"),
    "potential_energy": (
        contract.MB_OUT_POTENTIAL,
        0,
        "J",
        "of weight, springs, stops, bushings and contacts",
    ),
    "weight_energy": (
        contract.MB_OUT_WEIGHT_ENERGY,
        0,
        "J",
        "of weight, a part of potential_energy",
    ),
    "elastic_energy": (
        contract.MB_OUT_ENERGY,
        contract.MB_ENERGY_ELASTIC,
        "J",
        "of springs and bushings, a part of potential_energy",
    ),
    "contact_energy": (
        contract.MB_OUT_ENERGY,
        contract.MB_ENERGY_CONTACT,
        "J",
        "of stops, and of contacts in clearances and bearings, a part of potential_energy",
    ),
    "closure": (contract.MB_OUT_CLOSURE, 0, None, "largest error of a joint, in m or rad"),
    "closure_rate": (
        contract.MB_OUT_CLOSURE_RATE,
        0,
        None,
        "largest rate of an error of a joint, in m/s or rad/s",
    ),
    "iterations": (contract.MB_OUT_ITERATIONS, 0, None, "for the multipliers"),
    "residual": (contract.MB_OUT_RESIDUAL, 0, None, "last change of an acceleration"),
    "converged": (
        contract.MB_OUT_CONVERGED,
        0,
        None,
        "1, or 0 where the last step or its multipliers are not to be trusted",
    ),
    "power_in": (
        contract.MB_OUT_POWER,
        0,
        "W",
        "of drivers, loads and actuators that put power in",
    ),
    "power_loss": (
        contract.MB_OUT_POWER,
        1,
        "W",
        "what friction, oil films and contacts turn into heat",
    ),
    "efficiency": (
        contract.MB_OUT_POWER,
        2,
        None,
        "1 - power_loss / power_in, not below 0; 1 without losses",
    ),
}
_NEEDS_ACCELERATION = {
    contract.MB_OUT_ACCELERATION,
    contract.MB_OUT_ANGULAR_ACCELERATION,
    contract.MB_OUT_JOINT_ACCELERATION,
    contract.MB_OUT_REACTION_FORCE,
    contract.MB_OUT_REACTION_TORQUE,
    contract.MB_OUT_DRIVER_EFFORT,
    contract.MB_OUT_POWER,
    contract.MB_OUT_DRIVER_POWER,
}
_OF_ITERATIONS = {contract.MB_OUT_ITERATIONS, contract.MB_OUT_RESIDUAL, contract.MB_OUT_CONVERGED}
_OF_ALL_MARKERS = {
    contract.MB_OUT_POTENTIAL,
    contract.MB_OUT_CLOSURE,
    contract.MB_OUT_CLOSURE_RATE,
    contract.MB_OUT_ENERGY,
}


@dataclass(frozen=True, slots=True)
class Shown:
    """An output in the kernel: its record, its port, and its inputs with direct feedthrough."""

    record: tuple[int, int, int]
    port: Port
    inputs: set[str]


def list_outputs(system: System) -> list[str]:
    """Return every path that can be an output of the mechanism."""
    found = list(_SYSTEM)
    own = (*_MARKER, *_LISTED) if not system.planar else _MARKER
    for body in system.bodies:
        found += [f"{body.name}.{what}{rate}" for rate in ("", "_rate") for what in _BODY]
        found += [f"{body.name}.{what}" for what in own]
        found += [f"{body.name}.angle"] if system.planar else []
        for marker in body.markers.values():
            found += [f"{marker.path}.{what}" for what in _MARKER]
    for marker in system.ground.markers.values():
        found += [f"{marker.path}.{what}" for what in _MARKER if marker.motion]
    for joint in system.joints:
        found += [f"{joint.name}.{what}" for what in _joint_outputs(joint)]
    for part in (*system.constraints, *system.elements):
        found += [f"{part.name}.{what}" for what in part.outputs()]
    return found


def _orientations(system: System) -> dict[str, tuple[int, str]]:
    """Return outputs that are angles of a frame in the world: the sequence in C, and a text."""
    if system.planar:
        return {}
    found = {
        "roll_pitch_yaw": (_sequence("xyz"), "angles of {} about x, y and z of the world"),
        "rotation_vector": (contract.MB_SEQUENCE_VECTOR, "axis of {} times its angle, world axes"),
    }
    for first, second, third in product("XYZ", repeat=3):
        name = first + second + third
        if sequence_axes(name):
            found[f"angles_{name}"] = (_sequence(name), f"angles of {{}}, sequence {name}")
            fixed = name.lower()
            found[f"angles_{fixed}"] = (_sequence(fixed), f"angles of {{}}, fixed axes {fixed}")
    return found


def _sequence(name: str) -> int:
    axes = sequence_axes(name)
    assert axes is not None
    i, j, k = axes if name.isupper() else reversed(axes)
    return i + 3 * j + 9 * k + (0 if name.isupper() else contract.MB_SEQUENCE_REVERSED)


def _joint_outputs(joint: Joint) -> Iterator[str]:
    for number in range(len(joint.coordinates)):
        name = coordinate_name(joint, number)
        yield name
        yield from (f"{name}_{what}" for what in ("speed", "acceleration"))
    if len(joint.coordinates) == 1:
        yield from ("speed", "acceleration")
    yield from ("force", "torque", "closure", "closure_rate")


def find_record(tables: Tables, path: str) -> tuple[tuple[int, int, int], set[str]]:
    """Return the record of an output, and its inputs with direct feedthrough."""
    shown = Catalog(tables).find(path)
    return shown.record, shown.inputs


class Catalog:
    """Finds outputs by their paths.

    Parameters
    ----------
    tables
        Of the mechanism; its elements have been written.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.system = tables.system

    def find(self, path: str) -> Shown:
        """Return an output; the error for an unknown path lists those that are near."""
        if path in _SYSTEM:
            kind, which, unit, doc = _SYSTEM[path]
            return self._shown(path, kind, 0, which, 1, unit, doc, self._inputs(kind, 0, 0))
        owner, _, what = path.rpartition(".")
        for find in (self._of_marker, self._of_body, self._of_joint, self._of_element):
            found = find(path, owner, what)
            if found is not None:
                return found
        names = list_outputs(self.system)
        raise DiagramError(
            f"there is no output `{path}` of `{self.system.name}`.{suggest(path, names)} "
            f"Outputs, the nearest first: {name_list(nearest_first(path, names))}. "
            f"print(system.outputs()) lists all of them with units."
        )

    def _shown(
        self,
        path: str,
        kind: int,
        index: int,
        extra: int,
        width: int,
        unit: str | None,
        doc: str,
        inputs: set[str],
        signal: Kind = "real",
    ) -> Shown:
        port = Port(path, width=width, unit=unit, kind=signal, doc=doc)
        return Shown((kind, index, extra), port, inputs)

    def _inputs(self, kind: int, index: int, extra: int) -> set[str]:
        """Return the inputs that an output follows without delay: those that move its markers."""
        tables = self.tables
        if kind in _NEEDS_ACCELERATION or (kind in _OF_ITERATIONS and not tables.implicit):
            return set(tables.input_names)
        if kind in (contract.MB_OUT_POSITION, contract.MB_OUT_VELOCITY):
            return tables.marker_inputs([index])
        if kind in (contract.MB_OUT_COORDINATE, contract.MB_OUT_SPEED) and extra == 0:
            return tables.marker_inputs(tables.measures[index][1:3])
        if kind in _OF_ALL_MARKERS:
            return tables.marker_inputs(range(tables.marker_count))
        return set()

    def _of_marker(self, path: str, owner: str, what: str) -> Shown | None:
        angles = _orientations(self.system).get(what)
        if what == "angle" and self.system.planar:
            return self._of_planar_angle(path, owner)
        if angles is None and what not in _MARKER:
            return None
        if angles is None:
            kind, width, unit, doc = _MARKER[what]
        else:
            kind, width, unit, doc = contract.MB_OUT_ANGLES, 3, "rad", angles[1]
        for body in (*self.system.bodies, self.system.ground):
            number = None
            if owner == body.name and not body.is_ground:
                number = self.tables.body_frame(body)
            for marker in body.markers.values():
                if owner == marker.path:
                    number = self.tables.marker(marker)
            if number is not None:
                inputs = self._inputs(kind, number, 0)
                extra = 0 if angles is None else angles[0]
                text = doc.format(owner)
                return self._shown(path, kind, number, extra, width, unit, text, inputs)
        return None

    def _of_body(self, path: str, owner: str, what: str) -> Shown | None:
        body = next((body for body in self.system.bodies if body.name == owner), None)
        name = what.removesuffix("_rate")
        if body is None or name not in _BODY:
            return None
        rate = name != what
        kind = contract.MB_OUT_BODY_RATE if rate else contract.MB_OUT_BODY_COORDINATE
        unit = ("m/s" if rate else "m") if name in "xyz" else "1/s" if rate else "1"
        doc = ("rate of " if rate else "") + _BODY[name].format(owner)
        marker = self.tables.body_frame(body)
        inputs = self._inputs(kind, marker, 0)
        return self._shown(path, kind, marker, list(_BODY).index(name), 1, unit, doc, inputs)

    def _of_planar_angle(self, path: str, owner: str) -> Shown | None:
        """Return the angle of a body or marker in the world, over all turns."""
        part, _, below = owner.partition(".")
        body = self.system.parts.get(part)
        marker = None
        if isinstance(body, Body) and not body.is_ground:
            marker = body.markers.get(below) if below else frame_of(body)
        if marker is None:
            return None
        i, j = self.tables.body_frame(self.system.ground), self.tables.marker(marker)
        number = self.tables.measure(i, j, ANGLE)
        doc = f"angle of {owner} in the world"
        return self._shown(path, contract.MB_OUT_COORDINATE, number, 0, 1, "rad", doc, set())

    def _of_joint(self, path: str, owner: str, what: str) -> Shown | None:
        joint = next((joint for joint in self.system.joints if joint.name == owner), None)
        if joint is None:
            return None
        if what in ("force", "torque"):
            index, marker = self.tables.reaction(joint)
            force = what == "force"
            kind = contract.MB_OUT_REACTION_FORCE if force else contract.MB_OUT_REACTION_TORQUE
            doc = f"{what} of the ideal joint {joint.name} on its second body, in world axes"
            inputs = self._inputs(kind, index, marker)
            return self._shown(path, kind, index, marker, 3, "N" if force else "N.m", doc, inputs)
        if what in ("closure", "closure_rate"):
            index, _ = self.tables.reaction(joint)
            rate = what == "closure_rate"
            kind = contract.MB_OUT_JOINT_CLOSURE_RATE if rate else contract.MB_OUT_JOINT_CLOSURE
            doc = f"largest {'rate of an ' if rate else ''}error of the equations of {joint.name}"
            doc += ", in m/s or rad/s" if rate else ", in m or rad"
            ends = (joint.first, joint.frame_i), (joint.second, joint.frame_j)
            markers = [self.tables.marker(*end) for end in ends]
            closes = joint.name not in self.tables.tree.tree_joints
            inputs = self.tables.marker_inputs(markers) if closes else set()
            return self._shown(path, kind, index, 0, 1, None, doc, inputs)
        return self._of_coordinate(path, joint, what)

    def _of_coordinate(self, path: str, joint: Joint, what: str) -> Shown | None:
        kinds = (
            contract.MB_OUT_COORDINATE,
            contract.MB_OUT_SPEED,
            contract.MB_OUT_JOINT_ACCELERATION,
        )
        docs = ("", "rate of the ", "second derivative of the ")
        for number, coordinate in enumerate(joint.coordinates):
            name = coordinate_name(joint, number)
            options = {name: 0, f"{name}_speed": 1, f"{name}_acceleration": 2}
            if len(joint.coordinates) == 1:
                options |= {"speed": 1, "acceleration": 2}
            if what not in options:
                continue
            order = options[what]
            at = self.tables.coordinate(joint, number)
            unit = coordinate.unit + ("", "/s", "/s2")[order]
            index = -1 - at.q if at.sign == 0 else at.q if order == 0 else at.v
            doc = f"{docs[order]}{name.replace('_', ' ')} of joint {joint.name}"
            inputs = self._inputs(kinds[order], index, at.sign)
            return self._shown(path, kinds[order], index, at.sign, 1, unit, doc, inputs)
        return None

    def _of_element(self, path: str, owner: str, what: str) -> Shown | None:
        parts: tuple[AbstractElement, ...] = (*self.system.elements, *self.system.constraints)
        part = next((part for part in parts if part.name == owner), None)
        output = None if part is None else part.outputs().get(what)
        if output is None:
            return None
        kind, index = self._record_of(owner, output)
        named = output.doc if output.of == "effort" else f"{output.doc}, in {owner}"
        return self._shown(
            path, kind, index, output.number, output.width, output.unit, named,
            self._element_inputs(owner, output), output.kind,
        )  # fmt: skip

    def _record_of(self, owner: str, output: Output) -> tuple[int, int]:
        tables = self.tables
        if output.of == "effort":
            return contract.MB_OUT_DRIVER_EFFORT, tables.row_of[owner]
        if owner not in tables.force_number:
            return contract.MB_OUT_DRIVER_POWER, tables.row_of[owner]
        kinds = {
            "element": contract.MB_OUT_ELEMENT,
            "power": contract.MB_OUT_ELEMENT_POWER,
            "energy": contract.MB_OUT_ELEMENT_ENERGY,
        }
        return kinds[output.of], tables.force_number[owner]

    def _element_inputs(self, owner: str, output: Output) -> set[str]:
        tables = self.tables
        if output.follows == "solution":
            return set(tables.input_names)
        moved = tables.marker_inputs(tables.element_markers(owner))
        return moved | tables.law_inputs(tables.laws_of[owner] if output.follows == "laws" else ())
