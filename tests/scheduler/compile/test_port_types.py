"""Widths, units and kinds of ports: inferred along the wires, and compared."""

from __future__ import annotations

import itertools

import pytest

from biella import Diagram, DiagramError
from biella.blocks import (
    Compare,
    Constant,
    Gain,
    Integrator,
    Mux,
    Port,
    PythonBlock,
    StateMachine,
    Sum,
    Switch,
)

pytestmark = pytest.mark.engine


def test_a_width_is_inferred_through_a_chain_against_the_order_of_adding():
    d = Diagram("widths")
    end, middle = d.add(Gain(1.0), name="end"), d.add(Integrator(), name="middle")
    source = d.add(Constant([1.0, 2.0, 3.0]), name="source")
    d.connect(middle, end)
    d.connect(source, middle)
    assert d.compile().signals["end.y"].width == 3


def test_the_width_of_a_mux_is_the_sum_of_its_inputs():
    d = Diagram("mux")
    mux = d.add(Mux(2), name="mux")
    d.connect(d.add(Constant([1.0, 2.0])), mux["u1"])
    d.connect(d.add(Constant([3.0, 4.0, 5.0])), mux["u2"])
    assert d.compile().signals["mux.y"].width == 5


def test_a_unit_goes_through_blocks_that_keep_it_and_an_integral_multiplies_by_seconds():
    d = Diagram("units")
    speed = d.add(Constant(1.0, unit="m/s"), name="speed")
    kept, place = d.add(Sum("+"), name="kept"), d.add(Integrator(), name="place")
    d.connect(speed, kept)
    d.connect(kept, place)
    signals = d.compile().signals
    assert signals["kept.y"].unit == "m/s" and signals["place.y"].unit == "m"


def test_both_ports_and_both_widths_are_named():
    d = Diagram("widths")
    total = d.add(Sum("++"), name="total")
    d.connect(d.add(Constant([1.0, 2.0]), name="two"), total["u1"])
    d.connect(d.add(Constant([1.0, 2.0, 3.0]), name="three"), total["u2"])
    with pytest.raises(DiagramError) as caught:
        d.compile()
    text = str(caught.value)
    assert "total" in text and "2" in text and "3" in text


def test_units_follow_the_wires():
    d = Diagram()
    speed = d.add(Constant(2.0, unit="rad/s"), name="speed")
    angle = d.add(Integrator(), name="angle")
    total = d.add(Sum("++"), name="total")
    d.connect(speed, angle)
    d.connect(angle, total["u1"], total["u2"])
    plan = d.compile()
    assert plan.signals["angle.y"].unit == plan.signals["total.y"].unit == "rad"


def test_ports_must_agree_on_width():
    d = Diagram()
    a = d.add(Constant([1.0, 2.0]), name="a")
    b = d.add(Constant([1.0, 2.0, 3.0]), name="b")
    s = d.add(Sum("++"), name="s")
    d.connect(a, s["u1"])
    d.connect(b, s["u2"])
    with pytest.raises(
        DiagramError, match=r"`s.u2` expects 2 signals, but `b.y` provides 3 signals"
    ):
        d.compile()


def test_kinds_are_checked():
    class Flag(PythonBlock):
        def __init__(self):
            super().__init__(outputs=[Port("on", kind="boolean")])

        def output(self, t, x, u):
            return True

    d = Diagram()
    flag = d.add(Flag(), name="flag")
    d.connect(flag, d.add(Gain(1.0), name="k"))
    with pytest.raises(
        DiagramError, match=r"expects a real signal, but `flag.on` is boolean.*Convert"
    ):
        d.compile()


def machine(*names: str) -> StateMachine:
    made = StateMachine()
    states = [made.state(name) for name in names]
    for a, b in itertools.pairwise([*states, states[0]]):
        made.transition(a, b, after=1)
    return made


def taker() -> StateMachine:
    made = StateMachine(inputs=[Port("u", kind="enumeration", names=("off", "on"))])
    made.transition(made.state("waiting"), made.state("seen"), when="u > 1")
    return made


def test_enumerations_of_other_names_do_not_fit():
    d = Diagram("names", step=1.0)
    d.add(taker(), "taker", u=d.add(machine("off", "on"), "same")["state"])
    assert d.compile().signals["same.state"].names == ("off", "on")
    d = Diagram("names", step=1.0)
    d.add(taker(), "taker", u=d.add(machine("idle", "run", "stop"), "other")["state"])
    with pytest.raises(DiagramError, match=r"`taker\.u` is an enumeration of off, on, but "
                       r"`other\.state` is one of idle, run, stop"):  # fmt: skip
        d.compile()


def test_names_of_enumerations_pass_through_and_must_agree():
    d = Diagram("names", step=1.0)
    chosen = d.add(Constant(1.0), "chosen")
    above = d.add(Compare(">", 0.5), "above", u=chosen)
    first = d.add(machine("off", "on"), "first")
    second = d.add(machine("off", "on"), "second")
    d.add(Switch(), "switch", on_true=first["state"], condition=above, on_false=second["state"])
    assert d.compile().signals["switch.y"].names == ("off", "on")
    d = Diagram("names", step=1.0)
    above = d.add(Compare(">", 0.5), "above", u=d.add(Constant(1.0), "chosen"))
    first = d.add(machine("off", "on"), "first")
    second = d.add(machine("on", "off"), "second")
    d.add(Switch(), "switch", on_true=first["state"], condition=above, on_false=second["state"])
    with pytest.raises(DiagramError, match=r"off, on.*`second\.state` is one of on, off"):
        d.compile()
