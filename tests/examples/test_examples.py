"""Every example runs as a script, makes its picture, and compiles from the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("[0-9][0-9]_*.py"))


def test_there_are_examples():
    assert EXAMPLES


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
