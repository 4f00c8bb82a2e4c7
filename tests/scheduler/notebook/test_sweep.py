"""Sweeps in notebooks and terminals."""

import re

import pytest

from biella import Diagram, Result, Sweep, sweep
from biella.blocks import Gain, Integrator, Step
from biella.errors import BlockError
from biella.scheduler.notebook._sweep import describe_value


def make(cases, values, shape, failures=None):
    return Sweep(cases, values, failures or {}, shape)


def grid(rows, columns):
    cases = [{"a.k": float(a), "b<i>": float(b)} for a in range(rows) for b in range(columns)]
    return make(cases, [c["a.k"] + c["b<i>"] ** 2 for c in cases], (rows, columns))


def test_a_grid_is_drawn_as_a_curve_for_each_outer_value():
    found = grid(3, 5)
    assert repr(found) == "Sweep(15 runs, grid 3 × 5, of a.k, b<i>)"
    made = found._repr_html_()
    assert made.count("<polyline") == 3 and "a.k = 2" in made and "<i>" not in made
    assert made.count("<tr>") == 16


def test_many_outer_values_are_thinned():
    made = grid(40, 3)._repr_html_()
    assert made.count("<polyline") == 6 and "a.k = 0" in made and "a.k = 39" in made
    assert "… and 70 more" in made


def test_a_list_of_one_parameter_is_drawn_in_order():
    made = make([{"k": 3.0}, {"k": 1.0}, {"k": 2.0}], [9.0, 1.0, 4.0], (3,))._repr_html_()
    points = re.findall(r'points="([^"]+)"', made)[0].split()
    xs = [float(p.split(",")[0]) for p in points]
    assert xs == sorted(xs) and len(xs) == 3


@pytest.mark.parametrize(
    ("cases", "values"),
    [
        ([{"k": 1.0}, {"k": 2.0}], ["a", "<b>"]),
        ([{"k": 1.0}, {"k": 2.0}], [[1.0, 2.0], [3.0, 4.0]]),
        ([{"k": 1.0, "m": 2.0}, {"k": 2.0, "m": 1.0}], [1.0, 2.0]),
        ([{"k": [1.0, 2.0]}, {"k": [2.0, 1.0]}], [1.0, 2.0]),
        ([{"k": 1.0}, {"m": 2.0}], [1.0, 2.0]),
    ],
)
def test_what_is_no_curve_is_a_table_only(cases, values):
    made = make(cases, values, (2,))._repr_html_()
    assert "<svg" not in made and made.count("<tr>") == 3 and "<b>" not in made.split("</p>", 1)[1]


def test_failed_runs_are_told():
    failed = make([{"k": 1.0}, {"k": 2.0}], [None, 4.0], (2,), {0: BlockError("<too fast>")})
    assert repr(failed).endswith("of k, 1 failed)")
    made = failed._repr_html_()
    assert "failed: " in made and "&lt;too fast&gt;" in made


@pytest.mark.engine
def test_a_real_sweep():
    d = Diagram("sweep")
    d.add(Integrator(), "x", u=d.add(Gain(1.0), "k", u=d.add(Step(), "ref")))
    found = sweep(d, 0.01, {"k.k": [1.0, 2.0]}, progress=False)
    made = found._repr_html_()
    assert repr(found) == "Sweep(2 runs, of k.k)" and "11 times" in made and "result" in made
    assert isinstance(found.values[0], Result)


def test_values_in_words():
    assert describe_value(None) == "–" and describe_value(1.23456789) == "1.23457"
    assert describe_value([1, 2, 3, 4, 5]) == "[1, 2, 3, 4, …]"
    assert describe_value({"a": 1}) == "{'a': 1}"
