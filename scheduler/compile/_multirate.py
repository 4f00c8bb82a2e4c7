"""Multirate integration: which blocks take substeps, and what their derivatives depend on.

The states of the fast part take several substeps within a step of all others; the method is that of
``scheduler/engine/solvers/multirate.c``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import name_list
from ._flatten import FlatDiagram
from ._order import Loop, find_sources_of
from ._rates import CONTINUOUS, Ticks
from .diagram._solver_options import Settings

_MOST_DRIVEN = 8
"""Inputs of a slow block that are treated as fast: each costs an evaluation of the block a step."""
STAGES = {"euler": 1, "heun": 2, "rk3": 3, "rk4": 5}
"""Solvers that take substeps, and the stages of their multirate method."""


@dataclass(frozen=True, slots=True)
class Partition:
    """The fast part of a diagram.

    Attributes
    ----------
    substeps
        Of the fast part in a tick: a whole number in each stage of the slow part.
    fast
        Blocks whose states take them.
    calls
        Blocks whose outputs lead to the derivatives of these.
    slow_calls
        Blocks whose outputs lead to the derivatives of all others.
    sampled
        Slow blocks whose outputs the fast part reads interpolated.
    driven
        Inputs of slow blocks, as (block, port), that depend on fast states and are known in
        substeps.
    moved
        Blocks whose outputs depend on fast states, by what they are called for.
    """

    substeps: int
    fast: frozenset[int]
    calls: frozenset[int]
    slow_calls: frozenset[int]
    sampled: frozenset[int]
    driven: tuple[tuple[int, int], ...]
    moved: frozenset[int]


def find_multirate_problems(flat: FlatDiagram, settings: Settings) -> list[str]:
    """Return why the substeps that a diagram requests cannot be taken."""
    if not _requested(flat) or settings.control.relative > 0.0 or settings.solver in STAGES:
        return []
    named = name_list(sorted(flat.blocks[n].path for n in _requested(flat)), limit=3)
    return [
        f"the solver `{settings.solver}` with fixed steps takes no substeps, which d.integrate "
        f"requests for {named}. Use one of {name_list(STAGES)}, or error control: tolerance=…."
    ]


def find_partition(
    flat: FlatDiagram,
    rates: Sequence[Ticks],
    loops: Sequence[Loop],
    settings: Settings,
    has_states: Callable[[int], bool],
) -> Partition | None:
    """Return the fast part; None if there is none, or if the solver chooses its steps."""
    stateful = {n for n in range(len(flat.blocks)) if has_states(n) and rates[n] == CONTINUOUS}
    fast = _requested(flat) & stateful
    if not fast or settings.control.relative > 0.0:
        return None
    stages = STAGES[settings.solver]
    wanted = max(item.substeps for item in flat.substeps if fast & set(item.blocks))
    slow, moved = stateful - fast, _find_moved(flat, rates, loops, fast)
    calls, sampled = _find_sources(flat, rates, loops, fast, slow, [])
    driven = []
    for number in sorted(slow):
        ports = _find_driven(flat, rates, loops, fast, slow, moved, calls, number)
        if len(ports) <= _MOST_DRIVEN:
            driven += [(number, port) for port in ports]
    calls, sampled = _find_sources(flat, rates, loops, fast, slow, driven)
    return Partition(
        -(-wanted // stages) * stages,
        frozenset(fast),
        frozenset(calls),
        frozenset(find_sources_of(flat, rates, set(), slow, loops)),
        frozenset(sampled),
        tuple(driven),
        frozenset(moved),
    )


def _requested(flat: FlatDiagram) -> set[int]:
    return {number for item in flat.substeps for number in item.blocks}


def _find_sources(
    flat: FlatDiagram,
    rates: Sequence[Ticks],
    loops: Sequence[Loop],
    fast: set[int],
    slow: set[int],
    driven: Sequence[tuple[int, int]],
) -> tuple[set[int], set[int]]:
    """Return the blocks to call for the inputs of the fast ones, and for driven inputs of slow
    ones, and the slow ones to sample.

    A slow block is sampled if all that is read of it depends on its states alone. It is then
    smooth where the states are, unlike a source, which may be as fast as it likes.
    """
    in_loop = {number: loop for loop in loops for number in loop.body}
    needed: set[int] = set()
    sampled: set[int] = set()
    waiting: list[int] = []

    def need(number: int) -> None:
        if number not in needed:
            needed.add(number)
            waiting.append(number)

    def read(number: int, inputs: Sequence[int]) -> None:
        for n in inputs:
            source = flat.blocks[number].sources[n]
            if source is None or source.block < 0 or rates[source.block] != CONTINUOUS:
                continue
            feedthrough = flat.blocks[source.block].block.feedthrough[source.port]
            if source.block in slow and source.block not in in_loop and not feedthrough:
                sampled.add(source.block)
            else:
                need(source.block)

    for number in sorted(fast):
        read(number, range(len(flat.blocks[number].sources)))
    for number, port in driven:
        read(number, [port])
    while waiting:
        number = waiting.pop()
        block = flat.blocks[number].block
        read(number, sorted({n for inputs in block.feedthrough for n in inputs}))
        if number in in_loop:
            for other in in_loop[number].body:
                if rates[other] == CONTINUOUS:
                    need(other)
    return needed, sampled - needed


def _find_driven(
    flat: FlatDiagram,
    rates: Sequence[Ticks],
    loops: Sequence[Loop],
    fast: set[int],
    slow: set[int],
    moved: set[int],
    calls: set[int],
    number: int,
) -> list[int]:
    """Return the inputs of a slow block that depend on fast states, and that need no call of a slow
    block in substeps that is not made anyway."""
    found = []
    seen = set()
    for port, source in enumerate(flat.blocks[number].sources):
        if source is None or source.block not in moved or source in seen:
            continue
        seen.add(source)
        needed, _ = _find_sources(flat, rates, loops, set(), slow, [(number, port)])
        if needed & (moved | fast) and not needed & slow - calls:
            found.append(port)
    return found


def _find_moved(
    flat: FlatDiagram, rates: Sequence[Ticks], loops: Sequence[Loop], fast: set[int]
) -> set[int]:
    """Return the blocks of continuous rate with an input or a state that depends on fast states."""
    readers: dict[int, list[int]] = {}
    for number, item in enumerate(flat.blocks):
        for source in item.sources:
            if source is not None and source.block >= 0 and rates[number] == CONTINUOUS:
                readers.setdefault(source.block, []).append(number)
    in_loop = {number: loop.body for loop in loops for number in loop.body}
    moved, waiting = set(fast), list(fast)
    while waiting:
        number = waiting.pop()
        block = flat.blocks[number].block
        # A block without feedthrough is reached, but passes nothing on.
        passes = number in fast or any(block.feedthrough)
        for other in [*(readers.get(number, ()) if passes else ()), *in_loop.get(number, ())]:
            if other not in moved and rates[other] == CONTINUOUS:
                moved.add(other)
                waiting.append(other)
    return moved
