"""Exported FMUs of all four kinds in the importers that are installed."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from peers.importers import IMPORTERS
from studies import importers

pytestmark = pytest.mark.engine
CASES = [(case, *kind) for case in importers.CASES for kind in importers.KINDS]


@pytest.mark.slow
@pytest.mark.usefixtures("c_compiler")
@pytest.mark.parametrize(("case", "version", "kind"), CASES)
def test_every_importer_gives_the_outputs_of_simulate(case, version, kind, tmp_path):
    """To the bit in co-simulation; in model exchange within 1000 times the solver's tolerance."""
    fmu = tmp_path / "one.fmu"
    importers.CASES[case].make().export_fmu(fmu, version=version, kind=kind)
    program = importers.build_driver(tmp_path)
    cells = [
        importers.run(name, case, version, kind, fmu, sys.executable, program) for name in IMPORTERS
    ]
    assert [c.importer for c in cells if c.reason == "failed"] == []
    ran = {c.importer: c.deviation for c in cells if c.deviation is not None}
    assert {"FMPy", "C driver", "biella"} <= ran.keys()
    limit = importers.LARGEST if kind == "me" else 0.0
    assert {name: d for name, d in ran.items() if d > limit} == {}


def test_a_deviation_is_noticed():
    expected = np.array([[0.0, 1.0], [2.0, 1.0]])
    assert importers.compare(expected, expected) == 0.0
    other = expected + np.array([[0.0, 0.0], [1e-3, 0.0]])
    assert importers.compare(other, expected) == pytest.approx(5e-4)
    assert importers.compare(expected[:1], expected) == np.inf
