"""Lets the tests of this folder import the modules beside them, and the boards of the examples."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "firmware"))


@pytest.fixture(params=["simavr", "process"])
def kind(request):
    """Of board."""
    from board import find_missing

    if missing := find_missing(request.param):
        pytest.skip(
            f"this machine has no {missing} (examples/firmware/board.py says which packages)"
        )
    return request.param
