"""Description of a plan for users and for Python: its blocks, ports and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....blocks.basic.routing._sinks import Record, Scope
from ....blocks.core._ports import Port
from ....blocks.core._units import Unit
from ...engine._library import contract
from ...results._coupling_report import ARRAYS, BOND, HEAD, HEAD_SIZE
from .._flatten import FlatBlock, FlatDiagram, FlatInput, Source
from .._port_types import Carried
from ..coupling._couplings import STATES, Component
from ..diagram._solver_options import IMPLICIT

if TYPE_CHECKING:
    from ._encode import Encoder

_KINDS = {
    "real": contract.BL_REAL,
    "integer": contract.BL_INTEGER,
    "boolean": contract.BL_BOOLEAN,
    "enumeration": contract.BL_ENUMERATION,
    "string": contract.BL_REAL,  # the number of a text; such diagrams are never exported
    "binary": contract.BL_REAL,
}
_INPUT, _OUTPUT = contract.BL_INPUT, contract.BL_OUTPUT
_FIXED_PARAMETER, _TUNABLE_PARAMETER = contract.BL_FIXED_PARAMETER, contract.BL_TUNABLE_PARAMETER


_SOLVER_SIGNALS = (
    ("events", contract.BL_COUNT_EVENTS, "events located since the start"),
    (
        "unlocated",
        contract.BL_COUNT_UNLOCATED,
        "ticks since the start with more than max_events events, finished without locating",
    ),
    (
        "uncontrolled",
        contract.BL_COUNT_UNCONTROLLED,
        "ticks since the start with more than max_steps steps, finished without error control",
    ),
)
_STEP_SIGNALS = (
    ("steps", contract.BL_SOLVER_STEPS, "accepted internal steps since the start"),
    ("rejections", contract.BL_SOLVER_REJECTIONS, "internal steps since the start, repeated"),
)
"""Of solvers with error control or Newton's method."""


