"""The command line, run as a user runs it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Group
from rich.table import Table

from biella import cli
from biella.cli._tables import print_tables
from biella.scheduler.results._result import Result

pytestmark = pytest.mark.engine
ROOT = Path(__file__).parents[1]

LOOP = """
from biella import Diagram
from biella.blocks import Constant, Gain, Integrator, Sum

def diagram():
    d = Diagram("first loop", step=0.01)
    ref = d.add(Constant(1.0), name="ref")
    error = d.add(Sum("+-"), name="error")
    k = d.add(Gain(2.0), name="k")
    x = d.add(Integrator(), name="x")
    d.connect(ref, error["u1"])
    d.connect(x, error["u2"])
    d.connect(error, k)
    d.connect(k, x)
    d.output("x", x)
    return d
"""

SLOW = """
import time
from biella import Diagram
from biella.blocks import PythonBlock

class Slow(PythonBlock):
    def __init__(self):
        super().__init__(outputs=["y"], period=0.01)
    def output(self, t, x, u):
        time.sleep(0.005)
        return t

def diagram():
    d = Diagram("slow", step=0.01)
    d.add(Slow(), name="slow")
    return d
"""


@pytest.fixture
def loop(tmp_path):
    path = tmp_path / "loop.py"
    path.write_text(LOOP)
    return path


def run(*arguments):
    return cli.main([str(a) for a in arguments])


def test_run_writes_csv_and_plot(loop, tmp_path, capsys):
    out, picture = tmp_path / "x.csv", tmp_path / "x.png"
    code = run("simulate", loop, "--until", 2, "--set", "k.k=3", "--out", out, "--plot", picture)
    assert code == 0
    assert out.read_text().splitlines()[0].startswith("time [s],")
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert "wrote" in capsys.readouterr().out


DRIVEN = """
from biella import Diagram
from biella.blocks import Integrator, Step

def diagram():
    d = Diagram("driven", step=0.01)
    x = d.add(Integrator(), name="x")
    d.connect(d.input("ref", unit="m", default=5.0), x)
    d.connect(d.add(Step(at=0.1, to=3.0), name="step"), d.add(Integrator(), name="w"))
    return d
