"""Which inputs an output depends on at once: loops are found port by port."""

from __future__ import annotations

import itertools
import random

import pytest

from biella import Diagram, simulate
from biella.blocks import (
    Constant,
    Gain,
    Integrator,
    Sum,
    UnitDelay,
)
from biella.scheduler.compile._flatten import flatten
from biella.scheduler.compile._order import order_outputs
from biella.scheduler.compile._rates import resolve_rates

pytestmark = pytest.mark.engine


def order_of(diagram: Diagram):
    """Return the order of a diagram, and the paths of the calls in it."""
    flat = flatten(diagram)
    rates = resolve_rates(flat, 1e-3, [])
    widths = [[1] * len(item.block.outputs) for item in flat.blocks]
    order = order_outputs(flat, rates, widths)
    return order, [flat.blocks[n].path for kind, n in order.entries if kind == "call"]


@pytest.mark.parametrize("seed", range(5))
def test_a_block_runs_after_what_feeds_it_in_whatever_order_they_were_added(seed):
    names = [f"g{n}" for n in range(12)]
    shuffled = names.copy()
    random.Random(seed).shuffle(shuffled)
    d = Diagram("chain")
    blocks = {name: d.add(Gain(1.0), name=name) for name in shuffled}
    d.connect(d.add(Integrator(), name="end"), blocks["g0"])
    for a, b in itertools.pairwise(names):
        d.connect(blocks[a], blocks[b])
    d.connect(blocks["g11"], d["end"])
    order, calls = order_of(d)
    assert order.loops == () and order.problems == ()
    assert [name for name in calls if name != "end"] == names


@pytest.mark.parametrize(("middle", "loops"), [(Gain(0.5), 1), (UnitDelay(), 0), (Integrator(), 0)])
def test_a_cycle_is_a_loop_only_without_a_state_in_it(middle, loops):
    d = Diagram("cycle")
    one, total = d.add(Constant(1.0), name="one"), d.add(Sum("++"), name="total")
    back = d.add(middle, name="back")
    d.connect(one, total["u1"])
    d.connect(back, total["u2"])
    d.connect(total, back)
    order, calls = order_of(d)
    assert len(order.loops) == loops
    if loops:
        (loop,) = order.loops
        assert len(loop.body) == 2 and len(loop.tears) == 1
        assert calls == ["one"]


def test_what_is_legal_per_port_pair_is_never_a_loop(crossed):
    crossed.algebraic_loops = "error"
    plan = crossed.compile()
    assert plan.loops == ()
    assert simulate(plan, 0.01)["pair.y2"][-1] == 90.0
