"""A diagram for tests of plans, of the engine and of runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from biella import Diagram
from biella.blocks import Constant, Gain, Pendulum, Sum, UnitDelay


def make_pendulum_loop() -> Diagram:
    """A multirate loop with continuous and discrete states."""
    d = Diagram("pendulum loop")
    ref = d.add(Constant(0.5, unit="rad"), name="ref")
    p = d.add(Pendulum(angle=0.2, damping=0.1), name="pendulum")
    error = d.add(Sum("+-"), name="error")
    gain = d.add(Gain(3.0, unit="N.m"), name="kp", period=0.01)
    delay = d.add(UnitDelay(), name="delay", period=0.01)
    d.connect(ref, error["u1"])
    d.connect(p["angle"], error["u2"])
    d.connect(error, gain)
    d.connect(gain, delay)
    d.connect(delay, p)
    d.output("angle", p["angle"])
    return d


@pytest.fixture(scope="session")
def pendulum_loop() -> Callable[[], Diagram]:
    """Return the function that makes a new loop."""
    return make_pendulum_loop
