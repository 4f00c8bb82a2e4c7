"""A binding that is opened: stand-ins in the plan, slots in the devices, values both ways."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram, Subsystem, simulate
from biella.blocks import Compare, Constant, Gain, Mux
from biella.errors import DeviceError
from biella.scheduler.binding._bind import check_binding, open_binding

from . import diagrams

pytestmark = pytest.mark.engine


def device(ins, outs, **options):
    return {
        "driver": "loopback",
        "receive": {name: dict(about) for name, about in ins.items()},
        "send": {name: {"safe": 0, **about} for name, about in outs.items()},
        **options,
    }


def loop():
    d = diagrams.loop()
    d.output("rate", d["k"])
    return d


def test_a_block_is_a_device(ticks):
    """k is gone: what the device says, which is the scaled x of one tick before, moves x."""
    rig = {
        "devices": {"b": device({"y": {"scale": -4.0, "offset": 1.0}}, {"u": {"scale": 2.0}})},
        "blocks": {"k": {"device": "b"}},
    }
    run = ticks(open_binding(loop(), rig))
    rows = run.advance(5, signals=["x", "k", "rate", "b.age", "b.alive", "b.delay"])
    x, rate = 1.0, 0.0  # until the first frame
    for n, row in enumerate(rows):
        assert row[:3] == [pytest.approx(x), pytest.approx(rate), pytest.approx(rate)]
        assert row[3:] == ([1.0, 0.0, 0.0] if n == 0 else [0.0, 1.0, 1.0])
        x, rate = x + 1e-3 * rate, -4.0 * (x / 2.0) + 1.0


def test_a_subsystem_is_a_device(ticks):
    inner = Diagram("inner")
    u = inner.input("u")
    g = inner.add(Gain(5.0), name="g")
    inner.connect(u, g)
    inner.output("y", g)
    d = Diagram("outer", step=1e-2)
    one = d.add(Constant(3.0), name="one")
    sub = d.add(Subsystem(inner), name="sub")
    out = d.add(Gain(2.0), name="out")
    d.connect(one, sub)
    d.connect(sub, out)
    rig = {"devices": {"b": device({"y": {}}, {"u": {}})}, "blocks": {"sub": {"device": "b"}}}
    run = ticks(open_binding(d, rig))
    assert run.advance(2, signals=["out"]) == [[0.0], [6.0]]


def test_a_signal_comes_from_a_device_for_everyone_and_in_the_log(ticks):
    d = Diagram("chain", step=1e-3)
    one = d.add(Constant(1.0, unit="m"), name="one")
    g = d.add(Gain(10.0), name="g")
    h = d.add(Gain(1.0), name="h")
    d.connect(one, g)
    d.connect(g, h)
    d.output("all", g)
    rig = {
        "devices": {"b": device({"a": {"safe": 7.0}}, {"z": {}})},
        "signals": {"g": "b.a", "one": "b.z"},
    }
    bound = open_binding(d, rig)
    run = ticks(bound)
    # Until the first frame the safe value; then what `one` was a tick before.
    assert run.advance(2, signals=["g", "g.y", "h", "all", "g.y_simulated"]) == [
        [7.0, 7.0, 7.0, 7.0, 10.0],
        [1.0, 1.0, 1.0, 1.0, 10.0],
    ]
    result = simulate(bound.plan, until=1e-3)
    assert result["g"][0] == result["all"][0] == 7.0
    assert result["g.y_simulated"][0] == 10.0


def test_an_input_of_the_diagram_comes_from_a_device(ticks):
    d = Diagram("in", step=1e-3)
    u = d.input("u", default=4.0)
    g = d.add(Gain(2.0), name="g")
    d.connect(u, g)
    rig = {
        "devices": {"b": device({"a": {"offset": 1.0}}, {"z": {}})},
        "signals": {"u": "b.a", "g": "b.z"},
    }
    run = ticks(open_binding(d, rig))
    assert run.advance(3, signals=["g"]) == [[8.0], [18.0], [38.0]]


def test_vectors_go_both_ways(ticks):
    d = Diagram("vector", step=1e-3)
    a = d.add(Constant(1.0), name="a")
    b = d.add(Constant(2.0), name="b")
    mux = d.add(Mux(2), name="mux")
    g = d.add(Gain(1.0), name="g")
    d.connect(a, mux["u1"])
    d.connect(b, mux["u2"])
    d.connect(mux, g)
    rig = {
        "devices": {"v": device({"p": {"width": 2, "safe": [8, 9]}}, {"q": {}, "r": {}})},
        "blocks": {"g": {"device": "v", "inputs": {"u": ["r", "q"]}, "outputs": {"y": "p"}}},
    }
    run = ticks(open_binding(d, rig))
    rows = run.advance(2, signals=["g"])
    np.testing.assert_array_equal(rows, [[[8.0, 9.0]], [[2.0, 1.0]]])


def test_outputs_of_other_widths_stand_one_after_the_other(ticks):
    inner = Diagram("inner")
    u = inner.input("u", width=2)
    pair = inner.add(Gain(1.0), name="pair")
    one = inner.add(Constant(1.0), name="one")
    inner.connect(u, pair)
    inner.output("pair", pair)
    inner.output("one", one)
    d = Diagram("outer", step=1e-3)
    both = d.add(Constant([5.0, 6.0]), name="both")
    sub = d.add(Subsystem(inner), name="sub")
    d.connect(both, sub)
    d.connect(sub["pair"], d.add(Gain(1.0), name="first"))
    d.connect(sub["one"], d.add(Gain(1.0), name="second"))
    rig = {
        "devices": {"v": device({"one": {}, "pair": {"width": 2}}, {"u": {"width": 2}, "x": {}})},
        "blocks": {"sub": {"device": "v"}},
    }
    rig["devices"]["v"]["send"]["x"] |= {"unused": True, "safe": 7}
    (row,) = ticks(open_binding(d, rig)).advance(2, signals=["first", "second"])[1:]
    np.testing.assert_array_equal(row[0], [6.0, 7.0])
    assert row[1] == 5.0


def test_a_device_can_switch_a_subsystem(ticks):
    inner = Diagram("inner")
    g = inner.add(Gain(1.0), name="g")
    inner.connect(inner.input("u"), g)
    inner.output("y", g)
    d = Diagram("outer", step=1e-3)
    one = d.add(Constant(1.0), name="one")
    on = d.add(Compare(">", 0.5), name="on")
    sub = d.add(Subsystem(inner, enable=True), name="sub")
    out = d.add(Gain(1.0), name="out")
    d.connect(one, on, sub["u"])
    d.connect(on, sub["enable"])
    d.connect(sub, out)
    rig = {
        "devices": {"b": device({"on": {}}, {"one": {}})},
        "signals": {"on": "b.on", "one": "b.one"},
    }
    # Off until the device says 1, though the simulated switch is on.
    assert ticks(open_binding(d, rig)).advance(2, signals=["out"]) == [[0.0], [1.0]]


def test_limits_end_the_run_unless_they_saturate(ticks):
    rig = {
        "devices": {"b": device({"y": {"limits": [-1.5, 1.5]}}, {"u": {"scale": 0.5}})},
        "blocks": {"k": {"device": "b"}},
    }
    run = ticks(open_binding(loop(), rig))
    run.advance(1)
    with pytest.raises(ticks.ended, match=r"channel `y` \(from it\): 2 exceeds its limit 1.5"):
        run.advance(1)
    rig["devices"]["b"]["receive"]["y"]["saturate"] = True
    assert ticks(open_binding(loop(), rig)).advance(2, signals=["k"]) == [[0.0], [1.5]]


def test_an_unused_output_has_its_safe_value(ticks):
    rig = {
        "devices": {"b": device({"y": {}, "echo": {}}, {"u": {}, "on": {}})},
        "blocks": {"k": {"device": "b", "outputs": {"y": "echo"}}},
    }
    rig["devices"]["b"]["send"]["on"] |= {"unused": True, "safe": 5.0}
    assert ticks(open_binding(loop(), rig)).advance(3, signals=["k"]) == [[0.0], [5.0], [5.0]]


def test_compile_options_are_kept(ticks):
    rig = {"devices": {"b": device({"y": {}}, {"u": {}})}, "blocks": {"k": {"device": "b"}}}
    bound = open_binding(loop(), rig, step=5e-4, extra={"more": Constant(3.0)})
    assert ticks(bound).advance(1, signals=["more"]) == [[3.0]]
    assert bound.plan.step == 5e-4
    assert [d.name for d in bound.devices] == ["b"]
    assert bound.devices[0].describe() == ("b: loopback, delay=1, jitter=0, loss=0.0, noise=0.0")


def test_a_block_is_an_fmu(tmp_path):
    inner = Diagram("inner", step=1e-3)
    u = inner.input("u")
    g = inner.add(Gain(-2.0), name="g")
    inner.connect(u, g)
    inner.output("y", g)
    inner.output("more", g)
    inner.export_fmu(tmp_path / "gain.fmu", sources=False)
    (tmp_path / "rig.toml").write_text('[blocks.k]\nfmu = "gain.fmu"\nparameters = {"g.k" = -4.0}')
    with open_binding(loop(), tmp_path / "rig.toml") as bound:
        assert bound.check.warnings == [
            "[blocks.k]: outputs of gain.fmu that `k` has not are not used: more."
        ]
        assert bound.devices == []
        result = simulate(bound.plan, until=0.5)
    # An FMU holds its input through a step: x loses 4 h x in each.
    assert result["x"][-1] == pytest.approx((1 - 4e-3) ** 500, rel=1e-9)


def test_an_fmu_without_a_port_is_refused(tmp_path):
    inner = Diagram("inner", step=1e-3)
    u = inner.input("v", unit="m")
    g = inner.add(Gain(-2.0), name="g")
    inner.connect(u, g)
    inner.output("y", g)
    inner.export_fmu(tmp_path / "gain.fmu", sources=False)
    (tmp_path / "rig.toml").write_text('[blocks.k]\nfmu = "gain.fmu"')
    with pytest.raises(DeviceError, match=r"`k` has the input `u`, but gain\.fmu has not"):
        open_binding(loop(), tmp_path / "rig.toml")


def test_what_only_the_bound_diagram_has_wrong_is_a_problem_too(tmp_path):
    inner = Diagram("inner", step=1e-3)
    g = inner.add(Gain(-2.0), name="g")
    inner.connect(inner.input("u"), g)
    inner.output("y", g)
    inner.export_fmu(tmp_path / "gain.fmu", sources=False)
    (tmp_path / "rig.toml").write_text('[blocks.k]\nfmu = "gain.fmu"\nperiod = 0.0015')
    (problem,) = check_binding(loop(), tmp_path / "rig.toml").problems
    assert problem.startswith(
        "the diagram with this binding is not valid: the period of `k`, 0.0015 s"
    )
