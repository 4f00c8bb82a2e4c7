"""Model description of an FMU as ports and parameters of a block."""

from __future__ import annotations

import contextlib
import math
import re
import threading
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from ...blocks.core._ports import Parameter, Port, parameter
from ...blocks.core._units import BASE_UNITS, Unit, UnitError, parse_unit
from ...errors import BiellaWarning, DiagramError, FmuError, name_list, suggest
from ...scheduler.engine._library import contract
from ._archive import Archive, find_binary
from ._clocks import Clock, active_clocks, list_clocks
from ._variables import (
    BOOLEAN,
    LARGEST_ARRAY,
    REAL,
    STRING,
    TYPES,
    Group,
    Scalar,
    shape_of,
)

_parsing = threading.Lock()  # libxml2 does not survive schemas being read by several threads
_SHOWN_FINDINGS = 20
_ELEMENT = re.compile(r"(?P<base>.*[^\]])\[(?P<index>[0-9]{1,9})\]\Z")


@dataclass(frozen=True, slots=True, eq=False)
class Description:
    """modelDescription.xml, as FMPy reads it, with its variables by name."""

    archive: Archive
    model: Any
    scalars: dict[str, Scalar]
    dependencies: dict[str, frozenset[str] | None]
    """For each listed output the names of what it depends on at once; None: on everything."""
    others: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Variables that no signal or parameter can hold: causality, and what each of them is."""
    sizes: Mapping[int, int] = field(default_factory=dict)
    """Values of structural parameters by reference, where they are not the FMU's own."""
    findings: tuple[str, ...] = ()
    """Violations of the FMI standard that do not prevent a run."""

    @property
    def version(self) -> str:
        """Of FMI."""
        return str(self.model.fmiVersion)

    @property
    def has_clocks(self) -> bool:
        """Whether it has variables of type Clock."""
        return any(what == "Clock" for _, what in self.others.values())

    @property
    def clocks(self) -> Mapping[str, Clock]:
        """Its clocks, by name."""
        return list_clocks(self.model)

    @property
    def step_size(self) -> float | None:
        """The step that the FMU suggests."""
        value = self.experiment_time("stepSize", 0.0)
        return value if value > 0.0 else None

    def experiment_time(self, attribute: str, otherwise: float) -> float:
        """Return a time of the default experiment in seconds; `otherwise` if it has none."""
        experiment = self.model.defaultExperiment
        text = getattr(experiment, attribute, None) if experiment is not None else None
        value = _time(text)
        return otherwise if value is None else value


def _time(text: Any) -> float | None:
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if np.isfinite(value) else None


def read_description(archive: Archive, validate: bool = True) -> Description:
    """Read the description of an FMU through FMPy; `validate` adds findings, no errors.

    Raises
    ------
    FmuError
        If FMPy is not installed, or the description cannot be read.
    """
    return _read_description(archive, validate)


@lru_cache(maxsize=64)
def _read_description(archive: Archive, validate: bool) -> Description:
    require_fmpy(f"read `{archive.path.name}`")
    from ._model_file import read_model

    with _parsing:
        model, findings = read_model(archive, validate)
    try:
        return _describe(archive, model, [*archive.findings, *findings], {})
    except FmuError:
        raise
    except Exception as error:  # without validation, FMPy passes on whatever the file holds
        raise FmuError(
            f"the description in `{archive.path}` cannot be used: {type(error).__name__}: {error}."
        ) from error


def resize(description: Description, given: Mapping[str, Any]) -> Description:
    """Return the description with the array sizes that given structural parameters make.

    Raises
    ------
    FmuError
        If a structural parameter is not an integer of its type, or an array becomes too large.
    """
    sizes = {}
    for name, value in given.items():
        scalar = description.scalars.get(name)
        if scalar is not None and scalar.causality == "structuralParameter" and scalar.is_number:
            number = scalar.number(value)
            if [number] != scalar.starts():
                sizes[scalar.reference] = int(number)
    if not sizes:
        return description
    return _describe(description.archive, description.model, [*description.findings], sizes)


