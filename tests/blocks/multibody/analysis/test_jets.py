"""Formulas evaluated in Python."""

from __future__ import annotations

import pytest

from biella.blocks.core.formula._formula import FUNCTIONS, Number, read_formula
from biella.blocks.multibody import Formula


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_formula_values_are_those_of_the_reader(function: str) -> None:
    """Python evaluates a formula as the reader folds constants, which the engine's tests check."""
    count = {"atan2": 2, "hypot": 2, "min": 2, "max": 2, "mod": 2, "pow": 2, "clip": 3, "where": 3}
    numbers = ["0.5", "0.3", "0.4"][: count.get(function, 1)]
    folded = read_formula(f"{function}({', '.join(numbers)})").term
    assert isinstance(folded, Number)
    text = f"{function}({', '.join(['t', *numbers[1:]])})"
    assert Formula(text).value(0.5) == folded.value
