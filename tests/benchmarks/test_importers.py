"""Exported FMUs of all four kinds in the importers that are installed."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from peers.importers import IMPORTERS
from studies import importers

from biella import DiagramError

pytestmark = pytest.mark.engine
CASES = [
    (case, *kind) for case in (*importers.CASES, *importers.EXAMPLES) for kind in importers.KINDS
]
INTERNAL = {"05_co_simulation", "07_clearance_fourbar", "08_lubricated_crank_pin"}
"""Examples with internal solvers, which model exchange refuses."""


@pytest.mark.slow
@pytest.mark.usefixtures("c_compiler")
@pytest.mark.parametrize(("case", "version", "kind"), CASES)
def test_every_importer_gives_the_outputs_of_simulate(case, version, kind, tmp_path):
    """To the bit in co-simulation; in model exchange within the error of the solver."""
    fmu = tmp_path / "one.fmu"
    chosen = importers.CASES.get(case) or importers.load_example(case)
    if kind == "me" and case in INTERNAL:
        with pytest.raises(DiagramError, match="internal solver"):
            chosen.export(fmu, version, kind)
        return
    chosen.export(fmu, version, kind)
    program = importers.build_driver(tmp_path)
    cells = [
        importers.run(name, case, chosen, version, kind, fmu, sys.executable, program)
        for name in IMPORTERS
    ]
    assert [c.importer for c in cells if c.reason == "failed"] == []
    ran = {c.importer: c.deviation for c in cells if c.deviation is not None}
    assert {"FMPy", "C driver", "biella"} <= ran.keys()
    limit = chosen.largest if kind == "me" else 0.0
    assert {name: d for name, d in ran.items() if d > limit} == {}


def test_a_deviation_is_noticed():
    expected = np.array([[0.0, 1.0], [2.0, 1.0]])
    real = np.array([False, False])
    assert importers.compare(expected, expected, real) == 0.0
    other = expected + np.array([[0.0, 0.0], [1e-3, 0.0]])
    assert importers.compare(other, expected, real) == pytest.approx(5e-4)
    assert importers.compare(other, expected, ~real) == pytest.approx(1e-3)
    assert importers.compare(expected[:1], expected, real) == np.inf
