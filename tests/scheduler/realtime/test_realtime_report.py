"""The report of a real-time run as text."""

from __future__ import annotations

import re
from typing import Any

import pytest

from biella.scheduler.realtime._realtime_report import RealtimeReport, _microseconds

FIGURES = {
    "count": 10, "total": 2e-3, "min": 1e-6, "mean": 2e-6, "p50": 2e-6, "p99": 5e-6,
    "p99.9": 1.5e-4, "max": 1.234e-3,
}  # fmt: skip


def info(**more: Any) -> dict[str, Any]:
    return {
        "clock": "wall", "factor": 1.0, "why": "its end time", "ticks": 200, "overruns": 0,
        "overrun": "skip", "skipped": 0, "lateness": FIGURES, "execution": FIGURES,
        "overrun_ticks": [], "gaps": [], "privileges": [], **more,
    }  # fmt: skip


def text(name: str = "", **more: Any) -> str:
    lines = str(RealtimeReport(info(**more), name)).splitlines()
    return "\n".join(line.strip() for line in lines)  # tables are indented


def test_the_first_lines_say_how_it_went():
    lines = text("loop").splitlines()
    assert lines[0] == "'loop': 200 ticks on the wall clock; it ended: its end time."
    assert lines[1] == "Overruns: 0 (0 %), policy skip."
    assert text(why="").splitlines()[0] == "200 ticks on the wall clock so far."
    assert "wall clock × 2.5;" in text(factor=2.5)


def test_overruns_are_a_share_with_what_followed():
    found = text(overruns=3, skipped=4, overruns_in_warmup=2, warmup_ticks=10)
    assert "Overruns: 3 (1.5 %), policy skip, 4 deadlines skipped; 2 more in the first 10" in found
    assert "2 more in the first 10 ticks" in text(overruns_in_grace=2, grace=10)  # as of 0.1
    assert "Overruns" not in text(clock="free")
    assert "Overruns: 0, policy" in text(ticks=0)


def test_times_are_in_microseconds():
    row = next(line for line in text().splitlines() if line.startswith("lateness"))
    assert row.split() == ["lateness", "1", "2", "2", "5", "150", "1234"]
    empty = text(lateness={**FIGURES, "count": 0})
    assert not re.search("^lateness", empty, re.M) and re.search("^execution", empty, re.M)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0, "0"), (1.26e-8, "0.0126"), (9.94e-5, "99.4"), (1e-4, "100")]
)
def test_three_digits_are_enough(seconds, shown):
    assert _microseconds(seconds) == shown


def test_the_blocks_that_take_the_most_time_come_first_and_the_rest_is_summed():
    blocks = {f"b{k}": {**FIGURES, "total": float(k)} for k in range(15)}
    lines = text(blocks=blocks).splitlines()
    rows = [line.split() for line in lines if re.match(r"b\d+ ", line)]
    assert [row[0] for row in rows] == [f"b{k}" for k in range(14, 2, -1)]
    assert rows[0][-2:] == [f"{100 * 14 / 105:.1f}", "%"]
    (rest,) = [line for line in lines if line.startswith("3 more")]
    assert rest.split()[-2:] == [f"{100 * 3 / 105:.1f}", "%"]


def test_events_are_listed_and_long_lists_cut():
    late = [(k, 1e-5 * k) for k in range(20)]
    found = text(overrun_ticks=late, overruns=1000)
    assert "Ticks that ended late: 0 (+0 µs), 1 (+10 µs)," in found
    assert "11 (+110 µs), … (1000 in all)." in found and "12 (+" not in found
    gap = text(gaps=[{"of": "rows", "first": 5, "last": 9}])
    assert "Missing, with first and last tick: rows 5–9." in gap


def test_devices_workers_recorder_and_privileges():
    found = text(
        devices={"card": {"frames": 7, "lost": 1}, "plc": {"frames": 8, "lost": 0}},
        workers={
            "slow": {"results": 3, "skipped": 2, "behind": 4},
            "quick": {"results": 9, "skipped": 0},
        },
        recorder="the disk was full",
        privileges=[(True, "locked memory"), (False, "priority: no permission")],
    )  # fmt: skip
    assert re.search(r"^card +7 +1$", found, re.M) and re.search(r"^plc +8 +0$", found, re.M)
    assert (
        "Worker `slow`: 3 results, 2 periods skipped: it takes longer than one, at the end 4 "
        "ticks behind."
    ) in " ".join(found.split())
    assert "Worker `quick`: 9 results." in found
    assert "Recorder: the disk was full" in found
    assert "granted: locked memory" in found and "refused: priority: no permission" in found


def test_the_figures_are_kept_as_they_came():
    given = info(ticks=5)
    report = RealtimeReport(given)
    given["ticks"] = 6
    assert report.info["ticks"] == 5
