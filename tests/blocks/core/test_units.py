"""Units: reading, naming, algebra, conversion, and messages that teach."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from biella.blocks.core._units import (
    BASE_UNITS,
    DIMENSIONLESS,
    Unit,
    UnitError,
    conversion,
    equivalent,
    format_unit,
    parse_unit,
    same_dimension,
)
from biella.errors import BiellaError

SYMBOLS = ["kg", "g", "m", "mm", "s", "ms", "min", "h", "A", "mA", "K", "mol", "cd", "rad", "deg"]
SYMBOLS += ["rev", "rpm", "Hz", "kHz", "N", "kN", "Pa", "MPa", "bar", "J", "W", "V", "mV", "ohm"]
SYMBOLS += ["uF", "mH", "T", "Wb", "C", "S", "L", "mL", "inch", "ft", "lbf", "%", "ppm", "count"]

symbols = st.sampled_from(SYMBOLS)
powers = st.integers(-3, 3).filter(bool)
units = st.lists(st.tuples(symbols, powers), min_size=1, max_size=4).map(
    lambda terms: parse_unit(".".join(f"{symbol}^{power}" for symbol, power in terms))
)


def exponents(**powers: int) -> tuple[int, ...]:
    return tuple(powers.get(base, 0) for base in BASE_UNITS)


@pytest.mark.parametrize(
    ("text", "expected", "factor"),
    [
        ("1", exponents(), 1.0),
        ("%", exponents(), 0.01),
        ("kg", exponents(kg=1), 1.0),
        ("g", exponents(kg=1), 1e-3),
        ("t", exponents(kg=1), 1e3),
        ("um", exponents(m=1), 1e-6),
        ("µm", exponents(m=1), 1e-6),
        ("mm", exponents(m=1), 1e-3),
        ("L", exponents(m=3), 1e-3),
        ("kN", exponents(kg=1, m=1, s=-2), 1e3),
        ("MPa", exponents(kg=1, m=-1, s=-2), 1e6),
        ("mV", exponents(kg=1, m=2, s=-3, A=-1), 1e-3),
        ("kΩ", exponents(kg=1, m=2, s=-3, A=-2), 1e3),
        ("Hz", exponents(s=-1), 1.0),
        ("rad/s", exponents(rad=1, s=-1), 1.0),
        ("rpm", exponents(rad=1, s=-1), math.pi / 30),
        ("rev/min", exponents(rad=1, s=-1), math.pi / 30),
        ("deg", exponents(rad=1), math.pi / 180),
        ("°", exponents(rad=1), math.pi / 180),
        ("cP", exponents(kg=1, m=-1, s=-1), 1e-3),
        ("inch", exponents(m=1), 0.0254),
        ("km/h", exponents(m=1, s=-1), 1 / 3.6),
        ("J/kg/K", exponents(m=2, s=-2, K=-1), 1.0),
        ("J/(kg.K)", exponents(m=2, s=-2, K=-1), 1.0),
        ("W/(m²·K)", exponents(kg=1, s=-3, K=-1), 1.0),
        ("1/s", exponents(s=-1), 1.0),
        ("(m/s)^2", exponents(m=2, s=-2), 1.0),
        ("min", exponents(s=1), 60.0),
        ("cd", exponents(cd=1), 1.0),
    ],
)
def test_reads_exponents_and_factor(text: str, expected: tuple[int, ...], factor: float) -> None:
    unit = parse_unit(text)
    assert unit.name == text
    assert unit.exponents == expected
    assert unit.factor == pytest.approx(factor, rel=1e-14)
    assert unit.offset == 0.0


@pytest.mark.parametrize(
    "spelling", ["N*m", "N·m", "N⋅m", "N.m", "N m", " N . m ", "N*m^1", "(N)(m)", "m.N", "J"]
)
def test_spellings_of_a_newton_meter_are_equivalent(spelling: str) -> None:
    assert equivalent(parse_unit(spelling), parse_unit("kg.m2/s2"))


@pytest.mark.parametrize(
    "spelling", ["m/s^2", "m/s**2", "m/s²", "m s⁻²", "m*s^-2", "m.s-2", "m/s2", "m/s/s"]
)
def test_spellings_of_a_power(spelling: str) -> None:
    assert format_unit(parse_unit(spelling)) == "m/s2"


def test_hertz_and_radian_per_second_differ() -> None:
    assert not same_dimension(parse_unit("Hz"), parse_unit("rad/s"))


def test_count_is_never_a_plain_number() -> None:
    count = parse_unit("counts")
    assert count.exponents == DIMENSIONLESS.exponents
    assert not same_dimension(count, DIMENSIONLESS)
    assert not same_dimension(parse_unit("count/s"), parse_unit("Hz"))
    assert equivalent(count, parse_unit("count"))
    assert not count.is_dimensionless
    assert parse_unit("%").is_dimensionless


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("V.A", "W"),
        ("ohm.A", "V"),
        ("S.V", "A"),
        ("F.V", "C"),
        ("H.A", "Wb"),
        ("T.m2", "Wb"),
        ("Wb/s", "V"),
        ("A.s", "C"),
        ("Pa.m2", "N"),
        ("W.s", "J"),
        ("daP", "Pa.s"),
        ("St", "cm2/s"),
        ("lx.m2", "lm"),
        ("lm", "cd.sr"),
        ("kat.s", "mol"),
        ("atm", "kPa"),
        ("hp", "ft.lbf/s"),
        ("eV", "J"),
    ],
)
def test_the_table_is_consistent(left: str, right: str) -> None:
    a, b = parse_unit(left), parse_unit(right)
    assert same_dimension(a, b)
    known = {"atm": 101.325, "hp": 550.0, "eV": 1.602176634e-19}
    assert conversion(a, b)[0] == pytest.approx(known.get(left, 1.0), rel=1e-12)


def test_torque_times_speed_keeps_the_radian() -> None:
    power = parse_unit("N.m") * parse_unit("rad/s")
    assert power.name == "N.m.rad/s"
    assert not same_dimension(power, parse_unit("W"))
    assert equivalent(power / parse_unit("rad"), parse_unit("W"))


@pytest.mark.parametrize(
    ("left", "right", "name"),
    [
        ("rad/s", "s", "rad"),
        ("m/s^2", "s", "m/s"),
        ("m", "N", "N.m"),
        ("1/s", "s", "1"),
        ("V", "A", "V.A"),
        ("mm/s", "s", "mm"),
        ("W/K", "1/m2", "W/(m2.K)"),
        ("count/rev", "rev/s", "count/s"),
        ("ml", "1", "mL"),
    ],
)
def test_derived_names(left: str, right: str, name: str) -> None:
    assert (parse_unit(left) * parse_unit(right)).name == name


@pytest.mark.parametrize(
    ("source", "target", "gain", "offset"),
    [
        ("rpm", "rad/s", math.pi / 30, 0.0),
        ("bar", "MPa", 0.1, 0.0),
        ("%", "1", 0.01, 0.0),
        ("degC", "K", 1.0, 273.15),
        ("K", "degC", 1.0, -273.15),
        ("degC", "degF", 1.8, 32.0),
        ("degF", "degC", 5 / 9, -160 / 9),
        ("lbf", "N", 4.4482216152605, 0.0),
        ("psi", "Pa", 6894.757293168361, 0.0),
    ],
)
def test_conversion(source: str, target: str, gain: float, offset: float) -> None:
    got = conversion(parse_unit(source), parse_unit(target))
    assert got == pytest.approx((gain, offset), rel=1e-12)


def test_conversion_refuses_another_dimension() -> None:
    with pytest.raises(UnitError, match=r"`Hz` cannot be converted to `rad/s`.*1/s.*rad/s"):
        conversion(parse_unit("Hz"), parse_unit("rad/s"))
    with pytest.raises(UnitError, match="a plain number"):
        conversion(DIMENSIONLESS, parse_unit("count"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Nm", r"at character 1: unknown unit `Nm`\. Did you mean `N\.m`"),
        ("N.RAD", r"at character 3: unknown unit `RAD`\. Did you mean `rad`"),
        ("RPM", "Did you mean `rpm`"),
        ("kilo", r"unknown unit `kilo`"),
        ("zzz", "Known units: count, N, "),
        ("", "Write '1' for a plain number"),
        ("  ", "empty"),
        ("J/kg.K", r"at character 5: a product after `/` can be read in two ways"),
        ("J/kg K", "two ways"),
        ("(m/s", r"`\(` is not closed"),
        ("m/s)", r"unexpected `\)`"),
        ("m/", "a unit is missing here"),
        ("/s", "a unit is missing here"),
        ("m^", "whole number"),
        ("m^x", "whole number"),
        ("m^0", "between 1 and 99"),
        ("V/Hz^0.5", "between 1 and 99"),
        ("s -1", "unexpected `-1`"),
        ("10 mm", "is a number, not a unit"),
        ("m#", r"at character 2: `#` has no meaning"),
        ("1/degC", "`degC` has an offset"),
        ("degC^2", "use K"),
        ("(km^99)^99", "too large a power"),
        ("m" * 300, "too long"),
        ("(" * 150 + "m", "not closed"),
    ],
)
def test_mistakes_teach(text: str, message: str) -> None:
    with pytest.raises(UnitError, match=message) as caught:
        parse_unit(text)
    assert isinstance(caught.value, BiellaError)
    assert isinstance(caught.value, ValueError)


def test_offset_units_have_no_products() -> None:
    with pytest.raises(UnitError, match="offset"):
        parse_unit("degC") * parse_unit("s")
    assert (parse_unit("degC") * DIMENSIONLESS).offset == 273.15


def test_a_unit_of_foreign_name_is_named_by_base_units() -> None:
    foreign = Unit("Drehzahl", (0, 0, -1, 0, 0, 0, 0, 1))
    assert (foreign * parse_unit("s")).name == "rad"
    assert format_unit(foreign) == "rad/s"
    scaled = Unit("furlong", (0, 1, 0, 0, 0, 0, 0, 0), 201.168)
    assert format_unit(scaled) == "furlong"
    with pytest.raises(UnitError, match=r"`furlong` is not in the table.*in m first"):
        scaled * foreign


def test_a_foreign_unit_may_reuse_a_known_name() -> None:
    impostor = Unit("m", (0, 0, 1, 0, 0, 0, 0, 0))
    assert (impostor * DIMENSIONLESS).name == "s"


@given(units)
def test_format_is_read_back_to_the_same_bits(unit: Unit) -> None:
    again = parse_unit(format_unit(unit))
    fields = ("exponents", "factor", "offset", "count")
    assert [getattr(again, f) for f in fields] == [getattr(unit, f) for f in fields]
    assert format_unit(again) == format_unit(unit)


@given(units, units, units)
def test_multiplication_laws(a: Unit, b: Unit, c: Unit) -> None:
    assert a * b == b * a
    assert (a * b) * c == a * (b * c)
    assert equivalent(a * DIMENSIONLESS, a)
    assert equivalent(a / b * b, a)
    assert (a / a).name == "1"
    assert [x + y for x, y in zip(a.exponents, b.exponents, strict=True)] == list((a * b).exponents)


@given(units, st.integers(-2, 2), st.integers(-2, 2))
def test_powers_add(unit: Unit, m: int, n: int) -> None:
    try:
        product, power = unit**m * unit**n, unit ** (m + n)
    except UnitError as error:
        assert "too large a power" in str(error)
        reject()
    assert equivalent(product, power)


@given(units, units, st.floats(-1e6, 1e6))
def test_conversion_inverts(a: Unit, b: Unit, value: float) -> None:
    other = b if same_dimension(a, b) else parse_unit(format_unit(a))
    gain, offset = conversion(a, other)
    inverse_gain, inverse_offset = conversion(other, a)
    assert inverse_gain * (gain * value + offset) + inverse_offset == pytest.approx(value)


@given(st.text(max_size=30))
def test_any_text_is_a_unit_or_a_unit_error(text: str) -> None:
    try:
        unit = parse_unit(text)
    except UnitError:
        return
    assert equivalent(parse_unit(format_unit(unit)), unit)
