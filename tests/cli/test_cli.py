"""The command line, run as a user runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from biella import cli

from .command_files import SLOW, run

pytestmark = pytest.mark.engine
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "missing.py"], "there is no file"),
        (["simulate", "{loop}", "--set", "k.kk=3"], "no parameter or input `k.kk`"),
        (["simulate", "{loop}", "--set", "k.k"], "--set requires PATH=VALUE"),
        (["simulate", "{loop}", "--set", "k.k=three"], "is not a number"),
        (
            ["simulate", "{loop}", "--set", "k.k=0,8"],
            "expects one number, got 2: (0, 8). The decimal separator",
        ),
        (["simulate", "{loop}", "--out", "nowhere/x.csv"], "there is no folder `nowhere`"),
        (["simulate", "{loop}", "--plot", "nowhere/x.png"], "there is no folder `nowhere`"),
        (["simulate", "{loop}", "--until", "nan"], "`until` must be a time in s, got nan"),
        (["simulate", "{loop}", "--until", "inf"], "`until` must be a time in s, got inf"),
        (["run-realtime", "{loop}", "--until", "nan"], "`until` must be a time in s"),
        (["run-realtime", "{loop}", "--until", "1", "--spin", "-1"], "spin must be a time in s"),
        (
            ["run-realtime", "{loop}", "--until", "1", "--warmup-ticks", "-1"],
            "warmup_ticks must be 0 or more",
        ),
        (["simulate", "."], "is a folder: specify a Python file"),
        (
            ["bind", "{loop}", "nowhere/rig.toml", "--template", "k"],
            "cannot read or write `nowhere",
        ),
        (["simulate", "{loop}", "--out", "x.txt"], "--out requires a file .csv, .mf4 or .h5"),
        (["simulate", "{loop}", "--solver", "rk9"], "unknown solver `rk9`"),
        (["simulate", "{loop}", "--record", "xx"], "no signal `xx`"),
        (["export", "{loop}", "--input", "reff"], "Did you mean `ref`"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_1(loop, capsys, arguments, message):
    assert run(*(a.format(loop=loop) for a in arguments)) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_a_file_without_a_diagram(tmp_path, capsys):
    path = tmp_path / "empty.py"
    path.write_text("x = 1\n")
    assert run("check", path) == 1
    assert "does not define diagram()" in capsys.readouterr().err
    path.write_text("def diagram(:\n")
    assert run("check", path) == 1
    assert "line 1" in capsys.readouterr().err


def test_an_exception_in_a_block_shows_the_users_own_traceback(tmp_path, capsys):
    path = tmp_path / "bad.py"
    path.write_text(SLOW.replace("time.sleep(0.005)", "1 / 0"))
    assert run("simulate", path) == 1
    text = capsys.readouterr().err
    assert "`slow` (Slow) raised ZeroDivisionError at t = 0 s" in text
    assert "bad.py" in text and "1 / 0" in text and "engine.py" not in text


def test_every_command_is_in_its_page_with_an_example():
    page = (ROOT / "docs" / "reference" / "command_line.md").read_text()
    (commands,) = (
        action.choices for action in cli._parser()._actions if isinstance(action.choices, dict)
    )
    listed = re.findall(r"^\| `([\w-]+)` \|", page.partition("## In scripts")[0], re.M)
    assert sorted(listed) == sorted(commands)
    for name, parser in commands.items():
        assert parser.epilog.startswith(f"example: biella {name}"), name


def test_json_is_all_that_is_printed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = str(ROOT / "examples" / "01_first_loop.py")

    def told(*arguments: str) -> Any:
        assert cli.main(list(arguments)) == 0
        return json.loads(capsys.readouterr().out)

    assert "speed.y" in told("simulate", example, "--json", "--out", "run.csv", "--plot")["signals"]
    check = told("check", example, "--json")
    assert check["step"] == 1e-3 and "speed" in [block["path"] for block in check["blocks"]]
    assert cli.main(["export", example, "-o", "loop.fmu", "--output-signal", "speed"]) == 0
    capsys.readouterr()
    info = told("info", "loop.fmu", "--json")
    assert "speed" in [item["name"] for item in info["variables"]]
    assert told("validate", "loop.fmu", "--json")["problems"] == []
    run = told("simulate", "loop.fmu", "--until", "0.5", "--json", "--out", "fmu.csv")
    assert run["end"] == pytest.approx(0.5) and Path("fmu.csv").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nowhere\n", "line 1: ModuleNotFoundError: No module named 'nowhere'"),
        ("def diagram():\n    return 1 / 0\n", "line 2: ZeroDivisionError: division by zero"),
        (
            "from biella.blocks import PID\ndef diagram():\n    PID(kpp=1.0)\n",
            "line 3: TypeError: PID.__init__() got an unexpected keyword argument 'kpp'",
        ),
        ("def diagram(:\n", "line 1: invalid syntax"),
        ("from biella.blocks import Gian\n", "line 1: ImportError: cannot import name 'Gian'"),
        (
            "from biella.blocks import Gain\n\ndef diagram():\n    Gain(1.0, unit='Newton')\n",
            "line 4: Unit `Newton`, at character 1: unknown unit `Newton`. Did you mean `N`?",
        ),
    ],
)
def test_a_mistake_in_the_users_own_file_is_reported_with_its_line(tmp_path, capsys, text, message):
    file = tmp_path / "mine.py"
    file.write_text(text)
    assert cli.main(["check", str(file)]) == 1
    said = capsys.readouterr().err
    assert f"mine.py`, {message}" in said and "Traceback" not in said


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("from biella.blocks import Gian", "Gain"),
        ("import biella\nbiella.Diagram('x').ad(3)", "add"),
        ("from biella.blocks import Gain\nGain(1.0, untis='m')", "unit"),
        ("from biella.blocks import Asynchronous\nAsynchronous(None, perod=1.0)", "period"),
        ("from biella import Fmu\nFmu('a.fmu', parmeters={})", "parameters"),
    ],
)
def test_a_name_that_is_not_there_is_reported_with_what_was_meant(tmp_path, capsys, text, meant):
    file = tmp_path / "mine.py"
    file.write_text(text)
    assert run("check", file) == 1
    assert f"Did you mean `{meant}`" in capsys.readouterr().err


def test_without_a_command_help_is_shown(capsys):
    assert run() == 2
    assert "demo" in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        run("--version")
    assert left.value.code == 0 and re.match(r"biella \d", capsys.readouterr().out)


def test_ctrl_c_before_there_is_anything_to_show_is_no_traceback(loop, capsys, monkeypatch):
    def interrupt(options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("biella.cli._diagrams.load_diagram", interrupt)
    assert run("check", loop) == 130
    assert capsys.readouterr().err == "biella: interrupted.\n"
