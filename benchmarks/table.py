"""Rows, table and file of a benchmark: the same for every benchmark of this project.

A row compares one work done by us with the same work done by a peer. Its `ratio` is in the
direction of its target: ours / theirs where the target is a ceiling ("at most 3 times the C
table"), theirs / ours where it is a floor ("at least 500 times faster than PathSim"). Where the
target is an absolute figure, the peer is "limit", `theirs` is that figure and the ratio is ours /
limit. A row with no target is there to be read, one with no peer is a figure of ours alone; a row
whose peer is not installed has neither `theirs` nor `ratio` and tells how to install it. All these
have `met` = null and count neither as met nor as missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

_BEGIN = time.perf_counter()


@dataclass(frozen=True)
class Row:
    """One line of a benchmark: what `--json` writes."""

    work: str
    peer: str
    ours: float
    theirs: float | None
    unit: str
    ratio: float | None
    target: str
    met: bool | None


def at_most(
    work: str, peer: str, ours: float, theirs: float, unit: str, times: float | None = None
) -> Row:
    """Make a row whose ratio is ours / theirs, to be at most `times`; none: no target."""
    ratio = ours / theirs
    target, met = ("", None) if times is None else (f"≤ {times:g}×", ratio <= times)
    return Row(work, peer, ours, theirs, unit, ratio, target, met)


def times_faster(
    work: str, peer: str, ours: float, theirs: float, unit: str, times: float | None = None
) -> Row:
    """Make a row whose ratio is theirs / ours, to be at least `times`; none: no target."""
    ratio = theirs / ours
    target, met = ("", None) if times is None else (f"≥ {times:g}× faster", ratio >= times)
    return Row(work, peer, ours, theirs, unit, ratio, target, met)


def within(work: str, ours: float, limit: float, unit: str) -> Row:
    """Make a row held against an absolute figure."""
    return Row(
        work, "limit", ours, limit, unit, ours / limit, f"≤ {limit:g} {unit}".strip(), ours <= limit
    )


def not_installed(
    work: str, peer: str, ours: float, unit: str, target: str, install: str = ""
) -> Row:
    """Make the row of a peer that is missing from this environment; `install` is the command."""
    name = f"{peer}: {install}" if install else peer
    return Row(work, name, ours, None, unit, None, target, None)


def beside(work: str, peer: str, ours: float, theirs: float, unit: str) -> Row:
    """Make a row with no target, of figures that may be zero."""
    return Row(work, peer, ours, theirs, unit, ours / theirs if theirs else None, "", None)


def figure(work: str, ours: float, unit: str) -> Row:
    """Make a row of ours alone."""
    return Row(work, "", ours, None, unit, None, "", None)


def parse_arguments(description: str, plot: bool = False, **flags: str) -> argparse.Namespace:
    """Read `--quick`, `--json FILE` and `--peers-python PATH`; on demand, `--plot FILE`.

    Each of `flags` is another option without a value, with its help.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="at most 50 s: fewer, shorter runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to FILE")
    parser.add_argument(
        "--peers-python",
        metavar="PATH",
        help="interpreter of the environment where the peers are installed, if it is not this one",
    )
    for name, text in flags.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    if plot:
        parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw the picture")
    return parser.parse_args()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def print_rows(title: str, rows: Sequence[Row], notes: Sequence[str] = ()) -> None:
    """Print the table, then one line for each note, then how many targets are met."""
    table = Table(title=title, title_justify="left")
    for name in ("work", "peer"):
        table.add_column(name)
    for name in ("ours", "theirs"):
        table.add_column(name, justify="right")
    table.add_column("unit")
    table.add_column("ratio", justify="right")
    table.add_column("target")
    table.add_column("met")
    work = None
    for row in rows:
        if row.work != work and work is not None:
            table.add_section()
        table.add_row(
            row.work if row.work != work else "",
            row.peer,
            _number(row.ours),
            _number(row.theirs) or ("not installed" if row.peer else ""),
            row.unit,
            _number(row.ratio),
            row.target,
            {True: "[green]yes", False: "[red]no", None: ""}[row.met],
        )
        work = row.work
    console = Console()
    # Off a terminal rich assumes 80 columns and would fold the cells.
    if not console.is_terminal:
        console.width = 140
    console.print(table)
    for note in notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    judged = [row for row in rows if row.met is not None]
    console.print(f"{sum(bool(row.met) for row in judged)} of {len(judged)} targets met")


def say(text: str) -> None:
    """Tell on the standard error what is being done, and since when the benchmark runs."""
    print(f"{time.perf_counter() - _BEGIN:6.1f} s  {text}", file=sys.stderr, flush=True)


def write_json(path: Path, rows: Sequence[Row]) -> None:
    """Write the rows as a list of objects."""
    text = json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
