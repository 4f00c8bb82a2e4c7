"""Diagrams: wiring, checks, order, loops; what is wrong is said all at once."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram, DiagramError, simulate
from biella.blocks import (
    PID,
    Constant,
    Gain,
    Sum,
    UnitDelay,
)

pytestmark = pytest.mark.engine


def test_ends_by_object_name_or_port():
    d = Diagram()
    c = d.add(Constant(2.0), name="c")
    s = d.add(Sum("+-"), name="s")
    d.connect(c, s["u1"], "s.u2")
    d.connect("s", d.add(Gain(1.0), name="g"))
    assert simulate(d, 0.01)["g"][-1] == 0.0


def test_automatic_names():
    d = Diagram()
    for _ in range(2):
        d.add(UnitDelay())
    assert list(d.blocks) == ["unit_delay", "unit_delay_2"]


# Loops that have no unique solution.


def test_a_vector_input_of_the_diagram():
    d = Diagram()
    u = d.input("u", width=3, default=1.0)
    k = d.add(Gain([[1.0, 2.0, 3.0]]), name="k")
    d.connect(u, k)
    d.output("y", k)
    assert simulate(d, 0.01, parameters={"u": [1, 10, 100]})["k"][-1] == 321.0


def test_an_input_with_too_few_defaults_is_refused_by_its_name():
    """Else its last elements would have been those of what follows in memory."""
    with pytest.raises(DiagramError, match="the default of `load` has 2 values, but the port has"):
        Diagram("short", step=0.1).input("load", width=3, default=(1.0, 2.0))


def test_the_output_called_y_is_meant_where_a_block_has_others_too():
    d = Diagram("loop", step=1e-3)
    pid = d.add(PID(kp=2.0, period=1e-3), name="pid")
    k = d.add(Gain(3.0), name="k")
    d.connect(d.input("wanted", default=1.0), pid["reference"])
    d.connect(d.input("measured", default=0.5), pid["measurement"])
    d.connect(pid, k)
    run = simulate(d.compile(outputs=["pid"]), until=0.01)
    np.testing.assert_array_equal(run["pid"], run["pid.y"])
    np.testing.assert_array_equal(run["k"], 3.0)
