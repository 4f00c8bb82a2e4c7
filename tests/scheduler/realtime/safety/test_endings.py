"""Every ending of a real-time run: the last value that actuators see. No time is asserted."""

from __future__ import annotations

import math
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from endings import ENDINGS, PAGE, observe  # type: ignore[import-not-found]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)


@pytest.mark.parametrize("name", ENDINGS)
def test_actuators_end_as_the_table_says(name: str) -> None:
    ending = ENDINGS[name]
    outcome = observe(name, guard=False)
    assert outcome.is_safe == ending.safe
    assert not math.isnan(outcome.board), "the watchdog of the board acts in any case"
    if name.startswith("stop_"):
        # One value may have been on its way when the process was stopped; there is no burst.
        assert outcome.after <= 1


@pytest.mark.parametrize("name", [name for name, e in ENDINGS.items() if e.guarded is not None])
def test_the_guard_makes_them_safe(name: str) -> None:
    outcome = observe(name, guard=True)
    assert outcome.is_safe == ENDINGS[name].guarded is True


def test_every_ending_is_in_the_table() -> None:
    text = PAGE.read_text()
    for ending in ENDINGS.values():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| {ending.text} |")]
        cells = [cell.strip() for cell in row.split("|")[2:-1]]
        assert [cell.startswith("safe") for cell in cells[:3]] == [ending.safe, ending.safe, True]
        if ending.guarded is not None:
            assert all(cell.startswith("safe") for cell in cells[3:]) == ending.guarded
