"""Tables at the widths of terminals: nothing is cut off."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from biella.scheduler.results._tables import fit_table


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_no_word_is_cut_off(width):
    headings = ["device", "frames", "sent", "corrupt", "stale", "missed", "dropped", "violations"]
    table = Table(*headings)
    table.add_row("frame_grabber", *(str(10_000 + n) for n in range(len(headings) - 1)))
    out = io.StringIO()
    console = Console(file=out, width=width, no_color=True)
    for piece in fit_table(table, console):
        console.print(piece)
    text = out.getvalue()
    assert "…" not in text
    for word in [*headings, "frame_grabber", *(str(10_000 + n) for n in range(len(headings) - 1))]:
        assert word in text
    assert max(map(len, text.splitlines())) <= width


def test_the_report_of_a_real_time_run_fits_80_columns():
    from biella.scheduler.realtime._realtime_report import RealtimeReport

    figures = dict.fromkeys(("min", "mean", "p50", "p99", "p99.9", "max", "total"), 1e-4)
    figures["count"] = 10
    names = ("frames", "sent", "corrupt", "stale", "missed", "dropped", "losses", "returns")
    counts = dict.fromkeys((*names, "violations", "trips"), 12345)
    report = RealtimeReport.__new__(RealtimeReport)
    object.__setattr__(report, "info", {"devices": {"board": counts}, "lateness": figures})
    out = io.StringIO()
    console = Console(file=out, width=80, no_color=True)
    for piece in fit_table(report._devices(), console):
        console.print(piece)
    assert "…" not in out.getvalue() and all(name in out.getvalue() for name in counts)
