"""Exporting: an FMU is a plan and the engine, zipped."""

from __future__ import annotations

import os
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy.typing as npt

from ... import __version__
from ...blocks.core._exports import Experiment, Terminals
from ...errors import (
    BiellaError,
    BiellaWarning,
    DiagramError,
    FmuError,
    name_list,
    suggest,
)
from ...scheduler.compile._compiler import compile_diagram
from ...scheduler.compile._model import Model
from ...scheduler.compile.diagram._diagram import Diagram
from ...scheduler.compile.plan._plan import Plan
from ...scheduler.run._preflight import warn_of_reactions, warn_of_steps
from ..standards._experiments import check_experiments
from ..standards._reference import make_references
from ..standards._terminal_export import choose_terminals, write_terminals
from ._clocks import Clock, describe_clocks, find_clock_rates, with_clocks
from ._description import Contents, check_about, check_version
from ._description2 import describe_fmi2
from ._description3 import describe_fmi3
from ._documentation import document, draw_pictures
from ._elf import minimum_glibc
from ._exchange import KINDS, Exchange, check_kind
from ._options import FmuOptions, check_names, check_path
from ._platforms import SUFFIXES, find_engines, platform_tuple
from ._ranges import with_declared_ranges
from ._sources import write_sources
from ._types import plan_types, with_types
from ._variables import choose_local, choose_variables, list_variables, with_ranges

_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the same input gives the same bytes


def export_fmu(
    diagram: Diagram,
    path: str | Path,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    parameters: Sequence[str] | Mapping[str, npt.ArrayLike | None] | None = None,
    platforms: Sequence[str] | None = None,
    sources: bool = True,
    version: str = "2.0",
    kind: str = "cs",
    about: Mapping[str, str] | None = None,
    local: Sequence[str] = (),
    limits: Mapping[str, tuple[float | None, float | None]] | None = None,
    nominal: Mapping[str, float] | None = None,
    types: Mapping[str, str] | None = None,
    clocks: bool = False,
    terminals: Terminals = True,
    reference: Experiment | Sequence[Experiment] | None = None,
) -> Path:
    """Write `diagram` as a self-contained FMU and return its path.

    The FMU has the diagram's own inputs and outputs, its base step, its solver with the tolerance,
    and its treatment of events. For model exchange, the importing tool has the solver.

    Parameters
    ----------
    inputs
        Source blocks that become inputs of the FMU, with their first value as start.
    outputs
        More signals that become outputs, such as ``"plant.speed"``.
    parameters
        Paths or patterns of the parameters to show, all of them if not given. A mapping gives some
        of them other values to start with, by path; None leaves a value as it is.
    platforms
        Of ``"linux64"``, ``"win64"`` and ``"darwin64"``, those that it is to run on: compiled
        through ziglang once, for Linux so that glibc 2.17 is enough. If not given, this one, with
        the engine that runs here.
    sources
        Whether its C sources go with it.
    version
        Of FMI: ``"2.0"`` or ``"3.0"``. In FMI 2.0 each element of a port or parameter with several
        values is a variable; in FMI 3.0 the whole is one array.
    kind
        ``"cs"`` for co-simulation, ``"me"`` for model exchange, or ``"both"``.
    about
        What the description says about the model: texts by the keys ``"author"``, ``"version"``,
        ``"license"``, ``"copyright"`` and ``"description"``.
    local
        Paths or patterns of signals that become local variables, such as ``"plant.*"``: tools can
        show them, but not connect them.
    limits
        Smallest and largest value of variables by name, such as ``{"torque": (-40.0, 40.0)}``; None
        where there is no limit. They are declared, not enforced. Without, the ranges are those that
        blocks declare: of parameters, and for co-simulation of limited outputs whose limits are not
        parameters of the FMU.
    nominal
        Typical magnitude of real variables by name.
    types
        Types of variables by name, in FMI 3.0: ``"Float32"`` for real variables, parameters among
        them; ``"Int8"``, ``"UInt8"``, ``"Int16"``, ``"UInt16"``, ``"Int32"``, ``"UInt32"`` or
        ``"UInt64"`` for integers. Without, they are Float64 and Int64. A value of a run that does
        not fit is an error where it is read; start values are rounded to Float32.
    clocks
        Whether the rates of blocks with a period are declared as clocks, in FMI 3.0: periodic
        input clocks, which the importing tool activates in event mode at each of their ticks. Many
        tools do not support clocks.
    terminals
        Variables that belong together, for tools that connect FMUs by terminals: for each terminal
        a list of variables, or variables by the names of members; ``("plug", …)`` or
        ``("sequence", …)`` instead of the matching rule ``bus``. By default, inputs and outputs
        with a common name before the last point are a terminal. False: none.
    reference
        Experiments whose inputs and results go into the FMU (FMI-LS-REF), so that an importing tool
        can be checked: see `Experiment`.

    Raises
    ------
    DiagramError
        If the diagram is wrong, or has blocks that cannot leave, such as those in Python; for model
        exchange, also if it has blocks with an internal solver.
    FmuError
        If the file cannot be written, or a platform not be compiled for.
    BiellaError
        For an unknown version or kind, for names in an option that the diagram does not have, for
        clocks in FMI 2.0 or of a diagram in which no block has a period, and for types in FMI 2.0
        or that a variable cannot have.

    Warns
    -----
    BiellaWarning
        If the FMU has no outputs.
    """
    check_kind(kind)
    check_path(path)
    check_names("inputs", inputs)
    check_names("outputs", outputs)
    options = FmuOptions(
        parameters=parameters,
        platforms=platforms,
        sources=sources,
        version=version,
        kind=kind,
        about=about,
        local=local,
        limits=limits,
        nominal=nominal,
        types=types,
        clocks=clocks,
        terminals=terminals,
        reference=reference,
    )
    model = compile_diagram(diagram, inputs=inputs or (), outputs=outputs or ())
    if kind != "me":
        warn_of_steps(model, stacklevel=2)
    _reject_blocks(model)
    warn_of_reactions(model, stacklevel=2)
    written = write_fmu(diagram, model, path, options)
    if not model.outputs:
        warnings.warn(
            "this FMU has no outputs: declare them with Diagram.output(…), or select signals "
            "with outputs=[…] (--output-signal).",
            BiellaWarning,
            stacklevel=3,
        )
    return written


