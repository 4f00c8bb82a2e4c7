"""Tables on the terminal."""

from __future__ import annotations

import pytest
from rich.console import Group
from rich.table import Table

from biella.cli._tables import print_tables

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("columns", [50, 200])
def test_tables_lose_nothing_in_a_narrow_terminal(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    table = Table("name", "value", title="parameters", caption="that is all")
    table.add_row("motor.inertia", "of the rotor, about [i]its axis[/i]")
    table.add_row("a_name_that_is_rather_long", "a_word_that_is_long_too_and_has_no_space")
    print_tables(Group(table, "below"))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    shown = "\n".join(lines)
    for text in ("parameters", "motor.inertia", "its axis", "that is all", "below"):
        assert text in shown
    assert "a_word_that_is_long_too_and_has_no_space" in shown and "…" not in shown
