"""`biella info`, `validate` and `simulate` with FMUs, from the shell's side."""

from __future__ import annotations

import csv
import json
import zipfile

import numpy as np
import pytest
from specimen import FMI3, TROUBLE, description, make_specimen

from biella import Diagram, Fmu, simulate
from biella.cli import main
from biella.fmu.importer._archive import platform_names

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def specimen(tmp_path_factory):
    return make_specimen(tmp_path_factory.mktemp("commands") / "specimen.fmu")


def read_csv(path):
    with path.open(newline="") as file:
        names, *rows = csv.reader(file)
    return dict(zip(names, np.array(rows, dtype=float).T, strict=True))


def test_info_shows_the_interface(specimen, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["info", str(specimen)]) == 0
    text = capsys.readouterr().out
    for part in (
        "specimen",
        "2.0, co-simulation",
        "canGetAndSetFMUstate, canSerializeFMUstate",
        "inputs (5)",
        "w[1]",
        "drives x",
        "outputs (5)",
        "parameters (4)",
        "1e300",
    ):
        assert part in text
    assert "local variables" not in text
    assert main(["info", str(specimen), "--all"]) == 0
    assert "local variables (1)" in capsys.readouterr().out


def test_validate_says_yes_or_why_not(specimen, tmp_path, capsys):
    assert main(["validate", str(specimen)]) == 0
    assert "no problems" in capsys.readouterr().out
    xml = description().replace('name="y"', 'name="u"')
    odd = make_specimen(tmp_path / "odd.fmu", xml=xml, extra={"binaries/win64/other.dll": b"x"})
    assert main(["validate", str(odd)]) == 3
    said = capsys.readouterr()
    assert said.out.startswith("warnings:\n") and "errors" not in said.out
    assert 'The variable name "u"' in said.out and "is not unique" in said.out
    assert "binaries/win64 has no library `specimen`" in said.out
    assert "2 warnings in" in said.err and "it can run" in said.err
    assert main(["validate", str(odd), "--json"]) == 3
    data = json.loads(capsys.readouterr().out)
    assert len(data["warnings"]) == 2 and data["errors"] == []
    assert data["problems"] == data["warnings"]


def test_validate_tells_errors_from_warnings(tmp_path, capsys):
    path = tmp_path / "bad.fmu"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("modelDescription.xml", description().replace('name="y"', 'name="u"'))
        file.writestr("binaries/vax/specimen.so", b"x")
    assert main(["validate", str(path)]) == 1
    said = capsys.readouterr()
    errors, _, warned = said.out.partition("warnings:\n")
    assert errors.startswith("errors:\n") and "has no binary for this platform" in errors
    assert "is not unique" in warned
    assert "1 error in" in said.err
    for xml in (
        description(version="9.0"),
        description().replace('modelIdentifier="specimen"', ""),
    ):
        assert main(["validate", str(make_specimen(path, xml=xml))]) == 1
        assert capsys.readouterr().out.startswith("errors:\n")


def test_an_fmu_without_outputs_runs_and_shows_its_variables(tmp_path, capsys):
    xml = description().replace('causality="output"', "")
    xml = xml[: xml.index("<ModelStructure>")] + "<ModelStructure/></fmiModelDescription>"
    path, out = make_specimen(tmp_path / "s.fmu", xml=xml), tmp_path / "out.csv"
    command = ["simulate", str(path), "--stop", "0.1", "--step", "0.01", "--output", str(out)]
    assert main(command) == 0
    assert set(read_csv(out)) >= {"time [s]", "s.y [m]", "s.x"}
    d = Diagram("d", step=0.01)
    d.add(Fmu(path), name="f")
    assert simulate(d, 0.1).t[-1] == pytest.approx(0.1)


def test_simulate_plays_inputs_and_writes_outputs(specimen, tmp_path, capsys):
    table, out, plot = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "out.png"
    table.write_text("time,u [m],b,w[0],w[1]\n0,0,1,1,0\n0.05,1,0,1,0\n0.2,1,0,1,0\n")
    command = ["simulate", str(specimen), "--stop", "0.1", "--step", "0.01", "--set", "k=3"]
    command += ["--input", str(table), "--output", str(out), "--plot", str(plot)]
    assert main(command) == 0
    columns = read_csv(out)
    t = columns["time [s]"]
    u = np.minimum(20 * t, 1.0)
    x, y = 0.0, []
    for value in u:
        y.append(3 * value + x)
        x += 0.01 * (value - x)
    assert columns["specimen.y [m]"] == pytest.approx(y, abs=1e-14)
    assert columns["specimen.s"] == pytest.approx(t, abs=1e-14)
    assert np.array_equal(columns["specimen.c"], (t > 0.0499).astype(float))
    assert plot.stat().st_size > 1000
    assert "5 signals, 11 times" in capsys.readouterr().out


