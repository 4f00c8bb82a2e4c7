"""Runs that overflow: a step too long, or a diagram that is unstable itself."""

from __future__ import annotations

import re

import numpy as np
import pytest

from biella import BlockError, Diagram, simulate
from biella.blocks import Constant, Gain, Integrator
from biella.scheduler.engine._growth import explain_growth

pytestmark = pytest.mark.engine


def test_a_stiff_diagram_that_overflows_is_reported_with_step_and_solver():
    """x' = -1e4 x in a loop of blocks, none of which is stiff by itself."""
    d = Diagram("stiff", step=1e-2)
    d.connect(d.add(Integrator(1.0), name="x"), d.add(Gain(-1e4), name="k"))
    d.connect("k", "x")
    with pytest.raises(
        BlockError,
        match=r"not finite.*cause is the step.*1e\+04 1/s.*`rk4` is stable.*up to 0\.000279 s, not "
        r"0\.01 s.*backward_euler",
    ):
        simulate(d, 20.0)
    assert np.isfinite(simulate(d, 20.0, solver="backward_euler")["x"]).all()


def feedback(gain: float, step: float = 1e-2) -> Diagram:
    d = Diagram("growing", step=step)
    d.connect(d.add(Integrator(1.0), name="x"), d.add(Gain(gain), name="k"))
    d.connect("k", "x")
    return d


def explain(d: Diagram) -> str:
    with d.compile().instantiate() as instance:
        instance.initialize()
        return explain_growth(instance)


def test_an_unstable_diagram_is_reported_with_its_time_constant():
    """x' = 5 x grows with a time constant of 1/5 s, whatever the step."""
    assert re.search(r"unstable at the start: .* time constant of 0\.2 s", explain(feedback(5.0)))
    with pytest.raises(BlockError, match=r"unstable at the start.*Check gains and signs"):
        simulate(feedback(5.0), 300.0)


@pytest.mark.parametrize(("gain", "told"), [(-278.0, False), (-279.0, True)])
def test_the_step_is_the_cause_from_the_limit_of_the_solver_on(gain, told):
    """rk4 is stable for real λ h ≥ -2.785."""
    assert ("cause is the step" in explain(feedback(gain))) == told


def test_substeps_that_are_too_long_are_the_cause():
    """rk4 is stable for real λ h ≥ -2.785: 36 substeps are needed."""
    d = feedback(-1e4)
    d.add(Integrator(), "slow", u="x")
    d.integrate("x", substeps=10)
    with pytest.raises(BlockError, match=r"cause is the substeps.* not 0\.001 s.*substeps=36 or"):
        simulate(d, 20.0)
    d.integrate("x", substeps=40)
    assert explain(d) == ""


def test_without_states_or_growth_there_is_nothing_to_explain():
    empty = Diagram("none")
    empty.add(Constant(2.0))
    assert explain(empty) == ""
    assert explain(feedback(-1.0)) == ""
