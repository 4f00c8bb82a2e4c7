"""The variables of an export: references, shapes, locals, limits and nominal values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biella import BiellaError, Diagram
from biella.blocks import Gain, StateSpace
from biella.fmu.exporter._variables import choose_local, list_variables

from .conftest import lag, read_xml


def make_matrix() -> Diagram:
    d = Diagram("matrix")
    block = d.add(StateSpace(-np.eye(2), np.ones((2, 3)), np.eye(2), np.zeros((2, 3))), name="ss")
    d.connect(d.input("u", width=3), block)
    d.output("y", block)
    d.add(Gain(2.0), "k", u=block)
    return d


def test_references_count_elements() -> None:
    model = make_matrix().compile()
    found = {v.name: (v.reference, v.shape) for v in list_variables(model)}
    assert found["u"] == (0, (3,))
    assert found["y"] == (3, (2,))
    assert found["ss.A"] == (5, (2, 2))
    assert found["ss.B"] == (9, (2, 3))
    total = sum(v.size for v in list_variables(model))
    assert total == len(model.sections["VARS"]) // 12
    (b,) = (v for v in list_variables(model) if v.name == "ss.B")
    assert b.element_names[:4] == ["ss.B[0,0]", "ss.B[0,1]", "ss.B[0,2]", "ss.B[1,0]"]
    # Locals come after all others.
    last = list_variables(model, choose_local(model, ["k.*"]))[-1]
    assert (last.name, last.reference, last.shape) == ("k.y", total, (2,))


def test_locals_are_chosen_by_path_pattern_or_block(tmp_path: Path) -> None:
    model = make_matrix().compile()
    for pattern in ("k.y", "k.*", "k", "*k.y"):
        assert [port.path for port in choose_local(model, [pattern])] == ["k.y"]
    assert [port.path for port in choose_local(model, ["*", "k.y"])] == ["ss.y", "k.y"]
    with pytest.raises(BiellaError, match=r"no signal `kk`.*Signals: ss\.y, k\.y"):
        choose_local(model, ["kk"])
    for version in ("2.0", "3.0"):
        path = make_matrix().export_fmu(tmp_path / "x.fmu", version=version, local=["k"])
        kinds = {v.get("causality") for v in read_xml(path).iter() if v.get("causality")}
        assert kinds - {"independent"} == {"input", "output", "parameter", "local"}


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_limits_and_nominal_values_are_declared(tmp_path: Path, version: str) -> None:
    path = lag().export_fmu(
        tmp_path / "x.fmu",
        version=version,
        limits={"u": (-2, 3.5), "k.k": (0.0, None), "y": (-math.inf, 9.0)},
        nominal={"u": 100.0},
    )
    found = {}
    for v in read_xml(path).iter():
        value = v[0] if v.tag == "ScalarVariable" else v
        if v.get("valueReference") and v.get("name"):
            found[v.get("name")] = [value.get(key) for key in ("min", "max", "nominal")]
    assert found["u"] == ["-2.0", "3.5", "100.0"]
    assert found["k.k"] == ["0.0", None, None]
    assert found["y"] == [None, "9.0", None]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits": {"v": (0, 1)}}, "`limits` names `v`, which is no variable.*Variables: u, y"),
        ({"nominal": {"v": 1.0}}, "`nominal` names `v`"),
        ({"limits": {"u": (1.0, 2.0)}}, "exclude its start value 0"),
        ({"limits": {"u": (1.0, -1.0)}}, "exclude every value"),
        ({"limits": {"u": 3.0}}, "must be a pair"),
        ({"limits": {"u": (0.0, math.nan)}}, "exclude every value"),
        ({"nominal": {"u": 0.0}}, "must be a positive number"),
        ({"version": "1.0"}, 'choose version="2.0" or "3.0"'),
        ({"about": {"autor": "x"}}, "Did you mean `author`"),
        ({"about": {"author": 3}}, "must contain text"),
        ({"about": "me"}, "must be a dict"),
    ],
)
def test_wrong_options_write_nothing(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BiellaError, match=message):
        lag().export_fmu(tmp_path / "x.fmu", **options)
    assert list(tmp_path.iterdir()) == []
