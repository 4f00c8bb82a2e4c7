"""Replacing blocks when a diagram is compiled: the diagram itself stays as it was."""

import dataclasses

import numpy as np
import pytest

from biella import Diagram, Subsystem, simulate
from biella.blocks import Compare, Constant, Demux, Gain, Integrator, Port, Sine, Step, Sum
from biella.blocks.authoring import ExternalInput
from biella.errors import DiagramError
from biella.scheduler.compile import _rewrite as rewrite
from biella.scheduler.compile._flatten import FlatInput, flatten


def loop():
    d = Diagram("loop", step=1e-2)
    x = d.add(Integrator(1.0), name="x")
    k = d.add(Gain(-2.0), name="k")
    d.connect(x, k)
    d.connect(k, x)
    return d


def stand_in(start=0.0):
    return ExternalInput([Port("u")], [Port("y")], start={"y": start})


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
    other = ExternalInput([Port("u")], [Port("torque")])
    with pytest.raises(DiagramError, match=r"`k` has the outputs .*y.*, but its replacement"):
        loop().compile(replace={"k": other})


def test_other_ports_are_reported_although_a_taker_is_left_without_its_source():
    d = Diagram("split", step=1e-2)
    pair = d.add(Constant([1.0, 2.0]), name="pair")
    split = d.add(Demux(2), name="split")
    last = d.add(Gain(2.0), name="last")
    d.connect(pair, split)
    d.connect(split[split.outputs[1].name], last)
    with pytest.raises(DiagramError, match=r"`split` has the outputs .*, but its replacement"):
        d.compile(replace={"split": stand_in()})


def test_an_unknown_block_is_named():
    with pytest.raises(DiagramError, match=r"there is no block `kk` to replace. Did you mean `k`"):
        loop().compile(replace={"kk": stand_in()})


def test_extra_sources_are_recorded_and_may_not_take_a_name():
    lateness = ExternalInput(outputs=[Port("lateness", unit="s")], start={"lateness": 2e-6})
    result = simulate(loop().compile(extra={"realtime": lateness}), until=0.1)
    assert result["realtime.lateness"][-1] == 2e-6
    with pytest.raises(DiagramError, match="the name `x` is already used"):
        loop().compile(extra={"x": lateness})


def passing(name, factor=None):
    """A diagram with one output that is its input, and one that is a multiple of it."""
    inner = Diagram(name)
    u = inner.input("u")
    k = inner.add(Gain(factor or 2.0), name="k")
    inner.connect(u, k)
    inner.output("same", u)
    inner.output("more", k)
    inner.output("again", k)
    return inner


def nested():
    middle = Diagram("middle")
    u = middle.input("u")
    inside = middle.add(Subsystem(passing("inside")), name="inside")
    middle.connect(u, inside)
    for name in ("same", "more", "again"):
        middle.output(name, inside[name])
    d = Diagram("outer", step=1e-2)
    one = d.add(Constant(1.0), name="one")
    part = d.add(Subsystem(middle), name="part")
    d.connect(one, part)
    for name in ("same", "more", "again"):
        d.connect(part[name], d.add(Gain(1.0), name=name))
    return d


@pytest.mark.parametrize("path", ["part", "part.inside"])
def test_each_output_of_a_subsystem_leads_to_its_own_takers(path):
    """Two outputs have one source inside, and one passes an input on."""
    d = nested()
    names = ["same", "more", "again"]
    other = ExternalInput(
        [Port("u")],
        [Port(name) for name in names],
        start={"same": 5.0, "more": 6.0, "again": 7.0},
    )
    with d.compile(replace={path: other}).instantiate() as instance:
        assert [instance.get(name) for name in names] == [5.0, 6.0, 7.0]
    with d.compile().instantiate() as instance:
        assert [instance.get(name) for name in names] == [1.0, 2.0, 2.0]


def test_a_subsystem_goes_with_all_that_is_in_it_and_numbers_follow():
    """Before it, in it and behind it are conditional subsystems with outputs that are held."""
    d = Diagram("outer", step=1e-2)
    one = d.add(Constant(1.0), name="one")
    on = d.add(Compare(">", 0.0), name="on")
    d.connect(one, on)
    for name in ("first", "second", "third"):
        middle = Diagram(name)
        u = middle.input("u")
        part = middle.add(Subsystem(passing("p"), enable=True), name="part")
        middle.connect(u, part["u"])
        middle.connect(middle.input("on", kind="boolean"), part["enable"])
        middle.output("y", part["more"])
        whole = d.add(Subsystem(middle, enable=True), name=name)
        d.connect(one, whole["u"])
        d.connect(on, whole["on"], whole["enable"])
    total = d.add(Sum("+++"), name="total")
    for n, name in enumerate(("first", "second", "third"), 1):
        d.connect(d[name], total[f"u{n}"])
    ports = [Port("u"), Port("on", kind="boolean"), Port("enable", kind="boolean")]
    flat = rewrite.replace_blocks(
        flatten(d), {"second": ExternalInput(ports, [Port("y")], start={"y": 9.0})}
    )
    assert [guard.path for guard in flat.guards] == ["first", "first.part", "third", "third.part"]
    assert [guard.count for guard in flat.guards] == [4, 1, 4, 1]  # held outputs included
    for guard in flat.guards:
        inside = flat.blocks[guard.first : guard.first + guard.count]
        assert inside and all(item.path.startswith(f"{guard.path}.") for item in inside)
    assert [group.path for group in flat.groups] == ["first.part", "first", "third.part", "third"]
    replaced = {"second": ExternalInput(ports, [Port("y")], start={"y": 9.0})}
    with d.compile(replace=replaced).instantiate() as instance:
        assert instance.get("total") == 2.0 + 9.0 + 2.0


