"""Compiling: a diagram becomes a plan, or one report of everything that is wrong with it."""

from __future__ import annotations

import dataclasses
import gc
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from ...blocks.core.block import AbstractBlock, NativeBlock
from ...blocks.core.ports import Port, main_output
from ...blocks.core.units import Unit
from ...blocks.external.foreign import ForeignBlock
from ...blocks.external.python import PythonBlock
from ...errors import BiellaWarning, DiagramError, name_list, suggest
from .coupling_options import Coupling
from .couplings import find_couplings
from .diagram import SOLVERS, Diagram, check_step
from .encode import Encoder
from .flatten import FlatBlock, FlatDiagram, FlatInput, Source, flatten
from .order import order_outputs
from .plan import Plan
from .plan_description import name_cycle
from .port_types import ResolvedPorts, resolve_ports
from .rates import resolve_rates


def compile_diagram(
    diagram: Diagram,
    *,
    step: float | None = None,
    solver: str | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    coupling: str | None = None,
    hold: int | None = None,
    estimate_error: int = 0,
    replace: Mapping[str, AbstractBlock] | None = None,
    extra: Mapping[str, AbstractBlock] | None = None,
    reroute: Mapping[str, tuple[str, str]] | None = None,
    within: str = "",
) -> Plan:
    """Check `diagram` and return its `Plan`.

    Parameters
    ----------
    step, solver
        Instead of the diagram's own.
    inputs
        Source blocks to be replaced by inputs of the whole diagram; their first value is the start.
    outputs
        Signals to be outputs of the whole diagram, besides those that it declares.
    coupling, hold
        Instead of the diagram's own; `Diagram.couple` of single blocks is kept.
    estimate_error
        Estimate the error of coupled steps at every n-th tick: each is repeated in halves and in
        quarters, which costs six steps more.
    replace
        Blocks by path, also subsystems and inputs of the diagram, and what stands there instead,
        with the same ports.
    extra
        Sources to be added under a name of their own: nothing is connected to them.
    reroute
        Outputs, and by which output ``(name, port)`` of an extra source each is taken over: whoever
        reads the signal, recorders included, gets that one. What the block itself gives is called
        ``…_simulated``.
    within
        Path of the block of another diagram that this one runs inside of: seeds that are derived
        from paths count from the top.

    Raises
    ------
    DiagramError
        With every problem that was found.

    Warns
    -----
    BiellaWarning
        If the step is too large for a block.
    """
    with _collector_paused():
        how = diagram.coupling
        how = dataclasses.replace(
            how,
            method=how.method if coupling is None else coupling,
            hold=how.hold if hold is None else hold,
        )

        def make_flat() -> FlatDiagram:
            flat = flatten(diagram, replace)
            _add_extra(flat, extra or {})
            _reroute(flat, reroute or {})
            flat.within = within
            return flat

        plan, remarks = _compile(
            diagram, make_flat, step, solver, inputs, outputs, how, int(estimate_error)
        )
    for remark in remarks:
        warnings.warn(remark, BiellaWarning, stacklevel=3)
    return plan


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


