"""Timing report of a real-time run, printed as a table."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

_SHOWN = 12
_FIGURES = ("min", "mean", "p50", "p99", "p99.9", "max")


class RealtimeReport:
    """The report of a real-time run, printed as tables; `info` holds its figures.

    Attributes
    ----------
    info
        As in ``result.info["realtime"]``; durations in s.
    """

    def __init__(self, info: Mapping[str, Any], name: str = "") -> None:
        self.info = dict(info)
        self.name = name

    def __str__(self) -> str:
        from rich.console import Console

        text = io.StringIO()
        Console(file=text, width=100, no_color=True).print(self)
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())

    def __repr__(self) -> str:
        first, late = self._headlines()[0], self.info["lateness"]
        told = f"; lateness p99 {_microseconds(late['p99'])} µs" if late["count"] else ""
        return f"RealtimeReport({first.rstrip('.')}{told})"

    def _repr_html_(self) -> str:
        from ..notebook._report import show_report

        return show_report(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from ..results._tables import fit_table

        yield from self._headlines()
        yield from fit_table(self._times(), console)
        if self.info.get("blocks"):
            yield from fit_table(self._blocks(), console)
        if self.info.get("devices"):
            yield from fit_table(self._devices(), console)
        yield from self._events()

    def _headlines(self) -> list[str]:
        info = self.info
        held = f"{info['clock']} clock"
        if info.get("factor", 1.0) != 1.0:
            held += f" × {info['factor']:g}"
        name = f"{self.name!r}: " if self.name else ""
        why = f"; it ended: {info['why']}." if info["why"] else " so far."
        lines = [f"{name}{info['ticks']} ticks on the {held}{why}"]
        if info["clock"] == "wall":
            count = info["overruns"]
            part = f" ({100 * count / info['ticks']:.3g} %)" if info["ticks"] else ""
            line = f"Overruns: {count}{part}, policy {info['overrun']}"
            if info["skipped"]:
                line += f", {info['skipped']} deadlines skipped"
            # Files of 0.1 have other names.
            early = info.get("overruns_in_warmup", info.get("overruns_in_grace"))
            if early:
                ticks = info.get("warmup_ticks", info.get("grace"))
                line += f"; {early} more in the first {ticks} ticks"
            lines.append(line + ".")
        return [*lines, *_describe_solver(info.get("solver", {}))]

    def _times(self) -> Table:
        table = _table("time in µs", _FIGURES)
        for name in ("lateness", "execution"):
            figures = self.info[name]
            if figures["count"]:
                table.add_row(name, *(_microseconds(figures[key]) for key in _FIGURES))
        return table

    def _blocks(self) -> Table:
        """The blocks that took the most time."""
        blocks = sorted(self.info["blocks"].items(), key=lambda item: -item[1]["total"])
        whole = sum(figures["total"] for _, figures in blocks) or 1.0
        table = _table("time of blocks in µs", (*_FIGURES, "share"))
        for path, figures in blocks[:_SHOWN]:
            numbers = (_microseconds(figures[key]) for key in _FIGURES)
            table.add_row(path, *numbers, f"{100 * figures['total'] / whole:.1f} %")
        if len(blocks) > _SHOWN:
            rest = sum(figures["total"] for _, figures in blocks[_SHOWN:])
            blank = [""] * len(_FIGURES)
            table.add_row(f"{len(blocks) - _SHOWN} more", *blank, f"{100 * rest / whole:.1f} %")
        return table

    def _devices(self) -> Table:
        devices = self.info["devices"]
        names = list(next(iter(devices.values())))
        table = _table("device", names)
        for name, counts in devices.items():
            table.add_row(name, *(str(counts[key]) for key in names))
        return table

    def _events(self) -> list[str]:
        info, lines = self.info, []
        ticks = [f"{tick} (+{_microseconds(late)} µs)" for tick, late in info["overrun_ticks"]]
        if ticks:
            lines.append("Ticks that ended late: " + _listed(ticks, info["overruns"]))
        gaps = [f"{gap['of']} {gap['first']}–{gap['last']}" for gap in info["gaps"]]
        if gaps:
            lines.append("Missing, with first and last tick: " + _listed(gaps, len(gaps)))
        lines += [_describe_worker(path, item) for path, item in info.get("workers", {}).items()]
        if info.get("recorder"):
            lines.append(f"Recorder: {info['recorder']}")
        lines += [f"{'granted' if ok else 'refused'}: {text}" for ok, text in info["privileges"]]
        return lines


def _describe_solver(counts: Mapping[str, int]) -> list[str]:
    """Return a line if the solver has located events, or could not do as asked."""
    parts = [f"{counts['events']} events located"] if counts.get("events") else []
    if counts.get("unlocated"):
        parts.append(f"{counts['unlocated']} ticks with too many events, finished without locating")
    if counts.get("uncontrolled"):
        parts.append(
            f"{counts['uncontrolled']} ticks with too many steps, finished without error control"
        )
    return [f"Solver: {'; '.join(parts)}."] if parts else []


def _describe_worker(path: str, counts: Mapping[str, int]) -> str:
    line = f"Worker `{path}`: {counts['results']} results"
    if counts["skipped"]:
        line += f", {counts['skipped']} periods skipped: it takes longer than one"
    if counts.get("behind"):
        line += f", at the end {counts['behind']} ticks behind"
    return line + "."


def _table(title: str, columns: tuple[str, ...] | list[str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(title)
    for name in columns:
        table.add_column(name, justify="right")
    return table


def _microseconds(seconds: float) -> str:
    value = 1e6 * seconds
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _listed(items: list[str], total: int) -> str:
    shown = ", ".join(items[:_SHOWN])
    return shown + (f", … ({total} in all)." if total > _SHOWN else ".")
