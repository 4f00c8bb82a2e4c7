"""FMI 3.0 exports: valid by FMPy, and with the numbers of the FMI 2.0 export to the bit."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu

from biella import Diagram
from biella.blocks import Gain, StateMachine, Sum
from biella.blocks.multibody.mechanisms import slider_crank
from biella.fmu.exporter._platforms import platform_tuple, this_platform

from .conftest import EXAMPLES, lag, load, make_crank, read_xml


def run(path: Path, steps: int = 20) -> dict[str, np.ndarray]:
    """Run an FMU in FMPy; return every element of every output by name."""
    step = float(fmpy.read_model_description(str(path)).defaultExperiment.stepSize)
    result = fmpy.simulate_fmu(str(path), stop_time=steps * step, output_interval=step)
    columns: dict[str, np.ndarray] = {}
    for name in result.dtype.names:
        values = result[name]
        if values.ndim == 1:
            columns[name] = values.astype(float)
        else:
            columns |= {f"{name}[{k}]": values[:, k] for k in range(values.shape[1])}
    return columns


@pytest.mark.filterwarnings("ignore::biella.BiellaWarning")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_examples_are_valid_and_run_as_in_fmi_2(example: Path, tmp_path: Path) -> None:
    model = load(example)
    options: dict[str, Any] = {"sources": False}
    if isinstance(model, Diagram):
        plan = model.compile()
        slots = {port.slot for port in plan.outputs.values()}
        options["outputs"] = [
            port.path for block in plan.blocks for port in block.outputs
            if port.slot not in slots
        ]  # fmt: skip
    paths = [
        model.export_fmu(tmp_path / f"{version[0]}.fmu", version=version, **options)
        for version in ("2.0", "3.0")
    ]
    assert validate_fmu(str(paths[1])) == []
    two, three = (run(path) for path in paths)
    assert list(two) == list(three)
    assert len(two) > 1
    for name, values in two.items():
        assert np.array_equal(values, three[name], equal_nan=True), name


def test_a_mechanism_alone_is_valid_and_runs_as_in_fmi_2(tmp_path: Path) -> None:
    system = slider_crank(planar=True)
    paths = [
        system.export_fmu(tmp_path / f"{v[0]}.fmu", version=v, sources=False, about={"author": "A"})
        for v in ("2.0", "3.0")
    ]
    assert validate_fmu(str(paths[1])) == []
    two, three = (run(path) for path in paths)
    for name, values in two.items():
        assert np.array_equal(values, three[name]), name


def make_machine() -> Diagram:
    machine = StateMachine(inputs=["x"], outputs=[])
    off, on = machine.state("off"), machine.state("on")
    machine.transition(off, on, when="x > 1")
    machine.transition(on, off, when="x < 0.5")
    d = Diagram("machine", step=1e-2)
    d.add(machine, "m", x=d.input("x"), period=1e-2)
    d.output("state", d["m"]["state"])
    return d


def test_enumerations_have_names(tmp_path: Path) -> None:
    path = make_machine().export_fmu(tmp_path / "x.fmu", version="3.0")
    assert validate_fmu(str(path)) == []
    root = read_xml(path)
    (definition,) = root.iter("EnumerationType")
    assert [item.attrib for item in definition] == [
        {"name": "off", "value": "1"}, {"name": "on", "value": "2"},
    ]  # fmt: skip
    (state,) = root.iter("Enumeration")
    assert state.get("declaredType") == definition.get("name")
    given = np.array([(0.0, 0.0), (0.05, 2.0), (0.1, 0.0)], dtype=[("time", "f8"), ("x", "f8")])
    result = fmpy.simulate_fmu(str(path), stop_time=0.2, output_interval=1e-2, input=given)
    assert set(np.asarray(result["state"]).astype(int)) == {1, 2}


def test_structure_time_and_flags(tmp_path: Path) -> None:
    path = lag().export_fmu(tmp_path / "x.fmu", version="3.0")
    root = read_xml(path)
    variables = {v.get("name"): v for group in root.iter("ModelVariables") for v in group}
    references = {name: v.get("valueReference") for name, v in variables.items()}
    assert len(set(references.values())) == len(references)
    assert variables["time"].attrib == {
        "name": "time", "valueReference": references["time"], "causality": "independent",
        "variability": "continuous", "description": "time", "unit": "s",
    }  # fmt: skip
    outputs = {o.get("valueReference"): o.attrib for o in root.iter("Output")}
    assert outputs[references["y"]]["dependencies"] == references["u"]
    assert outputs[references["sum"]]["dependencies"] == ""
    assert [u.get("valueReference") for u in root.iter("InitialUnknown")] == list(outputs)
    kinds = [element.tag for element in root]
    assert kinds[0] == "CoSimulation" and kinds[-1] == "ModelStructure"
    step = root[0].get("fixedInternalStepSize")
    assert step == "0.001"
    adaptive = Diagram("adaptive", solver="dopri5", tolerance=1e-6)
    adaptive.output("y", adaptive.add(Gain(2.0), "k", u=adaptive.input("u")))
    path = adaptive.export_fmu(tmp_path / "y.fmu", version="3.0")
    assert read_xml(path)[0].get("fixedInternalStepSize") is None


def test_a_variable_that_is_called_time(tmp_path: Path) -> None:
    d = Diagram("times")
    d.output("_time", d.add(Gain(2.0), "k", u=d.input("time")))
    path = d.export_fmu(tmp_path / "x.fmu", version="3.0")
    assert validate_fmu(str(path)) == []
    (name,) = (v.get("name") for v in read_xml(path).iter() if v.get("causality") == "independent")
    assert name == "__time"


def test_files_have_the_names_of_fmi_3(tmp_path: Path) -> None:
    path = make_crank().export_fmu(tmp_path / "c.fmu", inputs=["ref"], version="3.0")
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        page = archive.read("documentation/index.html").decode()
    folder = platform_tuple(this_platform())
    assert folder in ("x86_64-linux", "aarch64-linux", "x86_64-windows", "x86_64-darwin")
    assert any(name.startswith(f"binaries/{folder}/controlled_crank.") for name in names)
    assert {"sources/buildDescription.xml", "sources/controlled_crank.c"} <= names
    assert "FMI 3.0" in page and "FMI 2.0" not in page
    assert platform_tuple("win64").endswith("-windows")


def test_the_token_is_of_all_that_matters(tmp_path: Path) -> None:
    def token(**options: Any) -> str | None:
        path = lag().export_fmu(tmp_path / "x.fmu", version="3.0", **options)
        return read_xml(path).get("instantiationToken")

    tokens = [
        token(), token(about={"author": "A"}), token(about={"author": "B"}),
        token(local=["k"]), token(nominal={"u": 2.0}), token(parameters=["k.k"]),
    ]  # fmt: skip
    assert len(set(tokens)) == len(tokens)
    assert token() == tokens[0]


def test_arrays_run_as_in_fmi_2(tmp_path: Path) -> None:
    d = Diagram("vectors")
    total = d.add(Sum("++"), "sum", u1=d.input("a", width=3, default=0.1), u2=d.input("b", width=3))
    d.output("y", d.add(Gain([1.0, 2.0, 3.0]), "k", u=total))
    two, three = (
        run(d.export_fmu(tmp_path / f"{v[0]}.fmu", version=v)) for v in ("2.0", "3.0")
    )  # fmt: skip
    assert list(three) == ["time", "y[0]", "y[1]", "y[2]"]
    assert all(np.array_equal(two[name], three[name]) for name in two)
    assert three["y[2]"][-1] == 3.0 * 0.1
