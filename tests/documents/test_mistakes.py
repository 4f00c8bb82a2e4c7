"""docs/howto/mistakes.md: each mistake, made as shown, gives the message shown.

A section has a block of Python or a command of biella, perhaps after blocks that write files (their
first line is ``# name``), and then a block of text: the message.
"""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path

import pytest

from biella import cli
from biella.errors import BiellaError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "howto" / "mistakes.md").read_text()
SECTIONS = re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)
pytestmark = pytest.mark.engine


def test_there_are_ten_typical_mistakes():
    assert len(SECTIONS) >= 10


@pytest.mark.parametrize(("title", "section"), SECTIONS, ids=[title for title, _ in SECTIONS])
def test_mistake(title, section, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = FENCE.findall(section)
    (language, message), wrong = blocks[-1], blocks[-2]
    assert language == "text", "a section ends with its message"
    for kind, code in blocks[:-1]:
        name = re.match(r"# ([\w.]+)\n", code)
        if name:
            Path(name[1]).write_text(code)
        elif (kind, code) != wrong:
            exec(code, {})
    language, code = wrong
    said = make(language, code, capsys)
    assert flat(said) == flat(message), f"{title}: the message is now\n{said}"


def make(language: str, code: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what biella says of a mistake."""
    if language == "sh":
        command, *arguments = shlex.split(code)
        assert command == "biella"
        assert cli.main(arguments) == 1
        return capsys.readouterr().err.removeprefix("error: ")
    with warnings.catch_warnings(), pytest.raises(BiellaError) as caught:
        warnings.simplefilter("error")
        exec(code, {})
    return str(caught.value)


def flat(text: str) -> str:
    """Return a message as one line, without the folder of the run."""
    return " ".join(re.sub(r"(?:/[\w.-]+)+/(?=[\w.-]+)", "", text).split())
