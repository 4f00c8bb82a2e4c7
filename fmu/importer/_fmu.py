"""`Fmu`: an FMU from another tool as a block of a diagram."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy.typing as npt

from ...blocks.core._block import AbstractBlock
from ...errors import DiagramError, FmuError
from ._archive import find_binary, read_archive
from ._engine_fmu import EngineFmu
from ._exchange import ExchangeFmu
from ._feedthrough import override_feedthrough
from ._interface import (
    Description,
    check_period,
    choose_interface,
    read_description,
    resize,
    warn_of_findings,
)
from ._kinds import Kind, check_exchange, choose_kind, interface_of, is_exchange
from ._options import Options

if TYPE_CHECKING:
    from .backends._strict import IsolationLimits

_FAILURES = ("logStatusDiscard", "logStatusError", "logStatusFatal")  # names that FMI gives
_BACKENDS = ("engine", "fmpy", "pyfmi")


def Fmu(
    path: str | Path,
    *,
    kind: Kind | None = None,
    instance_name: str | None = None,
    period: float | None = None,
    substeps: int = 1,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    feedthrough: bool | Mapping[str, bool | str | Sequence[str]] | None = None,
    tolerance: float | None = None,
    backend: Literal["engine", "fmpy", "pyfmi"] = "engine",
    event_mode: bool | None = None,
    isolate: bool | Literal["strict"] = False,
    timeout: float | None = None,
    limits: IsolationLimits | None = None,
    logging: bool | Sequence[str] = False,
    validate: bool = True,
) -> AbstractBlock:
    """Return a block that runs the FMU at `path`, for co-simulation or model exchange.

    Its ports are the FMU's inputs and outputs, with their units; elements ``name[i]`` make one
    vector port ``name``. Its parameters are the FMU's, settable by name like those of every block.
    An input that is not connected keeps its start value.

    Parameters
    ----------
    path
        The file. It is unpacked to a temporary folder, which is deleted after the run.
    kind
        ``"cs"``: co-simulation, the FMU solves its equations itself and takes one step per period.
        ``"me"``: model exchange, the solver of the diagram integrates the states of the FMU, and
        its events are located with those of the diagram. By default co-simulation if the FMU
        supports it.
    instance_name
        Instance name passed to the FMU; by default the name of the file.
    period
        Communication step in seconds; by default the step size of the FMU's default experiment,
        else the base step of the diagram.
    substeps
        Number of steps that the FMU takes per period.
    parameters
        Values by name: parameters, start values of inputs and states, strings, bytes for binaries.
        Structural parameters of FMI 3.0 determine the sizes of arrays, and so the widths of ports.
    inputs, outputs
        Variables that become ports. An output may be any numeric variable of the FMU, including a
        parameter, which remains settable.
    feedthrough
        Direct feedthrough, if the FMU declares it wrongly: for an output the inputs that it depends
        on at the same instant, as in ``{"y": ["u"], "z": []}``; True or False for all outputs.
        Outputs that are not named keep what the FMU declares.
    tolerance
        Relative tolerance passed to the FMU, for its internal solver.
    backend
        ``"engine"``: the engine calls the FMU's binary directly; FMI 2.0 and 3.0.
        ``"fmpy"`` or ``"pyfmi"``: through the objects of that library, which are slower but also
        support other versions of FMI.
    event_mode
        Handle the events of an FMI 3.0 FMU in event mode: its steps end at its events, and changes
        of discrete inputs are events. By default only FMUs with clocks, which require it; others
        handle events internally.
    isolate
        Run the FMU in a separate process: a crash ends the run with an error that reports it.
        ``"strict"``, on Linux: the process also has no network, no access to other processes and
        to files beyond its own folder and system libraries, limited memory, and a clean
        environment. What the kernel does not offer is a warning; what was granted and refused is in
        ``result.info["isolation"]``.
    timeout
        Time limit of one call in seconds, with `isolate`; the process is then killed.
    limits
        What the FMU may use with ``isolate="strict"``.
    logging
        Print the FMU's messages to stderr immediately: all of them, or the listed categories.
    validate
        Check the model description against the FMI standard. One warning lists violations that do
        not prevent a run; False suppresses it.

    Raises
    ------
    FmuError
        If the file cannot be read, is not safe to unpack, or cannot run here.
    """
    if backend not in _BACKENDS:
        raise DiagramError(f"`backend` must be one of {', '.join(_BACKENDS)}; got {backend!r}.")
    if timeout is not None and not isolate:
        raise DiagramError(
            "timeout requires isolate=True: a call within this process cannot be interrupted."
        )
    if isolate not in (False, True, "strict"):
        raise DiagramError(f"`isolate` must be True, False or 'strict'; got {isolate!r}.")
    if limits is not None and isolate != "strict":
        raise DiagramError('limits requires isolate="strict".')
    _check_options(path, parameters, tolerance, event_mode, logging)
    for text in (instance_name or "", *(logging if not isinstance(logging, bool) else ())):
        if "\0" in text:
            raise DiagramError(f"a name of FMI cannot contain a NUL character; got {text!r}.")
    check_period(period, substeps)
    archive = read_archive(path)
    description = resize(read_description(archive, validate), parameters or {})
    description = choose_kind(description, kind)
    if validate:
        warn_of_findings(description, stacklevel=2)
    options = Options(
        instance_name or archive.path.stem,
        period if period is not None else description.step_size,
        substeps,
        tolerance or 0.0,
        _categories(description, logging),
        bool(logging),
        _uses_events(description, event_mode),
    )
    exchanges = backend == "engine" and is_exchange(description)
    if exchanges:
        check_exchange(description, period, substeps)
    if backend == "engine":
        check_runnable(description)
    activates = backend == "engine" and (exchanges or options.event_mode)
    interface, input_values = choose_interface(
        description, inputs, outputs, parameters or {}, activates, activates and not exchanges
    )
    interface = override_feedthrough(interface, description, feedthrough)
    block: AbstractBlock
    if backend == "fmpy":
        from .backends._fmpy import FmpyFmu

        block = FmpyFmu(description, interface, input_values, options)
    elif backend == "pyfmi":
        from .backends._pyfmi import PyfmiFmu

        block = PyfmiFmu(description, interface, input_values, options)
    elif exchanges and not isolate:
        block = ExchangeFmu(description, interface, input_values, options)
    elif not exchanges:
        block = EngineFmu(description, interface, input_values, options)
    if not isolate:
        return block
    from .backends._isolated import IsolatedFmu, Isolation

    if isolate == "strict":
        from .backends._strict import IsolationLimits, check_platform

        check_platform()
        limits = IsolationLimits() if limits is None else limits
    how = Isolation(backend, timeout, limits)
    if exchanges:
        from .backends._isolated_exchange import IsolatedExchangeFmu

        return IsolatedExchangeFmu(description, interface, input_values, options, how)
    return IsolatedFmu(block, input_values, how)


def _check_options(
    path: object, parameters: object, tolerance: object, event_mode: object, logging: object
) -> None:
    """Raise for options of the wrong form."""
    if not isinstance(path, (str, os.PathLike)):
        raise DiagramError(f"Fmu needs the name of a file, such as 'engine.fmu'; got {path!r}.")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise DiagramError(
            f"`parameters` must be a dict, such as {{'rotor.inertia': 0.2}}; got {parameters!r}."
        )
    if tolerance is not None and not (
        isinstance(tolerance, (int, float)) and 0 <= tolerance < math.inf
    ):
        raise DiagramError(f"`tolerance` must be a positive number; got {tolerance!r}.")
    if event_mode not in (None, True, False):
        raise DiagramError(f"`event_mode` must be True, False or None; got {event_mode!r}.")
    if not isinstance(logging, (bool, str)) and not (
        isinstance(logging, Sequence) and all(isinstance(text, str) for text in logging)
    ):
        raise DiagramError(f"`logging` must be True, False or a list of texts; got {logging!r}.")


def _categories(description: Description, logging: bool | Sequence[str]) -> list[str]:
    """Return the log categories to enable in the FMU; by default those of failures."""
    if isinstance(logging, bool):
        known = {category.name for category in description.model.logCategories}
        return [] if logging else [name for name in _FAILURES if name in known]
    return [logging] if isinstance(logging, str) else list(logging)


def _uses_events(description: Description, wanted: bool | None) -> bool:
    """Return whether event mode is used; raise an error if the FMU has none."""
    flags = description.model.coSimulation
    has = description.version.startswith("3") and flags is not None and bool(flags.hasEventMode)
    if wanted and not has:
        raise FmuError(
            f"{description.archive.path.name} has no event mode: event_mode=True requires "
            f'hasEventMode="true" in the description of a co-simulation FMU of FMI 3.0.'
        )
    return has and (description.has_clocks if wanted is None else wanted)


def check_runnable(description: Description) -> None:
    """Reject an FMU that the engine cannot run directly, and name the backend that can."""
    label = description.archive.path.name
    if not description.version.startswith(("2.", "3.")):
        raise FmuError(
            f"{label} is FMI {description.version}: the engine supports FMI 2.0 and 3.0. Use "
            f"backend='fmpy'."
        )
    if interface_of(description) is None:
        raise FmuError(f"{label} supports scheduled execution only, which biella does not run.")
    find_binary(description.archive, interface_of(description).modelIdentifier)