def _describe(
    archive: Archive, model: Any, findings: list[str], sizes: dict[int, int]
) -> Description:
    units = {u.name: _unit(u) for u in model.unitDefinitions}
    scalars: dict[str, Scalar] = {}
    others: dict[str, tuple[str, str]] = {}
    binaries = any(variable.type == "Binary" for variable in model.modelVariables)
    mime_types: Mapping[int, tuple[str]] = {}
    if binaries:
        from ._model_file import read_mime_types

        mime_types = read_mime_types(archive)
    for variable in model.modelVariables:
        name = variable.name
        if name in scalars and scalars[name].causality != "local":
            continue  # of several variables of one name the first that can be a port
        shape = shape_of(variable, sizes)
        if variable.type in TYPES and 0 < math.prod(shape) <= LARGEST_ARRAY:
            resized = shape != (variable.shape or ())
            scalars[name] = _scalar(variable, units, findings, shape, resized, mime_types)
            others.pop(name, None)
        elif name not in scalars:
            size = " × ".join(map(str, shape))
            what = f"array of {size} {variable.type}" if shape else variable.type
            others[name] = variable.causality or "local", what
    dependencies = {
        unknown.variable.name: None
        if unknown.dependencies is None
        else frozenset(v.name for v in unknown.dependencies)
        for unknown in model.outputs
    }
    _check_experiment(model.defaultExperiment, findings)
    _check_identifiers(archive, model, findings)
    return Description(
        archive, model, scalars, dependencies, others, sizes, tuple(dict.fromkeys(findings))
    )


def _check_experiment(experiment: Any, findings: list[str]) -> None:
    times = {}
    for name in ("startTime", "stopTime", "stepSize", "tolerance"):
        text = getattr(experiment, name, None)
        if text is not None and _time(text) is None:
            findings.append(
                f"DefaultExperiment has {name}={str(text)!r}, which is not a number: it is ignored."
            )
        times[name] = _time(text)
    if times["stopTime"] is not None and times["stopTime"] < (times["startTime"] or 0.0):
        findings.append("DefaultExperiment has a stopTime before its startTime.")


def _check_identifiers(archive: Archive, model: Any, findings: list[str]) -> None:
    for kind, interface in (
        ("CoSimulation", model.coSimulation),
        ("ModelExchange", model.modelExchange),
    ):
        if interface is None:
            continue
        name = interface.modelIdentifier
        if not name:
            raise FmuError(
                f"the description in `{archive.path}` has no modelIdentifier in {kind}, which is "
                f"the name of its binary."
            )
        with contextlib.suppress(FmuError):  # no binary for this platform: an error when it runs
            binary = PurePosixPath(find_binary(archive, name))
            if binary.stem != name:
                findings.append(
                    f"the modelIdentifier of {kind} is {name!r}, but its binary is `{binary}`, "
                    f"which is used."
                )


def warn_of_findings(description: Description, stacklevel: int) -> None:
    """Issue one warning that lists the findings, if there are any."""
    found = description.findings
    if not found:
        return
    shown = "\n".join(f"  - {finding}" for finding in found[:_SHOWN_FINDINGS])
    more = len(found) - _SHOWN_FINDINGS
    rest = f"\n  … and {more} more, which `biella validate` lists" if more > 0 else ""
    warnings.warn(
        f"{description.archive.path.name} violates the FMI standard, which does not prevent a "
        f"run:\n{shown}{rest}\nvalidate=False suppresses this warning.",
        BiellaWarning,
        stacklevel=stacklevel + 1,
    )


def require_fmpy(purpose: str) -> None:
    """Raise an error with the install command if FMPy is missing."""
    try:
        import fmpy  # noqa: F401
    except ImportError as error:
        raise FmuError(
            f"to {purpose}, biella requires FMPy: install it with `pip install fmpy`."
        ) from error


