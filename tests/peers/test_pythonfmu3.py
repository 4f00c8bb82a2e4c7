"""FMI 3.0 FMUs that PythonFMU3 makes, run by the engine inside a Python process.

pip install biella pytest pythonfmu3
python -m pytest tests/peers/test_pythonfmu3.py -m slow
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from biella import BlockError, Diagram, Fmu, simulate
from biella.blocks import Sine

pytestmark = pytest.mark.slow

SOURCE = """
from pythonfmu3 import (
    Boolean, Float64, Fmi3Causality, Fmi3Slave, Fmi3Variability, Int64,
)

class Lag(Fmi3Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.u, self.y, self.tau, self.count, self.late = 1.0, 0.0, 0.5, 0, False
        self.register_variable(Float64("u", causality=Fmi3Causality.input))
        self.register_variable(Float64("y", causality=Fmi3Causality.output))
        self.register_variable(
            Float64("tau", causality=Fmi3Causality.parameter, variability=Fmi3Variability.tunable)
        )
        self.register_variable(
            Int64("count", causality=Fmi3Causality.output, variability=Fmi3Variability.discrete)
        )
        self.register_variable(
            Boolean("late", causality=Fmi3Causality.output, variability=Fmi3Variability.discrete)
        )

    def do_step(self, t, h):
        if self.tau <= 0:
            raise ValueError("tau must be positive")
        self.y += h * (self.u - self.y) / self.tau
        self.count += 1
        self.late = t + h > 0.505
        return True
"""


@pytest.fixture(scope="module")
def lag(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pythonfmu3")
    (folder / "lag.py").write_text(SOURCE)
    command = [sys.executable, "-m", "pythonfmu3", "build", "-f", "lag.py"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=1800)
    return folder / "Lag.fmu"


@pytest.mark.parametrize("options", [{}, {"isolate": True}, {"backend": "fmpy"}])
def test_it_follows_its_recursion(lag, options):
    d = Diagram("lag", step=0.01)
    f = d.add(Fmu(lag, parameters={"tau": 0.25}, validate=False, **options), name="f")
    d.connect(d.add(Sine(1.0, 3.0), name="s"), f["u"])
    r = simulate(d, 1.0)
    y, expected = 0.0, []
    for u in r["s"]:
        expected.append(y)
        y += 0.01 * (u - y) / 0.25
    assert r["f.y"] == pytest.approx(expected, abs=1e-15)
    assert r["f.count"].tolist() == list(range(101))
    assert r["f.late"].tolist() == [0.0] * 51 + [1.0] * 50


def test_an_exception_in_it_ends_the_run(lag):
    d = Diagram("wrong", step=0.01)
    d.add(Fmu(lag, parameters={"tau": -1.0}, validate=False, logging=True), name="f")
    with pytest.raises(BlockError, match=r"(?s)FMU `Lag.fmu`.*fmi3DoStep returned"):
        simulate(d, 1.0)
