"""What the commands of a file make: objects by name, with their last values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ....errors import DiagramError, name_list
from ..system._problems import Problems
from ._commands import LOOKS, REFUSED
from ._expression import Call, Node, Operation, Vector, parse
from ._file import Command, Given, Value, read_commands
from ._items import Entry, Item, split_name
from ._language import find_command, name_parameters
from ._objects import ON_PARTS, Objects
from ._units import BASES, Units, choose, choose_unit

ORIENTATIONS = tuple(
    f"{kind}{sequence}"
    for kind in ("body", "space")
    for sequence in ("121", "123", "131", "132", "212", "213", "231", "232", "312", "313", "321",
                     "323")
)  # fmt: skip

# Kind of object by the first words of its command, and the parameter of its name.
_KINDS: tuple[tuple[str, str, str], ...] = (
    ("part", "part", "part_name"),
    ("marker", "marker", "marker_name"),
    ("floating_marker", "floating_marker", "floating_marker_name"),
    ("point", "point", "point_name"),
    ("constraint joint", "joint", "joint_name"),
    ("constraint primitive_joint", "joint", "jprim_name"),
    ("constraint motion_generator", "motion", "motion_name"),
    ("force element_like bushing", "force", "bushing_name"),
    ("force element_like", "force", "spring_damper_name"),
    ("force direct single_component_force", "force", "single_component_force_name"),
    ("force direct force_vector", "force", "force_vector_name"),
    ("force direct torque_vector", "force", "torque_vector_name"),
    ("force direct general_force", "force", "general_force_name"),
    ("force body gravitational", "gravity", "gravity_field_name"),
    ("variable", "variable", "variable_name"),
    ("ude instance", "ude", "instance_name"),
)


class Model(Objects):
    """What the commands of a file made, one after the other."""

    def __init__(self, path: Path, problems: Problems) -> None:
        super().__init__()
        self.path, self.problems = path, problems
        self.ignored: list[str] = []
        self.units: dict[str, float] = {}
        self.unit_place = ""
        self.has_numbers = False
        self.branches: list[str] = []
        self.convention = "body313"
        self.frame: str | None = None
        self.fold: Callable[[Node], Node] = lambda node: node

    def read(self) -> None:
        """Read the file; note every command that cannot be used."""
        for command in read_commands(self.path, self.problems):
            try:
                self.apply(command)
            except DiagramError as error:
                for text in error.problems:
                    known = text.startswith(f"{self.path.name}, line ")
                    self.problems.texts.append(text if known else f"{command.place}: {text}")
        for item in self.list_kind("refused"):
            reason = item.entries["text"].values[0]
            assert isinstance(reason, Value)
            self.problems.add(item.place, reason.text)
        self.problems.texts.sort(key=_line_of)
        for place in self.branches:
            self.problems.add(place, "`if` has no `end`. Is the file complete?")
        if not self.name and not self.problems.texts:
            self.problems.add(self.path.name, "there is no `model create`: the file has no model.")
        missing = [base for base in BASES if base not in self.units]
        if missing and not self.problems.texts:
            self.problems.add(
                self.path.name,
                f"the units of {name_list(missing)} are not given: add `defaults units` with "
                f"{', '.join(f'{base} = …' for base in missing)} before the model.",
            )

    def made_units(self) -> Units:
        """Return the units, after `read` without problems."""
        return Units(**{base: self.units[base] for base in BASES})

    # Commands

    def apply(self, command: Command) -> None:
        verdict, path = find_command(command)
        words = path.split()
        if verdict == "branch":
            self.branch(path, command)
            return
        if verdict != "ignore" and self.branches:
            raise DiagramError(
                f"`{' '.join(word.text for word in command.words)[:100]}` depends on the condition "
                f"of {self.branches[-1].split(', ')[1]}: conditions are not read."
            )
        if verdict == "refuse":
            self.refuse(path, command)
            return
        if verdict == "ignore":
            self.ignored.append(f"{command.place}: {path}")
            return
        if verdict == "look":
            self.look(path, command)
            return
        given = name_parameters(path, command)
        if words[0] == "defaults":
            self.set_defaults(words[1], given)
        elif words[0] == "model":
            if words[1] == "create":
                self.make_model(command, given)
        else:
            self.has_numbers = True
            self.change(words, command, given)

    def refuse(self, path: str, command: Command) -> None:
        """Note a command that is not read, unless what it creates is switched off later."""
        advice = f": {REFUSED[path]}" if REFUSED[path] else ""
        said = " ".join(word.text for word in command.words)
        text = f"`{said[:100]}` is not read, and it changes the motion{advice}."
        first = command.given[0] if command.given else None
        if first is None or not first.name.endswith("_name") or " create" not in f" {said.lower()}":
            raise DiagramError(text)
        item = self.create("refused", path, _word(first), command.place)
        item.entries["text"] = Entry("text", (Value("text", text, command.place),), command.place)

    def branch(self, path: str, command: Command) -> None:
        """Follow `if` … `end`; exported files choose colors so."""
        self.ignored.append(f"{command.place}: {path}")
        if path == "if":
            self.branches.append(command.place)
        elif not self.branches:
            raise DiagramError(f"`{path}` has no `if` before it: loops of scripts are not read.")
        elif path == "end":
            self.branches.pop()

    def look(self, path: str, command: Command) -> None:
        """Read ``active`` of an object; the rest is appearance."""
        self.ignored.append(f"{command.place}: {path}")
        if _abbreviated(command, "expr_active", 3) is not None:
            raise DiagramError(f"`{path}` has `expr_active`: what depends on it is not clear.")
        off = {"active": False, "dependents_active": False}
        for name in off:
            state = _abbreviated(command, name)
            if state is None:
                continue
            value = choose(f"`{name}`", _word(state), ("on", "off", "no_opinion"))
            off[name] = value == "off"
            named = _abbreviated(command, LOOKS[path])
            if named is None:
                raise DiagramError(f"`{path}` has no `{LOOKS[path]}`.")
            item = self.items.get(self.key_of(_word(named)))
            if (
                item is not None
                and name == "active"
                and item.kind not in ON_PARTS
                and item.sub != "ground"
            ):
                item.active = not off[name]
            elif off[name]:
                raise DiagramError(
                    f"`{_word(named)[:80]}` is switched off with all that belongs to it: delete it "
                    f"in Adams View before the export."
                )

    def set_defaults(self, what: str, given: Mapping[str, Given]) -> None:
        if what == "units":
            self.set_units(given)
        elif what == "model":
            if "model_name" in given:
                self.find_model(_word(given["model_name"]))
            if "part_name" in given:
                item = self.find(_word(given["part_name"]), self.part, ("part",))
                self.part = item.key
        elif "default_coordinate_system" in given:
            name = _word(given["default_coordinate_system"])
            self.frame = None if self.is_model(name) else name
            if self.frame is not None:
                self.frame = self.find(name, self.part, ("part", "marker")).name

    def set_units(self, given: Mapping[str, Given]) -> None:
        for base, entry in given.items():
            if base == "coordinate_system_type":
                if choose(f"`{base}`", _word(entry), ("cartesian", "cylindrical", "spherical")) != (
                    "cartesian"
                ):
                    raise DiagramError(f"{entry.place}: only cartesian coordinates are read.")
            elif base == "orientation_type":
                self.convention = choose(f"`{base}`", _word(entry), ORIENTATIONS)
            else:
                try:
                    value = choose_unit(base, _word(entry))
                except DiagramError as error:
                    raise DiagramError([f"{entry.place}: {t}" for t in error.problems]) from None
                if self.has_numbers and self.units.get(base, value) != value:
                    raise DiagramError(
                        f"{entry.place}: the unit of {base} changes within the model: see "
                        f"{self.unit_place}. Write the file in one set of units."
                    )
                self.units[base] = value
                self.unit_place = entry.place.split(", ")[1]

    def make_model(self, command: Command, given: Mapping[str, Given]) -> None:
        name = _word(_need(given, "model_name", "model create"))
        if self.name:
            raise DiagramError(
                f"there is the model `{self.name}` already: a file has one model, without "
                f"sub-models."
            )
        parts = split_name(name)
        if len(parts) != 1:
            raise DiagramError(f"a model has a name without dots inside, got `{name[:60]}`.")
        self.name = parts[0]
        key = (self.name.casefold(), "ground")
        self.items[key] = Item("part", "ground", f".{self.name}.ground", key, command.place)
        self.part = key

    def change(self, words: Sequence[str], command: Command, given: Mapping[str, Given]) -> None:
        """Create or modify an object."""
        creates = "create" in words
        rest = " ".join(word for word in words if word not in ("create", "modify", "set"))
        kind, name_parameter = next(
            (kind, parameter) for start, kind, parameter in _KINDS if rest.startswith(start)
        )
        named = _word(_need(given, name_parameter, " ".join(words)))
        sub = rest.split()[-1]
        entries = {
            name: self.store(entry) for name, entry in given.items() if name != name_parameter
        }
        if kind == "variable" and self.set_property(named, entries):
            return
        adds = kind == "part" and sub != "name_and_position"
        known = self.items.get(self.complete(named, kind)[0]) if "set" in words else None
        if not (creates or ("set" in words and known is None)) or adds:
            item = self.find(named, self.part, (kind,))
            if kind in ("joint", "force") and item.sub != sub:
                raise DiagramError(
                    f"`{item.name}` is a {item.sub} ({item.place.split(', ')[1]}), not a {sub}."
                )
        else:
            item = self.create(kind, sub, named, command.place)
        self.place_frames(item, entries, given)
        item.entries |= entries
        if kind == "part" and not adds:
            self.part = item.key

    def create(self, kind: str, sub: str, named: str, place: str) -> Item:
        key, name = self.complete(named, kind)
        known = self.items.get(key)
        if known is not None and known.sub == "ground" and kind == "part":
            return known
        if known is not None:
            raise DiagramError(
                f"there is `{known.name}` already: see {known.place.split(', ')[1]}. Upper and "
                f"lower case are the same in names."
            )
        if kind in ON_PARTS and self.owner(key) is None:
            raise DiagramError(
                f"`{name}` is on no part: its name is .{self.name}.PART.{split_name(name)[-1]}, or "
                f"`defaults model part_name` comes before. Parts: {self.list_names('part')}."
            )
        item = self.items[key] = Item(kind, sub, name, key, place)
        return item

    def place_frames(
        self, item: Item, entries: dict[str, Entry], given: Mapping[str, Given]
    ) -> None:
        """Say of a location and orientation in which axes they are."""
        frame = self.frame
        relative = entries.pop("relative_to", None)
        if relative is not None:
            frame = _word(given["relative_to"])
            frame = None if self.is_model(frame) else frame
        for name in ("location", "orientation"):
            if name in entries:
                entries[name] = replace(entries[name], frame=frame)

    def set_property(self, named: str, entries: Mapping[str, Entry]) -> bool:
        """Set a variable inside an assembly, such as the stiffness of a spring."""
        parts = split_name(named)
        if len(parts) < 3:
            return False
        owner = self.items.get(tuple(part.casefold() for part in parts[:-1]))
        if owner is None or owner.kind != "ude":
            return False
        for entry in entries.values():
            owner.entries[parts[-1].casefold()] = entry
        return True

    def store(self, given: Given) -> Entry:
        """Return a parameter with its expressions parsed."""
        values: list[Value | Node] = []
        for value in given.values:
            if value.kind != "expression":
                values.append(value)
                continue
            try:
                values.append(self.fold_evaluated(parse(value.text)))
            except RecursionError:
                raise DiagramError(f"{value.place}: `{given.name}` is nested too deep.") from None
            except DiagramError as error:
                raise DiagramError(
                    [f"{value.place}: `{given.name}`: {text}" for text in error.problems]
                ) from None
        return Entry(given.name, tuple(values), given.place, None, self.convention, self.part)

    def fold_evaluated(self, node: Node) -> Node:
        """Replace ``eval(…)``, which has the value of this moment, by that value."""
        match node:
            case Call("eval", arguments):
                if len(arguments) != 1:
                    raise DiagramError("`eval` has one argument.")
                return self.fold(self.fold_evaluated(arguments[0]))
            case Call(name, arguments):
                return Call(name, tuple(map(self.fold_evaluated, arguments)))
            case Operation(mark, operands):
                return Operation(mark, tuple(map(self.fold_evaluated, operands)))
            case Vector(items, unit):
                return Vector(tuple(map(self.fold_evaluated, items)), unit)
        return node


def _line_of(text: str) -> int:
    """Return the line of a problem, to list them in the order of the file."""
    match = re.match(r"[^:]*, line (\d+): ", text)
    return int(match.group(1)) if match else 0


def _abbreviated(command: Command, name: str, least: int = 1) -> Given | None:
    """Return a parameter of a command whose other parameters are not known."""
    found = (one for one in command.given if len(one.name) >= least and name.startswith(one.name))
    return next(found, None)


def _word(given: Given) -> str:
    """Return the only word of a parameter."""
    if len(given.values) != 1:
        raise DiagramError(f"{given.place}: `{given.name}` has one value, got {len(given.values)}.")
    return given.values[0].text


def _need(given: Mapping[str, Given], name: str, command: str) -> Given:
    if name not in given:
        raise DiagramError(f"`{command}` has no `{name}`.")
    return given[name]
