"""The table of units: factors against their definitions, prefixes without ambiguity."""

import math

import pytest

from biella.blocks.core import _unit_table as table
from biella.blocks.core._units import BASE_UNITS, conversion, parse_unit


def test_entries_consist_of_base_units():
    for name, entry in table.TABLE.items():
        assert set(entry.base) <= {*BASE_UNITS, "count"}, name
        assert entry.factor > 0 and all(entry.base.values()), name


@pytest.mark.parametrize(
    ("unit", "base", "factor"),
    [  # values of SI and of the conversion tables of NIST SP 811
        ("lbf", "N", 4.4482216152605),
        ("psi", "Pa", 6894.757293168361),
        ("hp", "W", 745.6998715822702),
        ("rpm", "rad/s", 0.10471975511965977),
        ("eV", "J", 1.602176634e-19),
        ("cP", "Pa.s", 1e-3),
        ("cSt", "m2/s", 1e-6),
        ("arcsec", "rad", 4.84813681109536e-06),
        ("mmol", "mol", 1e-3),
    ],
)
def test_factors_are_those_of_the_definitions(unit, base, factor):
    gain, offset = conversion(parse_unit(unit), parse_unit(base))
    assert gain == pytest.approx(factor, rel=1e-12) and offset == 0.0


def test_temperatures_meet_where_they_should():
    to_celsius = conversion(parse_unit("degF"), parse_unit("degC"))
    for fahrenheit, celsius in ((32.0, 0.0), (212.0, 100.0), (-40.0, -40.0)):
        assert to_celsius[0] * fahrenheit + to_celsius[1] == pytest.approx(celsius, abs=1e-10)


def test_every_prefix_of_every_unit_is_read_back():
    for unit, entry in table.TABLE.items():
        for prefix in table.PREFIXES:
            symbol = prefix + unit
            if symbol in table.TABLE or symbol in table.SPELLINGS:
                continue
            found = table.split_prefix(symbol)
            if entry.prefixable:
                assert found == (prefix, unit), symbol
            else:
                assert found != (prefix, unit), symbol


def test_a_unit_of_the_table_is_not_taken_for_one_with_a_prefix():
    for symbol in table.TABLE:
        assert table.split_prefix(symbol) == ("", symbol)
    for symbol in ("min", "cd", "ft", "Pa", "kat", "d", "T"):
        assert table.split_prefix(symbol) == ("", symbol)
    assert table.split_prefix("mm") == ("m", "m") and table.split_prefix("daN") == ("da", "N")


def test_other_spellings_name_units_of_the_table():
    assert set(table.SPELLINGS.values()) <= set(table.TABLE)
    assert not set(table.SPELLINGS) & set(table.TABLE)
    assert table.split_prefix("kΩ") == ("k", "ohm") and table.split_prefix("ml") == ("m", "L")
    for word, symbol in table.WORDS.items():
        assert table.split_prefix(symbol), word


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("Nm", "`N.m`"),
        ("newtons", "`N`"),
        ("pa", "`Pa`"),
        ("HZ", "`Hz`"),
        ("degrees", "`deg`"),
        ("counst", "`counts`"),
    ],
)
def test_the_nearest_unit_is_suggested(wrong, right):
    assert table.split_prefix(wrong) is None
    text = table.suggest(wrong)
    assert text.startswith("Did you mean") and right in text


def test_without_a_near_one_all_are_listed():
    assert table.suggest("§§§§").startswith("Known units: count, N, lbf")


def test_prefixes_are_powers_of_ten():
    for prefix, factor in table.PREFIXES.items():
        assert math.log10(factor) == pytest.approx(round(math.log10(factor))), prefix
    assert table.PREFIXES["u"] == 1e-6 and table.PREFIXES["M"] == 1e6
