"""Terminals and icons of exported FMUs, against the schema of FMI 3.0 and FMPy's checks."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
import zipfile

import fmpy
import pytest
from fmpy.validation import validate_fmu
from PIL import Image

from biella import BiellaError, Diagram
from biella.blocks import Constant, Gain
from biella.blocks.multibody.mechanisms import slider_crank
from biella.fmu._commands import check_fmu

from .shafts import plant

FILE = "terminalsAndIcons/terminalsAndIcons.xml"


def read(path):
    with zipfile.ZipFile(path) as archive:
        files = {n: archive.read(n) for n in archive.namelist() if n.startswith("terminals")}
    return files, ET.fromstring(files[FILE])


def members(root):
    return {
        t.get("name"): [(m.get("memberName"), m.get("variableName")) for m in t.iter(MEMBER)]
        for t in root.iter("Terminal")
    }


MEMBER = "TerminalMemberVariable"


@pytest.mark.parametrize("version", ["2.0", "3.0"])
@pytest.mark.parametrize("kind", ["cs", "me"])
def test_a_mechanism_has_a_terminal_for_each_joint_and_body(tmp_path, version, kind):
    path = slider_crank().export_fmu(tmp_path / "crank.fmu", version=version, kind=kind)
    assert validate_fmu(str(path)) == []
    assert check_fmu(path).warnings == []  # by the schema among others
    found = members(read(path)[1])
    assert {"main", "crank_pin", "wrist_pin", "slide", "crank", "rod", "slider"} <= set(found)
    assert found["main"] == [("angle", "main.angle"), ("speed", "main.speed")]
    names = [name for name, _ in found["crank"]]
    vector = [f"position[{k}]" for k in range(3)]
    assert names[:3] == vector if version == "2.0" else names == ["position", "rotation"]


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_the_icon_is_the_diagram(tmp_path, version):
    files, root = read(plant().export_fmu(tmp_path / "plant.fmu", version=version))
    assert b"pendulum" in files["terminalsAndIcons/icon.svg"]
    image = Image.open(io.BytesIO(files["terminalsAndIcons/icon.png"]))
    icon, box = (
        root.find(f"GraphicalRepresentation/{tag}") for tag in ("Icon", "CoordinateSystem")
    )
    assert icon is not None and box is not None
    x1, y1, x2, y2 = (float(icon.get(key, "")) for key in ("x1", "y1", "x2", "y2"))
    assert (x1, y1) == (-x2, -y2) and max(x2, y2) == 100.0
    assert x2 / y2 == pytest.approx(image.width / image.height, rel=1e-4)  # six digits are written
    assert [box.get(key) for key in ("x1", "y2")] == [icon.get(key) for key in ("x1", "y2")]


def test_vectors_of_fmi2_are_sequences(tmp_path):
    d = Diagram("vectors", step=0.01)
    gain = d.add(Gain([1.0, 2.0, 3.0]), name="gain")
    d.connect(d.input("force", width=3), gain)
    d.output("moved", gain)
    root = read(d.export_fmu(tmp_path / "two.fmu"))[1]
    assert [t.get("matchingRule") for t in root.iter("Terminal")] == ["sequence"] * 2
    assert members(root)["force"] == [(f"force[{k}]", f"force[{k}]") for k in range(3)]
    root = read(d.export_fmu(tmp_path / "three.fmu", version="3.0"))[1]
    assert members(root) == {}  # an array is one variable
    assert validate_fmu(str(tmp_path / "three.fmu")) == []


def test_signals_of_a_block_are_a_terminal(tmp_path):
    d = plant()
    path = d.export_fmu(tmp_path / "p.fmu", outputs=["pendulum.angle", "pendulum.speed"])
    assert members(read(path)[1])["pendulum"] == [
        ("angle", "pendulum.angle"),
        ("speed", "pendulum.speed"),
    ]


def test_terminals_are_chosen_by_name(tmp_path):
    path = plant().export_fmu(
        tmp_path / "p.fmu",
        terminals={
            "shaft": ("plug", {"phi": "angle", "tau": "torque"}),
            "all": ["angle", "speed", "torque", "pendulum.damping"],
        },
    )
    assert check_fmu(path).warnings == []
    root = read(path)[1]
    assert [t.get("matchingRule") for t in root.iter("Terminal")] == ["plug", "bus"]
    assert members(root) == {
        "shaft": [("phi", "angle"), ("tau", "torque")],
        "all": [("angle", "angle"), ("speed", "speed"), ("torque", "torque"),
                ("damping", "pendulum.damping")],
    }  # fmt: skip
    root = read(plant().export_fmu(tmp_path / "none.fmu", terminals=False))[1]
    assert root.find("Terminals") is None and root.find("GraphicalRepresentation") is not None


@pytest.mark.parametrize(
    ("terminals", "message"),
    [
        ({"t": ["angel"]}, r"member `angel`, which is no variable of the FMU.*`angle`"),
        ({"t": "angle"}, "requires a list of variables, got 'angle'"),
        ({"t": []}, "has no members"),
        ({"t": ["angle", "angle"]}, "has a variable twice"),
        ({"t": ("socket", ["angle"])}, "matching rule 'socket'; it must be one of plug, bus"),
        ({"t": ["pendulum.angle"]}, "is a local variable: FMI allows"),
        (["angle"], "must be True, False or a mapping"),
    ],
)
def test_bad_terminals_are_refused(tmp_path, terminals, message):
    with pytest.raises(BiellaError, match=message):
        plant().export_fmu(tmp_path / "p.fmu", terminals=terminals, local=["pendulum.angle"])
    assert not (tmp_path / "p.fmu").exists()


def test_files_are_reproducible(tmp_path):
    one = plant().export_fmu(tmp_path / "one.fmu").read_bytes()
    assert plant().export_fmu(tmp_path / "two.fmu").read_bytes() == one


def test_a_diagram_that_is_too_large_to_draw_has_a_named_icon(tmp_path):
    d = Diagram("large", step=0.01)
    for k in range(160):
        d.add(Constant(1.0), name=f"c{k}")
    d.output("y", "c0")
    files, root = read(d.export_fmu(tmp_path / "large.fmu"))
    assert "terminalsAndIcons/icon.svg" not in files
    assert root.find("GraphicalRepresentation/Icon") is not None


def test_fmpy_runs_it(tmp_path):
    path = plant().export_fmu(tmp_path / "plant.fmu")
    assert fmpy.simulate_fmu(str(path), stop_time=0.01)["angle"][0] == 0.2
