"""modelDescription.xml of FMI 3.0: ports and parameters with several values are arrays."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence

from ._clocks import Clock
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

_TYPES = {"real": "Float64", "integer": "Int64", "boolean": "Boolean", "enumeration": "Int64"}
"""Usual types of variables; an enumeration with names is of type Enumeration."""
_STOPPING_KERNELS = {"stop", "playback_stopping"}
"""Kernels that may end a simulation."""

_LARGEST_LIST = 10_000  # dependencies of all initial unknowns that are written out


def describe_fmi3(contents: Contents) -> str:
    """Return the XML text."""
    plan, variables = contents.plan, contents.variables
    root = ET.Element("fmiModelDescription", fmiVersion="3.0", modelName=clean(plan.name))
    root.set("instantiationToken", contents.token)
    root.attrib.update(contents.about)
    root.set("description", contents.description)
    root.set("generationTool", f"biella {contents.version}")
    exchange = contents.exchange
    names = [v.name for v in variables] + list(exchange.states if exchange is not None else ())
    root.set("variableNamingConvention", naming_convention(names))
    if exchange is not None:
        _add_model_exchange(root, contents, exchange)
    if contents.kind != "me":
        _add_co_simulation(root, contents)
    add_units(root, [*list_units(variables), "s"])
    types = name_types(variables)
    if types:
        definitions = ET.SubElement(root, "TypeDefinitions")
    for items, called in types.items():
        add_items(ET.SubElement(definitions, "EnumerationType", name=called), items)
    add_log_and_experiment(root, contents)
    listed = ET.SubElement(root, "ModelVariables")
    for variable in variables:
        _add_variable(listed, variable, types, contents.kind != "me")
    if exchange is not None:
        _add_states(listed, exchange, contents.first_state)
    ET.SubElement(
        listed,
        "Float64",
        name=name_time(contents),
        valueReference=str(contents.time_reference),
        causality="independent",
        variability="continuous",
        description="time",
        unit="s",
    )
    for reference, clock in enumerate(contents.clocks, contents.time_reference + 1):
        _add_clock(listed, clock, reference)
    _add_structure(root, contents)
    return write_text(root)


def _add_model_exchange(root: ET.Element, contents: Contents, exchange: Exchange) -> None:
    ET.SubElement(
        root,
        "ModelExchange",
        modelIdentifier=contents.identifier,
        canBeInstantiatedOnlyOncePerProcess="false",
        canGetAndSetFMUState="true",
        canSerializeFMUState="true",
        providesDirectionalDerivatives="true",
        providesAdjointDerivatives="true",
        providesPerElementDependencies="false",
        needsCompletedIntegratorStep=str(exchange.completes_steps).lower(),
        providesEvaluateDiscreteStates="false",
    )


def _add_co_simulation(root: ET.Element, contents: Contents) -> None:
    capabilities = ET.SubElement(
        root,
        "CoSimulation",
        modelIdentifier=contents.identifier,
        canBeInstantiatedOnlyOncePerProcess="false",
        canGetAndSetFMUState="true",
        canSerializeFMUState="true",
        providesDirectionalDerivatives="true",
        providesAdjointDerivatives="true",
        providesPerElementDependencies="false",
        canHandleVariableCommunicationStepSize="true",
        maxOutputDerivativeOrder=str(contents.output_derivative_order),
        providesIntermediateUpdate="true",
        mightReturnEarlyFromDoStep=str(_returns_early(contents)).lower(),
        canReturnEarlyAfterIntermediateUpdate="true",
        hasEventMode="true",
    )
    if contents.fixed_step:
        capabilities.set("fixedInternalStepSize", repr(contents.plan.step))


def _add_states(parent: ET.Element, exchange: Exchange, first: int) -> None:
    """Add states, derivatives and event indicators."""
    attributes = {"causality": "local", "variability": "continuous", "initial": "calculated"}
    count = len(exchange.states)
    for k, name in enumerate(exchange.names):
        element = ET.SubElement(parent, "Float64", name=name, valueReference=str(first + k))
        element.attrib.update(attributes)
        if k < count:
            element.set("description", clean(exchange.documents[k]))
            element.set("nominal", repr(exchange.nominals[k]))
        elif k < 2 * count:
            element.set("derivative", str(first + k - count))


def _add_clock(parent: ET.Element, clock: Clock, reference: int) -> None:
    """Add a time-based clock: its ticks are known, so it is an input that the tool activates."""
    element = ET.SubElement(
        parent,
        "Clock",
        name=clock.name,
        valueReference=str(reference),
        causality="input",
        variability="discrete",
        description=clean(clock.doc),
        canBeDeactivated="false",
        intervalVariability="constant",
        intervalDecimal=repr(clock.interval),
        shiftDecimal=repr(clock.shift),
        supportsFraction=str(clock.fraction is not None).lower(),
    )
    if clock.fraction is not None:
        interval, shift, resolution = clock.fraction
        element.set("resolution", str(resolution))
        element.set("intervalCounter", str(interval))
        element.set("shiftCounter", str(shift))


def name_time(contents: Contents) -> str:
    """Return the name of the independent variable: ``time``, unless a variable has that name."""
    taken = {v.name for v in contents.variables}
    if contents.exchange is not None:
        taken |= {*contents.exchange.states, *contents.exchange.indicator_names}
    taken |= {clock.name for clock in contents.clocks}
    name = "time"
    while name in taken:
        name = f"_{name}"
    return name


def _returns_early(contents: Contents) -> bool:
    """Whether a step may end early: at an event that is located, or where the model ends."""
    with contents.plan.open() as engine:
        located = bool(engine.library.bl_locates_events(engine.handle))
    return located or bool(_STOPPING_KERNELS & set(contents.plan.kernels))


def _add_variable(
    parent: ET.Element, variable: Variable, types: Mapping[tuple[str, ...], str], steps: bool
) -> None:
    """Add a variable; where the FMU takes steps, continuous ones can be accessed in between."""
    element = ET.SubElement(
        parent,
        "Enumeration" if variable.names else variable.type or _TYPES[variable.kind],
        name=variable.name,
        valueReference=str(variable.reference),
        causality=variable.causality,
        variability=variable.variability,
    )
    if variable.doc:
        element.set("description", clean(variable.doc))
    if variable.causality != "input":
        element.set("initial", "exact" if variable.causality == "parameter" else "calculated")
    if variable.names:
        element.set("declaredType", types[variable.names])
    if variable.unit is not None and variable.kind == "real":
        element.set("unit", variable.unit)
    add_ranges(element, variable)
    if steps and variable.variability == "continuous":
        element.set("intermediateUpdate", "true")
    if variable.clock is not None:
        element.set("clocks", str(variable.clock))
    if variable.start is not None:
        element.set("start", " ".join(write_value(variable, value) for value in variable.start))
    for size in variable.shape:
        ET.SubElement(element, "Dimension", start=str(size))


def _add_structure(root: ET.Element, contents: Contents) -> None:
    """Outputs with the inputs that reach them at once; at the start they depend on everything.

    For model exchange, outputs may depend on every state and derivatives on every input.
    """
    structure = ET.SubElement(root, "ModelStructure")
    references = {v.name: str(v.reference) for v in contents.variables}
    reached = list_reached(contents.plan)
    outputs = [v for v in contents.variables if v.causality == "output"]
    exchange, first = contents.exchange, contents.first_state
    count = len(exchange.states) if exchange is not None else 0
    states = [str(first + k) for k in range(count)]

    def add(tag: str, reference: int, known: Sequence[str]) -> None:
        unknown = ET.SubElement(structure, tag, valueReference=str(reference))
        unknown.set("dependencies", " ".join(known))
        unknown.set("dependenciesKind", " ".join(["dependent"] * len(known)))

    for v in outputs:
        known = [references[name] for name in reached[v.name] if name in references]
        clock = [] if v.clock is None else [str(v.clock)]
        add("Output", v.reference, known + states + clock)
    inputs = [str(v.reference) for v in contents.variables if v.causality == "input"]
    for k in range(count):
        assert exchange is not None
        reference = first + count + k
        if exchange.dependencies is None:  # on everything known
            ET.SubElement(structure, "ContinuousStateDerivative", valueReference=str(reference))
        else:
            known = inputs + [states[i] for i in exchange.dependencies[k]]
            add("ContinuousStateDerivative", reference, known)
    # A clocked variable has its value from the first tick on.
    unknowns = [v.reference for v in outputs if v.clock is None] + [
        first + k for k in range(2 * count)
    ]
    parameters = [str(v.reference) for v in contents.variables if v.causality == "parameter"]
    known = inputs + parameters
    for reference in unknowns:
        if len(known) * len(unknowns) <= _LARGEST_LIST:  # on everything: some tools require a list
            add("InitialUnknown", reference, known)
        else:
            ET.SubElement(structure, "InitialUnknown", valueReference=str(reference))
    for k in range(exchange.indicators if exchange is not None else 0):
        reference = first + 2 * count + k
        ET.SubElement(structure, "EventIndicator", valueReference=str(reference))
