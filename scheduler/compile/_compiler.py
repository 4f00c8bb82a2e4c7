"""Compiling: a diagram becomes a `Model`, or one report of everything that is wrong with it.

    diagram → flatten → rewrite → rates → port types → order → couplings → encode → Model

Each step is a function in a file of its name. No step runs anything, except that the first values
of source blocks that become inputs are computed by an engine with these blocks alone.
"""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from ..._deprecation import renamed_keywords
from ...blocks.core._block import AbstractBlock, NativeBlock
from ...blocks.external._external_block import ExternalBlock
from ...blocks.external._python import PythonBlock
from ...errors import DiagramError, suggest
from ..engine._engine import Instance
from . import _rewrite as rewrite
from ._flatten import FlatBlock, FlatDiagram, flatten
from ._model import Model, Outline
from ._multirate import find_multirate_problems
from ._order import order_outputs
from ._port_types import resolve_ports
from ._rates import resolve_rates
from .coupling._couplings import STATES, find_couplings
from .diagram._solver_options import (
    SOLVERS,
    Settings,
    StepControl,
    Tolerance,
    at_ticks,
    check_step,
)
from .plan._encode import Encoder
from .plan._plan_description import name_cycle

if TYPE_CHECKING:
    from .diagram._diagram import Diagram


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Large diagrams make many small objects that all stay alive: searching them is lost time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@_collector_paused()
@renamed_keywords(hold="extrapolation")
def compile_diagram(
    diagram: Diagram,
    *,
    step: float | None = None,
    solver: str | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    coupling: str | None = None,
    extrapolation: int | None = None,
    coupling_tolerance: float | None = None,
    estimate_error: int = 0,
    tolerance: Tolerance | None = None,
    events: str | None = None,
    replace: Mapping[str, AbstractBlock] | None = None,
    extra: Mapping[str, AbstractBlock] | None = None,
    reroute: Mapping[str, tuple[str, str]] | None = None,
    within: str = "",
    flat: FlatDiagram | None = None,
) -> Model:
    """Check `diagram` and return its `Model`; `Diagram.compile` documents the other options.

    Parameters
    ----------
    within
        Path of the block, in another diagram, that runs this diagram: seeds are derived from paths
        from the top level.
    flat
        The result of `flatten` for this diagram, if it is already available.

    Raises
    ------
    DiagramError
        With all problems that were found.
    """
    settings = read_settings(
        diagram,
        step=step,
        solver=solver,
        coupling=coupling,
        extrapolation=extrapolation,
        coupling_tolerance=coupling_tolerance,
        estimate_error=estimate_error,
        tolerance=tolerance,
        events=events,
    )
    flat = flatten(diagram) if flat is None else flat
    flat = dataclasses.replace(flat, within=within) if within else flat
    flat = rewrite.replace_blocks(flat, replace or {})
    flat = rewrite.add_sources(flat, extra or {})
    flat = rewrite.reroute_outputs(flat, reroute or {})
    wanted = rewrite.find_sources(flat, inputs)
    if wanted:
        flat = rewrite.make_inputs(flat, _first_values(flat, wanted, settings))
    flat = rewrite.add_outputs(flat, outputs)
    return compile_flat(flat, settings)


def read_settings(
    diagram: Diagram,
    *,
    step: float | None = None,
    solver: str | None = None,
    coupling: str | None = None,
    extrapolation: int | None = None,
    coupling_tolerance: float | None = None,
    estimate_error: int = 0,
    tolerance: Tolerance | None = None,
    events: str | None = None,
) -> Settings:
    """Return the settings of a diagram, with the given overrides."""
    solver = diagram.solver if solver is None else solver
    if solver not in SOLVERS:
        raise DiagramError(f"unknown solver `{solver}`.{suggest(solver, SOLVERS)}")
    how = diagram.coupling
    return Settings(
        name=diagram.name,
        step=diagram.step if step is None else check_step(step),
        solver=solver,
        start=diagram.start_time,
        solves_loops=diagram.algebraic_loops != "error",
        coupling=dataclasses.replace(
            how,
            method=how.method if coupling is None else coupling,
            extrapolation=how.extrapolation if extrapolation is None else extrapolation,
            coupling_tolerance=(
                how.coupling_tolerance if coupling_tolerance is None else coupling_tolerance
            ),
        ),
        estimate=int(estimate_error),
        control=StepControl.read(
            solver,
            # A tolerance of the diagram belongs to its own solver.
            diagram.tolerance if tolerance is None and solver == diagram.solver else tolerance,
            diagram.events if events is None else events,
            diagram.max_events,
            diagram.max_steps,
        ),
    )