def _scalar(
    variable: Any,
    units: Mapping[str, Unit | None],
    findings: list[str],
    shape: tuple[int, ...],
    resized: bool,
    mime_types: Mapping[int, tuple[str]],
) -> Scalar:
    declared = variable.declaredType
    reference = int(variable.valueReference)
    causality = variable.causality or "local"
    if not 0 <= reference < 1 << 32:
        problem = (
            f"`{variable.name}` has the value reference {reference}, outside the range 0 to "
            f"4294967295 of FMI."
        )
        if causality != "local":
            raise FmuError(problem)
        findings.append(problem)
    name = variable.unit or (declared.unit if declared is not None else None)
    unit = None
    if name and TYPES[variable.type] == REAL:
        unit = units[name] if name in units else _parse(name)
    scalar = Scalar(
        variable.name,
        reference,
        TYPES[variable.type],
        variable.type,
        causality,
        variable.variability or "continuous",
        variable.initial,
        None if resized else variable.start,
        unit,
        variable.description or "",
        _item_names(declared) if variable.type == "Enumeration" else mime_types.get(reference, ()),
        shape,
        "" if variable.alias is None else variable.alias.name,
        tuple(clock.name for clock in variable.clocks or ()),
    )
    # FMI 3.0 has no start value for an array whose size was changed.
    return scalar if resized else _with_usable_start(scalar, findings)


def _with_usable_start(scalar: Scalar, findings: list[str]) -> Scalar:
    """Return a variable whose start value is of its type; an input without one gets 0."""
    start = scalar.start
    if start is not None and scalar.is_number:
        try:
            scalar.numbers(start)
        except FmuError as error:
            start = None
            findings.append(f"the start value is not used: {error}")
    if start is None and scalar.causality == "input" and scalar.is_number:
        start = "0"
        findings.append(
            f"the input `{scalar.name}` has no start value: {start or 'an empty string'} is used."
        )
    return scalar if start == scalar.start else replace(scalar, start=start)


def _item_names(declared: Any) -> tuple[str, ...]:
    """Return the names of an enumeration; none where its values are not 1, 2, …, as FMI allows."""
    items = sorted(declared.items or (), key=lambda item: int(item.value)) if declared else []
    if [int(item.value) for item in items] != list(range(1, len(items) + 1)):
        return ()
    return tuple(str(item.name) for item in items)


_FREE_OF_INPUTS = ("parameter", "structuralParameter", "calculatedParameter", "independent")


def _parse(name: str) -> Unit | None:
    try:
        return parse_unit(name)
    except UnitError:
        return None


def _unit(definition: Any) -> Unit | None:
    """Return a unit of the FMU; its name is used if it is more specific than its base exponents.

    Tools often omit the radian, and FMI has no unit ``count``.
    """
    named = _parse(definition.name)
    base = definition.baseUnit
    if base is None:
        return named
    powers = [int(getattr(base, symbol)) for symbol in BASE_UNITS]
    kg, m, s, ampere, kelvin, mol, cd, rad = powers
    exponents = (kg, m, s, ampere, kelvin, mol, cd, rad)
    unit = Unit(definition.name, exponents, float(base.factor), float(base.offset))
    if (
        named is not None
        and named.exponents[:-1] == exponents[:-1]
        and rad in (0, named.exponents[-1])
        and np.isclose(named.factor, unit.factor, rtol=1e-6)
        and np.isclose(named.offset, unit.offset, rtol=1e-6)
    ):
        return named
    return unit


def group_elements(scalars: Sequence[Scalar], taken: set[str]) -> list[Group]:
    """Join ``name[0]``, ``name[1]``, … (or from 1) that follow each other into vectors.

    `taken` are names that a vector must not have.
    """
    groups: list[Group] = []
    n = 0
    while n < len(scalars):
        run = _run_of_elements(scalars, n)
        match = _ELEMENT.match(scalars[n].name)
        if len(run) > 1 and match and match["base"] not in taken:
            groups.append(Group(match["base"], tuple(run)))
            n += len(run)
        else:
            groups.append(Group(scalars[n].name, (scalars[n],)))
            n += 1
    uses = Counter(group.name for group in groups)
    return [
        piece
        for group in groups
        for piece in (
            [group]
            if uses[group.name] == 1
            else [Group(scalar.name, (scalar,)) for scalar in group.scalars]
        )
    ]


