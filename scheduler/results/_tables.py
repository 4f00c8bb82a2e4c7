"""Tables that fit a terminal, however narrow it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table


def fit_table(table: Table, console: Console) -> Iterator[RenderableType]:
    """Yield the table; or, where its words would be cut off, its rows one below the other."""
    from rich.measure import Measurement
    from rich.padding import Padding
    from rich.text import Text

    wide = console.options.update_width(10_000)
    if Measurement.get(console, wide, table).minimum <= console.width:
        yield table
        return
    if table.title:
        yield Text(_text(table.title), style="italic")
    headings = [_text(column.header) for column in table.columns]
    for row in zip(*(column.cells for column in table.columns), strict=True):
        first, *rest = map(_text, row)
        title = f"{headings[0]}: {first}" if headings[0] and not table.title else first
        yield Text(title, style="bold")
        pairs = zip(headings[1:], rest, strict=True)
        told = ", ".join(f"{heading} {cell}".strip() for heading, cell in pairs if cell)
        yield Padding(Text(told), (0, 0, 0, 2))
    if table.caption:
        yield Text(_text(table.caption), style="italic")
    yield ""


def _text(cell: Any) -> str:
    from rich.text import Text

    return Text.from_markup(cell).plain if isinstance(cell, str) else str(cell)
