"""Figures of the demo."""

from __future__ import annotations

import pytest

from biella import cli

pytestmark = pytest.mark.engine


def test_a_short_demo_has_figures_too(tmp_path, capsys):
    assert cli.main(["demo", str(tmp_path / "short"), "--seconds", "0.5"]) == 0
    said = capsys.readouterr()
    assert "nan" not in said.out and said.err == ""
