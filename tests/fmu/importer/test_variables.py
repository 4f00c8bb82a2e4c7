"""Variables of FMUs: sizes, names of elements, values given for them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from biella.errors import FmuError
from biella.fmu.importer._variables import TYPES, Group, Scalar, shape_of


def make(kind="Float64", shape=(), start=None, names=()):
    return Scalar(
        "v", 1, TYPES[kind], kind, "parameter", "fixed", "exact", start, None, "", names, shape
    )


def test_elements_have_names_with_indices_from_zero():
    assert make().element_names == ["v"] and make().size == 1
    assert make(shape=(3,)).element_names == ["v[0]", "v[1]", "v[2]"]
    assert make(shape=(2, 2)).element_names == ["v[0,0]", "v[0,1]", "v[1,0]", "v[1,1]"]


def test_one_start_value_is_that_of_all_elements():
    assert make(shape=(2, 2), start="7").starts() == [7.0] * 4
    assert make(shape=(3,), start=" 1\n2  3 ").starts() == [1.0, 2.0, 3.0]
    assert make(shape=(3,)).starts() is None
    both = Group("g", (make(start="1"), make(shape=(2,), start="2 3")))
    assert both.starts() == [1.0, 2.0, 3.0] and both.width == 3
    with pytest.raises(FmuError, match="`v` has 3 values, got 2"):
        make(shape=(3,), start="1 2").starts()


def test_an_item_of_an_enumeration_is_given_by_name():
    gear = make("Enumeration", names=("low", "high"))
    assert gear.number("high") == 2.0
    with pytest.raises(FmuError, match="`v` is of type Enumeration, got 'middle'"):
        gear.number("middle")


@pytest.mark.parametrize("size", [None, "many", "-1", "1.5"])
def test_a_dimension_must_be_a_size(size):
    dimension = SimpleNamespace(start=size, variable=None)
    with pytest.raises(FmuError, match="`v` has a dimension of size"):
        shape_of(SimpleNamespace(name="v", dimensions=[dimension]), {})


def test_a_structural_parameter_gives_the_size():
    n = SimpleNamespace(valueReference=4, start="3")
    variable = SimpleNamespace(
        name="v",
        dimensions=[
            SimpleNamespace(start=None, variable=n),
            SimpleNamespace(start=2, variable=None),
        ],
    )
    assert shape_of(variable, {}) == (3, 2)
    assert shape_of(variable, {4: 7}) == (7, 2)


def test_texts_are_returned_one_for_each_element():
    assert make("String").texts("é", "x.fmu") == ("é",)
    assert make("String", shape=(2,)).texts("a", "x.fmu") == ("a", "a")
    assert make("String", shape=(2,)).texts(["a", "b"], "x.fmu") == ("a", "b")
    assert make("Binary").texts(bytearray(b"\0a"), "x.fmu") == (b"\0a",)
    for shape, given in (((), "a\0b"), ((2,), ["a", "b\0"])):
        with pytest.raises(FmuError, match=r"`v` of x\.fmu cannot be .* its first NUL character"):
            make("String", shape=shape).texts(given, "x.fmu")
