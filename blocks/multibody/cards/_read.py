"""A system from a folder of cards."""

from __future__ import annotations

import keyword
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ....errors import BiellaWarning, DiagramError, name_list
from ...core.formula._formula import FUNCTIONS as FORMULA_FUNCTIONS
from ..system._bodies import OWN_NAMES, Body, Marker
from ..system._problems import Problems, doubt
from ..system._rotations import (
    Array,
    quaternion_from_rotation,
    rotation_from_quaternion,
)
from . import _file as files
from ._derivatives import check_driver
from ._expression import FUNCTIONS, as_value, read_expression
from ._file import Block, Entry, General
from ._frames import read_ends
from ._velocities import Velocity, find_velocities

if TYPE_CHECKING:
    from ..joints._joint import Joint
    from ..system._system import System

MassCenter = Literal["legacy", "physical"]
COORDINATES = ("x", "y", "z", "e0", "e1", "e2", "e3")
"""Names of the seven coordinates of a body, and with ``_rate`` of their rates."""

LOOKS = 201
"""Times at which the motion of a mechanism that is fully driven is tried."""

_QUANTITY = re.compile(r"(qpp|qp|q)([0-9]{1,9})$")
_ZERO = Entry("", "0", "")


@dataclass(frozen=True, slots=True)
class Cards:
    """What a folder of cards describes.

    Attributes
    ----------
    system
        The mechanism.
    start, end, intervals
        Time range in s and number of output intervals, from the card General. The time `t` of the
        system is counted from `start`.
    settings
        Of the solver, from the card QRTol: numbers by key, as printed. They are not used.
    """

    system: System
    start: float
    end: float
    intervals: int
    settings: Mapping[str, float] = field(default_factory=dict)


def read_s3d(
    folder: str | Path,
    *,
    mass_center: MassCenter | None = None,
    allow_nonphysical: bool = False,
) -> Cards:
    """Read a folder of NumDyn3D cards; see `System.from_s3d`.

    Returns
    -------
    Cards
        The system, and the time range and solver settings that the cards give.
    """
    from ..system._system import System

    return read_cards(System, folder, mass_center, allow_nonphysical)


def read_cards(
    system_type: type[System],
    folder: str | Path,
    mass_center: MassCenter | None,
    allow_nonphysical: bool,
) -> Cards:
    """Read a folder; the system is a new `system_type`."""
    if mass_center not in (None, "legacy", "physical"):
        raise DiagramError(f"`mass_center` is 'legacy' or 'physical', got {mass_center!r}.")
    folder = Path(folder)
    if not folder.is_dir():
        raise DiagramError(f"{folder} is no folder: a card set is a folder of files *.s3d.")
    problems = Problems()
    reader = _Reader(folder, problems, mass_center, allow_nonphysical)
    cards = reader.read(system_type)
    if not any(any(rates) for rates in reader.rates):
        return cards
    found = reader.find_velocities()
    # Bodies cannot be changed: they are made again, with the velocities that follow.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BiellaWarning)
        again = _Reader(folder, Problems(), mass_center, allow_nonphysical)
        again.velocities = found
        return again.read(system_type)


