"""What only FMI 2.0 says: each element of an array is a variable, and its index counts them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from fmpy.validation import validate_fmu

from biella import Diagram
from biella.blocks import Gain, StateSpace

from .conftest import read_xml


def test_dependencies_are_indices_of_scalars(tmp_path: Path) -> None:
    d = Diagram("two by three")
    block = d.add(StateSpace(-np.eye(2), np.ones((2, 3)), np.eye(2), np.ones((2, 3))), name="ss")
    d.connect(d.input("u", width=3), block)
    d.output("y", block)
    path = d.export_fmu(tmp_path / "x.fmu")
    assert validate_fmu(str(path)) == []
    root = read_xml(path)
    names = [v.get("name") for v in root.iter("ScalarVariable")]
    assert names[:5] == ["u[0]", "u[1]", "u[2]", "y[0]", "y[1]"]
    unknowns = root.findall("ModelStructure/Outputs/Unknown")
    assert [(u.get("index"), u.get("dependencies")) for u in unknowns] == [
        ("4", "1 2 3"), ("5", "1 2 3"),
    ]  # fmt: skip


def test_author_and_license_are_attributes(tmp_path: Path) -> None:
    d = Diagram("named")
    d.output("y", d.add(Gain(1.0), "k", u=d.input("u")))
    about = {
        "author": "A. Author", "version": "1.2", "license": "MIT", "copyright": "© A. Author",
        "description": "A wire.",
    }  # fmt: skip
    for version in ("2.0", "3.0"):
        path = d.export_fmu(tmp_path / "x.fmu", about=about, version=version)
        assert validate_fmu(str(path)) == []
        root = read_xml(path)
        assert str(root.get("description")).startswith("A wire. Base step")
        for key in ("author", "version", "license", "copyright"):
            assert root.get(key) == about[key]
