"""The file that describes terminals: reading it, and what `biella validate` says about it."""

from __future__ import annotations

import json

import pytest

from biella import FmuError
from biella.fmu._commands import check_fmu, list_fmu
from biella.fmu.importer._archive import read_archive
from biella.fmu.standards._terminals import Member, Terminal, read_terminals

from .shafts import PLANT, plant
from .test_terminal_ports import replace


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "plant.fmu"
    return plant().export_fmu(path, version="3.0", terminals=PLANT)


def test_an_fmu_without_the_file_has_no_terminals(file, tmp_path):
    import zipfile

    path = tmp_path / "bare.fmu"
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(path, "w") as copy:
        for name in source.namelist():
            if not name.startswith("terminalsAndIcons/"):
                copy.writestr(name, source.read(name))
    assert read_terminals(read_archive(path)) == ()
    assert check_fmu(path).warnings == []


def test_the_file_is_read(file):
    (terminal,) = read_terminals(read_archive(file))
    members = (Member("phi", "angle"), Member("w", "speed"), Member("tau", "torque"))
    assert terminal == Terminal("shaft", "bus", members)
    (listed,) = json.loads(json.dumps(list_fmu(file)))["terminals"]
    assert (listed["name"], listed["matching rule"]) == ("shaft", "bus")
    assert listed["members"][0] == {"name": "phi", "variable": "angle", "kind": "signal"}


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ('matchingRule="bus"', "", "attribute 'matchingRule' is required"),
        ('matchingRule="bus"', 'matchingRule="buss"', "matching rule 'buss', which FMI does not"),
        ('variableName="angle"', 'variableName="x"', "member `x`, which is no variable"),
        ('memberName="phi"', 'memberName="w"', "the terminal `shaft` has several members `w`"),
        ('memberName="phi" ', "", "the member `angle` without a memberName"),
        ('fmiVersion="3.0"', 'fmiVersion="2.0"', "fmiVersion"),
        ("</Terminals>", "</Terminal>", "cannot be read"),
        ("<fmiTerm", "<!DOCTYPE x><fmiTerm", "document type"),
    ],
)
def test_violations_are_warnings(file, tmp_path, old, new, finding):
    path = replace(file, tmp_path / "wrong.fmu", (old, new))
    found = check_fmu(path)
    assert found.errors == []
    assert [w for w in found.warnings if finding in w], found.warnings


def test_a_damaged_file_is_an_error_where_it_is_needed(file, tmp_path):
    path = replace(file, tmp_path / "wrong.fmu", ("</Terminals>", "</Terminal>"))
    with pytest.raises(FmuError, match=r"terminalsAndIcons.xml` in .* cannot be read"):
        read_terminals(read_archive(path))
