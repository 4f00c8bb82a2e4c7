"""What is in an exported FMU, and what an export refuses."""

from __future__ import annotations

import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu
from lxml import etree

from biella import BiellaWarning, Diagram, DiagramError, Subsystem
from biella.blocks import Constant, Gain, Integrator, Saturation, Step, Sum
from biella.cli import main
from biella.scheduler.engine._library import library_path

from .conftest import EXAMPLES, Exported, lag, load, make_crank, read_xml

# -- the archive


def test_what_is_inside(crank: Exported) -> None:
    with zipfile.ZipFile(crank.path) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
    assert names == [
        "binaries/linux64/controlled_crank.so",
        "documentation/index.html",
        "model.png",
        "modelDescription.xml",
        "resources/plan.bin",
        "sources/buildDescription.xml",
        "sources/controlled_crank.c",
        "terminalsAndIcons/icon.png",
        "terminalsAndIcons/icon.svg",
        "terminalsAndIcons/terminal.png",
        "terminalsAndIcons/terminalsAndIcons.xml",
    ]
    assert crank.library.read_bytes() == library_path().read_bytes()


def test_neither_fmpy_nor_the_schema_of_the_standard_complain(crank: Exported) -> None:
    assert validate_fmu(str(crank.path)) == []
    schema = Path(fmpy.__file__).parent / "schema" / "fmi2" / "fmi2ModelDescription.xsd"
    description = etree.parse(crank.folder / "modelDescription.xml")
    etree.XMLSchema(file=str(schema)).assertValid(description)


INTERNAL = {
    "05_co_simulation": ["left", "right"],
    "07_clearance_fourbar": ["plant"],
    "08_lubricated_crank_pin": ["plant"],
}
"""Examples that model exchange refuses, with the blocks that have an internal solver."""
CLOCKED = ("01", "02", "04", "10", "11", "12", "15", "16", "17", "21", "22", "24")
"""Numbers of the examples with sampled blocks, whose rates can be clocks."""
QUICK = ("01_first_loop", "08_lubricated_crank_pin")


@pytest.mark.filterwarnings("ignore::biella.BiellaWarning")
@pytest.mark.parametrize(
    "example",
    [pytest.param(p, id=p.stem, marks=[] if p.stem in QUICK else pytest.mark.slow)
     for p in EXAMPLES],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["cs", "me"])
