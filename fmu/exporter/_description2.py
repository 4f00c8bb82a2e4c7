"""modelDescription.xml of FMI 2.0: every element of an array is a variable of its own."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence

from ._description import (
    Contents,
    add_items,
    add_log_and_experiment,
    add_ranges,
    add_units,
    clean,
    list_reached,
    list_units,
    name_types,
    naming_convention,
    write_text,
    write_value,
)
from ._exchange import Exchange
from ._variables import Variable

_TYPES = {"real": "Real", "integer": "Integer", "boolean": "Boolean", "enumeration": "Integer"}
"""Types of variables; an enumeration with names is of type Enumeration."""


def describe_fmi2(contents: Contents) -> str:
    """Return the XML text."""
    plan, variables = contents.plan, contents.variables
    root = ET.Element("fmiModelDescription", fmiVersion="2.0", modelName=clean(plan.name))
    root.set("guid", contents.token)
    root.attrib.update(contents.about)
    root.set("description", contents.description)
    root.set("generationTool", f"biella {contents.version}")
    names = [name for v in variables for name in v.element_names]
    exchange = contents.exchange
    names += exchange.states if exchange is not None else ()
    root.set("variableNamingConvention", naming_convention(names))
    root.set("numberOfEventIndicators", str(exchange.indicators if exchange is not None else 0))
    _add_kinds(root, contents)
    add_units(root, list_units(variables))
    types = name_types(variables)
    if types:
        definitions = ET.SubElement(root, "TypeDefinitions")
    for items, called in types.items():
        simple = ET.SubElement(definitions, "SimpleType", name=called)
        add_items(ET.SubElement(simple, "Enumeration"), items)
    add_log_and_experiment(root, contents)
    listed = ET.SubElement(root, "ModelVariables")
    for variable in variables:
        _add_scalars(listed, variable, types)
    if exchange is not None:
        _add_states(listed, exchange, contents.first_state)
    _add_structure(root, contents)
    return write_text(root)


def _add_kinds(root: ET.Element, contents: Contents) -> None:
    common = {
        "canBeInstantiatedOnlyOncePerProcess": "false",
        "canNotUseMemoryManagementFunctions": "true",
        "canGetAndSetFMUstate": "true",
        "canSerializeFMUstate": "true",
        "providesDirectionalDerivative": "true",
    }
    own: dict[str, dict[str, str]] = {}
    if contents.exchange is not None:
        needed = contents.exchange.completes_steps
        own["ModelExchange"] = {"completedIntegratorStepNotNeeded": "false" if needed else "true"}
    if contents.kind != "me":
        own["CoSimulation"] = {
            "canHandleVariableCommunicationStepSize": "true",
            "canInterpolateInputs": "true",
            "maxOutputDerivativeOrder": str(contents.output_derivative_order),
            "canRunAsynchronuously": "false",
        }
    for kind, flags in own.items():
        identifier = {"modelIdentifier": contents.identifier}
        capabilities = ET.SubElement(root, kind, identifier | flags | common)
        if contents.sources:
            files = ET.SubElement(capabilities, "SourceFiles")
            ET.SubElement(files, "File", name=f"{contents.identifier}.c")


def _add_states(parent: ET.Element, exchange: Exchange, first: int) -> None:
    """Add states, then derivatives."""
    place = len(parent)  # of the last variable, counted from 1
    attributes = {"causality": "local", "variability": "continuous", "initial": "calculated"}
    for k, name in enumerate(exchange.states):
        scalar = ET.SubElement(parent, "ScalarVariable", name=name, valueReference=str(first + k))
        scalar.attrib.update(attributes)
        scalar.set("description", clean(exchange.documents[k]))
        ET.SubElement(scalar, "Real", nominal=repr(exchange.nominals[k]))
    first += len(exchange.states)
    for k, name in enumerate(exchange.derivatives):
        scalar = ET.SubElement(parent, "ScalarVariable", name=name, valueReference=str(first + k))
        scalar.attrib.update(attributes)
        ET.SubElement(scalar, "Real", derivative=str(place + 1 + k))


def _add_scalars(
    parent: ET.Element, variable: Variable, types: Mapping[tuple[str, ...], str]
) -> None:
    for k, name in enumerate(variable.element_names):
        attributes = {
            "name": name,
            "valueReference": str(variable.reference + k),
            "causality": variable.causality,
            "variability": variable.variability,
        }
        if variable.doc:
            attributes["description"] = clean(variable.doc)
        if variable.causality != "input":
            attributes["initial"] = "exact" if variable.causality == "parameter" else "calculated"
        scalar = ET.SubElement(parent, "ScalarVariable", attributes)
        value = ET.SubElement(
            scalar, "Enumeration" if variable.names else _TYPES[variable.kind]
        )  # fmt: skip
        if variable.names:
            value.set("declaredType", types[variable.names])
        if variable.start is not None:
            value.set("start", write_value(variable, variable.start[k]))
        if variable.unit is not None and variable.kind == "real":
            value.set("unit", variable.unit)
        add_ranges(value, variable)


def _add_structure(root: ET.Element, contents: Contents) -> None:
    """Outputs with the inputs that reach them at once; at the start they depend on everything.

    For model exchange, outputs may depend on every state and derivatives on every input.
    """
    structure = ET.SubElement(root, "ModelStructure")
    indices: dict[str, list[int]] = {}
    count = 0
    for v in contents.variables:
        indices[v.name] = list(range(count + 1, count + 1 + v.size))
        count += v.size
    reached = list_reached(contents.plan)
    outputs = [v for v in contents.variables if v.causality == "output"]
    exchange = contents.exchange
    own = len(exchange.states) if exchange is not None else 0
    states = [count + 1 + k for k in range(own)]
    derivatives = [state + own for state in states]
    unknowns = [index for v in outputs for index in indices[v.name]] + states + derivatives

    def add(parent: ET.Element, index: int, known: Sequence[int]) -> None:
        unknown = ET.SubElement(parent, "Unknown", index=str(index))
        unknown.set("dependencies", " ".join(map(str, known)))
        unknown.set("dependenciesKind", " ".join(["dependent"] * len(known)))

    if outputs:
        element = ET.SubElement(structure, "Outputs")
    for v in outputs:
        known = [n for name in reached[v.name] for n in indices.get(name, [])]
        for index in indices[v.name]:
            add(element, index, known + states)
    if exchange is not None and states:
        element = ET.SubElement(structure, "Derivatives")
        inputs = [n for v in contents.variables if v.causality == "input" for n in indices[v.name]]
        for k, index in enumerate(derivatives):
            if exchange.dependencies is None:  # on everything known
                ET.SubElement(element, "Unknown", index=str(index))
            else:
                add(element, index, inputs + [states[i] for i in exchange.dependencies[k]])
    if unknowns:
        element = ET.SubElement(structure, "InitialUnknowns")
    for index in unknowns:
        # Without `dependencies`: on everything known, which is safe.
        ET.SubElement(element, "Unknown", index=str(index))
