"""Options of `biella demo`."""

from __future__ import annotations

from pathlib import Path

import pytest

from biella import cli

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seconds", "0.1"], "--seconds must be between"),
        (["taken"], "is a file: specify a folder"),
    ],
)
def test_wrong_options_are_reported(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    Path("taken").write_text("")
    assert cli.main(["demo", *arguments]) == 1
    assert words in capsys.readouterr().err
