"""Blocks in Python: with states, and what they return wrongly."""

from __future__ import annotations

import numpy as np
import pytest

from biella import BlockError, Diagram, simulate
from biella.blocks import (
    Constant,
    Gain,
    Integrator,
    PythonBlock,
    UnitDelay,
    python_block,
)

pytestmark = pytest.mark.engine


def test_an_exception_in_a_python_block_stops_the_run_and_says_everything():
    @python_block(outputs=["y"])
    def divide(t, u):
        return 1.0 / (u - 3.0)

    d = Diagram(step=0.1, solver="euler")
    one = d.add(Constant(1.0))
    x = d.add(Integrator(0.0), name="x")
    bad = d.add(divide(), name="divide")
    d.connect(one, x)
    d.connect(x, bad)
    d.add(UnitDelay(), name="end")
    d.connect(bad, d["end"])
    x0 = 0.0
    for _ in range(30):
        x0 += 0.1
    with pytest.raises(BlockError) as info:
        simulate(d, 10.0, parameters={"x.initial": 3.0 - x0})
    text = str(info.value)
    assert "`divide`" in text and "ZeroDivisionError" in text and "tick 30" in text
    assert "u = 3" in text
    assert isinstance(info.value.__cause__, ZeroDivisionError)
    traceback = info.value.__cause__.__traceback__
    assert traceback is not None and traceback.tb_next is not None
    assert info.value.result is not None
    assert len(info.value.result.t) == 30


def test_python_blocks_with_state_run_like_native_ones():
    class Lag(PythonBlock):
        def __init__(self):
            super().__init__(inputs=["u"], outputs=["y"], state=[0.5], feedthrough=False)

        def output(self, t, x, u):
            return x[0]

        def derivative(self, t, x, u):
            return u

    class Delay(PythonBlock):
        def __init__(self):
            super().__init__(
                inputs=["u"], outputs=["y"], state=[0.0], period=0.02, feedthrough=False
            )

        def output(self, t, x, u):
            return x[0]

        def update(self, t, x, u):
            return [u]

    def loop(integrator, delay, period=None):
        d = Diagram(step=0.01)
        x = d.add(integrator, name="x")
        k = d.add(Gain(-2.0), name="k")
        z = d.add(delay, name="z", period=period)
        d.connect(x, k)
        d.connect(k, z)
        d.connect(z, x)
        return simulate(d, 1.0)

    native = loop(Integrator(0.5), UnitDelay(), period=0.02)
    python = loop(Lag(), Delay())
    for path in native:
        assert np.array_equal(native[path], python[path])
