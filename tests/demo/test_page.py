"""The page of the demo."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from biella import cli

pytestmark = pytest.mark.engine


def test_what_the_page_says_to_type_works(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    Path("crank.fmu").unlink()
    runpy.run_path("rig.py", run_name="__main__")
    page = Path("index.html").read_text()
    (typed,) = re.findall(r"<pre>(.*)</pre>", page, re.S)
    for line in typed.splitlines():
        command, *arguments = line.partition("#")[0].split()
        assert command == "biella" and cli.main(arguments) == 0, line
    assert "bit for bit" in capsys.readouterr().out