"""


def test_run_plays_a_table_into_inputs_and_sources(tmp_path, capsys):
    file, table, out = tmp_path / "driven.py", tmp_path / "in.csv", tmp_path / "out.csv"
    file.write_text(DRIVEN)
    table.write_text("time,ref [m],step\n0,0,1\n1,2,1\n")
    command = ["simulate", file, "--until", 1, "--step", 0.02, "--out", out]
    assert run(*command, "--input", table) == 0
    last = out.read_text().splitlines()
    names, values = last[0].split(","), [float(cell) for cell in last[-1].split(",")]
    found = dict(zip(names, values, strict=True))
    assert found["time [s]"] == 1.0 and len(last) == 52
    assert found["x.y [m.s]"] == pytest.approx(1.0, abs=1e-12)
    assert found["w.y"] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("time,rfe\n0,1\n1,1\n", [], "no input or source block of that name. Did you mean `ref`"),
        ("time,x\n0,1\n1,1\n", [], "It has: ref, step."),
        ("time,ref [s]\n0,1\n1,1\n", [], "is in s, but the input is in m"),
        ("time,ref[0],ref[1]\n0,1,1\n1,1,1\n", [], "`ref` has 1 elements, but"),
        ("0,1\n1,1\n", [], "must contain the column names"),
    ],
)
def test_run_explains_a_wrong_table(tmp_path, capsys, table, options, message):
    (tmp_path / "driven.py").write_text(DRIVEN)
    (tmp_path / "in.csv").write_text(table)
    assert run("simulate", tmp_path / "driven.py", "--input", tmp_path / "in.csv", *options) == 1
    assert message in capsys.readouterr().err


def test_run_streams_to_hdf5(loop, tmp_path):
    assert run("simulate", loop, "--until", 1, "--out", tmp_path / "x.h5", "--record", "x") == 0
    assert Result.from_hdf5(tmp_path / "x.h5").paths == ["x.y"]


def test_run_writes_mdf4(loop, tmp_path):
    asammdf = pytest.importorskip("asammdf")
    assert run("simulate", loop, "--until", 1, "--out", tmp_path / "x.mf4", "--record", "x") == 0
    with asammdf.MDF(tmp_path / "x.mf4") as file:
        assert file.get("x.y").samples.size > 100


def test_mdf4_without_its_library_is_refused_before_the_run(loop, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "asammdf", None)
    assert run("simulate", loop, "--until", 1e9, "--out", tmp_path / "x.mf4") == 1
    assert "pip install 'biella[mdf]'" in capsys.readouterr().err


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


def test_ctrl_c_ends_between_ticks_and_the_file_is_complete(tmp_path):
    path = tmp_path / "slow.py"
    path.write_text(SLOW)
    out = tmp_path / "slow.h5"
    process = subprocess.Popen(
        [sys.executable, "-m", "biella", "simulate", path, "--until", "1000", "--out", out],
        stdout=subprocess.PIPE,
        text=True,
        # A job in the background of a shell would pass on that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not out.exists() or Result.from_hdf5(out).length < 6:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate()
    assert process.returncode == 0
    assert "stopped: interrupted at t =" in text
    result = Result.from_hdf5(out)
    assert result.length > 5
    assert list(result["slow"]) == list(result.t)


def test_a_run_in_real_time_is_reported_logged_and_replayed(loop, tmp_path, capsys):
    log = str(tmp_path / "log.h5")
    arguments = ["run-realtime", str(loop), "--until", "0.05", "--log", log, "--profile"]
    assert cli.main([*arguments, "--set", "k.k=2.5"]) == 0
    said = capsys.readouterr()
    printed = said.out
    assert "running until t = 0.05 s, or Ctrl-C" in said.err
    assert "ticks on the wall clock; it ended: the end time was reached." in printed
    assert "p99.9" in printed and "share" in printed and f"wrote {log}" in printed
    table, picture = tmp_path / "again.csv", tmp_path / "again.png"
    outputs = ["--out", str(table), "--plot", str(picture)]
    assert cli.main(["replay", log, str(loop), *outputs]) == 0
    assert f"signals equal those of {log}, bit for bit" in capsys.readouterr().out
    assert table.is_file() and picture.is_file()
    assert cli.main(["replay", str(tmp_path / "no.h5"), str(loop)]) == 1
    assert "There is no file" in capsys.readouterr().err
    assert cli.main([*arguments, "--out", str(tmp_path / "other.h5")]) == 1
    assert "--log and --out specify two HDF5 files" in capsys.readouterr().err


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
def test_a_mistake_in_the_users_own_file_is_told_with_its_line(tmp_path, capsys, text, message):
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
def test_a_name_that_is_not_there_is_told_with_what_was_meant(tmp_path, capsys, text, meant):
    file = tmp_path / "mine.py"
    file.write_text(text)
    assert run("check", file) == 1
    assert f"Did you mean `{meant}`" in capsys.readouterr().err


def test_what_is_written_without_a_name_goes_to_the_current_folder(loop, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert run("draw", loop) == 0 and run("export", loop) == 0
    assert sorted(path.name for path in here.iterdir()) == ["loop.fmu", "loop.svg"]


def test_an_fmu_may_be_called_as_its_owner_likes(loop, tmp_path, capsys):
    for name in ("Motor für Prüfstand.fmu", "2.fmu", "ü.fmu"):
        assert run("export", loop, "-o", tmp_path / name) == 0
        assert run("simulate", tmp_path / name, "--until", 1) == 0, capsys.readouterr().err


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


@pytest.mark.parametrize("columns", [50, 200])
def test_tables_lose_nothing_in_a_narrow_terminal(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    table = Table("name", "value", title="parameters", caption="that is all")
    table.add_row("motor.inertia", "of the rotor, about [i]its axis[/i]")
    table.add_row("a_name_that_is_rather_long", "a_word_that_is_long_too_and_has_no_space")
    print_tables(Group(table, "below"))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    shown = "\n".join(lines)
    for text in ("parameters", "motor.inertia", "its axis", "that is all", "below"):
        assert text in shown
    assert "a_word_that_is_long_too_and_has_no_space" in shown and "…" not in shown


def test_the_commands_of_0_1_still_work_and_say_what_to_write(loop, tmp_path, capsys):
    log, rig = tmp_path / "log.h5", tmp_path / "rig.toml"
    rig.write_text("")

    def notice(*arguments: Any) -> str:
        assert run("run", *arguments) == 0
        (line,) = (each for each in capsys.readouterr().err.splitlines() if "deprecated" in each)
        return line

    assert notice(loop, "--until", 0.1).endswith(f"use `biella simulate {loop}`.")
    realtime = notice(loop, "--realtime", "--until", 0.02, "--log", log)
    assert realtime.endswith(f"will be removed in 0.3: use `biella run-realtime {loop}`.")
    assert notice(loop, "--bind", rig, "--until", 0.02).endswith(f"`biella run-realtime {loop}`.")
    assert notice(loop, "--replay", log).endswith(f"use `biella replay {log} {loop}`.")
    assert run("run", loop, "--realtime", "--input", rig) == 1
    assert "--input applies to offline runs" in capsys.readouterr().err


def test_the_old_command_gives_what_the_new_one_gives(loop, tmp_path):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    assert run("run", loop, "--until", 0.5, "--set", "k.k=2.5", "--out", old) == 0
    assert run("simulate", loop, "--until", 0.5, "--set", "k.k=2.5", "--out", new) == 0
    assert old.read_bytes() == new.read_bytes()


def test_simulate_takes_a_diagram_and_its_fmu_alike(loop, tmp_path):
    fmu, tables = tmp_path / "loop.fmu", [tmp_path / "diagram.csv", tmp_path / "fmu.csv"]
    assert run("export", loop, "-o", fmu, "--output-signal", "x") == 0
    for file, table in zip((loop, fmu), tables, strict=True):
        assert run("simulate", file, "--until", 0.5, "--out", table) == 0
    columns = []
    for table in tables:
        names, *rows = (line.split(",") for line in table.read_text().splitlines())
        (column,) = (n for n, name in enumerate(names) if re.search(r"\bx\b", name))
        columns.append({round(float(row[0]), 9): row[column] for row in rows})
    common = columns[0].keys() & columns[1].keys()
    assert len(common) > 10 and all(columns[0][t] == columns[1][t] for t in common)


@pytest.mark.parametrize(
    ("file", "option", "message"),
    [
        ("{loop}", ["--backend", "fmpy"], "--backend applies to FMUs, but `"),
        ("{loop}", ["--no-validate"], "--no-validate applies to FMUs, but `"),
        (
            "x.fmu",
            ["--solver", "rk4"],
            "--solver applies to diagrams, but `x.fmu` is not a Python file",
        ),
        ("x.fmu", ["--every", "2"], "--every applies to diagrams"),
    ],
)
def test_an_option_of_the_other_kind_of_file_is_refused(loop, capsys, file, option, message):
    assert run("simulate", file.format(loop=loop), *option) == 1
    assert message in capsys.readouterr().err


def test_a_log_without_python_blocks_is_replayed_without_its_diagram(loop, tmp_path, capsys):
    log = tmp_path / "log.h5"
    assert run("run-realtime", loop, "--until", 0.02, "--log", log) == 0
    assert run("replay", log, "--plot", tmp_path / "again.png") == 0
    assert f"signals equal those of {log}, bit for bit" in capsys.readouterr().out
