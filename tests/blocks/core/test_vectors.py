"""Parameters that are one number or a vector: aligned and checked."""

import numpy as np
import pytest

from biella.blocks.core._ports import parameter
from biella.blocks.core._vectors import (
    align,
    limits,
    require_choice,
    require_one_positive,
    require_order,
    require_positive,
    require_rising,
    require_whole,
)
from biella.errors import DiagramError


def test_numbers_alone_stay_numbers():
    given = [parameter("a", 1.0), parameter("b", 2.0)]
    aligned, length = align(given)
    assert length is None and aligned == given


def test_a_vector_gives_its_length_to_the_numbers_beside_it():
    (a, b), length = align([parameter("a", 1.0, unit="m", doc="words"), parameter("b", [2.0, 3.0])])
    assert length == 2
    assert a.value.tolist() == [1.0, 1.0] and b.value.tolist() == [2.0, 3.0]
    assert a.unit == parameter("a", 1.0, unit="m").unit and a.doc == "words"


@pytest.mark.parametrize("values", [([1.0, 2.0], [1.0, 2.0, 3.0]), (np.eye(2), 1.0)])
def test_vectors_of_different_lengths_and_matrices_are_refused(values):
    with pytest.raises(DiagramError, match="`a`"):
        align([parameter(name, value) for name, value in zip("ab", values, strict=True)])


def test_a_limit_may_be_infinite_but_not_nan():
    assert limits("upper", np.inf, doc="").value == np.inf
    with pytest.raises(DiagramError, match="`upper`"):
        limits("upper", [1.0, np.nan], doc="")


def test_an_order_holds_element_by_element():
    require_order(parameter("low", [0.0, 1.0]), parameter("high", 1.0))
    with pytest.raises(DiagramError, match=r"`low`.*`high`"):
        require_order(parameter("low", [0.0, 1.5]), parameter("high", 1.0))


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (lambda v: require_positive(parameter("p", v)), [1e-300, 2.0], [1.0, 0.0]),
        (lambda v: require_one_positive("p", v), 3, [1.0, 2.0]),
        (lambda v: require_one_positive("p", v), 3, -1.0),
        (lambda v: require_whole("p", v, 1, 8), np.int64(8), 9),
        (lambda v: require_whole("p", v, 1, 8), 1, 1.0),
        (lambda v: require_whole("p", v, 0, 8), 0, True),
        (lambda v: require_rising("p", parameter("p", v)), [0.0, 1.0], [0.0, 0.0]),
        (lambda v: require_rising("p", parameter("p", v)), [0.0, 1.0], [1.0]),
        (lambda v: require_choice("`p`", v, ["up", "down"]), "down", "left"),
    ],
)
def test_what_is_required_of_a_value_names_it(check, good, bad):
    check(good)
    with pytest.raises(DiagramError, match="`p`"):
        check(bad)
