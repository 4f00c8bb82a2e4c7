"""What is found in a description besides what is read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from specimen import EXCHANGE, FMI3, description, make_specimen

from biella.errors import FmuError
from biella.fmu.importer._archive import read_archive
from biella.fmu.importer._model_file import read_mime_types, read_model


@pytest.mark.parametrize("xml", [description(), EXCHANGE, FMI3])
def test_nothing_is_found_in_what_is_right(tmp_path, xml):
    archive = read_archive(make_specimen(tmp_path / "s.fmu", xml=xml))
    model, findings = read_model(archive, validate=True)
    assert findings == []
    assert len(model.modelVariables) > 3


def test_the_schema_and_the_rest_are_both_checked(tmp_path):
    """FMPy itself stops at the first violation of the schema."""
    xml = (
        description()
        .replace('name="m"', 'name="y"')
        .replace("<ModelVariables>", "<X/><ModelVariables>")
    )
    archive = read_archive(make_specimen(tmp_path / "s.fmu", xml=xml))
    findings = read_model(archive, validate=True)[1]
    assert any("Element 'X'" in text and text.startswith("line ") for text in findings)
    assert any('"y"' in text and "not unique" in text for text in findings)
    assert read_model(archive, validate=False)[1] == []


@pytest.mark.parametrize("version", ["", "4.0", "2.1", "0.9"])
def test_an_unknown_version_is_named(tmp_path, version):
    archive = read_archive(make_specimen(tmp_path / "s.fmu", xml=description(version=version)))
    with pytest.raises(FmuError, match=rf"fmiVersion={version!r} is not supported. Supported"):
        read_model(archive, validate=False)


def test_types_of_binaries_are_read_by_reference():
    """Of a variable or of its declared type, without parameters such as a version."""
    description = b"""<fmiModelDescription>
    <BinaryType name="Frame" mimeType="application/x-frame"/>
    <Binary name="a" valueReference="1" mimeType="Application/X-Node; version=2"/>
    <Binary name="b" valueReference="2" declaredType="Frame"/>
    <Binary name="c" valueReference="3" mimeType="application/octet-stream"/>
    <Binary name="d" valueReference="4"/>
    <Binary name="e" valueReference="x" mimeType="application/x-node"/>
    </fmiModelDescription>"""
    archive: Any = SimpleNamespace(description=description)
    assert read_mime_types(archive) == {1: ("application/x-node",), 2: ("application/x-frame",)}
