"""Ports, parameters and rates."""

from typing import Any

import numpy as np
import pytest

from biella.blocks.core._ports import (
    CONTINUOUS,
    INHERITED,
    Port,
    main_output,
    number,
    parameter,
    periodic,
)
from biella.errors import DiagramError


def test_a_parameter_is_a_copy_that_cannot_be_written():
    mine = np.array([1.0, 2.0])
    made = parameter("p", mine)
    mine[0] = 9.0
    assert made.value.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        made.value[0] = 3.0


@pytest.mark.parametrize("value", ["words", [], np.nan, [1.0, np.inf], [[1.0], [2.0, 3.0]]])
def test_what_is_no_array_of_finite_numbers_is_refused_by_name(value):
    with pytest.raises(DiagramError, match="`stiffness`"):
        parameter("stiffness", value)


def test_one_number_is_not_a_vector():
    assert number("k", np.float32(2.5)) == 2.5
    with pytest.raises(DiagramError, match="`k`"):
        number("k", [1.0])


def test_a_default_holds_for_all_elements_or_is_given_one_by_one():
    assert Port("u", default=2.0).default_values(3) == [2.0, 2.0, 2.0]
    assert Port("u", width=2, default=(1.0, 2.0)).default_values(2) == [1.0, 2.0]
    assert Port("u").default_values(1) == [0.0]


def test_defaults_may_be_a_list_and_their_number_is_checked():
    given: Any = [1, 2.5]
    assert Port("u", width=2, default=given).default == (1.0, 2.5)
    with pytest.raises(DiagramError, match="the default of `u` has 2 values, but the port has 3"):
        Port("u", width=3, default=(1.0, 2.0)).default_values(3)


@pytest.mark.parametrize("default", ["abc", "1", (1.0, "x"), [[1.0, 2.0]], {"a": 1.0}])
def test_what_is_no_default_is_refused_by_name(default):
    with pytest.raises(DiagramError, match="the default of `u` must be a number or one for each"):
        Port("u", width=2, default=default)


def test_a_unit_may_be_given_by_its_name():
    assert Port("u", unit="mm").unit == Port("u", unit="mm").unit != Port("u", unit="m").unit


def test_without_a_period_a_block_has_its_own_kind_of_rate():
    assert periodic(None) is INHERITED
    assert periodic(None, otherwise=CONTINUOUS) is CONTINUOUS
    made = periodic(0.01, 0.002)
    assert (made.kind, made.period, made.offset) == ("periodic", 0.01, 0.002)


@pytest.mark.parametrize(
    ("period", "offset"), [(0.0, 0.0), (-1.0, 0.0), (np.inf, 0.0), (0.01, 0.01), (0.01, -1e-3)]
)
def test_periods_and_offsets_out_of_range_are_refused(period, offset):
    with pytest.raises(DiagramError, match=r"period|offset"):
        periodic(period, offset)


def test_an_offset_needs_a_period():
    with pytest.raises(DiagramError, match="offset"):
        periodic(None, 0.001)


@pytest.mark.parametrize(
    ("names", "main"), [(["z"], "z"), (["z", "y"], "y"), (["a", "b"], None), ([], None)]
)
def test_the_name_of_a_block_alone_means_its_only_output_or_y(names, main):
    assert main_output(names) == main
