"""Compiling: a diagram becomes a plan, or one report of everything that is wrong with it."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..blocks.block import NativeBlock, size_of
from ..blocks.ports import Port, Widths
from ..blocks.python import PythonBlock
from ..blocks.sinks import Record, Scope
from ..blocks.units import Unit
from ..errors import DiagramError, name_list, suggest
from .diagram import SOLVERS, Diagram, check_step
from .flatten import FlatBlock, FlatDiagram, FlatInput, Source, flatten
from .order import Order, find_minor_blocks, order_outputs
from .plan import Plan, write_sections
from .rates import CONSTANT, CONTINUOUS, Ticks, resolve_rates
from .resolve import Carried, ResolvedPorts, resolve_ports

_GUARD_KINDS = {"enable": 0, "trigger": 1, "reset": 2}
_EDGES = {"rising": 0, "falling": 1, "either": 2, "level": 3}
_GUARD_MEMORY = 7
_KINDS = {"real": 0, "integer": 1, "boolean": 2, "enumeration": 3}
_INPUT, _OUTPUT, _FIXED_PARAMETER, _TUNABLE_PARAMETER = range(4)
_ENTRIES = {"call": 0, "loop": 1, "guard": 2}
_IMPLICIT = ("backward_euler", "trapezoidal")
_LARGEST_IMPLICIT = 4096


def compile_diagram(
    diagram: Diagram,
    *,
    step: float | None = None,
    solver: str | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
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

    Raises
    ------
    DiagramError
        With every problem that was found.
    """
    with _collector_paused():
        return _compile(diagram, step, solver, inputs, outputs)


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
    step: float | None,
    solver: str | None,
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> Plan:
    step = diagram.step if step is None else check_step(step)
    solver = diagram.solver if solver is None else solver
    if solver not in SOLVERS:
        raise DiagramError(f"unknown solver `{solver}`.{suggest(solver, SOLVERS)}")
    flat = flatten(diagram)
    problems = flat.problems
    if not flat.blocks:
        problems.append(f"{diagram.name!r} has no blocks.")
    starts = _replace_sources(flat, diagram, inputs, step, solver)
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
            "algebraic loop: " + " → ".join(_name_cycle(flat, loop.cycle)) for loop in order.loops
        ]
    for item in flat.blocks:
        if isinstance(item.block, NativeBlock | PythonBlock):
            continue
        problems.append(f"`{item.path}` ({item.block!r}) is neither native nor a PythonBlock.")
    if problems:
        raise DiagramError(problems)
    return _Encoder(diagram, flat, ports, rates, order, step, solver, starts).encode()


