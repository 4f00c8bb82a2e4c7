"""The choice between co-simulation and model exchange, for FMUs that offer both."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
from exchange_models import STATES, describe
from scipy.integrate import solve_ivp
from specimen import compile_specimen

from biella import Diagram, Fmu, simulate
from biella.errors import DiagramError, FmuError
from biella.fmu._run_file import simulate_fmu_file
from biella.fmu.importer._archive import platform_names

pytestmark = pytest.mark.engine


@pytest.fixture
def both(tmp_path):
    """Return an FMU that declares both kinds; only the binary for model exchange is there."""
    path = tmp_path / "both.fmu"
    xml = describe("OSCILLATOR", 2, STATES[2])
    xml = xml.replace("<ModelVariables>", '<CoSimulation modelIdentifier="cs"/><ModelVariables>')
    library = compile_specimen("-DMODEL=OSCILLATOR", "-DFMI=2", name="exchange_models")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", xml)
        for name in ("OSCILLATOR", "cs"):
            archive.writestr(f"binaries/{platform_names()[0]}/{name}.so", library.read_bytes())
    return path


def run(path, **options):
    d = Diagram("d", step=0.1, solver="rk4")
    d.add(Fmu(path, **options), name="fmu")
    return simulate(d, until=0.5)


def test_model_exchange_is_chosen(both):
    result = run(both, kind="me")
    exact = solve_ivp(lambda _, x: [x[1], (1 - x[0] ** 2) * x[1] - x[0]], (0, 0.5), [2, 0])
    assert result["fmu.x0"][-1] == pytest.approx(exact.y[0, -1], abs=1e-3)


def test_co_simulation_is_the_default(both):
    """Its binary has no functions for co-simulation, which shows that these were looked for."""
    for options in ({}, {"kind": "cs"}):
        with pytest.raises(FmuError, match="has no function fmi2DoStep"):
            run(both, **options)


def test_fmpy_runs_the_chosen_kind(both):
    result = run(both, kind="me", backend="fmpy", tolerance=1e-8)
    expected = run(both, kind="me")
    np.testing.assert_allclose(result["fmu.x0"], expected["fmu.x0"], atol=1e-5)


def test_a_kind_that_does_not_exist(both):
    with pytest.raises(DiagramError, match="`kind` must be 'cs', 'me' or None"):
        Fmu(both, kind="model exchange")  # type: ignore[arg-type]


def test_the_command_line_integrates_model_exchange(both):
    """The default is dopri5 with error control; the options of a diagram choose another solver."""
    exact = simulate_fmu_file(both, kind="me", stop=0.5, step=0.1, tolerance=1e-11)
    default = simulate_fmu_file(both, kind="me", stop=0.5, step=0.1)
    coarse = simulate_fmu_file(both, kind="me", stop=0.5, step=0.1, solver="euler")
    assert default["both.x0"][-1] == pytest.approx(exact["both.x0"][-1], abs=1e-5)
    assert abs(coarse["both.x0"][-1] - exact["both.x0"][-1]) > 1e-3
    with pytest.raises(FmuError, match="--kind me"):
        simulate_fmu_file(both, kind="cs", solver="rk4")
