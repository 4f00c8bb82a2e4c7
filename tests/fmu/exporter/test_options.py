"""Options of an export of the wrong form: refused by name, and nothing is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from biella import BiellaError
from biella.blocks.multibody.mechanisms import slider_crank

from .conftest import lag

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"inputs": "u"}, "`inputs` must be a list, such as ['u']."),
    ({"inputs": 5}, "`inputs` must be a list of names; got 5."),
    ({"outputs": "k.y"}, "`outputs` must be a list, such as ['k.y']."),
    ({"outputs": [3]}, "`outputs` must be a list of names; got 3."),
    ({"parameters": "k.*"}, "`parameters` must be a list, such as ['k.*']."),
    ({"parameters": 5}, "`parameters` must be a list of names; got 5."),
    ({"parameters": {1: 2.0}}, "`parameters` must have names as keys; got 1."),
    ({"platforms": "linux64"}, "`platforms` must be a list, such as ['linux64']."),
    ({"local": "k.*"}, "`local` must be a list, such as ['k.*']."),
    ({"local": [3]}, "`local` must be a list of names; got 3."),
    ({"limits": [1.0]}, '`limits` must be a dict, such as {"torque": (-40.0, 40.0)}.'),
    ({"limits": {1: (0.0, 1.0)}}, "`limits` must have names as keys; got 1."),
    ({"nominal": 1.0}, '`nominal` must be a dict, such as {"torque": 10.0}.'),
    ({"nominal": {"y": "1"}}, "the nominal value of `y` must be a positive number"),
    ({"types": ["y"], "version": "3.0"}, '`types` must be a dict, such as {"speed": "Float32"}.'),
    ({"about": ["me"]}, "`about` must be a dict, such as"),
    ({"kind": ["cs"]}, "kind is 'cs' for co-simulation, 'me' for model exchange, or 'both'"),
    ({"reference": 1.0}, "`reference` requires Experiment(until=…), got 1.0."),
    ({"reference": [1.0]}, "`reference` requires Experiment(until=…), got 1.0."),
]


@pytest.mark.parametrize(("options", "message"), WRONG, ids=[str(o) for o, _ in WRONG])
def test_options_of_the_wrong_form(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(BiellaError, match=re.escape(message)):
        lag().export_fmu(tmp_path / "x.fmu", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("make", [lag, slider_crank])
def test_what_is_no_file(make: Any, tmp_path: Path) -> None:
    with pytest.raises(BiellaError, match=r"needs a file name, such as 'model\.fmu'; got None"):
        make().export_fmu(None)
    with pytest.raises(BiellaError, match=r"it is a folder\. Name a file in it"):
        make().export_fmu(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_names_may_come_one_by_one(tmp_path: Path) -> None:
    names: Any = iter(["k.k"])
    assert lag().export_fmu(tmp_path / "x.fmu", parameters=names).exists()
