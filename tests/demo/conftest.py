"""One demo for all tests of it."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from biella import cli


@pytest.fixture(scope="session")
def demo(tmp_path_factory) -> tuple[Path, dict[str, Any]]:
    """Where the demo has written to, and what it has printed."""
    folder = tmp_path_factory.mktemp("demo") / "rig"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert cli.main(["demo", str(folder), "--seconds", "2.2", "--json"]) == 0
    return folder, json.loads(printed.getvalue())


@pytest.fixture
def folder(demo) -> Path:
    return demo[0]
