"""What is in an exported FMU, and what an export refuses."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu
from lxml import etree

from biella import BiellaError, BiellaWarning, Diagram, DiagramError, Fmu, Subsystem, simulate
from biella.blocks import Constant, Gain, Integrator, Saturation, StateSpace, Step, Sum
from biella.blocks.multibody.mechanisms import slider_crank
from biella.cli import main
from biella.errors import FmuError
from biella.fmu.exporter import platforms
from biella.fmu.exporter.elf import exported_symbols, minimum_glibc
from biella.scheduler.engine.library import library_path

from .conftest import Exported, make_crank


def read_xml(path: Path) -> ET.Element:
    with zipfile.ZipFile(path) as archive:
        return ET.fromstring(archive.read("modelDescription.xml"))


def guid(path: Path) -> str:
    return read_xml(path).get("guid", "")


def lag(name: str = "lag", *, gain: float = 2.0, doc: str = "", unit: str | None = None) -> Diagram:
    d = Diagram(name)
    u = d.input("u", doc=doc, unit=unit)
    k = d.add(Gain(gain), name="k")
    x = d.add(Integrator(0.5), name="x")
    d.connect(u, k, x)
    d.output("y", k)
    d.output("sum", x)
    return d


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
    ]
    assert crank.library.read_bytes() == library_path().read_bytes()


def test_neither_fmpy_nor_the_schema_of_the_standard_complain(crank: Exported) -> None:
    assert validate_fmu(str(crank.path)) == []
    schema = Path(fmpy.__file__).parent / "schema" / "fmi2" / "fmi2ModelDescription.xsd"
    description = etree.parse(crank.folder / "modelDescription.xml")
    etree.XMLSchema(file=str(schema)).assertValid(description)


def test_the_same_input_gives_the_same_bytes_anywhere(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    a = make_crank().export_fmu(tmp_path / "a.fmu", inputs=["ref"])
    b = make_crank().export_fmu(tmp_path / "sub" / "b.fmu", inputs=["ref"])
    assert a.read_bytes() == b.read_bytes()


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


# -- the description


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


def test_infinite_limits_are_spelled_as_xml_does(tmp_path: Path) -> None:
    d = Diagram("limit")
    d.connect(d.input("u"), d.add(Saturation(-np.inf, 5.0), name="limit"))
    d.output("y", d["limit"])
    path = d.export_fmu(tmp_path / "x.fmu")
    assert variables(path)["limit.lower"][0].get("start") == "-INF"
    assert validate_fmu(str(path)) == []


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


# -- parameters


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
        ({"k.k": [1.0, 2.0]}, "`k.k` wants one number"),
        ({"k.k": "much"}, "`k.k` wants numbers"),
        ({"k.k": np.nan}, "`k.k` must be finite"),
        ({"k.*": 1.0}, r"no parameter `k\.\*`"),
        ({"kk": None}, "no parameter `kk`"),
        ("k.k", r"is a list, such as \['k.k'\]"),
    ]:
        with pytest.raises(BiellaError, match=message):
            lag().export_fmu(tmp_path / "y.fmu", parameters=wrong)  # type: ignore[arg-type]
    assert not (tmp_path / "y.fmu").exists()


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
        f"`{path}` (Foreign) cannot leave in an FMU: it talks to a board. Bind it in the program "
        "that runs the FMU instead."
        for path in ("sub.board", "board")
    ]
    assert list(tmp_path.iterdir()) == []


# -- binaries


def test_only_fmi_and_engine_functions_are_seen_from_outside(crank: Exported) -> None:
    """-fvisibility=hidden: two FMUs in one process do not meet."""
    names = exported_symbols(crank.library.read_bytes())
    assert len([name for name in names if name.startswith("fmi2")]) == 34
    assert [name for name in names if not re.match(r"(fmi2[A-Z]|bl_)", name)] == []


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed")
def test_the_reader_of_elf_files_agrees_with_readelf(crank: Exported) -> None:
    def listed(*options: str) -> str:
        command = ["readelf", "--wide", *options, str(crank.library)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    library = crank.library.read_bytes()
    versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", listed("--version-info"))
    assert minimum_glibc(library) == "{}.{}".format(*max((int(a), int(b)) for a, b in versions))
    symbols = re.findall(r"(?:FUNC|OBJECT).* (?!UND)\S+ (\w+)\n", listed("--dyn-syms"))
    assert exported_symbols(library) == sorted(symbols)
    # -Bsymbolic: a library calls its own functions, whatever else the process has loaded.
    assert "SYMBOLIC" in listed("--dynamic")


def test_the_reader_of_elf_files_refuses_others() -> None:
    for data in (b"", b"MZ" + bytes(100), b"\x7fELF\x01\x01" + bytes(100)):
        assert minimum_glibc(data) is None
        assert exported_symbols(data) == []


def test_the_export_says_which_glibc_it_needs(crank: Exported) -> None:
    least = minimum_glibc(crank.library.read_bytes())
    assert least is not None
    description = read_xml(crank.path).get("description", "")
    assert f"On linux64 it needs glibc {least} or newer." in description
    page = (crank.folder / "documentation" / "index.html").read_text(encoding="utf-8")
    assert f"linux64 (glibc {least} or newer)" in page


def test_platforms_that_are_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for given, message in [
        (["linux32"], "unknown platform `linux32`. Did you mean `linux64`"),
        ([], "`platforms` is empty"),
        ("win64", r"is a list, such as \['win64'\]"),
    ]:
        with pytest.raises(FmuError, match=message):
            lag().export_fmu(tmp_path / "x.fmu", platforms=given)
    monkeypatch.setattr(platforms, "find_zig_compiler", lambda *_: None)
    with pytest.raises(FmuError, match=r"for win64, biella needs ziglang.*biella\[zig\]"):
        lag().export_fmu(tmp_path / "x.fmu", platforms=["linux64", "win64"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(platforms.this_platform() != "linux64", reason="not on Linux")
def test_without_ziglang_the_engine_that_runs_here_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platforms, "find_zig_compiler", lambda *_: None)
    a = lag().export_fmu(tmp_path / "a.fmu", platforms=["linux64"])
    b = lag().export_fmu(tmp_path / "b.fmu")
    assert a.read_bytes() == b.read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed")
def test_other_platforms_are_compiled_once_and_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["linux64", "win64", "darwin64"]
    engines = []
    for n in range(2):
        # Zig keeps results of its own: another folder for them makes it link again.
        monkeypatch.setenv("ZIG_LOCAL_CACHE_DIR", str(tmp_path / f"zig{n}"))
        monkeypatch.setenv("BIELLA_CACHE", str(tmp_path / f"cache{n}"))
        assert platforms.list_uncompiled(names) == names
        engines.append(platforms.find_engines(names))
        assert platforms.list_uncompiled(names) == []
    assert engines[0] == engines[1]
    assert minimum_glibc(engines[0]["linux64"]) == "2.17"
    assert engines[0]["win64"][:2] == b"MZ"
    assert engines[0]["darwin64"][:4] == b"\xcf\xfa\xed\xfe"

    def refuse(*_: object, **__: object) -> Path:
        raise AssertionError("compiled again")

    monkeypatch.setattr(platforms, "build", refuse)
    path = lag().export_fmu(tmp_path / "x.fmu", platforms=names)
    assert fmpy.supported_platforms(str(path)) == ["c-code", "darwin64", "linux64", "win64"]
    assert validate_fmu(str(path)) == []
    result = fmpy.simulate_fmu(str(path), start_values={"u": 1.5}, stop_time=0.01)
    assert result["y"][-1] == 3.0


# -- for people


class Tags(HTMLParser):
    """Notes what a page has, and that every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows = 0
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.rows += tag == "tr"
        self.links += [str(v) for k, v in attrs if k in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_complete_in_itself(crank: Exported) -> None:
    text = (crank.folder / "documentation" / "index.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert tags.links == []
    owners = {name.partition("[")[0] for name in crank.references}
    assert tags.rows == len(owners) + 3  # a row each, and three heads
    for name in owners:
        assert f"<td><code>{name}</code>" in text
    assert "Given from outside instead: <code>ref</code>." in text
    for words in ("<svg", "rad/s", "0.001 s", "rk4", "controlled_crank.fmu", "N.m"):
        assert words in text
    assert (crank.folder / "model.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_a_diagram_too_large_to_be_read_is_not_drawn(tmp_path: Path) -> None:
    d = lag()
    for n in range(200):
        d.connect(d["u"], d.add(Gain(1.0), name=f"g{n}"))
    path = d.export_fmu(tmp_path / "x.fmu")
    with zipfile.ZipFile(path) as archive:
        assert b"<svg" not in archive.read("documentation/index.html")
        assert archive.read("model.png")[:4] == b"\x89PNG"


def test_an_export_does_not_import_matplotlib(tmp_path: Path) -> None:
    """It takes longer than everything else together."""
    import sys

    program = (
        "import sys\nfrom biella import Diagram\nfrom biella.blocks import Gain\n"
        "d = Diagram('x')\nd.connect(d.input('u'), d.add(Gain(2.0), name='k'))\n"
        "d.output('y', d['k'])\nd.export_fmu(sys.argv[1])\n"
        "print([m for m in sys.modules if m == 'matplotlib'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "x.fmu")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


# -- mechanisms


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


# -- the command line


def write(folder: Path, text: str) -> Path:
    path = folder / "model.py"
    path.write_text(text)
    return path


SYSTEM = """
from biella.blocks.multibody.mechanisms import slider_crank
def system():
    return slider_crank(planar=True)
"""
DIAGRAM = """
from biella import Diagram
from biella.blocks import Constant, Gain
def diagram():
    d = Diagram("x")
    d.connect(d.add(Constant(3.0), name="ref"), d.add(Gain(2.0), name="k"))
    return d
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
        (DIAGRAM, ["--step", "1e-3"], "--step is for a file with system()"),
        (DIAGRAM, ["--platforms", "linux64,amiga"], "unknown platform `amiga`"),
        (DIAGRAM, ["--parameter", "k.k=much"], "--parameter k.k: `much` is no number"),
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
