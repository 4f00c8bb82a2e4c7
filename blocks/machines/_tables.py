"""The tables of a state machine: what its kernel reads."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ... import _contract as contract
from ...errors import DiagramError, name_list, suggest
from ..core._ports import Parameter, Port
from ..core.formula._formula import (
    TIME,
    Formula,
    Number,
    as_kind,
    fetch_input,
    fetch_parameter,
    fetch_time,
    read_formula,
    write_program,
)
from ._chart import Actions, State, Transition, sorted_out

ELAPSED = "elapsed"
"""Seconds since the state was entered, in its guards and actions."""
FLAG = "in_"
"""Begins the name of a flag: `in_run_fast` is 1 while the state `run.fast` is active."""
_SLACK = 1 - 1e-12  # of `after`: a sample time times a whole number is rounded
_EDGES = {
    "rising": contract.MACHINE_RISING,
    "falling": contract.MACHINE_FALLING,
    "either": contract.MACHINE_EITHER,
}
_HISTORIES = {
    None: contract.MACHINE_NO_HISTORY,
    "shallow": contract.MACHINE_SHALLOW,
    "deep": contract.MACHINE_DEEP,
}


@dataclass(frozen=True, slots=True)
class Names:
    """What formulas of a machine may name, and what its actions may write."""

    events: Mapping[str, str]
    """Event inputs, and their edges."""
    inputs: Sequence[Port]
    pulses: Sequence[str]
    """Events that are emitted: outputs, then local ones."""
    local_events: Sequence[str]
    outputs: Sequence[Port]
    data: Mapping[str, tuple[str, float]]
    """Kind and initial value by name."""
    initial: Mapping[str, float]
    """Initial values of outputs."""
    parameters: Sequence[Parameter]


def flag_name(state: State) -> str:
    """Return the name by which formulas read whether a state is active."""
    return FLAG + state.path.replace(".", "_")


class TableWriter:
    """Writes the tables of one machine; formulas are read once and their errors name the place."""

    def __init__(
        self, root: State, transitions: list[Transition], names: Names, feedthrough: bool = True
    ) -> None:
        self.root, self.names, self.feedthrough = root, names, feedthrough
        self.states = list(root.walk())
        self.numbers = {id(state): n for n, state in enumerate(self.states)}
        self.transitions = [one for state in self.states for one in sorted_out(transitions, state)]
        self.words: list[int] = []
        self.flags: dict[str, int] = {}
        self.uses_elapsed = False
        self.problems: list[str] = []
        kinds = {name: "boolean" for name in names.pulses}
        kinds |= {port.name: str(port.kind) for port in names.outputs}
        kinds |= {name: kind for name, (kind, _) in names.data.items()}
        self.kinds = kinds
        self.enumerations = {port.name: port.names for port in names.outputs}
        self.variables = {name: n for n, name in enumerate(kinds)}
        self.possible_flags: dict[str, list[State]] = {}
        for state in self.states[1:]:
            self.possible_flags.setdefault(flag_name(state), []).append(state)

    def write(self) -> list[int]:
        """Return the integers of the kernel; nothing if there are `problems`."""
        children: list[int] = []
        outs = [self._collect(self._write_transition, one) for one in self.transitions]
        records = [self._collect(self._write_state, state, children) for state in self.states]
        if self.problems:
            return []
        for state, record in zip(self.states, records, strict=True):
            flag = self.flags.get(flag_name(state), -1) if state is not self.root else -1
            record[contract.MACHINE_STATE_FLAG] = flag
        regions = shown_regions(self.root)
        for number, region in enumerate(regions):
            first = 1 if region is self.root else 2
            for place, state in enumerate(shown_states(region)):
                record = records[self.numbers[id(state)]]
                record[contract.MACHINE_STATE_REGION] = number
                record[contract.MACHINE_STATE_NUMBER] = first + place
        names = self.names
        initial = [0.0] * len(names.pulses)
        initial += [
            float(names.initial.get(port.name, port.kind == "enumeration"))
            for port in names.outputs
        ]
        initial += [value for _, value in names.data.values()]
        initial += [0.0] * len(self.flags)
        head = [0] * contract.MACHINE_HEAD
        head[contract.MACHINE_STATES] = len(self.states)
        head[contract.MACHINE_TRANSITIONS] = len(outs)
        head[contract.MACHINE_CHILDREN] = len(children)
        head[contract.MACHINE_WORDS] = len(self.words)
        head[contract.MACHINE_VARIABLES] = len(initial)
        head[contract.MACHINE_EVENTS] = len(names.events)
        head[contract.MACHINE_PULSES] = len(names.pulses)
        head[contract.MACHINE_LOCAL_FIRST] = len(names.pulses) - len(names.local_events)
        head[contract.MACHINE_SHOWN] = head[contract.MACHINE_LOCAL_FIRST] + len(names.outputs)
        head[contract.MACHINE_REGIONS] = len(regions)
        head[contract.MACHINE_FEEDTHROUGH] = int(self.feedthrough)
        head[contract.MACHINE_USES_ELAPSED] = int(self.uses_elapsed)
        flat = [word for record in [*records, *outs] for word in record]
        edges = [_EDGES[edge] for edge in names.events.values()]
        bits = struct.unpack(f"<{2 * len(initial)}i", struct.pack(f"<{len(initial)}d", *initial))
        return [*head, *flat, *children, *self.words, *edges, *bits]

    def _collect(self, write: Callable[..., list[int]], *arguments: object) -> list[int]:
        """Return what `write` does; if it raises, note the reason and return nothing."""
        try:
            return write(*arguments)
        except DiagramError as error:
            self.problems.append(str(error))
            return []

    def _write_state(self, state: State, children: list[int]) -> list[int]:
        record = [-1] * contract.MACHINE_STATE_FIELDS
        where = f"`{state.path}`"
        own = [n for n, one in enumerate(self.transitions) if one.source is state]
        kind = contract.MACHINE_LEAF
        if state.is_parallel:
            kind = contract.MACHINE_PARALLEL
        elif state.children:
            kind = contract.MACHINE_EXCLUSIVE
        record[contract.MACHINE_STATE_PARENT] = (
            self.numbers[id(state.parent)] if state.parent is not None else -1
        )
        record[contract.MACHINE_STATE_TYPE] = kind
        if kind == contract.MACHINE_EXCLUSIVE:
            record[contract.MACHINE_STATE_INITIAL] = self.numbers[id(state.initial)]
        record[contract.MACHINE_STATE_HISTORY] = _HISTORIES[state.history]
        record[contract.MACHINE_STATE_CHILD] = len(children)
        record[contract.MACHINE_STATE_CHILD_COUNT] = len(state.children)
        children += [self.numbers[id(child)] for child in state.children]
        record[contract.MACHINE_STATE_OUT] = own[0] if own else 0
        record[contract.MACHINE_STATE_OUT_COUNT] = len(own)
        for place, actions, emit, what in (
            (contract.MACHINE_STATE_ENTRY, state.entry, state.emit, "entry"),
            (contract.MACHINE_STATE_DURING, state.during, (), "during"),
            (contract.MACHINE_STATE_EXIT, state.exit, (), "exit"),
        ):
            record[place : place + 2] = self._actions(actions, emit, f"{what} of {where}")
        return record

    def _write_transition(self, one: Transition) -> list[int]:
        where = f"`{one.name}`"
        record = [-1] * contract.MACHINE_OUT_FIELDS
        record[contract.MACHINE_OUT_SOURCE] = self.numbers[id(one.source)]
        if one.target is not None:
            record[contract.MACHINE_OUT_TARGET] = self.numbers[id(one.target)]
        record[contract.MACHINE_OUT_SCOPE] = self.numbers[id(one.scope())]
        record[contract.MACHINE_OUT_EVENT] = self._event(one)
        guard = self._guard(one, where)
        record[contract.MACHINE_OUT_GUARD : contract.MACHINE_OUT_GUARD + 2] = guard
        action = self._actions(one.do, one.emit, f"action of {where}")
        record[contract.MACHINE_OUT_ACTION : contract.MACHINE_OUT_ACTION + 2] = action
        return record

    def _event(self, one: Transition) -> int:
        if one.on is None:
            return -1
        events = [*self.names.events, *self.names.local_events]
        return events.index(one.on)

    def _guard(self, one: Transition, where: str) -> list[int]:
        parts = []
        if one.after is not None:
            parts.append(f"{ELAPSED} >= ({one.after})*{_SLACK!r}")
        if one.when is not None:
            parts.append(one.when)
        if not parts:
            return [len(self.words), 0]
        for text in parts:  # apart first, so that an error shows what the user wrote
            self._read(text, f"guard of {where}")
        text = parts[0] if len(parts) == 1 else " and ".join(f"({part})" for part in parts)
        return self._program([(self._read(text, f"guard of {where}"), (1, 0))])

    def _actions(self, actions: Actions, emit: Sequence[str], where: str) -> list[int]:
        written = []
        for name, value in actions.items():
            if name not in self.variables or name in self.names.pulses:
                valid = [n for n in self.variables if n not in self.names.pulses]
                raise DiagramError(
                    f"{where}: `{name}` is not an output or data.{suggest(name, valid)} "
                    f"Outputs and data: {name_list(valid)}."
                )
            names = self.enumerations.get(name, ())
            if isinstance(value, str) and value in names:
                value = float(1 + names.index(value))
            formula = self._read(value if isinstance(value, str) else repr(float(value)), where)
            if (
                names
                and isinstance(formula.term, Number)
                and formula.term.value not in range(1, len(names) + 1)
            ):
                raise DiagramError(
                    f"{where}: `{name}` has the values {name_list(list(names))}, numbered from 1, "
                    f"got {value}."
                )
            written.append((as_kind(formula, self.kinds[name]), (0, self.variables[name])))
        for name in emit:
            if name not in self.names.pulses:
                raise DiagramError(
                    f"{where}: `{name}` is not an event that the machine emits."
                    f"{suggest(name, self.names.pulses)} Events: {name_list(self.names.pulses)}. "
                    f"Declare it with emits=[…] or local_events=[…]."
                )
            written.append((read_formula("1"), (0, self.variables[name])))
        return self._program(written)

    def _program(self, parts: list[tuple[Formula, tuple[int, int]]]) -> list[int]:
        first = len(self.words)
        for formula, destination in parts:
            self.words += write_program(formula, self._sources(formula), destination)
        return [first, len(self.words) - first]

    def _read(self, text: str, where: str) -> Formula:
        widths = self._widths()
        try:
            formula = read_formula(text, widths)
            for variable in formula.variables():
                self._check_variable(formula, variable.name, variable.index, variable.column)
        except DiagramError as error:
            raise DiagramError(f"{where}: {error}") from None
        return formula

    def _widths(self) -> dict[str, int]:
        names = self.names
        widths = dict.fromkeys((*names.events, *self.variables, *self.possible_flags), 1)
        widths |= {port.name: int(port.width) for port in names.inputs}  # type: ignore[arg-type]
        widths |= {item.name: item.value.size for item in names.parameters}
        return widths | {TIME: 1, ELAPSED: 1}

    def _check_variable(self, formula: Formula, name: str, index: int | None, column: int) -> None:
        widths = self._widths()
        if name not in widths:
            known = [n for n in widths if n not in self.possible_flags]
            raise formula.fail(
                column,
                f"`{name}` is neither an input, output, data nor parameter of the machine."
                f"{suggest(name, widths)} Names: {name_list(known)}",
            )
        states = self.possible_flags.get(name, [])
        if len(states) > 1:
            paths = " and ".join(f"`{state.path}`" for state in states)
            raise formula.fail(column, f"`{name}` is ambiguous: {paths}. Rename one of them")
        if index is None and widths[name] > 1:
            raise formula.fail(column, f"`{name}` has {widths[name]} elements: say which")
        if index is not None and index >= widths[name]:
            raise formula.fail(column, f"`{name}` has {widths[name]} elements, numbered from 0")

    def _sources(self, formula: Formula) -> dict[str, Callable[[int], tuple[int, ...]]]:
        """Return how the names in a formula are fetched; a flag that is read gets a variable."""
        names = self.names
        ports = [*names.events, *(port.name for port in names.inputs)]
        found = {name: fetch_input(n) for n, name in enumerate(ports)}
        variables = len(ports)
        for variable in formula.variables():
            self.uses_elapsed = self.uses_elapsed or variable.name == ELAPSED
            if variable.name in self.possible_flags and variable.name not in self.flags:
                self.flags[variable.name] = len(self.variables) + len(self.flags)
        for name, place in (*self.variables.items(), *self.flags.items()):
            found[name] = _fetch_element(variables, place)
        first = 0
        for item in names.parameters:
            found[item.name] = fetch_parameter(first)
            first += item.value.size
        found[TIME] = fetch_time
        found[ELAPSED] = _fetch_element(variables + 1, 0)
        return found


def _fetch_element(port: int, element: int) -> Callable[[int], tuple[int, ...]]:
    fetch = fetch_input(port)
    return lambda _: fetch(element)


def shown_regions(root: State) -> list[State]:
    """Return the states whose active child is an output: the machine and the parallel regions."""
    return [root, *(state for state in root.walk() if state.is_region)]


def shown_states(region: State) -> list[State]:
    """Return the states that the output of a region may show: what has no single active child."""
    found = []
    for child in region.children:
        found += shown_states(child) if child.children and not child.is_parallel else [child]
    return found


def fits_kind(value: float, port: Port) -> bool:
    """Whether an initial value is one that an output of that kind can have."""
    if not math.isfinite(value):
        return False
    if port.kind == "boolean":
        return value in (0, 1)
    if port.kind == "enumeration":
        return value in range(1, len(port.names) + 1)
    return port.kind != "integer" or value == round(value)