@_collector_paused()
def compile_flat(flat: FlatDiagram, settings: Settings) -> Model:
    """Check a flattened diagram and return its `Model`."""
    return _analyze(flat, settings).encode()


@_collector_paused()
def outline_flat(flat: FlatDiagram, settings: Settings) -> Outline:
    """Check a flattened diagram and return its description without encoding a plan."""
    return Outline(_analyze(flat, settings).describe(), flat)


def _first_values(
    flat: FlatDiagram, numbers: Sequence[int], settings: Settings
) -> dict[int, list[float]]:
    """Return the outputs of source blocks at the start, from an engine with these alone."""
    try:
        alone = compile_flat(rewrite.keep_sources(flat, numbers), settings)
    except DiagramError:
        compile_flat(flat, settings)  # reports what is wrong with them together with all the rest
        raise
    with Instance(alone) as instance:
        instance.initialize()
        paths = [flat.blocks[number].path for number in numbers]
        return {
            number: np.atleast_1d(instance.get(path)).tolist()
            for number, path in zip(numbers, paths, strict=True)
        }


def _analyze(flat: FlatDiagram, settings: Settings) -> Encoder:
    """Find rates, types, order and couplings; return what writes the plan.

    Raises
    ------
    DiagramError
        With every problem.
    """
    problems = [*flat.problems]
    if not flat.blocks:
        problems.append(f"{settings.name!r} has no blocks.")
    unfitting: list[str] = []
    locates = settings.control.events == "locate"
    rates = resolve_rates(flat, settings.step, unfitting, locates)
    steps = [max(rate.period, 1) * settings.step for rate in rates]
    ports, misfits = resolve_ports(flat, steps)
    problems += [*misfits, *unfitting]
    output_widths = [[c.width or 1 for c in carried] for carried in ports.outputs]
    order = order_outputs(flat, rates, output_widths)
    problems += order.problems
    if not settings.solves_loops:
        problems += [
            f"algebraic loop: {' → '.join(name_cycle(flat, loop.cycle))}. Break it with a "
            f"UnitDelay, or solve it at each tick with Diagram(…, algebraic_loops='solve')."
            for loop in order.loops
        ]
    for item in flat.blocks:
        problems += [f"`{item.path}`: {problem}" for problem in item.block.find_problems()]
        if isinstance(item.block, ExternalBlock) and not _can_be_suspended(flat, item):
            problems.append(
                f"`{item.path}` is {item.block.external_name}, which cannot be suspended, but the "
                f"subsystem `{flat.guards[item.guard].path}` is conditional. Move it outside and "
                f"switch its inputs or outputs."
                + (
                    " Only a subsystem with enable=True and states='held' can contain it."
                    if item.block.has_engine_states
                    else ""
                )
            )
        if isinstance(item.block, NativeBlock | PythonBlock):
            continue
        problems.append(f"`{item.path}` ({item.block}) is neither native nor a PythonBlock.")
    problems += find_multirate_problems(flat, settings)
    couplings, exchanges = find_couplings(
        flat, rates, order, ports, settings.coupling, settings.estimate > 0, problems
    )
    if problems:
        raise DiagramError(problems)
    if locates and any(member.node == STATES for part in couplings for member in part.members):
        # A coupled step is repeated, so that its events could come and go: they happen at ticks.
        return _analyze(flat, dataclasses.replace(settings, control=at_ticks(settings.control)))
    return Encoder(settings, flat, ports, rates, order, couplings, exchanges)


def _can_be_suspended(flat: FlatDiagram, item: FlatBlock) -> bool:
    """Whether the subsystems around an external block let it hold its state at most."""
    guard = item.guard
    assert isinstance(item.block, ExternalBlock)
    while guard >= 0:
        subsystem = flat.guards[guard].subsystem
        if not item.block.has_engine_states or subsystem.control != "enable":
            return False
        if subsystem.states_reset:
            return False
        guard = flat.guards[guard].parent
    return True
