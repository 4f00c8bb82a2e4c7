"""What ``biella info`` and ``biella validate`` do with an FMU file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Group as Lines
from rich.markup import escape
from rich.table import Table

from ..errors import FmuError, name_list
from .importer._archive import find_binary, platform_names, read_archive
from .importer._interface import Description, read_description, require_fmpy
from .importer._variables import Scalar
from .standards._reference import Comparison
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


def tabulate_comparisons(compared: Sequence[Comparison]) -> Lines:
    """Return a table of reference experiments: a row for each output."""
    table = Table(title="reference experiments", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("experiment", "output", "deviation", "allowed", "at", ""):
        table.add_column(heading, overflow="fold")
    for item in compared:
        if item.problem:
            table.add_row(escape(item.experiment), escape(item.problem), "", "", "", "failed")
        for one in item.deviations:
            table.add_row(
                escape(item.experiment),
                escape(one.variable),
                f"{one.largest:.3g}",
                f"{one.allowed:.3g}",
                f"{one.time:.6g} s",
                "ok" if one.passed else "failed",
            )
    return Lines(table)


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
