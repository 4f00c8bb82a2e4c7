"""Monte Carlo, worst case and root-sum-square against closed forms, and what is refused."""

from typing import Any

import numpy as np
import pytest

from biella import Diagram, sweep
from biella.blocks import Gain, Step
from biella.errors import BiellaError
from biella.tolerances import Free, Normal, Uniform, sweep_tolerances, tolerance_study

DIMENSIONS = {"a": Normal(10.0, 0.3), "b": Uniform(4.0, 0.2), "c": Normal(1.0, 0.1)}


def gap(x):
    return x["a"] - x["b"] - 2 * x["c"]


def test_a_linear_stack_has_its_closed_form():
    """Differences of a linear function are exact; Monte Carlo within four standard errors."""
    found = tolerance_study(gap, DIMENSIONS, 20_000, seed=3, limits={"value": (3.6, 4.3)})["value"]
    assert found.nominal == 4.0
    assert found.sensitivities == pytest.approx({"a": 1.0, "b": -1.0, "c": -2.0}, rel=1e-12)
    assert found.worst_case == pytest.approx(0.3 + 0.2 + 0.2, rel=1e-12)
    assert found.root_sum_square == pytest.approx(np.sqrt(0.09 + 0.04 + 0.04), rel=1e-12)
    sigma = np.sqrt(0.1**2 + 0.04 / 3 + (0.2 / 3) ** 2)
    assert found.linear_deviation == pytest.approx(sigma, rel=1e-12)
    assert abs(found.deviation - sigma) < 4 * found.standard_error
    assert found.standard_error == pytest.approx(found.deviation / np.sqrt(2 * 19_999))
    assert abs(found.mean - 4.0) < 4 * sigma / np.sqrt(20_000)
    assert found.cp == pytest.approx(0.7 / (6 * found.deviation))
    assert found.cpk == pytest.approx((4.3 - found.mean) / (3 * found.deviation))
    expected = ((found.values >= 3.6) & (found.values <= 4.3)).mean()
    assert found.within == expected and 0.9 < expected < 1.0


def test_one_limit_has_an_index_of_its_side():
    found = tolerance_study(gap, DIMENSIONS, 50, limits={"value": (None, 4.5)})["value"]
    assert np.isnan(found.cp)
    assert found.cpk == pytest.approx((4.5 - found.mean) / (3 * found.deviation))
    assert np.isnan(tolerance_study(gap, DIMENSIONS, 50)["value"].cpk)


def test_a_clearance_in_a_free_direction_has_its_closed_form():
    """y = r cos φ, φ anywhere, r = |N(0, σ)|: E y² = σ²/2, worst case T, RSS T/√2.

    The root mean square of the cosine over 4000 random directions is within 3 %.
    """
    variables = {"r": Normal(0.0, 0.06, sigmas=6.0, folded=True), "phi": Free(0.0, 2 * np.pi)}
    study = tolerance_study(
        lambda x: {"y": x["r"] * np.cos(x["phi"]), "x": x["r"]}, variables, 20_000, directions=4000
    )
    y = study["y"]
    assert y.worst_case == pytest.approx(0.06, rel=1e-4)
    assert y.root_sum_square == pytest.approx(0.06 / np.sqrt(2), rel=0.03)
    assert y.linear_deviation == pytest.approx(0.01 / np.sqrt(2), rel=0.03)
    assert y.deviation == pytest.approx(0.01 / np.sqrt(2), rel=0.03)
    # Folded: σ² (1 - 2/π), not σ².
    assert study["x"].linear_deviation == pytest.approx(0.01 * np.sqrt(1 - 2 / np.pi), rel=1e-9)
    assert study["x"].deviation == pytest.approx(0.01 * np.sqrt(1 - 2 / np.pi), rel=0.03)


def test_arrays_are_judged_element_by_element():
    study: Any = tolerance_study(
        lambda x: {"y": np.array([1.0, 2.0]) * x["a"]}, {"a": Normal(1, 0.3)}, 9
    )
    assert study["y"].values.shape == (9, 2)
    np.testing.assert_allclose(study["y"].worst_case, [0.3, 0.6])
    np.testing.assert_allclose(study["y"].deviation[1], 2 * study["y"].deviation[0])
    assert "array of shape (2,)" in str(study)


def test_a_function_of_all_sets_gives_what_one_of_each_set_gives():
    one = tolerance_study(gap, DIMENSIONS, 30)["value"]
    every = tolerance_study(gap, DIMENSIONS, 30, vectorized=True)["value"]
    np.testing.assert_array_equal(one.values, every.values)
    assert one.sensitivities == every.sensitivities
    with pytest.raises(BiellaError, match="first axis must be that of the sets"):
        tolerance_study(lambda x: {"y": 1.0}, DIMENSIONS, 30, vectorized=True)


