"""Tables on the terminal, however narrow it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console, Group
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text


def print_tables(shown: Any) -> None:
    """Print tables; one that does not fit is printed row by row, with nothing cut off.

    A file or a pipe has room for whole lines.
    """
    console = Console()
    if not console.is_terminal:
        console.width = 140
    for part in _parts(shown):
        if isinstance(part, Table) and _needs(part, console) > console.width:
            _print_rows(part, console)
        else:
            console.print(part)


def _parts(shown: Any) -> Iterator[Any]:
    if isinstance(shown, Group):
        for part in shown.renderables:
            yield from _parts(part)
    else:
        yield shown


def _needs(table: Table, console: Console) -> int:
    """Return the width at which no word of the table is cut."""
    return Measurement.get(console, console.options.update_width(10_000), table).minimum


def _print_rows(table: Table, console: Console) -> None:
    if table.title:
        console.print(table.title, style="italic")
    headings = [_text(column.header) for column in table.columns]
    for row in zip(*(column.cells for column in table.columns), strict=True):
        first, *rest = map(_text, row)
        console.print(Text(first, style="bold"))
        pairs = zip(headings[1:], rest, strict=True)
        told = ", ".join(f"{heading} {cell}".strip() for heading, cell in pairs if cell)
        console.print(Padding(Text(told), (0, 0, 0, 2)))
    if table.caption:
        console.print(table.caption, style="italic")
    console.print()


def _text(cell: Any) -> str:
    return Text.from_markup(cell).plain if isinstance(cell, str) else str(cell)
