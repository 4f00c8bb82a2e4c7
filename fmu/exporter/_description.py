"""modelDescription.xml of an exported FMU: what both versions of FMI say alike.

`_description2` and `_description3` write the file.
"""

from __future__ import annotations

import hashlib
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...blocks.core._units import BASE_UNITS, parse_unit
from ...errors import BiellaError, suggest
from ...scheduler.compile.plan._plan import Plan
from ...scheduler.engine._library import contract
from ._clocks import Clock
from ._exchange import TOLERANCE, Exchange
from ._variables import Variable

VERSIONS = ("2.0", "3.0")
LOG_CATEGORIES = {
    "logEvents": "start and end of a simulation",
    "logStatusError": "reason of a failed call",
    "logStatusWarning": "warnings of the start and, at the end, of the run",
    "logStatusDiscard": "reason of a rejected value or step",
    "logAll": "everything",
}
_DISPLAY_UNITS = {
    "rad": {"deg": 180 / math.pi},
    "rad/s": {"deg/s": 180 / math.pi, "rev/min": 30 / math.pi},
}
"""What a tool may show instead: its value is the factor times ours."""
ABOUT = ("author", "version", "license", "copyright", "description")
"""What a user may say about a model, by FMI's names."""


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a model description is written from.

    Attributes
    ----------
    plan
        What the FMU runs.
    variables
        Those to be shown.
    version
        Of biella.
    sources
        Whether the FMU has its C sources with it.
    needs
        For each platform the least glibc that its binary needs, if any.
    about
        What the user says about the model: see `ABOUT`.
    kind
        See `Diagram.export_fmu`.
    exchange
        The interface for model exchange, if it is offered.
    clocks
        In FMI 3.0.
    """

    plan: Plan
    variables: Sequence[Variable]
    version: str
    sources: bool = False
    needs: Mapping[str, str | None] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    kind: str = "cs"
    exchange: Exchange | None = None
    clocks: Sequence[Clock] = ()

    @property
    def identifier(self) -> str:
        """The model's name as a C identifier."""
        return model_identifier(self.plan.name)

    @property
    def token(self) -> str:
        """The GUID, or instantiation token, that ties a description to its plan.

        It has two parts: the checksum in the head of the plan, which the FMU compares with that of
        the plan it finds; and a hash of the whole plan and of all that the description says
        besides.
        """
        checksum = int.from_bytes(self.plan.data[16:24], "little")
        said = hashlib.sha256(self.plan.data)
        said.update(repr((self.version, list(self.variables))).encode())
        if self.about:
            said.update(repr(sorted(self.about.items())).encode())
        if self.exchange is not None:
            said.update(repr(self.exchange).encode())
        if self.clocks:
            said.update(repr(list(self.clocks)).encode())
        return f"{{biella-{checksum:016x}-{said.hexdigest()[:16]}}}"

    @property
    def first_state(self) -> int:
        """Reference of the first state; derivatives and event indicators follow the states."""
        return len(self.plan.sections["VARS"]) // 12

    @property
    def time_reference(self) -> int:
        """Reference of time, in FMI 3.0; clocks follow it."""
        exchange = self.exchange
        more = 2 * len(exchange.states) + exchange.indicators if exchange is not None else 0
        return self.first_state + more

    @property
    def description(self) -> str:
        """What the user says, and how the FMU steps."""
        said = self.about.get("description", "")
        return f"{said} {summarize(self.plan, self.needs)}".strip()

    @property
    def output_derivative_order(self) -> int:
        """Only a continuous output has a derivative, and the order is one for all of them."""
        ports = self.plan.outputs.values()
        return int(all(port.kind == "real" and not port.sampled for port in ports))

    @property
    def fixed_step(self) -> bool:
        """Whether the solver takes steps of fixed length."""
        control = memoryview(self.plan.sections.get("SOLV", b"")).cast("d")
        return not control or control[contract.BL_CONTROL_RELATIVE] == 0.0


def check_version(version: str) -> str:
    """Return a version of FMI as FMI writes it.

    Raises
    ------
    BiellaError
        For an unknown version.
    """
    known = {"2": "2.0", "3": "3.0"} | {name: name for name in VERSIONS}
    if str(version) not in known:
        raise BiellaError(f'there is no export for FMI {version}: choose version="2.0" or "3.0".')
    return known[str(version)]


def check_about(about: Mapping[str, str] | None) -> dict[str, str]:
    """Return what a user says about a model.

    Raises
    ------
    BiellaError
        For an unknown key, and for what is not text.
    """
    if about is None:
        return {}
    for key, text in about.items():
        if key not in ABOUT:
            raise BiellaError(
                f"`about` has no entry `{key}`.{suggest(key, ABOUT)} Entries: {', '.join(ABOUT)}."
            )
        if not isinstance(text, str):
            raise BiellaError(f"`about` must contain text; `{key}` is {text!r}.")
    return {key: clean(about[key]) for key in ABOUT if about.get(key)}


