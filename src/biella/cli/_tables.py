"""Tables on the terminal, however narrow it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console, Group
from rich.table import Table

from ..scheduler.results._tables import fit_table


def print_tables(shown: Any) -> None:
    """Print tables; one that does not fit is printed row by row, with nothing cut off.

    A file or a pipe has room for whole lines.
    """
    console = Console()
    if not console.is_terminal:
        console.width = 140
    for part in _parts(shown):
        if isinstance(part, Table):
            for piece in fit_table(part, console):
                console.print(piece)
        else:
            console.print(part)


def _parts(shown: Any) -> Iterator[Any]:
    if isinstance(shown, Group):
        for part in shown.renderables:
            yield from _parts(part)
    else:
        yield shown
