"""A system written as a folder of cards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ....errors import DiagramError, name_list
from ...core.formula._formula import Term, Variable
from ..elements._element import Constraint, Element
from ..elements._formula_constraint import FormulaConstraint
from ..elements._joint_load import JointLoad
from ..elements._load import Load
from ..elements._spring import Spring
from ..elements._torsional_spring import TorsionalSpring
from ..elements.formula._point_force import PointForce
from ..joints._joint import Joint
from ..system._bodies import Body, Marker
from ..system._laws import AbstractLaw, Constant, Formula, Linear, Sine
from ..system._problems import doubt
from ..system._reading import read_number
from ..system._rotations import Array, quaternion_from_rotation
from . import _file as files
from ._frames import KINDS
from ._read import COORDINATES, MassCenter
from ._terms import ZERO, add, differentiate, write_term

if TYPE_CHECKING:
    from ..system._system import System

_NUMBERS = {kind: number for number, kind in KINDS.items()}
_HINT = "It cannot be expressed in cards"
Lines = list[str]


def write_cards(
    system: System,
    folder: str | Path,
    start: float,
    end: float,
    intervals: int,
    settings: Mapping[str, float] | None,
    mass_center: MassCenter,
) -> Path:
    """Write a system as cards; see `System.to_s3d`."""
    if mass_center not in ("legacy", "physical"):
        raise DiagramError(f"`mass_center` is 'legacy' or 'physical', got {mass_center!r}.")
    start, end = read_number("`start`", start), read_number("`end`", end)
    if not end > start:
        raise DiagramError(f"`end` must be later than `start`, got {start:g} and {end:g} s.")
    if isinstance(intervals, bool) or not isinstance(intervals, int) or intervals < 1:
        raise DiagramError(f"`intervals` is a positive whole number, got {intervals!r}.")
    system.validate()
    cards = _Writer(system, start, mass_center == "legacy").write()
    cards[files.GENERAL] = _write_general(system, start, end, intervals)
    if settings:
        lines = [f"{key} = {read_number(f'setting `{key}`', settings[key])!r}" for key in settings]
        cards[files.SOLVER] = "\n".join([files.VERSION, *lines]) + "\n"
    folder = Path(folder)
    every = (files.GENERAL, files.CONNECTION, files.INERTIAL, files.FORCE, files.START,
             files.SPRINGS, files.DRIVERS, files.SOLVER)  # fmt: skip
    if folder.is_dir():
        stale = [name for name in every if name not in cards and files.find_card(folder, name)]
        if stale:
            raise DiagramError(
                f"{folder} has cards that `{system.name}` does not need: {name_list(stale)}. They "
                f"would be read with the others: delete them, or choose another folder."
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in cards.items():
            (files.find_card(folder, name) or folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise DiagramError(f"the cards cannot be written to {folder}: {error}.") from None
    return folder


def _write_general(system: System, start: float, end: float, intervals: int) -> str:
    rows = [f"{number} | {body.name}" for number, body in enumerate(system.bodies, 1)]
    head = [system.name, f"NB {len(rows)}", f"TI {start!r}", f"TE {end!r}", f"ST {intervals}"]
    return "\n".join([*head, "PP N", "ID | BODY NAME", *rows]) + "\n"


def _vector(values: Sequence[float] | Array) -> str:
    return " ".join(repr(float(value) + 0.0) for value in values)


class _Writer:
    """Writes the cards of a system; notes what they cannot express."""

    def __init__(self, system: System, start: float, legacy: bool) -> None:
        self.system = system
        self.start = start
        self.legacy = legacy
        self.problems: list[str] = []
        self.joints = {joint.name: n for n, joint in enumerate(system.joints, 1)}
        self.blocks: dict[str, list[Lines]] = {
            name: []
            for name in (files.CONNECTION, files.INERTIAL, files.START, files.FORCE,
                         files.SPRINGS, files.DRIVERS)
        }  # fmt: skip

    def write(self) -> dict[str, str]:
        for name in [self.system.name, *self.system.parts]:
            if not name or set("\n\r") & set(name) or name != name.strip() or name[0] == "!":
                self.problems.append(f"the name {name!r} cannot be written on a line.")
        for body in self.system.bodies:
            self.add_body(body)
        for joint in self.system.joints:
            self.add_joint(joint)
        self.add_weights()
        for element in self.system.elements:
            self.add_element(element)
        for item in self.system.constraints:
            self.add_driver(item)
        if self.problems:
            raise DiagramError(list(dict.fromkeys(self.problems)))
        cards = {}
        for name, blocks in self.blocks.items():
            lines = [files.VERSION]
            for number, block in enumerate(blocks, 1):
                lines += ["", f"begin({number})", *block, f"end({number})"]
            if blocks or name == files.CONNECTION:
                cards[name] = "\n".join(lines) + "\n"
        return cards

    def refuse(self, name: str, why: str, card: str) -> None:
        self.problems.append(f"`{name}`: {why}. {_HINT} (`{card}`).")

    def shift(self, body: Body) -> Array:
        """Return where the frame of the cards is on a body."""
        return body.com if self.legacy else np.zeros(3)

    def number(self, body: Body) -> int:
        return body.index + 1

    def point(self, marker: Marker) -> Array:
        return marker.position - self.shift(marker.body)

    def is_fixed(self, name: str, *markers: Marker, card: str) -> bool:
        moving = [marker.path for marker in markers if marker.motion]
        if moving:
            self.refuse(name, f"the marker `{moving[0]}` moves on its body", card)
        return not moving

    def add_body(self, body: Body) -> None:
        com = np.zeros(3) if self.legacy else body.com
        rows = [_vector(row) for row in body.inertia]
        self.blocks[files.INERTIAL].append(
            [f"mass={body.mass!r}", f"CoM={_vector(com)}", "inertia=[", *rows, "]"]
        )
        arm = body.rotation @ self.shift(body)
        e, w = quaternion_from_rotation(body.rotation), body.angular_velocity
        rate = 0.5 * np.array([-w @ e[1:], *(e[0] * w + np.cross(w, e[1:]))])
        q = [*(body.position + arm), *e]
        speed = [*(body.velocity + np.cross(w, arm)), *rate]
        self.blocks[files.START].append(
            [f"{key}{n}={float(value) + 0.0!r}" for key, values in (("q", q), ("qp", speed))
             for n, value in enumerate(values, 1)]
        )  # fmt: skip

    def add_joint(self, joint: Joint) -> None:
        card = files.CONNECTION
        number = _NUMBERS.get(joint.kind)
        if number is None:
            self.refuse(joint.name, f"a {joint.kind} joint has no type", card)
            return
        if not self.is_fixed(joint.name, joint.first, joint.second, card=card):
            return
        block = [f"name={joint.name}", f"type={number}"]
        block += [f"body{n}={self.number(end.body)}" for n, end in self.ends(joint)]
        for n, end in self.ends(joint):
            frame = joint.frame_i if n == 1 else joint.frame_j
            f, h = frame[:, 0], frame[:, 2]
            if self.system.planar and number in (2, 5):
                f, h = h, f
            if number == 2 and n == 2:
                f = np.cross(h, f)
            p = self.point(end)
            block += [f"P{n}={_vector(p)}", f"Q{n}={_vector(p + h)}", f"R{n}={_vector(p + f)}"]
        self.blocks[card].append(block)

    @staticmethod
    def ends(joint: Joint | Spring) -> list[tuple[int, Marker]]:
        return [(1, joint.first), (2, joint.second)]

    # Expressions

    def refer(self, variable: Variable) -> str:
        if variable.name == "t":
            return f"(t-{self.start!r})" if self.start else "t"
        if variable.name.endswith("]"):
            variable = _variable(variable.name)
        owner, _, what = variable.name.rpartition(".")
        body = self.system.parts.get(owner)
        if what in ("position", "velocity") and variable.index is not None:
            what = COORDINATES[variable.index] + "_rate" * (what == "velocity")
        place = what.removesuffix("_rate")
        if not isinstance(body, Body) or body.is_ground or place not in COORDINATES:
            raise DiagramError(f"there is no coordinate of a body called `{variable.name}`")
        if place in "xyz" and self.shift(body).any():
            raise DiagramError(
                f"`{variable.name}` is of the frame, but the frame of the cards is at the mass "
                f"center of `{body.name}` (use mass_center='physical')"
            )
        number = 7 * body.index + COORDINATES.index(place) + 1
        return f"{'qp' if what.endswith('_rate') else 'q'}{number}"

    def law(self, name: str, law: AbstractLaw, card: str) -> str:
        """Return a law as an expression; note a problem if there is none."""
        t = self.refer(Variable("t", None, 0))
        match law:
            case Constant(number):
                return repr(number)
            case Linear(start, slope):
                return f"{start!r}+({slope!r})*{t}"
            case Sine(amplitude, omega, phase, offset):
                return f"{offset!r}+({amplitude!r})*sin({omega!r}*{t}+({phase!r}))"
            case Formula():
                try:
                    return write_term(law.parsed.term, self.known(law.parameters))
                except DiagramError as error:
                    self.refuse(name, f"in `{law.text}`: {' '.join(error.problems)}", card)
            case _:
                self.refuse(name, f"its law is a {type(law).__name__}", card)
        return "0"

    def known(self, parameters: Mapping[str, float]) -> Callable[[Variable], str]:
        def refer(variable: Variable) -> str:
            if variable.name in parameters and variable.index is None:
                return f"({parameters[variable.name]!r})"
            return self.refer(variable)

        return refer

    # Forces

    def add_force(
        self, name: str, body: Body, kind: int, force: Sequence[str], torque: Sequence[str],
        point: Sequence[str],
    ) -> None:  # fmt: skip
        block = [f"name={name}", f"body={self.number(body)}", f"type={kind}"]
        for what, values in (("F", force), ("T", torque), ("p", point)):
            block += [f"{what}{axis}={value}" for axis, value in zip("xyz", values, strict=True)]
        self.blocks[files.FORCE].append(block)

    def add_weights(self) -> None:
        if not self.system.gravity.any():
            return
        for body in self.system.bodies:
            if body.mass:
                force = [repr(float(g) + 0.0) for g in body.mass * self.system.gravity]
                point = [repr(float(x) + 0.0) for x in body.com - self.shift(body)]
                name = f"weight of {body.name}"
                self.add_force(name, body, 1, force, ["0"] * 3, point)

    def add_element(self, element: Element) -> None:
        match element:
            case Load():
                self.add_load(element)
            case Spring():
                self.add_spring(element)
            case TorsionalSpring():
                coefficients = (element.stiffness, element.damping, element.torque)
                self.add_torsion(
                    element.name, element.joint, element.coordinate, element.free_angle,
                    [self.law(element.name, law, files.SPRINGS) for law in coefficients],
                )  # fmt: skip
            case JointLoad() if element.of.kind == "angle":
                effort = self.law(element.name, element.effort, files.SPRINGS)
                laws = ["0", "0", f"-({effort})"]
                self.add_torsion(element.name, element.joint, element.coordinate, 0.0, laws)
            case _:
                kind = type(element).__name__
                self.refuse(element.name, f"there is no card for a {kind}", files.FORCE)

    def add_load(self, load: Load) -> None:
        card, marker = files.FORCE, load.marker
        if not self.is_fixed(load.name, marker, card=card):
            return
        values = [self.law(load.name, law, card) for law in load.components]
        if load.frame == "marker":
            values = _turn(marker.rotation, values)
        point = [repr(float(x) + 0.0) for x in self.point(marker)]
        if isinstance(load, PointForce):
            added = [self.law(load.name, law, card) for law in load.point]
            point = [f"{a}+({b})" for a, b in zip(point, added, strict=True)]
        efforts = (values, ["0"] * 3) if load.effort == "force" else (["0"] * 3, values)
        self.add_force(load.name, marker.body, 1 if load.frame == "world" else 2, *efforts, point)

    def add_spring(self, spring: Spring) -> None:
        card = files.SPRINGS
        if not self.is_fixed(spring.name, spring.first, spring.second, card=card):
            return
        if set(spring.components) < set("xy" if self.system.planar else "xyz"):
            self.refuse(spring.name, f"only {spring.components} of its force acts", card)
            return
        laws = (spring.stiffness, spring.damping, spring.force)
        k, c, a = (self.law(spring.name, law, card) for law in laws)
        block = [f"name={spring.name}", "type=1"]
        block += [f"body{n}={self.number(end.body)}" for n, end in self.ends(spring)]
        block += [f"K={k}", f"L0={spring.free_length!r}", f"C={c}", f"A={a}"]
        for n, end in self.ends(spring):
            at = self.point(end)
            block += [f"p{n}{axis}={float(x) + 0.0!r}" for axis, x in zip("xyz", at, strict=True)]
        self.blocks[card].append(block)

    def add_torsion(
        self, name: str, joint: Joint, coordinate: int, free: float, laws: list[str]
    ) -> None:
        if joint.kind not in ("revolute", "cylindrical"):
            self.refuse(name, f"it acts on an angle of a {joint.kind} joint", files.SPRINGS)
            return
        del coordinate  # these joints have one angle
        bodies = [f"body{n}={self.number(end.body)}" for n, end in self.ends(joint)]
        block = [f"name={name}", "type=2", *bodies, f"K={laws[0]}", f"L0={free!r}"]
        block += [f"C={laws[1]}", f"A={laws[2]}", f"ConnectionID={self.joints[joint.name]}"]
        self.blocks[files.SPRINGS].append(block)

    # Drivers

    def add_driver(self, item: Constraint) -> None:
        card = files.DRIVERS
        if not isinstance(item, FormulaConstraint):
            why = f"a {type(item).__name__} is not a formula of the coordinates of bodies"
            self.refuse(item.name, why, card)
            return
        try:
            self.blocks[card].append(self.write_driver(item))
        except DiagramError as error:
            self.refuse(item.name, f"in `{item.text}`: {' '.join(error.problems)}", card)

    def write_driver(self, item: FormulaConstraint) -> Lines:
        psi, known = item.formula.term, self.known(item.numbers)
        t = differentiate(psi, "t")
        block = [f"name={item.name}", f"position={write_term(psi, known)}"]
        block += [f"PSI_t={write_term(t, known)}"]
        block += [f"PSI_tt={write_term(differentiate(t, 't'), known)}"]
        rates: dict[str, Term] = {}  # a coordinate may have two names: b.x and b.position[0]
        for key in item.keys:
            number = known(_variable(key)).removeprefix("q")
            rates[number] = add(rates.get(number, ZERO), differentiate(psi, key))
        for number, rate in rates.items():
            mixed = differentiate(rate, "t")
            block.append(f"PSI_q({number})={write_term(rate, known)}")
            if mixed != ZERO:
                block.append(f"PSI_qt({number})={write_term(mixed, known)}")
            if any(differentiate(rate, other) != ZERO for other in item.keys):
                doubt(
                    files.DRIVERS,
                    f"`{item.name}` is not linear in the coordinates: the original program has no "
                    f"key for its second derivatives.",
                )
        return block


def _variable(key: str) -> Variable:
    name, bracket, index = key.partition("[")
    return Variable(name, int(index[:-1]) if bracket else None, 0)


def _turn(rotation: Array, values: Sequence[str]) -> list[str]:
    """Return components, turned by a matrix."""
    rows = []
    for row in rotation:
        parts = [
            value if factor == 1.0 else f"{float(factor)!r}*({value})"
            for factor, value in zip(row, values, strict=True)
            if factor != 0.0 and value not in ("0", "0.0")
        ]
        rows.append("+".join(parts) or "0")
    return rows
