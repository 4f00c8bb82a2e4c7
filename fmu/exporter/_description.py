"""modelDescription.xml of an exported FMU."""

from __future__ import annotations

import hashlib
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...blocks.core._units import BASE_UNITS, parse_unit
from ...scheduler.compile.plan._plan import ParameterInfo, Plan, PortInfo
from ._exchange import TOLERANCE, Exchange

LOG_CATEGORIES = {
    "logEvents": "start and end of a simulation",
    "logStatusError": "reason of a failed call",
    "logStatusWarning": "warnings of the start and, at the end, of the run",
    "logStatusDiscard": "reason of a rejected value or step",
    "logAll": "everything",
}
_TYPES = {"real": "Real", "integer": "Integer", "boolean": "Boolean", "enumeration": "Integer"}
"""Types of variables; an enumeration with names is of type Enumeration."""
_DISPLAY_UNITS = {
    "rad": {"deg": 180 / math.pi},
    "rad/s": {"deg/s": 180 / math.pi, "rev/min": 30 / math.pi},
}
"""What a tool may show instead: its value is the factor times ours."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A scalar variable of the FMU; `reference` is its number in the plan."""

    name: str
    reference: int
    type: str
    causality: str
    variability: str
    unit: str | None
    doc: str
    start: float | None
    owner: str
    """Path of the port or parameter that it is an element of."""
    names: tuple[str, ...] = ()
    """Of an enumeration: the names of its values, from 1 on."""


def list_variables(plan: Plan) -> list[Variable]:
    """Return all variables in the order of the plan's table: inputs, outputs, parameters."""
    values = plan.first_values
    found: list[Variable] = []

    def add(item: PortInfo | ParameterInfo, size: int, causality: str, variability: str) -> None:
        kind = item.kind if isinstance(item, PortInfo) else "real"
        names = tuple(item.names) if isinstance(item, PortInfo) else ()
        type_ = "Enumeration" if names else _TYPES[kind]
        scalar = size == 1 and (isinstance(item, PortInfo) or item.shape == ())
        shape = (size,) if isinstance(item, PortInfo) else item.shape
        for k in range(size):
            start = None if causality == "output" else float(values[item.slot + k])
            place = ",".join(map(str, np.unravel_index(k, shape)))
            name = item.path if scalar else f"{item.path}[{place}]"
            found.append(
                Variable(
                    name, len(found), type_, causality, variability,
                    item.unit, item.doc, start, item.path, names,
                )
            )  # fmt: skip

    for port in plan.inputs.values():
        add(port, port.width, "input", "continuous" if port.kind == "real" else "discrete")
    for port in plan.outputs.values():
        smooth = port.kind == "real" and not port.sampled
        add(port, port.width, "output", "continuous" if smooth else "discrete")
    for parameter in plan.parameters.values():
        add(parameter, parameter.size, "parameter", "tunable" if parameter.tunable else "fixed")
    return found


def model_identifier(name: str) -> str:
    """Return `name` as a C identifier."""
    identifier = re.sub(r"\W", "_", name, flags=re.ASCII)
    return identifier if re.match(r"[A-Za-z_]", identifier) else f"_{identifier}"


def make_guid(
    plan: Plan, variables: Sequence[Variable], version: str, exchange: Exchange | None = None
) -> str:
    """Return the GUID that ties a description to its plan.

    It has two parts: the checksum in the head of the plan, which the FMU compares with that of the
    plan it finds; and a hash of the whole plan and of all that the description says besides.
    """
    checksum = int.from_bytes(plan.data[16:24], "little")
    said = hashlib.sha256(plan.data)
    said.update(repr((version, variables)).encode())
    if exchange is not None:
        said.update(repr(exchange).encode())
    return f"{{biella-{checksum:016x}-{said.hexdigest()[:16]}}}"


def choose_variables(plan: Plan, parameters: Iterable[str] | None) -> list[Variable]:
    """Return the variables to be shown: all, or of the parameters only those given."""
    chosen = None if parameters is None else set(parameters)
    return [
        v
        for v in list_variables(plan)
        if v.causality != "parameter" or chosen is None or v.owner in chosen
    ]


