"""The ring in libcosim, an engine in C++: its fixed-step algorithm, all steps in one call.

An observer is the way to the values; it keeps the last ones, and costs nothing that can be seen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from workloads.ring import COUNTS, STEP, read_model, starts, steps, work

from peers.process import Prepare, serve


def open_ring(path: str, count: int) -> tuple[Any, Callable[[], float]]:
    """Return an execution with the ring, and a function that reads the output of the last FMU."""
    from libcosimpy.CosimExecution import CosimExecution
    from libcosimpy.CosimLogging import CosimLogLevel, log_output_level
    from libcosimpy.CosimObserver import CosimObserver
    from libcosimpy.CosimSlave import CosimLocalSlave

    log_output_level(CosimLogLevel.WARNING)
    model = read_model(path)
    execution = CosimExecution.from_step_size(STEP * 1e9)
    places = [execution.add_local_slave(CosimLocalSlave(path, f"fmu_{n}")) for n in range(count)]
    for n, start in enumerate(starts(count)):
        execution.real_initial_value(places[n], model.start, start)
        execution.connect_real_variables(places[n - 1], model.output, places[n], model.input)
    observer = CosimObserver.create_last_value()
    execution.add_observer(observer)
    return execution, lambda: float(observer.last_real_values(places[-1], [model.output])[0])


def prepare_ring(path: str, count: int) -> Prepare:
    """Prepare runs of a ring."""

    def prepare() -> Callable[[], float]:
        execution, read = open_ring(path, count)
        # The first step initializes; it is taken before the time counts.
        execution.step()

        def run() -> float:
            execution.step(steps(count) - 1)
            return read()

        return run

    return prepare


def prepare_opening(path: str) -> Prepare:
    """Prepare to open one FMU."""

    def run() -> float:
        execution, read = open_ring(path, 1)
        execution.step()
        return read()

    return lambda: run


if __name__ == "__main__":
    fmu = sys.argv[1]
    works = {work(count): lambda _, n=count: prepare_ring(fmu, n) for count in COUNTS}
    serve("libcosimpy", works | {"open": lambda _: prepare_opening(fmu)})