def write_fmu(diagram: Diagram, plan: Model, path: str | Path, options: FmuOptions) -> Path:
    """Write a compiled diagram as an FMU; see `export_fmu`."""
    version, about = check_version(options.version), check_about(options.about)
    experiments = check_experiments(options.reference)
    _reject_double_names(plan)
    if options.clocks and version != "3.0":
        raise BiellaError(f'FMI {version} has no clocks: export with version="3.0".')
    if options.types and version != "3.0":
        raise BiellaError(
            f"FMI {version} has one type for real variables and one for integers, without a "
            f'choice: export with version="3.0", or without `types`.'
        )
    rates = find_clock_rates(plan) if options.clocks else []
    shown = _choose_parameters(plan, options.parameters)
    if isinstance(options.parameters, Mapping):
        values = {path: value for path, value in options.parameters.items() if value is not None}
        plan = plan.with_values(values)
    local = choose_local(plan, options.local)
    variables = choose_variables(plan, shown, local)
    # While a solver outside integrates, modes are kept: an output may pass its limit a little.
    variables = with_declared_ranges(plan, variables, outputs=options.kind == "cs")
    variables = with_ranges(variables, options.limits, options.nominal)
    arrays = [(v.reference, v.size) for v in list_variables(plan, local) if v.shape]
    plan = plan.with_variables(local, arrays if version == "3.0" else ())

    exchange = None
    if options.kind != "cs":
        exchange = Exchange.of(plan, [name for v in variables for name in v.element_names])
        plan = plan.with_kind(KINDS[options.kind])
    variables = with_types(variables, options.types, exchange.names if exchange else ())
    if version == "3.0":
        plan = plan_types(plan, variables)

    clocks: list[Clock] = []
    if rates:
        plan = plan.with_clocks(rates)
        names = [name for v in variables for name in v.element_names]
        if exchange is not None:
            names += [*exchange.states, *exchange.indicator_names]
        clocks = describe_clocks(plan, rates, names)

    engines = find_engines(options.platforms)
    contents = Contents(
        plan=plan,
        variables=variables,
        version=__version__,
        sources=options.sources,
        needs={name: minimum_glibc(library) for name, library in engines.items()},
        about=about,
        kind=options.kind,
        exchange=exchange,
        clocks=clocks,
    )
    if clocks:
        first = contents.time_reference + 1
        contents = replace(contents, variables=with_clocks(plan, variables, rates, first))
    pictures = draw_pictures(diagram, plan)
    replaced = [name for name in plan.inputs if name in {*diagram.blocks} - {*diagram.inports}]
    page = document(contents, version, pictures.svg, replaced)
    describe, name_folder, picture = _FORMS[version]
    files = {
        "modelDescription.xml": describe(contents).encode(),
        "resources/plan.bin": plan.data,
        "documentation/index.html": page.encode(),
        picture: pictures.png,
    }
    chosen = choose_terminals(options.terminals, variables, version)
    files |= write_terminals(chosen, variables, pictures.svg, pictures.png)
    for name, library in engines.items():
        member = f"binaries/{name_folder(name)}/{contents.identifier}{SUFFIXES[name]}"
        files[member] = library
    if options.sources:
        written = write_sources(
            plan.name, contents.identifier, plan.data, __version__, version, options.kind
        )
        files |= {f"sources/{name}": content for name, content in written.items()}
    if experiments:
        files |= make_references(
            experiments, plan.start_time, plan.step, lambda place: _write_zip(place, files)
        )
    return _write_zip(Path(path), files)