def describe(
    plan: Plan,
    parameters: Iterable[str] | None,
    version: str,
    *,
    sources: bool = False,
    needs: Mapping[str, str | None] | None = None,
    kind: str = "cs",
    exchange: Exchange | None = None,
) -> str:
    """Return the XML text for `plan`.

    Parameters
    ----------
    plan
        What the FMU runs.
    parameters
        Paths of those to be shown; None for all.
    version
        Of biella.
    sources
        Whether the FMU has its C sources with it.
    needs
        For each platform the least glibc that its binary needs, if any.
    kind
        See `export_fmu`.
    exchange
        The interface for model exchange, if it is offered.
    """
    variables = choose_variables(plan, parameters)
    identifier = model_identifier(plan.name)
    root = ET.Element(
        "fmiModelDescription",
        fmiVersion="2.0",
        modelName=_clean(plan.name),
        guid=make_guid(plan, variables, version, exchange),
        description=summarize(plan, needs or {}),
        generationTool=f"biella {version}",
        variableNamingConvention="structured"
        if _all_structured([v.name for v in variables] + list(exchange.states if exchange else ()))
        else "flat",
        numberOfEventIndicators=str(exchange.indicators if exchange else 0),
    )
    common = {
        "canBeInstantiatedOnlyOncePerProcess": "false",
        "canNotUseMemoryManagementFunctions": "true",
        "canGetAndSetFMUstate": "true",
        "canSerializeFMUstate": "true",
        "providesDirectionalDerivative": "true",
    }
    offered = []
    if exchange is not None:
        attributes = {
            "modelIdentifier": identifier,
            "completedIntegratorStepNotNeeded": "false" if exchange.completes_steps else "true",
        }
        offered.append(ET.SubElement(root, "ModelExchange", attributes | common))
    if kind != "me":
        attributes = {
            "modelIdentifier": identifier,
            "canHandleVariableCommunicationStepSize": "true",
            "canInterpolateInputs": "true",
            "maxOutputDerivativeOrder": str(_output_derivative_order(plan)),
            "canRunAsynchronuously": "false",
        }
        offered.append(ET.SubElement(root, "CoSimulation", attributes | common))
    for capabilities in offered if sources else ():
        files = ET.SubElement(capabilities, "SourceFiles")
        ET.SubElement(files, "File", name=f"{identifier}.c")
    _add_units(root, variables)
    types = _add_types(root, variables)
    categories = ET.SubElement(root, "LogCategories")
    for name, text in LOG_CATEGORIES.items():
        ET.SubElement(categories, "Category", name=name, description=text)
    start = plan.start_time
    experiment = ET.SubElement(
        root,
        "DefaultExperiment",
        startTime=repr(start),
        stopTime=repr(start + 1000 * plan.step),
        stepSize=repr(plan.step),
    )
    if exchange is not None:
        experiment.set("tolerance", repr(TOLERANCE))
    listed = ET.SubElement(root, "ModelVariables")
    for variable in variables:
        _add_variable(listed, variable, types)
    if exchange is not None:
        _add_states(listed, plan, exchange)
    _add_structure(root, plan, variables, exchange)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _output_derivative_order(plan: Plan) -> int:
    """Only a continuous output has a derivative, and the order is one for all of them."""
    return int(all(port.kind == "real" and not port.sampled for port in plan.outputs.values()))


def summarize(plan: Plan, needs: Mapping[str, str | None]) -> str:
    """Return a sentence about an FMU: how it steps, and what its binaries need."""
    text = f"Base step {plan.step:g} s, solver {plan.solver}."
    for platform, glibc in needs.items():
        if glibc is not None:
            text += f" On {platform} it requires glibc {glibc} or newer."
    return text


def _clean(text: str) -> str:
    """Return `text` without the characters that XML does not have."""
    return re.sub(r"[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+", " ", text)


def _all_structured(names: Sequence[str]) -> bool:
    pattern = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(\[\d+(,\d+)*\])?\Z", re.ASCII)
    return all(pattern.match(name) for name in names)


def _add_units(root: ET.Element, variables: Sequence[Variable]) -> None:
    names = sorted({v.unit for v in variables if v.unit is not None and v.type == "Real"})
    if not names:
        return
    definitions = ET.SubElement(root, "UnitDefinitions")
    for name in names:
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


def _add_types(root: ET.Element, variables: Sequence[Variable]) -> dict[tuple[str, ...], str]:
    """Declare an enumeration for each set of names; return what it is called."""
    types: dict[tuple[str, ...], str] = {}
    for v in variables:
        if v.names and v.names not in types:
            types[v.names] = v.owner
    if types:
        definitions = ET.SubElement(root, "TypeDefinitions")
    for names, called in types.items():
        simple = ET.SubElement(definitions, "SimpleType", name=called)
        listed = ET.SubElement(simple, "Enumeration")
        for value, name in enumerate(names, 1):
            ET.SubElement(listed, "Item", name=name, value=str(value))
    return types


