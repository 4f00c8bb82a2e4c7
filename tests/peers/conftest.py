"""Comparisons with other programs: slow, and in an environment that has them and biella.

    pip install biella pytest exudyn pin
    python -m pytest tests/peers -m slow

A peer that is not installed is skipped by name: that is the only reason for a skip here.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

PEERS = {
    "test_exudyn.py": "exudyn",
    "test_pinocchio.py": "pinocchio",
    "test_pinocchio_urdf.py": "pinocchio",
    "test_pyfmi.py": "pyfmi",
    "test_pythonfmu.py": "pythonfmu",
    "test_pythonfmu3.py": "pythonfmu3",
}
"""The package that each file needs."""

# The peers' own sides of the mechanisms are those of the benchmarks.
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Skip what needs a peer that is not here."""
    for item in items:
        package = PEERS.get(item.path.name)
        if package and importlib.util.find_spec(package) is None:
            item.add_marker(pytest.mark.skip(reason=f"{package} is not installed"))
