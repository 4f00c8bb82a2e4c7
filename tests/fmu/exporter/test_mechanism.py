"""A mechanism alone as an FMU."""

from __future__ import annotations

import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu

from biella import Diagram, simulate
from biella.blocks import Constant
from biella.blocks.multibody.mechanisms import slider_crank
from biella.cli import main


def read_xml(path: Path) -> ET.Element:
    with zipfile.ZipFile(path) as archive:
        return ET.fromstring(archive.read("modelDescription.xml"))


def variables(path: Path) -> dict[str, ET.Element]:
    return {str(v.get("name")): v for v in read_xml(path).iter("ScalarVariable")}


def test_a_mechanism_alone_keeps_its_own_names(tmp_path: Path) -> None:
    path = slider_crank(planar=True).export_fmu(tmp_path / "x.fmu")
    assert validate_fmu(str(path)) == []
    found = variables(path)
    kinds = {name: v.get("causality") for name, v in found.items()}
    assert [n for n, kind in kinds.items() if kind == "input"] == ["motor.torque"]
    assert found["motor.torque"][0].attrib == {"start": "-10.0", "unit": "N.m"}
    assert kinds["main.angle"] == kinds["main.speed"] == kinds["slider.position[1]"] == "output"
    assert kinds["crank.mass"] == kinds["gravity[1]"] == "parameter"


def test_a_mechanism_alone_runs_as_its_block_does(tmp_path: Path) -> None:
    system = slider_crank(planar=True)
    path = system.export_fmu(
        tmp_path / "x.fmu", outputs=["main.speed"], step=2e-3, solver="heun", sources=False
    )
    outside = fmpy.simulate_fmu(
        str(path),
        stop_time=0.5,
        output_interval=0.01,
        start_values={"motor.torque": -4.0, "rod.mass": 3.0},
    )
    d = Diagram("inside", step=2e-3, solver="heun")
    plant = d.add(system.block(["motor.torque"], ["main.speed"]), name="plant")
    d.connect(d.add(Constant(-4.0, unit="N.m")), plant)
    inside = simulate(d, 0.5, parameters={"plant.rod.mass": 3.0}, every=5)
    assert np.array_equal(outside["main.speed"], inside["plant.main.speed"])


def test_a_mechanism_without_inputs(tmp_path: Path) -> None:
    path = slider_crank(drive="none").export_fmu(tmp_path / "x.fmu", parameters=["crank.*"])
    assert validate_fmu(str(path)) == []
    shown = {n for n, v in variables(path).items() if v.get("causality") == "parameter"}
    assert {name.partition(".")[0] for name in shown} == {"crank"}


def write(folder: Path, text: str) -> Path:
    path = folder / "model.py"
    path.write_text(text)
    return path


SYSTEM = """
from biella.blocks.multibody.mechanisms import slider_crank
def system():
    return slider_crank(planar=True)
"""


def test_the_command_line_exports_a_mechanism(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path, SYSTEM)
    options = ["--output-signal", "main.speed", "--step", "2e-3", "--no-sources"]
    assert main(["export", str(file), *options]) == 0
    assert capsys.readouterr().out == "wrote model.fmu\n"
    root = read_xml(tmp_path / "model.fmu")
    assert root.find("DefaultExperiment").get("stepSize") == "0.002"  # type: ignore[union-attr]
    outputs = [v for v in root.iter("ScalarVariable") if v.get("causality") == "output"]
    assert [v.get("name") for v in outputs] == ["main.speed"]
    assert root.find("CoSimulation/SourceFiles") is None
