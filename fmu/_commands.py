"""What ``biella info``, ``biella validate`` and ``biella simulate`` do with an FMU file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Group as Lines
from rich.markup import escape
from rich.table import Table

from ..blocks.basic.math._math import Convert
from ..blocks.basic.sources._playback import Playback, check_unit, read_columns
from ..errors import FmuError, name_list, suggest
from ..scheduler.compile.diagram._diagram import Diagram
from ..scheduler.compile.diagram._solver_options import ADAPTIVE
from ..scheduler.results._result import Result
from ..scheduler.run._simulate import simulate
from .importer._archive import find_binary, platform_names, read_archive
from .importer._fmu import Fmu
from .importer._interface import Description, read_description, require_fmpy
from .importer._kinds import Kind, choose_kind, is_exchange
from .importer._variables import Scalar
from .standards._terminals import Terminal, check_terminals, read_terminals

_CAPABILITIES = (
    "canHandleVariableCommunicationStepSize",
    "canInterpolateInputs",
    "canGetAndSetFMUstate",
    "canSerializeFMUstate",
    "providesDirectionalDerivative",
    "hasEventMode",
    "mightReturnEarlyFromDoStep",
    "canBeInstantiatedOnlyOncePerProcess",
    "needsExecutionTool",
)
_HEADINGS = ("name", "type", "variability", "start", "unit", "depends on", "description")
_SHOWN = 30
_STEPS = 500  # of a run whose FMU suggests none
_TOLERANCE = 1e-6  # of model exchange whose FMU suggests none
_LARGEST_RECORD = 100  # variables of an FMU without outputs


def describe_fmu(path: Path, everything: bool = False) -> Lines:
    """Return tables of the model description of an FMU."""
    description = read_description(read_archive(path), validate=False)
    head = Table(show_header=False, box=None, pad_edge=False)
    for name, value in _facts(description).items():
        if value:
            head.add_row(name, escape(str(value)))
    return Lines(head, *_variable_tables(description, everything), *_terminal_tables(description))


def list_fmu(path: Path, everything: bool = False) -> dict[str, Any]:
    """Return the same as plain data."""
    description = read_description(read_archive(path), validate=False)
    shown = ("input", "output", "parameter")
    return {
        **_facts(description),
        "variables": [
            {
                "name": scalar.name,
                "causality": scalar.causality,
                "variability": scalar.variability,
                "type": scalar.fmi_type,
                "start": scalar.start,
                "unit": None if scalar.unit is None else str(scalar.unit),
                "description": scalar.doc,
            }
            for scalar in description.scalars.values()
            if everything or scalar.causality in shown
        ],
        "terminals": [
            {
                "name": path,
                "matching rule": terminal.rule,
                "kind": terminal.kind,
                "description": terminal.description,
                "members": [
                    {"name": m.name, "variable": m.variable, "kind": m.kind}
                    for m in terminal.members
                ],
            }
            for path, terminal in _terminals(description)
        ],
    }


def _terminals(description: Description) -> list[tuple[str, Terminal]]:
    return [pair for top in read_terminals(description.archive) for pair in top.walk()]


def _terminal_tables(description: Description) -> list[Table]:
    found = _terminals(description)
    if not found:
        return []
    table = Table(title=f"terminals ({len(found)})", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("name", "rule", "kind", "members"):
        table.add_column(heading, overflow="fold")
    for path, terminal in found:
        members = [
            m.variable if m.name in ("", m.variable) else f"{m.name} = {m.variable}"
            for m in terminal.members
        ]
        table.add_row(*map(escape, (path, terminal.rule, terminal.kind, name_list(members, 12))))
    return [table]


def _facts(description: Description) -> dict[str, Any]:
    model, archive = description.model, description.archive
    kinds = [
        name
        for name, there in (
            ("co-simulation", model.coSimulation),
            ("model exchange", model.modelExchange),
            ("scheduled execution", model.scheduledExecution),
        )
        if there is not None
    ]
    new = description.version.startswith("3")
    this = platform_names()[1] if new else platform_names()[0]
    there = this in archive.platforms
    platforms = ", ".join(archive.platforms) or "none"
    facts: dict[str, Any] = {
        "file": f"{archive.path} ({archive.path.stat().st_size / 1e6:.2f} MB)",
        "model": model.modelName,
        "description": model.description,
        "FMI": f"{description.version}, {' and '.join(kinds)}",
        "made by": model.generationTool,
        "made at": model.generationDateAndTime,
        "author": model.author,
        "GUID": model.guid,
        "platforms": platforms + ("" if there else f" (this one, {this}, is missing)"),
        "states": model.numberOfContinuousStates or None,
    }
    facts["cannot be used"] = ", ".join(
        f"{name} ({causality}, {what})" for name, (causality, what) in description.others.items()
    )
    experiment = model.defaultExperiment
    if experiment is not None:
        named = (("start", "startTime"), ("stop", "stopTime"), ("step", "stepSize"))
        shown = [f"{n} {getattr(experiment, a)} s" for n, a in named if getattr(experiment, a)]
        facts["experiment"] = ", ".join(shown)
    interface = model.coSimulation or model.modelExchange
    if interface is not None:
        able = [name for name in _CAPABILITIES if getattr(interface, name, False)]
        facts["flags"] = ", ".join(able) or "none"
    return facts


def _variable_tables(description: Description, everything: bool) -> list[Table]:
    tables = []
    for causality in ("input", "output", "parameter", "calculatedParameter", "local"):
        scalars = [s for s in description.scalars.values() if s.causality == causality]
        if not scalars or (causality in ("calculatedParameter", "local") and not everything):
            continue
        shown = scalars if everything else scalars[:_SHOWN]
        title = {"calculatedParameter": "calculated parameters", "local": "local variables"}
        table = Table(
            title=f"{title.get(causality, f'{causality}s')} ({len(scalars)})",
            title_justify="left",
            box=box.SIMPLE_HEAD,
        )
        rows = [_cells(description, scalar) for scalar in shown]
        used = [n for n in range(len(_HEADINGS)) if any(row[n] for row in rows)]
        for n in used:
            table.add_column(_HEADINGS[n], overflow="fold", no_wrap=_HEADINGS[n] != "description")
        for row in rows:
            table.add_row(*(escape(row[n]) for n in used))
        if len(shown) < len(scalars):
            table.caption = f"{len(scalars) - len(shown)} more: --all"
        tables.append(table)
    return tables


def _cells(description: Description, scalar: Scalar) -> list[str]:
    needs = description.dependencies.get(scalar.name, frozenset())
    depends = (
        ""
        if scalar.causality != "output"
        else "all"
        if needs is None
        else name_list(sorted(needs), 4)
    )
    return [
        scalar.name,
        scalar.fmi_type,
        scalar.variability,
        scalar.start or "",
        "" if scalar.unit is None else str(scalar.unit),
        "" if depends == "none" else depends,
        scalar.doc,
    ]


@dataclass(frozen=True, slots=True)
class Findings:
    """What is wrong with an FMU file: errors prevent a run, warnings do not."""

    errors: list[str]
    warnings: list[str]


def check_fmu(path: Path) -> Findings:
    """Return what is wrong with an FMU file, by FMPy's checks and ours."""
    archive = read_archive(path)
    require_fmpy(f"validate `{path.name}`")
    try:
        description = read_description(archive)
    except FmuError as error:
        return Findings([str(error)], list(archive.findings))
    errors, warnings = _check_binaries(description)
    from fmpy.validation import validate_fmu

    known = _without_lines(description.findings)
    further = [p for p in map(str, validate_fmu(str(path))) if not _without_lines([p]) & known]
    names = {*description.scalars, *description.others}
    warnings = [*description.findings, *further, *warnings, *check_terminals(archive, names)]
    return Findings(errors, list(dict.fromkeys(warnings)))


