"""Participants take turns in one run: a busy machine is then as unkind to one as to another."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Run = Callable[[], tuple[float, float | None]]
"""Does a work once; gives the time taken in seconds, and the final output if it is at hand."""


@dataclass
class Entrant:
    """A participant: how it does the work once, and what came of it."""

    name: str
    run: Run
    simulated: float
    """Simulated seconds of one run."""
    repeats: int = 1
    """Runs a round."""
    rounds: int | None = None
    """Rounds in which it takes part; none: all."""
    best: float = math.inf
    """Least time of a run, seconds."""
    output: float | None = None


def timed(function: Callable[[], object]) -> Run:
    """Make a function return the time it took; a float that it returns is its final output."""

    def run() -> tuple[float, float | None]:
        start = time.perf_counter()
        output = function()
        elapsed = time.perf_counter() - start
        return elapsed, output if isinstance(output, float) else None

    return run


def take_turns(entrants: Sequence[Entrant], rounds: int) -> None:
    """Run all in turns and leave in each its best time and its output."""
    for number in range(rounds):
        present = [e for e in entrants if e.rounds is None or number < e.rounds]
        for repeat in range(max(e.repeats for e in present)):
            for entrant in present:
                if repeat < entrant.repeats:
                    elapsed, output = entrant.run()
                    entrant.best = min(entrant.best, elapsed)
                    entrant.output = output if output is not None else entrant.output
