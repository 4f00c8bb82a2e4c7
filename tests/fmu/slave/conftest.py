"""FMUs in FMPy's own objects, addressed by names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import fmpy
import pytest
from fmpy.fmi2 import FMU2Slave, fmi2LastSuccessfulTime, fmi2Terminated

from biella import Diagram


class Slave:
    """An instance in FMPy; a value is set and read by the name of its variable."""

    def __init__(self, path: Path, unpacked: Path, **options: Any) -> None:
        self.description = fmpy.read_model_description(str(path))
        self.names = {v.name: v.valueReference for v in self.description.modelVariables}
        self.fmu = FMU2Slave(
            guid=self.description.guid,
            unzipDirectory=str(unpacked),
            modelIdentifier=self.description.coSimulation.modelIdentifier,
            instanceName="one",
        )
        self.fmu.instantiate(**options)
        self.time = 0.0

    def refer(self, *names: str) -> list[int]:
        """Return value references."""
        return [self.names[name] for name in names]

    def start(self, at: float = 0.0, stop: float | None = None, **values: float) -> Slave:
        """Go from instantiation, or a reset, to the first step."""
        self.fmu.setupExperiment(startTime=at, stopTime=stop)
        for name, value in values.items():
            self.set(name, value)
        self.fmu.enterInitializationMode()
        self.fmu.exitInitializationMode()
        self.time = at
        return self

    def get(self, *names: str) -> list[float]:
        """Return values of real variables."""
        return list(self.fmu.getReal(self.refer(*names)))

    def set(self, name: str, value: float) -> None:
        """Set one real variable."""
        self.fmu.setReal(self.refer(name), [value])

    def slope(self, name: str, *derivatives: float) -> None:
        """Set the derivatives of an input, beginning with the first."""
        orders = list(range(1, len(derivatives) + 1))
        self.fmu.setRealInputDerivatives(self.refer(name) * len(orders), orders, derivatives)

    def step(self, size: float) -> None:
        """Take one step from where the last one ended."""
        self.fmu.doStep(currentCommunicationPoint=self.time, communicationStepSize=size)
        self.time += size

    def run(self, sizes: Sequence[float], *names: str) -> list[list[float]]:
        """Take many steps; return the named values after each."""
        rows = []
        for size in sizes:
            self.step(size)
            rows.append(self.get(*names) if names else [])
        return rows

    def directional(
        self, unknowns: Sequence[str], knowns: Sequence[str], seed: Sequence[float]
    ) -> list[float]:
        """Return the derivative of `unknowns` along `seed`."""
        return list(
            self.fmu.getDirectionalDerivative(self.refer(*unknowns), self.refer(*knowns), seed)
        )

    def output_derivatives(self, *names: str) -> list[float]:
        """Return first derivatives of outputs with respect to time."""
        return list(self.fmu.getRealOutputDerivatives(self.refer(*names), [1] * len(names)))

    @property
    def ended(self) -> tuple[bool, float]:
        """Whether the FMU wants to end, and the time it has reached."""
        return (
            bool(self.fmu.getBooleanStatus(fmi2Terminated)),
            float(self.fmu.getRealStatus(fmi2LastSuccessfulTime)),
        )


OpenFmu = Callable[..., Slave]


def _open_fmus(folder: Path) -> Iterator[OpenFmu]:
    opened: list[Slave] = []

    def open_(diagram: Diagram, **options: Any) -> Slave:
        path = diagram.export_fmu(folder / f"{len(opened)}.fmu")
        unpacked = Path(fmpy.extract(str(path), str(folder / f"fmu {len(opened)}")))
        opened.append(Slave(path, unpacked, **options))
        return opened[-1]

    yield open_
    for slave in opened:
        slave.fmu.freeInstance()


@pytest.fixture
def open_fmu(tmp_path: Path) -> Iterator[OpenFmu]:
    """Return a function that exports a diagram and opens it; options are those of instantiate."""
    yield from _open_fmus(tmp_path)


@pytest.fixture(scope="module")
def open_shared_fmu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenFmu]:
    """Return the same, for instances that the tests of a module share."""
    yield from _open_fmus(tmp_path_factory.mktemp("shared"))
