"""A `Model` holds the sources of its plan, agrees with the bytes of the plan, and is immutable."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from biella import Diagram, Plan, Subsystem, simulate
from biella.blocks import (
    Compare,
    Constant,
    Gain,
    Integrator,
    Port,
    Scope,
    Sum,
    python_block,
)
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


def test_the_model_agrees_with_the_bytes_of_its_plan(tmp_path: Path) -> None:
    model = diagram().compile()
    assert isinstance(model, Model)
    model.save(tmp_path / "a.plan")
    plan = Plan.load(tmp_path / "a.plan")
    assert not isinstance(plan, Model)
    assert model.meta == plan.meta
    for name in ("blocks", "inputs", "outputs", "signals", "aliases", "parameters", "loops"):
        assert getattr(model, name) == getattr(plan, name)
    assert model.report() == plan.report()
    assert model.hash == plan.hash


def test_blocks_ports_and_rates_are_in_the_order_of_the_plan() -> None:
    model = diagram().compile()
    paths = [block.path for block in model.blocks]
    assert [item.path for item in model.flat.blocks] == paths
    assert [rate.describe(model.step) for rate in model.rates] == [b.rate for b in model.blocks]
    widths = [[port.width for port in block.outputs] for block in model.blocks]
    assert [[port.width for port in ports] for ports in model.ports.outputs] == widths
    assert model.order.entries == model.meta["order"]


def find_mutable(value: object, path: str) -> Iterator[str]:
    """Yield the places in a model that can be changed; blocks and subsystems are the user's."""
    if isinstance(value, MappingProxyType):
        for key, item in value.items():
            yield from find_mutable(item, f"{path}[{key!r}]")
    elif isinstance(value, tuple):
        for n, item in enumerate(value):
            yield from find_mutable(item, f"{path}[{n}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            try:
                setattr(value, field.name, None)
            except dataclasses.FrozenInstanceError:
                pass
            else:
                yield f"{path}.{field.name}"
            yield from find_mutable(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, dict):
        try:
            value["new"] = 1
        except TypeError:
            return
        yield path
    elif isinstance(value, list | set | bytearray) or (
        isinstance(value, np.ndarray) and value.flags.writeable
    ):
        yield path


CACHED = (
    "meta", "sections", "blocks", "inputs", "outputs", "signals", "aliases", "parameters", "loops",
    "couplings", "exchanges", "first_values", "block_records", "tick_rates",
)  # fmt: skip


def every_feature() -> Diagram:
    """Return a diagram with a loop, a subsystem, an input and a Python block."""
    d = diagram()
    u = d.input("u")
    k = d.add(Gain(0.5), name="k")
    s = d.add(Sum("++"), name="sum")
    d.connect(u, s["u1"])
    d.connect(s, k)
    d.connect(k, s["u2"])
    d.add(python_block(inputs=[Port("u")], outputs=[Port("y")])(lambda u: u)(), name="own")
    d.connect(k, d["own"])
    return d


def test_no_field_of_a_model_can_be_changed() -> None:
    model = every_feature().compile(extra={"extra": Constant(2.0)}, reroute={"x": ("extra", "y")})
    assert model.loops and model.python_blocks and model.flat.rerouted and model.flat.guards
    assert list(find_mutable(model, "model")) == []
    for name in CACHED:
        assert list(find_mutable(getattr(model, name), name)) == []


def test_no_field_of_a_loaded_plan_can_be_changed(tmp_path: Path) -> None:
    diagram().compile().save(tmp_path / "a.plan")
    plan = Plan.load(tmp_path / "a.plan")
    assert list(find_mutable(plan, "plan")) == []
    for name in CACHED:
        assert list(find_mutable(getattr(plan, name), name)) == []


def test_an_outline_cannot_be_changed() -> None:
    d = diagram()
    assert list(find_mutable(outline_flat(flatten(d), read_settings(d)), "outline")) == []


@pytest.mark.parametrize("name", ["python_blocks", "external", "meta", "inputs", "parameters"])
def test_assigning_to_a_mapping_of_a_model_raises(name: str) -> None:
    mapping = getattr(diagram().compile(), name)
    with pytest.raises(TypeError):
        mapping["new"] = None


def test_other_values_make_another_model() -> None:
    model = diagram().compile()
    other = model.with_values({"one.value": 3.0})
    assert isinstance(other, Model)
    assert other.flat is model.flat
    assert model.first_values[model.parameters["one.value"].slot] == 1.0
    assert simulate(other, 0.5, record=["x"])["x"][-1] == pytest.approx(1.5)
    assert simulate(model, 0.5, record=["x"])["x"][-1] == pytest.approx(0.5)


def test_an_outline_has_the_description_of_the_model() -> None:
    d = diagram()
    outline = outline_flat(flatten(d), read_settings(d))
    assert outline.meta == d.compile().meta
    assert outline.aliases == d.compile().aliases
