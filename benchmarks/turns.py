"""Participants take turns in one run: a busy machine is then as unkind to one as to another."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

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
    output: float | None = None
    rounds_best: list[float] = field(default_factory=list)
    """Least time of a run in each round, seconds."""

    @property
    def best(self) -> float:
        """Least time of a run, seconds."""
        return min(self.rounds_best, default=math.inf)


def timed(function: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> Run:
    """Make a function return the time it took; a float that it returns is its final output.

    The clock is the wall's. Where only our own times are compared with each other, the processor's,
    `time.process_time`, leaves out what others do on a busy machine.
    """

    def run() -> tuple[float, float | None]:
        start = clock()
        output = function()
        elapsed = clock() - start
        return elapsed, output if isinstance(output, float) else None

    return run


def take_turns(entrants: Sequence[Entrant], rounds: int) -> None:
    """Run all in turns and leave in each its times and its output."""
    for number in range(rounds):
        present = [e for e in entrants if e.rounds is None or number < e.rounds]
        for entrant in present:
            entrant.rounds_best.append(math.inf)
        for repeat in range(max(e.repeats for e in present)):
            for entrant in present:
                if repeat < entrant.repeats:
                    elapsed, output = entrant.run()
                    entrant.rounds_best[-1] = min(entrant.rounds_best[-1], elapsed)
                    entrant.output = output if output is not None else entrant.output


def ratios(one: Entrant, other: Entrant) -> tuple[float, float]:
    """Give the least and the largest ratio of two participants' times in the same round."""
    found = [a / b for a, b in zip(one.rounds_best, other.rounds_best, strict=False)]
    return min(found), max(found)


def fit_exponent(times: Mapping[int, float]) -> float:
    """Fit time ~ size to the power of what is returned."""
    return statistics.linear_regression(
        [math.log(size) for size in times], [math.log(time) for time in times.values()]
    ).slope
