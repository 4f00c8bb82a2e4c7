"""The tables of integers that ``multibody.h`` describes, and the layout of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from .... import _contract as contract
from ....errors import DiagramError, name_list, suggest
from ...core._ports import Parameter, parameter
from ..analysis._sharing import joint_stiffnesses
from ..elements._element import Element
from ..elements.formula._reads import order_reads
from ..joints._joint import Coordinate, Joint, Row
from ..system._bodies import Body, Marker
from ..system._laws import AbstractLaw
from ..system._rotations import Array, quaternion_from_rotation
from ._initial import Kept
from ._law_table import LawTable
from ._tree import SPEEDS, Tree, find_pattern, grow_tree

if TYPE_CHECKING:
    from ..system._system import System

OF_REACTIONS = {
    contract.MB_OUT_REACTION_FORCE,
    contract.MB_OUT_REACTION_TORQUE,
    contract.MB_OUT_DRIVER_EFFORT,
    contract.MB_OUT_DRIVER_POWER,
    contract.MB_OUT_POWER,
}
"""Kinds of output that depend on the load distribution, in addition to those of couplings."""

FindOutput = Callable[[str], tuple[Sequence[int], set[str]]]
"""Returns the record of an output and its inputs with direct feedthrough, by its path."""

_AXIS = {f"{axis}_{side}": n for n, (side, axis) in enumerate(product("ij", "fgh"))}
_RENAMED = {
    "position": "initial_position",
    "rotation": "initial_rotation",
    "angle": "initial_angle",
    "velocity": "initial_velocity",
    "angular_velocity": "initial_angular_velocity",
}


class Place(NamedTuple):
    """Where a joint's coordinate lies.

    In q and v of the tree, with its sign, doubled where the tree is a quarter turn ahead; or with
    sign 0 and q = -1 - n as measure n.
    """

    q: int
    v: int
    sign: int


class Tables:
    """Collects the tables of one mechanism; elements write their own records."""

    def __init__(
        self,
        system: System,
        inputs: list[str],
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
        self._numbers = system.parameters() | {item.parameter.name: item.parameter for item in kept}
        self._wanted_inputs = inputs
        self._markers: list[list[int]] = []
        self._marker_numbers: dict[Any, int] = {}
        self._hidden: list[float] = []
        self.measures: list[list[int]] = []
        self._contacts = 0
        self._stictions = 0
        self._joint_frictions: list[list[int]] = []
        self.row_of: dict[str, int] = {}
        """Of each joint that closes a loop, of each constraint and held element: its first row."""
        self.motion_laws: dict[str, int] = {}
        """Of each driver, its law."""
        self.force_number: dict[str, int] = {}
        self.laws_of: dict[str, range] = {}
        """Index of the record of each element, and the laws that the record added."""
        self._lay_out_parameters()
        self._signals = {read: n for n, read in enumerate(order_reads(system))}
        self.laws = LawTable(self._numbers, self._place, self._hide, inputs, self._signals)
        self.input_names = self.laws.input_names
        self.input_ports = self.laws.ports

    def _lay_out_parameters(self) -> None:
        """Lay out the parameters of the system, then hidden ones; a path maps to an index."""
        for path in self._wanted_inputs:
            if path not in self._numbers:
                raise DiagramError(
                    f"there is no parameter `{path}` to use as an input."
                    f"{suggest(path, self._numbers)} "
                    f"Parameters, the nearest first: "
                    f"{name_list(nearest_first(path, self._numbers))}. "
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

    # -- what elements write

    def place(self, path: str) -> int:
        """Return where a number of the mechanism lies among the parameters."""
        return self._place[path]

    def hide(self, values: Sequence[float] | Array) -> int:
        """Put numbers that cannot be set among the parameters, and return where they lie."""
        return self._hide(values)

    def law(self, path: str, law: AbstractLaw, *, moves: bool = False, shift: bool = False) -> int:
        """Return the number of a law; see `LawTable.add`."""
        return self.laws.add(path, law, moves=moves, shift=shift)

    def next_contact(self) -> int:
        """Return the number of a new contact."""
        self._contacts += 1
        return self._contacts - 1

    def next_stiction(self) -> int:
        """Return the number of a new friction that sticks."""
        self._stictions += 1
        return self._stictions - 1

    def add_joint_friction(self, record: list[int]) -> int:
        """Return the number of a new friction that follows from a reaction."""
        self._joint_frictions.append(record)
        return len(self._joint_frictions) - 1

    def _forces(self) -> list[list[int]]:
        """Return the records of elements, and of couplings, which have outputs as elements do."""
        records: list[list[int]] = []
        for item in (*self.system.elements, *self.system.couplings):
            first = len(self.laws.records)
            record = item.record(self)
            self.force_number[item.name] = len(records)
            self.laws_of[item.name] = range(first, len(self.laws.records))
            records.append([item.type_number, *record])
        return records

    # -- markers and laws

    def marker(self, marker: Marker, frame: Array | None = None) -> int:
        """Return the number of a marker, with another frame for those of joints."""
        if not marker.name:
            return self.body_frame(marker.body)
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

    def body_frame(self, body: Body) -> int:
        """Return the number of the marker that is the frame of a body."""
        key = (body.name, "frame")
        if key not in self._marker_numbers:
            self._marker_numbers[key] = len(self._markers)
            zero = self._hide([0.0] * 6)  # position and tilt
            one = self._hide([1.0, 0.0, 0.0, 0.0])
            self._markers.append([self.tree.link_of.get(body, -1), zero, one, -1, -1, -1])
        return self._marker_numbers[key]

    # -- the tables

    def write(self, show: Callable[[], list[list[int]]], find: FindOutput) -> list[int]:
        """Return the integers.

        `show` returns the records of the outputs; it is called after those of the elements exist,
        as is `find` for the outputs that formulas read.
        """
        tree = self.tree
        bodies = [self._body_record(body) for body in self.system.bodies]
        links = [self._link_record(link) for link in tree.links]
        rows, cuts, paths = self._closures()
        self._force_records = self._forces()
        signals = self._signal_records(find)
        forces, outputs = self._force_records, show()
        reactions = any(self._tells_sharing(record) for record in outputs)
        joints = self._sharing_joints(reactions) if cuts else []
        keeps = [self._keep(item) for item in self._kept]
        used = {name for name in self._wanted_inputs if name not in self.input_names}
        if used:
            raise DiagramError(
                f"{name_list(f'`{name}`' for name in used)} cannot be an input: only constant "
                f"forces, torques, stiffnesses, dampings, drivers and motions of markers can. "
                f"print(system.inputs()) lists them."
            )
        # An open tree has its recursion and no matrix, which would be full for a chain.
        massive = bool(cuts or self._joint_frictions or self._stictions) or self.implicit
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
        motion_laws = self._motion_laws()
        names = self._names([name for name, _ in motion_laws])
        settings = self._hide([1e6, 1e-12, self.radius or 0.0])
        self._close_parameters()
        nonzeros = len(pattern.column_of)
        tables: list[Any] = [
            links, bodies, self._markers, rows, cut_records, path_records, pairs,
            self.laws.records, forces, outputs, self.measures, self.laws.words, mass_slots,
            pattern.permutation, pattern.row_start, pattern.column_of,
            pattern.slot_of, pattern.column_start, pattern.row_of, names,
            self._joint_frictions, joints, [law for _, law in motion_laws], keeps, signals,
        ]  # fmt: skip
        head = [
            len(links), tree.nq, tree.nv, len(bodies), len(self._markers), len(rows), len(cuts),
            len(path_records), len(pairs), jacobian, len(self.laws.records), len(forces),
            len(outputs), nonzeros, len(self.measures), len(self.laws.words), len(names),
            len(mass_slots), self._contacts, len(self._joint_frictions), len(joints),
            len(motion_laws), len(keeps), len(signals),
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

    def _tells_sharing(self, output: list[int]) -> bool:
        """Return whether an output depends on the load distribution among redundant joints."""
        kind, index, _ = output
        if kind in (contract.MB_OUT_ELEMENT, contract.MB_OUT_ELEMENT_POWER):
            return self._force_records[index][0] == contract.MB_COUPLING
        return kind in OF_REACTIONS

    def _sharing_joints(self, reactions: bool) -> list[list[int]]:
        """All joints, held elements and constraints, if a reaction is used; see
        blocks/multibody/kernel/constraints/share.c."""
        held = self._held()
        if not (self._joint_frictions or held or reactions):
            return []
        links, cuts = len(self.tree.links), len(self.tree.cuts)
        records = []
        places = {name: self._hide(k) for name, k in joint_stiffnesses(self.system).items()}
        for joint in self.system.joints:
            index, _ = self.reaction(joint)
            i = self.marker(joint.first, joint.frame_i)
            j = self.marker(joint.second, joint.frame_j)
            records.append([index, i, j, places.get(joint.name, -1)])
        of_joint = dict(zip((joint.name for joint in self.system.joints), records, strict=True))
        constraints = self.system.constraints
        for number, element in enumerate(held):
            ends = map(self.marker, _ends(element))
            index = links + cuts + len(constraints) + number
            records.append([index, *ends, places.get(element.name, -1)])
        for number, constraint in enumerate(constraints):
            of = constraint.terms[-1].joint
            if of.name in of_joint:
                record = of_joint[of.name][1:]
            else:
                record = [self.marker(of.first, of.frame_i), self.marker(of.second, of.frame_j), -1]
            records.append([links + cuts + number, *record])
        return records

    def _signal_records(self, find: FindOutput) -> list[list[int]]:
        """Return the outputs that formulas read, each with the number of it that is read."""
        records = []
        for read in self._signals:
            record, inputs = find(read.path)
            records.append([*record, read.element or 0])
            self.laws.signal_inputs[read] = inputs
        return records

    def _motion_laws(self) -> list[tuple[str, int]]:
        """Laws that drive joints or move markers, with the names of these."""
        moved = {number: key[0] for key, number in self._marker_numbers.items()}
        found = dict(self.motion_laws)
        for number, (_, _, _, *laws) in enumerate(self._markers):
            found |= {
                f"{moved[number]}.{axis}": law
                for axis, law in zip("xyz", laws, strict=True)
                if law >= 0
            }
        return list(found.items())

    def _names(self, motion_laws: list[str]) -> list[int]:
        """Names for messages, as bytes: of joints by last links, closures, elements, bodies, laws
        that prescribe motion, and prescribed initial values.
        """
        texts = [""] * len(self.tree.links)
        for name, link in self.tree.tree_joints.items():
            texts[link] = name
        texts += [joint.name for joint in self.tree.cuts]
        texts += [constraint.name for constraint in self.system.constraints]
        texts += [element.name for element in self._held()]
        texts += [e.name for _, e in self._rigid_contacts() for _ in range(e.rigid_closures)]
        texts += [item.name for item in (*self.system.elements, *self.system.couplings)]
        texts += [body.name for body in self.system.bodies]
        texts += motion_laws
        texts += [item.path for item in self._kept]
        texts += [*self.laws.formulas, *(read.text for read in self._signals)]
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
            return self.marker(joint.first, joint.frame_i)
        return self.marker(joint.second, joint.frame_j)

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
        """Return the rows, of each closure its first row and their number, and its path."""
        rows: list[list[int]] = []
        cuts: list[tuple[int, int]] = []
        paths: list[list[list[int]]] = []

        def add(name: str, records: list[list[int]], path: list[list[int]]) -> None:
            self.row_of[name] = len(rows)
            cuts.append((len(rows), len(records)))
            rows.extend(records)
            paths.append(path)

        for joint in self.tree.cuts:
            i = self.marker(joint.first, joint.frame_i)
            j = self.marker(joint.second, joint.frame_j)
            records = [self._row(joint, row, i, j) for row in joint.rows]
            add(joint.name, records, self.path(joint.first, joint.second))
        for constraint in self.system.constraints:
            record, path = constraint.row(self)
            add(constraint.name, [record], path)
        for element in self._held():
            i, j = map(self.marker, _ends(element))
            records = [[contract.MB_ROW_POINT, i, j, axis, 0, 0] for axis in (0, 1)]
            add(element.name, records, self.path(*_ends(element)))
        for number, element in self._rigid_contacts():
            for records, path in element.rigid_rows(self, number):
                add(element.name, records, path)
        return rows, cuts, paths

    def _held(self) -> list[Element]:
        """Return elements that hold their two markers together by two rows."""
        return [element for element in self.system.elements if element.row_count]

    def _rigid_contacts(self) -> list[tuple[int, Element]]:
        """Return rigid contacts with their numbers among the forces; those of shapes are last."""
        found = [(n, e) for n, e in enumerate(self.system.elements) if e.is_rigid]
        return sorted(found, key=lambda item: item[1].type_number == contract.MB_TOUCH_RIGID)

    def _row(self, joint: Joint, row: Row, i: int, j: int) -> list[int]:
        axes = {"f": 0, "g": 1, "h": 2}
        if row.kind == "S":
            return [contract.MB_ROW_POINT, i, j, row.component, 0, 0]
        if row.kind == "d1":
            return [contract.MB_ROW_D1, i, j, axes[row.a[0]], axes[row.b[0]], 0]
        if row.kind == "d2":
            return [contract.MB_ROW_D2, i, j, axes[row.a[0]], 0, 0]
        if row.kind == "SS":
            return [contract.MB_ROW_DISTANCE, i, j, 0, 0, self._place[f"{joint.name}.length"]]
        return [
            contract.MB_ROW_D1,
            i,
            j,
            0,
            1,
            0,
        ]  # no turn in the plane: f_i at right angles to g_j

    def path(self, first: Marker, second: Marker) -> list[list[int]]:
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

    def coordinate(self, joint: Joint, number: int) -> Place:
        """Return where a joint's coordinate lies: in the tree, or measured where it was cut."""
        at = self.tree.coordinates.get((joint.name, number))
        if at is not None:
            return Place(at.q, at.v, at.sign * (2 if at.offset else 1))
        i = self.marker(joint.first, joint.frame_i)
        j = self.marker(joint.second, joint.frame_j)
        return Place(-1 - self.measure(i, j, joint.coordinates[number]), 0, 0)

    def _keep(self, item: Kept) -> list[int]:
        at = self.coordinate(item.joint, item.number)
        place = self._place[item.parameter.name]
        if at.sign == 0:
            return [int(item.rate), -1 - at.q, 0, 0, place]
        return [int(item.rate), at.q, at.v, at.sign, place]

    def measure(self, i: int, j: int, coordinate: Coordinate) -> int:
        """Return the number of a coordinate that is measured between two markers."""
        if coordinate.kind == "length":
            record = [0, i, j, _AXIS[coordinate.along], 0, 0]
        elif coordinate.kind == "euler":
            record = [2, i, j, coordinate.parameter, 0, 0]
        else:
            axes = (coordinate.about, coordinate.of, coordinate.start)
            record = [1, i, j, *(_AXIS[axis] for axis in axes)]
        if record not in self.measures:
            self.measures.append(record)
        return self.measures.index(record)

    # -- what outputs read

    def marker_inputs(self, markers: Iterable[int]) -> set[str]:
        """Return the inputs that move markers."""
        laws = [law for marker in markers for law in self._markers[marker][3:]]
        return self.law_inputs(laws)

    def law_inputs(self, laws: Iterable[int]) -> set[str]:
        """Return the inputs of laws."""
        return {name for law in laws for name in self.laws.inputs_of(law)}

    def element_markers(self, name: str) -> list[int]:
        """Return the markers between which an element acts, or its coordinate is measured."""
        record = self._force_records[self.force_number[name]]
        part = self.system.parts[name]
        if not (isinstance(part, Element) and part.acts_on):
            return record[1:3]
        return self.measures[-1 - record[1]][1:3] if record[1] < 0 else []

    @property
    def marker_count(self) -> int:
        """Return how many markers there are so far."""
        return len(self._markers)

    def reaction(self, joint: Joint) -> tuple[int, int]:
        """Where a reaction is found: link or closure, and second marker, -1 - it if reversed."""
        index = self.tree.tree_joints.get(joint.name)
        if index is None:
            index = len(self.tree.links) + self.tree.cuts.index(joint)
        marker = self.marker(joint.second, joint.frame_j)
        return index, -1 - marker if self._reversed(joint) else marker

    def _reversed(self, joint: Joint) -> bool:
        """Whether the tree runs through the joint from its second body to its first."""
        index = self.tree.tree_joints.get(joint.name)
        return index is not None and self.tree.links[index].body is joint.first.body


def _ends(element: Element) -> tuple[Marker, Marker]:
    assert element.ends is not None
    return element.ends


def nearest_first(path: str, names: Iterable[str]) -> list[str]:
    """Return the names in the order of how near they are to a misspelled one."""
    matcher = SequenceMatcher(b=path.casefold())

    def far(name: str) -> float:
        matcher.set_seq1(name.casefold())
        return -matcher.ratio()

    return sorted(names, key=far)


def _renamed(item: Parameter) -> Parameter:
    """Rename initial values and marker positions that would hide outputs."""
    owner, _, what = item.name.rpartition(".")
    if "." in owner and what == "position":
        name = f"{owner}.location"
    elif owner and "." not in owner and what in _RENAMED:
        name = f"{owner}.{_RENAMED[what]}"
    else:
        return item
    return Parameter(name, item.value, item.unit, item.doc, item.tunable, item.hidden)
