"""Check of the text of a rig.toml against a diagram."""

from __future__ import annotations

import pytest

from biella.scheduler.binding._bind import check_binding

from .speed_loop import diagram


@pytest.fixture
def check(tmp_path):
    def run(text, made=diagram):
        path = tmp_path / "rig.toml"
        path.write_text(text)
        return check_binding(made(), path)

    return run
