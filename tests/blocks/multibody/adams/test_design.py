"""Expressions of design variables."""

import pytest

from biella import DiagramError
from biella.blocks.multibody import read_adams

from .models import UNITS, write

BASE = "variable create variable_name=.m.a real_value=2.5\n"


def value(tmp_path, text, start=None):
    line = f"variable create variable_name=.m.x real_value={text}\n"
    start = {} if start is None else {"start": start}
    return read_adams(write(tmp_path, BASE, line, **start)).variables[".m.x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-7.5E-002", -0.075),
        ("(.m.a)", 2.5),
        ("(a*2 - 1)", 4.0),
        ("(eval(.m.a**2))", 6.25),
        ("(SQRT(16) + ABS(-1) + MAX(1, .m.a))", 7.5),
        ("(INT(2.9) + MIN(3, 1))", 3.0),
        ("(30deg)", 30.0),
        ("(1rad)", 57.29577951308232),
        ("(180*DTOR)", 3.141592653589793),
        ("(2.0inch)", 50.8),
        ("2cm", 20.0),
        ("(10(newton/cm))", 1.0),
        ("(1.0(kg/meter**3))", 1e-9),
    ],
)
def test_values(tmp_path, text, expected):
    assert value(tmp_path, text) == pytest.approx(expected, rel=1e-15)


def test_angles_in_a_model_in_radians(tmp_path):
    start = UNITS.replace("angle=deg", "angle=radians") + "model create model_name=m\n"
    assert value(tmp_path, "(180d)", start) == pytest.approx(3.141592653589793)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(SIN(.m.a))", "the unit of its angle depends on settings"),
        ("(.m.b)", r"there is no variable `\.m\.b`\. Did you mean"),
        ("(foo(1))", "there is no function `foo`"),
        ("(LOC_RELATIVE_TO({1, 2, 3}, ground))", "`LOC_RELATIVE_TO` is not read here"),
        ("({1, 2} + 1)", "a vector stands where a number is expected"),
        ("({1, 2})", "has one number, got 2"),
        ("(SQRT(-1))", "has no value"),
        ("((-8)**0.5)", "has no value"),
        ("(10**80 * 10**80)", "is too large"),
        ("(1e89**9)", "has no value"),
        ("(ABS(1, 2))", "has no value"),
        ("(3 + )", "the expression ends too early"),
        ("(5parsec)", "there is no unit `parsec`"),
    ],
)
def test_errors_have_their_line(tmp_path, text, message):
    with pytest.raises(DiagramError, match=f"model.cmd, line 4: .*{message}"):
        value(tmp_path, text)


def test_deep_expressions_are_refused(tmp_path):
    """Each variable adds its levels to those of the one that uses it."""
    text = "".join(
        f"variable create variable_name=.m.v{n} real_value=({'(' * 40}.m.v{n - 1}{'+1)' * 40})\n"
        for n in range(1, 60)
    )
    first = "variable create variable_name=.m.v0 real_value=1\n"
    with pytest.raises(DiagramError, match=r"nested too deep|more than 50 levels"):
        read_adams(write(tmp_path, first, text))
