"""The ring in FMPy: its slaves, called in a loop as its examples do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from workloads.ring import COUNTS, STEP, read_model, starts, steps, work

from peers.process import Prepare, serve


def open_ring(path: str, count: int) -> list[Any]:
    """Unpack the FMU and initialize its instances."""
    from fmpy import extract
    from fmpy.fmi2 import FMU2Slave

    model = read_model(path)
    folder = extract(path)
    slaves = []
    for n, start in enumerate(starts(count)):
        slave = FMU2Slave(
            guid=model.guid,
            unzipDirectory=folder,
            modelIdentifier=model.identifier,
            instanceName=f"fmu_{n}",
        )
        slave.instantiate()
        slave.setupExperiment(startTime=0.0)
        slave.setReal([model.start], [start])
        slave.enterInitializationMode()
        slave.exitInitializationMode()
        slaves.append(slave)
    return slaves


def prepare_ring(path: str, count: int) -> Prepare:
    """Prepare runs of a ring."""
    model = read_model(path)
    u, y = [model.input], [model.output]

    def prepare() -> Callable[[], float]:
        slaves = open_ring(path, count)
        outputs = [slave.getReal(y)[0] for slave in slaves]

        def run() -> float:
            for k in range(steps(count)):
                t = k * STEP
                before = outputs[-1]
                for n, slave in enumerate(slaves):
                    slave.setReal(u, [before])
                    before = outputs[n]
                    slave.doStep(currentCommunicationPoint=t, communicationStepSize=STEP)
                    outputs[n] = slave.getReal(y)[0]
            return float(outputs[-1])

        return run

    return prepare


def prepare_opening(path: str) -> Prepare:
    """Prepare to open one FMU."""
    model = read_model(path)
    return lambda: lambda: float(open_ring(path, 1)[0].getReal([model.output])[0])


if __name__ == "__main__":
    fmu = sys.argv[1]
    works = {work(count): lambda _, n=count: prepare_ring(fmu, n) for count in COUNTS}
    serve("fmpy", works | {"open": lambda _: prepare_opening(fmu)})
