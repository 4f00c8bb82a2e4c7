"""`biella check`, `draw` and `export`."""

from __future__ import annotations

import json

import pytest

from .command_files import run

pytestmark = pytest.mark.engine


def test_check_prints_the_schedule(loop, capsys):
    assert run("check", loop) == 0
    text = capsys.readouterr().out
    assert "first loop: 4 blocks, step 0.01 s, solver rk4" in text
    assert text.index(" error ") < text.index(" k ")


def test_draw_and_export(loop, tmp_path):
    assert run("draw", loop, "-o", tmp_path / "loop.svg") == 0
    assert "<svg" in (tmp_path / "loop.svg").read_text()
    assert run("export", loop, "-o", tmp_path / "loop.fmu", "--input", "ref") == 0
    assert (tmp_path / "loop.fmu").exists()


def test_export_for_fmi_3(loop, tmp_path, capsys):
    fmu = tmp_path / "loop.fmu"
    options = ["--fmi", "3", "--about", "author=A. Author", "--about", "license=MIT", "--local"]
    assert run("export", loop, "-o", fmu, "--input", "ref", *options, "error*") == 0
    assert run("validate", fmu) == 0
    capsys.readouterr()
    assert run("info", fmu, "--all") == 0
    text = capsys.readouterr().out
    assert "3.0, co-simulation" in text and "A. Author" in text
    assert "hasEventMode" in text
    assert "local variables (1)" in text and "error.y" in text
    for wrong, message in (
        (["--about", "MIT"], "expects KEY=TEXT"),
        (["--about", "autor=A"], "Did you mean `author`"),
        (["--local", "nothing"], "no signal `nothing`"),
    ):
        assert run("export", loop, "-o", fmu, *wrong) != 0
        assert message in capsys.readouterr().err


def test_what_is_written_without_a_name_goes_to_the_current_folder(loop, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert run("draw", loop) == 0 and run("export", loop) == 0
    assert sorted(path.name for path in here.iterdir()) == ["loop.fmu", "loop.svg"]


MACHINE = """
from biella import Diagram, Subsystem
from biella.blocks import StateMachine

def diagram():
    heater = StateMachine(outputs=["power"])
    off, on = heater.state("off", power=0), heater.state("on", power=1)
    heater.transition(off, on, after=1)
    heater.transition(on, off, after=1)
    inside = Diagram("inside")
    inside.add(heater, "heater")
    d = Diagram("room", step=0.1)
    d.add(Subsystem(inside), "unit")
    return d
"""


def test_machines_in_a_file(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "room.py").write_text(MACHINE)
    assert run("simulate", "room.py", "--until", "0.5", "--json") == 0
    assert json.loads(capsys.readouterr().out)["signals"]["unit.heater.state"] == {
        "unit": None, "names": ["off", "on"], "last": 1.0, "least": 1.0, "most": 1.0
    }  # fmt: skip
    assert run("draw", "room.py") == 0
    assert run("draw", "room.py", "--machine", "unit.heater") == 0
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == ["room.svg", "unit.heater.svg"]
    assert run("draw", "room.py", "--machine", "unit.heter") == 1
    told = capsys.readouterr().err
    assert "no StateMachine `unit.heter`" in told and "Did you mean `unit.heater`" in told
