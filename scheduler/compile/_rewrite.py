"""Edits of a flattened diagram: pure functions from one `FlatDiagram` to another.

Blocks, inputs and conditional subsystems are known by number, so removing one renumbers the others.
Only `_rebuild` renumbers, and it covers all data with numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ...blocks.core._block import AbstractBlock
from ...blocks.core._ports import Port, main_output
from ...blocks.core._units import Unit
from ...errors import DiagramError, name_list, suggest
from ._flatten import FlatBlock, FlatDiagram, FlatInput, Group, Source


def replace_blocks(flat: FlatDiagram, others: Mapping[str, AbstractBlock]) -> FlatDiagram:
    """Put other blocks, with ports of the same names, in the place of those at some paths.

    A path may also name a whole subsystem, or an input of the diagram. What differs in its ports is
    reported and not put in place, so that the sources of other blocks stay valid.
    """
    for path in sorted(others, key=len):  # a subsystem before what is in it
        other = others[path]
        numbers = {item.path: n for n, item in enumerate(flat.blocks) if item.shows_guard < 0}
        groups = {group.path: group for group in flat.groups}
        inputs = {item.name: n for n, item in enumerate(flat.inputs) if item.declared}
        if path in numbers:
            flat = _replace_block(flat, numbers[path], other)
        elif path in groups:
            flat = _replace_subsystem(flat, groups[path], other)
        elif path in inputs:
            flat = _replace_input(flat, inputs[path], other)
        else:
            known = [item.path for item in flat.blocks]
            flat = _complain(
                flat,
                f"there is no block `{path}` to replace.{suggest(path, known)} "
                f"Blocks: {name_list(known)}.",
            )
    return flat


def add_sources(flat: FlatDiagram, extra: Mapping[str, AbstractBlock]) -> FlatDiagram:
    """Add blocks under names of their own; nothing is connected to them."""
    if not extra:
        return flat
    taken = {item.path for item in flat.blocks} | {item.name for item in flat.inputs}
    added = [FlatBlock(n, b, -1, (None,) * len(b.inputs)) for n, b in extra.items()]
    flat = _complain(
        flat,
        *(
            f"the name `{name}` is already used: rename the block."
            for name in extra
            if name in taken
        ),
    )
    return replace(flat, blocks=(*flat.blocks, *added))


def add_block_inputs(flat: FlatDiagram, others: Mapping[str, AbstractBlock]) -> FlatDiagram:
    """Put blocks with more inputs in the place of those at some paths.

    Each further input becomes an input of the whole diagram, under its path. Its default must be
    given. Inputs that were there keep what they are connected to.
    """
    blocks, inputs = list(flat.blocks), list(flat.inputs)
    taken = {item.path for item in flat.blocks} | {item.name for item in flat.inputs}
    moved: dict[tuple[int, int], int] = {}  # ports of blocks that have another number now
    problems = []
    for number, item in enumerate(flat.blocks):
        other = others.get(item.path)
        if other is None:
            continue
        names = {port.name: k for k, port in enumerate(item.block.inputs)}
        sources: list[Source | None] = []
        for k, port in enumerate(other.inputs):
            if port.name in names:
                sources.append(item.sources[names[port.name]])
                moved[number, names[port.name]] = k
                continue
            path = f"{item.path}.{port.name}"
            if path in taken:
                problems.append(f"the name `{path}` is already used: rename the block or input.")
            sources.append(Source(-1 - len(inputs), 0))
            inputs.append(FlatInput(path, port, True))
        blocks[number] = replace(item, block=other, sources=tuple(sources))

    def follow(end: tuple[int, int]) -> tuple[int, int]:
        return end[0], moved.get(end, end[1])

    bonds = tuple((name, follow(first), follow(last)) for name, first, last in flat.bonds)
    flat = replace(flat, blocks=tuple(blocks), inputs=tuple(inputs), bonds=bonds)
    return _complain(flat, *problems)


def reroute_outputs(flat: FlatDiagram, reroute: Mapping[str, tuple[str, str]]) -> FlatDiagram:
    """Let an output ``(name, port)`` of an added source take over other outputs, by path.

    Whatever reads such an output reads the other one, which has its name from then on. What the
    block itself computes is called ``…_simulated``.
    """
    if not reroute:
        return flat
    known = _known_outputs(flat)
    numbers = {item.path: n for n, item in enumerate(flat.blocks)}
    blocks, problems = list(flat.blocks), []
    rerouted = dict(flat.rerouted)
    moved: dict[Source, Source] = {}
    for path, (name, port) in reroute.items():
        if path not in known:
            problems.append(
                f"there is no output `{path}` to replace.{suggest(path, known)} "
                f"Outputs: {name_list(known)}."
            )
            continue
        old = known[path]
        new = Source(numbers[name], blocks[numbers[name]].block.output_index[port])
        moved[old] = new
        path = blocks[old.block].output_path(old.port)
        for at, shown in ((old, f"{path}_simulated"), (new, path)):
            shown_as = MappingProxyType({**blocks[at.block].shown_as, at.port: shown})
            blocks[at.block] = replace(blocks[at.block], shown_as=shown_as)
        rerouted[f"{path}_simulated"] = path
    flat = replace(_complain(flat, *problems), rerouted=MappingProxyType(rerouted))
    same = {n: n for n in range(len(blocks))}
    return _rebuild(flat, blocks, same, redirect=moved.get)


def find_sources(flat: FlatDiagram, names: Sequence[str]) -> list[int]:
    """Return the numbers of source blocks that are to be inputs of the whole diagram.

    Raises
    ------
    DiagramError
        If there is no block of that name, or it is not a source with one output.
    """
    if not names:
        return []
    numbers = {item.path: n for n, item in enumerate(flat.blocks)}
    declared = {item.name for item in flat.inputs if item.declared}
    found = []
    for name in names:
        if name in declared or _elements_of(name, declared):
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
                f"`{name}` ({block}) cannot become an input: it is not a source with one output."
            )
        found.append(number)
    return found


def keep_sources(flat: FlatDiagram, numbers: Sequence[int]) -> FlatDiagram:
    """Return a diagram of some source blocks alone, under their paths."""
    kept = [replace(flat.blocks[n], guard=-1, sources=()) for n in numbers]
    return FlatDiagram(tuple(kept), within=flat.within)


def make_inputs(flat: FlatDiagram, starts: Mapping[int, Sequence[float]]) -> FlatDiagram:
    """Turn source blocks into inputs of the whole diagram.

    `starts` has the first value of each, by number of the block: that is the input's default.
    """
    inputs, moved = list(flat.inputs), {}
    for number, start in starts.items():
        item = flat.blocks[number]
        port = item.block.outputs[0]
        kind = port.kind if isinstance(port.kind, str) else "real"
        unit = port.unit if isinstance(port.unit, Unit) else None
        default = tuple(start) if len(start) > 1 else start[0]
        moved[Source(number, 0)] = Source(-1 - len(inputs), 0)
        inputs.append(
            FlatInput(item.path, Port(port.name, len(start), unit, kind, default, port.doc), True)
        )
    kept = [n for n in range(len(flat.blocks)) if n not in starts]
    numbers = {old: new for new, old in enumerate(kept)}
    blocks = [flat.blocks[n] for n in kept]
    empty = [guard.path for guard in flat.guards if guard.count]
    flat = _rebuild(replace(flat, inputs=tuple(inputs)), blocks, numbers, redirect=moved.get)
    return _complain(
        flat,
        *(
            f"without its sources the conditional subsystem `{guard.path}` contains no "
            f"blocks: move the sources out of it."
            for guard in flat.guards
            if not guard.count and guard.path in empty
        ),
    )


def add_outputs(flat: FlatDiagram, names: Sequence[str]) -> FlatDiagram:
    """Make signals outputs of the whole diagram.

    Raises
    ------
    DiagramError
        If there is no such signal.
    """
    if not names:
        return flat
    declared = {name for name, _ in flat.outputs}
    buses = dict(flat.buses)
    known = buses | _known_outputs(flat)
    added = []
    for name in names:
        if name in declared or _elements_of(name, declared):
            continue
        elements = [name] if name in known else _elements_of(name, buses)
        if not elements:
            raise DiagramError(
                f"there is no output `{name}`.{suggest(name, [*declared, *known])} "
                f"Outputs: {name_list([*declared, *known])}."
            )
        added += [(each, known[each]) for each in elements]
    return replace(flat, outputs=(*flat.outputs, *added))


def bare_parameters(flat: FlatDiagram, path: str) -> FlatDiagram:
    """Let the parameters of a block go by their own names, without its path."""
    blocks = (replace(item, bare=True) if item.path == path else item for item in flat.blocks)
    return replace(flat, blocks=tuple(blocks))


def _replace_block(flat: FlatDiagram, number: int, other: AbstractBlock) -> FlatDiagram:
    old = flat.blocks[number]
    differences = _differences(old.path, (old.block.inputs, old.block.outputs), other)
    if differences:
        return _complain(flat, *differences)
    blocks = list(flat.blocks)
    blocks[number] = replace(old, block=other, given_rate=None)
    return replace(flat, blocks=tuple(blocks))


def _replace_input(flat: FlatDiagram, number: int, other: AbstractBlock) -> FlatDiagram:
    item = flat.inputs[number]
    differences = _differences(item.name, ((), (item.port,)), other)
    if differences:
        return _complain(flat, *differences)
    new = len(flat.blocks)
    blocks = [*flat.blocks, FlatBlock(item.name, other, -1, (None,) * len(other.inputs))]
    moved = {Source(-1 - number, 0): Source(new, 0)}
    same = {n: n for n in range(new)}
    return _rebuild(flat, blocks, same, redirect=moved.get, without_inputs={number})


def _replace_subsystem(flat: FlatDiagram, group: Group, other: AbstractBlock) -> FlatDiagram:
    inside = f"{group.path}."
    ports = group.inputs, group.outputs
    differences = _differences(group.path, ports, other)
    if differences:
        return _complain(flat, *differences)
    sources = {border.path: border.source for border in flat.borders}
    new = FlatBlock(
        group.path,
        other,
        group.guard,
        tuple(sources.get(inside + port.name) for port in ports[0]),
    )
    end = group.first + group.count
    blocks = [*flat.blocks[: group.first], new, *flat.blocks[end:]]
    numbers = {n: n if n < group.first else n - group.count + 1 for n in range(len(flat.blocks))}
    # What is said about all that was in it is said about the one block.
    numbers |= dict.fromkeys(range(group.first, end), group.first)

    def redirect(source: Source) -> Source | None:
        for n, (path, name) in enumerate(source.through):
            if path == group.path:
                return Source(group.first, other.output_index[name], source.through[:n])
        return None

    flat = replace(
        flat,
        borders=tuple(b for b in flat.borders if not b.path.startswith(inside)),
        groups=tuple(g for g in flat.groups if g is not group and not g.path.startswith(inside)),
        buses=tuple(item for item in flat.buses if not item[0].startswith(inside)),
        couplings=tuple(c for c in flat.couplings if not c.scope.startswith(inside)),
        substeps=tuple(c for c in flat.substeps if not c.scope.startswith(inside)),
        bonds=tuple(
            bond
            for bond in flat.bonds
            if not any(group.first <= place[0] < end for place in bond[1:])
        ),
    )
    return _rebuild(
        flat,
        blocks,
        numbers,
        redirect=redirect,
        without_inputs={
            n
            for n, item in enumerate(flat.inputs)
            if not item.declared and item.name.startswith(inside)
        },
        without_guards={
            n for n, guard in enumerate(flat.guards) if f"{guard.path}.".startswith(inside)
        },
    )


def _rebuild(
    flat: FlatDiagram,
    blocks: Sequence[FlatBlock],
    numbers: Mapping[int, int],
    *,
    redirect: Callable[[Source], Source | None],
    without_inputs: set[int] | None = None,
    without_guards: set[int] | None = None,
) -> FlatDiagram:
    """Return the diagram with other blocks, and everything that refers to numbers renumbered.

    Parameters
    ----------
    blocks
        The new ones, in order. Their sources and conditional subsystems still have old numbers.
    numbers
        New number of each old block that something may still refer to.
    redirect
        What a source becomes, in new numbers, if it is not just renumbered.
    without_inputs, without_guards
        Inputs and conditional subsystems to be removed, by number.
    """
    inputs = _renumbered(len(flat.inputs), without_inputs or set())
    guards = _renumbered(len(flat.guards), without_guards or set()) | {-1: -1}

    def follow(source: Source | None) -> Source | None:
        if source is None:
            return None
        moved = redirect(source)
        if moved is not None:
            return moved
        if source.block < 0:
            return replace(source, block=-1 - inputs[-1 - source.block])
        return replace(source, block=numbers[source.block])

    made = [
        replace(
            item,
            guard=guards[item.guard],
            shows_guard=guards[item.shows_guard],
            sources=tuple(follow(source) for source in item.sources),
        )
        for item in blocks
    ]
    kept = [guard for n, guard in enumerate(flat.guards) if n in guards]
    parents = [guards[guard.parent] for guard in kept]
    members: list[list[int]] = [[] for _ in kept]
    for number, item in enumerate(made):
        around = item.guard
        while around >= 0:
            members[around].append(number)
            around = parents[around]
    return replace(
        flat,
        blocks=tuple(made),
        inputs=tuple(item for n, item in enumerate(flat.inputs) if n in inputs),
        guards=tuple(
            replace(
                guard,
                parent=parent,
                control=follow(guard.control),
                first=inside[0] if inside else 0,
                count=len(inside),
            )
            for guard, parent, inside in zip(kept, parents, members, strict=True)
        ),
        groups=tuple(_shrink(group, numbers, guards) for group in flat.groups),
        couplings=tuple(
            replace(c, blocks=tuple(dict.fromkeys(numbers[n] for n in c.blocks if n in numbers)))
            for c in flat.couplings
        ),
        substeps=tuple(
            replace(c, blocks=tuple(dict.fromkeys(numbers[n] for n in c.blocks if n in numbers)))
            for c in flat.substeps
        ),
        bonds=tuple(
            (name, (numbers[a[0]], a[1]), (numbers[b[0]], b[1])) for name, a, b in flat.bonds
        ),
        borders=tuple(
            replace(border, source=source)
            for border in flat.borders
            if (source := follow(border.source)) is not None
        ),
        outputs=tuple((name, follow(source)) for name, source in flat.outputs),
        buses=tuple(
            (name, moved) for name, source in flat.buses if (moved := follow(source)) is not None
        ),
    )


def _shrink(group: Group, numbers: Mapping[int, int], guards: Mapping[int, int]) -> Group:
    inside = range(group.first, group.first + group.count)
    found = {numbers[n] for n in inside if n in numbers}
    return replace(group, guard=guards[group.guard], first=min(found, default=0), count=len(found))


def _renumbered(count: int, without: set[int]) -> dict[int, int]:
    kept = [n for n in range(count) if n not in without]
    return {old: new for new, old in enumerate(kept)}


def _differences(
    path: str, ports: tuple[Sequence[Port], Sequence[Port]], other: AbstractBlock
) -> list[str]:
    """Return why `other` cannot replace a block with these inputs and outputs."""
    sides = (("inputs", ports[0], other.inputs), ("outputs", ports[1], other.outputs))
    return [
        f"`{path}` has the {side} {name_list([p.name for p in own])}, but its replacement "
        f"({other}) has {name_list([p.name for p in new])}."
        for side, own, new in sides
        if [p.name for p in own] != [p.name for p in new]
    ]


def _known_outputs(flat: FlatDiagram) -> dict[str, Source]:
    """Return every output by path, and each block's main one by the path of the block."""
    known = {
        item.output_path(k): Source(n, k)
        for n, item in enumerate(flat.blocks)
        for k in range(len(item.block.outputs))
    }
    for n, item in enumerate(flat.blocks):
        main = main_output(list(item.block.output_index))
        if main is not None:
            known.setdefault(item.path, Source(n, item.block.output_index[main]))
    for name, source in flat.buses:
        if source.block >= 0:
            known.setdefault(name, source)
    return known


def _elements_of(name: str, paths: Iterable[str]) -> list[str]:
    """Return the paths of the elements of a bus."""
    return [path for path in paths if path.startswith(f"{name}.")]


def _complain(flat: FlatDiagram, *problems: str) -> FlatDiagram:
    return replace(flat, problems=(*flat.problems, *problems)) if problems else flat
