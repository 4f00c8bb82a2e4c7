"""The description of an FMU: names, kinds, start values, GUID."""

from __future__ import annotations

import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu

from biella import BiellaError, Diagram, DiagramError, Fmu, simulate
from biella.blocks import Constant, Saturation, StateSpace

from .conftest import Exported, lag, read_xml


def guid(path: Path) -> str:
    return read_xml(path).get("guid", "")


def test_the_guid_is_of_all_that_matters(tmp_path: Path) -> None:
    def exported(diagram: Diagram, **options: Any) -> str:
        return guid(diagram.export_fmu(tmp_path / "x.fmu", **options))

    guids = [
        exported(lag()),
        exported(lag("other")),
        exported(lag(gain=3.0)),
        exported(lag(doc="what drives it")),
        exported(lag(unit="m")),
        exported(lag(), parameters=["k.k"]),
        exported(lag(), parameters=["x.*"]),
        exported(lag(), parameters={"k.k": 4.0}),
        exported(lag(), outputs=["k"]),
    ]
    assert len(set(guids)) == len(guids)
    assert exported(lag()) == guids[0]
    assert exported(lag(), sources=False) == guids[0]


def variables(path: Path) -> dict[str, ET.Element]:
    return {str(v.get("name")): v for v in read_xml(path).iter("ScalarVariable")}


def test_matrices_have_two_indices_and_vectors_one(tmp_path: Path) -> None:
    d = Diagram("state space")
    u = d.input("u", width=2, default=0.1)
    a = np.array([[-1.0, 0.25], [0.1, -2.0]])
    block = d.add(StateSpace(a, np.eye(2), np.eye(2), np.zeros((2, 2))), name="ss")
    d.connect(u, block)
    d.output("y", block)
    path = d.export_fmu(tmp_path / "x.fmu")
    found = variables(path)
    assert {"u[0]", "u[1]", "y[0]", "y[1]", "ss.A[0,0]", "ss.A[1,1]"} <= found.keys()
    starts = [float(found[f"ss.A[{i},{j}]"][0].get("start", "")) for i in (0, 1) for j in (0, 1)]
    assert starts == a.ravel().tolist()
    assert read_xml(path).get("variableNamingConvention") == "structured"
    assert validate_fmu(str(path)) == []


def test_start_values_come_back_to_the_bit(tmp_path: Path) -> None:
    value = 0.1 + 0.2
    path = lag(gain=value).export_fmu(tmp_path / "x.fmu")
    start = variables(path)["k.k"][0].get("start", "")
    assert float(start) == value


def test_every_start_value_may_be_set(tmp_path: Path) -> None:
    """As tools do that set all variables to what the description says; other infinities are not
    taken."""
    d = Diagram("limits")
    d.connect(d.input("u"), d.add(Saturation(-np.inf, np.inf), name="off"))
    d.connect(d["off"], d.add(Saturation(-np.inf, 5.0), name="on"))
    d.output("y", d["on"])
    path = d.export_fmu(tmp_path / "x.fmu")
    unpacked = fmpy.extract(str(path), str(tmp_path / "x"))
    description = fmpy.read_model_description(str(path))
    fmu = fmpy.instantiate_fmu(unpacked, description, "CoSimulation")
    for variable in description.modelVariables:
        if variable.start is not None:
            fmu.setReal([variable.valueReference], [float(variable.start)])
    references = {v.name: v.valueReference for v in description.modelVariables}
    for name, value in (
        ("on.upper", np.inf), ("on.lower", np.inf), ("off.upper", np.nan), ("u", np.inf)
    ):  # fmt: skip
        with pytest.raises(fmpy.fmi1.FMICallException, match="discard"):
            fmu.setReal([references[name]], [value])
    fmu.setReal([references["on.lower"]], [-1.0])
    fmu.setReal([references["on.lower"]], [-np.inf])
    fmu.setReal([references["u"]], [-7.0])
    fmu.setupExperiment(startTime=0.0)
    fmu.enterInitializationMode()
    fmu.exitInitializationMode()
    assert fmu.getReal([references["y"]]) == [-7.0]
    fmu.terminate()
    fmu.freeInstance()
    run = fmpy.simulate_fmu(
        str(path), stop_time=0.1, start_values={"off.lower": -np.inf, "off.upper": np.inf}
    )
    assert run["y"][-1] == 0.0
    outer = Diagram("outer")
    inner = outer.add(Fmu(path), name="inner")
    outer.connect(outer.add(Constant(9.0), name="nine"), inner["u"])
    outer.output("y", inner["y"])
    assert simulate(outer, 0.01)["y"][-1] == 5.0


