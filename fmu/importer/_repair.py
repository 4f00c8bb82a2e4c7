"""Repairs of model descriptions: what violates the FMI standard but does not prevent a run.

Other importers accept such descriptions, because they do not read the parts that are wrong. Each
repair removes or replaces only such a part, so that the rest can be read, and is reported as a
finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

_Element = Any
"""Of lxml."""

_TYPES = ("Real", "Integer", "Boolean", "String", "Enumeration")
_TYPES_OF_FMI3 = {"Float32", "Float64", "Boolean", "String", "Binary", "Enumeration", "Clock"}
_TYPES_OF_FMI3 |= {f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)}
_TYPE_ATTRIBUTES = {
    "name", "description", "quantity", "unit", "displayUnit", "relativeQuantity", "min", "max",
    "nominal", "unbounded",
}  # fmt: skip
_UNREAD_ATTRIBUTES = {
    "BinaryType": {"mimeType", "maxSize"},
    "ClockType": {
        "canBeDeactivated", "priority", "intervalVariability", "intervalDecimal", "shiftDecimal",
        "supportsFraction", "resolution", "intervalCounter", "shiftCounter",
    },
}  # fmt: skip
"""Attributes of FMI 3.0 that FMPy does not accept."""
_ITEM_ATTRIBUTES = {"name", "value", "description"}
_BASE_UNITS = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")
_CAUSALITIES = {
    "parameter", "calculatedParameter", "structuralParameter", "input", "output", "local",
    "independent",
}  # fmt: skip
_VARIABILITIES = {
    "parameter": ("fixed", "tunable"),
    "structuralParameter": ("fixed", "tunable"),
    "calculatedParameter": ("fixed", "tunable"),
    "input": ("continuous", "discrete"),
    "output": ("continuous", "discrete", "constant"),
    "local": ("continuous", "discrete", "constant", "fixed", "tunable"),
    "independent": ("continuous",),
}
"""By causality, those that have a default of `initial`; the first replaces all others."""


def repair(root: _Element) -> list[str]:
    """Repair a description in place; return what was changed, one sentence each."""
    findings: list[str] = []
    version = _repair_version(root, findings)
    if version == "1.0" and not _is(root.get("numberOfContinuousStates") or "?", int):
        root.set("numberOfContinuousStates", "0")
        findings.append("numberOfContinuousStates is missing.")
    _repair_numbers(root, findings)
    _repair_types(root, findings, fmi3=version.startswith("3"))
    variables = _repair_variables(root, findings, version)
    if version.startswith("2"):
        known = {str(n) for n in range(1, len(variables) + 1)}
        unknowns = root.findall("ModelStructure/*/Unknown")
        _repair_structure(unknowns, "index", known, findings)
        _repair_derivatives(root, known, findings)
    elif version.startswith("3"):
        known = {str(int(v.get("valueReference"))) for v in variables}
        structure = root.find("ModelStructure")
        unknowns = (
            [] if structure is None else [u for u in structure if "valueReference" in u.attrib]
        )
        _repair_structure(unknowns, "valueReference", known, findings)
        _repair_references(variables, findings)
    return findings


def _repair_version(root: _Element, findings: list[str]) -> str:
    """Accept the number of a revision, such as 2.0.3; the standard requires 2.0."""
    given = root.get("fmiVersion") or ""
    version: str = given.strip()
    if version == "2" or version.startswith("2.0."):
        version = "2.0"
    if version == "1":
        version = "1.0"
    if version != given and version:
        findings.append(f"fmiVersion is {given!r} instead of {version!r}.")
        root.set("fmiVersion", version)
    return version


def _repair_numbers(root: _Element, findings: list[str]) -> None:
    """Remove attributes that are not numbers where only a number has a meaning."""
    checked: list[tuple[_Element, Iterable[str], type]] = [
        (root, ["numberOfEventIndicators"], int),
    ]
    if root.get("fmiVersion") != "1.0":
        checked += [(cs, ["maxOutputDerivativeOrder"], int) for cs in root.findall("CoSimulation")]
        checked += [(cs, ["fixedInternalStepSize"], float) for cs in root.findall("CoSimulation")]
        for unit in root.findall("UnitDefinitions/Unit"):
            base = unit.find("BaseUnit")
            if base is not None and not (
                all(_is(base.get(name), int) for name in _BASE_UNITS)
                and all(_is(base.get(name), float) for name in ("factor", "offset"))
            ):
                findings.append(
                    f"the unit `{unit.get('name')}` (line {unit.sourceline}) has exponents or "
                    f"factors that are not numbers: only its name is used."
                )
                unit.remove(base)
            checked += [(d, ["factor", "offset"], float) for d in unit.findall("DisplayUnit")]
    for element, names, kind in checked:
        for name in names:
            if not _is(element.get(name), kind):
                findings.append(
                    f"{element.tag} (line {element.sourceline}) has {name}="
                    f"{element.get(name)!r}, which is not a number and is ignored."
                )
                del element.attrib[name]


def _is(text: str | None, kind: type) -> bool:
    if text is None:
        return True
    try:
        kind(text)
    except ValueError:
        return False
    return True


def _repair_types(root: _Element, findings: list[str], fmi3: bool) -> None:
    """Remove comments, unknown attributes and definitions without a type."""
    definitions = root.find("TypeDefinitions")
    for definition in [] if definitions is None else list(definitions):
        if not isinstance(definition.tag, str):
            definitions.remove(definition)  # a comment
            continue
        for child in list(definition.iter()):
            if not isinstance(child.tag, str) and child.getparent() is not None:
                child.getparent().remove(child)
        if not fmi3 and len(definition) == 0:
            findings.append(f"the type `{definition.get('name')}` has no definition.")
            definitions.remove(definition)
            continue
        declared = definition if fmi3 else definition[0]
        _keep(declared, _TYPE_ATTRIBUTES, findings)
        for item in declared.findall("Item"):
            _keep(item, _ITEM_ATTRIBUTES, findings)
            if not _is(item.get("value"), int):
                findings.append(
                    f"the item `{item.get('name')}` (line {item.sourceline}) has the value "
                    f"{item.get('value')!r}: the names of this enumeration are not used."
                )
                for other in declared.findall("Item"):
                    declared.remove(other)
                break


def _keep(element: _Element, names: set[str], findings: list[str]) -> None:
    valid = _UNREAD_ATTRIBUTES.get(element.tag, set())
    for name in [name for name in element.attrib if name not in names]:
        if name not in valid:
            findings.append(
                f"{element.tag} (line {element.sourceline}) has an unknown attribute `{name}`."
            )
        del element.attrib[name]


def _repair_variables(root: _Element, findings: list[str], version: str) -> list[_Element]:
    """Repair the variables; return them all, so that their order stays that of the file."""
    from lxml import etree

    holder = root.find("ModelVariables")
    if holder is None:
        holder = etree.SubElement(root, "ModelVariables")
        findings.append("it has no ModelVariables.")
    for child in list(holder):
        if not isinstance(child.tag, str):
            holder.remove(child)  # a comment
    definitions = root.find("TypeDefinitions")
    types = (
        set()
        if definitions is None
        else {t.get("name") for t in definitions if isinstance(t.tag, str)}
    )
    unusable = _Listed("variables without a name, type or value reference are ignored")
    undeclared = _Listed("variables declare a type that is not defined")
    unknown = _Listed("variables have an unknown causality and become no ports")
    illegal = _Listed("variables have a causality and variability that exclude each other")
    for number, variable in enumerate(holder, 1):
        value = _value_element(variable, version)
        name = variable.get("name")
        if not name or value is None or not _is(variable.get("valueReference") or "?", int):
            unusable.add(name or f"number {number}")
            _disable(variable, f"variable number {number}", version)
            continue
        if value.get("declaredType") is not None and value.get("declaredType") not in types:
            undeclared.add(name)
            del value.attrib["declaredType"]
        if version != "1.0":
            if variable.get("causality", "local") not in _CAUSALITIES:
                unknown.add(f"{name} ({variable.get('causality')})")
                variable.set("causality", "local")
            _repair_causality(variable, value.tag, illegal)
    for listed in (unusable, undeclared, unknown, illegal):
        findings += listed.sentences()
    return list(holder)


class _Listed:
    """A finding about several variables, as one sentence."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: list[str] = []

    def add(self, name: str) -> None:
        self.names.append(name)

    def sentences(self) -> Iterator[str]:
        if self.names:
            more = f" and {len(self.names) - 6} more" if len(self.names) > 6 else ""
            yield f"{self.text}: {', '.join(self.names[:6])}{more}."


