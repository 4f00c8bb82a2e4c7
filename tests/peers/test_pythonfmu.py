"""FMUs that PythonFMU makes, run inside a Python process beside ours.

pip install biella pytest pythonfmu
python -m pytest tests/peers/test_pythonfmu.py -m slow
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from biella import BlockError, Diagram, Fmu, simulate
from biella.blocks import Integrator, Sine

pytestmark = pytest.mark.slow

SOURCE = """
from pythonfmu import Fmi2Causality, Fmi2Slave, Fmi2Variability, Real

class Lag(Fmi2Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.u, self.y, self.tau = 1.0, 0.0, 0.5
        self.register_variable(Real("u", causality=Fmi2Causality.input))
        self.register_variable(Real("y", causality=Fmi2Causality.output))
        self.register_variable(
            Real("tau", causality=Fmi2Causality.parameter, variability=Fmi2Variability.tunable)
        )

    def do_step(self, t, h):
        if self.tau <= 0:
            raise ValueError("tau must be positive")
        self.y += h * (self.u - self.y) / self.tau
        return True
"""


@pytest.fixture(scope="module")
def lag(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pythonfmu")
    (folder / "lag.py").write_text(SOURCE)
    command = [sys.executable, "-m", "pythonfmu", "build", "-f", "lag.py"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "Lag.fmu"


@pytest.mark.parametrize("options", [{}, {"isolate": True}, {"backend": "fmpy"}])
def test_it_runs_beside_one_of_ours(lag, tmp_path, options):
    ours = Diagram("ours", step=0.01)
    x = ours.add(Integrator(), name="x")
    ours.connect(ours.input("u"), x)
    ours.output("x", x)
    d = Diagram("both", step=0.01)
    a = d.add(Fmu(lag, parameters={"tau": 0.25}, **options), name="a")
    b = d.add(Fmu(lag, **options), name="b")
    c = d.add(Fmu(ours.export_fmu(tmp_path / "ours.fmu")), name="c")
    d.connect(d.add(Sine(1.0, 3.0), name="s"), a)
    d.connect(a, b)
    d.connect(b, c)
    r = simulate(d, 1.0)
    for name, source, tau in (("a", "s", 0.25), ("b", "a", 0.5)):
        y, expected = 0.0, []
        for u in r[source]:
            expected.append(y)
            y += 0.01 * (u - y) / tau
        assert r[name] == pytest.approx(expected, abs=1e-15)
    assert r["c"][-1] == pytest.approx(np.sum(r["b"][:-1]) * 0.01, abs=1e-12)


def test_an_exception_in_it_ends_the_run_with_its_text(lag):
    d = Diagram("wrong", step=0.01)
    d.add(Fmu(lag, parameters={"tau": -1.0}, logging=True), name="f")
    with pytest.raises(BlockError, match=r"(?s)FMU `Lag.fmu`.*fmi2DoStep returned.*tau must be"):
        simulate(d, 1.0)
