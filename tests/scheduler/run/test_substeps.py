"""Suggestions of substeps, from the eigenvalues of a diagram."""

from __future__ import annotations

import pytest

from biella import Diagram
from biella.blocks import Constant, Gain, Integrator, StateSpace, TransferFunction
from biella.scheduler.run._substeps import suggest_substeps

pytestmark = pytest.mark.engine


def drive(lag: float = 50e-6, **options) -> Diagram:
    """A lag beside an oscillator of 10 rad/s, of two blocks."""
    d = Diagram("drive", 1e-5, **options)
    x, v = d.add(Integrator(1.0), "x"), d.add(Integrator(), "v")
    d.connect(v, x)
    circuit = d.add(TransferFunction([1.0], [lag, 1.0]), "circuit")
    d.connect(d.add(Gain(-100.0), "spring", u=x), circuit)
    d.connect(circuit, v)
    return d


def test_the_fast_part_is_found():
    text = suggest_substeps(drive().compile())
    assert text.startswith("circuit: eigenvalues up to |λ| = 2e+04 1/s")
    assert "all other states up to" in text


def test_two_blocks_that_oscillate_together_are_fast_together():
    d = drive(lag=0.2)
    a, b = d.add(Integrator(1.0), "a"), d.add(Integrator(), "b")
    d.connect(d.add(Gain(1e4), "g", u=b), a)
    d.connect(d.add(Gain(-1e4), "h", u=a), b)
    assert suggest_substeps(d.compile()).startswith("a, b: eigenvalues up to |λ| = 1e+04 1/s")


def test_there_is_nothing_to_suggest():
    """Similar rates, error control, substeps already, no states."""
    assert suggest_substeps(drive(lag=0.2).compile()) == ""
    assert suggest_substeps(drive(solver="dopri5", tolerance=1e-6).compile()) == ""
    taken = drive()
    taken.integrate("circuit", substeps=10)
    assert suggest_substeps(taken.compile()) == ""
    empty = Diagram("empty")
    empty.add(Constant(1.0), "one")
    assert suggest_substeps(empty.compile()) == ""
    alone = Diagram("alone", 1e-5)
    alone.add(StateSpace([[-1e3]], [[1.0]], [[1.0]]), "x", u=alone.add(Constant(1.0), "one"))
    assert suggest_substeps(alone.compile()) == ""
