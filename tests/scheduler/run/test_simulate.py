"""Offline runs: what is recorded, and how a run ends early."""

from __future__ import annotations

import numpy as np
import pytest

from biella import BiellaError, Diagram, simulate
from biella.blocks import (
    Constant,
    PythonBlock,
)

pytestmark = pytest.mark.engine


def test_ctrl_c_keeps_what_was_recorded():
    class Interrupt(PythonBlock):
        def __init__(self):
            super().__init__(inputs=["u"])

        def update(self, t, x, u):
            if t >= 0.5:
                raise KeyboardInterrupt

    d = Diagram(step=0.1)
    one = d.add(Constant(1.0), name="one")
    sink = d.add(Interrupt(), name="sink")
    d.connect(one, sink)
    result = simulate(d, 10.0)
    assert "interrupted at t = 0.5" in result.info["stopped"]
    assert len(result.t) == 6


def test_recording_is_chosen_and_decimated(pendulum_loop):
    d = pendulum_loop()
    full = simulate(d, 1.0)
    some = simulate(d, 1.0, record=["pendulum.*", "kp"], every=10)
    assert some.paths == ["pendulum.angle", "pendulum.speed", "kp.y"]
    assert np.array_equal(some.t, full.t[::10])
    assert np.array_equal(some["kp"], full["kp"][::10])
    with pytest.raises(BiellaError, match=r"no signal `pendulum.angel`. Did you mean"):
        simulate(d, 1.0, record=["pendulum.angel"])


def test_recording_everything_of_a_huge_run_is_refused_with_advice(pendulum_loop):
    with pytest.raises(BiellaError, match=r"GB of memory.*out='run.h5'"):
        simulate(pendulum_loop(), 1e6)


def test_streaming_gives_the_same_numbers(pendulum_loop, tmp_path):
    d = pendulum_loop()
    a = simulate(d, 1.0)
    b = simulate(d, 1.0, out=tmp_path / "run.h5")
    for path in a:
        assert np.array_equal(a[path], b[path])
