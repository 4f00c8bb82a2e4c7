"""Sweeps: many runs of one diagram."""

import numpy as np
import pytest

from biella import BiellaError, Diagram, simulate, sweep
from biella.blocks import Assertion, Compare, Gain, Integrator, PythonBlock


def decay(limit=10.0):
    d = Diagram("decay", step=1e-2)
    x = d.add(Integrator(1.0), name="x")
    k = d.add(Gain(-2.0), name="k")
    small = d.add(Compare("<", limit), name="small")
    d.connect(x, k, small)
    d.connect(k, x)
    d.connect(small, d.add(Assertion("x has grown"), name="check"))
    return d


def last(result):
    return result["x"][-1]


def test_a_grid_against_the_closed_form():
    gains, starts = [-1.0, -2.0, -3.0], [1.0, 2.0]
    done = sweep(decay(), 1.0, {"k.k": gains, "x.initial": starts}, last)
    assert done.shape == (3, 2)
    assert done.cases[1] == {"k.k": -1.0, "x.initial": 2.0}
    np.testing.assert_allclose(done.array(), np.outer(np.exp(gains), starts), rtol=1e-7)


def test_cases_are_what_single_runs_give_to_the_bit():
    rng = np.random.default_rng(0)
    cases = [{"k.k": g} for g in rng.normal(-2.0, 0.5, 40)]
    done = sweep(decay(), 0.5, cases, last, workers=4)
    single = [simulate(decay(), 0.5, parameters=case)["x"][-1] for case in cases]
    assert done.values == single


def test_without_a_measure_results_are_kept():
    done = sweep(decay(), 0.1, [{"k.k": -1.0}], record=["x"])
    assert [value.paths for _, value in done if value is not None] == [["x.y"]]


def test_a_run_that_fails_does_not_lose_the_others():
    done = sweep(decay(), 2.0, {"k.k": [-1.0, 2.0, -3.0]}, last)
    assert list(done.failures) == [1]
    assert "x has grown" in str(done.failures[1])
    np.testing.assert_array_equal(np.isnan(done.array()), [False, True, False])


def test_wrong_cases_are_refused_before_anything_runs():
    with pytest.raises(BiellaError, match=r"no parameter or input `k.kk`. Did you mean `k.k`"):
        sweep(decay(), 1.0, {"k.kk": [1.0]}, last)
    with pytest.raises(BiellaError, match=r"case 1 of the sweep: `k.k` must be finite, got nan"):
        sweep(decay(), 1.0, {"k.k": [1.0, float("nan")]}, last)
    with pytest.raises(BiellaError, match="at least one case"):
        sweep(decay(), 1.0, [], last)
    with pytest.raises(BiellaError, match="no signal"):
        sweep(decay(), 1.0, {"k.k": [1.0]}, record=["speed"])


def test_an_error_in_measure_is_the_users_own():
    with pytest.raises(ZeroDivisionError):
        sweep(decay(), 0.1, {"k.k": [-1.0]}, lambda result: 1 / 0)


def test_python_blocks_keep_their_states_apart():
    class Count(PythonBlock):
        def __init__(self):
            super().__init__(inputs=["u"], outputs=["y"], state=[0.0], period=1e-2)

        def output(self, t, x, u):
            return x[0]

        def update(self, t, x, u):
            return [x[0] + u]

    d = Diagram("count", step=1e-2)
    u = d.input("u")
    d.connect(u, d.add(Count(), name="count"))
    done = sweep(d, 1.0, {"u": [1.0, 2.0, 3.0]}, lambda r: r["count"][-1], workers=3)
    np.testing.assert_allclose(done.array(), [100.0, 200.0, 300.0])
