"""Descriptions that are not in UTF-8."""

from __future__ import annotations

import warnings
import zipfile

import pytest
from specimen import compile_specimen, description

from biella import Fmu
from biella.errors import BiellaWarning, FmuError
from biella.fmu.importer._archive import platform_folder

XML = description().replace("drives x", "Längsträger °C")


def make(path, text: bytes):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("modelDescription.xml", text)
        library = compile_specimen().read_bytes()
        file.writestr(f"binaries/{platform_folder()}/specimen.so", library)
    return path


def declared(encoding: str) -> bytes:
    return XML.replace('encoding="UTF-8"', f'encoding="{encoding}"').encode(encoding)


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (XML.encode(), None),
        (XML.encode("utf-8-sig"), None),
        (declared("ISO-8859-1"), None),
        (declared("windows-1252"), None),
        (XML.partition("\n")[2].encode(), None),
        (b"\n  " + XML.encode(), "has white space before its first line"),
        (declared("UTF-16"), "is in utf-16. FMI requires UTF-8"),
        (declared("UTF-32"), "is in utf-32. FMI requires UTF-8"),
        (declared("UTF-16-LE"), "is in utf-16-le"),
        (declared("ISO-8859-15"), "is in iso-8859-15"),
        (XML.encode("cp1252"), "is not valid utf-8: it is read as Windows-1252"),
    ],
)
def test_the_text_is_read_and_the_encoding_reported(tmp_path, text, finding):
    path = make(tmp_path / "s.fmu", text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        block = Fmu(path)
    assert {port.name: port.doc for port in block.inputs}["u"] == "Längsträger °C"
    assert [finding in str(w.message) for w in caught if finding] == [True] * bool(finding)
    assert len(caught) == bool(finding)
    assert all(w.category is BiellaWarning and w.filename == __file__ for w in caught)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (XML.replace("UTF-8", "EBCDIC-9").encode(), "in the encoding 'ebcdic-9', which is unknown"),
        (XML.replace("UTF-8", "rot13").encode(), "in the encoding 'rot13', which is unknown"),
        (XML.encode() + b"\0", "contains null characters"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path, text, message):
    with pytest.raises(FmuError, match=message):
        Fmu(make(tmp_path / "s.fmu", text))
