"""`biella demo`: everything at once, as the README's first command has it."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biella import cli, simulate
from biella.demo import rig
from biella.scheduler.results._result import Result

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> tuple[Path, dict[str, Any]]:
    """Where the demo has written to, and what it has printed."""
    folder = tmp_path_factory.mktemp("demo") / "rig"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert cli.main(["demo", str(folder), "--seconds", "2.2", "--json"]) == 0
    return folder, json.loads(printed.getvalue())


@pytest.fixture
def folder(demo) -> Path:
    return demo[0]


def test_the_demo_writes_its_page_and_all_that_it_shows(demo):
    folder, told = demo
    assert told["page"] == str(folder / "index.html")
    page = (folder / "index.html").read_text()
    shown = set(re.findall(r'(?:src|href)="([^"]+)"', page))
    for name in shown:
        assert (folder / name).stat().st_size > 400, name
    assert "`" not in page
    assert shown >= {"crank.fmu", "rig.py", "run.h5", "diagram.svg", "responses.png", "orbit.png"}
    assert shown >= {"motion.gif", "ticks.png"}
    figures = {row["what"]: row["figure"] for row in told["table"]}
    assert set(figures) >= {"overruns", "coupling error of a tick", "closure of the joints"}
    # The device answers as the simulated power stage does, so that pacing changes nothing.
    assert figures["real-time against simulated"] == "0 rad/s"


def test_the_log_of_the_realtime_run_has_the_signals_of_the_simulated_one(folder):
    log = Result.from_hdf5(folder / "run.h5")
    simulated = simulate(rig.diagram(folder / "crank.fmu"), 2.2, record=["*"])
    assert set(simulated.paths) <= set(log.paths)
    assert {"realtime.lateness", "realtime.execution", "drive.age"} <= set(log.paths)
    for name in ("pid", "speed", "crank_pin.film.pressure", "measured_torque"):
        np.testing.assert_array_equal(log[name][:2000], simulated[name][:2000])


def test_the_speed_is_held_and_the_film_carries(folder):
    """Energy: what the motor gives beyond losses and load is small once the speed is steady."""
    run = simulate(rig.diagram(folder / "crank.fmu"), 4.0, record=["*"])
    turns = (run.t > 3.0) & (run.t < 3.0 + 4 * 2 * np.pi / rig.WANTED)
    assert run["speed"][turns].mean() == pytest.approx(rig.WANTED, rel=5e-3)
    friction = 0.02 * run["speed"][turns]
    film = run["crank_pin.film.power_loss"][turns] / run["speed"][turns]
    given = run["motor"][turns] + rig.LOAD
    assert given.mean() == pytest.approx((friction + film).mean(), rel=0.05)


def test_what_the_page_says_to_type_works(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    Path("crank.fmu").unlink()
    runpy.run_path("rig.py", run_name="__main__")
    page = Path("index.html").read_text()
    (typed,) = re.findall(r"<pre>(.*)</pre>", page, re.S)
    for line in typed.splitlines():
        command, *arguments = line.partition("#")[0].split()
        assert command == "biella" and cli.main(arguments) == 0, line
    assert "bit for bit" in capsys.readouterr().out


def test_a_short_demo_has_figures_too(tmp_path, capsys):
    assert cli.main(["demo", str(tmp_path / "short"), "--seconds", "0.5"]) == 0
    said = capsys.readouterr()
    assert "nan" not in said.out and said.err == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seconds", "0.1"], "--seconds must be between"),
        (["taken"], "is a file: specify a folder"),
    ],
)
def test_wrong_options_are_reported(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    Path("taken").write_text("")
    assert cli.main(["demo", *arguments]) == 1
    assert words in capsys.readouterr().err
