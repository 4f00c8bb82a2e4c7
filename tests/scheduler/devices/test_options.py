"""Options in a table of a binding: values, defaults, and what is said of wrong ones."""

import math

import pytest

from biella.scheduler.devices._options import Option, is_number, read_options, show

KNOWN = {
    "rate": Option("number", "values a second", default=10.0, low=0.0, high=1e3),
    "count": Option("whole", default=1, low=1),
    "mode": Option("text", choices=("fast", "slow"), default="fast"),
    "port": Option("text", "a name such as COM3", required=True),
}


def read(table):
    said: dict[str, str] = {}
    return read_options(table, KNOWN, said.__setitem__), said


def test_what_is_not_given_has_its_default():
    assert read({"port": "x"}) == ({"rate": 10.0, "count": 1, "mode": "fast", "port": "x"}, {})


def test_values_are_read_by_their_kind():
    values, said = read({"port": "x", "rate": 5, "count": 2, "mode": "slow"})
    assert not said and values["rate"] == 5.0 and isinstance(values["rate"], float)
    assert values["count"] == 2 and values["mode"] == "slow"


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"rate": "fast"}, "rate"),
        ({"rate": True}, "rate"),
        ({"rate": math.nan}, "rate"),
        ({"rate": 1e4}, "rate"),
        ({"count": 1.5}, "count"),
        ({"count": 0}, "count"),
        ({"mode": "slwo"}, "mode"),
        ({"port": 3}, "port"),
        ({"port": "a\0b"}, "port"),
        ({"baud": 9600}, "baud"),
    ],
)
def test_each_wrong_value_is_reported_under_its_key_and_the_rest_is_read(table, key):
    values, said = read({"port": "x", **table})
    assert list(said) == [key]
    assert key not in KNOWN or values[key] == KNOWN[key].default


def test_a_missing_option_is_reported_with_what_it_is():
    assert "a name such as COM3" in read({})[1]["port"]


def test_a_misspelled_choice_is_reported_with_the_one_that_is_near():
    assert "slow" in read({"port": "x", "mode": "slwo"})[1]["mode"]


@pytest.mark.parametrize(
    ("value", "number"), [(1, True), (1.5, True), (True, False), ("1", False), (math.inf, False)]
)
def test_numbers(value, number):
    assert is_number(value) is number
    assert is_number(10**400) is False


def test_values_are_shown_as_toml_has_them_and_not_at_length():
    assert show(True) == "true" and show("x") == "'x'"
    assert len(show("x" * 1000)) == 60
