"""The grammar of expressions."""

import pytest

from biella import DiagramError
from biella.blocks.multibody.adams._expression import (
    Call,
    Name,
    Number,
    Operation,
    Vector,
    parse,
)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1.5E-3", Number(1.5e-3)),
        ("-.5", Number(-0.5)),
        ("30.0d", Number(30.0, "d")),
        ("31.0cm", Number(31.0, "cm")),
        ("7801.0(kg/meter**3)", Number(7801.0, "kg/meter**3")),
        (".m.DV_1", Name(".m.DV_1")),
        ('."my model".DV_1', Name('."my model".DV_1')),
        ("1 + 2*3", Operation("+", (Number(1), Operation("*", (Number(2), Number(3)))))),
        ("8/4/2", Operation("/", (Operation("/", (Number(8), Number(4))), Number(2)))),
        ("-a**2", Operation("-", (Operation("**", (Name("a"), Number(2))),))),
        ("2^-1", Operation("**", (Number(2), Operation("-", (Number(1),))))),
        ("--3", Number(3)),
        ("MAX(a, 2)", Call("max", (Name("a"), Number(2)))),
        ("IF(a: 1, 2, 3)", Call("if", (Name("a"), Number(1), Number(2), Number(3)))),
        ("{1, -2, 3}", Vector((Number(1), Number(-2), Number(3)))),
        ("{{1, 2}}", Vector((Number(1), Number(2)))),
        ("{1}mm", Vector((Number(1),), "mm")),
        ("(((7)))", Number(7)),
    ],
)
def test_trees(text, tree):
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ends too early"),
        ("1 +", "ends too early"),
        ("1 2", "`2` is not expected"),
        ("(1", "expected `\\)`, got the end"),
        ("{1, 2", "expected `}`, got the end"),
        ("f(1", "expected `\\)`"),
        ("1 ; 2", "`; 2` cannot be read"),
        ("* 2", "`\\*` is not expected"),
        ("2**3**4", "write parentheses"),
        ("1e999", "too large"),
        ("7(kg", "a unit in parentheses is not closed"),
        ("(" * 100 + "1" + ")" * 100, "nested too deep"),
        ("1" + "+1" * 200, "more than 100 operations in a row"),
        ("1" * 30_000, "30000 characters is too long"),
    ],
)
def test_errors(text, message):
    with pytest.raises(DiagramError, match=message):
        parse(text)
