"""Functions of one and of two inputs against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella import BlockError
from biella.blocks.basic.math._function import FUNCTIONS, Function

pytestmark = pytest.mark.engine


RNG = np.random.default_rng(1)


NUMPY: dict[str, Any] = {
    "round": lambda v: np.trunc(v + np.copysign(0.5, v)),
    "mod": np.mod,
    "pow": np.power,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
}


POSITIVE = ("log", "log2", "log10", "log1p", "sqrt", "pow", "reciprocal")


INSIDE_ONE = ("asin", "acos", "atanh")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(run_block: Any, name: str) -> None:
    u = RNG.uniform(-3, 3, (100, 2))
    u[:8, 0] = [0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 2.0, -2.0]
    if name in POSITIVE:
        u = np.abs(u) + 1e-3
    if name in INSIDE_ONE:
        u /= 3.0001
    if name == "acosh":
        u = np.abs(u) + 1
    block = Function(name)
    inputs = [u, RNG.uniform(-2, 2, (100, 2))][: len(block.inputs)]
    y = run_block(block, *inputs)
    oracle = NUMPY[name] if name in NUMPY else getattr(np, name)
    # Both libraries keep within a few units in the last place.
    assert np.allclose(y, oracle(*inputs), rtol=4e-15, atol=1e-15)


def test_domain_error_stops(run_block: Any) -> None:
    with pytest.raises(BlockError, match=r"`block` \(Function\).*Inputs: u = -1"):
        run_block(Function("log"), [1.0, -1.0])