def _value_element(variable: _Element, version: str) -> _Element | None:
    if version.startswith("3"):
        return variable if variable.tag in _TYPES_OF_FMI3 else None
    return next((child for child in variable if child.tag in _TYPES), None)


def _disable(variable: _Element, name: str, version: str) -> None:
    """Make a variable a local string, which is never used; it keeps its place in the list."""
    from lxml import etree

    variable.attrib.clear()
    for child in list(variable):
        variable.remove(child)
    variable.set("name", name)
    variable.set("valueReference", "0")
    if version.startswith("3"):
        variable.tag = "String"
    else:
        etree.SubElement(variable, "String")


def _repair_causality(variable: _Element, kind: str, illegal: _Listed) -> None:
    causality = variable.get("causality", "local")
    variability = variable.get("variability")
    legal = _VARIABILITIES[causality]
    if (variability is None and "continuous" in legal) or variability in legal:
        return
    if variability is None and kind not in _TYPES:
        return  # FMI 3.0 has a default for every type and causality
    illegal.add(f"{variable.get('name')} ({causality}, {variability or 'continuous'})")
    if variability == "constant" and causality == "parameter":
        variable.set("causality", "local")  # it cannot be set
        return
    real = kind in ("Real", "Float64", "Float32")
    variable.set("variability", "discrete" if "discrete" in legal and not real else legal[0])


