"""The FMU in other people's importers: the bits of the engine driven with the same calls.

Each importer that is not installed is skipped by name::

    pip install ".[test,peers,zig]"
    python -m pytest tests/fmu/export -m slow
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fmpy
import pytest
from fmpy.fmi2 import FMU2Slave

from .conftest import OUTPUTS, STEPS, Exported, reference

pytestmark = pytest.mark.slow
Rows = list[list[float]]
STEP = 0.01


def run_fmpy(folder: Path, names: dict[str, str] | None = None) -> Rows:
    """Set, step and get through FMPy; `names` says what the variables are called there."""
    description = fmpy.read_model_description(str(folder))
    references = {v.name: v.valueReference for v in description.modelVariables}
    called = names or {}
    fmu = FMU2Slave(
        guid=description.guid,
        unzipDirectory=str(folder),
        modelIdentifier=description.coSimulation.modelIdentifier,
        instanceName="one",
    )
    fmu.instantiate()
    fmu.setupExperiment(startTime=0.0)
    fmu.enterInitializationMode()
    fmu.exitInitializationMode()
    rows = []
    for n in range(STEPS):
        fmu.setReal([references[called.get("ref", "ref")]], [reference(n)])
        fmu.doStep(currentCommunicationPoint=n * STEP, communicationStepSize=STEP)
        rows.append(fmu.getReal([references[called.get(name, name)] for name in OUTPUTS]))
    fmu.terminate()
    fmu.freeInstance()
    return rows


def test_fmpy(crank: Exported, expected: Rows) -> None:
    assert run_fmpy(crank.folder) == expected


def test_fmpy_builds_it_again_from_its_sources(
    crank: Exported, expected: Rows, tmp_path: Path, unpack: Callable[[Path], Exported]
) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    from fmpy.build import build_platform_binary

    fmu = unpack(crank.path)
    before = fmu.library.read_bytes()
    shutil.rmtree(fmu.folder / "binaries")
    shutil.rmtree(fmu.folder / "resources")
    build_platform_binary(fmu.folder, tmp_path, all_warnings=True)
    assert fmu.library.read_bytes() != before
    assert run_fmpy(fmu.folder) == expected


def test_libcosim(crank: Exported, expected: Rows) -> None:
    pytest.importorskip("libcosimpy", reason="libcosimpy is not installed")
    from libcosimpy.CosimExecution import CosimExecution
    from libcosimpy.CosimManipulator import CosimManipulator
    from libcosimpy.CosimObserver import CosimObserver
    from libcosimpy.CosimSlave import CosimLocalSlave

    execution = CosimExecution.from_step_size(STEP * 1e9)
    index = execution.add_local_slave(CosimLocalSlave(str(crank.path), "one"))
    manipulator = CosimManipulator.create_override()
    observer = CosimObserver.create_last_value()
    assert execution.add_manipulator(manipulator) and execution.add_observer(observer)
    references = crank.references
    rows = []
    for n in range(STEPS):
        assert manipulator.slave_real_values(index, [references["ref"]], [reference(n)])
        assert execution.step()
        rows.append(observer.last_real_values(index, [references[name] for name in OUTPUTS]))
    assert rows == expected


def test_inside_a_container_of_the_fmu_manipulation_toolbox(
    crank: Exported, expected: Rows, tmp_path: Path, unpack: Callable[[Path], Exported]
) -> None:
    pytest.importorskip(
        "fmu_manipulation_toolbox", reason="fmu-manipulation-toolbox is not installed"
    )
    from fmu_manipulation_toolbox.assembly import Assembly

    shutil.copy(crank.path, tmp_path / "crank.fmu")
    plan: dict[str, Any] = {
        "name": "container.fmu",
        "fmu": ["crank.fmu"],
        "input": [["ref", "crank.fmu", "ref"]],
        "output": [["crank.fmu", name, name] for name in OUTPUTS],
        "step_size": STEP,
        "auto_input": False,
        "auto_output": False,
    }
    (tmp_path / "container.json").write_text(json.dumps(plan))
    Assembly("container.json", fmu_directory=tmp_path).make_fmu()
    assert run_fmpy(unpack(tmp_path / "container.fmu").folder) == expected


def test_pyfmi(crank: Exported, expected: Rows) -> None:
    pyfmi = pytest.importorskip("pyfmi", reason="PyFMI is not installed")
    model = pyfmi.load_fmu(str(crank.path))
    model.setup_experiment(start_time=0.0)
    model.enter_initialization_mode()
    model.exit_initialization_mode()
    rows = []
    for n in range(STEPS):
        model.set("ref", reference(n))
        assert model.do_step(n * STEP, STEP) == 0
        rows.append([float(model.get(name)[0]) for name in OUTPUTS])
    assert rows == expected