class _Reader:
    """Reads the cards of a folder in the order in which parts of a system are made."""

    def __init__(
        self,
        folder: Path,
        problems: Problems,
        mass_center: MassCenter | None,
        allow_nonphysical: bool,
    ) -> None:
        self.folder = folder
        self.problems = problems
        self.mass_center = mass_center
        self.allow_nonphysical = allow_nonphysical
        self.blocks: dict[str, dict[str, Block]] = {}
        self.bodies: list[Body] = []
        self.turned: list[bool] = []
        self.joints: dict[int, tuple[Joint, int, int]] = {}
        self.names: list[str] = []
        self.start = 0.0
        self.rates: list[list[float]] = []
        self.velocities: list[Velocity] = []
        self.driven: list[str] = []

    def read(self, system_type: type[System]) -> Cards:
        general = self.open()
        self.problems.stop()
        assert general is not None
        self.start = general.start
        self.system = system_type(general.title, (0.0, 0.0, 0.0))
        for number, name in enumerate(general.names, 1):
            self.names.append(self.free_name(name, f"body {number}"))
        free = self.find_free()
        for number in range(1, len(self.names) + 1):
            self.add_body(number, number in free)
        self.problems.stop()  # the rest needs the bodies
        for card, add in (
            (files.CONNECTION, self.add_joint),
            (files.FORCE, self.add_force),
            (files.SPRINGS, self.add_spring),
        ):
            for block in self.blocks[card].values():
                with self.placed(block.place):
                    add(block)
        self.add_drivers()
        settings = self.read_settings()
        self.problems.stop()
        self.check_drivers(general.end - general.start)
        self.problems.stop()
        return Cards(self.system, general.start, general.end, general.intervals, settings)

    def open(self) -> General | None:
        """Read all files; note those that are missing."""
        general = None
        for name in (files.GENERAL, files.CONNECTION, files.INERTIAL, files.START, files.FORCE,
                     files.SPRINGS, files.DRIVERS):  # fmt: skip
            path = files.find_card(self.folder, name)
            self.blocks[name] = {}
            if path is None:
                if name in (files.GENERAL, files.CONNECTION, files.INERTIAL, files.START):
                    self.problems.add(str(self.folder), f"the card `{name}` is missing.")
            elif name == files.GENERAL:
                general = files.read_general(path, self.problems)
            else:
                self.blocks[name] = files.read_blocks(path, self.problems)
        return general

    @contextmanager
    def placed(self, place: str) -> Iterator[None]:
        """Note errors with their place, unless they have one."""
        try:
            yield
        except DiagramError as error:
            for text in error.problems:
                known = re.match(r"[^:`]+\.s3d(, line \d+)?: ", text, re.IGNORECASE)
                self.problems.texts.append(text if known else f"{place}: {text}")

    def free_name(self, given: str, otherwise: str) -> str:
        """Return a name that no part has."""
        base = re.sub(r"[.'\"\\]", "_", given).strip() or otherwise
        taken = {*self.system.parts, *self.names, *OWN_NAMES, "gravity"}
        name, number = base, 2
        while name in taken:
            name, number = f"{base} {number}", number + 1
        return name

    def name_of(self, block: Block, kind: str) -> str:
        entry = block.get("name")
        return self.free_name(entry.value if entry else "", f"{kind} {block.tag}")

    # Bodies

    def find_free(self) -> set[int]:
        """Return the bodies that no joints tie to the ground."""
        tied = {0}
        pairs = []
        for block in self.blocks[files.CONNECTION].values():
            ends = [block.get(key) for key in ("body1", "body2")]
            if all(end is not None and files.is_whole(end.value) for end in ends):
                pairs.append({int(end.value) for end in ends if end is not None})
        for _ in pairs:
            for pair in pairs:
                if pair & tied:
                    tied |= pair
        return set(range(1, len(self.names) + 1)) - tied

    def body_block(self, card: str, number: int) -> Block | None:
        block = self.blocks[card].get(str(number))
        if block is None:
            self.problems.add(card, f"there is no block {number}, for body {number}.")
        return block

    def add_body(self, number: int, free: bool) -> None:
        inertial = self.body_block(files.INERTIAL, number)
        start = self.body_block(files.START, number)
        for card in (files.INERTIAL, files.START):
            for tag, block in self.blocks[card].items():
                if number == 1 and int(tag) not in range(1, len(self.names) + 1):
                    doubt(block.place, f"block {tag} is of no body and is ignored.")
        if inertial is None or start is None:
            return
        inertial.check_keys(("mass", "CoM", "inertia"))
        start.check_keys([f"{q}{n}" for q in ("q", "qp") for n in range(1, 8)])
        mass = inertial.numbers("mass", 1)
        tensor = inertial.numbers("inertia", 9)
        com = inertial.numbers("CoM", 3) if inertial.get("CoM") else [0.0] * 3
        q = [self.constant(start.need(f"q{n}")) for n in range(1, 8)]
        rates = [self.constant(start.get(f"qp{n}") or _ZERO) for n in range(1, 8)]
        if not (mass and tensor and com) or None in (*q, *rates):
            return
        if any(com) and self.mass_center is None:
            doubt(
                inertial.entries["CoM"].place,
                "the original program ignores CoM and so does this system: the mass center is the "
                "origin of the body. mass_center='physical' uses CoM, 'legacy' is as now.",
            )
        place, e = np.array(q[:3], dtype=float), np.array(q[3:], dtype=float)
        speeds = np.array(rates, dtype=float)
        e = self.read_rotation(start, e, speeds[3:])
        velocity, spin = self.velocities[number - 1] if self.velocities else (None, None)
        with self.placed(inertial.place):
            self.bodies.append(
                self.system.body(
                    self.names[number - 1],
                    mass=mass[0],
                    inertia=np.reshape(tensor, (3, 3)),
                    com=com if self.mass_center == "physical" else None,
                    position=place,
                    rotation=rotation_from_quaternion(e),
                    velocity=velocity,
                    angular_velocity=spin,
                    free=free,
                    allow_nonphysical=self.allow_nonphysical,
                )
            )
            found = quaternion_from_rotation(self.bodies[-1].rotation)
            self.turned.append(float(found @ e) < 0.0)
            self.rates.append(speeds.tolist())

    def read_rotation(self, block: Block, e: Array, rate: Array) -> Array:
        """Return unit Euler parameters; check that their rates keep them so."""
        length = float(np.linalg.norm(e))
        place = block.entries["q4"].place
        if abs(length - 1.0) > 1e-2:
            self.problems.add(place, f"q4 … q7 are Euler parameters of length {length:g}, not 1.")
            return np.array([1.0, 0.0, 0.0, 0.0])
        if abs(length - 1.0) > 1e-6:
            doubt(place, f"q4 … q7 have length {length:.9g}; they were divided by it.")
        e = e / length
        along = float(e @ rate)
        if abs(along) > 1e-6 * max(1.0, float(np.linalg.norm(rate))):
            self.problems.add(
                place, f"qp4 … qp7 change the length of the Euler parameters: pᵀṗ = {along:g}."
            )
        return e

    def find_velocities(self) -> list[Velocity]:
        """Return the velocities that follow from the given ones."""
        given = [
            [*rates[:3], *(-rate if turned else rate for rate in rates[3:])]
            for rates, turned in zip(self.rates, self.turned, strict=True)
        ]
        with self.placed(files.START):
            return find_velocities(self.system, given)
        self.problems.stop()
        raise AssertionError

    # Values

    def constant(self, entry: Entry | None) -> float | None:
        """Return the number of a constant expression; note a problem if it has none."""
        if entry is None:
            return None
        with self.placed(entry.place):
            value = as_value(read_expression(entry, _nothing_known))
            if isinstance(value, float):
                return value
            self.problems.add(entry.place, f"`{entry.key}` has no finite value: `{entry.value}`.")
        return None

    def refer(self, name: str) -> str:
        """Return what stands for a variable of an expression in a formula."""
        if name == "t":
            return f"(t + {self.start!r})" if self.start else "t"
        number, rate = self.find_quantity(name)
        body, what = divmod(number - 1, 7)
        path = f"{self.names[body]}.{COORDINATES[what]}{'_rate' * rate}"
        word = self.names[body]
        plain = word.isascii() and word.isidentifier() and not keyword.iskeyword(word)
        path = path if plain else f"'{path}'"
        return f"(-{path})" if what > 2 and self.turned[body] else path

    def find_quantity(self, name: str) -> tuple[int, bool]:
        """Return number and kind of a coordinate or rate, or raise a `DiagramError`."""
        match = _QUANTITY.match(name)
        most = 7 * len(self.names)
        if match is None:
            raise DiagramError(
                f"there is no variable `{name[:60]}`: there are t, q1 … q{most} and qp1 … qp{most}."
            )
        kind, number = match.group(1), int(match.group(2))
        if kind == "qpp":
            raise DiagramError(
                f"`{name}` is an acceleration, and a force that depends on one depends on itself."
            )
        if not 1 <= number <= most:
            raise DiagramError(f"`{name}`: {len(self.names)} bodies have {kind}1 … {kind}{most}.")
        return number, kind == "qp"

    def law(self, entry: Entry | None) -> float | str:
        """Return a number or formula; 0 after a problem."""
        if entry is None:
            return 0.0
        with self.placed(entry.place):
            return as_value(read_expression(entry, self.refer))
        return 0.0

    def laws(self, block: Block, keys: tuple[str, ...]) -> list[float | str]:
        missing = [key for key in keys if block.get(key) is None]
        if missing:
            doubt(block.place, f"{name_list(missing)} of block {block.tag} are missing: 0.")
        return [self.law(block.get(key)) if key not in missing else 0.0 for key in keys]

    def body(self, block: Block, key: str, *, ground: bool = True) -> Body | None:
        """Return the body of a number."""
        number = block.integer(key)
        least = 0 if ground else 1
        if number is None:
            return None
        if not least <= number <= len(self.bodies):
            self.problems.add(
                block.entries[key].place,
                f"`{key}` is a body from {least} to {len(self.bodies)}, got {number}.",
            )
            return None
        return self.bodies[number - 1] if number else self.system.ground

    def marker(self, body: Body, base: str, position: Any, **options: Any) -> Marker:
        """Add a marker to a body, with a name that is free."""
        name, number = base, 2
        while name in body.markers or name in OWN_NAMES:
            name, number = f"{base} {number}", number + 1
        return body.marker(name, position, **options)

    # Parts

    def add_joint(self, block: Block) -> None:
        ends = read_ends(block, self.body(block, "body1"), self.body(block, "body2"))
        if ends is None:
            return
        kind, first, second = ends
        name = self.name_of(block, "joint")
        markers = []
        for body, position, rotation in (first, second):
            options = {} if rotation is None else {"rotation": rotation}
            markers.append(self.marker(body, name, position, **options))
        joint = getattr(self.system, kind)(name, *markers)
        numbers = [int(block.entries[key].value) for key in ("body1", "body2")]
        self.joints[int(block.tag)] = (joint, numbers[0], numbers[1])

    def add_force(self, block: Block) -> None:
        groups = [tuple(f"{what}{axis}" for axis in "xyz") for what in ("F", "T", "p")]
        block.check_keys(("name", "body", "type", *(key for keys in groups for key in keys)))
        body, kind = self.body(block, "body", ground=False), block.integer("type")
        force, torque, point = (self.laws(block, keys) for keys in groups)
        if kind is not None and kind not in (1, 2):
            place = block.entries["type"].place
            self.problems.add(place, f"type is 1 (global axes) or 2 (local axes), got {kind}.")
            return
        if body is None or kind is None:
            return
        name = self.name_of(block, "force")
        frame: Literal["world", "body"] = "world" if kind == 1 else "body"
        moves = any(isinstance(item, str) for item in point)
        marker = self.marker(body, name, None if moves else point)
        if any(force) or not any(torque):
            self.system.force(name, marker, force, frame=frame, point=point if moves else None)
        if any(torque):
            self.system.torque(self.free_name(name, name), marker, torque, frame=frame)

    def add_spring(self, block: Block) -> None:
        places = [tuple(f"p{n}{axis}" for axis in "xyz") for n in (1, 2)]
        block.check_keys(
            ("name", "type", "body1", "body2", "K", "L0", "C", "A", "ConnectionID",
             *places[0], *places[1])
        )  # fmt: skip
        kind = block.integer("type")
        first, second = self.body(block, "body1"), self.body(block, "body2")
        free = self.constant(block.need("L0"))
        stiffness, damping, actuator = self.laws(block, ("K", "C", "A"))
        if kind is not None and kind not in (1, 2):
            place = block.entries["type"].place
            self.problems.add(place, f"type is 1 (length) or 2 (angle), got {kind}.")
            return
        if None in (kind, first, second, free):
            return
        assert first is not None and second is not None and free is not None
        name = self.name_of(block, "spring")
        if kind == 1:
            points = [[self.constant(block.need(key)) for key in keys] for keys in places]
            if None in (*points[0], *points[1]):
                return
            ends = [
                self.marker(body, name, at)
                for body, at in zip((first, second), points, strict=True)
            ]
            self.system.spring(
                name, ends[0], ends[1], stiffness=stiffness, damping=damping, free_length=free,
                force=actuator,
            )  # fmt: skip
            return
        joint = self.find_joint(block)
        if joint is not None:
            self.system.torsional_spring(
                name, joint, stiffness=stiffness, damping=damping, free_angle=free, torque=actuator
            )

    def find_joint(self, block: Block) -> Joint | None:
        """Return the joint on whose angle a torsional spring acts."""
        number = block.integer("ConnectionID")
        if number is None:
            return None
        place = block.entries["ConnectionID"].place
        found = self.joints.get(number)
        if found is None:
            if str(number) not in self.blocks[files.CONNECTION]:
                self.problems.add(place, f"there is no joint {number} in {files.CONNECTION}.")
            return None
        joint, *numbers = found
        if joint.kind not in ("revolute", "cylindrical"):
            self.problems.add(place, f"joint {number} is {joint.kind}: it has no angle.")
            return None
        given = [int(block.entries[key].value) for key in ("body1", "body2")]
        if given != numbers:
            self.problems.add(
                block.place,
                f"body1 and body2 are {given[0]} and {given[1]}, those of joint {number} "
                f"{numbers[0]} and {numbers[1]}: they must be the same.",
            )
            return None
        return joint

    # Drivers and settings

    def add_drivers(self) -> None:
        blocks = dict(self.blocks[files.DRIVERS])
        constants: dict[str, float] = {}

        def known(name: str) -> str:
            if name not in constants:
                raise DiagramError(f"there is no constant `{name}` above.")
            return f"({constants[name]!r})"

        first = blocks.pop("constants", None)
        for key, entry in first.entries.items() if first else ():
            taken = key in ("t", "pi", *FUNCTIONS) or _QUANTITY.match(key)
            if taken or not key.isidentifier():
                self.problems.add(entry.place, f"`{key}` cannot be the name of a constant.")
                continue
            with self.placed(entry.place):
                value = as_value(read_expression(entry, known))
                if isinstance(value, float):
                    constants[key] = value
        for block in blocks.values():
            with self.placed(block.place):
                self.add_driver(block, constants)

    def add_driver(self, block: Block, constants: Mapping[str, float]) -> None:
        entry = block.need("position")
        if entry is None:
            return
        used: dict[str, float] = {}
        variables: dict[str, str] = {}

        def refer(name: str) -> str:
            if name in constants:
                if keyword.iskeyword(name) or name in FORMULA_FUNCTIONS:
                    return f"({constants[name]!r})"
                used[name] = constants[name]
                return name
            if name == "t":
                return self.refer(name)
            _, rate = self.find_quantity(name)
            if rate:
                raise DiagramError(f"`{name}` is a rate: a driver is of coordinates and of t.")
            variables[name] = self.refer(name)
            return variables[name]

        formula = read_expression(entry, refer)
        check_driver(self, block, formula, refer, constants, variables)
        name = self.name_of(block, "driver")
        self.system.constraint(name, formula.text, parameters=used)
        self.driven.append(entry.place)

    def check_drivers(self, duration: float) -> None:
        """Note drivers that the pose cannot fulfil; warn if they ask the impossible later."""
        if not self.driven or self.velocities:  # with these, it is the second reading
            return
        place = self.driven[0]
        with self.placed(place):
            if self.system.report().freedom:
                return
            try:
                self.system.kinematics(np.linspace(0.0, duration, LOOKS).tolist())
            except DiagramError as error:
                text = " ".join(error.problems)
                doubt(place, f"the drivers cannot be followed over the whole time range: {text}")

    def read_settings(self) -> Mapping[str, float]:
        path = files.find_card(self.folder, files.SOLVER)
        if path is None:
            return MappingProxyType({})
        found = {}
        for key, entry in files.read_keys(path, self.problems).entries.items():
            numbers = files.read_numbers(entry, 1, self.problems)
            if numbers:
                found[key] = numbers[0]
        return MappingProxyType(found)


def _nothing_known(name: str) -> str:
    raise DiagramError(f"`{name}` is not known here: a number or a constant formula is expected.")
