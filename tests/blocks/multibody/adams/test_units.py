"""Units of Adams View."""

import math

import pytest

from biella import DiagramError
from biella.blocks.multibody.adams._units import BASES, Units, choose, choose_unit

MMKS = Units(1e-3, 1.0, 1.0, 1.0, math.pi / 180)


@pytest.mark.parametrize(
    ("base", "given", "value"),
    [
        ("length", "mm", 1e-3),
        ("length", "Meter", 1.0),
        ("length", "millim", 1e-3),
        ("length", "inch", 0.0254),
        ("time", "sec", 1.0),
        ("time", "secon", 1.0),
        ("time", "millisecond", 1e-3),
        ("mass", "slug", 14.59390294),
        ("mass", "slinch", 175.12683525),
        ("force", "kg_force", 9.80665),
        ("force", "pound_force", 4.4482216153),
        ("angle", "degrees", math.pi / 180),
        ("angle", "radi", 1.0),
    ],
)
def test_units_in_si(base, given, value):
    assert choose_unit(base, given) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("base", "given", "message"),
    [
        ("length", "furlong", "the unit of length is `furlong`"),
        ("length", "milimeter", "Did you mean `millimeter`"),
        ("length", "mi", "`mi` may mean"),
        ("mass", "newton", "the unit of mass is `newton`"),
        ("force", "", "may mean"),
    ],
)
def test_wrong_units(base, given, message):
    with pytest.raises(DiagramError, match=message):
        choose_unit(base, given)


def test_every_unit_is_found_by_its_name():
    for base, known in BASES.items():
        for name, value in known.items():
            assert choose_unit(base, name) == value


def test_products():
    assert MMKS.factor(force=1, length=-1) == 1e3
    assert MMKS.convert(7801.0, "kg/meter**3") == pytest.approx(7.801e-6)
    assert MMKS.convert(2.07e11, "Newton/meter**2") == pytest.approx(2.07e5)
    assert MMKS.convert(10.0, "newton-mm/deg") == pytest.approx(10.0)
    assert MMKS.convert(10.0, "newton*meter/rad") == pytest.approx(1e4 * math.pi / 180)
    assert MMKS.convert(2.7, "newton-sec/mm") == pytest.approx(2.7)
    for wrong, message in (("kg//m", "no unit that is known"), ("parsec", "there is no unit")):
        with pytest.raises(DiagramError, match=message):
            MMKS.convert(1.0, wrong)


def test_words_may_be_abbreviated():
    assert choose("`x`", "Rot", ("rotational", "translational")) == "rotational"
    assert choose("`x`", "on", ("on", "once")) == "on"
    with pytest.raises(DiagramError, match="`o` may mean on, off"):
        choose("`x`", "o", ("on", "off"))
    with pytest.raises(DiagramError, match=r"`x` is `rotatonal`\. Did you mean `rotational`"):
        choose("`x`", "rotatonal", ("rotational", "translational"))
