"""What only FMI 2.0 says: each element of an array is a variable, and its index counts them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fmpy.validation
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


def test_illegal_names_are_found_among_names_that_were_checked() -> None:
    """`tests/fmu/conftest.py` lets FMPy check each kind of name once."""

    def check(*names: str) -> list[str]:
        variables = [SimpleNamespace(name=name, sourceline=1) for name in names]
        description: Any = SimpleNamespace(
            variableNamingConvention="structured", modelVariables=variables
        )
        return list(fmpy.validation._validate_variable_names(description))

    for _ in range(2):
        assert check("a[1].b", "a[22].b", "der(x,2)", "'any thing'") == []
        found = check("a[3].b", "1a", "a[3,].b", "der(x,3)")
        assert len(found) == 2
        assert found[0].startswith('"1a"') and found[1].startswith('"a[3,].b"')
