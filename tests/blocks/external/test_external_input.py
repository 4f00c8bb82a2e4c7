"""Placeholders for what is not simulated."""

import numpy as np
import pytest

from biella import Diagram, DiagramError
from biella.blocks import Constant, Gain, RealTime
from biella.blocks.core._ports import Port
from biella.blocks.external._external_input import RECEIVED, ExternalInput
from biella.scheduler.realtime.loop._pace import TIMING_SIGNALS

pytestmark = pytest.mark.engine


def test_values_stand_port_after_port_and_are_held():
    block = ExternalInput(
        outputs=[Port("a", 2), Port("b"), Port("c", 3)], start={"c": [1, 2, 3], "a": 7}
    )
    assert block.parameters[0].value.tolist() == [7, 7, 0, 1, 2, 3]
    d = Diagram("outside", step=0.1)
    d.connect(d.add(block, name="x")["c"], d.add(Gain(1.0), name="g"))
    plan = d.compile()
    with plan.instantiate() as run:
        run.initialize()
        run.run(3)
        slot = plan.find_signal("g").slot
        assert run.values[slot : slot + 3].tolist() == [1, 2, 3]
        run.set(f"x.{RECEIVED}", [0, 0, 0, 4, 5, 6])
        run.run(1)
        assert run.values[slot : slot + 3].tolist() == [4, 5, 6]


def test_its_inputs_have_no_influence_on_its_outputs():
    """A loop through the outside is not an algebraic loop."""
    d = Diagram("loop", step=0.1, algebraic_loops="error")
    x = d.add(ExternalInput([Port("u")], [Port("y")]), name="x")
    g = d.add(Gain(2.0), name="g")
    d.connect(x, g)
    d.connect(g, x)
    assert d.compile().loops == ()


def test_without_outputs_there_is_nothing_to_receive():
    block = ExternalInput(inputs=[Port("u", 2)])
    assert list(block.parameters) == []
    d = Diagram("sink", step=0.1)
    d.connect(d.add(Constant([1.0, 2.0])), d.add(block, name="x"))
    assert f"x.{RECEIVED}" not in d.compile().parameters


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ExternalInput(), "at least one port"),
        (lambda: ExternalInput(outputs=[Port("y", "n")]), "fixed width, unlike `y`"),
        (
            lambda: ExternalInput(outputs=[Port("speed")], start={"sped": 1.0}),
            "no output `sped` to start. Did you mean `speed`",
        ),
        (
            lambda: ExternalInput(outputs=[Port("y", 3)], start={"y": [1.0, 2.0]}),
            r"`y` of ExternalInput has width 3, but 2 values\s+to start with",
        ),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(DiagramError, match=message):
        make()


def test_timing_signals_stand_as_the_engine_writes_them():
    block = RealTime()
    assert tuple(port.name for port in block.outputs) == TIMING_SIGNALS
    assert np.all(block.parameters[0].value == 0.0)
