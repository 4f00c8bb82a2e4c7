"""Symbols and versions in ELF files."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest

from biella.fmu.exporter._elf import exported_symbols, minimum_glibc

from .conftest import Exported


def read_xml(path: Path) -> ET.Element:
    with zipfile.ZipFile(path) as archive:
        return ET.fromstring(archive.read("modelDescription.xml"))


def test_only_fmi_and_engine_functions_are_seen_from_outside(crank: Exported) -> None:
    """-fvisibility=hidden: two FMUs in one process do not meet."""
    names = exported_symbols(crank.library.read_bytes())
    assert len([name for name in names if name.startswith("fmi2")]) == 44
    assert len([name for name in names if name.startswith("fmi3")]) == 75
    assert [name for name in names if not re.match(r"(fmi[23][A-Z]|bl_)", name)] == []


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed")
def test_the_reader_of_elf_files_agrees_with_readelf(crank: Exported) -> None:
    def listed(*options: str) -> str:
        command = ["readelf", "--wide", *options, str(crank.library)]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=300
        ).stdout

    library = crank.library.read_bytes()
    versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", listed("--version-info"))
    assert minimum_glibc(library) == "{}.{}".format(*max((int(a), int(b)) for a, b in versions))
    symbols = re.findall(r"(?:FUNC|OBJECT).* (?!UND)\S+ (\w+)\n", listed("--dyn-syms"))
    assert exported_symbols(library) == sorted(symbols)
    # -Bsymbolic: a library calls its own functions, whatever else the process has loaded.
    assert "SYMBOLIC" in listed("--dynamic")


def test_the_reader_of_elf_files_refuses_others() -> None:
    for data in (b"", b"MZ" + bytes(100), b"\x7fELF\x01\x01" + bytes(100)):
        assert minimum_glibc(data) is None
        assert exported_symbols(data) == []


def test_the_export_says_which_glibc_it_needs(crank: Exported) -> None:
    least = minimum_glibc(crank.library.read_bytes())
    assert least is not None
    description = read_xml(crank.path).get("description", "")
    assert f"On linux64 it requires glibc {least} or newer." in description
    page = (crank.folder / "documentation" / "index.html").read_text(encoding="utf-8")
    assert f"linux64 (glibc {least} or newer)" in page