def test_an_input_of_the_diagram_is_replaced_by_a_source():
    d = Diagram("outer", step=1e-2)
    k = d.add(Gain(2.0), name="k")
    d.connect(d.input("a"), k)
    d.connect(d.input("b"), d.add(Gain(3.0), name="h"))
    model = d.compile(replace={"a": Constant(4.0)})
    assert list(model.inputs) == ["b"]
    with model.instantiate({"b": 5.0}) as instance:
        assert (instance.get("k"), instance.get("h")) == (8.0, 15.0)


def test_a_source_becomes_an_input_that_starts_with_its_first_value():
    d = Diagram("outer", step=1e-2)
    wave = d.add(Sine(amplitude=2.0, phase=np.pi / 2), name="wave")
    pair = d.add(Constant([3.0, 4.0]), name="pair")
    d.connect(wave, d.add(Gain(1.0), name="k"))
    d.connect(pair, d.add(Gain(1.0), name="h"))
    model = d.compile(inputs=["pair", "wave"])
    assert {name: port.width for name, port in model.inputs.items()} == {"pair": 2, "wave": 1}
    with model.instantiate() as instance:
        assert instance.get("h").tolist() == [3.0, 4.0]
        assert instance.get("k") == pytest.approx(2.0)


def test_what_is_wrong_with_a_source_is_reported_with_all_the_rest():
    d = Diagram("outer", step=1e-2)
    d.add(Step(), name="ref", period=1.5e-2)
    d.add(Gain(1.0), name="k")
    with pytest.raises(DiagramError) as caught:
        d.compile(inputs=["ref"])
    assert "`ref`" in str(caught.value) and "input `k.u` is not connected" in str(caught.value)


def test_an_edit_leaves_what_it_was_made_from():
    flat = flatten(loop())
    before = repr(flat)
    rewrite.replace_blocks(flat, {"k": stand_in()})
    more = rewrite.add_sources(flat, {"zz": Constant(1.0)})
    rewrite.reroute_outputs(more, {"k": ("zz", "y")})
    rewrite.add_outputs(flat, ["k"])
    rewrite.bare_parameters(flat, "k")
    assert repr(flat) == before


def test_a_block_gets_more_inputs_from_outside():
    """Those that it had keep their sources, also where their numbers change; so do bonds."""
    d = loop()
    d.connect(d["x"], d.add(stand_in(1.0), name="in"))
    flat = flatten(d)
    number = next(n for n, item in enumerate(flat.blocks) if item.path == "in")
    flat = dataclasses.replace(flat, bonds=(("bond", (number, 0), (0, 0)),))
    wider = ExternalInput(
        [Port("w", default=2.0), Port("u"), Port("v", default=3.0)], [Port("y")], start={"y": 1.0}
    )
    found = rewrite.add_block_inputs(flat, {"in": wider})
    assert [item.name for item in found.inputs] == ["in.w", "in.v"]
    sources = [source and source.block for source in found.blocks[number].sources]
    (before,) = flat.blocks[number].sources
    assert sources == [-1, before and before.block, -2]
    assert found.bonds == (("bond", (number, 1), (0, 0)),)
    model = d.compile(flat=dataclasses.replace(found, bonds=()))
    assert list(model.inputs) == ["in.w", "in.v"]
    plain, more = simulate(d, 0.5), simulate(model, 0.5)
    assert np.array_equal(plain["x"], more["x"])
    assert rewrite.add_block_inputs(flat, {}) == flat


def test_an_added_input_may_not_take_a_name():
    d = Diagram("outer", step=1e-2)
    d.add(stand_in(), name="in", u=d.add(Constant(1.0), name="one"))
    flat = flatten(d)
    flat = dataclasses.replace(
        flat, inputs=(*flat.inputs, FlatInput("in.w", Port("w", default=0.0), True))
    )
    wider = ExternalInput([Port("u"), Port("w", default=2.0)], [Port("y")], start={"y": 0.0})
    (problem,) = rewrite.add_block_inputs(flat, {"in": wider}).problems
    assert "the name `in.w` is already used" in problem
