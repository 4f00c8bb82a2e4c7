"""The contest of wake-ups: all do the same, the better peer counts, and tails are not judged."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(sys.platform != "linux", reason="not on Linux"),
]


@pytest.mark.usefixtures("c_compiler")
def test_ours_and_the_bare_loop_wake_as_often_and_never_early(tmp_path):
    from realtime import TURN, enter_bare, enter_ours

    for wake in (enter_ours(), enter_bare(tmp_path)):
        lateness = wake()
        assert lateness.size == TURN
        assert lateness.min() >= 0


def test_cyclictest_is_read():
    import realtime

    if realtime.enter_cyclictest([]) is None:
        pytest.skip("cyclictest is not installed")
    wake = realtime.enter_cyclictest(["--default-system", "--policy", "other"])
    assert wake().size == realtime.TURN


def test_without_cyclictest_there_is_a_row_that_says_how_to_install_it(monkeypatch):
    import realtime

    monkeypatch.setattr(realtime.shutil, "which", lambda name, **_: None)
    assert realtime.enter_cyclictest([]) is None
    condition = realtime.Condition("ordinary", realtime.Privileges(), [])
    entrants = [entrant("ours", 10), entrant("bare C loop", 10)]
    rows = realtime.judge(condition, entrants)
    assert [row.peer for row in rows[:2]] == ["bare C loop", "cyclictest: apt install rt-tests"]
    assert [row.met for row in rows[:2]] == [True, None]


def entrant(name, median_us, tail_us=0):
    from realtime import Entrant

    turn = np.full(100, median_us * 1000, np.int64)
    turn[-1] += tail_us * 1000
    return Entrant(name, None, [turn])


@pytest.mark.parametrize(("ours", "met"), [(10.9, True), (11.1, False)])
def test_the_median_is_held_against_the_better_peer_and_tails_against_none(ours, met):
    from realtime import Condition, Privileges, comment, judge

    condition = Condition("ordinary", Privileges(), [])
    entrants = [entrant("ours", ours, 1e6), entrant("bare C loop", 10), entrant("cyclictest", 30)]
    rows = judge(condition, entrants)
    medians = {row.peer: row for row in rows if row.work == "ordinary: median lateness"}
    assert medians["bare C loop"].met is met and medians["bare C loop"].target == "≤ 1.1×"
    assert medians["cyclictest"].met is None
    tails = [row for row in rows if "median" not in row.work]
    assert len(tails) == 6 and all(row.met is None for row in tails)
    ratio = f"{ours / 10:.2f}"
    assert f"ours is {ratio} to {ratio} times the better" in comment(condition, entrants)


def test_the_loop_is_a_plant_a_bearing_and_ten_blocks(tmp_path):
    from realtime import (
        PERIOD,
        SPEED,
        WATCHED,
        ShortBearing,
        build_loop,
        compile_timed,
        run_realtime,
    )

    from biella import simulate
    from biella.fmu.importer._engine_fmu import EngineFmu

    d = build_loop(tmp_path / "crank.fmu")
    kinds = [type(block) for block in d.blocks.values()]
    assert kinds.count(EngineFmu) == kinds.count(ShortBearing) == 1 and len(kinds) == 12
    result = simulate(d, 2.0)
    assert d.step == PERIOD
    # The crank is held near its speed, which swings with the weight of the slider.
    assert np.mean(result[WATCHED][1000:]) == pytest.approx(SPEED, rel=0.3)
    assert np.all(result["film.torque"][1000:] * result[WATCHED][1000:] < 0)
    rows = run_realtime(compile_timed(d), 100, WATCHED)
    assert np.array_equal(rows[:, 2], result[WATCHED][:100])
    assert np.all(rows[1:, 1] > 0)  # the time of the tick before
