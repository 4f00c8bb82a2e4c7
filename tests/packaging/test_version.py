"""One version number: that of ``biella/__init__.py``, wherever else a version is stated."""

import importlib.metadata
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

import biella
from biella import Diagram
from biella.blocks import Gain

REPOSITORY = Path(__file__).parents[2]


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_line_and_the_installed_package(tmp_path: Path) -> None:
    shown = run(sys.executable, "-m", "biella", "--version", cwd=tmp_path)
    assert shown == f"biella {biella.__version__}\n"
    installed = importlib.metadata.version("biella")
    assert installed == biella.__version__, "install the package again"


def test_the_metadata_of_a_wheel(tmp_path: Path) -> None:
    code = (
        "from hatchling.build import prepare_metadata_for_build_wheel as prepare; "
        f"print(prepare({str(tmp_path)!r}))"
    )
    name = run(sys.executable, "-c", code, cwd=REPOSITORY).strip()
    assert name == f"biella-{biella.__version__}.dist-info"
    lines = (tmp_path / name / "METADATA").read_text(encoding="utf-8").splitlines()
    assert f"Version: {biella.__version__}" in lines


def test_the_generation_tool_of_an_fmu(tmp_path: Path) -> None:
    d = Diagram("version", step=1e-3)
    u = d.input("u")
    d.output("y", d.add(Gain(2.0), name="gain"))
    d.connect(u, "gain")
    d.export_fmu(tmp_path / "version.fmu")
    with zipfile.ZipFile(tmp_path / "version.fmu") as archive:
        description = ElementTree.fromstring(archive.read("modelDescription.xml"))
    assert description.attrib["generationTool"] == f"biella {biella.__version__}"


def test_no_second_number_is_written_down() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert "version" not in project["project"]