def _run_of_elements(scalars: Sequence[Scalar], first: int) -> list[Scalar]:
    match = _ELEMENT.match(scalars[first].name)
    if match is None or int(match["index"]) > 1:
        return []
    base, index, like = match["base"], int(match["index"]), scalars[first]
    run = []
    for scalar in scalars[first:]:
        same = (scalar.fmi_type, scalar.unit, scalar.variability, scalar.causality)
        if scalar.name != f"{base}[{index}]" or same != (
            like.fmi_type, like.unit, like.variability, like.causality
        ):  # fmt: skip
            break
        run.append(scalar)
        index += 1
    return run


@dataclass(frozen=True, slots=True)
class Interface:
    """The part of an FMU that a block shows: ports, parameters, and what to set before a run."""

    inputs: list[Group]
    outputs: list[Group]
    parameters: list[Group]
    """Tunable ones first."""
    values: dict[str, list[float]]
    """Of the parameters, by name."""
    given: set[str]
    """Names of scalar variables that the user has set."""
    strings: dict[int, Any] = field(default_factory=dict)
    """String parameters by reference: a string, or of an array a tuple of them."""
    binaries: dict[int, tuple[bytes, ...]] = field(default_factory=dict)
    """Binary parameters by reference."""
    given_feedthrough: list[tuple[str, str]] | None = None
    """Pairs (output, input) that replace those of the description."""

    @property
    def tunable(self) -> int:
        """How many numbers of the parameters can be changed during a run."""
        return sum(group.width for group in self.parameters if _is_tunable(group))

    def ports(self, groups: Sequence[Group], input_values: Mapping[str, list[float]]) -> list[Port]:
        """Return ports for `groups`; an input's default is its start."""
        made = []
        for group in groups:
            first = group.first
            starts = [
                input_values.get(s.alias or s.name, s.starts()) if s.is_number else [0.0]
                for s in group.scalars
            ]  # a string or binary that is not connected keeps its start value in the FMU
            default: float | tuple[float, ...] | None = None
            if first.causality == "input" and None not in starts:
                numbers = tuple(number for some in starts if some for number in some)
                default = numbers if len(numbers) > 1 else numbers[0]
            made.append(
                Port(
                    group.name,
                    group.width,
                    first.unit,
                    first.kind,
                    default,
                    first.doc,
                    first.names,
                )
            )
        return made

    def block_parameters(self) -> list[Parameter]:
        """Return the parameters of the block, followed by the FMU's own start values (hidden)."""
        made, own = [], []
        for group in self.parameters:
            values = self.values[group.name]
            starts = group.starts()
            own += values if starts is None else starts
            made.append(
                parameter(
                    group.name,
                    np.reshape(values, group.first.shape) if len(group.scalars) == 1 else values,
                    unit=group.first.unit,
                    doc=group.first.doc,
                    tunable=_is_tunable(group),
                    # A structural parameter determines widths, which a compiled diagram keeps.
                    hidden=group.first.causality == "structuralParameter",
                    finite=False,
                )
            )
        if own:
            made.append(parameter("own starts", own, hidden=True, finite=False))
        return made

    def feedthrough(self, description: Description) -> list[tuple[str, str]]:
        """Return the pairs (output, input) of ports with direct feedthrough."""
        if self.given_feedthrough is not None:
            return self.given_feedthrough
        pairs = []
        for output in self.outputs:
            for input_ in self.inputs:
                names = {s.alias or s.name for s in input_.scalars}
                for scalar in output.scalars:
                    if scalar.causality in _FREE_OF_INPUTS or scalar.variability == "constant":
                        continue
                    if _is_transferred(description, input_.first):
                        continue
                    needs = description.dependencies.get(scalar.alias or scalar.name)
                    if needs is None or needs & names:
                        pairs.append((output.name, input_.name))
                        break
        return pairs


def _is_tunable(group: Group) -> bool:
    first = group.first
    return first.variability == "tunable" and first.causality != "structuralParameter"


