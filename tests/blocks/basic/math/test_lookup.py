"""Tables, against numpy and scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import RegularGridInterpolator

from biella import BlockError, Diagram, DiagramError, simulate
from biella.blocks import Constant
from biella.blocks.basic.math._lookup import Lookup1D, Lookup2D

pytestmark = pytest.mark.engine

RNG = np.random.default_rng(3)
X = np.cumsum(RNG.uniform(0.1, 1.0, 12)) - 3.0
Y = RNG.normal(size=12)
U = np.concatenate([np.linspace(X[0] - 1, X[-1] + 1, 400), X])  # beyond both ends, and each point


def test_linear(run_block: Any) -> None:
    y = run_block(Lookup1D(X, Y), U)
    assert np.allclose(y, np.interp(U, X, Y), rtol=0, atol=1e-14)
    assert np.array_equal(y[400:], Y)


def test_extrapolation(run_block: Any) -> None:
    y = run_block(Lookup1D(X, Y, extrapolation="linear"), U)
    low = Y[0] + (U - X[0]) * (Y[1] - Y[0]) / (X[1] - X[0])
    high = Y[-1] + (U - X[-1]) * (Y[-1] - Y[-2]) / (X[-1] - X[-2])
    oracle = np.select([X[0] > U, X[-1] < U], [low, high], np.interp(U, X, Y))
    assert np.allclose(y, oracle, rtol=0, atol=1e-13)


def test_nearest_and_previous(run_block: Any) -> None:
    nearest = Y[np.abs(U[:, None] - X).argmin(axis=1)]
    assert np.array_equal(run_block(Lookup1D(X, Y, interpolation="nearest"), U), nearest)
    previous = Y[np.clip(np.searchsorted(X, U, side="right") - 1, 0, 11)]
    assert np.array_equal(run_block(Lookup1D(X, Y, interpolation="previous"), U), previous)
    half_way = run_block(Lookup1D([0, 1], [5, 6], interpolation="nearest"), [0.5, 0.49])
    assert np.array_equal(half_way, [6, 5])


def test_error_beyond_the_ends(run_block: Any) -> None:
    block = Lookup1D([0, 1], [5, 6], extrapolation="error")
    assert np.array_equal(run_block(block, [0.0, 1.0]), [5, 6])
    with pytest.raises(
        BlockError, match=r"t = 0.02 s.*its input left the table, \[0, 1\] \(u = 1.1\)"
    ):
        run_block(Lookup1D([0, 1], [5, 6], extrapolation="error"), [0.0, 1.0, 1.1])


def test_vector_of_inputs_and_row_of_outputs(run_block: Any) -> None:
    inputs = RNG.uniform(-4, 4, (50, 3))
    y = run_block(Lookup1D(X, Y), inputs)
    assert np.allclose(y, np.interp(inputs, X, Y), rtol=0, atol=1e-14)
    rows = RNG.normal(size=(12, 4))
    y = run_block(Lookup1D(X, rows), U)
    oracle = np.transpose([np.interp(U, X, column) for column in rows.T])
    assert np.allclose(y, oracle, rtol=0, atol=1e-14)


def test_2d(run_block: Any) -> None:
    x, y, table = X[:5], np.array([-1.0, 0.0, 2.0, 2.5]), RNG.normal(size=(5, 4))
    a, b = RNG.uniform(-4, 4, (2, 500, 2))
    found = run_block(Lookup2D(x, y, table), a, b)
    clipped = np.stack([np.clip(a, x[0], x[-1]), np.clip(b, y[0], y[-1])], axis=-1)
    oracle = RegularGridInterpolator((x, y), table)(clipped)
    assert np.allclose(found, oracle, rtol=0, atol=1e-14)


def test_2d_extrapolation(run_block: Any) -> None:
    # A bilinear function is its own table, inside and outside.
    x, y = np.array([0.0, 1.0, 3.0]), np.array([-1.0, 1.0])
    table = 1 + 2 * x[:, None] - y + 0.5 * x[:, None] * y
    a, b = RNG.uniform(-5, 5, (2, 200))
    found = run_block(Lookup2D(x, y, table, extrapolation="linear"), a, b)
    assert np.allclose(found, 1 + 2 * a - b + 0.5 * a * b, rtol=0, atol=1e-13)
    with pytest.raises(
        BlockError, match=r"left the table, \[0, 3\] and \[-1, 1\] \(u1 = 1, u2 = 1.5\)"
    ):
        run_block(Lookup2D(x, y, table, extrapolation="error"), [1.0, 1.0], [0.0, 1.5])


@settings(max_examples=30)
@given(points=st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=60, unique=True), data=st.data())
def test_any_breakpoints(points: list[float], data: st.DataObject) -> None:
    x = np.sort(points)
    y = np.arange(float(x.size))
    u = data.draw(st.lists(st.floats(-2e9, 2e9) | st.sampled_from(list(x)), min_size=1))
    d = Diagram()
    d.connect(d.add(Constant(u)), d.add(Lookup1D(x, y), name="table"))
    found = np.atleast_2d(simulate(d, 0.0)["table"])[0]
    assert np.allclose(found, np.interp(u, x, y), rtol=1e-12, atol=1e-9)


def test_points_are_settable_even_to_nonsense(run_block: Any) -> None:
    inputs = np.linspace(-1, 3, 41)
    y = run_block(Lookup1D([0, 1, 2], [0, 1, 0]), inputs, parameters={"y_points": [3, 4, 5]})
    assert np.allclose(y, np.interp(inputs, [0, 1, 2], [3, 4, 5]))
    for x in ([2, 1, 0], [1, 1, 1], [0, 5, 2], [1e308, -1e308, 1e308]):
        for extrapolation in ("hold", "linear"):
            y = run_block(
                Lookup1D([0, 1, 2], [0, 1, 0], extrapolation=extrapolation),
                inputs,
                parameters={"x_points": x},
            )
            assert np.isfinite(y).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Lookup1D([0], [1]), "`x` is a list of at least two numbers"),
        (lambda: Lookup1D([0, 1, 1], [1, 2, 3]), r"`x` must rise: x\[2\] = 1 comes after x\[1\]"),
        (lambda: Lookup1D([0, 1], [1, 2, 3]), r"with 2 breakpoints it must be \(2,\)"),
        (lambda: Lookup1D([0, 1], [1, 2], interpolation="cubic"), "'linear', 'nearest'"),
        (
            lambda: Lookup1D([0, 1], [1, 2], interpolation="nearest", extrapolation="linear"),
            "needs linear interpolation",
        ),
        (lambda: Lookup2D([0, 1], [1, 0], np.eye(2)), "`y` must rise"),
        (lambda: Lookup2D([0, 1], [0, 1, 2], np.eye(2)), r"must be \(2, 3\)"),
    ],
)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        make()
