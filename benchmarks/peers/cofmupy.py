"""The ring in CoFmuPy: its coordinator with Jacobi's method, not iterated.

It sets inputs before the first step from its configuration only, so these are given there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from workloads.ring import COUNTS, INPUT, OUTPUT, START, STEP, starts, steps, work

from peers.process import Prepare, serve


def open_ring(path: str, count: int) -> Any:
    """Return a coordinator that has started the ring."""
    from cofmupy.coordinator import Coordinator

    begin = starts(count)
    coordinator = Coordinator()
    coordinator.start(
        {
            "fmus": [
                {
                    "id": f"fmu_{n}",
                    "name": f"fmu_{n}",
                    "path": path,
                    "initialization": {START: begin[n], INPUT: begin[n - 1]},
                }
                for n in range(count)
            ],
            "connections": [
                {
                    "source": {"id": f"fmu_{(n - 1) % count}", "variable": OUTPUT, "unit": ""},
                    "target": {"id": f"fmu_{n}", "variable": INPUT, "unit": ""},
                }
                for n in range(count)
            ],
            "cosim_method": "jacobi",
            "iterative": False,
        }
    )
    return coordinator


def prepare_ring(path: str, count: int) -> Prepare:
    """Prepare runs of a ring."""

    def prepare() -> Callable[[], float]:
        coordinator = open_ring(path, count)

        def run() -> float:
            for _ in range(steps(count)):
                coordinator.do_step(STEP)
            return float(coordinator.get_variable((f"fmu_{count - 1}", OUTPUT))[0])

        return run

    return prepare


def prepare_opening(path: str) -> Prepare:
    """Prepare to open one FMU."""
    return lambda: lambda: float(open_ring(path, 1).get_variable(("fmu_0", OUTPUT))[0])


if __name__ == "__main__":
    fmu = sys.argv[1]
    works = {work(count): lambda _, n=count: prepare_ring(fmu, n) for count in COUNTS}
    serve("cofmupy", works | {"open": lambda _: prepare_opening(fmu)})