def _compile(
    diagram: Diagram,
    make_flat: Callable[[], FlatDiagram],
    step: float | None,
    solver: str | None,
    inputs: Sequence[str],
    outputs: Sequence[str],
    coupling: Coupling,
    estimate: int,
) -> tuple[Plan, list[str]]:
    step = diagram.step if step is None else check_step(step)
    solver = diagram.solver if solver is None else solver
    if solver not in SOLVERS:
        raise DiagramError(f"unknown solver `{solver}`.{suggest(solver, SOLVERS)}")
    flat = make_flat()
    problems = flat.problems
    if not flat.blocks:
        problems.append(f"{diagram.name!r} has no blocks.")
    starts = _replace_sources(flat, diagram, make_flat, inputs, step, solver)
    _add_outputs(flat, outputs)
    ports = resolve_ports(flat)
    problems += ports.problems
    rates = resolve_rates(flat, step, problems)
    for number, widths in enumerate(ports.widths):
        widths.step = max(rates[number].period, 1) * step
    output_widths = [[c.width or 1 for c in carried] for carried in ports.outputs]
    order = order_outputs(flat, rates, output_widths)
    problems += order.problems
    if diagram.algebraic_loops == "error":
        problems += [
            f"algebraic loop: {' → '.join(name_cycle(flat, loop.cycle))}. Break it with a "
            f"UnitDelay, or have it solved at each tick: Diagram(…, algebraic_loops='solve')."
            for loop in order.loops
        ]
    for item in flat.blocks:
        if isinstance(item.block, ForeignBlock) and item.guard >= 0:
            problems.append(
                f"`{item.path}` is {item.block.foreign_name}, for which time cannot stand still, "
                f"but the subsystem `{flat.guards[item.guard].path}` is conditional. Put it "
                f"outside and switch its inputs or outputs."
            )
        if isinstance(item.block, NativeBlock | PythonBlock):
            continue
        problems.append(f"`{item.path}` ({item.block!r}) is neither native nor a PythonBlock.")
    couplings, exchanges = find_couplings(
        flat, rates, order, ports, coupling, estimate > 0, problems
    )
    if problems:
        raise DiagramError(problems)
    plan = Encoder(
        diagram, flat, ports, rates, order, couplings, exchanges, step, solver, starts, estimate
    ).encode()
    stiff = _find_stiff(plan, flat)
    return dataclasses.replace(plan, stiff=stiff) if stiff else plan, _find_remarks(
        flat, ports, solver
    )


def _find_stiff(plan: Plan, flat: FlatDiagram) -> dict[str, tuple[str, str]]:
    """Return the stiff blocks that something answers to, where a run can be tried beforehand."""
    stiff = {item.path: item.block.stiff for item in flat.blocks if item.block.stiff is not None}
    if not stiff or not all(isinstance(item.block, NativeBlock) for item in flat.blocks):
        return {}
    stepped = any(item.block.own_step for item in flat.blocks)
    return stiff if stepped or plan.block_records["x_count"].any() else {}


def _find_remarks(flat: FlatDiagram, ports: ResolvedPorts, solver: str) -> list[str]:
    """Return what blocks have against their steps."""
    texts = (
        (item, item.block.warn_of_step(widths.step, solver))
        for item, widths in zip(flat.blocks, ports.widths, strict=True)
    )
    return [f"`{item.path}` ({item.block!r}): {text}" for item, text in texts if text]


def _replace_sources(
    flat: FlatDiagram,
    diagram: Diagram,
    make_flat: Callable[[], FlatDiagram],
    names: Sequence[str],
    step: float,
    solver: str,
) -> dict[str, list[float]]:
    """Turn the source blocks `names` into inputs; return their first values."""
    starts: dict[str, list[float]] = {}
    if not names:
        return starts
    numbers = {item.path: n for n, item in enumerate(flat.blocks)}
    wanted = []
    declared = {item.name for item in flat.inputs if item.declared}
    for name in names:
        if name in declared:
            continue
        number = numbers.get(name)
        if number is None:
            sources = [item.path for item in flat.blocks if not item.block.inputs]
            raise DiagramError(
                f"there is no source block or input `{name}`."
                f"{suggest(name, [*sources, *declared])} Sources: {name_list(sources)}."
            )
        block = flat.blocks[number].block
        if block.inputs or len(block.outputs) != 1:
            raise DiagramError(
                f"`{name}` ({block!r}) is no source with one output: it stays a block."
            )
        wanted.append(number)
    if not wanted:
        return starts
    whole, _ = _compile(diagram, make_flat, step, solver, (), (), diagram.coupling, 0)
    with whole.instantiate() as first:
        first.evaluate()
        for number in wanted:
            path = flat.blocks[number].path
            starts[path] = np.atleast_1d(first.get(path)).tolist()
    moved = {}
    for number in wanted:
        item = flat.blocks[number]
        port = item.block.outputs[0]
        kind = port.kind if isinstance(port.kind, str) else "real"
        unit = port.unit if isinstance(port.unit, Unit) else None
        new = Port(port.name, len(starts[item.path]), unit, kind, starts[item.path][0], port.doc)
        moved[number] = Source(-1 - len(flat.inputs), 0)
        flat.inputs.append(FlatInput(item.path, new, True))
    _drop_blocks(flat, moved)
    return starts


