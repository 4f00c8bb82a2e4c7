"""A tree of joints as the blocks of this folder evaluate it: which mechanisms, and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

from .... import _contract as contract
from ....errors import DiagramError, name_list, suggest
from ...core._block import NativeBlock
from ...core._ports import Parameter, Port
from ..analysis._prescribed import coordinate_paths
from ..joints._joint import BALL, Joint
from ..plant._outputs import find_record
from ..plant._tables import Tables
from ..system._bodies import Body, Marker

if TYPE_CHECKING:
    from ..system._system import System

_MEMORYLESS = {
    contract.MB_FORCE, contract.MB_TORQUE, contract.MB_POINT_FORCE, contract.MB_SPRING,
    contract.MB_BUSHING, contract.MB_JOINT_SPRING, contract.MB_FRICTION, contract.MB_END_STOP,
    contract.MB_JOINT_EFFORT,
}  # fmt: skip
"""Elements whose load is a function of time, coordinates and speeds."""


class AbstractTreeModel(NativeBlock):
    """Base of the blocks that evaluate a mechanism at the coordinates of their inputs.

    Parameters
    ----------
    system
        A tree of joints that turn and slide, which hangs on the ground.
    coordinates
        Paths of all joint coordinates, in the order of the elements of vectors.
    elements
        Whether springs, friction and other loads of the mechanism count, or only its bodies.
    markers
        Paths of markers or bodies that the block refers to.
    vectors
        The vector inputs.
    outputs
        The outputs.
    weight
        Whether gravity acts; of a block without accelerations.
    independent
        Pairs of an output and a vector on which it does not depend.
    """

    memory_holds = True

    def __init__(
        self,
        system: System,
        coordinates: Sequence[str] | None,
        vectors: Sequence[str],
        outputs: Sequence[str],
        *,
        elements: bool = False,
        markers: Sequence[str] = (),
        weight: bool = False,
        independent: Sequence[tuple[str, str]] = (),
    ) -> None:
        system.validate()
        name = type(self).__name__
        order = _read_order(system, coordinates)
        _check_tree(name, system, elements)
        stripped = copy(system)
        if not elements:
            of = {id(part) for part in system.elements}
            stripped._parts = {k: v for k, v in system.parts.items() if id(v) not in of}
        tables = Tables(stripped, [], False, 1, None)
        places = [tables.coordinate(joint, number) for joint, number in order.values()]
        if tables.tree.nv != len(places):
            raise DiagramError(
                f"{name} is for a tree of joints that hangs on the ground, and "
                f"`{system.name}` has {tables.tree.nv} degrees of freedom in "
                f"{len(places)} joint coordinates: tie each body to the ground or to another one "
                f"by a joint that turns or slides."
            )
        used = [_find_marker(name, stripped, path) for path in markers]
        numbers = [
            tables.body_frame(item) if isinstance(item, Body) else tables.marker(item)
            for item in used
        ]
        integers = [len(places), len(numbers), int(weight)]
        for place in places:
            integers += [place.q, place.v, place.sign]
        integers += [*numbers, *tables.write(list, lambda path: find_record(tables, path))]
        kinds: set[str] = {joint.coordinates[number].kind for joint, number in order.values()}
        ports = _ports(len(places), 3 if system.planar else 6, len(numbers), kinds)
        inputs = [*tables.input_ports, *(ports[vector] for vector in vectors)]
        super().__init__(
            inputs=inputs,
            outputs=[ports[output] for output in outputs],
            parameters=[_without_start(item) for item in tables.parameters],
            feedthrough=[
                (output, port.name)
                for output in outputs
                for port in inputs
                if (output, port.name) not in independent
            ],
            integers=integers,
        )
        self.system = system
        self.coordinates = tuple(order)
        """Paths of the joint coordinates, in the order of the elements of vectors."""


def _ports(count: int, axes: int, markers: int, kinds: set[str]) -> dict[str, Port]:
    """Return the ports that blocks may have; with units if all coordinates have the same."""
    unit = {"angle": "rad", "length": "m"}[min(kinds)] if len(kinds) == 1 else None
    rate, second = (unit and f"{unit}/s"), (unit and f"{unit}/s2")
    effort = {"rad": "N.m", "m": "N", None: None}[unit]
    twist = "x, y, z, then about x, y, z" if axes == 6 else "along x and y, then about z"
    each = "of the joint coordinates"
    listed = [
        Port("position", count, unit=unit, doc="joint coordinates"),
        Port("speed", count, unit=rate, default=0.0, doc=f"rates {each}"),
        Port("acceleration", count, unit=second, default=0.0, doc=f"second derivatives {each}"),
        Port("wrench", axes * markers, doc=f"force and torque at each marker: {twist}"),
        Port("effort", count, unit=effort, doc="forces and torques on the joint coordinates"),
        Port("mass", count * count, doc="mass matrix, row by row"),
        Port("jacobian", axes * count, doc=f"its rows: {twist}; columns: joint coordinates"),
        Port("velocity", axes, doc=f"of the marker: {twist}"),
        Port("bias", axes, doc="acceleration of the marker at constant joint speeds"),
        Port("base", axes, doc="wrench of the ground on the mechanism, about the world's origin"),
    ]
    return {port.name: port for port in listed}


def _read_order(system: System, coordinates: Sequence[str] | None) -> dict[str, tuple[Joint, int]]:
    paths = coordinate_paths(system)
    if coordinates is None:
        return paths
    listed = [coordinates] if isinstance(coordinates, str) else list(coordinates)
    for path in listed:
        if path not in paths:
            raise DiagramError(
                f"there is no joint coordinate `{path}` in `{system.name}`."
                f"{suggest(path, paths)} Coordinates: {name_list(paths)}."
            )
    missing = [f"`{path}`" for path in paths if path not in listed]
    if missing or len(set(listed)) != len(listed):
        what = f"lacks {name_list(missing)}" if missing else "names one twice"
        raise DiagramError(
            f"`coordinates` has all joint coordinates of `{system.name}`, each once, in any order; "
            f"it {what}."
        )
    return {path: paths[path] for path in listed}


def _check_tree(name: str, system: System, elements: bool) -> None:
    """Reject what the kernel does not evaluate, by name."""
    joints = [joint.name for joint in system.joints if not _is_simple(joint)]
    if joints:
        raise DiagramError(
            f"{name} is for joints that turn and slide: {name_list(f'`{j}`' for j in joints)} of "
            f"`{system.name}` cannot be given by joint coordinates alone."
        )
    moved = [m.path for m in _markers(system) if m.motion]
    held = [part.name for part in system.constraints]
    if moved or held:
        raise DiagramError(
            f"{name} has no drivers, couplings and moving markers, and `{system.name}` has "
            f"{name_list(f'`{item}`' for item in (*held, *moved))}: describe the mechanism without "
            f"them, or use System.inverse_dynamics."
        )
    if len(system.joints) != len(system.bodies):
        raise DiagramError(
            f"{name} is for a tree of joints that hangs on the ground, and `{system.name}` has "
            f"{len(system.bodies)} bodies and {len(system.joints)} joints: bodies without a joint "
            f"and loops are for System.inverse_dynamics."
        )
    if not elements:
        return
    others = [item.name for item in system.elements if item.type_number not in _MEMORYLESS]
    if others:
        raise DiagramError(
            f"{name} does not evaluate {name_list(f'`{item}`' for item in others)} of "
            f"`{system.name}`: contacts, films and friction that sticks or follows from reactions "
            f"depend on more than coordinates and speeds. Leave them out of the model."
        )


def _is_simple(joint: Joint) -> bool:
    """Whether its coordinates determine the pose of the bodies to each other."""
    chains = joint.type.chains
    return chains is not None and all(kind != BALL for kind, _ in chains[0].steps)


def _markers(system: System) -> list[Marker]:
    return [m for body in (system.ground, *system.bodies) for m in body.markers.values()]


def _find_marker(name: str, system: System, path: str) -> Marker | Body:
    items: dict[str, Marker | Body] = {m.path: m for m in _markers(system)}
    items |= {body.name: body for body in system.bodies}
    if path not in items:
        raise DiagramError(
            f"{name}: there is no marker or body `{path}` in `{system.name}`."
            f"{suggest(path, items)} Markers and bodies: {name_list(items)}."
        )
    return items[path]


def _without_start(item: Parameter) -> Parameter:
    """Hide initial poses and velocities: the state is that of the inputs."""
    hidden = item.hidden or ".initial_" in item.name
    return Parameter(item.name, item.value, item.unit, item.doc, item.tunable, hidden)