def model_identifier(name: str) -> str:
    """Return `name` as a C identifier."""
    identifier = re.sub(r"\W", "_", name, flags=re.ASCII)
    return identifier if re.match(r"[A-Za-z_]", identifier) else f"_{identifier}"


def summarize(plan: Plan, needs: Mapping[str, str | None]) -> str:
    """Return a sentence about an FMU: how it steps, and what its binaries need."""
    text = f"Base step {plan.step:g} s, solver {plan.solver}."
    for platform, glibc in needs.items():
        if glibc is not None:
            text += f" On {platform} it requires glibc {glibc} or newer."
    return text


def clean(text: str) -> str:
    """Return `text` without the characters that XML does not have."""
    return re.sub(r"[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+", " ", text)


def naming_convention(names: Sequence[str]) -> str:
    """Return FMI's word for the form of the names of variables."""
    pattern = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(\[\d+(,\d+)*\])?\Z", re.ASCII)
    return "structured" if all(pattern.match(name) for name in names) else "flat"


def add_units(root: ET.Element, names: Sequence[str]) -> None:
    """Define units by their names."""
    if not names:
        return
    definitions = ET.SubElement(root, "UnitDefinitions")
    for name in sorted(set(names)):
        unit = parse_unit(name)
        element = ET.SubElement(definitions, "Unit", name=name)
        attributes = {
            base: str(power)
            for base, power in zip(BASE_UNITS, unit.exponents, strict=False)
            if power
        }
        if unit.factor != 1.0:
            attributes["factor"] = repr(unit.factor)
        if unit.offset != 0.0:
            attributes["offset"] = repr(unit.offset)
        ET.SubElement(element, "BaseUnit", attributes)
        for shown, factor in _DISPLAY_UNITS.get(name, {}).items():
            ET.SubElement(element, "DisplayUnit", name=shown, factor=repr(factor))


def list_units(variables: Sequence[Variable]) -> list[str]:
    """Return the units of real variables."""
    return [v.unit for v in variables if v.unit is not None and v.kind == "real"]


def add_log_and_experiment(root: ET.Element, contents: Contents) -> None:
    """List the log categories, and the times that a tool may begin with."""
    categories = ET.SubElement(root, "LogCategories")
    for name, text in LOG_CATEGORIES.items():
        ET.SubElement(categories, "Category", name=name, description=text)
    plan = contents.plan
    start = plan.start_time
    experiment = ET.SubElement(
        root,
        "DefaultExperiment",
        startTime=repr(start),
        stopTime=repr(start + 1000 * plan.step),
    )
    if contents.exchange is not None:
        experiment.set("tolerance", repr(TOLERANCE))
    experiment.set("stepSize", repr(plan.step))


def name_types(variables: Sequence[Variable]) -> dict[tuple[str, ...], str]:
    """Return what the enumeration with each set of names is called."""
    types: dict[tuple[str, ...], str] = {}
    for v in variables:
        if v.names:
            types.setdefault(v.names, v.name)
    return types


def add_items(parent: ET.Element, names: Sequence[str]) -> None:
    """List the names of the values of an enumeration."""
    for value, name in enumerate(names, 1):
        ET.SubElement(parent, "Item", name=name, value=str(value))


def write_value(variable: Variable, value: float) -> str:
    """Return a value as the XML of a variable has it."""
    if variable.kind == "boolean":
        return "true" if value else "false"
    if variable.kind == "integer" or (variable.kind == "enumeration" and not variable.names):
        return str(int(value))
    if variable.kind == "enumeration":  # an unset input is the first value
        return str(max(int(value), 1))
    if math.isnan(value):
        return "NaN"  # these three as xs:double spells them
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    if variable.type == "Float32":
        shortest = str(np.float32(value))
        # As a tool may read it: as a double, which it rounds.
        return shortest if np.float32(float(shortest)) == np.float32(value) else repr(value)
    return repr(value)


def add_ranges(element: ET.Element, variable: Variable) -> None:
    """Write the limits and the nominal value of a variable, if they are known."""
    for name, value in (("min", variable.minimum), ("max", variable.maximum)):
        if value is not None:
            element.set(name, write_value(variable, value))
    if variable.nominal is not None:
        element.set("nominal", write_value(variable, variable.nominal))


def list_reached(plan: Plan) -> dict[str, Sequence[str]]:
    """Return for each output the inputs that reach it at once."""
    return dict(zip(plan.outputs, plan.meta["dependencies"], strict=True))


def write_text(root: ET.Element) -> str:
    """Return the text of an XML file."""
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"
