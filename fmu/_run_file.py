"""An FMU run alone, with inputs from a table: ``biella simulate``, and reference experiments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ..blocks.basic.math._math import Convert
from ..blocks.basic.sources._playback import Playback, check_unit, read_columns
from ..errors import FmuError, name_list, suggest
from ..scheduler.compile.diagram._diagram import Diagram
from ..scheduler.compile.diagram._solver_options import ADAPTIVE
from ..scheduler.results._result import Result
from ..scheduler.run._simulate import simulate
from .importer._archive import read_archive
from .importer._fmu import Fmu
from .importer._interface import Description, read_description
from .importer._kinds import Kind, choose_kind, is_exchange

_STEPS = 500  # of a run whose FMU suggests none
_TOLERANCE = 1e-6  # of model exchange whose FMU suggests none
_LARGEST_RECORD = 100  # variables of an FMU without outputs


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
    isolate: bool | Literal["strict"] = False,
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
    if name in description.scalars and description.scalars[name].shape:  # FMI 3.0: one array
        wanted = description.scalars[name].element_names
    given = [f"{name}[{element}]" for element in elements] or [name]
    if given != wanted:
        raise FmuError(
            f"the input `{name}` requires the columns {name_list(wanted or [name])}; `{path}` has "
            f"{name_list(given)}."
        )
