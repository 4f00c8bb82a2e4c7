"""The versions that CI installs satisfy what pyproject.toml requires."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = Path(__file__).parents[2] / ".ci" / "requirements.txt"
_PIN = re.compile(r"([A-Za-z0-9._-]+)==([^ ]+) --hash=sha256:([0-9a-f]{64})")


def load_lock_script():
    spec = importlib.util.spec_from_file_location("ci_lock", LOCK.with_name("lock.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pins():
    head, *lines = LOCK.read_text().splitlines()
    assert re.match(r"# Python 3\.\d+, \w+ \w+; written by \.ci/lock\.py$", head)
    found = [_PIN.fullmatch(line) for line in lines]
    assert all(found), [line for line, pin in zip(lines, found, strict=True) if not pin]
    return {canonicalize_name(pin[1]): pin[2] for pin in found if pin}


def test_each_requirement_has_a_pin_that_satisfies_it(pins):
    """Of the package, the extra `dev` and the build; `python .ci/lock.py` writes them again."""
    required = [Requirement(text) for text in load_lock_script().list_requirements()]
    assert {"hatchling", "numpy", "pytest", "clang-format"} <= {r.name for r in required}
    for requirement in required:
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            pin = pins[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(pin, prereleases=True), requirement


def test_the_file_names_no_place_to_download_from():
    text = LOCK.read_text()
    assert "://" not in text and "index-url" not in text and "find-links" not in text
