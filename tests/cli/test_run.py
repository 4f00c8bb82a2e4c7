"""`biella run`, the command of 0.1."""

from __future__ import annotations

from typing import Any

import pytest

from .command_files import run

pytestmark = pytest.mark.engine


def test_the_commands_of_0_1_still_work_and_say_what_to_write(loop, tmp_path, capsys):
    log, rig = tmp_path / "log.h5", tmp_path / "rig.toml"
    rig.write_text("")

    def notice(*arguments: Any) -> str:
        assert run("run", *arguments) == 0
        (line,) = (each for each in capsys.readouterr().err.splitlines() if "deprecated" in each)
        return line

    assert notice(loop, "--until", 0.1).endswith(f"use `biella simulate {loop}`.")
    realtime = notice(loop, "--realtime", "--until", 0.02, "--log", log)
    assert realtime.endswith(f"will be removed in 0.3: use `biella run-realtime {loop}`.")
    assert notice(loop, "--bind", rig, "--until", 0.02).endswith(f"`biella run-realtime {loop}`.")
    assert notice(loop, "--replay", log).endswith(f"use `biella replay {log} {loop}`.")
    assert run("run", loop, "--realtime", "--input", rig) == 1
    assert "--input applies to offline runs" in capsys.readouterr().err


def test_the_old_command_gives_what_the_new_one_gives(loop, tmp_path):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    assert run("run", loop, "--until", 0.5, "--set", "k.k=2.5", "--out", old) == 0
    assert run("simulate", loop, "--until", 0.5, "--set", "k.k=2.5", "--out", new) == 0
    assert old.read_bytes() == new.read_bytes()
