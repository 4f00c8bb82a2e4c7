"""Arithmetic and functions, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella import BlockError, Diagram, DiagramError, simulate
from biella.blocks import Constant, Gain, Integrator, Sum
from biella.blocks.basic.math._function import Function
from biella.blocks.basic.math._math import Abs, Convert, Divide, MinMax, Polynomial, Product, Sign
from biella.blocks.basic.sources._sources import Sine

pytestmark = pytest.mark.engine

RNG = np.random.default_rng(1)
A, B, C = RNG.normal(size=(3, 40, 3))
K = np.array([1.0, -2.0, 0.5])
MATRIX = RNG.normal(size=(2, 3))


def test_gain(run_block: Any) -> None:
    assert np.array_equal(run_block(Gain(-2.5), A), -2.5 * A)
    assert np.array_equal(run_block(Gain(K), A), K * A)
    # Three products summed in another order: a few roundings.
    assert np.allclose(run_block(Gain(MATRIX), A), A @ MATRIX.T, rtol=0, atol=1e-14)
    assert np.array_equal(run_block(Gain(2.0), A[:, 0]), 2 * A[:, 0])


def test_sum(run_block: Any) -> None:
    assert np.array_equal(run_block(Sum("+-+"), A, B, C), A - B + C)
    assert np.array_equal(run_block(Sum("-"), A), -A)


def test_product_and_divide(run_block: Any) -> None:
    assert np.array_equal(run_block(Product("**/"), A, B, C), A * B / C)
    assert np.array_equal(run_block(Product("/*"), A, B), 1 / A * B)
    assert np.array_equal(run_block(Product("/"), A), 1 / A)
    assert np.array_equal(run_block(Divide(), A, B), A / B)


def test_division_by_zero_stops(run_block: Any) -> None:
    with pytest.raises(BlockError, match=r"`block` \(Divide\) returned a value that is not finite"):
        run_block(Divide(), [1.0, 1.0], [2.0, 0.0])


@pytest.mark.parametrize(
    ("block", "units", "unit"),
    [
        (Product("**"), ("N", "m"), "N.m"),
        (Product("**/"), ("N", "m", "s"), "N.m/s"),
        (Divide(), ("rad", "s"), "rad/s"),
        (Product("/"), ("s",), "1/s"),
        (Divide(unit="W"), ("J", "s"), "W"),
        (Product(), ("N", None), None),
        (Product(), ("degC", "s"), None),
        (Abs(), ("N",), "N"),
        (MinMax("max"), ("N", None), "N"),
        (Function("sqrt"), ("N",), None),
        (Function("sin", unit="m"), ("rad",), "m"),
        (Convert("integer"), ("rad",), "rad"),
    ],
)
def test_units(block: Any, units: tuple[str | None, ...], unit: str | None) -> None:
    d = Diagram()
    d.add(block, name="block")
    for port, given in zip(block.inputs, units, strict=True):
        d.connect(d.add(Constant(1.0, unit=given)), block[port.name])
    assert simulate(d, 0.0).units["block.y"] == unit


def test_same_units_are_wanted() -> None:
    d = Diagram()
    largest = d.add(MinMax("max"), name="largest")
    d.connect(d.add(Constant(1.0, unit="N"), name="force"), largest["u1"])
    d.connect(d.add(Constant(1.0, unit="m"), name="length"), largest["u2"])
    with pytest.raises(DiagramError, match=r"`largest.u2` expects 1 signal in N"):
        d.compile()


def test_abs_and_sign(run_block: Any) -> None:
    values = np.array([-2.0, -0.0, 0.0, 1e-300, 3.0])
    assert np.array_equal(run_block(Abs(), values), np.abs(values))
    assert np.array_equal(run_block(Sign(), values), np.sign(values))


def test_minmax(run_block: Any) -> None:
    assert np.array_equal(run_block(MinMax("min", 3), A, B, C), np.minimum(A, np.minimum(B, C)))
    assert np.array_equal(run_block(MinMax("max"), A, B), np.maximum(A, B))
    assert np.array_equal(run_block(MinMax("max", 1), A), A.max(axis=1))
    assert np.array_equal(run_block(MinMax("min", 1), A), A.min(axis=1))


def test_polynomial(run_block: Any) -> None:
    c = [2.0, -1.0, 0.5, 3.0]
    assert np.array_equal(run_block(Polynomial(c), A), np.polyval(c, A))
    assert np.array_equal(run_block(Polynomial([4.0]), A), np.full_like(A, 4.0))


def test_convert(run_block: Any) -> None:
    values = np.array([-2.5, -0.4, 0.0, 0.5, 0.6, 7.0])
    assert np.array_equal(run_block(Convert("real"), values), values)
    assert np.array_equal(run_block(Convert("integer"), values), [-3, 0, 0, 1, 1, 7])
    assert np.array_equal(run_block(Convert("boolean"), values), [1, 1, 0, 1, 1, 1])


def test_convert_joins_kinds() -> None:
    d = Diagram()
    flag = d.add(Constant(True), name="flag")
    gain = d.add(Gain(3.0), name="gain")
    d.connect(flag, gain)
    with pytest.raises(DiagramError, match=r"expects a real signal, but `flag\.y` is boolean"):
        d.compile()
    d = Diagram()
    convert = d.add(Convert("real"))
    d.connect(d.add(Constant(True)), convert)
    d.connect(convert, d.add(Gain(3.0), name="gain"))
    assert simulate(d, 0.0)["gain"][0] == 3.0


@pytest.mark.parametrize(
    ("block", "rate"),
    [
        (Abs(), "continuous"),
        (MinMax("max", 1), "continuous"),
        (Function("sin"), "continuous"),
        (Polynomial([1, 0]), "continuous"),
        (Convert("real"), "continuous"),
        (Product("/"), "continuous"),
        (Sign(), "0.01 s"),
        (Function("floor"), "0.01 s"),
        (Convert("integer"), "0.01 s"),
        (Convert("boolean"), "0.01 s"),
    ],
)
def test_what_jumps_runs_at_ticks_only(block: Any, rate: str) -> None:
    d = Diagram(step=0.01)
    d.connect(d.add(Sine(bias=2.0)), d.add(block, name="block"))
    plan = d.compile()
    assert next(b.rate for b in plan.blocks if b.path == "block") == rate


def test_abs_follows_minor_steps() -> None:
    # ∫ |sin 2πt| over half a period is 1/π; held between ticks it would be off by 1e-4.
    d = Diagram(step=0.01)
    magnitude = d.add(Abs(), name="abs")
    d.connect(d.add(Sine(-1.0)), magnitude)
    d.connect(magnitude, d.add(Integrator(), name="x"))
    assert simulate(d, 0.5)["x"][-1] == pytest.approx(1 / np.pi, abs=1e-8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sum("+*"), "Sum needs one `\\+` or `-` for each input"),
        (lambda: Product(""), "Product needs one"),
        (lambda: Product("+"), "Product needs one"),
        (lambda: MinMax("mean"), "mode is one of 'min', 'max'"),
        (lambda: MinMax("min", 0), "at least one input"),
        (lambda: Function("sine"), "Did you mean `sin`.*Expression"),
        (lambda: Convert("enumeration"), "to is one of"),
        (lambda: Polynomial(3.0), "`coefficients` are a list"),
        (lambda: Gain(np.zeros((2, 2, 2))), "a number, a vector or a matrix"),
        (lambda: Diagram().add(Abs(), offset=0.1), "needs a period"),
    ],
)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        make()
