"""A `Model` knows what its plan was made from, and says what the plan's bytes say."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from biella import Diagram, Plan, Subsystem, simulate
from biella.blocks import Compare, Constant, Gain, Integrator, Scope
from biella.scheduler.compile._compiler import outline_flat, read_settings
from biella.scheduler.compile._flatten import flatten
from biella.scheduler.compile._model import Model


def diagram() -> Diagram:
    inner = Diagram("inner")
    u = inner.input("u")
    k = inner.add(Gain(2.0), name="k")
    inner.connect(u, k)
    inner.output("y", k)
    d = Diagram("outer", step=1e-2)
    one = d.add(Constant(1.0), name="one")
    x = d.add(Integrator(0.0), name="x")
    above = d.add(Compare(">", 0.5), name="above")
    part = d.add(Subsystem(inner, enable=True), name="part")
    d.connect(one, x)
    d.connect(x, above, part["u"])
    d.connect(above, part["enable"])
    d.connect(part, d.add(Scope(), name="scope"))
    d.output("y", part)
    return d


def test_it_says_what_its_bytes_say(tmp_path: Path) -> None:
    model = diagram().compile()
    assert isinstance(model, Model)
    model.save(tmp_path / "a.plan")
    plan = Plan.load(tmp_path / "a.plan")
    assert not isinstance(plan, Model)
    assert json.loads(json.dumps(model.meta)) == plan.meta
    for name in ("blocks", "inputs", "outputs", "signals", "aliases", "parameters", "loops"):
        assert getattr(model, name) == getattr(plan, name)
    assert model.report() == plan.report()
    assert model.hash == plan.hash


def test_blocks_ports_and_rates_stand_in_the_order_of_the_plan() -> None:
    model = diagram().compile()
    paths = [block.path for block in model.blocks]
    assert [item.path for item in model.flat.blocks] == paths
    assert [rate.describe(model.step) for rate in model.rates] == [b.rate for b in model.blocks]
    widths = [[port.width for port in block.outputs] for block in model.blocks]
    assert [[port.width for port in ports] for ports in model.ports.outputs] == widths
    assert [list(entry) for entry in model.order.entries] == model.meta["order"]


def test_it_cannot_be_changed() -> None:
    model = diagram().compile()
    for thing, name in ((model, "flat"), (model.flat, "blocks"), (model.flat.blocks[0], "path")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, name, None)


def test_other_values_make_another_model() -> None:
    model = diagram().compile()
    other = model.with_values({"one.value": 3.0})
    assert isinstance(other, Model)
    assert other.flat is model.flat
    assert model.first_values[model.parameters["one.value"].slot] == 1.0
    assert simulate(other, 0.5, record=["x"])["x"][-1] == pytest.approx(1.5)
    assert simulate(model, 0.5, record=["x"])["x"][-1] == pytest.approx(0.5)


def test_an_outline_says_the_same_without_a_plan() -> None:
    d = diagram()
    outline = outline_flat(flatten(d), read_settings(d))
    assert outline.meta == d.compile().meta
    assert outline.aliases == d.compile().aliases