def _replace_sources(
    flat: FlatDiagram, diagram: Diagram, names: Sequence[str], step: float, solver: str
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
    with compile_diagram(diagram, step=step, solver=solver).start() as first:
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
    flat.outputs = [(name, follow(source)) for name, source in flat.outputs]
    flat.blocks = [item for n, item in enumerate(flat.blocks) if n not in moved]


def _add_outputs(flat: FlatDiagram, names: Sequence[str]) -> None:
    declared = {name for name, _ in flat.outputs}
    known = {
        f"{item.path}.{port.name}": Source(n, k)
        for n, item in enumerate(flat.blocks)
        for k, port in enumerate(item.block.outputs)
    }
    for n, item in enumerate(flat.blocks):
        if len(item.block.outputs) == 1:
            known.setdefault(item.path, Source(n, 0))
    for name in names:
        if name in declared:
            continue
        if name not in known:
            raise DiagramError(
                f"there is no output `{name}`.{suggest(name, [*declared, *known])} "
                f"Outputs: {name_list([*declared, *known])}."
            )
        flat.outputs.append((name, known[name]))


def _name_cycle(flat: FlatDiagram, cycle: list[tuple[int, int]]) -> list[str]:
    names = [f"{flat.blocks[b].path}.{flat.blocks[b].block.outputs[o].name}" for b, o in cycle]
    return [*names, names[0]] if names else []


@dataclass(slots=True)
class _Tables:
    """The growing tables of a plan."""

    parameters: list[float] = field(default_factory=list)
    records: list[int] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    integers: list[int] = field(default_factory=list)
    variables: list[int] = field(default_factory=list)


class _Encoder:
    """Lays out all values and writes the plan's sections."""

    def __init__(
        self,
        diagram: Diagram,
        flat: FlatDiagram,
        ports: ResolvedPorts,
        rates: list[Ticks],
        order: Order,
        step: float,
        solver: str,
        starts: dict[str, list[float]],
    ) -> None:
        self.diagram, self.flat, self.ports, self.rates, self.order = (
            diagram,
            flat,
            ports,
            rates,
            order,
        )
        self.step, self.solver, self.starts = step, solver, starts
        self.tables = _Tables()
        self.problems: list[str] = []
        self.input_firsts: list[int] = []

    def encode(self) -> Plan:
        self._lay_out()
        self._write_blocks()
        if self.problems:
            raise DiagramError(self.problems)
        sections: dict[str, Any] = {
            "META": json.dumps(
                self._describe(), ensure_ascii=False, separators=(",", ":")
            ).encode(),
            "SIZE": np.array(
                [
                    self.signal_count,
                    self.state_count,
                    self.memory_count,
                    SOLVERS.index(self.solver),
                ],
                dtype="<i8",
            ),
            "TIME": np.array([self.step, self.diagram.start], dtype="<f8"),
            "PARA": np.array(self.tables.parameters, dtype="<f8"),
            "RATE": np.array(
                [(max(r.period, 0), r.offset) for r in self.rate_table], dtype="<i8"
            ).ravel(),
            "KERN": _strings(self.kernel_names),
            "BLKS": np.array(self.tables.records, dtype="<i4"),
            "PORT": np.array(self.tables.ports, dtype="<i4"),
            "INTS": np.array(self.tables.integers, dtype="<i4"),
            "PATH": _strings([item.path for item in self.flat.blocks]),
            "NOTE": _strings([item.block.note for item in self.flat.blocks]),
            "GARD": np.array(self.guard_records, dtype="<i4"),
            "LOOP": np.array(self.loop_records, dtype="<i4"),
            "BODY": np.array([b for loop in self.order.loops for b in loop.body], dtype="<i4"),
            "TEAR": np.array(self.tears, dtype="<i4"),
            "MAJR": np.array(self._program(minor=False), dtype="<i4").ravel(),
            "MINR": np.array(self._program(minor=True), dtype="<i4").ravel(),
            "VARS": np.array(self.tables.variables, dtype="<i4"),
        }
        python_blocks = {
            n: item.block
            for n, item in enumerate(self.flat.blocks)
            if isinstance(item.block, PythonBlock)
        }
        return Plan(write_sections(sections), python_blocks)

    def _lay_out(self) -> None:
        """Decide where every value lies."""
        flat, ports, tables = self.flat, self.ports, self.tables
        self.parameter_slots: list[int] = []
        for item in flat.blocks:
            self.parameter_slots.append(len(tables.parameters))
            for parameter in item.block.parameters:
                tables.parameters.extend(parameter.value.ravel().tolist())
        self.input_slots: list[int] = []
        for outside in flat.inputs:
            self.input_slots.append(len(tables.parameters))
            width = outside.port.width if isinstance(outside.port.width, int) else 1
            start = self.starts.get(outside.name, [outside.port.default or 0.0] * width)
            tables.parameters.extend(start)
        self.default_slots: dict[tuple[int, int], int] = {}
        for number, item in enumerate(flat.blocks):
            for n, source in enumerate(item.sources):
                if source is None and not (item.shows_guard >= 0 and n == 1):
                    self.default_slots[number, n] = len(tables.parameters)
                    width = ports.inputs[number][n].width or 1
                    tables.parameters.extend([item.block.inputs[n].default or 0.0] * width)

        slot = len(tables.parameters)
        self.output_slots: list[list[int]] = []
        for carried in ports.outputs:
            slots = []
            for port in carried:
                slots.append(slot)
                slot += port.width or 1
            self.output_slots.append(slots)
        self.signal_count = slot - len(tables.parameters)

        # A guard's memory stands before that of the blocks in it, and so inside its parent's.
        self.state_slots: list[tuple[int, int]] = []
        self.memory_slots: list[tuple[int, int]] = []
        self.guard_memory = [0] * len(flat.guards)
        x = z = 0
        guard_of_block: dict[int, list[int]] = {}
        for g, guard in enumerate(flat.guards):
            guard_of_block.setdefault(guard.first, []).append(g)
        sizes = [self._sizes(n) for n in range(len(flat.blocks))]
        self._size_guards(sizes)
        for number, (states, memory) in enumerate(sizes):
            for g in guard_of_block.get(number, []):
                self.guard_memory[g] = z
                z += self.guard_sizes[g]
            self.state_slots.append((x, states))
            self.memory_slots.append((z, memory))
            x += states
            z += memory
        self.state_count = x
        if self.solver in _IMPLICIT and x > _LARGEST_IMPLICIT:
            self.problems.append(
                f"{x} continuous states are too many for the solver `{self.solver}`, "
                f"which takes at most {_LARGEST_IMPLICIT}. Use an explicit one."
            )
        self.guard_records: list[int] = []
        for g in range(len(flat.guards)):
            self.guard_records += self._guard_record(g, sizes)
        self.loop_records: list[int] = []
        self.tears: list[int] = []
        body = 0
        for loop in self.order.loops:
            slots = [
                self.output_slots[b][o] + k
                for b, o in loop.tears
                for k in range(self.ports.outputs[b][o].width or 1)
            ]
            self.loop_records += [body, len(loop.body), len(self.tears), len(slots), z]
            body += len(loop.body)
            self.tears += slots
            z += len(slots)
        self.memory_count = z

    def _size_guards(self, sizes: list[tuple[int, int]]) -> None:
        """Find how much memory each guard takes: its own, the signals of all blocks inside, and a
        shadow of all states inside; and how much the guards inside it take.
        """
        guards = self.flat.guards
        self.guard_sizes, self.inner_guard_sizes = [0] * len(guards), [0] * len(guards)
        for g in reversed(range(len(guards))):  # a guard stands before those inside it
            inside = range(guards[g].first, guards[g].first + guards[g].count)
            signals = sum(port.width or 1 for n in inside for port in self.ports.outputs[n])
            states = sum(sum(sizes[n]) for n in inside) + self.inner_guard_sizes[g]
            self.guard_sizes[g] = _GUARD_MEMORY + signals + states
            if guards[g].parent >= 0:
                total = self.guard_sizes[g] + self.inner_guard_sizes[g]
                self.inner_guard_sizes[guards[g].parent] += total

    def _guard_record(self, g: int, sizes: list[tuple[int, int]]) -> list[int]:
        guard = self.flat.guards[g]
        inside = range(guard.first, guard.first + guard.count)
        x_first = self.state_slots[guard.first][0] if guard.count else 0
        x_count = sum(sizes[n][0] for n in inside)
        z_first = self.guard_memory[g] + self.guard_sizes[g]
        z_count = sum(sizes[n][1] for n in inside) + self.inner_guard_sizes[g]
        control = guard.subsystem.control
        assert control is not None
        slot = 0 if guard.control is None else self._slot_of(guard.control)
        return [
            _GUARD_KINDS[control], _EDGES[guard.subsystem.edge], int(guard.subsystem.states_reset),
            guard.parent, slot, guard.first, guard.count, x_first, x_count, z_first, z_count,
            self.guard_memory[g],
        ]  # fmt: skip

    def _sizes(self, number: int) -> tuple[int, int]:
        item, widths = self.flat.blocks[number], self.ports.widths[number]
        block = item.block
        assert isinstance(block, NativeBlock | PythonBlock)
        try:
            return size_of(block.states, widths), size_of(block.memory, widths)
        except DiagramError as error:
            self.problems += [f"`{item.path}`: {problem}" for problem in error.problems]
            return 0, 0

    def _integers(self, item: FlatBlock, widths: Widths) -> Sequence[int]:
        block = item.block
        assert isinstance(block, NativeBlock | PythonBlock)
        if not callable(block.integers):
            return block.integers
        try:
            return block.integers(widths)
        except DiagramError as error:
            self.problems += [f"`{item.path}`: {problem}" for problem in error.problems]
            return ()

    def _slot_of(self, source: Source) -> int:
        if source.block < 0:
            return self.input_slots[-1 - source.block]
        return self.output_slots[source.block][source.port]

    def _write_blocks(self) -> None:
        tables = self.tables
        kernels: dict[str, int] = {}
        table: dict[Ticks, int] = {CONTINUOUS: 0, CONSTANT: 1}
        memory_base = len(tables.parameters) + self.signal_count + self.state_count
        for number, item in enumerate(self.flat.blocks):
            block = item.block
            assert isinstance(block, NativeBlock | PythonBlock)
            widths = self.ports.widths[number]
            kernel = kernels.setdefault(block.kernel, len(kernels))
            rate = table.setdefault(self.rates[number], len(table))
            inputs_first = len(tables.ports) // 2
            self.input_firsts.append(inputs_first)
            for n, source in enumerate(item.sources):
                if source is not None:
                    slot = self._slot_of(source)
                elif (number, n) in self.default_slots:
                    slot = self.default_slots[number, n]
                else:
                    slot = memory_base + self.guard_memory[item.shows_guard]
                tables.ports += [slot, self.ports.inputs[number][n].width or 1]
            outputs_first = len(tables.ports) // 2
            for slot, carried in zip(
                self.output_slots[number], self.ports.outputs[number], strict=True
            ):
                tables.ports += [slot, carried.width or 1]
            integers = self._integers(item, widths)
            parameter_count = sum(parameter.value.size for parameter in block.parameters)
            # What is constant may be needed at any time, and has no state that could stand still.
            guard = -1 if self.rates[number] == CONSTANT else item.guard
            tables.records += [
                kernel, rate, guard,
                inputs_first, len(block.inputs), outputs_first, len(block.outputs),
                *self.state_slots[number], *self.memory_slots[number], block.scratch,
                self.parameter_slots[number], parameter_count,
                len(tables.integers), len(integers),
            ]  # fmt: skip
            tables.integers += integers
        self.kernel_names = list(kernels)
        self.rate_table = list(table)

    def _program(self, minor: bool) -> list[tuple[int, int]]:
        if minor:
            derivatives = {n for n, (_, states) in enumerate(self.state_slots) if states}
            needed = find_minor_blocks(self.flat, self.rates, derivatives, self.order.loops)
        entries = []
        for kind, index in self.order.entries:
            if kind == "call" and not self.flat.blocks[index].block.outputs:
                continue
            if minor:
                if kind == "guard" or (kind == "call" and index not in needed):
                    continue
                if kind == "loop" and not needed & set(self.order.loops[index].body):
                    continue
            entries.append((_ENTRIES[kind], index))
        return entries

    def _describe(self) -> dict[str, Any]:
        """Section META, and the variables of the boundary in the same order."""
        blocks = []
        variables = self.tables.variables
        inputs = [
            self._port(item.name, self.input_slots[n], _outside(item), item.port)
            for n, item in enumerate(self.flat.inputs)
            if item.declared
        ]
        outputs = []
        for name, source in self.flat.outputs:
            if source is None:
                continue
            if source.block < 0:
                outside = self.flat.inputs[-1 - source.block]
                outputs.append(
                    self._port(name, self._slot_of(source), _outside(outside), outside.port)
                )
            else:
                carried = self.ports.outputs[source.block][source.port]
                port = self.flat.blocks[source.block].block.outputs[source.port]
                sampled = self.rates[source.block].period > 0
                outputs.append(self._port(name, self._slot_of(source), carried, port, sampled))
        for ports, causality in ((inputs, _INPUT), (outputs, _OUTPUT)):
            for _, slot, width, _, kind, *_ in ports:
                for k in range(width):
                    variables += [slot + k, _KINDS[kind], causality]
        for number, item in enumerate(self.flat.blocks):
            blocks.append(self._describe_block(number, item))
        return {
            "name": self.diagram.name,
            "step": self.step,
            "start": self.diagram.start,
            "solver": self.solver,
            "blocks": blocks,
            "inputs": inputs,
            "outputs": outputs,
            "dependencies": [self._dependencies(source) for _, source in self.flat.outputs],
            "loops": [_name_cycle(self.flat, loop.cycle) for loop in self.order.loops],
            "scopes": self._scopes(),
            "guards": [guard.path for guard in self.flat.guards],
            "order": [[kind, index] for kind, index in self.order.entries],
        }

    def _scopes(self) -> list[dict[str, Any]]:
        """What Scope and Record blocks ask for; only a Scope's has labels."""
        views = []
        for item in self.flat.blocks:
            if not isinstance(item.block, Scope | Record):
                continue
            names = [self._name_source(source) for source in item.sources if source is not None]
            labels = item.block.labels if isinstance(item.block, Scope) else ()
            views.append({
                "title": item.block.title if isinstance(item.block, Scope) else "",
                "signals": names,
                "labels": list(labels or names) if isinstance(item.block, Scope) else [],
            })  # fmt: skip
        return views

    def _name_source(self, source: Source) -> str:
        if source.block < 0:
            return self.flat.inputs[-1 - source.block].name
        item = self.flat.blocks[source.block]
        if len(item.block.outputs) == 1:
            return item.path
        return f"{item.path}.{item.block.outputs[source.port].name}"

    def _dependencies(self, source: Source | None) -> list[str]:
        """The diagram's inputs that reach an output at once."""
        reached: set[Source] = set()
        waiting = [source]
        while waiting:
            at = waiting.pop()
            if at is None or at in reached:
                continue
            reached.add(at)
            if at.block >= 0:
                item = self.flat.blocks[at.block]
                waiting += [item.sources[n] for n in item.block.feedthrough[at.port]]
                for guard in {item.guard, item.shows_guard} - {-1}:
                    waiting.append(self.flat.guards[guard].control)
        return [
            item.name
            for n, item in enumerate(self.flat.inputs)
            if item.declared and Source(-1 - n, 0) in reached
        ]

    def _describe_block(self, number: int, item: FlatBlock) -> list[Any]:
        block = item.block
        rate = self.rates[number]
        outputs = [
            self._port(f"{item.path}.{port.name}", slot, carried, port, rate.period > 0)
            for port, slot, carried in zip(
                block.outputs, self.output_slots[number], self.ports.outputs[number], strict=True
            )
        ]
        inputs = []
        for n, (port, carried) in enumerate(
            zip(block.inputs, self.ports.inputs[number], strict=True)
        ):
            slot = self.tables.ports[2 * (self.input_firsts[number] + n)]
            inputs.append(self._port(f"{item.path}.{port.name}", slot, carried, port))
        parameters = []
        slot = self.parameter_slots[number]
        for parameter in block.parameters:
            if parameter.hidden:
                slot += parameter.value.size
                continue
            unit = None if parameter.unit is None else str(parameter.unit)
            parameters.append([
                f"{item.path}.{parameter.name}", slot, list(parameter.value.shape), unit,
                parameter.doc, parameter.tunable,
            ])  # fmt: skip
            causality = _TUNABLE_PARAMETER if parameter.tunable else _FIXED_PARAMETER
            for k in range(parameter.value.size):
                self.tables.variables += [slot + k, 0, causality]
            slot += parameter.value.size
        return [
            item.path,
            type(block).__name__,
            rate.describe(self.step),
            inputs,
            outputs,
            parameters,
        ]

    def _port(
        self, path: str, slot: int, carried: Carried, port: Port, sampled: bool = False
    ) -> list[Any]:
        unit = None if carried.unit is None else str(carried.unit)
        return [path, slot, carried.width or 1, unit, carried.kind or "real", port.doc, sampled]


def _outside(item: FlatInput) -> Carried:
    port = item.port
    return Carried(
        port.width if isinstance(port.width, int) else 1,
        port.unit if isinstance(port.unit, Unit) else None,
        port.kind if isinstance(port.kind, str) else "real",
    )


def _strings(texts: list[str]) -> bytes:
    return b"".join(text.replace("\0", "").encode() + b"\0" for text in texts)
