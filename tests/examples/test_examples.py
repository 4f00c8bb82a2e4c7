"""Every example runs as a script, makes its picture, and compiles from the command line."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("[0-9][0-9]_*.py"))


def test_there_are_examples():
    assert EXAMPLES


def test_the_list_of_examples_says_what_they_are_and_what_they_write():
    text = (EXAMPLES[0].parent / "README.md").read_text()
    rows = dict(re.findall(r"^\| \[\w+\]\((\w+\.py)\) \| (.*) \|$", text, re.M))
    assert sorted(rows) == [path.name for path in EXAMPLES]
    for path in EXAMPLES:
        code = path.read_text()
        about = (ast.get_docstring(ast.parse(code)) or "").partition("\n\n")[0]
        sentence, _, written = rows[path.name].partition(" | ")
        assert sentence == " ".join(about.split())
        for name in re.findall(r"`([^`]+)`", written) or pytest.fail(path.name):
            assert f'"{name}"' in code


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, tmp_path):
    source = example.read_text()
    assert len(source.splitlines()) <= 80
    if "firmware.board" in source and not shutil.which(os.environ.get("CC", "cc")):
        pytest.skip("needs a C compiler, for the firmware")
    done = subprocess.run(
        [sys.executable, "-W", "error", example], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    pictures = [p for p in tmp_path.iterdir() if p.suffix in (".png", ".svg", ".gif")]
    assert pictures and all(p.stat().st_size > 1000 for p in pictures)
    check = subprocess.run(
        [sys.executable, "-m", "biella", "check", example], capture_output=True, text=True
    )
    assert check.returncode == 0, check.stderr