def choose_interface(
    description: Description,
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
    given: Mapping[str, Any],
    activates: bool = False,
    shows_clocks: bool = False,
) -> tuple[Interface, dict[str, list[float]]]:
    """Return what a block shows, and the values given for inputs.

    `activates`: whether clocks of the FMU are activated; `shows_clocks`: whether they are ports.

    Raises
    ------
    FmuError
        If a name is not in the FMU, or a variable cannot be what it is named for.
    """
    clocks = _clock_ports(description) if shows_clocks else {}
    scalars = {**description.scalars, **clocks}
    plain = {s.name for s in scalars.values()}
    label = description.archive.path.name
    usable = [s for s in scalars.values() if s.can_be_port and not s.alias]
    taken_inputs = [s for s in usable if s.causality == "input"]
    shown = [s for s in usable if s.causality == "output"]
    by_default = [s for s in shown if s.name not in clocks or _is_shown(description, s.name)]
    all_inputs = group_elements(taken_inputs, plain)
    all_outputs = group_elements(shown, plain)
    chosen_names = [*(inputs or ()), *(outputs or ())]
    _reject_others(description, [*(n for n in chosen_names if n not in clocks), *given])
    chosen_in = all_inputs if inputs is None else _pick(label, "input", inputs, all_inputs, scalars)
    chosen_out = (
        group_elements(by_default, plain)
        if outputs is None
        else _pick(label, "output", outputs, all_outputs, scalars, others=True)
    )
    active = {c.name for c in active_clocks(description.clocks.values(), label)}
    active = active if activates else set()
    triggered = contract.HOST_CLOCK_TRIGGERED
    active -= {c.name for c in description.clocks.values() if c.kind == triggered}
    active |= {group.name for group in chosen_in}
    _reject_clocked(description, [*chosen_in, *chosen_out], active, activates, shows_clocks)
    _reject_repeated(label, chosen_in)
    _warn_of_left_out(description, inputs is None, outputs is None, active | set(clocks))
    numbers = [
        s
        for s in usable
        if s.causality == "parameter"
        and s.variability != "constant"
        and s.start is not None
        and s.is_number
    ]
    parameters = group_elements(numbers, plain)
    expanded = _expand(label, given, scalars, [*parameters, *all_inputs])
    texts = {n: scalars[n].texts(v, label) for n, v in expanded.items() if not scalars[n].is_number}
    strings = {
        scalars[n].reference: v if scalars[n].shape else v[0]
        for n, v in texts.items()
        if scalars[n].type == STRING
    }
    binaries = {scalars[n].reference: v for n, v in texts.items() if scalars[n].type != STRING}
    input_values = {
        n: scalars[n].numbers(v)
        for n, v in expanded.items()
        if scalars[n].causality == "input" and scalars[n].is_number
    }
    listed = {s.name for group in parameters for s in group.scalars}
    for name in expanded:
        scalar = scalars[name]
        if name in listed or not scalar.is_number or scalar.causality == "input":
            continue
        settable = ("parameter", "structuralParameter")
        if scalar.causality not in settable and scalar.initial not in ("exact", "approx"):
            raise FmuError(
                f"`{name}` of {label} cannot be set before a run: it is {scalar.causality}, "
                f"{scalar.variability}, initial={scalar.initial}."
            )
        parameters.append(Group(name, (scalar,)))
    for name in input_values:
        if not any(name == (s.alias or s.name) for group in chosen_in for s in group.scalars):
            parameters.append(Group(name, (scalars[name],)))
    parameters.sort(key=lambda group: not _is_tunable(group))
    values = {
        g.name: [v for s in g.scalars for v in s.numbers(expanded.get(s.name, s.start))]
        for g in parameters
    }
    # An output that is a parameter, or a state with a given start, shows what was set.
    names = {group.name for group in chosen_in}
    if clash := names & {group.name for group in parameters}:
        raise FmuError(f"`{min(clash)}` of {label} is already a port and cannot be set.")
    return Interface(
        chosen_in, chosen_out, parameters, values, set(expanded), strings, binaries
    ), input_values