def test_kinds_variability_and_dependencies(tmp_path: Path) -> None:
    path = lag().export_fmu(tmp_path / "x.fmu")
    root = read_xml(path)
    index = {str(v.get("name")): str(n) for n, v in enumerate(root.iter("ScalarVariable"), 1)}
    unknowns = {u.get("index"): u for u in root.findall("ModelStructure/Outputs/Unknown")}
    assert unknowns[index["y"]].attrib == {
        "index": index["y"],
        "dependencies": index["u"],
        "dependenciesKind": "dependent",
    }
    assert unknowns[index["sum"]].get("dependencies") == ""
    first = root.findall("ModelStructure/InitialUnknowns/Unknown")
    assert [u.attrib for u in first] == [{"index": index["y"]}, {"index": index["sum"]}]
    experiment = root.find("DefaultExperiment")
    assert experiment is not None
    assert experiment.attrib == {"startTime": "0.0", "stopTime": "1.0", "stepSize": "0.001"}


def test_words_that_xml_and_c_do_not_have(tmp_path: Path) -> None:
    d = lag("a */ <b> \x01 ü & “c”\\", doc='control \x02 "<&>"')
    path = d.export_fmu(tmp_path / "x.fmu")
    assert validate_fmu(str(path)) == []
    assert read_xml(path).get("modelName") == "a */ <b>   ü & “c”\\"
    with zipfile.ZipFile(path) as archive:
        page = archive.read("documentation/index.html").decode()
        source = next(name for name in archive.namelist() if name.endswith(".c"))
        comment = archive.read(source).decode().split("\n")[0]
    assert "&lt;b&gt;" in page and "<b>" not in page
    assert comment.startswith("/* a ?") and "*/" not in comment


def test_an_input_and_an_output_of_one_name(tmp_path: Path) -> None:
    d = lag()
    d.output("u", d["k"])
    with pytest.raises(DiagramError, match="`u` is an input and an output"):
        d.export_fmu(tmp_path / "x.fmu")


def test_values_of_parameters_are_what_the_fmu_starts_with(
    tmp_path: Path, unpack: Callable[[Path], Exported]
) -> None:
    path = lag().export_fmu(tmp_path / "x.fmu", parameters={"k.k": 4.0, "x.*": None})
    found = variables(path)
    assert found["k.k"][0].get("start") == "4.0"
    assert {"k.k", "x.initial"} <= found.keys()
    result = fmpy.simulate_fmu(str(path), start_values={"u": 1.5}, stop_time=0.01)
    assert result["y"][-1] == 6.0
    for wrong, message in [
        ({"k.k": [1.0, 2.0]}, "`k.k` expects one number"),
        ({"k.k": "much"}, "`k.k` expects numbers"),
        ({"k.k": np.nan}, "`k.k` must be finite"),
        ({"k.*": 1.0}, r"no parameter `k\.\*`"),
        ({"kk": None}, "no parameter `kk`"),
        ("k.k", r"must be a list, such as \['k.k'\]"),
    ]:
        with pytest.raises(BiellaError, match=message):
            lag().export_fmu(tmp_path / "y.fmu", parameters=wrong)  # type: ignore[arg-type]
    assert not (tmp_path / "y.fmu").exists()
