"""The same FMU through PyFMI's objects and through the engine."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram, Fmu, simulate
from biella.blocks import Integrator, Sine

pytestmark = pytest.mark.slow


def test_pyfmi_gives_the_bits_of_the_engine(tmp_path):
    ours = Diagram("ours", step=0.01)
    x = ours.add(Integrator(0.5), name="x")
    ours.connect(ours.input("u"), x)
    ours.output("x", x)
    path = ours.export_fmu(tmp_path / "ours.fmu")
    runs = []
    for backend in ("engine", "pyfmi"):
        d = Diagram("both", step=0.01)
        f = d.add(Fmu(path, parameters={"x.initial": 0.25}, backend=backend), name="f")
        d.connect(d.add(Sine(1.0, 3.0), name="s"), f)
        runs.append(simulate(d, 1.0)["f"])
    assert runs[0][0] == 0.25
    assert np.array_equal(runs[0], runs[1])
