"""Manifest and experiments of FMI-LS-REF: what is written, and what is read of other tools."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
import zipfile

import pytest

from biella import BiellaError, FmuError
from biella.fmu import Experiment
from biella.fmu.importer._archive import read_archive
from biella.fmu.standards._experiments import (
    FOLDER,
    MANIFEST,
    Reference,
    read_parameters,
    read_references,
    write_manifest,
    write_parameters,
)

from .shafts import plant

LS = "{http://fmi-standard.org/fmi-ls-manifest}"
ROLES = re.compile(
    "(document|requirement|specification|model|parameter|system|testcase|experiment(/(smoke-test|"
    "validation|uncertainty-analysis))?|result|method|rationale|report|request|delivery|"
    "configuration|signature|serialized-state(/.*)?|meta-data|other)"
)
"""Of the schema of version 1.0.0-alpha.1."""


def pack(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", "<x/>")
        for name, data in files.items():
            archive.writestr(name, data)
    return read_archive(path)


def test_the_manifest_is_that_of_the_standard():
    item = Reference("a", "b", 0.0, 1.0, 0.1, 1e-6, f"{FOLDER}/p.ssv", "", f"{FOLDER}/r.csv")
    files = write_manifest([item])
    root = ET.fromstring(files[MANIFEST])
    assert root.tag == "fmiReferences"
    assert root.get(f"{LS}fmi-ls-name") == "org.fmi-standard.fmi-ls-ref"
    assert root.get(f"{LS}fmi-ls-version") == "1.0.0-alpha.1"
    assert root.get(f"{LS}fmi-ls-description") == (
        "Layered Standard providing information on related files included in an FMU."
    )
    related = [element.attrib for element in root]
    assert all(element.tag == "Related" for element in root)
    assert all(ROLES.fullmatch(one["role"]) for one in related)
    assert [one["source"] for one in related] == ["experiments.exp", "p.ssv", "r.csv"]


def test_what_is_written_is_read(tmp_path):
    names = [f"{FOLDER}/{name}" for name in ("p.ssv", "in.csv", "r.csv")]
    items = [
        Reference("a b", "text", -1.0, 1.0, 0.1, 1e-6, *names),
        Reference("c", "", None, None, None, None, "", "", names[2]),
    ]
    values: dict[str, float | bool | str] = {"k": 0.1, "on": True, "name": "x<y"}
    others = dict.fromkeys(names, b"") | {names[0]: write_parameters("a", values)}
    archive = pack(tmp_path / "x.fmu", write_manifest(items) | others)
    assert read_references(archive) == items
    assert read_parameters(archive, names[0]) == {"k": "0.1", "on": "true", "name": "x<y"}


def test_files_of_the_former_appendix_are_read(tmp_path):
    """With the earlier MIME type, in other folders, and with comments and annotations."""
    manifest = """<?xml version="1.0"?>
    <fmiReferences><Related type="text/modelica" source="m.mo" role="model"/>
    <!-- a comment --><Related type="application/x-ma-ls-experiments" source="../tests/a%20b.exp"
    role="experiment" description="d"><Label name="x"/><Annotations/></Related></fmiReferences>"""
    experiments = """<Experiments name="n"><Experiment name="one" stopTime="10">
    <Stimuli source="in.csv"/><References source="deep/../ref.csv" type="text/csv"/>
    <Annotations/></Experiment></Experiments>"""
    archive = pack(
        tmp_path / "x.fmu",
        {
            MANIFEST: manifest,
            "extra/tests/a b.exp": experiments,
            "extra/tests/in.csv": "",
            "extra/tests/ref.csv": "",
        },
    )
    (found,) = read_references(archive)
    assert found == Reference(
        "one", "", None, 10.0, None, None, "", "extra/tests/in.csv", "extra/tests/ref.csv"
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("missing.exp", "which is missing"),
        ("../../../etc/passwd", "no file of the FMU"),
        ("/etc/passwd", "no file of the FMU"),
        ("https://example.org/a.exp", "no file of the FMU"),
        ("", "no file of the FMU"),
    ],
)
def test_files_outside_the_fmu_are_not_read(tmp_path, source, message):
    manifest = (
        f'<fmiReferences><Related type="application/x-ma-hs-experiments" source="{source}" '
        f'role="experiment"/></fmiReferences>'
    )
    archive = pack(tmp_path / "x.fmu", {MANIFEST: manifest})
    with pytest.raises(FmuError, match=message):
        read_references(archive)


def test_damaged_files_are_errors(tmp_path):
    with pytest.raises(FmuError, match=r"fmi-ls-manifest.xml` in .* cannot be read"):
        read_references(pack(tmp_path / "x.fmu", {MANIFEST: "<fmiReferences>"}))
    item = Reference("a", "", 0.0, 1.0, 0.1, 1e-6)
    files = write_manifest([item])
    wrong = {name: data.replace(b'Time="1.0"', b'Time="one"') for name, data in files.items()}
    with pytest.raises(FmuError, match=r"experiment `a` .* has stopTime='one', which is not a"):
        read_references(pack(tmp_path / "y.fmu", wrong))


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("until 2", "requires Experiment"),
        (Experiment(until=1.0, tolerance=0.0), "between 0 and 1"),
        (Experiment(until=1.0, step=-1.0), "must be positive"),
        ([Experiment(until=1.0), Experiment(until=2.0)], "different names"),
    ],
)
def test_bad_experiments_are_refused(tmp_path, reference, message):
    with pytest.raises(BiellaError, match=message):
        plant().export_fmu(tmp_path / "p.fmu", reference=reference)
    assert not (tmp_path / "p.fmu").exists()
