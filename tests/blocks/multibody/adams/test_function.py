"""Functions of Adams as formulas: each against its definition in the manual, in numpy."""

import numpy as np
import pytest

from biella import DiagramError
from biella.blocks.multibody import Formula

from .models import BAR, HINGE, UNITS, build

TIMES = np.linspace(0.0, 2.0, 41)


def law(tmp_path, text, start=None):
    motion = "constraint create motion_generator motion_name=.m.d joint_name=.m.hinge function="
    variable = "variable create variable_name=.m.k real_value=-2.5"
    options = {} if start is None else {"start": start}
    return build(tmp_path, BAR, HINGE, variable, f'{motion}"{text}"', **options).drivers[0].law


def s(x, x0, x1):
    return np.clip((x - x0) / (x1 - x0), 0, 1)


CASES = {
    "90d": lambda t: np.pi / 2 + 0 * t,
    "30.0D * TIME": lambda t: np.pi / 6 * t,
    "(.m.k) * time": lambda t: -2.5 * t,
    ".m.k - .m.k**2": lambda t: -2.5 - 6.25 + 0 * t,
    "2*PI*time - RTOD*DTOR": lambda t: 2 * np.pi * t - 1,
    "-time^2 + 2**-1": lambda t: -(t**2) + 0.5,
    "SIN(2*time) + COS(time) - TAN(time/4)": lambda t: np.sin(2 * t) + np.cos(t) - np.tan(t / 4),
    "SQRT(1+time)*EXP(-time)": lambda t: np.sqrt(1 + t) * np.exp(-t),
    "LOG(1+time) + LOG10(1+time)": lambda t: np.log(1 + t) + np.log10(1 + t),
    "ATAN2(time, 1) + ATAN(time)": lambda t: 2 * np.arctan(t),
    "ASIN(time/3) + ACOS(time/3)": lambda t: np.pi / 2 + 0 * t,
    "TANH(time) + SINH(time) - COSH(time)": lambda t: np.tanh(t) + np.sinh(t) - np.cosh(t),
    "MAX(time, 1) + MIN(time, 1) + ABS(time - 1)": lambda t: t + 1 + abs(t - 1),
    "DIM(time, 1)": lambda t: np.maximum(t - 1, 0),
    "SIGN(time*(time-1), time-1)": lambda t: abs(t * (t - 1)) * np.where(t < 1, -1, 1),
    "STEP(time, 0.5, 1, 1.5, -3)": lambda t: 1 - 4 * s(t, 0.5, 1.5) ** 2 * (3 - 2 * s(t, 0.5, 1.5)),
    "STEP(time, 0, 0d, .m.k + 4, 90d)": lambda t: (
        np.pi / 2 * s(t, 0, 1.5) ** 2 * (3 - 2 * s(t, 0, 1.5))
    ),
    "STEP5(time, 0.5, 1, 1.5, -3)": lambda t: (
        1 - 4 * s(t, 0.5, 1.5) ** 3 * (10 - 15 * s(t, 0.5, 1.5) + 6 * s(t, 0.5, 1.5) ** 2)
    ),
    "HAVSIN(time, 0.5, 1, 1.5, -3)": lambda t: (
        (1 - 3) / 2 + (-3 - 1) / 2 * np.sin(np.pi * s(t, 0.5, 1.5) - np.pi / 2)
    ),
    "SHF(time, 25d, PI, 360d, 10d, 5)": lambda t: (
        np.pi * np.sin(2 * np.pi * (t - np.radians(25)) - np.radians(10)) + 5
    ),
    "SHF(time, 0, 2, 3)": lambda t: 2 * np.sin(3 * t),
    "POLY(time, 1, 4, 3, 0, 2)": lambda t: 4 + 3 * (t - 1) + 2 * (t - 1) ** 3,
    "POLY(time, 1, 4)": lambda t: 4 + 0 * t,
    "IF(time-1: time, 1, 2-time)": lambda t: np.where(t < 1, t, 2 - t),
    "STEP(time,0,0,1,1) - STEP(time,1,0,2,1)": lambda t: (
        s(t, 0, 1) ** 2 * (3 - 2 * s(t, 0, 1)) - s(t, 1, 2) ** 2 * (3 - 2 * s(t, 1, 2))
    ),
}


@pytest.mark.parametrize("text", CASES)
def test_functions(tmp_path, text):
    found = law(tmp_path, text)
    values = [found.value(float(t)) for t in TIMES]
    np.testing.assert_allclose(values, CASES[text](TIMES), rtol=1e-13, atol=1e-13)


def test_time_in_milliseconds(tmp_path):
    start = UNITS.replace("time=second", "time=millisecond") + "model create model_name=m\n"
    found = law(tmp_path, "STEP(time, 0, 0, 100, 2)", start)
    assert isinstance(found, Formula)
    assert found.value(0.05) == pytest.approx(1.0) and found.value(0.2) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("AZ(.m.bar.end, .m.ground.base)", r"AZ\(.m.bar.end, .m.ground.base\)` depends on the mot"),
        ("VARVAL(state)", "there is no marker `state`|depends on the motion"),
        ("AKISPL(time, 0, spline)", "there is no function `AKISPL` here"),
        ("STPE(time, 0, 0, 1, 1)", "Did you mean `step`"),
        ("STEP(time, 0, 0, 1)", "`STEP` takes 5 arguments, got 4"),
        ("STEP(time, 1, 0, 1, 1)", "a step runs from 1 to 1"),
        ("STEP(time, 2, 0, 1, 1)", "a step runs from 2 to 1"),
        ("POLY(time)", "`POLY` takes 3 to 33 arguments"),
        ("tme", "`tme` is neither `time` nor a variable of the model"),
        (".m.bar", "`.m.bar` is a part, not a number"),
        ("30mm", "a number in a function has no unit but d"),
        ("time +", "the expression ends too early"),
        ("{1, 2}", "a function has no vectors"),
        ("USER(1, 2)", "is a subroutine"),
        ("1/0*time", "division by zero|no finite|0"),
        ("+".join(["STEP(time,0,0,1,1)"] * 90), "too long"),
        ("SIN(" * 30 + "STEP(" * 10 + "time" + ",0,0,1,1)" * 10 + ")" * 30, "too long"),
    ],
)
def test_errors_have_their_line(tmp_path, text, message):
    with pytest.raises(DiagramError, match=f"model.cmd, line 11: .*({message})"):
        law(tmp_path, text)


def test_a_text_in_several_pieces(tmp_path):
    assert law(tmp_path, 'STEP(time, 0, 0,", "1, 2)').value(0.5) == pytest.approx(1.0)
