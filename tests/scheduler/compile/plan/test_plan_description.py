"""What a plan says about its blocks, ports and parameters."""

from __future__ import annotations

from biella import Diagram, Subsystem
from biella.blocks import Constant, DiscreteTransferFunction, Gain, Integrator, UnitDelay


def described() -> Diagram:
    d = Diagram("described", step=1e-3)
    u = d.input("u", unit="N")
    gain = d.add(Gain(2.0, unit="N"), name="gain")
    held = d.add(DiscreteTransferFunction([1.0, 0.5], [1.0, 0.0], period=0.002), name="held")
    state = d.add(Integrator(), name="state")
    d.connect(u, gain)
    d.connect(gain, held)
    d.connect(gain, state)
    d.output("held", held)
    d.output("state", state)
    return d


def test_inputs_and_outputs_have_names_units_and_say_whether_they_are_sampled():
    plan = described().compile()
    assert list(plan.inputs) == ["u"] and plan.inputs["u"].unit == "N"
    assert list(plan.outputs) == ["held", "state"]
    assert plan.outputs["state"].unit == "N.s"
    assert plan.outputs["held"].sampled and not plan.outputs["state"].sampled


def test_a_block_is_described_with_its_rate_and_parameters():
    blocks = {block.path: block for block in described().compile().blocks}
    assert [p.path for p in blocks["gain"].parameters] == ["gain.k"]
    assert "0.002 s" in str(blocks["held"]) and "continuous" in str(blocks["state"])


def test_an_output_depends_on_the_inputs_that_reach_it_at_once():
    dependencies = described().compile().meta["dependencies"]
    assert len(dependencies) == 2
    assert dependencies[0] and not dependencies[1]


def test_a_loop_is_named_port_by_port():
    d = Diagram("loop", step=1e-3)
    a, b = d.add(Gain(0.5), name="a"), d.add(Gain(0.5), name="b")
    d.connect(a, b)
    d.connect(b, a)
    ((*cycle,),) = d.compile().loops
    assert {"a.y", "b.y"} <= set(cycle)


def test_a_block_with_one_output_goes_by_its_own_name():
    inner = Diagram("inner")
    delay = inner.add(UnitDelay(), name="delay")
    inner.connect(inner.input("u"), delay)
    inner.output("y", delay)
    d = Diagram("outer", step=1e-3)
    box = d.add(Subsystem(inner), name="box")
    d.connect(d.add(Constant(1.0), name="c"), box)
    plan = d.compile()
    assert plan.find_signal("c") is plan.signals["c.y"]
    assert plan.find_signal("box.delay") is plan.signals["box.delay.y"]
