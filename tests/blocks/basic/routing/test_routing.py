"""Routing blocks against numpy: where each element goes, and what unit it carries."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram, DiagramError
from biella.blocks.basic.routing._routing import Demux, Mux, Selector
from biella.errors import PlanError
from biella.scheduler.compile.plan._plan import Plan, read_arrays, write_sections
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine


def feed(block, *widths, units=()):
    """Return a diagram that feeds the inputs of `block` with vectors counted from 1."""
    d = Diagram("test")
    d.add(block, name="b")
    for n, (port, width) in enumerate(zip(block.inputs, widths, strict=True)):
        source = d.input(port.name, width=width, unit=units[n] if units else None)
        d.connect(source, block[port.name])
    return d


def count_up(instance):
    """Set every element of every input to its number."""
    number = 1
    for name, port in instance.plan.inputs.items():
        instance.set(name, np.arange(number, number + port.width))
        number += port.width


def test_mux_takes_inputs_of_any_width():
    with feed(Mux(3), 2, 1, 4).compile().instantiate() as instance:
        count_up(instance)
        np.testing.assert_array_equal(instance.get("b"), np.arange(1, 8))


def test_mux_of_given_widths():
    with feed(Mux([2, 1]), 2, 1).compile().instantiate() as instance:
        count_up(instance)
        np.testing.assert_array_equal(instance.get("b"), [1, 2, 3])
    with pytest.raises(DiagramError, match=r"`b.u1` expects 2 signals, but `u1` provides 3"):
        feed(Mux([2, 1]), 3, 1).compile()


def test_mux_in_line_widens_step_by_step():
    """The width of one is known only when that of the other is."""
    d = Diagram("test")
    first, second = d.add(Mux(2), name="first"), d.add(Mux(2), name="second")
    d.connect(first, second["u1"])
    a = d.input("a", width=2)
    d.connect(a, first["u1"], second["u2"])
    d.connect(d.input("b"), first["u2"])
    plan = d.compile()
    assert plan.signals["second.y"].width == 5


@pytest.mark.parametrize(
    ("units", "expected"),
    [(("m", "m"), "m"), (("m", "s"), None), (("m", None), None), (("m", "mm"), None)],
)
def test_mux_has_a_unit_if_all_inputs_agree(units, expected):
    plan = feed(Mux(2), 1, 1, units=units).compile()
    assert plan.signals["b.y"].unit == expected


def test_demux():
    with feed(Demux([2, 1, 3]), 6, units=["N"]).compile().instantiate() as instance:
        count_up(instance)
        for name, expected in (("y1", [1, 2]), ("y2", 3), ("y3", [4, 5, 6])):
            np.testing.assert_array_equal(instance.get(f"b.{name}"), expected)
            assert instance.plan.signals[f"b.{name}"].unit == "N"
    assert [port.width for port in Demux(3).outputs] == [1, 1, 1]


def test_demux_undoes_mux():
    d = Diagram("test")
    mux, demux = d.add(Mux([1, 2]), name="mux"), d.add(Demux([1, 2]), name="demux")
    d.connect(d.input("a", default=3.0), mux["u1"])
    d.connect(d.input("b", width=2, default=4.0), mux["u2"])
    d.connect(mux, demux)
    with d.compile().instantiate() as instance:
        assert instance.get("demux.y1") == 3.0
        np.testing.assert_array_equal(instance.get("demux.y2"), [4.0, 4.0])


@pytest.mark.parametrize("indices", [2, [0, 0, 3], [-1, 1], [3, 2, 1, 0], np.array([1, 2])])
def test_selector(indices):
    with feed(Selector(indices), 4, units=["rad"]).compile().instantiate() as instance:
        count_up(instance)
        expected = np.arange(1, 5)[indices]
        np.testing.assert_array_equal(instance.get("b"), expected)
        assert instance.plan.signals["b.y"].unit == "rad"


def test_selector_says_what_is_missing():
    with pytest.raises(DiagramError, match="takes element 4, but its input has 4, numbered from 0"):
        feed(Selector([0, 4]), 4).compile()
    with pytest.raises(DiagramError, match="takes element -5"):
        feed(Selector(-5), 4).compile()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mux(0), r"`inputs` is a number, at least 1, or a list of widths"),
        (lambda: Mux([1, 0]), r"got \[1, 0\]"),
        (lambda: Mux([1.5]), r"got \[1.5\]"),  # type: ignore[list-item]
        (lambda: Demux([]), r"`outputs` is a number"),
        (lambda: Demux(-1), "got -1"),
        (lambda: Demux(2.0), "got 2.0"),  # type: ignore[arg-type]
        (lambda: Mux("ab"), "got 'ab'"),  # type: ignore[arg-type]
        (lambda: Selector([]), "`indices` are whole numbers"),
        (lambda: Selector([0.5]), "`indices` are whole numbers"),  # type: ignore[list-item]
        (lambda: Selector("ab"), "`indices` are whole numbers"),  # type: ignore[arg-type]
        (lambda: Selector(None), "`indices` are whole numbers"),  # type: ignore[arg-type]
    ],
)
def test_refused(make, message):
    with pytest.raises(DiagramError, match=message):
        make()


def rewrite(plan, **changed):
    """Return `plan` with other sections."""
    return Plan(write_sections(read_arrays(plan.sections) | changed), {})


@pytest.mark.parametrize("index", [-1, 4, 2**31 - 1])
def test_hostile_selector_is_refused(index):
    plan = feed(Selector([0, 3]), 4).compile()
    with pytest.raises(PlanError, match="does not fit its kernel 'selector'"):
        Instance(rewrite(plan, INTS=np.array([0, index], dtype="<i4")))


@pytest.mark.parametrize("block", [Mux([1, 2]), Demux([1, 2])])
def test_hostile_widths_are_refused(block):
    plan = feed(block, *(port.width for port in block.inputs)).compile()
    ports = np.frombuffer(plan.sections["PORT"], "<i4")
    for place in range(1, ports.size, 2):
        changed = ports.copy()
        changed[place] = 1 if changed[place] > 1 else 2
        with pytest.raises(PlanError, match=r"does not fit its kernel|outside the signals"):
            Instance(rewrite(plan, PORT=changed))
