"""States and transitions of a state machine, as they are described."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

History = Literal["shallow", "deep"]
Actions = Mapping[str, str | float]
"""Formulas by the name of the output or of the data that they are assigned to."""


@dataclass(eq=False, slots=True)
class State:
    """A state of a `StateMachine`, made by the methods `state` and `parallel`.

    Attributes
    ----------
    name, path
        Its name among its siblings, and that from the top, such as ``run.fast``.
    parent
        The state around it; none for the machine itself.
    children
        The states inside.
    """

    machine: Any = field(repr=False)
    name: str
    parent: State | None = field(default=None, repr=False)
    is_parallel: bool = False
    is_initial: bool = False
    history: History | None = None
    entry: Actions = field(default_factory=dict)
    during: Actions = field(default_factory=dict)
    exit: Actions = field(default_factory=dict)
    emit: tuple[str, ...] = ()
    children: list[State] = field(default_factory=list, repr=False)

    @property
    def path(self) -> str:
        """Its name from the top: ``run.fast``; empty for the machine itself."""
        if self.parent is None:
            return ""
        around = self.parent.path
        return f"{around}.{self.name}" if around else self.name

    @property
    def is_region(self) -> bool:
        """Whether it is one of the regions of a parallel state."""
        return self.parent is not None and self.parent.is_parallel

    @property
    def is_exclusive(self) -> bool:
        """Whether exactly one of its children is active while it is."""
        return not self.is_parallel and (bool(self.children) or self.is_region)

    @property
    def initial(self) -> State | None:
        """The child that is entered by default: the one marked, or the first."""
        marked = [child for child in self.children if child.is_initial]
        return marked[0] if marked else self.children[0] if self.children else None

    def state(self, name: str, **options: Any) -> State:
        """Add a state inside this one; see `StateMachine.state`."""
        made: State = self.machine.add_state(self, name, **options)
        return made

    def parallel(self, name: str, **options: Any) -> State:
        """Add a parallel state inside this one; see `StateMachine.parallel`."""
        made: State = self.machine.add_state(self, name, is_parallel=True, **options)
        return made

    def walk(self) -> Iterator[State]:
        """Return this state and all those inside, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def ancestors(self) -> Iterator[State]:
        """Return the states around this one, from the inside out."""
        around = self.parent
        while around is not None:
            yield around
            around = around.parent

    def contains(self, other: State) -> bool:
        """Whether `other` is inside this state."""
        return any(around is self for around in other.ancestors())


@dataclass(eq=False, slots=True)
class Transition:
    """A transition between two states; without a `target` it does not leave its state."""

    source: State
    target: State | None
    when: str | None = None
    after: float | str | None = None
    on: str | None = None
    do: Actions = field(default_factory=dict)
    emit: tuple[str, ...] = ()
    priority: int | None = None
    order: int = 0

    @property
    def name(self) -> str:
        """Both ends, for messages."""
        return f"{self.source.path} → {self.target.path if self.target else self.source.path}"

    @property
    def is_unconditional(self) -> bool:
        """Whether it is always taken."""
        return self.when is None and self.after is None and self.on is None

    @property
    def label(self) -> str:
        """How it is written in a statechart: ``event [guard] / action``."""
        parts = [self.on] if self.on else []
        guards = [f"after {format_action(self.after)} s"] if self.after is not None else []
        guards += [self.when] if self.when is not None else []
        if guards:
            parts.append(f"[{' and '.join(guards)}]")
        actions = [f"{name} = {format_action(value)}" for name, value in self.do.items()]
        actions += [f"emit {name}" for name in self.emit]
        if actions:
            parts.append("/ " + "; ".join(actions))
        return " ".join(parts)

    def scope(self) -> State:
        """Return the exclusive state that contains both ends and whose active child is left."""
        if self.target is None:
            assert self.source.parent is not None
            return self.source.parent
        around = list(self.source.ancestors())
        for state in self.target.ancestors():
            if any(state is other for other in around) and state.is_exclusive:
                return state
        raise AssertionError("the root of a chart contains every state")


def format_action(value: str | float) -> str:
    """Return a formula or a number as it is written in a statechart."""
    return value if isinstance(value, str) else f"{value:.12g}"


def sorted_out(transitions: list[Transition], state: State) -> list[Transition]:
    """Return the transitions of a state in the order in which they are tried."""
    own = [transition for transition in transitions if transition.source is state]
    return sorted(own, key=lambda one: (one.priority is None, one.priority or 0, one.order))
