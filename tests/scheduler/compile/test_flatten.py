"""A diagram with subsystems as one list of blocks."""

from __future__ import annotations

import pytest

from biella import Diagram, Subsystem, simulate
from biella.blocks import Constant, Gain, Integrator
from biella.scheduler.compile._flatten import flatten

pytestmark = pytest.mark.engine


def amplifier() -> Diagram:
    """Two gains in a row."""
    inner = Diagram("amplifier")
    u = inner.input("u")
    first, second = inner.add(Gain(2.0), name="first"), inner.add(Gain(3.0), name="second")
    inner.connect(u, first)
    inner.connect(first, second)
    inner.output("y", second)
    return inner


def source_paths(diagram: Diagram) -> dict[str, list[str | None]]:
    """Return, for each flat block, the outputs that its inputs take."""
    flat = flatten(diagram)
    return {
        item.path: [
            None if s is None else flat.blocks[s.block].output_path(s.port) for s in item.sources
        ]
        for item in flat.blocks
    }


def test_wires_reach_through_subsystems_to_the_blocks_inside():
    d = Diagram("whole")
    source, box = d.add(Constant(1.0), name="c"), d.add(Subsystem(amplifier()), name="box")
    end = d.add(Integrator(), name="end")
    d.connect(source, box)
    d.connect(box, end)
    assert source_paths(d) == {
        "c": [],
        "box.first": ["c.y"],
        "box.second": ["box.first.y"],
        "end": ["box.second.y"],
    }


def test_one_diagram_at_two_places_is_two_sets_of_blocks():
    inner = amplifier()
    d = Diagram("whole")
    source = d.add(Constant(1.0), name="c")
    a, b = d.add(Subsystem(inner), name="a"), d.add(Subsystem(inner), name="b")
    d.connect(source, a)
    d.connect(a, b)
    assert source_paths(d)["b.first"] == ["a.second.y"]
    assert source_paths(d)["a.first"] == ["c.y"]


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_paths_name_every_level(depth):
    d = amplifier()
    for level in range(depth):
        outer = Diagram("outer")
        box = outer.add(Subsystem(d), name=f"level{level}")
        outer.connect(outer.input("u"), box)
        outer.output("y", box)
        d = outer
    prefix = ".".join(f"level{level}" for level in reversed(range(depth)))
    assert [item.path for item in flatten(d).blocks] == [f"{prefix}.first", f"{prefix}.second"]


def test_unconnected_inputs_of_a_subsystem_take_its_default():
    inner = Diagram("inner")
    u = inner.input("u", default=3.0)
    k = inner.add(Gain(2.0), name="k")
    inner.connect(u, k)
    inner.output("y", k)
    d = Diagram()
    d.add(Subsystem(inner), name="sub")
    assert simulate(d, 0.01)["sub.k"][-1] == 6.0
