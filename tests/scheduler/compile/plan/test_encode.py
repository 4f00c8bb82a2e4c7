"""Where every value of a plan lies."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks import Constant, Gain, Integrator, Mux, StateSpace, UnitDelay
from biella.blocks.core._block import AbstractBlock
from biella.blocks.core._ports import PortRef

pytestmark = pytest.mark.engine


def mixed() -> Diagram:
    """Vectors, matrices, states and rates of several kinds."""
    d = Diagram("mixed", step=1e-3)
    a = d.add(Constant([1.0, 2.0, 3.0]), name="a")
    x = d.add(StateSpace(-np.eye(3), np.eye(3), np.eye(3), np.zeros((3, 3))), name="x")
    held = d.add(UnitDelay(), name="held")
    i, mux = d.add(Integrator([0.0, 0.0, 0.0]), name="i"), d.add(Mux(2), name="mux")
    end = d.add(Gain(2.0), name="end")
    wires: list[tuple[AbstractBlock, AbstractBlock | PortRef]]
    wires = [(a, x), (x, held), (held, i), (i, mux["u1"]), (a, mux["u2"])]
    for source, target in wires:
        d.connect(source, target)
    d.connect(mux, end)
    return d


def slots(items):
    """Return every slot that some ports or parameters take."""
    return [n for item in items for n in item]


def test_no_two_values_share_a_slot():
    plan = mixed().compile()
    signals = slots(range(s.slot, s.slot + s.width) for s in plan.signals.values())
    parameters = slots(range(p.slot, p.slot + p.size) for p in plan.parameters.values())
    assert len(signals) == 3 * 4 + 6 * 2
    assert len(set(signals)) == len(signals) and len(set(parameters)) == len(parameters)
    assert not set(signals) & set(parameters)


def test_an_input_reads_the_slot_of_the_output_that_is_connected_to_it():
    plan = mixed().compile()
    inputs = {port.path: port for block in plan.blocks for port in block.inputs}
    for target, source in [
        ("x.u", "a.y"),
        ("held.u", "x.y"),
        ("mux.u2", "a.y"),
        ("end.u", "mux.y"),
    ]:
        assert inputs[target].slot == plan.signals[source].slot, target


def test_the_values_of_parameters_are_found_again_in_a_run():
    result = simulate(mixed(), 0.01)
    assert result["a"][0].tolist() == [1.0, 2.0, 3.0]
    assert result["end"][0].tolist() == [0.0, 0.0, 0.0, 2.0, 4.0, 6.0]
