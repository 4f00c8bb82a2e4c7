"""Slow blocks: offline one period late, real-time by a worker that no tick waits for."""

import numpy as np
import pytest

from biella import Diagram, DiagramError, simulate
from biella.blocks import (
    Asynchronous,
    Gain,
    Integrator,
    Port,
    PythonBlock,
    Sine,
    UnitDelay,
)

from ...scheduler.realtime.slow_planner import PERIOD, Planner, loop

pytestmark = pytest.mark.engine


def test_offline_a_result_comes_one_period_after_its_inputs():
    result = simulate(loop(Planner()), 0.5)
    d = Diagram("by hand", step=1e-3)
    reference = d.add(Sine(frequency=3.0), name="ref")
    planner = d.add(Planner(period=PERIOD), name="planner")
    d.connect(reference, planner)
    for name, width in (("y", 1), ("means", 2)):
        d.connect(planner[name], d.add(UnitDelay([0.0] * width), name=name, period=PERIOD))
    plant = d.add(Integrator(0.0), name="plant")
    d.connect(d["y"], plant)
    expected = simulate(d, 0.5)
    assert np.array_equal(result["planner.y"], expected["y"])
    assert np.array_equal(result["planner.means"], expected["means"])
    assert np.array_equal(result["plant"], expected["plant"])
    assert result["planner.y"].any()
    hits = slice(10, None, 10)
    np.testing.assert_allclose(result["planner.age"][hits], PERIOD, atol=1e-12)
    np.testing.assert_allclose(result["planner.since"][hits], result.t[hits] - PERIOD, atol=1e-12)


def test_a_checkpoint_holds_its_state():
    whole = simulate(loop(Planner()), 0.2)
    first = simulate(loop(Planner()), 0.083)
    rest = simulate(loop(Planner()), 0.2, checkpoint=first.checkpoint)
    assert np.array_equal(rest["planner.means"], whole["planner.means"][83:])


def test_what_cannot_wait_is_refused():
    class Lag(PythonBlock):
        def __init__(self):
            super().__init__(inputs=["u"], outputs=["y"], state=[0.0], feedthrough=False)

        def output(self, t, x, u):
            return x[0]

        def derivative(self, t, x, u):
            return u - x[0]

    class Old(PythonBlock):
        def __init__(self, port):
            super().__init__(inputs=[Port("u")], outputs=[port], period=1.0)

        def output(self, t, x, u):
            return u

    with pytest.raises(DiagramError, match="requires a block or a Diagram, got 3"):
        Asynchronous(3, period=1.0)
    with pytest.raises(DiagramError, match=r"fixed width, unlike `y`.*put .* into a Diagram"):
        Asynchronous(Gain(1.0), period=1.0)
    with pytest.raises(DiagramError, match="has continuous states"):
        Asynchronous(Lag(), period=1.0)
    with pytest.raises(DiagramError, match="already has an output `age`"):
        Asynchronous(Old(Port("age")), period=1.0)
    with pytest.raises(DiagramError, match="needs ports of fixed width, unlike `y`"):
        Asynchronous(Old(Port("y", "n")), period=1.0)