def _repair_structure(
    unknowns: Iterable[_Element], attribute: str, known: set[str], findings: list[str]
) -> None:
    """Remove unknowns and dependencies that refer to no variable."""
    missing = _Listed("ModelStructure refers to variables that do not exist")
    for unknown in list(unknowns):
        text = unknown.get(attribute) or ""
        if _number(text) not in known:
            missing.add(f"{attribute} {text or 'missing'} (line {unknown.sourceline})")
            unknown.getparent().remove(unknown)
            continue
        for name in ("dependencies", "dependenciesKind"):
            if name in unknown.attrib:  # FMPy splits at single spaces
                unknown.set(name, " ".join(unknown.get(name).split()))
        dependencies = (unknown.get("dependencies") or "").split()
        if wrong := [d for d in dependencies if _number(d) not in known]:
            missing.add(f"dependencies {' '.join(wrong[:4])} (line {unknown.sourceline})")
            # Which variables were meant is unknown: it may depend on all of them.
            del unknown.attrib["dependencies"]
            unknown.attrib.pop("dependenciesKind", None)
    findings += missing.sentences()


def _number(text: str) -> str:
    try:
        return str(int(text))
    except ValueError:
        return "?"


def _repair_derivatives(root: _Element, known: set[str], findings: list[str]) -> None:
    wrong = _Listed("variables are derivatives of variables that do not exist")
    for value in root.findall("ModelVariables/ScalarVariable/Real"):
        if "derivative" in value.attrib and _number(value.get("derivative")) not in known:
            wrong.add(value.getparent().get("name"))
            del value.attrib["derivative"]
    findings += wrong.sentences()


def _repair_references(variables: Sequence[_Element], findings: list[str]) -> None:
    """Disable arrays without a size; remove references of FMI 3.0 to variables that are missing."""
    by_reference = {str(int(v.get("valueReference"))): v for v in variables}
    unsized = _Listed("arrays whose dimensions have no size are ignored")
    wrong = _Listed("variables refer to clocks or derivatives that do not exist")
    for variable in variables:
        if not all(_has_size(d, by_reference) for d in variable.findall("Dimension")):
            unsized.add(variable.get("name"))
            name, reference = variable.get("name"), variable.get("valueReference")
            _disable(variable, name, "3.0")
            variable.set("valueReference", reference)
        for attribute in ("clocks", "derivative"):
            given = (variable.get(attribute) or "").split()
            if attribute in variable.attrib:  # FMPy splits at single spaces
                variable.set(attribute, " ".join(given))
            if attribute in variable.attrib and not (
                given and all(_number(text) in by_reference for text in given)
            ):
                wrong.add(variable.get("name"))
                del variable.attrib[attribute]
    findings += [*unsized.sentences(), *wrong.sentences()]


def _has_size(dimension: _Element, by_reference: dict[str, _Element]) -> bool:
    """Return whether the size is a number, or that of a scalar UInt64 with a start value."""
    size = dimension.get("start")
    if size is None:
        variable = by_reference.get(_number(dimension.get("valueReference") or ""))
        if variable is None or variable.tag != "UInt64" or variable.find("Dimension") is not None:
            return False
        size = variable.get("start")
    return (
        size is not None and _number(size) not in ("?", "0") and not _number(size).startswith("-")
    )
