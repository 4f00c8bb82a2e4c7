"""`biella simulate`: tables, files, events, solvers."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from biella.scheduler.results._result import Result

from .command_files import run

pytestmark = pytest.mark.engine


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


OSCILLATOR = """
from biella import Diagram
from biella.blocks import Integrator, Relay

def diagram():
    d = Diagram("oscillator", step=1e-2)
    x = d.add(Integrator(0.055), "x")
    d.connect(d.add(Relay(0.1, -0.1, -1.0, 1.0), "relay", u=x), x)
    return d
"""


@pytest.fixture
def oscillator(tmp_path):
    path = tmp_path / "oscillator.py"
    path.write_text(OSCILLATOR)
    return path


def test_events_are_in_the_summary_and_in_json(oscillator, capsys):
    assert run("simulate", oscillator, "--until", 1) == 0
    assert "5 events: relay 5" in capsys.readouterr().out
    assert run("simulate", oscillator, "--until", 1, "--json") == 0
    told = json.loads(capsys.readouterr().out)["events"]
    assert told == {"total": 5, "truncated": False, "sources": {"relay": 5}}
    assert run("simulate", oscillator, "--until", 1, "--events", "tick") == 0
    assert "events" not in capsys.readouterr().out


@pytest.mark.parametrize("command", ["simulate", "run-realtime"])
def test_a_tolerance_needs_a_solver_with_error_control(oscillator, command, capsys):
    options = ["--until", 0.1, *(["--clock", "free"] if command == "run-realtime" else [])]
    control = ["--solver", "radau5", "--tolerance", "1e-6,1e-9"]
    assert run(command, oscillator, *options, *control, "--record", "solver.steps") == 0
    assert "solver.steps" in capsys.readouterr().out
    assert run(command, oscillator, *options, "--tolerance", "1e-6") == 1
    assert "takes no tolerance" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run(command, oscillator, *options, "--tolerance", "small")


def test_events_are_marked_in_a_plot(oscillator, tmp_path, capsys):
    plot = ["--until", 1, "--plot", tmp_path / "a.png"]
    assert run("simulate", oscillator, *plot, "--mark-events") == 0
    marked = (tmp_path / "a.png").read_bytes()
    assert run("simulate", oscillator, *plot, "--mark-events", "relay") == 0
    assert (tmp_path / "a.png").read_bytes() == marked
    assert run("simulate", oscillator, *plot) == 0
    assert (tmp_path / "a.png").read_bytes() != marked
    assert run("simulate", oscillator, "--mark-events") == 1
    assert "--mark-events requires --plot" in capsys.readouterr().err


COARSE = """
from biella import Diagram
from biella.blocks import Constant, StateSpace

def diagram():
    d = Diagram("oscillator", step=0.02)
    d.add(StateSpace([[0, 1], [-987, 0]], [[0], [1]], [[1, 0]], [[0]], initial=[1, 0]), "x")
    d.connect(d.add(Constant(0.0), "nothing"), "x")
    return d
"""


@pytest.mark.filterwarnings("always:the estimated error")
def test_the_error_estimate_can_be_switched_off(tmp_path, capsys):
    path = tmp_path / "coarse.py"
    path.write_text(COARSE)
    on, off = tmp_path / "on.h5", tmp_path / "off.h5"
    assert run("simulate", path, "--until", 2, "--out", on) == 0
    assert "warning: the estimated error of `x.y` is 0.04 of its range" in capsys.readouterr().err
    assert run("simulate", path, "--until", 2, "--out", off, "--no-error-estimate") == 0
    assert "error" not in capsys.readouterr().err
    with_estimate, without = Result.from_hdf5(on), Result.from_hdf5(off)
    assert with_estimate.error_estimate is not None and without.error_estimate is None
    assert (with_estimate["x"] == without["x"]).all()


COUPLED = """
from biella import Diagram
from biella.blocks import Gain
from biella.blocks.multibody import System

def diagram():
    s = System("mass", (0, 0), planar=True)
    body = s.body("mass", mass=1.0, inertia=1.0, velocity=(1.0, 0))
    s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    s.force("push", body.marker("end"), (0.0, 0.0))
    d = Diagram("brake", step=0.1)
    plant = d.add(s.block(["push.force.x"], ["slide.speed"], mode="internal"), "plant")
    d.connect(plant["slide.speed"], d.add(Gain(-3.0, unit="N"), "brake"))
    d.connect(d["brake"], plant["push.force.x"])
    return d
"""


def test_the_coupling_tolerance_of_a_run(tmp_path, capsys):
    """v = exp(-3 t), of which steps of 0.1 s are far off."""
    path, out = tmp_path / "brake.py", tmp_path / "run.h5"
    path.write_text(COUPLED)
    options = ["--until", 1, "--record", "*", "--out", out]
    assert run("simulate", path, *options) == 0
    assert abs(Result.from_hdf5(out)["plant"][-1] - np.exp(-3)) > 0.01
    assert run("simulate", path, *options, "--coupling-tolerance", 2e-3) == 0
    assert abs(Result.from_hdf5(out)["plant"][-1] - np.exp(-3)) < 2e-4
    assert run("simulate", path, *options, "--coupling-tolerance", 2) == 1
    assert "coupling_tolerance must be between 0 and 1" in capsys.readouterr().err
