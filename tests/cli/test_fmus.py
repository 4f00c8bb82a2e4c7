"""FMUs on the command line."""

from __future__ import annotations

import re

import pytest

from .command_files import run

pytestmark = pytest.mark.engine


def test_an_fmu_may_be_called_as_its_owner_likes(loop, tmp_path, capsys):
    for name in ("Motor für Prüfstand.fmu", "2.fmu", "ü.fmu"):
        assert run("export", loop, "-o", tmp_path / name) == 0
        assert run("simulate", tmp_path / name, "--until", 1) == 0, capsys.readouterr().err


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