def _reject_clocked(
    description: Description,
    groups: Sequence[Group],
    active: set[str],
    activates: bool,
    shows_clocks: bool,
) -> None:
    """Reject ports whose clocks are never activated."""
    label = description.archive.path.name
    scalars = [s for group in groups for s in group.scalars if s.clocks]
    stuck = [s for s in scalars if not active & set(s.clocks)]
    if stuck:
        name, clock = stuck[0].name, stuck[0].clocks[0]
        if not activates:
            reason = "and clocks are activated only in event mode, by the engine"
        elif clock in _clock_ports(description) and shows_clocks:
            reason = (
                f"which has to be triggered from outside and is not among inputs=[…]: add `{clock}`"
            )
        else:
            reason = "and triggered input clocks are not activated in model exchange"
        raise FmuError(
            f"`{name}` of {label} is activated by the clock `{clock}`, {reason}: its value would "
            f"never change. To run the FMU without its {len(stuck)} ports of that kind, choose "
            f"others with inputs=[…] and outputs=[…]."
        )


def _clock_ports(description: Description) -> dict[str, Scalar]:
    """Return the clocks that can be ports, by name: of kind boolean.

    Triggered input clocks are inputs; all others that the engine handles are outputs.
    """
    ports = {}
    for clock in description.clocks.values():
        if clock.kind is None:
            continue
        is_input = clock.kind == contract.HOST_CLOCK_TRIGGERED
        causality = "input" if is_input else "output"
        doc = "activates the clock" if is_input else "whether the clock has been active"
        ports[clock.name] = Scalar(
            clock.name, clock.reference, BOOLEAN, "Clock", causality, "discrete", None,
            "0" if is_input else None, None, doc,
        )  # fmt: skip
    return ports


def _is_shown(description: Description, name: str) -> bool:
    """Whether an output that is a clock is a port by default.

    Clocks based on time are only if they are the sending clock of a bus terminal.
    """
    if description.clocks[name].variability == "triggered":
        return True
    from ..standards._terminals import read_terminals

    return any(
        member.variable == name and member.name == "Tx_Clock"
        for top in read_terminals(description.archive)
        for _, terminal in top.walk()
        for member in terminal.members
    )


def _is_transferred(description: Description, scalar: Scalar) -> bool:
    """Whether an input is a triggered clock, or only such clocks activate it.

    The FMU receives it in the event of a step, not when its outputs are evaluated.
    """
    clocks = description.clocks
    kinds = {clocks[name].kind for name in scalar.clocks if name in clocks}
    return scalar.fmi_type == "Clock" or kinds == {contract.HOST_CLOCK_TRIGGERED}


def describe_idle_inputs(
    description: Description, interface: Interface, connected: Collection[str]
) -> str:
    """Return a warning of inputs that are connected, while none of their clocks is; or nothing."""
    clocks = description.clocks
    triggered = {name for name, c in clocks.items() if c.kind == contract.HOST_CLOCK_TRIGGERED}
    idle = {
        scalar.name: scalar.clocks[0]
        for group in interface.inputs
        for scalar in group.scalars
        if group.name in connected
        and scalar.clocks
        and set(scalar.clocks) <= triggered - set(connected)
    }
    if not idle:
        return ""
    names, clock = name_list(f"`{name}`" for name in idle), next(iter(idle.values()))
    return (
        f"the FMU never receives {names}: the clock `{clock}` is not connected, and nothing else "
        f"activates it. Connect it to the clock of the FMU that sends, or to a boolean signal."
    )


def _reject_repeated(label: str, groups: Sequence[Group]) -> None:
    chosen: dict[str, str] = {}
    for group in groups:
        for s in group.scalars:
            before = chosen.setdefault(s.alias or s.name, s.name)
            if before != s.name:
                raise FmuError(
                    f"`{before}` and `{s.name}` are two names of one input of {label}: choose one."
                )


def _reject_others(description: Description, names: Sequence[str]) -> None:
    for name in names:
        if name in description.others:
            raise FmuError(
                f"`{name}` of {description.archive.path.name} is of type "
                f"{description.others[name][1]}, which biella cannot set or read: signals and "
                f"parameters are numbers."
            )


