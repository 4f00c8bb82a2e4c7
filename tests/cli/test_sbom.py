"""`biella sbom`: valid by the rules of CycloneDX 1.5, and complete for what is installed."""

from __future__ import annotations

import hashlib
import json
import re
from importlib.metadata import version

import pytest

from biella.cli import main
from biella.cli._sbom import make_bill
from biella.scheduler.engine._library import library_path


@pytest.fixture(scope="module")
def bill():
    return make_bill()


def test_the_document_has_what_cyclonedx_requires(bill):
    """The fields that bom-1.5.schema.json requires, and their patterns."""
    assert bill["bomFormat"] == "CycloneDX" and bill["specVersion"] == "1.5"
    assert bill["version"] == 1
    assert re.fullmatch(
        r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        bill["serialNumber"],
    )
    allowed = {
        "type", "bom-ref", "name", "version", "description", "purl", "licenses", "hashes",
    }  # fmt: skip
    for component in [bill["metadata"]["component"], *bill["components"]]:
        assert {"type", "name"} <= set(component) <= allowed
        assert component["type"] in ("application", "library")
        for one in component.get("licenses", []):
            assert set(one) in ({"expression"}, {"license"})
            assert "expression" in one or len({"id", "name"} & set(one["license"])) == 1
        for digest in component.get("hashes", []):
            assert digest["alg"] == "SHA-256" and re.fullmatch("[0-9a-f]{64}", digest["content"])
    references = [component["bom-ref"] for component in bill["components"]]
    assert len(references) == len(set(references))
    known = {*references, bill["metadata"]["component"]["bom-ref"]}
    for entry in bill["dependencies"]:
        assert entry["ref"] in known and set(entry["dependsOn"]) <= known
        assert len(entry["dependsOn"]) == len(set(entry["dependsOn"]))


def test_what_is_installed_is_listed_with_its_version(bill):
    found = {component["name"].lower(): component for component in bill["components"]}
    for name in ("numpy", "scipy", "h5py", "FMPy", "lxml", "kiwisolver"):
        assert found[name.lower()]["version"] == version(name)
        assert found[name.lower()]["purl"] == f"pkg:pypi/{name.lower()}@{version(name)}"
    graph = {entry["ref"]: entry["dependsOn"] for entry in bill["dependencies"]}
    matplotlib = f"pkg:pypi/matplotlib@{version('matplotlib')}"
    assert f"pkg:pypi/kiwisolver@{version('kiwisolver')}" in graph[matplotlib]
    engine = found[library_path().name]
    assert engine["hashes"][0]["content"] == hashlib.sha256(library_path().read_bytes()).hexdigest()
    assert {"hdf5", "libxml2", "expat", "zlib"} <= set(found)


def test_the_command_writes_the_same_bytes_each_time(tmp_path, capsys):
    path = tmp_path / "biella.cdx.json"
    assert main(["sbom", "--out", str(path)]) == 0
    capsys.readouterr()
    assert main(["sbom"]) == 0
    assert capsys.readouterr().out == path.read_text()
    assert json.loads(path.read_text())["bomFormat"] == "CycloneDX"