def test_columns_have_any_name_that_an_input_has(tmp_path, capsys):
    """Dots, slashes, brackets and @ of structured names; repeated times are a jump."""
    xml = description()
    for old, new in (("u", "motor.torque"), ("w[0]", "a/b@c[3]"), ("w[1]", "der(q.w)")):
        xml = xml.replace(f'name="{old}"', f'name="{new}"')
    path = make_specimen(tmp_path / "s.fmu", xml=xml)
    table, out = tmp_path / "in.csv", tmp_path / "out.csv"
    table.write_text(
        "time,motor.torque [m],a/b@c[3],der(q.w)\n0,1,0,0\n0.05,1,0,0\n0.05,4,0,0\n0.2,4,0,0\n"
    )
    command = ["simulate", str(path), "--stop", "0.1", "--step", "0.01", "--set", "k=3"]
    assert main([*command, "--input", str(table), "--output", str(out)]) == 0
    columns = read_csv(out)
    x, y = 0.0, []
    for value in np.where(np.arange(11) < 5, 1.0, 4.0):  # from 0.05 s on the value after the jump
        y.append(3 * value + x)
        x += 0.01 * (value - x)
    assert columns["s.y [m]"] == pytest.approx(y, abs=1e-13)


@pytest.mark.engine
def test_a_mechanism_that_biella_exports_is_driven_by_a_table(tmp_path, capsys):
    from biella.blocks.multibody.mechanisms import slider_crank

    path = slider_crank(planar=True).export_fmu(tmp_path / "crank.fmu", sources=False)
    table, out = tmp_path / "in.csv", tmp_path / "out.csv"
    table.write_text("time,motor.torque [N.m]\n0,-10\n0.1,-10\n")
    command = ["simulate", str(path), "--until", "0.1", "--step", "1e-3", "--output", str(out)]
    assert main([*command, "--record", "main.angle"]) == 0
    given = read_csv(out)
    assert main([*command, "--record", "main.angle", "--input", str(table)]) == 0
    assert np.array_equal(read_csv(out)["crank.main.angle [rad]"], given["crank.main.angle [rad]"])


def test_simulate_takes_times_from_the_fmu_and_records_what_is_named(tmp_path, capsys):
    experiment = '<DefaultExperiment startTime="1" stopTime="1.5" stepSize="0.05"/>'
    path = make_specimen(tmp_path / "s.fmu", xml=description(experiment=experiment))
    out = tmp_path / "out.csv"
    assert main(["simulate", str(path), "--record", "x", "--output", str(out)]) == 0
    columns = read_csv(out)
    assert columns["time [s]"] == pytest.approx(1 + 0.05 * np.arange(11))
    assert columns["s.x"] == pytest.approx(0.5 * (1 - 0.95 ** np.arange(11)))


def test_simulate_keeps_what_was_recorded_when_the_fmu_fails(specimen, tmp_path, capsys):
    out = tmp_path / "out.csv"
    trouble = ["--set", f"trouble={TROUBLE['segfault']}", "--set", "at=0.05", "--isolate"]
    command = ["simulate", str(specimen), "--stop", "0.1", "--step", "0.01", "--output", str(out)]
    assert main([*command, *trouble]) == 1
    assert "crashed: its process was terminated by SIGSEGV" in capsys.readouterr().err
    assert read_csv(out)["time [s]"][-1] == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("time,v\n0,1\n1,2\n", "has a column `v`, but specimen.fmu has no such input"),
        ("0,1\n1,2\n", "must contain the column names"),
        ("time,u [mm]\n0,1\n1,2\n", "is in mm, but the input is in m: convert"),
        ("time,u\n0,1\n1,2\n0.5,3\n", "line 4: the time 0.5 s comes after 1 s"),
        ("time,u\n0,1\n1\n", "line 3 has 1 cells, but the first row 2"),
        ("time,u\n0,1\n1,NaN\n", "line 3, column `u`: NaN is not finite"),
        ("time,u\n0,1\n1,one\n", "line 3, column `u`: `one` is not a number"),
        ("time,w[0],w[7]\n0,1,1\n1,1,1\n", "columns w[0], w[1]; `{}` has w[0], w[7]."),
        ("time,w[1]\n0,1\n1,1\n", "columns w[0], w[1]; `{}` has w[1]."),
        ("time,w\n0,1\n1,1\n", "columns w[0], w[1]; `{}` has w."),
        ("time,u[0]\n0,1\n1,1\n", "columns u; `{}` has u[0]."),
        (None, "cannot read"),
    ],
)
def test_a_wrong_table_is_explained(specimen, tmp_path, capsys, table, message):
    path = tmp_path / "in.csv"
    if table is not None:
        path.write_text(table)
    assert main(["simulate", str(specimen), "--input", str(path)]) == 1
    assert message.format(path) in capsys.readouterr().err


def test_a_file_that_is_no_fmu_is_an_error_of_one_line(tmp_path, capsys):
    (tmp_path / "x.fmu").write_text("hello")
    for command in ("info", "validate", "simulate"):
        assert main([command, str(tmp_path / "x.fmu")]) == 1
        assert capsys.readouterr().err.count("\n") == 1


def test_info_knows_this_platform_by_its_name_in_fmi_3(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    folder = platform_names()[1]
    for name, missing in ((folder, False), ("vax-vms", True)):
        path = tmp_path / f"{name}.fmu"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("modelDescription.xml", FMI3)
            file.writestr(f"binaries/{name}/three.so", b"x")
        assert main(["info", str(path)]) == 0
        text = capsys.readouterr().out
        assert name in text and (f"(this one, {folder}, is missing)" in text) is missing