def diagram():
    d = Diagram("gap", step=0.1)
    d.add(Step(at=0.0, to=1.0), "one")
    d.add(Gain(1.0), "a")
    d.connect("one", "a")
    return d


def test_a_sweep_gives_what_the_function_gives():
    variables = {"a.k": Normal(2.0, 0.3), "one.to": Uniform(3.0, 0.1)}
    by_sweep = sweep_tolerances(
        diagram(), 0.2, variables, lambda run: {"y": run["a"][-1]}, 12, seed=5, progress=False
    )["y"]
    direct = tolerance_study(lambda x: {"y": x["a.k"] * x["one.to"]}, variables, 12, seed=5)["y"]
    np.testing.assert_allclose(by_sweep.values, direct.values, rtol=1e-15)
    assert by_sweep.sensitivities == pytest.approx(direct.sensitivities, rel=1e-12)


def test_a_set_may_be_translated_to_parameters():
    study = sweep_tolerances(
        diagram(), 0.2, {"d": Normal(0.1, 0.01)}, lambda run: run["a"][-1], 5,
        parameters=lambda x: {"a.k": x["d"] ** 2}, progress=False,
    )  # fmt: skip
    np.testing.assert_allclose(study["value"].values, [x["d"] ** 2 for x in study.sets])
    cases = [{"a.k": x["d"] ** 2} for x in study.sets]
    again = sweep(diagram(), 0.2, cases, lambda run: run["a"][-1], progress=False)
    np.testing.assert_array_equal(again.array(), study["value"].values)


def fragile(x):
    if x["a"] > 10.2:
        raise BiellaError("does not fit.")
    return x["a"]


def test_sets_that_fail_are_counted():
    study = tolerance_study(fragile, {"a": Normal(10.0, 0.3)}, 200, seed=2, difference=0.01)
    failed = [number for number, x in enumerate(study.sets) if x["a"] > 10.2]
    assert list(study.failures) == failed and failed
    assert len(study["value"].values) == 200 - len(failed)
    assert f"{len(failed)} failed" in str(study)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 1}, "`samples` is a whole number from 2"),
        ({"directions": 0}, "`directions` is a whole number from 1"),
        ({"difference": 0.0}, "`difference` is a part"),
        ({"variables": {}}, "at least one dimension"),
        ({"variables": {"a": 3.0}}, "is a Normal, Uniform or Free"),
        ({"limits": {"valu": (0, 1)}}, "Did you mean `value`"),
        ({"measure": lambda x: "one"}, "returns a number"),
        ({"measure": lambda x: np.nan}, "not finite"),
        ({"measure": lambda x: {f"y{x['a'] > 10}": 1.0}}, "for the first one"),
        ({"measure": fragile, "variables": {"a": Normal(10.19, 0.3)}}, "near the nominal"),
    ],
)
def test_invalid_arguments_are_refused(options, message):
    given = {"measure": gap, "variables": DIMENSIONS, "samples": 5} | options
    with pytest.raises(BiellaError, match=message):
        tolerance_study(**given)


def test_a_quantity_that_was_not_measured_is_named():
    study = tolerance_study(gap, DIMENSIONS, 5)
    with pytest.raises(KeyError, match="There are: value"):
        study["values"]
    assert "worst case" in str(study) and "±" not in str(study)


@pytest.mark.parametrize(
    "pair", [(1.2, 0.8), (1.0, 1.0), (np.nan, 1.0), 3.0, (1.0,), ("a", 1.0)], ids=str
)
def test_limits_that_are_none_are_refused(pair):
    with pytest.raises(BiellaError, match="a lower and a higher number"):
        tolerance_study(lambda x: x["a"], {"a": Normal(1, 0.1)}, 10, limits={"value": pair})


def test_arrays_of_other_lengths_are_refused():
    lengths = iter([3] * 5 + [4] * 99)
    with pytest.raises(BiellaError, match=r"shape \(4,\) for `y` of set 5, but \(3,\)"):
        tolerance_study(lambda _: {"y": np.ones(next(lengths))}, {"a": Normal(1, 0.1)}, 10)


def test_nothing_measured_is_refused():
    with pytest.raises(BiellaError, match="returned nothing"):
        tolerance_study(lambda _: {}, {"a": Normal(1, 0.1)}, 10)