class Describer:
    """Writes section META, and the table of variables in the same order."""

    def __init__(self, encoder: Encoder) -> None:
        self.layout = encoder
        self.flat, self.ports, self.rates = encoder.flat, encoder.ports, encoder.rates
        self.variables: list[int] = []

    def describe(self) -> tuple[dict[str, Any], list[int]]:
        """Return section META, and the table of variables."""
        blocks = []
        variables = self.variables
        inputs = [
            self._port(item.name, self.layout.input_slots[n], _outside(item), item.port)
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
                    self._port(name, self.layout.slot_of(source), _outside(outside), outside.port)
                )
            else:
                carried = self.ports.outputs[source.block][source.port]
                port = self.flat.blocks[source.block].block.outputs[source.port]
                sampled = self._is_held(source.block, port)
                outputs.append(
                    self._port(name, self.layout.slot_of(source), carried, port, sampled)
                )
        for ports, causality in ((inputs, _INPUT), (outputs, _OUTPUT)):
            for _, slot, width, _, kind, *_ in ports:
                for k in range(width):
                    variables += [slot + k, _KINDS[kind], causality]
        for number, item in enumerate(self.flat.blocks):
            blocks.append(self._describe_block(number, item))
        described = {
            "name": self.layout.settings.name,
            "step": self.layout.step,
            "start": self.layout.settings.start,
            "solver": self.layout.solver,
            "blocks": tuple(blocks),
            "inputs": tuple(inputs),
            "outputs": tuple(outputs),
            "dependencies": [self._dependencies(source) for _, source in self.flat.outputs],
            "loops": [name_cycle(self.flat, loop.cycle) for loop in self.layout.order.loops],
            "scopes": self._scopes(),
            "guards": [guard.path for guard in self.flat.guards],
            "order": self.layout.order.entries,
            "solver_signals": self._solver_signals(),
        }
        if self.flat.buses:
            described["buses"] = self._name_elements()
        if self.flat.rerouted:
            described["rerouted"] = dict(self.flat.rerouted)
        if self.layout.couplings:
            memory = len(self.layout.tables.parameters)
            memory += self.layout.signal_count + self.layout.state_count
            described["couplings"] = [
                self._describe_coupling(n, item, memory)
                for n, item in enumerate(self.layout.couplings)
            ]
        part = self.layout.partition
        if part is not None:
            described["multirate"] = {
                "substeps": part.substeps,
                "blocks": [self.flat.blocks[n].path for n in sorted(part.fast)],
                "interpolated": [self.flat.blocks[n].path for n in sorted(part.sampled)],
            }
        if self.layout.exchanges:
            memory = len(self.layout.tables.parameters)
            memory += self.layout.signal_count + self.layout.state_count
            described["exchanges"] = [
                {
                    "members": list(item.members),
                    "effort": self._path_of_input(*item.pair.effort),
                    "flow": self._path_of_input(*item.pair.flow),
                    "factor": item.pair.factor,
                    "slot": memory + place,
                }
                for item, place in zip(
                    self.layout.exchanges, self.layout.exchange_memory, strict=True
                )
            ]
        return described, self.variables

    def _solver_signals(self) -> list[list[Any]]:
        """Return the counters of the solver, which follow the memory, as ports."""
        layout = self.layout
        first = len(layout.tables.parameters) + layout.signal_count
        first += layout.state_count + layout.memory_count
        names = list(_SOLVER_SIGNALS)
        if layout.solver in IMPLICIT or layout.settings.control.relative > 0.0:
            names += [
                (name, contract.BL_EVENT_COUNTERS + at, doc) for name, at, doc in _STEP_SIGNALS
            ]
        return [
            [f"solver.{name}", first + at, 1, None, "integer", doc, True] for name, at, doc in names
        ]

    def _describe_coupling(self, n: int, coupling: Component, memory: int) -> dict[str, Any]:
        """Return the settings of a coupling, and which of its values are signals."""
        layout, how = self.layout, coupling.how
        # Those that take the same communication steps.
        same = [c for c in layout.couplings if c.is_adaptive and c.group == coupling.group]
        together = same or [coupling]
        deciding = [c for c in together if c.how.is_adaptive] or together
        paths = [
            "states" if m.node == STATES else self.flat.blocks[m.node].path
            for m in coupling.members
        ]
        slot = memory + layout.coupling_memory[n]
        ports: list[list[Any]] = []

        def show(what: str, at: int, width: int, unit: str | None, doc: str) -> None:
            ports.append([f"coupling.{what}", at, width, unit, "real", doc, True])

        name = "+".join(paths)
        if how.is_iterated:
            for what, doc in (
                ("iterations", "iterations over the members in the last step"),
                ("residual", "relative residual of the last step"),
                ("failures", "steps that did not converge"),
                ("shortened", "steps that converged only after they were divided"),
            ):
                show(f"{name}.{what}", slot + HEAD[what], 1, None, doc)
        if coupling.is_adaptive:
            for what, unit, doc in (
                ("communication_step", "s", "length of the last communication step"),
                ("communication_steps", None, "communication steps taken"),
                ("rejected", None, "communication steps rejected and repeated with a shorter one"),
                ("exceeded", None, "base steps in which the mean error exceeds the tolerance"),
            ):
                show(f"{name}.{what}", slot + HEAD[what], 1, unit, doc)
        signals, at = [], 0
        for number, signal in enumerate(coupling.signals):
            source = self._name_source(signal.source)
            carried = self.ports.outputs[signal.source.block][signal.source.port]
            unit = None if carried.unit is None else str(carried.unit)
            signals.append({
                "source": source, "width": signal.width, "at": at, "unit": unit,
                "readers": self._readers(coupling, number),
            })  # fmt: skip
            if layout.estimate:
                first = slot + HEAD_SIZE + ARRAYS["error"] * coupling.element_count + at
                doc = "estimated error of the last step"
                show(f"{source}.error", first, signal.width, unit, doc)
            at += signal.width
        bonds = []
        for bond, place in zip(coupling.bonds, layout.bond_memory[n], strict=True):
            first = memory + place
            effort, flow = bond.paths
            bonds.append({
                "name": bond.name, "effort": effort, "flow": flow, "slot": first,
                "factor": bond.factor,
            })  # fmt: skip
            if not bond.declared:
                continue
            doc = "difference of the powers on the two sides, in the last step"
            show(f"{bond.name}.power", first + BOND["power"], 1, "W", doc)
            show(
                f"{bond.name}.energy",
                first + BOND["energy"],
                1,
                "J",
                "difference of the energies on the two sides, since the start",
            )
        return {
            "name": name, "members": paths, "method": how.method,
            "extrapolation": how.extrapolation,
            "tolerance": how.tolerance, "limit": how.iterations, "period": coupling.period,
            "coupling_tolerance": how.coupling_tolerance if coupling.is_adaptive else 0.0,
            "divisions": 2 ** min(c.halvings for c in deciding),
            "rolls_back": all(c.rolls_back for c in together),
            "slot": slot, "elements": coupling.element_count, "signals": signals, "bonds": bonds,
            "ports": ports,
        }  # fmt: skip

    def _readers(self, coupling: Component, signal: int) -> list[str]:
        return [
            self._input_path(coupling, (position, k))
            for position, member in enumerate(coupling.members)
            for k, (_, read) in enumerate(member.inputs)
            if read == signal
        ]

    def _input_path(self, coupling: Component, end: tuple[int, int]) -> str:
        member = coupling.members[end[0]]
        if member.node == STATES:
            return "states"
        item = self.flat.blocks[member.node]
        return f"{item.path}.{item.block.inputs[member.inputs[end[1]][0]].name}"

    def _path_of_input(self, number: int, port: int) -> str:
        item = self.flat.blocks[number]
        return f"{item.path}.{item.block.inputs[port].name}"

    def _scopes(self) -> list[dict[str, Any]]:
        """Return the signals that Scope and Record blocks select; only a Scope has labels."""
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
        if len(item.block.outputs) == 1 and not item.shown_as:
            return item.path
        return item.output_path(source.port)

    def _dependencies(self, source: Source | None) -> list[str]:
        """Return the diagram's inputs with direct feedthrough to an output."""
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

    def _name_elements(self) -> dict[str, str]:
        """Return the paths of the signals of buses, by their names in these."""
        found = {}
        for name, source in self.flat.buses:
            if source.block >= 0:
                found[name] = self.flat.blocks[source.block].output_path(source.port)
            elif self.flat.inputs[-1 - source.block].declared:
                found[name] = self.flat.inputs[-1 - source.block].name
        return found

    def _describe_block(self, number: int, item: FlatBlock) -> tuple[Any, ...]:
        block = item.block
        rate = self.rates[number]
        outputs = tuple(
            self._port(item.output_path(n), slot, carried, port, self._is_held(number, port))
            for n, (port, slot, carried) in enumerate(
                zip(
                    block.outputs,
                    self.layout.output_slots[number],
                    self.ports.outputs[number],
                    strict=True,
                )
            )
        )
        inputs = []
        for n, (port, carried) in enumerate(
            zip(block.inputs, self.ports.inputs[number], strict=True)
        ):
            slot = self.layout.tables.ports[2 * (self.layout.input_firsts[number] + n)]
            inputs.append(self._port(f"{item.path}.{port.name}", slot, carried, port))
        parameters = []
        prefix = "" if item.bare else f"{item.path}."
        slot = self.layout.parameter_slots[number]
        for parameter in block.parameters:
            if parameter.hidden:
                slot += parameter.value.size
                continue
            unit = None if parameter.unit is None else str(parameter.unit)
            parameters.append((
                prefix + parameter.name, slot, parameter.value.shape, unit,
                parameter.doc, parameter.tunable,
            ))  # fmt: skip
            causality = _TUNABLE_PARAMETER if parameter.tunable else _FIXED_PARAMETER
            for k in range(parameter.value.size):
                self.variables += [slot + k, 0, causality]
            slot += parameter.value.size
        return (
            item.path,
            type(block).__name__,
            rate.describe(self.layout.step),
            tuple(inputs),
            outputs,
            tuple(parameters),
        )

    def _is_held(self, number: int, port: Port) -> bool:
        """Whether an output of a block is constant between its samples, or between events."""
        block = self.flat.blocks[number].block
        is_constant = block.piecewise_constant or port.name in block.held_outputs
        return self.rates[number].period > 0 or is_constant

    def _port(
        self, path: str, slot: int, carried: Carried, port: Port, sampled: bool = False
    ) -> tuple[Any, ...]:
        unit = None if carried.unit is None else str(carried.unit)
        kind = carried.kind or "real"
        described = (path, slot, carried.width or 1, unit, kind, port.doc, sampled)
        return (*described, carried.names) if carried.names else described


def name_cycle(flat: FlatDiagram, cycle: Sequence[tuple[int, int]]) -> list[str]:
    names = [flat.blocks[b].output_path(o) for b, o in cycle]
    return [*names, names[0]] if names else []


def _outside(item: FlatInput) -> Carried:
    port = item.port
    return Carried(
        port.width if isinstance(port.width, int) else 1,
        port.unit if isinstance(port.unit, Unit) else None,
        port.kind if isinstance(port.kind, str) else "real",
        port.names,
    )