def _without_lines(problems: Iterable[str]) -> set[str]:
    """Return problems without their place in the file, which each check states in its own way."""
    return {re.sub(r"^(line \d+|\w+ \(line \d+, column \d+\)): ", "", text) for text in problems}


def _check_binaries(description: Description) -> tuple[list[str], list[str]]:
    """Return errors for this platform, and warnings for the others."""
    archive, model = description.archive, description.model
    errors, warnings = [], []
    interfaces = [i for i in (model.coSimulation, model.modelExchange) if i is not None]
    if not interfaces:
        errors.append("it supports neither co-simulation nor model exchange.")
    for interface in interfaces:
        name = interface.modelIdentifier
        try:
            find_binary(archive, name)
        except FmuError as error:
            errors.append(str(error))
        for folder in archive.platforms:
            there = [m for m in archive.members if m.startswith(f"binaries/{folder}/")]
            if folder not in platform_names() and not any(Path(m).stem == name for m in there):
                warnings.append(f"binaries/{folder} has no library `{name}`.")
    return list(dict.fromkeys(errors)), warnings


def simulate_fmu_file(
    path: Path,
    *,
    start: float | None = None,
    stop: float | None = None,
    step: float | None = None,
    inputs: Path | None = None,
    parameters: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    kind: Kind | None = None,
    solver: str | None = None,
    tolerance: Any = None,
    events: Any = None,
    backend: Any = "engine",
    isolate: bool = False,
    timeout: float | None = None,
    logging: bool = False,
    validate: bool = True,
) -> Result:
    """Run an FMU alone, with inputs from a table, and return its outputs.

    Times and step are by default those that the FMU suggests. A column of the file `inputs` plays
    the input that it is named for; reals are interpolated, what is discrete is held. Solver,
    tolerance and events are those of the diagram that integrates an FMU for model exchange, by
    default dopri5 with the tolerance that the FMU suggests, else 1e-6.
    """
    description = choose_kind(read_description(read_archive(path), validate), kind)
    exchanges = backend == "engine" and is_exchange(description)
    if not exchanges and (solver, tolerance, events) != (None, None, None):
        raise FmuError(
            f"{path.name} runs for co-simulation, with its own solver: --solver, --tolerance and "
            f"--events are options of diagrams and of model exchange (--kind me)."
        )
    first = start if start is not None else description.experiment_time("startTime", 0.0)
    last = stop if stop is not None else description.experiment_time("stopTime", first + 1.0)
    if stop is None and last <= first:  # what the FMU suggests is not a time span
        last = first + 1.0
    step = step or description.step_size or _round_step((last - first) / _STEPS)
    name = re.sub(r"[^A-Za-z0-9_]", "_", path.stem)
    name = name if name[:1].isalpha() else f"fmu_{name}"
    options: dict[str, Any] = {}
    if exchanges:
        options = _solver_options(description, solver, tolerance, events)
    diagram = Diagram(path.stem, step=step, start_time=first, **options)
    outputs = outputs or _local_variables(description)
    block = Fmu(
        path,
        kind=kind,
        period=None if exchanges else step,
        parameters=parameters,
        outputs=outputs or None,
        backend=backend,
        isolate=isolate,
        timeout=timeout,
        logging=logging,
        validate=validate,
    )
    diagram.add(block, name=name)
    if inputs is not None:
        _play(diagram, block, inputs, description)
    if not block.outputs:
        raise FmuError(f"{path.name} has no outputs: select variables to record with --record.")
    return simulate(diagram, last, record=[f"{name}.*"])


