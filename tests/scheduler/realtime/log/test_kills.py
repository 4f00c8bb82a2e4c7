"""Logs of runs that are killed at random times: all that is left is replayed bit for bit.

pytest -m slow tests/scheduler/realtime/log/test_kills.py      # 200 kills
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from biella import Result, replay
from biella.scheduler.realtime.log._replay import find_differences

from .killed_runs import STEP, diagram

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]

AGE = 1.0
"""What is older than this, in s, is in the file."""


def kill_runs(folder: Path, count: int, seed: int) -> Iterator[tuple[Result, int]]:
    """Yield the log of each killed run, and the ticks that it had made at least."""
    draw = random.Random(seed)
    command = [sys.executable, str(Path(__file__).with_name("killed_runs.py"))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for number in range(count):
            path = folder / f"{number}.h5"
            seconds = draw.choice([0.05, 0.5, 1.8]) * draw.random()
            process.stdin.write(f"{path} {seconds} {number}\n")
            process.stdin.flush()
            ticks = int(process.stdout.readline())
            yield Result.from_hdf5(path), ticks
            path.unlink()


def check(log: Result, ticks: int) -> int:
    """Check a log; return how many ticks are lost."""
    assert log.log is not None
    stopped, lost = str(log.info["stopped"]), log.info["lost"]
    assert "the process ended during the run" in stopped
    if lost is not None:
        assert lost["ticks"] > 0 and f"at least {lost['ticks']} ticks, t = " in stopped
        assert lost["first"] == pytest.approx(log.log.ticks * STEP)
        assert lost["last"] == pytest.approx((log.log.ticks + lost["ticks"] - 1) * STEP)
    assert log.length >= log.log.ticks  # the input log has what these rows depend on
    assert np.array_equal(np.rint(log.t / STEP), np.arange(log.length))
    if log.log.ticks:
        again = replay(log, diagram())
        assert again.length == log.log.ticks
        assert find_differences(log, again) == []
    return max(0, ticks - log.log.ticks)


def test_logs_of_killed_runs_are_replayed(tmp_path: Path) -> None:
    lost = [check(log, ticks) for log, ticks in kill_runs(tmp_path, 6, seed=1)]
    assert len(lost) == 6


@pytest.mark.slow
def test_two_hundred_kills(tmp_path: Path) -> None:
    """No tick that was older than a second is lost: there are at most 1000 in a second."""
    lost, empty = [], 0
    for log, ticks in kill_runs(tmp_path, 200, seed=19):
        lost.append(check(log, ticks))
        empty += log.length == 0 and ticks > 100
    worst, median = max(lost) * STEP, float(np.median(lost)) * STEP
    print(f"\n200 kills: lost {median:.3f} s (median), {worst:.3f} s at most")
    assert worst <= AGE
    assert empty == 0
