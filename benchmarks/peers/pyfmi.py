"""The ring in PyFMI: its models, called in a loop by value reference, the fastest way it has."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from workloads.ring import COUNTS, START, STEP, read_model, starts, steps, work

from peers.process import Prepare, serve


def open_ring(path: str, count: int) -> list[Any]:
    """Load and initialize the FMUs."""
    from pyfmi import load_fmu

    models = []
    for start in starts(count):
        model = load_fmu(path, kind="CS", log_level=2)
        model.setup_experiment(start_time=0.0)
        model.set(START, start)
        model.enter_initialization_mode()
        model.exit_initialization_mode()
        models.append(model)
    return models


def prepare_ring(path: str, count: int) -> Prepare:
    """Prepare runs of a ring."""
    references = read_model(path)
    u, y = [references.input], [references.output]

    def prepare() -> Callable[[], float]:
        models = open_ring(path, count)
        outputs = [model.get_real(y)[0] for model in models]

        def run() -> float:
            for k in range(steps(count)):
                t = k * STEP
                before = outputs[-1]
                for n, model in enumerate(models):
                    model.set_real(u, [before])
                    before = outputs[n]
                    model.do_step(t, STEP)
                    outputs[n] = model.get_real(y)[0]
            return float(outputs[-1])

        return run

    return prepare


def prepare_opening(path: str) -> Prepare:
    """Prepare to open one FMU."""
    references = read_model(path)
    return lambda: lambda: float(open_ring(path, 1)[0].get_real([references.output])[0])


if __name__ == "__main__":
    fmu = sys.argv[1]
    works = {work(count): lambda _, n=count: prepare_ring(fmu, n) for count in COUNTS}
    serve("pyfmi", works | {"open": lambda _: prepare_opening(fmu)})
