"""Compiling: one report has everything that is wrong with a diagram."""

from __future__ import annotations

import pytest

from biella import Diagram, DiagramError
from biella.blocks import (
    Constant,
    Gain,
    Pendulum,
    Sum,
)

pytestmark = pytest.mark.engine


def test_all_static_errors_in_one_report():
    d = Diagram("bad", step=1e-3)
    speed = d.add(Constant(1.0, unit="rad/s"), name="speed")
    rpm = d.add(Constant(1.0, unit="rpm"), name="rpm")
    torque = d.add(Constant([1.0, 2.0], unit="N.m"), name="torque")
    s = d.add(Sum("+-"), name="s")
    p = d.add(Pendulum(), name="p")
    slow = d.add(Gain(1.0), name="slow", period=2.5e-3)
    d.connect(speed, s["u1"])
    d.connect(rpm, s["u2"])
    d.connect(torque, p)
    d.connect(s, slow)
    d.connect(speed, slow)
    d.add(Gain(1.0), name="lonely")
    with pytest.raises(DiagramError) as info:
        d.compile()
    problems = "\n".join(info.value.problems)
    assert len(info.value.problems) == 5
    assert "input `slow.u` has two sources: `s.y` and `speed.y`" in problems
    assert "`s.u2` is in rad/s, but `rpm.y` is in rpm. The units differ by a scale" in problems
    assert "Gain(0.1047" in problems
    assert (
        "`p.torque` expects 1 signal in N.m, but `torque.y` provides 2 signals in N.m" in problems
    )
    assert "input `lonely.u` is not connected" in problems
    assert "2.5" not in problems or "0.002 s or 0.003 s would fit" in problems


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (lambda d: d.connect("pp.angle", "k"), r"no block `pp` .*Did you mean `p`"),
        (lambda d: d.connect("p.angel", "k"), r"no output `angel`. Did you mean `angle`"),
        (lambda d: d.connect("p", "k"), r"`p` has 2 outputs: select one with p\['angle'\]"),
        (lambda d: d.connect("p.torque", "k"), r"no output `torque`. It is an input"),
        (lambda d: d.connect(Gain(1.0), "k"), r"not in 'diagram' yet: add it first"),
        (lambda d: d.add(d["k"]), r"in the diagram already, as `k`"),
        (lambda d: d.add(Gain), r"add requires a block.* Create it first"),
        (lambda d: d.add(Gain(1.0), name="k"), r"name `k` is already used"),
        (lambda d: d.add(Gain(1.0), name="a.b"), r"cannot be a name"),
        (lambda d: d["k"]["uu"], r"has no port `uu`. Did you mean `u`"),
        (lambda d: Gain("two"), r"parameter `k` requires numbers, got 'two'"),  # type: ignore[arg-type]
        (lambda d: Gain(float("nan")), r"parameter `k` must be finite"),
        (lambda d: Sum("+x"), r"such as '\+-'"),
        (lambda d: Diagram(solver="rk5"), r"unknown solver `rk5`. Did you mean"),
        (lambda d: Diagram(step=0), r"step must be a positive time"),
        (lambda d: Constant(1.0, unit="rad/sek"), r"sek"),
        (lambda d: d.add(Gain(1.0), period=-1.0), r"period must be positive"),
    ],
)
def test_typical_mistakes_teach(wire, message):
    d = Diagram()
    d.add(Pendulum(), name="p")
    d.add(Gain(1.0), name="k")
    with pytest.raises(Exception, match=message):
        wire(d)