_FORMS: dict[str, tuple[Callable[[Contents], str], Callable[[str], str], str]] = {
    "2.0": (describe_fmi2, str, "model.png"),
    "3.0": (describe_fmi3, platform_tuple, "documentation/model.png"),
}
"""What differs between versions: the description, the name of a platform, where the picture is."""


def _reject_blocks(model: Model) -> None:
    """Name every block that only works here, with what to do instead."""
    problems = [
        f"`{item.path}` ({item.block}) cannot be exported in an FMU: {item.block.export_blocker}."
        for item in model.flat.blocks
        if item.block.export_blocker
    ]
    if problems:
        raise DiagramError(problems)


def _reject_double_names(plan: Plan) -> None:
    """In a diagram an input and an output may share a name, in an FMU not."""
    problems = [
        f"`{name}` is an input and an output: the variables of an FMU must have different names."
        for name in plan.inputs
        if name in plan.outputs
    ]
    if problems:
        raise DiagramError(problems)


def _choose_parameters(
    plan: Plan, patterns: Sequence[str] | Mapping[str, npt.ArrayLike | None] | None
) -> list[str] | None:
    if patterns is None:
        return None
    chosen: list[str] = []
    for pattern in patterns:
        exactly = isinstance(patterns, Mapping) and patterns[pattern] is not None
        matching = [
            name
            for name in plan.parameters
            if name == pattern or (not exactly and fnmatchcase(name, pattern))
        ]
        if not matching:
            raise BiellaError(
                f"there is no parameter `{pattern}`.{suggest(pattern, plan.parameters)} "
                f"Parameters: {name_list(plan.parameters)}."
            )
        chosen += matching
    return list(dict.fromkeys(chosen))


def _write_zip(path: Path, files: Mapping[str, bytes]) -> Path:
    """Write to a temporary file beside `path` and rename, so that nothing is ever half-written."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent or Path("."), prefix=f".{path.name}.")
    except OSError as error:
        raise FmuError(f"cannot write `{path}`: {error.strerror}.") from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            for member, content in sorted(files.items()):
                info = zipfile.ZipInfo(member, _ZIP_TIME)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = (0o755 if member.startswith("binaries/") else 0o644) << 16
                archive.writestr(info, content)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise FmuError(f"cannot write `{path}`: {error.strerror}.") from error
    finally:
        temporary.unlink(missing_ok=True)
    return path
