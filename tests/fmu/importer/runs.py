"""Runs of FMUs that several tests of this folder share."""

from __future__ import annotations

from typing import Any

import pytest
from specimen import TROUBLE

from biella import BlockError, Diagram, Fmu, simulate
from biella.blocks import Pendulum

BACKENDS: list[dict[str, Any]] = [{}, {"isolate": True}, {"backend": "fmpy"}]
IDS = ["engine", "isolated", "fmpy"]
EVERY: list[dict[str, Any]] = [
    *BACKENDS,
    {"backend": "fmpy", "isolate": True},
    {"backend": "pyfmi"},
    {"backend": "pyfmi", "isolate": True},
]
EVERY_ID = [*IDS, "fmpy isolated", "pyfmi", "pyfmi isolated"]
"""With the double of PyFMI where it is not installed."""


def plant():
    d = Diagram("plant", step=1e-3)
    torque = d.input("torque", unit="N.m")
    pendulum = d.add(Pendulum(angle=0.2, damping=0.1), name="pendulum")
    d.connect(torque, pendulum)
    d.output("angle", pendulum["angle"])
    return d


def alone(path, until=0.1, step=0.01, **options):
    """Run a specimen with its inputs at their starts."""
    d = Diagram("alone", step=step)
    d.add(Fmu(path, **options), name="f")
    return simulate(d, until)


def fail(specimen, trouble, tmp_path, **options):
    """Run a specimen into trouble at 0.05 s beside a healthy one; return error and diaries."""
    d = Diagram("trouble", step=0.01)
    diaries = [tmp_path / "bad", tmp_path / "good"]
    bad = {"trouble": TROUBLE[trouble], "at": 0.05, "diary": str(diaries[0])}
    d.add(Fmu(specimen, instance_name="culprit", parameters=bad, **options), name="bad")
    d.add(Fmu(specimen, parameters={"diary": str(diaries[1])}), name="good")
    with pytest.raises(BlockError) as caught:
        simulate(d, 0.1)
    texts = [path.read_text().split()[-2:] if path.exists() else [] for path in diaries]
    return caught.value, *texts