def _drop_blocks(flat: FlatDiagram, moved: dict[int, Source]) -> None:
    """Remove blocks whose consumers take another source instead."""
    renumbered: dict[int, int] = {}
    for number in range(len(flat.blocks)):
        if number not in moved:
            renumbered[number] = len(renumbered)

    def follow(source: Source | None) -> Source | None:
        if source is None or source.block < 0:
            return source
        if source.block in moved:
            return moved[source.block]
        return Source(renumbered[source.block], source.port)

    for item in flat.blocks:
        item.sources = [follow(source) for source in item.sources]
    for guard in flat.guards:
        guard.control = follow(guard.control)
        inside = [n for n in range(guard.first, guard.first + guard.count) if n not in moved]
        if not inside:
            flat.problems.append(
                f"without its sources the conditional subsystem `{guard.path}` has no blocks "
                f"inside: put them outside of it."
            )
        guard.count = len(inside)
        guard.first = renumbered[inside[0]] if inside else 0
    flat.couplings = [
        (how, [renumbered[n] for n in numbers if n not in moved]) for how, numbers in flat.couplings
    ]
    flat.bonds = [
        (name, (renumbered[a[0]], a[1]), (renumbered[b[0]], b[1])) for name, a, b in flat.bonds
    ]
    flat.borders = [
        dataclasses.replace(border, source=source)
        for border in flat.borders
        if (source := follow(border.source)) is not None
    ]
    flat.outputs = [(name, follow(source)) for name, source in flat.outputs]
    flat.blocks = [item for n, item in enumerate(flat.blocks) if n not in moved]


def _add_extra(flat: FlatDiagram, extra: Mapping[str, AbstractBlock]) -> None:
    taken = {item.path for item in flat.blocks} | {item.name for item in flat.inputs}
    for name, block in extra.items():
        if name in taken:
            flat.problems.append(f"the name `{name}` is taken: rename the block that has it.")
        flat.blocks.append(FlatBlock(name, block, -1, [None] * len(block.inputs)))


def _reroute(flat: FlatDiagram, reroute: Mapping[str, tuple[str, str]]) -> None:
    """Let whoever takes an output take that of an extra source instead, under the same name."""
    known = _known_outputs(flat)
    numbers = {item.path: n for n, item in enumerate(flat.blocks)}
    moved: dict[Source | None, Source] = {}
    for path, (name, port) in reroute.items():
        if path not in known:
            flat.problems.append(
                f"there is no output `{path}` to take over.{suggest(path, known)} "
                f"Outputs: {name_list(known)}."
            )
            continue
        old = known[path]
        new = Source(numbers[name], flat.blocks[numbers[name]].block.output_index[port])
        moved[old] = new
        path = flat.blocks[old.block].output_path(old.port)
        flat.blocks[old.block].shown_as[old.port] = f"{path}_simulated"
        flat.blocks[new.block].shown_as[new.port] = path
        flat.rerouted[f"{path}_simulated"] = path
    if not moved:
        return
    for item in flat.blocks:
        item.sources = [moved.get(source, source) for source in item.sources]
    for guard in flat.guards:
        guard.control = moved.get(guard.control, guard.control)
    flat.borders = [
        dataclasses.replace(border, source=moved.get(border.source, border.source))
        for border in flat.borders
    ]
    flat.outputs = [(name, moved.get(source, source)) for name, source in flat.outputs]


def _known_outputs(flat: FlatDiagram) -> dict[str, Source]:
    known = {
        item.output_path(k): Source(n, k)
        for n, item in enumerate(flat.blocks)
        for k in range(len(item.block.outputs))
    }
    for n, item in enumerate(flat.blocks):
        main = main_output(list(item.block.output_index))
        if main is not None:
            known.setdefault(item.path, Source(n, item.block.output_index[main]))
    return known


def _add_outputs(flat: FlatDiagram, names: Sequence[str]) -> None:
    declared = {name for name, _ in flat.outputs}
    known = _known_outputs(flat)
    for name in names:
        if name in declared:
            continue
        if name not in known:
            raise DiagramError(
                f"there is no output `{name}`.{suggest(name, [*declared, *known])} "
                f"Outputs: {name_list([*declared, *known])}."
            )
        flat.outputs.append((name, known[name]))