def _solver_options(
    description: Description, solver: str | None, tolerance: Any, events: Any
) -> dict[str, Any]:
    """Return the options of a diagram that integrates an FMU for model exchange."""
    solver = solver or "dopri5"
    if tolerance is None and solver in ADAPTIVE:
        tolerance = description.experiment_time("tolerance", _TOLERANCE)
    options = {"solver": solver, "tolerance": tolerance, "events": events}
    return {name: value for name, value in options.items() if value is not None}


def _local_variables(description: Description) -> list[str] | None:
    """Return what is recorded of an FMU without outputs: its first variables that may change."""
    if any(s.causality == "output" for s in description.scalars.values()):
        return None
    changing = ("continuous", "discrete")
    return [
        s.name
        for s in description.scalars.values()
        if s.causality == "local" and s.variability in changing and s.is_number
    ][:_LARGEST_RECORD] or None


def _round_step(step: float) -> float:
    """Return the largest of 1, 2, 5 times a power of ten that is not above `step`."""
    if not step > 0:
        raise FmuError("the end time must be after the start time.")
    power = 10.0 ** int(f"{step:e}".partition("e")[2])
    return max(k * power for k in (1.0, 2.0, 5.0) if k * power <= step * (1 + 1e-12))


def _play(diagram: Diagram, block: Any, path: Path, description: Description) -> None:
    """Connect each column of a table to the input of the same name."""
    times, columns = read_columns(path)
    if "" in columns:
        raise FmuError(
            f"the first row of `{path}` must contain the column names: time, then inputs."
        )
    ports = {port.name: port for port in block.inputs}
    played: dict[str, tuple[Any, str | None]] = {}
    for name, column in columns.items():
        if name in ports:
            _check_elements(path, name, column.elements, ports[name].width, description)
            played[name] = column.values, column.unit
            continue
        elements = [f"{name}[{element}]" for element in column.elements] or [name]
        for n, element in enumerate(elements):
            if element not in ports:
                raise FmuError(
                    f"`{path}` has a column `{element}`, but {description.archive.path.name} has "
                    f"no such input.{suggest(element, ports)} Inputs: {name_list(ports)}."
                )
            values = column.values if column.values.ndim == 1 else column.values[:, n]
            played[element] = values, column.unit
    for number, (name, (values, unit)) in enumerate(played.items(), 1):
        port = ports[name]
        check_unit(path, name, unit, port.unit)
        held = port.kind != "real"
        # Names of blocks have no dots, slashes or brackets; those of variables may.
        source: Any = diagram.add(
            Playback(
                times, values, interpolation="hold" if held else "linear",
                unit=None if port.unit is None else str(port.unit),
            ),
            name=f"column {number}",
        )  # fmt: skip
        if held:
            kind = diagram.add(Convert(port.kind), name=f"as {port.kind} {number}")
            diagram.connect(source, kind)
            source = kind
        diagram.connect(source, block[name])


def _check_elements(
    path: Path, name: str, elements: Sequence[int], width: Any, description: Description
) -> None:
    """Refuse columns that are not all elements of an input."""
    if width == 1 and not elements:
        return
    wanted = [n for n in description.scalars if re.fullmatch(rf"{re.escape(name)}\[\d+\]", n)]
    given = [f"{name}[{element}]" for element in elements] or [name]
    if given != wanted:
        raise FmuError(
            f"the input `{name}` requires the columns {name_list(wanted or [name])}; `{path}` has "
            f"{name_list(given)}."
        )