def _add_variable(
    parent: ET.Element, variable: Variable, types: Mapping[tuple[str, ...], str]
) -> None:
    attributes = {
        "name": variable.name,
        "valueReference": str(variable.reference),
        "causality": variable.causality,
        "variability": variable.variability,
    }
    if variable.doc:
        attributes["description"] = _clean(variable.doc)
    if variable.causality != "input":
        attributes["initial"] = "calculated" if variable.causality == "output" else "exact"
    scalar = ET.SubElement(parent, "ScalarVariable", attributes)
    value = ET.SubElement(scalar, variable.type)
    if variable.names:
        value.set("declaredType", types[variable.names])
    if variable.start is not None:
        value.set("start", _start_text(variable))
    if variable.unit is not None and variable.type == "Real":
        value.set("unit", variable.unit)


def _start_text(variable: Variable) -> str:
    assert variable.start is not None
    if variable.type == "Boolean":
        return "true" if variable.start else "false"
    if variable.type == "Integer":
        return str(int(variable.start))
    if variable.type == "Enumeration":  # an unset input is the first value
        return str(max(int(variable.start), 1))
    if math.isnan(variable.start):
        return "NaN"  # these three as xs:double spells them
    if math.isinf(variable.start):
        return "INF" if variable.start > 0 else "-INF"
    return repr(variable.start)


def _add_states(parent: ET.Element, plan: Plan, exchange: Exchange) -> None:
    """Add states and derivatives; their references follow those of the plan's variables."""
    first, states = len(list_variables(plan)), len(exchange.states)
    place = len(parent)  # of the last variable, counted from 1
    for k, name in enumerate(exchange.states):
        attributes = {
            "name": name,
            "valueReference": str(first + k),
            "causality": "local",
            "variability": "continuous",
            "description": _clean(exchange.documents[k]),
            "initial": "calculated",
        }
        scalar = ET.SubElement(parent, "ScalarVariable", attributes)
        ET.SubElement(scalar, "Real", nominal=repr(exchange.nominals[k]))
    for k, name in enumerate(exchange.derivatives):
        attributes = {
            "name": name,
            "valueReference": str(first + states + k),
            "causality": "local",
            "variability": "continuous",
            "initial": "calculated",
        }
        scalar = ET.SubElement(parent, "ScalarVariable", attributes)
        ET.SubElement(scalar, "Real", derivative=str(place + 1 + k))


def _add_structure(
    root: ET.Element, plan: Plan, variables: Sequence[Variable], exchange: Exchange | None
) -> None:
    """Outputs with the inputs that reach them at once; at the start they depend on everything.

    For model exchange, outputs may depend on every state and derivatives on every input.
    """
    structure = ET.SubElement(root, "ModelStructure")
    index = {v.reference: n for n, v in enumerate(variables, 1)}
    inputs: dict[str, list[int]] = {}
    for v in variables:
        if v.causality == "input":
            inputs.setdefault(v.owner, []).append(index[v.reference])
    reached = dict(zip(plan.outputs, plan.meta["dependencies"], strict=True))
    outputs = [v for v in variables if v.causality == "output"]
    count = len(exchange.states) if exchange is not None else 0
    states = [len(variables) + 1 + k for k in range(count)]
    derivatives = [state + count for state in states]
    unknowns = [index[v.reference] for v in outputs] + states + derivatives
    if not unknowns:
        return

    def add(parent: ET.Element, number: int, known: Sequence[int]) -> None:
        unknown = ET.SubElement(parent, "Unknown", index=str(number))
        unknown.set("dependencies", " ".join(map(str, known)))
        unknown.set("dependenciesKind", " ".join(["dependent"] * len(known)))

    if outputs:
        element = ET.SubElement(structure, "Outputs")
        for v in outputs:
            known = [n for name in reached[v.owner] for n in inputs.get(name, [])]
            add(element, index[v.reference], known + states)
    if exchange is not None and states:
        element = ET.SubElement(structure, "Derivatives")
        for k, number in enumerate(derivatives):
            if exchange.dependencies is None:  # on everything known
                ET.SubElement(element, "Unknown", index=str(number))
                continue
            known = sorted(n for numbers in inputs.values() for n in numbers)
            add(element, number, known + [states[i] for i in exchange.dependencies[k]])
    element = ET.SubElement(structure, "InitialUnknowns")
    for number in sorted(unknowns):
        # Without `dependencies`: on everything known, which is safe.
        ET.SubElement(element, "Unknown", index=str(number))
