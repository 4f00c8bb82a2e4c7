"""The four bindings of one diagram leave the same log: example 24, whole."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from board import choose_kind, find_missing

from biella.scheduler.realtime.log._replay import find_differences

EXAMPLES = Path(__file__).parents[2] / "examples"
STATUS = {"board.age", "board.alive", "board.delay"}
SINGLE = float(np.finfo(np.float32).eps)
pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """All simulated; the plant as an FMU; the controller on a board; that again by replay."""
    if missing := find_missing(choose_kind()):
        pytest.skip(f"this machine lacks {missing}")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("four"))
        patch.syspath_prepend(EXAMPLES)
        made = runpy.run_path(str(EXAMPLES / "24_four_bindings.py"))["run_all"]()
        sys.modules.pop("firmware.board", None)
        sys.modules.pop("firmware", None)
    return list(made.values())


def schema(result):
    return {
        path: (signal.width, signal.unit, signal.kind)
        for path, signal in result.signals.items()
        if path not in STATUS
    }


def test_the_schema_of_the_log_is_one(runs):
    """Paths, widths, units and kinds, in the same order; but for what a device says of itself."""
    simulated, *others = runs
    assert len(simulated) == 13 and "realtime.lateness" in simulated
    for other in others:
        assert schema(other) == schema(simulated)
        assert list(schema(other)) == list(schema(simulated))
        assert set(other) - set(simulated) in (set(), STATUS)
        assert np.array_equal(other.t, simulated.t)
    assert [set(run) >= STATUS for run in runs] == [False, False, True, True]


def test_the_four_agree_as_far_as_they_can(runs):
    simulated, fmu, board, again = runs
    assert find_differences(simulated, fmu) == [], "it is the same engine"
    assert find_differences(board, again) == []

    # The board counts in float32: its torque is that of the PID beside it, which has the same
    # speeds, but for roundings of an integral that is summed up over all ticks.
    # The last row is of a tick that was reached, but not run: the board was not asked.
    sent, wanted = board["torque"][1:-1], board["pid.y"][:-2]
    assert np.abs(sent - wanted).max() < 300.0 * SINGLE * 20
    assert np.abs(sent - wanted).max() > 0.0, "it is not the simulated one"
    off = np.abs(board["plant.main.speed"] - simulated["plant.main.speed"])
    assert off.max() < 2e-6 < np.abs(simulated["plant.main.speed"]).max()


def test_every_answer_of_the_board_was_one_tick_old(runs):
    board = runs[2]
    assert set(board["board.delay"][2:-1]) == {1.0}
    assert set(board["board.alive"][1:]) == {1.0}
    assert board.info["realtime"]["clock"] == "device:board"
