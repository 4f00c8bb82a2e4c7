"""The expression language of cards."""

import math

import pytest

from biella import DiagramError
from biella.blocks.multibody.cards._expression import as_value, read_expression, translate
from biella.blocks.multibody.cards._file import Entry


def nothing(name):
    raise DiagramError(f"no {name}")


def value(text):
    return as_value(read_expression(Entry("K", text, "Force.s3d, line 7"), nothing))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1/2*3", 1.5),  # real, from the left
        ("-2^2", -4.0),
        ("2^-1", 0.5),
        ("(2^3)^2", 64.0),
        ("2*-3 - -1", -5.0),
        ("--2", 2.0),
        (".108 + 1. + 1.D-2 + 2E1", 21.118),
        ("007 + 00.5", 7.5),
        ("0012345678901/10", 1234567890.1),
        ("sqrt(2)*sin(pi/3)", math.sqrt(2) * math.sin(math.pi / 3)),
        ("step(-1e-9) + 10*step(0) + 100*step(3)", 110.0),
        ("step(2*(1 - 3)) + 1", 1.0),
        ("max(1, 2, 3) - min(4, 5) + atan2(1, 1) + sign(-3)", -2.0 + math.pi / 4),
        ("log(exp(2)) + abs(-1)", 3.0),
        ("6/2/3 - 2 - 1", -2.0),
    ],
)
def test_values(text, expected):
    assert value(text) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2^3^2", "write parentheses"),
        ("", "ends too early"),
        ("1 +", "ends too early"),
        ("(1", r"expected `\)`, got the end"),
        ("1)", r"`\)` is not expected"),
        ("1 2", "`2` is not expected"),
        ("2**3", r"`\*` is not expected"),
        ("a.b", "cannot be read"),
        ("__import__(1)", "no function `__import__`"),
        ("'a'", "cannot be read"),
        ("sin", r"write `sin\(…\)`"),
        ("sin(1, 2)", "takes 1 argument"),
        ("atan2(1)", "takes 2 arguments"),
        ("Sin(1)", "no function `Sin`"),
        ("where(1, 2, 3)", "no function `where`"),
        ("1 < 2", "cannot be read"),
        ("1/0", "no finite value"),
        ("1e999", "too large"),
        ("q1", "no q1"),
        ("(" * 150 + "1" + ")" * 150, "nested too deep"),
    ],
)
def test_bad_expressions_are_named_with_their_place(text, message):
    with pytest.raises(DiagramError, match=message) as error:
        value(text)
    assert str(error.value).startswith("Force.s3d, line 7: `K`: ")


def test_variables_are_replaced():
    entry = Entry("C", "2*abs(qp4)*step(t-4)^2", "")
    text = translate(entry, {"qp4": "(-'my crank.e0_rate')", "t": "t"}.__getitem__)
    assert text == "2*abs((-'my crank.e0_rate'))*where(t - 4 >= 0, 1, 0)**2"
