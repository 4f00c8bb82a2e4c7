"""`biella bind`: the check, the table, the file to start from."""

from __future__ import annotations

import json
import shutil

import pytest

from biella import cli
from biella.scheduler.binding._bind import check_binding

from . import speed_loop

pytestmark = pytest.mark.engine

RIG = """
[devices.board]
driver = "loopback"
delay = 3
receive.y = { unit = "N.m", scale = 0.5, limits = [-40, 40], saturate = true }
receive.both = { width = 2, limits = [-inf, 1] }
receive.spare = {}
send.reference = { safe = 1 }
send.measurement = { safe = 2, offset = 3 }
send.aux = { safe = 0, width = 2, unused = true }
[blocks.pid]
device = "board"
[signals]
pair = "board.both"
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(speed_loop.__file__, tmp_path / "loop.py")
    (tmp_path / "rig.toml").write_text(RIG)
    return tmp_path


def test_a_good_binding_is_shown_as_a_table(files, capsys):
    assert cli.main(["bind", "loop.py", "rig.toml", "--check"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
    assert rows == [
        ["pid.reference", "→", "board.reference", "rad/s", "1", "0", "", "1", "loopback"],
        ["pid.measurement", "→", "board.measurement", "rad/s", "1", "3", "", "2", "loopback"],
        ["pid.y", "←", "board.y", "N.m", "0.5", "0", "-40 … 40 (held)", "", "loopback"],
        ["pair.y[0]", "←", "board.both[0]", "rad/s", "1", "0", "-∞ … 1", "", "loopback"],
        ["pair.y[1]", "←", "board.both[1]", "rad/s", "1", "0", "-∞ … 1", "", "loopback"],
        ["board", "loopback", "never", "stop",
         "delay = 3, jitter = 0, loss = 0.0, noise = 0.0"],
    ]  # fmt: skip
    assert lines[-2:] == [
        "diagnostic: [devices.board.receive.spare]: spare is received but not used.",
        "no problems in rig.toml",
    ]


def test_all_problems_are_reported_and_the_exit_code_is_1(files, capsys):
    (files / "rig.toml").write_text(RIG.replace("delay", "dely").replace("pair =", "pear ="))
    assert cli.main(["bind", "loop.py", "rig.toml", "--check"]) == 1
    error = capsys.readouterr().err
    assert "2 problems in rig.toml:\n  1. [devices.board] dely: is not an option of the" in error
    assert "  2. [signals] pear: there is no signal `pear`. Did you mean `pair`" in error


def test_the_same_as_json(files, capsys):
    assert cli.main(["bind", "loop.py", "rig.toml", "--check", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["problems"] == []
    assert told["channel_maps"][2] == {
        "port": "pid.y", "direction": "from", "channel": "board.y", "unit": "N.m", "scale": 0.5,
        "offset": 0.0, "limits": [-40.0, 40.0], "saturate": True, "safe": None,
        "driver": "loopback",
    }  # fmt: skip
    (files / "rig.toml").write_text("[bloks]")
    assert cli.main(["bind", "loop.py", "rig.toml", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["problems"] == [
        "[bloks]: is not a table of a binding. Did you mean `blocks`? Tables: run, devices, "
        "blocks, "
        "signals."
    ]


@pytest.mark.parametrize("block", ["pid", "twice", "ref"])
def test_a_template_is_a_binding_without_problems(files, block, capsys):
    assert cli.main(["bind", "loop.py", "new.toml", "--template", block]) == 0
    assert capsys.readouterr().out == "wrote new.toml\n"
    found = check_binding(cli.load_diagram(files / "loop.py"), files / "new.toml")
    assert found.problems == []
    assert found.warnings == []
    ports = {mapping.port for mapping in found.channel_maps}
    assert (
        ports
        == {
            "pid": {"pid.reference", "pid.measurement", "pid.y"},
            "twice": {"twice.u"},
            "ref": {"ref.y"},
        }[block]
    )
    assert {mapping.unit for mapping in found.channel_maps} <= {"rad/s", "N.m", None}
    assert cli.main(["bind", "loop.py", "new.toml", "--template", block]) == 1
    assert "`new.toml` already exists" in capsys.readouterr().err


def test_a_template_of_nothing_is_refused(files, capsys):
    assert cli.main(["bind", "loop.py", "--template", "pdi"]) == 1
    assert "there is no block `pdi`. Did you mean `pid`?" in capsys.readouterr().err
    assert cli.main(["bind", "loop.py"]) == 1
    assert "specify the binding to check" in capsys.readouterr().err
    assert cli.main(["bind", "loop.py", "--template", "pid"]) == 0
    assert capsys.readouterr().out.startswith("# `pid` of 'loop' as a real board")
