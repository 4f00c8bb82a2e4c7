"""`Plant`: a mechanism as a block of a diagram.

Writes the tables of integers that ``multibody.h`` describes, and gives every number of the
mechanism a name that can be set before a run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ...errors import DiagramError, name_list, suggest
from ..bearings import LongBearing, ShortBearing, TiltedShortBearing
from ..core.block import NativeBlock
from ..core.ports import CONTINUOUS, EVERY_TICK, Kind, Parameter, Port, parameter
from .analysis.given_pose import check_pose
from .analysis.sharing import joint_stiffnesses
from .bodies import Body, Marker
from .clearance import FOLLOWS_INPUTS, RIGID_OUTPUTS, WEAR_OUTPUTS, ClearanceRevolute
from .clearance import OUTPUTS as _OUT_CLEARANCE
from .forces import (
    Bearing,
    Bushing,
    Driver,
    Friction,
    JointLoad,
    Load,
    Rubbing,
    Spring,
    Stop,
    TorsionalSpring,
    warn_of_undamped,
)
from .initial import Initial, Kept, coordinate_name, read_initial
from .joints import ANGLE, Coordinate, Joint, Row
from .law_table import LawTable
from .rotations import Array, quaternion_from_rotation
from .state_names import name_states
from .tree import SPEEDS, Tree, find_pattern, grow_tree

if TYPE_CHECKING:
    from .system import System

_POINT, _D1, _D2, _DISTANCE, _DRIVER, _DRIVEN_LENGTH, _DRIVEN_ANGLE, _TOUCH, _SLIP = range(9)
(
    _FORCE,
    _TORQUE,
    _SPRING,
    _BUSHING,
    _BEARING,
    _CONTACT,
    _JOINT_SPRING,
    _FRICTION,
    _STOP,
    _JOINT_EFFORT,
    _RUBBING,
) = range(11)
_FILMS = (ShortBearing, TiltedShortBearing, LongBearing)
_AXES = {"world": 0, "body": 1, "marker": 2}
_AXIS = {f"{axis}_{side}": n for n, (side, axis) in enumerate(product("ij", "fgh"))}

_OUT_MARKER = {
    "position": (0, 3, "m"),
    "rotation": (1, 4, None),
    "velocity": (2, 3, "m/s"),
    "angular_velocity": (3, 3, "rad/s"),
    "acceleration": (4, 3, "m/s2"),
    "angular_acceleration": (5, 3, "rad/s2"),
}
_MARKER_DOC = {
    "position": "position of {} in world axes",
    "rotation": "Euler parameters e0, e1, e2, e3 of {} against the world",
    "velocity": "velocity of {} in world axes",
    "angular_velocity": "angular velocity of {} in world axes",
    "acceleration": "acceleration of {} in world axes",
    "angular_acceleration": "angular acceleration of {} in world axes",
}
_OUT_JOINT = {"coordinate": 6, "speed": 7, "acceleration": 8}
_OUT_FORCE, _OUT_TORQUE, _OUT_DRIVER = 9, 10, 11
_OUT_SYSTEM = {
    "kinetic_energy": (12, "J", "of all bodies"),
    "potential_energy": (
        13,
        "J",
        "of weight, springs, stops, bushings and contacts",
    ),
    "closure": (14, None, "largest error of a joint, in m or rad"),
    "iterations": (15, None, "for the multipliers"),
    "residual": (16, None, "last change of an acceleration"),
    "converged": (17, None, "1, or 0 where the last step or its multipliers are not to be trusted"),
}
_OUT_BEARING, _OUT_CONTACT = 18, 19
_OUT_FILM = {
    "offset": (2, "m", "of the journal in axes of the bush, x and y, in the middle"),
    "force": (3, "N", "on the journal, in world axes"),
    "eccentricity": (1, None, "as a part of the clearance, at the thinner end"),
    "torque": (1, "N.m", "on the journal about the axis of the bush: friction"),
    "film": (1, "m", "least thickness; negative is penetration"),
    "pressure": (1, "Pa", "largest in the film"),
    "power_loss": (1, "W", "what film and contact turn into heat"),
    "thin_film": (1, None, "1 where the film is below its limit, else 0"),
}
_OUT_ROUNDS = {"rounds": (1, None, "of offset and multipliers in the last step")}
_OUT_PLAY = _OUT_CLEARANCE | RIGID_OUTPUTS | WEAR_OUTPUTS
_TOUCHES = list(_OUT_PLAY).index("contact")
_RIGID_FOLLOWS = {list(_OUT_PLAY).index(what) for what in FOLLOWS_INPUTS}
_OUT_RUBBING, _OUT_POWER = 20, 21
_OUT_RUB = {
    "force": ("N", "of friction on the displacement"),
    "torque": ("N.m", "of friction on the angle"),
    "load": ("N", "with which the bearing presses: the normal load"),
    "power_loss": ("W", "what friction turns into heat"),
}
_OUT_BALANCE = {
    "power_in": ("W", "of drivers, loads and actuators that put power in"),
    "power_loss": ("W", "what friction, oil films and contacts turn into heat"),
    "efficiency": (None, "1 - power_loss / power_in, not below 0; 1 without losses"),
}
_RUB_KINDS = ("revolute", "prismatic", "cylindrical")
_NEEDS_ACCELERATION = {4, 5, 8, 9, 10, 11, _OUT_RUBBING, _OUT_POWER}
_OF_ITERATIONS = {15, 16, 17}
_LARGEST_IMPLICIT = 300
_RENAMED = {
    "position": "initial_position",
    "rotation": "initial_rotation",
    "angle": "initial_angle",
    "velocity": "initial_velocity",
    "angular_velocity": "initial_angular_velocity",
}


class Plant(NativeBlock):
    """A mechanism as a block: forces in, motion out.

    Made by `System.block`. Inputs are the `Input` laws of the mechanism and whatever numbers are
    named in `inputs`; what drives or moves has inputs for its rate and acceleration too, see
    `Input`. ``force`` and ``torque`` of a joint are those of the ideal joint on its second body, in
    world axes, about its marker there; efforts on its coordinates are not in them.
    What a driver gives is its ``effort``. The potential energy is that of weight, of springs with a
    constant stiffness, of stops, bushings and contacts; actuators and springs whose
    stiffness is a law keep none.

    In the diagram's own steps the states are the coordinates and speeds of a tree of joints; loops
    are closed exactly after every step.

    Parameters
    ----------
    system
        The mechanism.
    inputs
        Paths of numbers that become inputs, such as ``"motor.torque"``; `System.inputs` lists them.
    outputs
        Paths of what is shown; `System.outputs` lists all of them.
    mode
        ``"continuous"``: integrated with the rest of the diagram, so that a stiff neighbour is
        coupled strongly. ``"own_step"``: by its own steps, with the inputs held over each period.
    integrator
        Of its own steps. ``"rk4"``: classical Runge–Kutta, the most accurate where it is stable;
        see `System.largest_stable_step`. ``"implicit"``: generalised-α of order two, stable with
        stiff forces at any step. A step that does not converge is taken in parts, as small as they
        must be; below 1/1024 of it the run stops.
    substeps
        Own steps in each period.
    spectral_radius
        Of implicit steps, between 0 and 1: what one step leaves of an oscillation far too fast for
        it. 1 is the trapezoidal rule, which damps nothing; 0 damps most.
    initial
        Joint coordinates and speeds that the initial state keeps, by path, such as
        ``{"main.angle": 0.6, "main.speed": 10}``, in m, rad, m/s, rad/s. All else is solved for: it
        is the nearest to what the bodies were given, see `System.assemble`. They are parameters:
        ``main.initial_angle``, ``main.initial_speed``.
    check
        Whether the pose is assembled at once, so that joints that will not close are an error here
        and not when a run starts.
    """

    kernel = "multibody"
    caches = frozenset({"largest_step", "contact_time", "doubt"})

    def __init__(
        self,
        system: System,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        *,
        mode: Literal["continuous", "own_step"] = "continuous",
        integrator: Literal["rk4", "implicit"] = "rk4",
        substeps: int = 1,
        spectral_radius: float = 0.8,
        initial: Initial | None = None,
        check: bool = True,
    ) -> None:
        system.validate()
        kept = read_initial(system, initial)
        if check:
            check_pose(system, inputs, initial)
        if mode not in ("continuous", "own_step"):
            raise DiagramError(f"`mode` is 'continuous' or 'own_step', got {mode!r}.")
        if not isinstance(substeps, int) or substeps < 1:
            raise DiagramError(f"`substeps` is a whole number, at least 1; got {substeps!r}.")
        own = mode == "own_step"
        radius = _read_integrator(integrator, own, spectral_radius)
        _check_rigid_contacts(system, own, radius is not None)
        if own:
            self.own_step = self.takes_slopes = True
        self.memory_holds = not own  # what init works out, and the turns that angles have made
        self.system = system
        self.gravity = system.gravity
        self.substeps = substeps if own else 1
        self.largest_step: float | None = None  # of RK4 where it is stable, once asked for
        self.contact_time = math.inf  # of the shortest contact in a clearance, with it
        self.doubt: str | None = None  # about friction and films, once asked for
        self._own, self._explicit = own, radius is None
        writer = _Writer(system, list(inputs), list(outputs), own, substeps, radius, kept)
        if radius is not None and writer.tree.nv > _LARGEST_IMPLICIT:
            raise DiagramError(
                f"`{system.name}` has {writer.tree.nv} speeds: implicit steps take up to "
                f"{_LARGEST_IMPLICIT}, because their matrix is full. Take integrator='rk4'."
            )
        integers = writer.write()
        shown = writer.output_ports
        direct = [
            (port.name, name)
            for port, names in zip(shown, writer.output_inputs, strict=True)
            for name in writer.input_names
            if name in names
        ]
        super().__init__(
            inputs=writer.input_ports,
            outputs=shown,
            parameters=writer.parameters,
            rate=EVERY_TICK if own else CONTINUOUS,
            kernel="multibody_own_step" if own else None,
            feedthrough=direct,
            states=0 if own else writer.tree.nq + writer.tree.nv,
            integers=integers,
        )
        self.state_names = () if own else name_states(writer.tree)
        self.rate_ports = {
            self.input_index[name]: self.input_index[rate]
            for name, rate in writer.laws.rates.items()
        }

    def tell_missing(self, port: str) -> str:
        """Return where to name an output or a number of the mechanism that is no port yet."""
        if port in list_outputs(self.system):
            return f" The mechanism has it: name it in System.block(outputs=[…, {port!r}])."
        if port in self.system.numbers():
            return (
                f" It is a number of the mechanism: name it in System.block(inputs=[…, {port!r}]); "
                f"print(system.inputs()) lists those that can be inputs."
            )
        return ""

    def warn_of_step(self, step: float, solver: str) -> str:
        """Return warnings of steps that are unstable or miss contacts, and of elements in doubt."""
        from .analysis.stability import warn_of_step

        if self.doubt is None:
            self.doubt = self._warn_of_doubt()
        rk4 = self._explicit and (self._own or solver == "rk4")
        coarse = warn_of_step(self, step / self.substeps, rk4)
        return " ".join(filter(None, (self.doubt, coarse)))

    def _warn_of_doubt(self) -> str:
        elements = self.system.elements
        undamped = warn_of_undamped([e for e in elements if isinstance(e, Bearing)])
        if not any(isinstance(element, Rubbing) for element in elements):
            return undamped
        from .analysis.rubbing import warn_of_doubt  # takes as long to import as all the rest

        return " ".join(filter(None, (undamped, warn_of_doubt(self.system))))


def _read_integrator(integrator: str, own: bool, radius: float) -> float | None:
    """Return the spectral radius of implicit steps, None for the others."""
    if integrator not in ("rk4", "implicit"):
        raise DiagramError(f"`integrator` is 'rk4' or 'implicit', got {integrator!r}.")
    if not 0.0 <= radius <= 1.0:
        raise DiagramError(f"`spectral_radius` is between 0 and 1, got {radius!r}.")
    if integrator == "rk4":
        return None
    if not own:
        raise DiagramError(
            "integrator='implicit' takes steps of its own: say mode='own_step' too. In mode "
            "'continuous' the solver of the diagram integrates; choose it there."
        )
    return float(radius)


def list_outputs(system: System) -> list[str]:
    """Return every path that can be an output of the mechanism."""
    found = [*_OUT_SYSTEM, *_OUT_BALANCE]
    for body in system.bodies:
        found += [f"{body.name}.{what}" for what in _OUT_MARKER]
        for marker in body.markers.values():
            found += [f"{marker.path}.{what}" for what in _OUT_MARKER]
    for marker in system.ground.markers.values():
        found += [f"{marker.path}.{what}" for what in _OUT_MARKER if marker.motion]
    for joint in system.joints:
        for number in range(len(joint.coordinates)):
            name = coordinate_name(joint, number)
            found += [f"{joint.name}.{name}"]
            found += [f"{joint.name}.{name}_{what}" for what in ("speed", "acceleration")]
        if len(joint.coordinates) == 1:
            found += [f"{joint.name}.speed", f"{joint.name}.acceleration"]
        found += [f"{joint.name}.force", f"{joint.name}.torque"]
    found += [f"{driver.name}.effort" for driver in system.drivers]
    for element in system.elements:
        if isinstance(element, Bearing):
            found += [f"{element.name}.{what}" for what in _film_outputs(element)]
        elif isinstance(element, ClearanceRevolute):
            found += [f"{element.name}.{what}" for what in _clearance_outputs(element)]
        elif isinstance(element, Rubbing):
            found += [f"{element.name}.{what}" for what in _rubbing_outputs(element)]
    return found


def list_output_ports(system: System) -> list[Port]:
    """Return a port for every path of `list_outputs`."""
    system.validate()
    writer = _Writer(system, [], list_outputs(system), True, 1, None)
    writer.write()
    return writer.output_ports


def list_input_ports(system: System) -> tuple[list[Port], list[Port]]:
    """Return the inputs that the block always has, and all that it has with every number named."""
    system.validate()
    plain = _Writer(system, [], [], True, 1, None)
    plain.write()
    all_named = _Writer(system, plain.laws.constants, [], True, 1, None)
    all_named.write()
    return plain.input_ports, all_named.input_ports


def _nearest_first(path: str, names: Iterable[str]) -> list[str]:
    """Return the names in the order of how near they are to a misspelt one."""
    matcher = SequenceMatcher(b=path.casefold())

    def far(name: str) -> float:
        matcher.set_seq1(name.casefold())
        return -matcher.ratio()

    return sorted(names, key=far)


def _film_outputs(bearing: Bearing) -> dict[str, tuple[int, str | None, str]]:
    return _OUT_FILM | (_OUT_ROUNDS if bearing.held else {})


def _rubbing_outputs(rubbing: Rubbing) -> list[str]:
    return [*rubbing.efforts, "load", "power_loss"]


def _clearance_outputs(element: ClearanceRevolute) -> dict[str, tuple[int, str | None, str]]:
    if element.rigid:
        return _OUT_CLEARANCE | RIGID_OUTPUTS
    if element.wear is None:
        return _OUT_CLEARANCE
    _, unit, doc = WEAR_OUTPUTS["wear"]
    return _OUT_CLEARANCE | WEAR_OUTPUTS | {"wear": (element.wear.sections, unit, doc)}


def _check_rigid_contacts(system: System, own: bool, implicit: bool) -> None:
    rubbings = [element.name for element in system.elements if isinstance(element, Rubbing)]
    for element in system.elements:
        if not isinstance(element, ClearanceRevolute) or not element.rigid:
            continue
        if rubbings:
            raise DiagramError(
                f"`{element.name}` has a RigidContact and `{rubbings[0]}` is friction from "
                f"reactions: they are not solved together. Take a compliant contact such as "
                f"HuntCrossley, or friction with a given coulomb=…."
            )
        held = [e.name for e in system.elements if isinstance(e, Bearing) and e.held]
        if held:
            raise DiagramError(
                f"`{element.name}` has a RigidContact and `{held[0]}` is a bearing held by a "
                f"constraint: they are not solved together. Take a compliant contact such as "
                f"HuntCrossley, or coupling='force' for the bearing."
            )
        if not own or implicit:
            wanted = "mode='own_step'" if not own else "integrator='rk4'"
            raise DiagramError(
                f"`{element.name}` has a RigidContact, whose impacts lie within steps: they are "
                f"found by own steps of Runge–Kutta only. Say {wanted}, or take a compliant "
                f"contact such as HuntCrossley."
            )


class _Place(NamedTuple):
    """Where a joint's coordinate lies.

    In q and v of the tree, with its sign, doubled where the tree is a quarter turn ahead; or with
    sign 0 and q = -1 - n as measure n.
    """

    q: int
    v: int
    sign: int


class _Writer:
    """Collects the tables of one mechanism."""

    def __init__(
        self,
        system: System,
        inputs: list[str],
        outputs: list[str],
        own: bool,
        substeps: int,
        radius: float | None,
        kept: Sequence[Kept] = (),
    ) -> None:
        self.system = system
        self.own = own
        self.substeps = substeps
        self.implicit = radius is not None
        self.radius = radius
        self.tree: Tree = grow_tree(system)
        self._kept = kept
        self._numbers = system.numbers() | {item.parameter.name: item.parameter for item in kept}
        self._wanted_inputs = inputs
        self._wanted_outputs = outputs
        self._markers: list[list[int]] = []
        self._marker_numbers: dict[Any, int] = {}
        self._hidden: list[float] = []
        self._measures: list[list[int]] = []
        self._contacts = 0
        self._rubbings: list[list[int]] = []
        self.output_ports: list[Port] = []
        self.output_inputs: list[set[str]] = []
        self._lay_out_parameters()
        self.laws = LawTable(self._numbers, self._place, self._hide, inputs)
        self.input_names = self.laws.input_names
        self.input_ports = self.laws.ports

    def _lay_out_parameters(self) -> None:
        """Numbers of the system first, then hidden ones; a path gives the place of a number."""
        for path in self._wanted_inputs:
            if path not in self._numbers:
                raise DiagramError(
                    f"there is no number `{path}` to be an input.{suggest(path, self._numbers)} "
                    f"Numbers, the nearest first: "
                    f"{name_list(_nearest_first(path, self._numbers))}. "
                    f"print(system.inputs()) lists all that can be an input."
                )
            if self._numbers[path].value.size != 1:
                raise DiagramError(f"`{path}` is a vector: only single numbers can be inputs.")
        self.parameters: list[Parameter] = []
        self._place: dict[str, int] = {}
        at = 0
        for path, item in self._numbers.items():
            self._place[path] = at
            at += item.value.size
            if path in self._wanted_inputs:
                continue
            self.parameters.append(_renamed(item))
        self._hidden_start = at

    def _hide(self, values: Sequence[float] | Array) -> int:
        place = self._hidden_start + len(self._hidden)
        self._hidden += [float(v) for v in values]
        return place

    # -- markers and laws

    def _marker(self, marker: Marker, frame: Array | None = None) -> int:
        frame = marker.rotation if frame is None else frame
        key = (marker.path, frame.tobytes())
        if key not in self._marker_numbers:
            self._marker_numbers[key] = len(self._markers)
            motion = [
                self.laws.add(f"{marker.path}.{axis}", marker.motion[axis], moves=True)
                if axis in marker.motion
                else -1
                for axis in "xyz"
            ]
            self._markers.append([
                self.tree.link_of.get(marker.body, -1),
                self._place[f"{marker.path}.position"],
                self._hide(quaternion_from_rotation(frame)),
                *motion,
            ])  # fmt: skip
        return self._marker_numbers[key]

    def _body_frame(self, body: Body) -> int:
        key = (body.name, "frame")
        if key not in self._marker_numbers:
            self._marker_numbers[key] = len(self._markers)
            zero = self._hide([0.0, 0.0, 0.0])
            one = self._hide([1.0, 0.0, 0.0, 0.0])
            self._markers.append([self.tree.link_of.get(body, -1), zero, one, -1, -1, -1])
        return self._marker_numbers[key]

    # -- the tables

    def write(self) -> list[int]:
        """Return the integers."""
        tree = self.tree
        bodies = [self._body_record(body) for body in self.system.bodies]
        links = [self._link_record(link) for link in tree.links]
        rows, cuts, paths = self._closures()
        forces = self._force_records = self._forces()
        outputs = self._outputs()
        joints = self._sharing_joints(outputs) if cuts else []
        keeps = [self._keep(item) for item in self._kept]
        used = {name for name in self._wanted_inputs if name not in self.input_names}
        if used:
            raise DiagramError(
                f"{name_list(f'`{name}`' for name in used)} cannot be an input: only constant "
                f"forces, torques, stiffnesses, dampings, drivers and motions of markers can. "
                f"print(system.inputs()) lists them."
            )
        # An open tree has its recursion and no matrix, which would be full for a chain.
        massive = bool(cuts) or bool(self._rubbings) or self.implicit
        cliques = [sorted({*(p[0] for p in path)}) for path in paths]
        cliques += self._ancestor_pairs() if massive else []
        pattern = find_pattern(tree.nv, cliques)
        mass_slots = self._mass_slots(pattern.slot) if massive else []
        pairs: list[int] = []
        jacobian = 0
        cut_records: list[list[int]] = []
        path_records: list[list[int]] = []
        for (first, count), path in zip(cuts, paths, strict=True):
            cut_records.append([first, count, len(path_records), len(path), len(pairs), jacobian])
            jacobian += count * len(path)
            path_records += path
            pairs += [
                pattern.slot(path[a][0], path[b][0]) for a in range(len(path)) for b in range(a + 1)
            ]
        movers = self._movers()
        names = self._names([name for name, _ in movers])
        settings = self._hide([1e6, 1e-12, self.radius or 0.0])
        self._close_parameters()
        nonzeros = len(pattern.column_of)
        tables: list[Any] = [
            links, bodies, self._markers, rows, cut_records, path_records, pairs,
            self.laws.records, forces, outputs, self._measures, self.laws.words, mass_slots,
            pattern.permutation, pattern.row_start, pattern.column_of,
            pattern.slot_of, pattern.column_start, pattern.row_of, names,
            self._rubbings, joints, [law for _, law in movers], keeps,
        ]  # fmt: skip
        head = [
            len(links), tree.nq, tree.nv, len(bodies), len(self._markers), len(rows), len(cuts),
            len(path_records), len(pairs), jacobian, len(self.laws.records), len(forces),
            len(outputs), nonzeros, len(self._measures), len(self.laws.words), len(names),
            len(mass_slots), self._contacts, len(self._rubbings), len(joints),
            len(movers), len(keeps),
            int(self.own), int(self.implicit), self.substeps,
            int(self.system.planar),
            self._place["gravity"], settings,
        ]  # fmt: skip
        starts, body_of_tables = [], []
        at = len(head) + len(tables)
        for table in tables:
            flat = [v for item in table for v in (item if isinstance(item, list) else [item])]
            starts.append(at)
            body_of_tables += flat
            at += len(flat)
        return [*head, *starts, *body_of_tables]

    def _sharing_joints(self, outputs: list[list[int]]) -> list[list[int]]:
        """All joints, bearings that rows hold and drivers, if a reaction is used; see share.c."""
        shown = {_OUT_FORCE, _OUT_TORQUE, _OUT_DRIVER, _OUT_RUBBING, _OUT_POWER}
        held = self._held_bearings()
        if not (self._rubbings or held or any(record[0] in shown for record in outputs)):
            return []
        links, cuts = len(self.tree.links), len(self.tree.cuts)
        records = []
        places = {name: self._hide(k) for name, k in joint_stiffnesses(self.system).items()}
        for joint in self.system.joints:
            index, _ = self._reaction(joint)
            i = self._marker(joint.first, joint.frame_i)
            j = self._marker(joint.second, joint.frame_j)
            records.append([index, i, j, places.get(joint.name, -1)])
        of_joint = dict(zip((joint.name for joint in self.system.joints), records, strict=True))
        drivers = self.system.drivers
        for number, bearing in enumerate(held):
            ends = self._marker(bearing.journal), self._marker(bearing.bush)
            index = links + cuts + len(drivers) + number
            records.append([index, *ends, places.get(bearing.name, -1)])
        for number, driver in enumerate(drivers):
            records.append([links + cuts + number, *of_joint[driver.joint.name][1:]])
        return records

    def _movers(self) -> list[tuple[str, int]]:
        """Laws that drive joints or move markers, with the names of these."""
        moved = {number: key[0] for key, number in self._marker_numbers.items()}
        found = dict(self._driver_laws)
        for number, (_, _, _, *laws) in enumerate(self._markers):
            found |= {
                f"{moved[number]}.{axis}": law
                for axis, law in zip("xyz", laws, strict=True)
                if law >= 0
            }
        return list(found.items())

    def _names(self, movers: list[str]) -> list[int]:
        """Names for messages, as bytes: of joints by last links, closures, bearings and contacts,
        friction, bodies, laws that prescribe motion, and kept values.
        """
        texts = [""] * len(self.tree.links)
        for name, link in self.tree.tree_joints.items():
            texts[link] = name
        texts += [joint.name for joint in self.tree.cuts]
        texts += [driver.name for driver in self.system.drivers]
        texts += [bearing.name for bearing in self._held_bearings()]
        texts += [item.name for _, item in self._rigid_contacts()]
        named = Bearing | ClearanceRevolute
        texts += [item.name for item in self.system.elements if isinstance(item, named)]
        texts += [item.name for item in self.system.elements if isinstance(item, Rubbing)]
        texts += [body.name for body in self.system.bodies]
        texts += movers
        texts += [item.path for item in self._kept]
        return [byte for text in texts for byte in text.replace("\0", "").encode() + b"\0"]

    def _close_parameters(self) -> None:
        """Put inputs' places and hidden numbers where the layout has them."""
        complete: list[Parameter] = []
        for path, item in self._numbers.items():
            if path in self._wanted_inputs or path in self.laws.defaults:
                complete.append(parameter(f"({path})", item.value, hidden=True, finite=False))
            else:
                complete.append(_renamed(item))
        complete.append(parameter("(hidden)", self._hidden, hidden=True, tunable=False))
        self.parameters = complete

    def _body_record(self, body: Body) -> list[int]:
        turn = "angle" if self.system.planar else "rotation"
        names = ("mass", "inertia", "com", "position", turn, "velocity", "angular_velocity")
        return [self._place[f"{body.name}.{name}"] for name in names]

    def _side(self, side: tuple[Joint, str] | None) -> int:
        if side is None:
            return -1
        joint, which = side
        if which == "i":
            return self._marker(joint.first, joint.frame_i)
        return self._marker(joint.second, joint.frame_j)

    def _link_record(self, link: Any) -> list[int]:
        return [
            link.parent, link.type, link.q, link.v,
            -1 if link.body is None else link.body.index,
            self._side(link.base), link.turn, self._side(link.tip), link.end_turn,
        ]  # fmt: skip

    def _ancestors(self, link: int) -> list[int]:
        found = []
        while link >= 0:
            found.append(link)
            link = self.tree.links[link].parent
        return found

    def _speeds(self, link: int) -> list[tuple[int, int, int]]:
        item = self.tree.links[link]
        return [(item.v + k, link, k) for k in range(SPEEDS[item.type])]

    def _ancestor_pairs(self) -> list[list[int]]:
        pairs = []
        for link in range(len(self.tree.links)):
            own = [v for v, _, _ in self._speeds(link)]
            if len(own) > 1:
                pairs.append(own)
            for above in self._ancestors(link)[1:]:
                for v, _, _ in self._speeds(above):
                    pairs += [[v, w] for w in own]
        return pairs

    def _mass_slots(self, slot: Any) -> list[int]:
        slots = []
        for link in range(len(self.tree.links)):
            for v, _, k in self._speeds(link):
                slots += [slot(v, w) for w, _, j in self._speeds(link) if j <= k]
                for above in self._ancestors(link)[1:]:
                    slots += [slot(v, w) for w, _, _ in self._speeds(above)]
        return slots

    def _closures(self) -> tuple[list[list[int]], list[tuple[int, int]], list[list[list[int]]]]:
        rows: list[list[int]] = []
        cuts: list[tuple[int, int]] = []
        paths: list[list[list[int]]] = []
        self.row_of_driver: dict[str, int] = {}
        self._driver_laws: dict[str, int] = {}
        self.row_of_bearing: dict[str, int] = {}
        for joint in self.tree.cuts:
            i = self._marker(joint.first, joint.frame_i)
            j = self._marker(joint.second, joint.frame_j)
            first = len(rows)
            rows += [self._row(joint, row, i, j) for row in joint.rows]
            cuts.append((first, len(joint.rows)))
            paths.append(self._path(joint.first, joint.second))
        for driver in self.system.drivers:
            at = self.tree.coordinates.get((driver.joint.name, driver.coordinate))
            shift = at is not None and at.offset != 0.0
            law = self.laws.add(f"{driver.name}.motion", driver.law, moves=True, shift=shift)
            self.row_of_driver[driver.name] = len(rows)
            self._driver_laws[driver.name] = law
            cuts.append((len(rows), 1))
            if at is None:
                rows.append(self._measured_driver(driver, law))
                paths.append(self._path(driver.joint.first, driver.joint.second))
            else:
                rows.append([_DRIVER, at.q, 0, at.v, at.sign, law])
                paths.append([[at.v, at.link, 0, 1]])
        for bearing in self._held_bearings():
            i, j = self._marker(bearing.journal), self._marker(bearing.bush)
            self.row_of_bearing[bearing.name] = len(rows)
            cuts.append((len(rows), 2))
            rows += [[_POINT, i, j, axis, 0, 0] for axis in (0, 1)]
            paths.append(self._path(bearing.journal, bearing.bush))
        for number, contact in self._rigid_contacts():
            i, j = self._marker(contact.hole), self._marker(contact.pin)
            place = self._place[f"{contact.name}.clearance"]
            cuts.append((len(rows), 2))
            rows += [[kind, i, j, number, 0, place] for kind in (_TOUCH, _SLIP)]
            paths.append(self._path(contact.hole, contact.pin))
        return rows, cuts, paths

    def _held_bearings(self) -> list[Bearing]:
        return [
            element
            for element in self.system.elements
            if isinstance(element, Bearing) and element.held
        ]

    def _rigid_contacts(self) -> list[tuple[int, ClearanceRevolute]]:
        """Return rigid contacts with their numbers among the forces."""
        return [
            (number, element)
            for number, element in enumerate(self.system.elements)
            if isinstance(element, ClearanceRevolute) and element.rigid
        ]

    def _row(self, joint: Joint, row: Row, i: int, j: int) -> list[int]:
        axes = {"f": 0, "g": 1, "h": 2}
        if row.kind == "S":
            return [_POINT, i, j, row.component, 0, 0]
        if row.kind == "d1":
            return [_D1, i, j, axes[row.a[0]], axes[row.b[0]], 0]
        if row.kind == "d2":
            return [_D2, i, j, axes[row.a[0]], 0, 0]
        if row.kind == "SS":
            return [_DISTANCE, i, j, 0, 0, self._place[f"{joint.name}.length"]]
        return [_D1, i, j, 0, 1, 0]  # no turn in the plane: f_i at right angles to g_j

    def _measured_driver(self, driver: Driver, law: int) -> list[int]:
        """The row of a driver whose joint closes a loop, so that its coordinate is measured."""
        measure = -1 - self._coordinate(driver.joint, driver.coordinate).q
        angle, i, j = self._measures[measure][:3]
        return [_DRIVEN_ANGLE if angle else _DRIVEN_LENGTH, i, j, measure, 0, law]

    def _path(self, first: Marker, second: Marker) -> list[list[int]]:
        """The speeds between the two bodies of a closure; common ancestors move both alike."""
        sides = [
            self._ancestors(self.tree.link_of.get(marker.body, -1)) for marker in (first, second)
        ]
        common = set(sides[0]) & set(sides[1])
        return [
            [v, link, k, side]
            for side in (0, 1)
            for link in sides[side]
            if link not in common
            for v, link, k in self._speeds(link)
        ]

    def _forces(self) -> list[list[int]]:
        records = []
        for element in self.system.elements:
            if isinstance(element, Load):
                records.append(self._load(element))
            elif isinstance(element, Spring):
                records.append(self._spring(element))
            elif isinstance(element, Bushing):
                records.append(self._bushing(element))
            elif isinstance(element, Bearing):
                records.append(self._bearing(element))
            elif isinstance(element, ClearanceRevolute):
                records.append(self._contact(element))
            elif isinstance(element, Rubbing):
                records.append(self._rubbing(element))
            else:
                records.append(self._joint_force(element))
        return records

    def _load(self, load: Load) -> list[int]:
        path = f"{load.name}.{load.effort}"
        numbers = []
        for n, law in enumerate(load.components):
            own = path if load.single is not None else f"{path}.{'xyz'[n]}"
            numbers.append(self.laws.add(own if load.single in (None, n) else "", law))
        kind = _FORCE if load.effort == "force" else _TORQUE
        marker = self._marker(load.marker)
        return [kind, marker, marker, 0, numbers[0], _AXES[load.frame]]

    def _spring(self, spring: Spring) -> list[int]:
        name = spring.name
        i, j = self._marker(spring.first), self._marker(spring.second)
        first = self.laws.add(f"{name}.stiffness", spring.stiffness)
        self.laws.add(f"{name}.damping", spring.damping)
        self.laws.add(f"{name}.force", spring.force)
        mask = sum(1 << "xyz".index(axis) for axis in spring.components) if spring.components else 7
        return [_SPRING, i, j, self._place[f"{name}.free_length"], first, mask]

    def _bushing(self, bushing: Bushing) -> list[int]:
        i, j = self._marker(bushing.first), self._marker(bushing.second)
        angle = self._measure(i, j, ANGLE) if self.system.planar else 0
        return [_BUSHING, i, j, self._place[f"{bushing.name}.stiffness.x"], 0, angle]

    def _bearing(self, bearing: Bearing) -> list[int]:
        i, j = self._marker(bearing.journal), self._marker(bearing.bush)
        friction, thin, cavitation, squeeze = bearing.film.integers  # type: ignore[misc]
        options = friction + 8 * (thin % 2) + 256 * (thin // 2) + 16 * cavitation + 64 * squeeze
        options += 128 * (bearing.load_axes == "bush")
        options += 512 * (1 + self.row_of_bearing.get(bearing.name, -1))
        model = [isinstance(bearing.film, kind) for kind in _FILMS].index(True)
        return [_BEARING, i, j, self._place[f"{bearing.name}.radius"], model, options]

    def _contact(self, element: ClearanceRevolute) -> list[int]:
        i, j = self._marker(element.pin), self._marker(element.hole)
        number, self._contacts = self._contacts, self._contacts + 1
        place = self._place[f"{element.name}.clearance"]
        sections = element.wear.sections if element.wear else 0
        # MB_CONTACT_WEAR_SHIFT
        return [_CONTACT, i, j, place, element.contact.law + 16 * sections, number]

    def _rubbing(self, rubbing: Rubbing) -> list[int]:
        joint = rubbing.joint
        places = {"length": [0, 0], "angle": [0, 0]}
        for number, of in enumerate(joint.coordinates):
            at = self._coordinate(joint, number)
            places[of.kind] = [at.v, at.sign] if at.sign else [-1 - at.q, 0]
        first = rubbing.middle == "first"
        self._rubbings.append([
            _RUB_KINDS.index(joint.kind), *places["length"], *places["angle"],
            *self._reaction(joint),
            self._marker(joint.first, joint.frame_i) if first
            else self._marker(joint.second, joint.frame_j),
            self._place[f"{rubbing.name}.coefficient"],
        ])  # fmt: skip
        return [_RUBBING, 0, 0, 0, len(self._rubbings) - 1, 0]

    def _joint_force(self, element: JointLoad | TorsionalSpring | Friction | Stop) -> list[int]:
        name = element.name
        at = self._coordinate(element.joint, element.coordinate)
        if isinstance(element, JointLoad):
            law = self.laws.add(f"{name}.{element.of.effort}", element.effort)
            return [_JOINT_EFFORT, at.q, at.v, 0, law, at.sign]
        if isinstance(element, TorsionalSpring):
            first = self.laws.add(f"{name}.stiffness", element.stiffness)
            self.laws.add(f"{name}.damping", element.damping)
            self.laws.add(f"{name}.torque", element.torque)
            place = self._place[f"{name}.free_angle"]
            return [_JOINT_SPRING, at.q, at.v, place, first, at.sign]
        if isinstance(element, Friction):
            return [_FRICTION, at.q, at.v, self._place[f"{name}.viscous"], 0, at.sign]
        return [_STOP, at.q, at.v, self._place[f"{name}.lower"], 0, at.sign]

    def _coordinate(self, joint: Joint, number: int) -> _Place:
        """Return where a joint's coordinate lies: in the tree, or measured where it was cut."""
        at = self.tree.coordinates.get((joint.name, number))
        if at is not None:
            return _Place(at.q, at.v, at.sign * (2 if at.offset else 1))
        i = self._marker(joint.first, joint.frame_i)
        j = self._marker(joint.second, joint.frame_j)
        return _Place(-1 - self._measure(i, j, joint.coordinates[number]), 0, 0)

    def _keep(self, item: Kept) -> list[int]:
        at = self._coordinate(item.joint, item.number)
        place = self._place[item.parameter.name]
        if at.sign == 0:
            return [int(item.rate), -1 - at.q, 0, 0, place]
        return [int(item.rate), at.q, at.v, at.sign, place]

    def _measure(self, i: int, j: int, coordinate: Coordinate) -> int:
        if coordinate.kind == "length":
            record = [0, i, j, _AXIS[coordinate.along], 0, 0]
        else:
            axes = (coordinate.about, coordinate.of, coordinate.start)
            record = [1, i, j, *(_AXIS[axis] for axis in axes)]
        if record not in self._measures:
            self._measures.append(record)
        return self._measures.index(record)

    # -- outputs

    def _outputs(self) -> list[list[int]]:
        records = []
        for path in self._wanted_outputs:
            kind, index, extra, width, unit, doc = self._find_output(path)
            records.append([kind, index, extra])
            touches = kind == _OUT_CONTACT and extra == _TOUCHES
            signal: Kind = "boolean" if touches else "real"
            self.output_ports.append(Port(path, width=width, unit=unit, kind=signal, doc=doc))
            self.output_inputs.append(self._direct_inputs(kind, index, extra))
        return records

    def _direct_inputs(self, kind: int, index: int, extra: int) -> set[str]:
        """Return the inputs that an output follows without delay: those that move its markers."""
        if kind in _NEEDS_ACCELERATION or (kind in _OF_ITERATIONS and not self.implicit):
            return set(self.input_names)
        if kind == _OUT_CONTACT and extra in _RIGID_FOLLOWS and self._is_rigid(index):
            return set(self.input_names)
        markers: Iterable[int] = ()
        if kind in (_OUT_MARKER["position"][0], _OUT_MARKER["velocity"][0]):
            markers = [index]
        elif kind in (_OUT_BEARING, _OUT_CONTACT):
            markers = self._force_records[index][1:3]
        elif kind in (_OUT_JOINT["coordinate"], _OUT_JOINT["speed"]) and extra == 0:
            markers = self._measures[index][1:3]
        elif kind in (_OUT_SYSTEM["potential_energy"][0], _OUT_SYSTEM["closure"][0]):
            markers = range(len(self._markers))
        laws = [law for marker in markers for law in self._markers[marker][3:]]
        return {name for law in laws for name in self.laws.inputs_of(law)}

    def _is_rigid(self, number: int) -> bool:
        return any(number == rigid for rigid, _ in self._rigid_contacts())

    def _find_output(self, path: str) -> tuple[int, int, int, int, Any, str]:
        if path in _OUT_SYSTEM:
            kind, unit, doc = _OUT_SYSTEM[path]
            return kind, 0, 0, 1, unit, doc
        if path in _OUT_BALANCE:
            unit, doc = _OUT_BALANCE[path]
            return _OUT_POWER, 0, list(_OUT_BALANCE).index(path), 1, unit, doc
        owner, _, what = path.rpartition(".")
        for body in (*self.system.bodies, self.system.ground):
            if what not in _OUT_MARKER:
                break
            kind, width, unit = _OUT_MARKER[what]
            doc = _MARKER_DOC[what].format(owner)
            if owner == body.name and not body.is_ground:
                return kind, self._body_frame(body), 0, width, unit, doc
            for marker in body.markers.values():
                if owner == marker.path:
                    return kind, self._marker(marker), 0, width, unit, doc
        for joint in self.system.joints:
            if owner == joint.name:
                found = self._joint_output(joint, what)
                if found:
                    return found
        for driver in self.system.drivers:
            if path == f"{driver.name}.effort":
                unit = driver.joint.coordinates[driver.coordinate].effort_unit
                return (
                    _OUT_DRIVER,
                    self.row_of_driver[driver.name],
                    0,
                    1,
                    unit,
                    f"force or torque of driver {driver.name} on its coordinate",
                )
        for number, element in enumerate(self.system.elements):
            if isinstance(element, Bearing) and owner == element.name:
                shown = _film_outputs(element)
                if what in shown:
                    width, unit, doc = shown[what]
                    which = list(shown).index(what)
                    return _OUT_BEARING, number, which, width, unit, f"{doc}, in {owner}"
            if isinstance(element, ClearanceRevolute) and owner == element.name:
                if what not in (known := _clearance_outputs(element)):
                    break
                width, unit, doc = known[what]
                which = list(_OUT_PLAY).index(what)
                return _OUT_CONTACT, number, which, width, unit, f"{doc}, in {owner}"
        rubbings = [item for item in self.system.elements if isinstance(item, Rubbing)]
        for number, rubbing in enumerate(rubbings):
            if owner == rubbing.name and what in _rubbing_outputs(rubbing):
                unit, doc = _OUT_RUB[what]
                which = list(_OUT_RUB).index(what)
                return _OUT_RUBBING, number, which, 1, unit, f"{doc}, in {rubbing.joint.name}"
        names = list_outputs(self.system)
        raise DiagramError(
            f"there is no output `{path}` of `{self.system.name}`.{suggest(path, names)} "
            f"Outputs, the nearest first: {name_list(_nearest_first(path, names))}. "
            f"print(system.outputs()) lists all of them with units."
        )

    def _joint_output(self, joint: Joint, what: str) -> tuple[int, int, int, int, Any, str] | None:
        if what in ("force", "torque"):
            index, marker = self._reaction(joint)
            kind, unit = (_OUT_FORCE, "N") if what == "force" else (_OUT_TORQUE, "N.m")
            doc = f"{what} of the ideal joint {joint.name} on its second body, in world axes"
            return kind, index, marker, 3, unit, doc
        for number, coordinate in enumerate(joint.coordinates):
            name = coordinate_name(joint, number)
            single = len(joint.coordinates) == 1
            options = {name: 6, f"{name}_speed": 7, f"{name}_acceleration": 8}
            if single:
                options |= {"speed": 7, "acceleration": 8}
            if what not in options:
                continue
            at = self._coordinate(joint, number)
            kind = options[what]
            unit = coordinate.unit + {6: "", 7: "/s", 8: "/s2"}[kind]
            index = -1 - at.q if at.sign == 0 else at.q if kind == 6 else at.v
            of = {6: "", 7: "rate of the ", 8: "second derivative of the "}[kind]
            doc = f"{of}{name.replace('_', ' ')} of joint {joint.name}"
            return kind, index, at.sign, 1, unit, doc
        return None

    def _reaction(self, joint: Joint) -> tuple[int, int]:
        """Where a reaction is found: link or closure, and second marker, -1 - it if reversed."""
        index = self.tree.tree_joints.get(joint.name)
        if index is None:
            index = len(self.tree.links) + self.tree.cuts.index(joint)
        marker = self._marker(joint.second, joint.frame_j)
        return index, -1 - marker if self._reversed(joint) else marker

    def _reversed(self, joint: Joint) -> bool:
        """Whether the tree runs through the joint from its second body to its first."""
        index = self.tree.tree_joints.get(joint.name)
        return index is not None and self.tree.links[index].body is joint.first.body


def _renamed(item: Parameter) -> Parameter:
    """Give starting values and places of markers names that do not hide the outputs."""
    owner, _, what = item.name.rpartition(".")
    if "." in owner and what == "position":
        name = f"{owner}.place"
    elif owner and "." not in owner and what in _RENAMED:
        name = f"{owner}.{_RENAMED[what]}"
    else:
        return item
    return Parameter(name, item.value, item.unit, item.doc, item.tunable, item.hidden)
