"""A diagram for tests of the order of execution."""

from __future__ import annotations

import pytest

from biella import Diagram
from biella.blocks import Constant, Gain, PythonBlock


@pytest.fixture
def crossed() -> Diagram:
    """y1 = u1 and y2 = u2 of one block, y1 wired to u2: legal per port pair, a loop per block."""

    class Pair(PythonBlock):
        def __init__(self):
            super().__init__(
                inputs=["u1", "u2"],
                outputs=["y1", "y2"],
                feedthrough=[("y1", "u1"), ("y2", "u2")],
            )

        def output(self, t, x, u):
            return u[0] + 1.0, 10.0 * u[1]

    d = Diagram()
    c = d.add(Constant(2.0), name="c")
    pair = d.add(Pair(), name="pair")
    k = d.add(Gain(3.0), name="k")
    d.connect(c, pair["u1"])
    d.connect(pair["y1"], k)
    d.connect(k, pair["u2"])
    return d
