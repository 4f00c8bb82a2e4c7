"""modelDescription.xml of FMI 2.0: every element of an array is a variable of its own."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping

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
    root.set("variableNamingConvention", naming_convention(names))
    root.set("numberOfEventIndicators", "0")
    capabilities = ET.SubElement(
        root,
        "CoSimulation",
        modelIdentifier=contents.identifier,
        canHandleVariableCommunicationStepSize="true",
        canInterpolateInputs="true",
        maxOutputDerivativeOrder=str(contents.output_derivative_order),
        canRunAsynchronuously="false",
        canBeInstantiatedOnlyOncePerProcess="false",
        canNotUseMemoryManagementFunctions="true",
        canGetAndSetFMUstate="true",
        canSerializeFMUstate="true",
        providesDirectionalDerivative="true",
    )
    if contents.sources:
        files = ET.SubElement(capabilities, "SourceFiles")
        ET.SubElement(files, "File", name=f"{contents.identifier}.c")
    add_units(root, list_units(variables))
    types = name_types(variables)
    if types:
        definitions = ET.SubElement(root, "TypeDefinitions")
    for items, called in types.items():
        simple = ET.SubElement(definitions, "SimpleType", name=called)
        add_items(ET.SubElement(simple, "Enumeration"), items)
    add_log_and_experiment(root, plan)
    listed = ET.SubElement(root, "ModelVariables")
    for variable in variables:
        _add_scalars(listed, variable, types)
    _add_structure(root, contents)
    return write_text(root)


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
    """Outputs with the inputs that reach them at once; at the start they depend on everything."""
    structure = ET.SubElement(root, "ModelStructure")
    indices: dict[str, list[int]] = {}
    count = 0
    for v in contents.variables:
        indices[v.name] = list(range(count + 1, count + 1 + v.size))
        count += v.size
    reached = list_reached(contents.plan)
    outputs = [v for v in contents.variables if v.causality == "output"]
    if not outputs:
        return
    element = ET.SubElement(structure, "Outputs")
    for v in outputs:
        known = [n for name in reached[v.name] for n in indices.get(name, [])]
        for index in indices[v.name]:
            unknown = ET.SubElement(element, "Unknown", index=str(index))
            unknown.set("dependencies", " ".join(map(str, known)))
            unknown.set("dependenciesKind", " ".join(["dependent"] * len(known)))
    unknowns = ET.SubElement(structure, "InitialUnknowns")
    for v in outputs:
        for index in indices[v.name]:
            # Without `dependencies`: on everything known, which is safe.
            ET.SubElement(unknowns, "Unknown", index=str(index))
