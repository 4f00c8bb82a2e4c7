"""Replacing blocks when a diagram is compiled: the diagram itself stays as it was."""

import numpy as np
import pytest

from biella import Diagram, Subsystem, simulate
from biella.blocks import Constant, Gain, Integrator, Port
from biella.blocks.authoring import Outside
from biella.errors import DiagramError


def loop():
    d = Diagram("loop", step=1e-2)
    x = d.add(Integrator(1.0), name="x")
    k = d.add(Gain(-2.0), name="k")
    d.connect(x, k)
    d.connect(k, x)
    return d


def stand_in(start=0.0):
    return Outside([Port("u")], [Port("y")], start={"y": start})


def test_a_block_is_replaced_by_path_and_the_diagram_stays_as_it_was():
    d = loop()
    result = simulate(d.compile(replace={"k": stand_in(-1.0)}), until=0.5)
    np.testing.assert_allclose(result["x"], 1.0 - result.t, atol=1e-12)
    assert simulate(d, until=0.5)["x"][-1] == pytest.approx(np.exp(-1.0), rel=1e-6)


def test_what_is_received_is_a_parameter():
    plan = loop().compile(replace={"k": stand_in()})
    with plan.instantiate() as run:
        run.set("k.received", 3.0)
        run.run(10)
        assert run.get("x") == pytest.approx(1.0 + 3.0 * 0.1)


def test_a_whole_subsystem_is_replaced():
    inner = Diagram("inner")
    u = inner.input("u")
    g = inner.add(Gain(5.0), name="g")
    inner.connect(u, g)
    inner.output("y", g)
    d = Diagram("outer", step=1e-2)
    one = d.add(Constant(1.0), name="one")
    sub = d.add(Subsystem(inner), name="sub")
    out = d.add(Gain(2.0), name="out")
    d.connect(one, sub)
    d.connect(sub, out)
    assert simulate(d, until=0.1)["out"][-1] == 10.0
    result = simulate(d.compile(replace={"sub": stand_in(7.0)}), until=0.1)
    assert result["out"][-1] == 14.0
    assert "sub.g.y" not in result.paths


def test_ports_must_be_the_same():
    other = Outside([Port("u")], [Port("torque")])
    with pytest.raises(DiagramError, match=r"`k` has the outputs .*y.*, but what replaces it"):
        loop().compile(replace={"k": other})


def test_an_unknown_block_is_named():
    with pytest.raises(DiagramError, match=r"there is no block `kk` to replace. Did you mean `k`"):
        loop().compile(replace={"kk": stand_in()})


def test_extra_sources_are_recorded_and_may_not_take_a_name():
    lateness = Outside(outputs=[Port("lateness", unit="s")], start={"lateness": 2e-6})
    result = simulate(loop().compile(extra={"realtime": lateness}), until=0.1)
    assert result["realtime.lateness"][-1] == 2e-6
    with pytest.raises(DiagramError, match="the name `x` is taken"):
        loop().compile(extra={"x": lateness})
