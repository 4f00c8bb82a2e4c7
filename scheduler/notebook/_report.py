"""The report of a real-time run in a notebook: its tables, and how late ticks began."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...blocks.core.notebook._html import card, fold, paragraph, table
from ...blocks.core.notebook._sketch import histogram

if TYPE_CHECKING:
    from rich.table import Table

    from ..realtime._realtime_report import RealtimeReport


def show_report(report: RealtimeReport) -> str:
    """Return a report as HTML."""
    first, *rest = report._headlines()
    _, _, about = first.rpartition("': ") if report.name else ("", "", first)
    blocks, devices = report.info.get("blocks"), report.info.get("devices")
    return card(
        report.name or "Real-time run",
        f"· {about}",
        *(paragraph(line, "plain") for line in rest),
        _show(report._times()),
        _draw(report.info["lateness"]),
        fold("time of blocks", _show(report._blocks()) if blocks else ""),
        fold("devices", _show(report._devices()) if devices else "", is_open=True),
        *(paragraph(line) for line in report._events()),
    )


def _show(made: Table) -> str:
    """Return a table of the terminal as HTML."""
    from rich.text import Text

    head = [str(column.header) for column in made.columns]
    cells = [[Text.from_markup(str(cell)).plain for cell in c.cells] for c in made.columns]
    return table(head, list(zip(*cells, strict=True)), numbers=range(1, len(head)))


def _draw(figures: dict[str, Any]) -> str:
    """Return the histogram of lateness; reports of earlier releases have none."""
    bins: Sequence[Sequence[float]] = figures.get("bins", ())
    scaled = [(1e6 * begin, 1e6 * end, count) for begin, end, count in bins]
    return histogram(scaled, "lateness in µs", "ticks")