@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_fmpy_finds_nothing_in_any_kind_of_any_example(
    example: Path, version: str, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "example.fmu"
    if kind == "me" and example.stem in INTERNAL:
        with pytest.raises(DiagramError) as caught:
            load(example).export_fmu(path, version=version, kind=kind)
        for block in INTERNAL[example.stem]:
            refused = f"`{block}` (Plant) cannot be exported for model exchange: it advances with"
            assert refused in str(caught.value)
        assert not path.exists()
        return
    load(example).export_fmu(path, version=version, kind=kind)
    assert validate_fmu(str(path)) == []
    description = fmpy.read_model_description(str(path))
    assert description.fmiVersion == version
    has = (description.coSimulation is not None, description.modelExchange is not None)
    assert has == (kind == "cs", kind == "me")


@pytest.mark.filterwarnings("ignore::biella.BiellaWarning")
@pytest.mark.parametrize(
    "example",
    [pytest.param(p, id=p.stem, marks=[] if p.stem in QUICK else pytest.mark.slow)
     for p in EXAMPLES],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["cs", "me", "both"])
def test_fmpy_finds_nothing_with_the_options_of_fmi_3(
    example: Path, kind: str, tmp_path: Path
) -> None:
    """Every other signal an output, the rest local variables, all of other types; with clocks."""
    if kind != "cs" and example.stem in INTERNAL:
        with pytest.raises(DiagramError, match="internal solver"):
            load(example).export_fmu(tmp_path / "x.fmu", version="3.0", kind=kind)
        return
    model = load(example).compile()
    declared = {port.slot for port in model.outputs.values()}
    ports = [p.path for b in model.blocks for p in b.outputs if p.slot not in declared]
    clocks = example.stem[:2] in CLOCKED
    path = tmp_path / "example.fmu"
    types: dict[str, str] = {}
    for _ in range(2):  # the first export tells names and types; the second leaves none of these
        load(example).export_fmu(
            path, version="3.0", kind=kind, outputs=ports[::2], local=ports[1::2], types=types,
            clocks=clocks, sources=False,
        )  # fmt: skip
        found = fmpy.read_model_description(str(path)).modelVariables
        types = {
            v.name: {"Float64": "Float32", "Int64": "Int32"}[v.type]
            for v in found
            if v.type in ("Float64", "Int64")
            and v.causality in ("output", "parameter", "local")
            and not v.name.startswith(("states.", "der(", "event_indicators"))
        }
    assert validate_fmu(str(path)) == []
    assert types == {}
    assert any(v.type == "Float32" for v in found)
    assert any(v.type == "Clock" for v in found) == clocks


def test_the_same_input_gives_the_same_bytes_anywhere(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    a = make_crank().export_fmu(tmp_path / "a.fmu", inputs=["ref"])
    b = make_crank().export_fmu(tmp_path / "sub" / "b.fmu", inputs=["ref"])
    assert a.read_bytes() == b.read_bytes()


# -- the description


def variables(path: Path) -> dict[str, ET.Element]:
    return {str(v.get("name")): v for v in read_xml(path).iter("ScalarVariable")}


def test_infinite_limits_are_spelled_as_xml_does(tmp_path: Path) -> None:
    d = Diagram("limit")
    d.connect(d.input("u"), d.add(Saturation(-np.inf, 5.0), name="limit"))
    d.output("y", d["limit"])
    path = d.export_fmu(tmp_path / "x.fmu")
    assert variables(path)["limit.lower"][0].get("start") == "-INF"
    assert validate_fmu(str(path)) == []


def nested(kind: str) -> Diagram:
    """Subsystems whose inputs have units, before and behind a source."""
    inner = Diagram("inner")
    gain = inner.add(Gain(1.0, unit="N"), name="gain")
    inner.connect(inner.input("v", unit="m/s", default=None), gain)
    inner.output("f", gain)
    d = Diagram("outer")
    box = d.add(Subsystem(inner), name="box") if kind == "before" else None
    reference = d.add(Step(to=1.0, unit="m/s"), name="reference")
    box = box or d.add(Subsystem(inner), name="box")
    push = d.add(Gain(1.0, unit="m/s2"), name="push")
    speed = d.add(Integrator(), name="speed")
    d.connect(reference, push)
    d.connect(push, speed)
    d.connect(reference if kind == "direct" else speed, box["v"])
    d.output("force", box["f"])
    return d


@pytest.mark.parametrize("kind", ["before", "behind", "direct"])
def test_a_source_beside_a_subsystem_becomes_an_input(tmp_path: Path, kind: str) -> None:
    path = nested(kind).export_fmu(tmp_path / "x.fmu", inputs=["reference"])
    run = fmpy.simulate_fmu(str(path), stop_time=1.0, start_values={"reference": 2.0})
    assert run["force"][-1] == pytest.approx(2.0, abs=3e-3)


# -- parameters


# -- what cannot leave


class Foreign(Gain):
    export_blocker = "it talks to a board. Bind it in the program that runs the FMU instead"


def test_blocks_that_stay_are_named_each_with_what_to_do(tmp_path: Path) -> None:
    inner = Diagram("inner")
    inner.connect(inner.input("u"), inner.add(Foreign(1.0), name="board"))
    inner.output("y", inner["board"])
    d = lag()
    d.connect(d["u"], d.add(Subsystem(inner), name="sub"))
    d.connect(d["u"], d.add(Foreign(1.0), name="board"))
    with pytest.raises(DiagramError) as caught:
        d.export_fmu(tmp_path / "x.fmu")
    assert caught.value.problems == [
        f"`{path}` (Foreign) cannot be exported in an FMU: it talks to a board. Bind it in the "
        f"program "
        "that runs the FMU instead."
        for path in ("sub.board", "board")
    ]
    assert list(tmp_path.iterdir()) == []


# -- binaries


# -- for people


# -- mechanisms


# -- the command line


def write(folder: Path, text: str) -> Path:
    path = folder / "model.py"
    path.write_text(text)
    return path


DIAGRAM = """
from biella import Diagram
from biella.blocks import Constant, Gain
def diagram():
    d = Diagram("x")
    d.connect(d.add(Constant(3.0), name="ref"), d.add(Gain(2.0), name="k"))
    return d
"""


@pytest.mark.filterwarnings("default::biella.BiellaWarning")
def test_the_command_line_exports_a_diagram(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, DIAGRAM)
    target = tmp_path / "y.fmu"
    options = ["--input", "ref", "--parameter", "k.k=5", "-o", str(target)]
    assert main(["export", str(file), *options]) == 0
    assert "no outputs" in capsys.readouterr().err
    assert variables(target)["k.k"][0].get("start") == "5.0"
    assert main(["export", str(file), "--output-signal", "k", "-o", str(target)]) == 0
    assert capsys.readouterr().err == ""
    assert variables(target)["k"].get("causality") == "output"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", [], "defines neither diagram() nor system()"),
        ("system = 3", [], "system() of"),
        (DIAGRAM, ["--step", "1e-3"], "--step requires a file with system()"),
        (DIAGRAM, ["--platforms", "linux64,amiga"], "unknown platform `amiga`"),
        (DIAGRAM, ["--parameter", "k.k=much"], "--parameter k.k: `much` is not a number"),
    ],
)
def test_the_command_line_teaches(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    options: list[str],
    message: str,
) -> None:
    assert main(["export", str(write(tmp_path, text)), *options]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "model.fmu").exists()


def test_a_step_and_a_sum_leave_too(tmp_path: Path) -> None:
    """A source that is not named as an input stays inside and gives what it gave."""
    d = Diagram("inside")
    total = d.add(Sum("++"), name="total")
    d.connect(d.add(Step(at=0.005, to=2.0), name="step"), total["u1"])
    d.connect(d.input("u"), total["u2"])
    d.output("y", total)
    path = d.export_fmu(tmp_path / "x.fmu")
    result = fmpy.simulate_fmu(
        str(path), start_values={"u": 1.0}, stop_time=0.01, output_interval=1e-3
    )
    assert result["y"].tolist() == [1.0] * 5 + [3.0] * 6


def test_an_fmu_without_outputs_is_warned_of(tmp_path: Path) -> None:
    d = Diagram("mute")
    d.add(Constant(1.0), name="c")
    with pytest.warns(BiellaWarning, match=r"no outputs: declare them with Diagram\.output"):
        d.export_fmu(tmp_path / "mute.fmu", sources=False)
    d.export_fmu(tmp_path / "heard.fmu", outputs=["c"], sources=False)
