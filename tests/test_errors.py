"""Errors and warnings: all exported, one root each, and helpers of their texts."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import biella
import biella.blocks
import biella.results
from biella import BiellaError, BiellaWarning, BindingError, DiagramError
from biella.errors import name_list, suggest

ROOT = Path(__file__).parents[1]


def classes_of(module: ModuleType) -> list[type]:
    return [value for value in vars(module).values() if isinstance(value, type)]


def test_all_errors_and_warnings_are_exported_and_have_one_root():
    own = [c for c in classes_of(biella.errors) if issubclass(c, Exception)]
    assert {c.__name__ for c in own} <= set(biella.__all__)
    for each in own:
        assert issubclass(each, BiellaWarning if issubclass(each, Warning) else BiellaError), each
        assert getattr(biella, each.__name__) is each
    assert issubclass(biella.CouplingWarning, BiellaWarning)


def test_no_public_error_is_defined_elsewhere():
    """Except for how one family of devices refuses."""
    pattern = re.compile(r"^class (\w+)\((.*(?:Error|Warning)\b.*)\):", re.M)
    elsewhere = {
        name
        for folder in ("blocks", "scheduler", "fmu", "src/biella/cli", "src/biella/demo")
        for path in (ROOT / folder).rglob("*.py")
        for name, _ in pattern.findall(path.read_text())
        if not name.startswith("_")
    }
    # The build runs before biella is installed: its errors are not those of a run.
    assert elsewhere == {"BuildError", "ContractError", "HeaderError", "Refused"}


@pytest.mark.parametrize(
    ("name", "valid", "text"),
    [
        ("sine", ["sin", "cos"], " Did you mean `sin`?"),
        ("PID.KP", ["pid.kp", "pid.ki"], " Did you mean `pid.kp` or `pid.ki`?"),
        ("xyz", ["abc"], ""),
        ("anything", [], ""),
    ],
)
def test_the_nearest_names_are_suggested(name, valid, text):
    assert suggest(name, valid) == text


def test_a_long_list_of_names_is_cut_and_counted():
    assert name_list([]) == "none"
    assert name_list(iter("abc")) == "a, b, c"
    assert name_list(map(str, range(12))) == ", ".join(map(str, range(12)))
    assert name_list(map(str, range(20)), limit=2) == "0, 1, … (20 in all)"


@pytest.mark.parametrize("kind", [DiagramError, BindingError])
def test_problems_are_numbered_unless_there_is_one(kind):
    assert kind("alone").problems == ["alone"] and str(kind("alone")) == "alone"
    assert str(kind(["alone"])).endswith("alone")
    several = kind(["first", "second"])
    assert several.problems == ["first", "second"]
    assert re.search(r"2 problems.*\n  1\. first\n  2\. second$", str(several))
