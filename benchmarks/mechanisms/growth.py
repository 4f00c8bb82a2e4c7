"""How our time grows with the size of a mechanism: of a step, and of what precedes the first.

Times are the processor's: nobody else's stand beside them. Exponents are slopes of a straight line
through the best times on logarithmic scales. 1 is linear; a target of 1.15 leaves room for caches
and for the noise of a fit.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from table import Row, figure, say, within
from turns import Entrant, fit_exponent, take_turns, timed

from biella.blocks.multibody import System
from mechanisms.ours_multibody import build_ring, build_system, start_system

STEPS = 10
LARGEST = 1000
LINEAR = 1.15


@dataclass
class Family:
    """Mechanisms of one kind and their sizes."""

    name: str
    build: Callable[[int], System]
    sizes: Sequence[int]
    linear: bool
    """Whether its time has to grow in proportion."""


def _families(quick: bool) -> list[Family]:
    sizes = (10, 100, LARGEST) if quick else (10, 30, 100, 300, LARGEST)
    # A ring has a full matrix: larger ones say nothing new and take minutes.
    rings = (20, 60, 180) if quick else (20, 40, 80, 160, 320)
    named = [
        Family(
            f"{what}, {'3-D' if spatial else 'planar'}",
            lambda n, work=work, spatial=spatial: build_system(f"{work}_{n}", spatial),  # type: ignore[misc]
            sizes,
            linear=True,
        )
        for what, work in (("open chain", "chain"), ("four-bars", "four_bars"))
        for spatial in (False, True)
    ]
    return [*named, Family("closed ring, planar", build_ring, rings, linear=False)]


def _enter(started: Any, repeats: int) -> Entrant:
    run = timed(lambda: started.run(STEPS), time.process_time)

    def from_the_beginning() -> tuple[float, float | None]:
        started.reset()
        return run()

    return Entrant("", from_the_beginning, 0.0, repeats=repeats)


def measure_growth(quick: bool) -> tuple[list[Row], list[str]]:
    """Fit how a step's time grows, and what describing, compiling and starting takes."""
    rows, notes, starts = [], [], []
    for family in _families(quick):
        say(f"growth: {family.name}")
        begun: dict[int, float] = {}
        entrants: dict[int, Entrant] = {}
        for size in family.sizes:
            gc.collect()
            start = time.process_time()
            system = family.build(size)
            started = start_system(system, ["closure"])
            begun[size] = time.process_time() - start
            entrants[size] = _enter(started, repeats=max(1, 100 // size))
        take_turns(list(entrants.values()), rounds=5 if quick else 10)
        times = {size: entrant.best / STEPS for size, entrant in entrants.items()}
        largest = family.sizes[-1]
        name = f"{family.name}, to {largest:,}"
        work, exponent = f"{name}: exponent of a step", fit_exponent(times)
        limited = within(work, exponent, LINEAR, "")
        rows.append(limited if family.linear else figure(work, exponent, ""))
        starts.append(figure(f"{name}: describe, compile, start", begun[largest], "s"))
        listed = ", ".join(f"{size:,}: {t * 1e6:.3g} µs" for size, t in times.items())
        notes.append(f"{family.name}, a step: {listed}.")
    return rows + starts, notes
