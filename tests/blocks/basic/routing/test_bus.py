"""What a bus is made of; buses in diagrams are in `tests/scheduler/compile/test_buses.py`."""

import copy
import pickle

import pytest

from biella import Diagram, DiagramError, UnitError
from biella.blocks import Bus, BusSelector, BusType, Port

MODE = Port("mode", kind="enumeration", names=("off", "run"))
SENSORS = BusType({"speed": "rad/s", "mode": MODE, "pose": {"x": "m", "v": Port("v", width=2)}})


def test_a_type_is_a_mapping_of_ports_and_types():
    assert list(SENSORS) == ["speed", "mode", "pose"] and len(SENSORS) == 3
    assert SENSORS["speed"] == Port("speed", unit="rad/s")
    assert SENSORS["pose"] == BusType({"x": "m", "v": Port("v", width=2)})
    assert [path for path, _ in SENSORS.list_signals()] == ["speed", "mode", "pose.x", "pose.v"]
    assert SENSORS.shape == {"speed": None, "mode": None, "pose": {"x": None, "v": None}}


def test_types_with_the_same_elements_in_the_same_order_are_equal():
    same = BusType({"a": "m", "b": None})
    assert same == BusType([Port("a", unit="m"), "b"])
    assert hash(same) == hash(BusType([Port("a", unit="m"), "b"]))
    assert same != BusType({"b": None, "a": "m"}) and same != BusType({"a": "s", "b": None})
    assert same != {"a": "m", "b": None}
    assert copy.deepcopy(SENSORS) == pickle.loads(pickle.dumps(SENSORS)) == SENSORS


def test_a_type_is_shown_as_it_is_written():
    assert repr(BusType({"a": "m", "b": {"c": None}})) == (
        "BusType({'a': 'm', 'b': BusType({'c': None})})"
    )


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ({}, "at least one element"),
        ([], "at least one element"),
        ("speed", "names and units"),
        (3, "names and units"),
        (["a", "a"], "two elements of the bus are called `a`"),
        ({"a.b": "m"}, "'a.b' cannot name an element"),
        ({"a b": "m"}, "cannot name an element"),
        ({3: "m"}, "3 cannot name an element"),
        ({"a": 3.0}, "`a` of a bus is a unit, a Port, a BusType or None, got 3.0"),
        ({"a": Port("b")}, "`a` of a bus is a port called `b`"),
        ({"a": Port("a", width="n")}, "`a` of a bus needs a fixed width"),
        ({"a": {}}, "at least one element"),
    ],
)
@pytest.mark.parametrize("make", [BusType, Bus])
def test_what_cannot_be_a_bus_is_refused(make, elements, message):
    with pytest.raises(DiagramError, match=message):
        make(elements)


def test_an_unknown_unit_is_refused():
    with pytest.raises(UnitError, match="unknown unit `metre`"):
        BusType({"a": "metre"})


def test_a_bus_has_an_input_for_each_element():
    bus = Bus(SENSORS)
    assert list(bus.input_index) == ["speed", "mode", "pose"] and list(bus.output_index) == ["bus"]
    assert dict(Bus(["a", Port("b", unit="m")]).elements) == {"a": None, "b": Port("b", unit="m")}


def test_a_selector_has_an_output_for_each_element():
    assert list(BusSelector("speed").output_index) == ["speed"]
    assert list(BusSelector(["speed", "pose.x"]).output_index) == ["speed", "pose.x"]


@pytest.mark.parametrize(
    ("elements", "message"),
    [([], "at least one"), ("", "''"), ("a..b", "a..b"), ([3], "3"), (["a", "a"], "`a`")],
)
def test_what_cannot_be_selected_is_refused(elements, message):
    with pytest.raises(DiagramError, match=message):
        BusSelector(elements)


@pytest.mark.parametrize("block", [Bus(["a"]), BusSelector("a")])
def test_a_bus_has_no_period(block):
    with pytest.raises(DiagramError, match="keeps the rate of its source"):
        Diagram("d").add(block, "b", period=1e-3)