def _warn_of_left_out(
    description: Description, inputs: bool, outputs: bool, active: set[str]
) -> None:
    """Warn of inputs and outputs that become no ports though none were chosen."""
    kinds = {
        name: (s.causality, f"array of {s.fmi_type}")
        for name, s in description.scalars.items()
        if not (s.can_be_port or s.alias)
    }
    shown = {"input": inputs, "output": outputs}
    left = [
        f"{causality} {name} ({what})"
        for name, (causality, what) in (kinds | description.others).items()
        if shown.get(causality) and name not in active
    ]
    idle = any(name not in active for name in description.clocks)
    if left:
        warnings.warn(
            f"{description.archive.path.name} has variables that cannot become ports, because "
            f"signals are numbers, strings or binaries: {name_list(left, 8)}. Such an input "
            f"keeps its start value, such an output is not read"
            f"{', and such a clock is not activated' if idle else ''}. inputs=[…] and "
            f"outputs=[…] choose ports without this warning.",
            BiellaWarning,
            stacklevel=4,
        )


def _pick(
    label: str,
    what: str,
    names: Sequence[str],
    groups: Sequence[Group],
    scalars: Mapping[str, Scalar],
    others: bool = False,
) -> list[Group]:
    by_name = {group.name: group for group in groups}
    elements = {s.name: s for group in groups for s in group.scalars}
    picked = []
    for name in [names] if isinstance(names, str) else names:
        found = by_name.get(name)
        if found is None and name in elements:
            found = Group(name, (elements[name],))
        known = scalars.get(name)
        if found is None and known is not None and known.alias in by_name:
            found = Group(name, (known,))
        if found is None and others and known is not None and known.can_be_port:
            found = Group(name, (known,))
        if found is None and known is not None and not known.can_be_port:
            raise FmuError(
                f"`{name}` of {label} is an array of {known.fmi_type}, which cannot be a port: "
                f"signals are numbers, and strings and binaries that are no arrays."
            )
        if found is None and (array := _array_of(name, scalars)) is not None:
            raise FmuError(
                f"`{name}` is an element of the array `{array}` of {label}, which is a port as a "
                f"whole: choose `{array}`."
            )
        if found is None:
            raise FmuError(
                f"{label} has no {what} `{name}`.{suggest(name, [*by_name, *scalars])} "
                f"{what.capitalize()}s: {name_list(by_name)}."
            )
        picked.append(found)
    return picked


def _expand(
    label: str, given: Mapping[str, Any], scalars: Mapping[str, Scalar], groups: Sequence[Group]
) -> dict[str, Any]:
    """Return values for scalar variables from values that may be for vectors."""
    by_name = {group.name: group for group in groups}
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name in scalars:
            found[scalars[name].alias or name] = value
        elif name in by_name:
            group = by_name[name]
            values = np.asarray(value, dtype=float).ravel()
            if values.size != len(group.scalars):
                raise FmuError(f"`{name}` has {len(group.scalars)} values, got {values.size}.")
            found |= {s.name: float(v) for s, v in zip(group.scalars, values, strict=True)}
        else:
            settable = [*by_name, *(n for n, s in scalars.items() if s.causality == "parameter")]
            raise FmuError(
                f"{label} has no variable `{name}`.{suggest(name, settable)} "
                f"Settable variables: {name_list(dict.fromkeys(settable))}."
            )
    for name, value in found.items():
        if scalars[name].is_number:
            scalars[name].numbers(value)
    return found


def _array_of(name: str, scalars: Mapping[str, Scalar]) -> str | None:
    """Return the array that `name` is an element of."""
    base = name.partition("[")[0]
    return base if base != name and base in scalars and scalars[base].shape else None


def check_period(period: float | None, substeps: int) -> None:
    """Refuse what cannot be a step."""
    if period is not None and not (np.isfinite(period) and period > 0):
        raise DiagramError(f"the period must be a positive time in s, got {period!r}.")
    if not isinstance(substeps, int) or isinstance(substeps, bool) or substeps < 1:
        raise DiagramError(f"`substeps` must be an integer, at least 1; got {substeps!r}.")
