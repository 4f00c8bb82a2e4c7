"""Encoding: where every value of a flattened diagram lies, and the tables of a plan.

The tables are those of ``plan.c``; the numbers of their fields come from there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....blocks.core._block import NativeBlock, size_of
from ....blocks.core._vectors import make_record
from ....blocks.external._external_block import ExternalBlock
from ....blocks.external._python import PythonBlock
from ....errors import DiagramError
from ...engine._library import contract, kernel_crossings, kernel_needs_rates, kernel_sizes
from ...results._coupling_report import ARRAY_COUNT, BOND_SIZE, HEAD_SIZE
from .._derived import derive_value
from .._flatten import FlatDiagram, Source
from .._model import Model
from .._multirate import find_partition
from .._order import Order, find_minor_blocks, find_sources_of
from .._port_types import PortTypes, ResolvedPorts
from .._rates import CONSTANT, CONTINUOUS, Ticks, find_flowing
from ..coupling._coupling_options import METHODS
from ..coupling._couplings import Component, Exchange
from ..diagram._solver_options import IMPLICIT, SOLVERS, Settings
from ._jacobian_pattern import find_pattern
from ._plan import write_sections
from ._plan_description import Describer

_GUARD_KINDS = {
    "enable": contract.BL_GUARD_ENABLE,
    "trigger": contract.BL_GUARD_TRIGGER,
    "reset": contract.BL_GUARD_RESET,
}
_EDGES = {
    "rising": contract.BL_EDGE_RISING,
    "falling": contract.BL_EDGE_FALLING,
    "either": contract.BL_EDGE_EITHER,
    "level": contract.BL_EDGE_LEVEL,
}
_ENTRIES = {
    "call": contract.ENTRY_CALL,
    "loop": contract.ENTRY_LOOP,
    "guard": contract.ENTRY_GUARD,
}


@dataclass(slots=True)
class _Tables:
    """The growing tables of a plan."""

    parameters: list[float] = field(default_factory=list)
    records: list[int] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    integers: list[int] = field(default_factory=list)


class Encoder:
    """Lays out all values and writes the plan's sections."""

    def __init__(
        self,
        settings: Settings,
        flat: FlatDiagram,
        ports: ResolvedPorts,
        rates: tuple[Ticks, ...],
        order: Order,
        couplings: list[Component],
        exchanges: list[Exchange],
    ) -> None:
        self.settings, self.flat, self.ports = settings, flat, ports
        self.rates, self.order = rates, order
        self.couplings, self.exchanges, self.estimate = couplings, exchanges, settings.estimate
        self.step, self.solver = settings.step, settings.solver
        self.tables = _Tables()
        self.problems: list[str] = []
        self.input_firsts: list[int] = []
        self._lay_out()
        self._write_blocks()
        self.partition = find_partition(
            flat, rates, order.loops, settings, lambda n: self.state_slots[n][1] > 0
        )
        self._refuse_fast_rates()
        if self.problems:
            raise DiagramError(self.problems)

    def describe(self) -> dict[str, Any]:
        """Return the content of section META."""
        return Describer(self).describe()[0]

    def encode(self) -> Model:
        """Write the plan."""
        described, variables = Describer(self).describe()
        sections: dict[str, Any] = {
            "META": json.dumps(described, ensure_ascii=False, separators=(",", ":")).encode(),
            "SIZE": np.array(
                make_record(
                    contract.SIZE_FIELDS,
                    {
                        contract.SIZE_SIGNALS: self.signal_count,
                        contract.SIZE_STATES: self.state_count,
                        contract.SIZE_MEMORY: self.memory_count,
                        contract.SIZE_SOLVER: SOLVERS[self.solver],
                    },
                ),
                dtype="<i8",
            ),
            "TIME": np.array([self.step, self.settings.start], dtype="<f8"),
            "SOLV": self._step_control(),
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
            "VARS": np.array(variables, dtype="<i4"),
            **self._event_tables(),
            **self._multirate_tables(),
        }
        if self.solver in IMPLICIT and self.state_count:
            pattern = find_pattern(self.flat, self.ports, self.rates, self.order, self.state_slots)
            if pattern.size:
                sections["JPAT"] = pattern
        if self.couplings:
            sections |= self._coupling_tables()
        if self.exchanges:
            sections["EXCH"] = np.array(self._exchange_table(), dtype="<i4").ravel()
        python_blocks = {
            n: item.block
            for n, item in enumerate(self.flat.blocks)
            if isinstance(item.block, PythonBlock)
        }
        external = {
            n: item.block
            for n, item in enumerate(self.flat.blocks)
            if isinstance(item.block, ExternalBlock)
        }
        return Model(
            write_sections(sections),
            python_blocks,
            external,
            described=described,
            flat=self.flat,
            ports=PortTypes(self.ports.inputs, self.ports.outputs),
            rates=self.rates,
            order=self.order,
        )

    def _step_control(self) -> Any:
        control = self.settings.control
        numbers = [0.0] * contract.BL_CONTROL_FIELDS
        numbers[contract.BL_CONTROL_RELATIVE] = control.relative
        numbers[contract.BL_CONTROL_ABSOLUTE] = control.absolute
        numbers[contract.BL_CONTROL_MAX_STEPS] = control.max_steps
        numbers[contract.BL_CONTROL_LOCATES] = control.events == "locate"
        numbers[contract.BL_CONTROL_MAX_EVENTS] = control.max_events
        return np.array(numbers, dtype="<f8")

    def _lay_out(self) -> None:
        """Decide where every value lies."""
        flat, ports, tables = self.flat, self.ports, self.tables
        self.parameter_slots: list[int] = []
        for number, item in enumerate(flat.blocks):
            self.parameter_slots.append(len(tables.parameters))
            for parameter in item.block.parameters:
                value = derive_value(flat, number, parameter, self.problems)
                tables.parameters.extend(value.ravel().tolist())
        self.input_slots: list[int] = []
        for outside in flat.inputs:
            self.input_slots.append(len(tables.parameters))
            width = outside.port.width if isinstance(outside.port.width, int) else 1
            tables.parameters.extend(outside.port.default_values(width))
        self.default_slots: dict[tuple[int, int], int] = {}
        for number, item in enumerate(flat.blocks):
            for n, source in enumerate(item.sources):
                if source is None and not (item.shows_guard >= 0 and n == 1):
                    self.default_slots[number, n] = len(tables.parameters)
                    width = ports.inputs[number][n].width or 1
                    tables.parameters.extend(item.block.inputs[n].default_values(width))

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
        self.integers = [self._integers(n) for n in range(len(flat.blocks))]
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
            self.loop_records += make_record(
                contract.LOOP_FIELDS,
                {
                    contract.LOOP_BODY: body,
                    contract.LOOP_BODY_COUNT: len(loop.body),
                    contract.LOOP_TEAR: len(self.tears),
                    contract.LOOP_TEAR_COUNT: len(slots),
                    contract.LOOP_START: z,
                },
            )
            body += len(loop.body)
            self.tears += slots
            z += len(slots)
        self.coupling_memory: list[int] = []
        self.bond_memory: list[list[int]] = []
        for coupling in self.couplings:
            self.coupling_memory.append(z)
            z += HEAD_SIZE + ARRAY_COUNT * coupling.element_count
            z += coupling.unknown_count**2 if coupling.how.method == "newton" else 0
            self.bond_memory.append([z + BOND_SIZE * n for n in range(len(coupling.bonds))])
            z += BOND_SIZE * len(coupling.bonds)
        self.exchange_memory: list[int] = []
        for exchange in self.exchanges:
            self.exchange_memory.append(z)
            z += BOND_SIZE + 1 + 2 * exchange.pair.width
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
            self.guard_sizes[g] = contract.BL_GUARD_MEMORY + signals + states
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
        slot = 0 if guard.control is None else self.slot_of(guard.control)
        return make_record(
            contract.GUARD_FIELDS,
            {
                contract.GUARD_KIND: _GUARD_KINDS[control],
                contract.GUARD_EDGE: _EDGES[guard.subsystem.edge],
                contract.GUARD_RESETS: int(guard.subsystem.states_reset),
                contract.GUARD_PARENT: guard.parent,
                contract.GUARD_CONTROL: slot,
                contract.GUARD_BLOCK: guard.first,
                contract.GUARD_BLOCK_COUNT: guard.count,
                contract.GUARD_X: x_first,
                contract.GUARD_X_COUNT: x_count,
                contract.GUARD_Z: z_first,
                contract.GUARD_Z_COUNT: z_count,
                contract.GUARD_MEMORY: self.guard_memory[g],
            },
        )

    def _sizes(self, number: int) -> tuple[int, int]:
        item, widths = self.flat.blocks[number], self.ports.widths[number]
        block = item.block
        assert isinstance(block, NativeBlock | PythonBlock)
        try:
            states = size_of(block.states, widths)
            if isinstance(block, PythonBlock):
                return states, size_of(block.memory, widths)
        except DiagramError as error:
            self.problems += [f"`{item.path}`: {problem}" for problem in error.problems]
            return 0, 0
        if self.problems:  # nothing is encoded, and the integers may be missing
            return states, 0
        needed = kernel_sizes(block.kernel, **self._shape(number, states))
        if needed is None:
            self.problems.append(f"`{item.path}` does not fit its kernel `{block.kernel}`.")
            return states, 0
        return states, needed[0]

    def _integers(self, number: int) -> list[int]:
        item, widths = self.flat.blocks[number], self.ports.widths[number]
        block = item.block
        assert isinstance(block, NativeBlock | PythonBlock)
        try:
            given = block.integers(widths) if callable(block.integers) else block.integers
        except DiagramError as error:
            self.problems += [f"`{item.path}`: {problem}" for problem in error.problems]
            return []
        whole: list[int] = np.array(given, dtype="<i4").tolist()  # arguments may be numpy's
        return whole

    def slot_of(self, source: Source) -> int:
        if source.block < 0:
            return self.input_slots[-1 - source.block]
        return self.output_slots[source.block][source.port]

    def _write_blocks(self) -> None:
        tables = self.tables
        kernels: dict[str, int] = {}
        table: dict[Ticks, int] = {
            CONTINUOUS: contract.BL_RATE_CONTINUOUS,
            CONSTANT: contract.BL_RATE_CONSTANT,
        }
        for ticks in self.rates:
            table.setdefault(ticks, len(table))
        flowing = find_flowing(self.flat, self.rates)
        memory_base = len(tables.parameters) + self.signal_count + self.state_count
        for number, item in enumerate(self.flat.blocks):
            block = item.block
            assert isinstance(block, NativeBlock | PythonBlock)
            kernel = kernels.setdefault(block.kernel, len(kernels))
            # Beyond the table: every tick, and wherever a run stops within one.
            rate = len(table) if number in flowing else table[self.rates[number]]
            inputs_first = len(tables.ports) // 2
            self.input_firsts.append(inputs_first)
            for n, source in enumerate(item.sources):
                if source is not None:
                    slot = self.slot_of(source)
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
            integers = self.integers[number]
            parameter_count = sum(parameter.value.size for parameter in block.parameters)
            # What is constant may be needed at any time, and has no state that could stand still.
            guard = -1 if self.rates[number] == CONSTANT else item.guard
            (x_first, x_count), (z_first, z_count) = (
                self.state_slots[number],
                self.memory_slots[number],
            )
            tables.records += make_record(
                contract.BLOCK_FIELDS,
                {
                    contract.BLOCK_KERNEL: kernel,
                    contract.BLOCK_RATE: rate,
                    contract.BLOCK_GUARD: guard,
                    contract.BLOCK_U: inputs_first,
                    contract.BLOCK_U_COUNT: len(block.inputs),
                    contract.BLOCK_Y: outputs_first,
                    contract.BLOCK_Y_COUNT: len(block.outputs),
                    contract.BLOCK_X: x_first,
                    contract.BLOCK_X_COUNT: x_count,
                    contract.BLOCK_Z: z_first,
                    contract.BLOCK_Z_COUNT: z_count,
                    contract.BLOCK_UNUSED: 0,
                    contract.BLOCK_P: self.parameter_slots[number],
                    contract.BLOCK_P_COUNT: parameter_count,
                    contract.BLOCK_I: len(tables.integers),
                    contract.BLOCK_I_COUNT: len(integers),
                },
            )
            tables.integers += integers
        self.kernel_names = list(kernels)
        self.rate_table = list(table)

    def _coupling_tables(self) -> dict[str, Any]:
        records: list[list[int]] = []
        members: list[list[int]] = []
        signals: list[list[int]] = []
        inputs: list[list[int]] = []
        entries: list[tuple[int, int]] = []
        bonds: list[list[int]] = []
        for n, coupling in enumerate(self.couplings):
            how, program = coupling.how, self._coupling_program(coupling)
            records.append(
                make_record(
                    contract.COUPLING_FIELDS,
                    {
                        contract.COUPLING_METHOD: METHODS[how.method],
                        contract.COUPLING_EXTRAPOLATION: how.extrapolation,
                        contract.COUPLING_ITERATIONS: how.iterations,
                        contract.COUPLING_STRICT: int(how.failure == "error"),
                        contract.COUPLING_ROLLS_BACK: int(coupling.rolls_back),
                        contract.COUPLING_HALVINGS: coupling.halvings,
                        contract.COUPLING_GROUP: coupling.group,
                        contract.COUPLING_MEMBER: len(members),
                        contract.COUPLING_MEMBER_COUNT: len(coupling.members),
                        contract.COUPLING_SIGNAL: len(signals),
                        contract.COUPLING_SIGNAL_COUNT: len(coupling.signals),
                        contract.COUPLING_ENTRY: len(entries),
                        contract.COUPLING_ENTRY_COUNT: len(program),
                        contract.COUPLING_BOND: len(bonds),
                        contract.COUPLING_BOND_COUNT: len(coupling.bonds),
                        contract.COUPLING_MEMORY: self.coupling_memory[n],
                    },
                )
            )
            for member in coupling.members:
                members.append(
                    make_record(
                        contract.MEMBER_FIELDS,
                        {
                            contract.MEMBER_BLOCK: member.node,
                            contract.MEMBER_INPUT_DERIVATIVES: int(member.slopes),
                            contract.MEMBER_INPUT: len(inputs),
                            contract.MEMBER_INPUT_COUNT: len(member.inputs),
                        },
                    )
                )
                inputs += [
                    make_record(
                        contract.INPUT_FIELDS,
                        {
                            contract.INPUT_PORT: port,
                            contract.INPUT_SIGNAL: signal,
                            contract.INPUT_CARRIED: int(port in member.carried),
                        },
                    )
                    for port, signal in member.inputs
                ]
            signals += [
                make_record(
                    contract.COUPLED_FIELDS,
                    {
                        contract.COUPLED_SLOT: self.slot_of(signal.source),
                        contract.COUPLED_WIDTH: signal.width,
                        contract.COUPLED_LAST: signal.last,
                        contract.COUPLED_DIRECT: signal.direct,
                    },
                )
                for signal in coupling.signals
            ]
            entries += program
            bonds += [
                make_record(
                    contract.BOND_FIELDS,
                    {
                        contract.BOND_EFFORT_MEMBER: bond.effort[0],
                        contract.BOND_EFFORT: bond.effort[1],
                        contract.BOND_FLOW_MEMBER: bond.flow[0],
                        contract.BOND_FLOW: bond.flow[1],
                        contract.BOND_PLACE: int(bond.is_place),
                        contract.BOND_MEMORY: memory,
                    },
                )
                for bond, memory in zip(coupling.bonds, self.bond_memory[n], strict=True)
            ]
        tables = {
            "COUP": records, "CMEM": members, "CSIG": signals, "CINP": inputs, "CPRG": entries,
            "BOND": bonds,
        }  # fmt: skip
        numbers = [
            number
            for coupling in self.couplings
            for number in (
                coupling.how.tolerance,
                coupling.how.coupling_tolerance if coupling.is_adaptive else 0.0,
            )
        ]
        return {tag: np.array(table, dtype="<i4").ravel() for tag, table in tables.items()} | {
            "CTOL": np.array([*numbers, self.estimate], dtype="<f8")
        }

    def _exchange_table(self) -> list[list[int]]:
        records = []
        for exchange, memory in zip(self.exchanges, self.exchange_memory, strict=True):
            pair, rate = exchange.pair, exchange.rate
            slots = []
            for number, port in (pair.effort, pair.flow):
                source = self.flat.blocks[number].sources[port]
                assert source is not None
                slots.append(self.slot_of(source))
            effort, flow = slots
            records.append(
                make_record(
                    contract.EXCHANGE_FIELDS,
                    {
                        contract.EXCHANGE_EFFORT: effort,
                        contract.EXCHANGE_FLOW: flow,
                        contract.EXCHANGE_WIDTH: pair.width,
                        contract.EXCHANGE_PLACE: int(pair.is_place),
                        contract.EXCHANGE_PERIOD: rate.period,
                        contract.EXCHANGE_OFFSET: rate.offset,
                        contract.EXCHANGE_MEMORY: memory,
                    },
                )
            )
        return records

    def _coupling_program(self, coupling: Component) -> list[tuple[int, int]]:
        """What leads from the members' outputs to the signals that they read."""
        return [
            (_ENTRIES[kind], index)
            for kind, index in self.order.entries
            if (kind == "call" and index in coupling.calls)
            or (kind == "loop" and coupling.calls & set(self.order.loops[index].body))
        ]

    def _shape(self, number: int, states: int) -> dict[str, Any]:
        """Return the shape of a native block, by which its kernel computes sizes."""
        block = self.flat.blocks[number].block
        assert isinstance(block, NativeBlock)
        return {
            "inputs": [port.width or 1 for port in self.ports.inputs[number]],
            "outputs": [port.width or 1 for port in self.ports.outputs[number]],
            "states": states,
            "parameters": sum(parameter.value.size for parameter in block.parameters),
            "integers": self.integers[number],
        }

    def _event_tables(self) -> dict[str, Any]:
        """Return the blocks whose events are located, and what their crossing functions need."""
        if self.settings.control.events != "locate" or self.state_count == 0:
            return {}
        involved = self._eventful_blocks()
        seeds, apart = self._located_blocks(involved)
        needed = find_sources_of(self.flat, self.rates, seeds, apart, self.order.loops)
        return {
            "EVNT": np.array(sorted(involved), dtype="<i4"),
            "CROS": np.array(self._entries(needed), dtype="<i4").ravel(),
        }

    def _eventful_blocks(self) -> set[int]:
        """Return the blocks that run between ticks."""
        return self._minor_blocks() | {
            n
            for n, (_, states) in enumerate(self.state_slots)
            if states and self.rates[n] == CONTINUOUS
        }

    def _located_blocks(self, among: Iterable[int]) -> tuple[set[int], set[int]]:
        """Return the blocks with crossing functions: with their outputs, and apart from them."""
        seeds: set[int] = set()
        apart: set[int] = set()
        for number in among:
            block = self.flat.blocks[number].block
            if not isinstance(block, NativeBlock):
                continue
            shape = self._shape(number, self.state_slots[number][1])
            count, is_apart = kernel_crossings(block.kernel, **shape)
            if count:
                (apart if is_apart else seeds).add(number)
        return seeds, apart

    def _refuse_fast_rates(self) -> None:
        """Refuse events that depend on rates of change of fast signals: they are not located."""
        if self.partition is None or self.settings.control.events != "locate":
            return
        for number in sorted(self.partition.moved & self._eventful_blocks()):
            item = self.flat.blocks[number]
            if isinstance(item.block, NativeBlock) and kernel_needs_rates(item.block.kernel):
                self.problems.append(
                    f"`{item.path}` ({item.block}) depends on states that take substeps, and its "
                    f"events on rates of change: they are not located within a step. Leave "
                    f"these states out of d.integrate, or use events='tick'."
                )

    def _multirate_tables(self) -> dict[str, Any]:
        """Return the fast part, and the programs of both parts."""
        part = self.partition
        if part is None:
            return {}
        tables: dict[str, Any] = {
            "FAST": [part.substeps, *sorted(part.fast)],
            "FPRG": self._entries(set(part.calls)),
            "SPRG": self._entries(set(part.slow_calls)),
            "SAMP": [(_ENTRIES["call"], number) for number in sorted(part.sampled)],
            "DRIV": part.driven,
        }
        if self.settings.control.events == "locate":
            seeds, apart = self._located_blocks(part.moved & self._eventful_blocks())
            needed = find_sources_of(self.flat, self.rates, seeds, apart, self.order.loops)
            tables["FEVT"] = sorted(seeds | apart)
            tables["FCRO"] = self._entries(needed)
        return {tag: np.array(table, dtype="<i4").ravel() for tag, table in tables.items()}

    def _minor_blocks(self) -> set[int]:
        derivatives = {n for n, (_, states) in enumerate(self.state_slots) if states}
        # Events between ticks that change state outside the engine depend on all inputs.
        derivatives |= {
            n
            for n, item in enumerate(self.flat.blocks)
            if isinstance(item.block, ExternalBlock) and item.block.has_engine_states
        }
        return find_minor_blocks(self.flat, self.rates, derivatives, self.order.loops)

    def _program(self, minor: bool) -> list[tuple[int, int]]:
        return self._entries(self._minor_blocks() if minor else None)

    def _entries(self, needed: set[int] | None) -> list[tuple[int, int]]:
        """Return the program of all blocks, or of those needed in minor steps."""
        entries = []
        for kind, index in self.order.entries:
            if kind == "call" and not self.flat.blocks[index].block.outputs:
                continue
            if needed is not None:
                if kind == "guard" or (kind == "call" and index not in needed):
                    continue
                if kind == "loop" and not needed & set(self.order.loops[index].body):
                    continue
            entries.append((_ENTRIES[kind], index))
        return entries


def _strings(texts: list[str]) -> bytes:
    return b"".join(text.replace("\0", "").encode() + b"\0" for text in texts)
