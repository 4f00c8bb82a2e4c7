"""`StateMachine`: hierarchical states, parallel regions and history, as a native block."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from ... import _contract as contract
from ..._services import find_service
from ...errors import DiagramError, name_list, suggest
from ..core._block import NativeBlock
from ..core._ports import (
    KINDS,
    SAMPLED,
    SWITCHING,
    Kind,
    Numbers,
    Parameter,
    Port,
    Widths,
    parameter,
)
from ..core.formula._formula import CONSTANTS, FUNCTIONS, TIME
from ._chart import Actions, History, State, Transition
from ._checks import find_problems
from ._tables import (
    ELAPSED,
    FLAG,
    Names,
    TableWriter,
    fits_kind,
    shown_regions,
    shown_states,
)

if TYPE_CHECKING:
    from ..core._figure import ShownFigure

Edge = Literal["rising", "falling", "either"]
STATE = "state"
"""Output that shows the active state."""
_MOST_INPUTS = contract.MACHINE_MOST_INPUTS
INACTIVE = "inactive"
"""First value of the output of a parallel region: the state around it is not active."""


class StateMachine(NativeBlock):
    """A state machine: states and transitions, with formulas as guards and actions.

    A thermostat::

        heater = StateMachine(inputs={"T": "degC"}, outputs={"power": "W"})
        off, on = heater.state("off", power=0), heater.state("on", power=2e3)
        heater.transition(off, on, when="T < 19", after=60)
        heater.transition(on, off, when="T > 21")

    It runs at sample hits. At each, from the outermost active state inward, the transitions of a
    state are tried in the order of their priority; the first one that is enabled is taken, and
    outputs show the result at the same sample. The output ``state`` is an enumeration of the
    states. The state machine guide defines the semantics.

    Formulas name inputs, outputs, data, parameters, ``t``, the time in s, ``elapsed``, the seconds
    since the state (of a transition: its source) was entered, and ``in_run_fast``, which is 1 while
    the state ``run.fast`` is active.

    Parameters
    ----------
    inputs
        Names of inputs with their units, or ports; a list of names for inputs without unit.
    outputs
        The same for outputs. They hold what was last assigned to them.
    data
        Variables that are not outputs: initial values by name. ``True`` and ``False`` make a
        boolean, a whole number an integer, any other number a real.
    events
        Names of boolean inputs whose rising edges are events; or a dict with ``"rising"``,
        ``"falling"`` or ``"either"``.
    emits
        Names of boolean outputs that are true at the samples at which the event is emitted.
    local_events
        Names of events that are emitted and received inside the machine, within one sample.
    parameters
        Numbers by name, for formulas. They may be set after the diagram is compiled.
    initial
        Initial values of outputs, by default 0; of an enumeration, its first value.
    feedthrough
        ``False``: outputs show the state before the transitions of the sample, so that the machine
        may be part of a loop.
    continuous
        Whether guards of continuous signals are located between ticks, where continuous states
        depend on the outputs. Otherwise the machine runs at ticks, or with its period.
    """

    kernel = "state_machine"
    piecewise_constant = True
    can_be_sampled = True
    caches = frozenset({"outputs", "output_index", "feedthrough"})

    def __init__(
        self,
        inputs: Sequence[str | Port] | Mapping[str, str | Port | None] = (),
        outputs: Sequence[str | Port] | Mapping[str, str | Port | None] = (),
        *,
        data: Mapping[str, float] | None = None,
        events: str | Sequence[str] | Mapping[str, Edge] = (),
        emits: str | Sequence[str] = (),
        local_events: str | Sequence[str] = (),
        parameters: Mapping[str, Numbers] | None = None,
        initial: Mapping[str, float] | None = None,
        feedthrough: bool = True,
        continuous: bool = False,
    ) -> None:
        edges: dict[str, str] = (
            dict(events) if isinstance(events, Mapping) else dict.fromkeys(_each(events), "rising")
        )
        emits, local_events = _each(emits), _each(local_events)
        signals = [_port(port, "input") for port in _pairs(inputs)]
        shown = [_port(port, "output") for port in _pairs(outputs)]
        constants = [parameter(n, v, doc="of formulas") for n, v in (parameters or {}).items()]
        self._names = Names(
            events=edges,
            inputs=signals,
            pulses=(*emits, *local_events),
            local_events=local_events,
            outputs=shown,
            data={name: _read_data(name, value) for name, value in (data or {}).items()},
            initial=dict(initial or {}),
            parameters=constants,
        )
        _check_names(self._names)
        if continuous and not feedthrough:
            raise DiagramError(
                "a StateMachine with continuous=True has outputs that follow its guards within the "
                "tick: feedthrough=False is for machines that run at samples."
            )
        self._root = State(self, "")
        self._transitions: list[Transition] = []
        self._emits = emits
        self._passes = bool(feedthrough)
        super().__init__(
            inputs=[
                *(Port(name, kind="boolean", doc=f"event: {edges[name]} edge") for name in edges),
                *signals,
            ],
            outputs=self._make_outputs(),
            parameters=constants,
            rate=SWITCHING if continuous else SAMPLED,
            feedthrough=self._passes,
            integers=self._write_tables,
        )

    def state(
        self,
        name: str,
        *,
        initial: bool = False,
        history: History | None = None,
        entry: Actions | None = None,
        during: Actions | None = None,
        exit: Actions | None = None,
        emit: str | Sequence[str] = (),
        **assignments: str | float,
    ) -> State:
        """Add a state at the top; `State.state` adds one inside another.

        Parameters
        ----------
        name
            Letters, digits and ``_``; unique among the states beside it.
        initial
            Whether it is entered first; by default the first one that is added is.
        history
            For a state with states inside: by default the initial one is entered; ``"shallow"``,
            the one that was active last; ``"deep"``, the same at every level below.
        entry, during, exit
            Formulas by the name of the output or data that they are assigned to: when the state is
            entered, at every sample at which it stays active, and when it is left.
        emit
            Events that are emitted when it is entered.
        assignments
            More assignments on entry: ``power=2e3`` is ``entry={"power": 2e3}``.
        """
        return self.add_state(
            self._root,
            name,
            is_parallel=False,
            initial=initial,
            history=history,
            entry=entry,
            during=during,
            exit=exit,
            emit=emit,
            **assignments,
        )

    def parallel(
        self,
        name: str,
        *,
        initial: bool = False,
        entry: Actions | None = None,
        during: Actions | None = None,
        exit: Actions | None = None,
        emit: str | Sequence[str] = (),
        **assignments: str | float,
    ) -> State:
        """Add a state whose regions are all active while it is; options as for `state`."""
        return self.add_state(
            self._root,
            name,
            is_parallel=True,
            initial=initial,
            history=None,
            entry=entry,
            during=during,
            exit=exit,
            emit=emit,
            **assignments,
        )

    def transition(
        self,
        source: State,
        target: State | None,
        *,
        when: str | None = None,
        after: float | str | None = None,
        on: str | None = None,
        do: Actions | None = None,
        emit: str | Sequence[str] = (),
        priority: int | None = None,
    ) -> Transition:
        """Add a transition. It is enabled when all conditions that are given hold.

        Parameters
        ----------
        source, target
            States of this machine; without target the state is not left, only `do` and `emit`
            happen.
        when
            A formula that is true.
        after
            Seconds since the source was entered, or a formula for them.
        on
            An event, of `events` or `local_events`.
        do
            Formulas by the name of the output or data that they are assigned to.
        emit
            Events that are emitted.
        priority
            From 1, the first one that is tried; needed where two transitions of a state may be
            enabled at the same time.
        """
        for end, what in ((source, "source"), (target, "target")):
            if what == "target" and end is None:
                continue
            if not isinstance(end, State) or end.machine is not self or end.parent is None:
                raise DiagramError(
                    f"the {what} of a transition is a state of the same machine, made by state(…), "
                    f"got {end!r}."
                )
        events = [*self._names.events, *self._names.local_events]
        if on is not None and on not in events:
            raise DiagramError(
                f"`{source.path}`: there is no event `{on}`.{suggest(str(on), events)} Events: "
                f"{name_list(events)}. Declare it with events=[…] or local_events=[…]."
            )
        _check_condition(source, when, after, priority)
        made = Transition(
            source,
            target,
            when,
            after,
            on,
            _read_actions(do, "do", source.path),
            _each(emit),
            priority,
            len(self._transitions),
        )
        self._transitions.append(made)
        return made

    def add_state(
        self,
        parent: State,
        name: str,
        *,
        is_parallel: bool = False,
        initial: bool = False,
        history: History | None = None,
        entry: Actions | None = None,
        during: Actions | None = None,
        exit: Actions | None = None,
        emit: str | Sequence[str] = (),
        **assignments: str | float,
    ) -> State:
        """Add a state inside `parent`; called by `State.state` and `State.parallel`."""
        if not isinstance(name, str) or not name.isidentifier():
            raise DiagramError(f"a state's name is of letters, digits and `_`, got {name!r}.")
        if any(other.name == name for other in parent.children):
            where = f"inside `{parent.path}`" if parent.path else "at the top"
            raise DiagramError(f"there are two states called `{name}` {where}.")
        if history not in (None, "shallow", "deep"):
            raise DiagramError(f"history is 'shallow' or 'deep', got {history!r}.")
        if parent.machine is not self:
            raise DiagramError(
                f"`{name}` would become a state of two machines: a copy.copy of a StateMachine "
                f"shares its states. Use copy.deepcopy."
            )
        given = _read_actions(entry, "entry", name)
        twice = [key for key in assignments if key in given]
        if twice:
            raise DiagramError(f"the state `{name}` assigns `{twice[0]}` twice on entry.")
        made = State(
            self,
            name,
            parent,
            is_parallel,
            initial,
            history,
            {**given, **_read_actions(assignments, "entry", name)},
            _read_actions(during, "during", name),
            _read_actions(exit, "exit", name),
            _each(emit),
        )
        parent.children.append(made)
        self.outputs = tuple(self._make_outputs())
        self.output_index = {port.name: n for n, port in enumerate(self.outputs)}
        every = tuple(range(len(self.inputs))) if self._passes else ()
        self.feedthrough = tuple(every for _ in self.outputs)
        return made

    @property
    def chart(self) -> State:
        """The machine as the state around all others."""
        return self._root

    @property
    def transitions(self) -> tuple[Transition, ...]:
        """All transitions, in the order in which they were added."""
        return tuple(self._transitions)

    def find_problems(self) -> list[str]:
        """Return all problems of the machine: of its structure, then of its formulas."""
        found = find_problems(self._root, self._transitions)
        if len(self.inputs) > _MOST_INPUTS:
            found.append(
                f"a StateMachine has at most {_MOST_INPUTS} inputs, this has {len(self.inputs)}"
            )
        if len(self._names.events) + len(self._names.pulses) > _MOST_INPUTS:
            found.append(f"a StateMachine has at most {_MOST_INPUTS} events")
        writer = self._writer()
        if self._root.children and not found:
            writer.write()
        return [*(f"{problem}." for problem in found), *writer.problems]

    def check(self) -> None:
        """Raise an error that lists all problems of the machine."""
        problems = self.find_problems()
        if problems:
            raise DiagramError(problems)

    def draw(
        self,
        path: str | Path | None = None,
        *,
        active: str | State | Iterable[str | State] = (),
        title: str = "",
    ) -> ShownFigure:
        """Draw the machine as a statechart.

        States inside others are framed, regions of parallel states separated by dashed lines. A dot
        marks the initial state; H and H* a state with shallow and deep history. Transitions are
        labeled ``event [guard] / action``, with their priority at the start. A machine with
        problems is drawn too.

        Parameters
        ----------
        path
            File of the picture: ``.svg``, ``.pdf`` or ``.png``. Equal machines have equal files.
        active
            States to highlight, with those around them, by path: ``"run.fast"``, or all that
            ``result.timeline("machine").at(12.0)`` returns.
        title
            Written above.

        Raises
        ------
        DiagramError
            If `path` has another extension, or a state in `active` does not exist.
        """
        figure: ShownFigure = find_service("draw_statechart")(
            self, path, active=active, title=title
        )
        return figure

    def _make_outputs(self) -> list[Port]:
        ports = [
            *(Port(name, kind="boolean", doc="emitted event") for name in self._emits),
            *self._names.outputs,
        ]
        for region in shown_regions(self._root):
            names = [state.path[len(region.path) :].lstrip(".") for state in shown_states(region)]
            if region is not self._root:
                names.insert(0, INACTIVE)
            path = f"{region.path}.{STATE}" if region.path else STATE
            where = f"region `{region.path}`" if region.path else "machine"
            ports.append(
                Port(path, kind="enumeration", names=tuple(names), doc=f"state of the {where}")
            )
        return ports

    def _write_tables(self, _: Widths) -> list[int]:
        return self._writer().write()

    def _writer(self) -> TableWriter:
        return TableWriter(self._root, self._transitions, self._names, self._passes)


def _each(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _read_actions(given: Actions | None, what: str, where: str) -> dict[str, str | float]:
    """Return formulas and numbers by name; anything else is refused."""
    found: dict[str, str | float] = {}
    for name, value in ({} if given is None else given).items():
        if isinstance(value, str):
            found[name] = value
        elif isinstance(value, numbers.Real | np.bool_) and math.isfinite(value):
            found[name] = value.item() if isinstance(value, np.generic) else value
        else:
            raise DiagramError(
                f"{what} of `{where}`: `{name}` is assigned a formula or a number, got {value!r}."
            )
    return found


def _check_condition(source: State, when: object, after: object, priority: object) -> None:
    where = f"a transition of `{source.path}`"
    if when is not None and not isinstance(when, str):
        raise DiagramError(f"{where}: `when` is a formula such as 'T > 21', got {when!r}.")
    if isinstance(after, numbers.Real) and not isinstance(after, bool):
        if not 0 <= float(after) < math.inf:
            raise DiagramError(f"{where}: `after` is a time in s, got {after!r}.")
    elif after is not None and not isinstance(after, str):
        raise DiagramError(f"{where}: `after` is a time in s or a formula, got {after!r}.")
    whole = isinstance(priority, int) and not isinstance(priority, bool)
    if priority is not None and not (whole and priority >= 1):  # type: ignore[operator]
        raise DiagramError(f"{where}: a priority is a whole number from 1, got {priority!r}.")


def _pairs(
    given: Sequence[str | Port] | Mapping[str, str | Port | None],
) -> list[tuple[str, str | Port | None]]:
    if isinstance(given, Mapping):
        return list(given.items())
    if isinstance(given, str):
        given = [given]
    return [(one.name, one) if isinstance(one, Port) else (one, None) for one in given]


def _port(given: tuple[str, str | Port | None], side: str) -> Port:
    name, what = given
    if isinstance(what, Port):
        port = what
        if port.name != name:
            raise DiagramError(f"the {side} `{name}` is a port called `{port.name}`.")
    else:
        port = Port(name, unit=what)
    if not isinstance(port.width, int) or port.width < 1 or (side == "output" and port.width > 1):
        raise DiagramError(
            f"the {side} `{name}` of a StateMachine needs a fixed width"
            + (" of 1." if side == "output" else ".")
        )
    if port.kind not in KINDS:
        raise DiagramError(f"the {side} `{name}` needs a kind: one of {', '.join(KINDS)}.")
    return port


def _read_data(name: str, value: float) -> tuple[Kind, float]:
    kind: Kind = "real"
    if isinstance(value, bool | np.bool_):
        kind = "boolean"
    elif isinstance(value, numbers.Integral):
        kind = "integer"
    made: Parameter = parameter(name, value)
    if made.value.ndim:
        raise DiagramError(f"the data `{name}` of a StateMachine is one number, got {value!r}.")
    return kind, float(made.value)


def _check_names(names: Names) -> None:
    """Every name can stand in a formula and has one meaning."""
    everything = [
        *names.events,
        *(port.name for port in names.inputs),
        *names.pulses,
        *(port.name for port in names.outputs),
        *names.data,
        *(item.name for item in names.parameters),
    ]
    for name in everything:
        reserved = name in FUNCTIONS or name in CONSTANTS or name in (TIME, ELAPSED, STATE)
        usable = isinstance(name, str) and name.isidentifier() and not name.startswith(FLAG)
        if reserved or not usable:
            raise DiagramError(
                f"{name!r} cannot be a name in a StateMachine: use letters, digits and `_`; "
                f"functions, constants, `{TIME}`, `{ELAPSED}`, `{STATE}` and names that begin with "
                f"`{FLAG}` are reserved."
            )
        if everything.count(name) > 1:
            raise DiagramError(f"`{name}` has two meanings in the StateMachine.")
    for name, edge in names.events.items():
        if edge not in ("rising", "falling", "either"):
            raise DiagramError(
                f"the edge of the event `{name}` is 'rising', 'falling' or 'either', got {edge!r}."
            )
    outputs = {port.name: port for port in names.outputs}
    for name, value in names.initial.items():
        if name not in outputs:
            raise DiagramError(
                f"initial: `{name}` is not an output.{suggest(name, outputs)} "
                f"Outputs: {name_list(list(outputs))}."
            )
        if not fits_kind(value, outputs[name]):
            raise DiagramError(
                f"initial: `{name}` is {outputs[name].kind}: {value!r} is no value of it."
            )
