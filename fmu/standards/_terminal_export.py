"""Terminals and icons of an exported FMU: which variables belong together, and the files."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...blocks.core._exports import Terminals
from ...errors import BiellaError, name_list, suggest
from ..exporter._variables import Variable
from ._terminals import FILE, FOLDER, RULES, Member, Terminal

_HALF = 100.0  # of the longer side of the icon, in units of its coordinate system
_SCALE = 0.1  # mm for each unit: FMI's default
_TERMINAL_ICON = "terminal"
_COLOR = (0, 114, 178)
_SIZE = 5.0  # half a side of the mark of a terminal
_PIXELS = 24


def choose_terminals(
    given: Terminals, variables: Sequence[Variable], version: str
) -> list[Terminal]:
    """Return the terminals of an FMU.

    Without a choice, inputs and outputs ``crank.angle``, ``crank.speed``, … with a common name
    before the last point are a terminal ``crank``, and in FMI 2.0 the elements of a vector are one.

    Raises
    ------
    BiellaError
        For a variable that the FMU does not have, a variable that is no input, output or
        parameter, an unknown matching rule, and repeated names.
    """
    if given is False:
        return []
    if given is True:
        return _group(variables, version)
    if not isinstance(given, Mapping):
        raise BiellaError(
            f"`terminals` must be True, False or a mapping such as "
            f"{{'crank': ['crank.angle', 'crank.speed']}}; got {given!r}."
        )
    by_name = {v.name: v for v in variables}
    return [_read(name, choice, by_name, version) for name, choice in given.items()]


def _group(variables: Sequence[Variable], version: str) -> list[Terminal]:
    found: dict[str, list[Variable]] = {}
    for variable in variables:
        if variable.causality in ("input", "output"):
            prefix = variable.name.rpartition(".")[0]
            found.setdefault(prefix, []).append(variable)
    terminals = []
    for prefix, group in found.items():
        if prefix and len(group) > 1:
            members = {v.name.rpartition(".")[2]: v for v in group}
            terminals.append(Terminal(prefix, "bus", _members(members, version)))
            continue
        for variable in group:
            if version.startswith("2") and variable.shape:
                elements = tuple(Member(name, name) for name in variable.element_names)
                terminals.append(Terminal(variable.name, "sequence", elements, "", variable.doc))
    names = {v.name for v in variables} if version.startswith("3") else set()
    return [t for t in terminals if t.name not in names]


def _members(chosen: Mapping[str, Variable], version: str) -> tuple[Member, ...]:
    """Return members; in FMI 2.0 each element of an array is one."""
    members = []
    for name, variable in chosen.items():
        if version.startswith("3") or not variable.shape:
            members.append(Member(name, variable.name))
            continue
        for element in variable.element_names:
            members.append(Member(f"{name}{element.removeprefix(variable.name)}", element))
    return tuple(members)


def _read(name: str, choice: Any, by_name: Mapping[str, Variable], version: str) -> Terminal:
    rule, members = choice if isinstance(choice, tuple) and len(choice) == 2 else ("bus", choice)
    if rule not in RULES:
        raise BiellaError(
            f"the terminal `{name}` has the matching rule {rule!r}; it must be one of "
            f"{name_list(RULES)}."
        )
    if isinstance(members, str) or not isinstance(members, Iterable):
        raise BiellaError(f"the terminal `{name}` requires a list of variables, got {members!r}.")
    if not isinstance(members, Mapping):
        members = list(members)
        short = [str(variable).rpartition(".")[2] for variable in members]
        keys = short if len(set(short)) == len(short) else members
        if len(set(members)) < len(members):
            raise BiellaError(f"the terminal `{name}` has a variable twice: {name_list(members)}.")
        members = dict(zip(keys, members, strict=True))
    if not members:
        raise BiellaError(f"the terminal `{name}` has no members.")
    chosen = {}
    for member, variable in members.items():
        if variable not in by_name:
            raise BiellaError(
                f"the terminal `{name}` has a member `{variable}`, which is no variable of the FMU."
                f"{suggest(str(variable), by_name)} Variables: {name_list(by_name)}."
            )
        if by_name[variable].causality == "local":
            raise BiellaError(
                f"the terminal `{name}` has a member `{variable}`, which is a local variable: FMI "
                f"allows inputs, outputs and parameters. Make it an output with outputs=[…]."
            )
        chosen[member] = by_name[variable]
    return Terminal(name, rule, _members(chosen, version))


def write_terminals(
    terminals: Sequence[Terminal], variables: Sequence[Variable], svg: str, png: bytes
) -> dict[str, bytes]:
    """Return the files of the folder: the description, the icon, and the mark of terminals."""
    width, height = _extent(png)
    root = ET.Element("fmiTerminalsAndIcons", fmiVersion="3.0")
    picture = ET.SubElement(root, "GraphicalRepresentation")
    box = {"x1": -width, "y1": -height, "x2": width, "y2": height}
    place = {key: f"{value:g}" for key, value in box.items()}
    ET.SubElement(picture, "CoordinateSystem", place, suggestedScalingFactorTo_mm=f"{_SCALE:g}")
    ET.SubElement(picture, "Icon", place)
    files = {f"{FOLDER}/icon.png": png}
    if svg:
        files[f"{FOLDER}/icon.svg"] = svg.encode()
    if terminals:
        holder = ET.SubElement(root, "Terminals")
        inputs = {name for v in variables if v.causality == "input"
                  for name in (v.name, *v.element_names)}  # fmt: skip
        left = [t for t in terminals if _is_left(t, inputs)]
        right = [t for t in terminals if t not in left]
        for terminal in terminals:
            side = left if terminal in left else right
            spot = 1.0 - 2.0 * (side.index(terminal) + 1) / (len(side) + 1)
            x = (-width if side is left else width, height * spot)
            _write(holder, terminal, x)
        files[f"{FOLDER}/{_TERMINAL_ICON}.png"] = _mark()
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    files[FILE] = f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()
    return files


def _write(holder: ET.Element, terminal: Terminal, at: tuple[float, float]) -> None:
    attributes = {"name": terminal.name, "matchingRule": terminal.rule}
    if terminal.kind:
        attributes["terminalKind"] = terminal.kind
    if terminal.description:
        attributes["description"] = terminal.description
    element = ET.SubElement(holder, "Terminal", attributes)
    for member in terminal.members:
        ET.SubElement(
            element,
            "TerminalMemberVariable",
            variableName=member.variable,
            memberName=member.name,
            variableKind=member.kind,
        )
    ET.SubElement(
        element,
        "TerminalGraphicalRepresentation",
        defaultConnectionColor=" ".join(map(str, _COLOR)),
        x1=f"{at[0] - _SIZE:g}",
        y1=f"{at[1] - _SIZE:g}",
        x2=f"{at[0] + _SIZE:g}",
        y2=f"{at[1] + _SIZE:g}",
        iconBaseName=_TERMINAL_ICON,
    )


def _is_left(terminal: Terminal, inputs: set[str]) -> bool:
    """Whether a terminal is drawn on the left: at least half of its members are inputs."""
    return 2 * sum(m.variable in inputs for m in terminal.members) >= len(terminal.members)


def _extent(png: bytes) -> tuple[float, float]:
    """Return half the width and height of an icon in its coordinate system."""
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        width, height = image.size
    longer = max(width, height)
    return _HALF * width / longer, _HALF * height / longer


def _mark() -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (_PIXELS, _PIXELS), _COLOR).save(file, "PNG", optimize=True)
    return file.getvalue()
