"""What a compiled diagram says about itself: signals, parameters and values by name."""

import numpy as np
import pytest

from biella import BiellaError, Diagram
from biella.blocks import Constant, Gain, StateSpace
from biella.scheduler.compile.plan._described import ParameterInfo, read_value, slots_of

pytestmark = pytest.mark.engine


@pytest.fixture
def plan():
    d = Diagram("named", step=1e-3, start_time=2.0)
    u = d.input("push", unit="N", width=2)
    plant = d.add(StateSpace(-np.eye(2), np.eye(2), np.eye(2), np.zeros((2, 2))), name="plant")
    d.connect(u, plant)
    d.connect(d.add(Constant(3.0), name="three"), d.add(Gain(2.0), name="twice"))
    d.output("moved", plant)
    return d.compile()


def test_what_belongs_to_the_whole(plan):
    assert (plan.name, plan.step, plan.start_time, plan.solver) == ("named", 1e-3, 2.0, "rk4")
    assert list(plan.inputs) == ["push"] and list(plan.outputs) == ["moved"]
    assert plan.loops == () and plan.couplings == () and plan.exchanges == ()


def test_a_signal_is_found_by_its_path_its_block_and_its_name_as_an_output(plan):
    found = {plan.find_signal(name) for name in ("plant.y", "plant", "moved")}
    (port,) = found
    assert port.path == "plant.y" and port.width == 2 and port.signal.width == 2
    assert plan.find_signal("push").unit == "N"


@pytest.mark.parametrize(("name", "near"), [("plan", "`plant`"), ("twice.x", "`twice.y`")])
def test_an_unknown_signal_is_reported_with_the_nearest(plan, name, near):
    with pytest.raises(BiellaError, match=f"no signal `{name}`. Did you mean .*{near}"):
        plan.find_signal(name)


def test_signals_do_not_overlap(plan):
    slots = slots_of(plan.signals.values())
    assert len(slots) == len(set(slots)) == sum(port.width for port in plan.signals.values())


def test_parameters_and_inputs_can_be_set_and_signals_cannot(plan):
    place, shape = plan.find_settable("plant.A")
    assert shape == (2, 2) and place.stop - place.start == plan.parameters["plant.A"].size == 4
    place, shape = plan.find_settable("push")
    assert shape == (2,) and place.start == plan.inputs["push"].slot
    with pytest.raises(BiellaError, match=r"no parameter or input `twice.y`.*Inputs: push\."):
        plan.find_settable("twice.y")


def test_a_number_has_one_value_and_an_empty_matrix_none():
    assert ParameterInfo("k", 0, (), None, "", True).size == 1
    assert ParameterInfo("k", 0, (0, 3), None, "", True).size == 0


def test_values_are_read_in_the_shape_of_those_before():
    before = np.zeros(4)
    assert read_value("a", [[1, 2], [3, 4]], (2, 2), before).tolist() == [1, 2, 3, 4]
    assert read_value("a", [1, 2, 3, 4], (2, 2), before).tolist() == [1, 2, 3, 4]
    assert read_value("limit", np.inf, (), np.array([np.inf])).tolist() == [np.inf]


@pytest.mark.parametrize(
    ("value", "shape", "before", "message"),
    [
        ("fast", (), np.zeros(1), "`a` expects numbers, got 'fast'"),
        ([1, 2], (), np.zeros(1), r"`a` expects one number, got 2: \[1, 2\]"),
        ((1, 5), (), np.zeros(1), "The decimal separator is a point, not a comma"),
        ([1, 2, 3], (2, 2), np.zeros(4), r"4 numbers of shape \(2, 2\), got 3"),
        (np.inf, (), np.zeros(1), "`a` must be finite"),
        (np.nan, (), np.zeros(1), "`a` must be finite"),
    ],
)
def test_other_values_are_refused_by_name(value, shape, before, message):
    with pytest.raises(BiellaError, match=message):
        read_value("a", value, shape, before)
