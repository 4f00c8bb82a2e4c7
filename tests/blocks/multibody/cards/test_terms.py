"""Formulas as expressions of cards, and their derivatives."""

import math

import pytest

from biella import DiagramError
from biella.blocks.core.formula._formula import read_formula
from biella.blocks.multibody.analysis._jets import evaluate
from biella.blocks.multibody.cards._expression import read_expression
from biella.blocks.multibody.cards._file import Entry
from biella.blocks.multibody.cards._terms import differentiate, write_term

FORMULAS = [
    "x + 2*y - x/y + -3*x**2",
    "x**y*y**2.5",
    "sqrt(x) + exp(-y) + log(x) + sin(x*y) + cos(x) + tan(y)",
    "asin(x/3) + acos(y/3) + atan(x*y) + sinh(x) + cosh(y) + tanh(x - y)",
    "(x + y)**-2/(1 + x**2)",
]


def compute(term, x, y):
    return evaluate(term, {"x": (x, 0.0, 0.0), "y": (y, 0.0, 0.0)})[0]


@pytest.mark.parametrize(
    "text",
    [*FORMULAS, "where(x >= y, x, y)", "where(x < y, 2, 3)", "where(x > 1, 0, y)",
     "where(x <= y, x, 0)", "max(x, y) + hypot(x, y) + log10(x) - sign(x - y)"],
)  # fmt: skip
def test_expressions_have_the_values_of_formulas(text):
    term = read_formula(text).term
    written = write_term(term, lambda variable: variable.name)
    back = read_expression(Entry("K", written, ""), str).term
    for x, y in ((0.5, 1.5), (1.5, 0.5), (1.0, 1.0), (0.7, 1.0)):
        assert compute(back, x, y) == pytest.approx(compute(term, x, y), rel=1e-15)


@pytest.mark.parametrize("text", ["floor(x)", "x % 2", "where(x == y, 1, 2)", "where(x, 1, 2)",
                                  "where(x < y < 1, 1, 2)"])  # fmt: skip
def test_what_has_no_expression_is_refused(text):
    with pytest.raises(DiagramError, match="cannot be expressed"):
        write_term(read_formula(text).term, lambda variable: variable.name)


@pytest.mark.parametrize("text", [text for text in FORMULAS if "x**y" not in text])
@pytest.mark.parametrize("name", ["x", "y"])
def test_derivatives_are_those_of_jets(text, name):
    term = read_formula(text).term
    at = {"x": 0.7, "y": 1.3}
    jet = evaluate(term, {key: (v, float(key == name), 0.0) for key, v in at.items()})
    first = differentiate(term, name)
    assert compute(first, **at) == pytest.approx(jet[1], rel=1e-12)
    assert compute(differentiate(first, name), **at) == pytest.approx(jet[2], rel=1e-11)
    assert math.isfinite(jet[2])


def test_a_kink_has_no_derivative():
    with pytest.raises(DiagramError, match="cannot be written"):
        differentiate(read_formula("abs(x)").term, "x")
