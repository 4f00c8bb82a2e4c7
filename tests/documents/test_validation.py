"""The validation report says what the library computes, as far as that takes seconds."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load_validation():
    spec = importlib.util.spec_from_file_location("validation", ROOT / "docs" / "validation.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


validation = load_validation()
PAGE = validation.PAGE.read_text()


def without_rounding(text: str) -> str:
    """Leave out bounds of what is rounding: no two machines share them."""
    return re.sub(r"< 1e-\d+", "< rounding", text)


@pytest.mark.parametrize(
    "section", [section for section in validation.SECTIONS if section.quick], ids=lambda s: s.title
)
def test_a_quick_section_is_what_the_page_says(section):
    text, _ = validation.render(section)
    assert without_rounding(text) in without_rounding(PAGE), "run: python docs/validation.py"


def test_every_section_is_on_the_page_with_its_words():
    titles = re.findall(r"^## (.*)$", PAGE, re.M)
    assert titles == [section.title for section in validation.SECTIONS]
    for section in validation.SECTIONS:
        assert validation.about(section) in PAGE


def test_the_page_counts_its_verdicts():
    rows = re.findall(r"^\| .* \| ([^|]*) \|$", PAGE, re.M)
    for verdict in (validation.MET, validation.DESCRIBED, validation.MISSED, validation.OPEN):
        assert f"{rows.count(verdict)} {verdict}" in PAGE
        assert verdict in rows


def test_the_squeezer_is_met_by_a_wide_margin():
    """Measured: angles within 1.5e-9 rad, which smaller steps do not change."""
    rows = validation.squeezer()
    assert [row.case.split()[0] for row in rows] == list(validation.SQUEEZER)
    assert {row.verdict for row in rows} == {validation.MET}
    assert all(float(row.difference.removeprefix("< ")) <= 1e-8 for row in rows)


def test_a_wrong_number_is_not_met():
    row = validation.number("S", "somebody", 1.33, 1.36, 0.015)
    assert (row.difference, row.verdict) == ("+2.3 %", validation.MISSED)
    assert validation.number("S", "somebody", 1.33, 1.34, 0.015).verdict == validation.MET
    assert validation.count("n", "somebody", "3 redundant", "2 redundant").verdict != validation.MET
    assert (
        validation.statement("n", "somebody", "stays", "goes", False).verdict == validation.MISSED
    )
    assert [validation.below(x) for x in (0.0, 3e-13, 6e-13)] == ["< 1e-16", "< 1e-12", "< 1e-11"]
