"""Static checks of a state machine: all problems are reported together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise

from ... import _contract as contract
from ..core.formula._formula import Apply, Formula, Number, Term, Variable, read_formula
from ._chart import State, Transition, sorted_out

_OPPOSITE = {"less": "greater", "less_equal": "greater_equal"}
_OPPOSITE |= {other: one for one, other in _OPPOSITE.items()} | {"equal": "equal"}
_OPERATIONS = frozenset(_OPPOSITE)
Bounds = dict[str, tuple[float, bool, float, bool]]
"""Of each name: lower bound, whether it is excluded, upper bound, whether it is excluded."""


def find_problems(root: State, transitions: list[Transition]) -> list[str]:
    """Return what is wrong with the structure of a machine."""
    problems = [*_check_initial(root), *_check_ends(transitions)]
    if problems:
        return problems
    reached = _find_reached(root, transitions)
    problems += [
        f"the state `{state.path}` is unreachable: no transition leads to it from the initial state"
        for state in root.walk()
        if state is not root
        and id(state) not in reached
        and (state.parent is root or id(state.parent) in reached)
    ]
    for state in root.walk():
        problems += _check_order(sorted_out(transitions, state))
    return problems + _check_writers(root, transitions)


def _check_initial(root: State) -> list[str]:
    problems = []
    if not root.children:
        problems.append("the machine has no states: add some with state(…)")
    for state in root.walk():
        marked = [child.name for child in state.children if child.is_initial]
        if len(marked) > 1:
            where = f"`{state.path}`" if state.path else "the machine"
            problems.append(f"{where} has two initial states: {', '.join(marked)}")
        if state.is_parallel and len(state.children) < 2:
            problems.append(
                f"the parallel state `{state.path}` needs at least two regions, has "
                f"{len(state.children)}: add them with its method state(…)"
            )
        if state.is_parallel and marked:
            problems.append(
                f"`{state.path}` is parallel: all of its regions are active, none is initial"
            )
        if state.is_region and not state.children:
            problems.append(
                f"the region `{state.path}` has no initial state: add states to it with its "
                f"method state(…)"
            )
        depth = sum(1 for _ in state.ancestors())
        if depth == contract.MACHINE_DEEPEST + 1:
            problems.append(
                f"`{state.path}` is nested too deep: at most {contract.MACHINE_DEEPEST} levels"
            )
        if state.history and not state.children:
            problems.append(f"`{state.path}` has a history, but no states inside")
    return problems


def _check_ends(transitions: list[Transition]) -> list[str]:
    problems = []
    for one in transitions:
        for end in (one.source, one.target):
            if end is not None and end.is_region:
                problems.append(
                    f"`{one.name}`: `{end.path}` is a region of a parallel state and cannot be an "
                    f"end of a transition. Use the parallel state, or a state of the region"
                )
        if one.target is None:
            continue
        around = [state for state in one.source.ancestors() if state.is_parallel]
        for parallel in around:
            if parallel.contains(one.target) and _region(parallel, one.source) is not _region(
                parallel, one.target
            ):
                problems.append(
                    f"`{one.name}` leads from one region of `{parallel.path}` to another. Regions "
                    f"are active together: emit a local event instead"
                )
    return problems


def _region(parallel: State, inside: State) -> State:
    """Return the region of a parallel state that contains a state."""
    return next(state for state in (inside, *inside.ancestors()) if state.parent is parallel)


def _find_reached(root: State, transitions: list[Transition]) -> set[int]:
    """Return the states that can become active, by identity."""
    reached: set[int] = set()

    def enter(state: State) -> None:
        """Mark a state that is the target of a transition, and what is entered with it."""
        for inside, around in pairwise((state, *state.ancestors())):
            if around.is_parallel:
                for region in around.children:
                    if region is not inside:
                        enter_default(region)
            if around is not root:
                reached.add(id(around))
        enter_default(state)

    def enter_default(state: State) -> None:
        reached.add(id(state))
        inside = state.children if state.is_parallel else [state.initial] if state.initial else []
        for child in inside:
            if id(child) not in reached:
                enter_default(child)

    first = root.initial
    assert first is not None
    enter(first)
    grew = True
    while grew:
        grew = False
        for one in transitions:
            if one.target is None or id(one.source) not in reached:
                continue
            before = len(reached)
            enter(one.target)
            grew = grew or len(reached) > before
    return reached


def _check_order(own: list[Transition]) -> list[str]:
    problems = []
    for n, one in enumerate(own):
        for later in own[n + 1 :]:
            if one.is_unconditional or _always_first(one, later):
                problems.append(
                    f"`{later.name}` is never taken: `{one.name}` is tried before it and is "
                    f"enabled whenever it is"
                )
            elif _conflicts(one, later):
                problems.append(
                    f"`{one.name}` and `{later.name}` can be enabled at the same time: give both a "
                    f"priority, priority=1 for the one that is to win"
                )
    return problems


def _always_first(one: Transition, later: Transition) -> bool:
    """Whether `one` is enabled whenever `later` is, as far as that can be read from their texts."""
    if one.on is not None and one.on != later.on:
        return False
    if one.after is not None and not (
        isinstance(one.after, int | float)
        and isinstance(later.after, int | float)
        and one.after <= later.after
    ):
        return False
    return one.when is None or (later.when is not None and _same(one.when, later.when))


def _same(one: str, other: str) -> bool:
    return " ".join(one.split()) == " ".join(other.split())


def _conflicts(one: Transition, other: Transition) -> bool:
    if one.on != other.on:
        return False  # of two events at one time, the transition defined first is taken
    if one.priority is not None and other.priority is not None:
        return one.priority == other.priority
    if one.when is None or other.when is None:
        return one.when is other.when
    return not _are_exclusive(read_formula(one.when), read_formula(other.when))


def _are_exclusive(one: Formula, other: Formula) -> bool:
    """Whether two guards cannot both be true: their comparisons with numbers exclude each other."""
    first, second = _bounds(one.term), _bounds(other.term)
    for name, (lower, open_lower, upper, open_upper) in first.items():
        if name not in second:
            continue
        low, open_low, high, open_high = second[name]
        if upper < low or high < lower:
            return True
        if (upper == low and (open_upper or open_low)) or (
            high == lower and (open_high or open_lower)
        ):
            return True
    return False


def _bounds(term: Term) -> Bounds:
    """Return bounds that hold for names where a guard is true; a bare name counts as a boolean."""
    if isinstance(term, Variable):
        return {_name(term): (1.0, False, 1.0, False)}
    if not isinstance(term, Apply):
        return {}
    if term.operation == "not" and isinstance(term.arguments[0], Variable):
        return {_name(term.arguments[0]): (0.0, False, 0.0, False)}
    if term.operation == "and":
        found = _bounds(term.arguments[0])
        for name, bounds in _bounds(term.arguments[1]).items():
            found[name] = _intersect(found[name], bounds) if name in found else bounds
        return found
    if term.operation not in _OPERATIONS:
        return {}
    left, right = term.arguments
    operation = term.operation
    if isinstance(left, Number):
        left, right, operation = right, left, _OPPOSITE[operation]
    if not (isinstance(left, Variable) and isinstance(right, Number)):
        return {}
    value = right.value
    match operation:
        case "less" | "less_equal":
            bounds = (-math.inf, False, value, operation == "less")
        case "greater" | "greater_equal":
            bounds = (value, operation == "greater", math.inf, False)
        case _:
            bounds = (value, False, value, False)
    return {_name(left): bounds}


def _name(variable: Variable) -> str:
    return variable.name if variable.index is None else f"{variable.name}[{variable.index}]"


def _intersect(
    one: tuple[float, bool, float, bool], other: tuple[float, bool, float, bool]
) -> tuple[float, bool, float, bool]:
    low = max((one[0], one[1]), (other[0], other[1]))
    high = min((one[2], not one[3]), (other[2], not other[3]))
    return low[0], low[1], high[0], not high[1]


def _check_writers(root: State, transitions: list[Transition]) -> list[str]:
    """No name is written in two regions of one parallel state."""
    writers: dict[str, list[State]] = {}
    for state in root.walk():
        for name in _written((state.entry, state.during, state.exit), state.emit):
            writers.setdefault(name, []).append(state)
    for one in transitions:
        for name in _written((one.do,), one.emit):
            writers.setdefault(name, []).append(one.source)
    problems = []
    for name, states in writers.items():
        found = _two_regions(states)
        if found:
            problems.append(
                f"`{name}` is written in two regions that are active together: "
                f"`{found[0].path}` and `{found[1].path}`"
            )
    return problems


def _written(actions: Iterable[Mapping[str, object]], emit: Iterable[str]) -> set[str]:
    return {name for group in actions for name in group} | set(emit)


def _two_regions(states: list[State]) -> tuple[State, State] | None:
    for n, one in enumerate(states):
        for other in states[n + 1 :]:
            for parallel in (state for state in one.ancestors() if state.is_parallel):
                if not parallel.contains(other):
                    continue
                first, second = _region(parallel, one), _region(parallel, other)
                if first is not second:
                    return first, second
    return None
