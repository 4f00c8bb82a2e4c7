"""The work of `fmu.py`: a ring of equal FMUs, each driven by the one before it.

The FMU holds one block, an integrator by Euler's method at 1 ms, so that nearly all the time is
that of the calls:

    y = x,  x+ = x + STEP * GAIN * u,  x from a start value of its own

The first of the ring gets what the last gives. All get, for a step, what was given at its beginning
(Jacobi). Every input changes in every step, so nobody can leave out a call.

Only the standard library is used here: peers import this from their own environment.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
import zipfile
from dataclasses import dataclass

STEP = 1e-3
GAIN = -0.1
COUNTS = (1, 2, 10, 100)
FMU_STEPS = 20_000
"""Of one run, all FMUs taken together."""


def steps(count: int) -> int:
    """Return how many steps a ring of `count` takes in a run."""
    return FMU_STEPS // count


def work(count: int) -> str:
    """Return what the run of a ring is called between us and a peer."""
    return f"ring_{count}"


def starts(count: int) -> list[float]:
    """Return where each FMU starts."""
    return [1.0 + n / count for n in range(count)]


@dataclass(frozen=True)
class Model:
    """What a caller of the FMU has to know of it."""

    guid: str
    identifier: str
    input: int
    output: int
    start: int
    """Value references."""
    is_fmi3: bool = False


INPUT, OUTPUT, START = "u", "y", "x.initial"


def read_model(path: str) -> Model:
    """Read the description in an FMU."""
    with zipfile.ZipFile(path) as archive:
        root = ElementTree.fromstring(archive.read("modelDescription.xml"))
    references = {
        variable.attrib["name"]: int(variable.attrib["valueReference"])
        for variables in root.iter("ModelVariables")
        for variable in variables
    }
    slave = root.find("CoSimulation")
    assert slave is not None
    return Model(
        root.get("guid") or root.attrib["instantiationToken"],
        slave.attrib["modelIdentifier"],
        *(references[name] for name in (INPUT, OUTPUT, START)),
        is_fmi3=root.attrib["fmiVersion"].startswith("3"),
    )
