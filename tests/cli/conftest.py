"""A diagram in a file."""

from __future__ import annotations

import pytest

from .command_files import LOOP


@pytest.fixture
def loop(tmp_path):
    path = tmp_path / "loop.py"
    path.write_text(LOOP)
    return path
