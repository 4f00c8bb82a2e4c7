"""`biella run-realtime` and `replay`."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from biella import cli
from biella.scheduler.results._result import Result

from .command_files import SLOW, run

pytestmark = pytest.mark.engine


def test_ctrl_c_ends_between_ticks_and_the_file_is_complete(tmp_path):
    path = tmp_path / "slow.py"
    path.write_text(SLOW)
    out = tmp_path / "slow.h5"
    process = subprocess.Popen(
        [sys.executable, "-m", "biella", "simulate", path, "--until", "1000", "--out", out],
        stdout=subprocess.PIPE,
        text=True,
        # A job in the background of a shell would pass on that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not out.exists() or Result.from_hdf5(out).length < 6:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert "stopped: interrupted at t =" in text
    result = Result.from_hdf5(out)
    assert result.length > 5
    assert list(result["slow"]) == list(result.t)


def test_a_run_in_real_time_is_reported_logged_and_replayed(loop, tmp_path, capsys):
    log = str(tmp_path / "log.h5")
    arguments = ["run-realtime", str(loop), "--until", "0.05", "--log", log, "--profile"]
    assert cli.main([*arguments, "--set", "k.k=2.5"]) == 0
    said = capsys.readouterr()
    printed = said.out
    assert "running until t = 0.05 s, or Ctrl-C" in said.err
    assert "ticks on the wall clock; it ended: the end time was reached." in printed
    assert "p99.9" in printed and "share" in printed and f"wrote {log}" in printed
    table, picture = tmp_path / "again.csv", tmp_path / "again.png"
    outputs = ["--out", str(table), "--plot", str(picture)]
    assert cli.main(["replay", log, str(loop), *outputs]) == 0
    assert f"signals equal those of {log}, bit for bit" in capsys.readouterr().out
    assert table.is_file() and picture.is_file()
    assert cli.main(["replay", str(tmp_path / "no.h5"), str(loop)]) == 1
    assert "There is no file" in capsys.readouterr().err
    assert cli.main([*arguments, "--out", str(tmp_path / "other.h5")]) == 1
    assert "--log and --out specify two HDF5 files" in capsys.readouterr().err


def test_a_log_without_python_blocks_is_replayed_without_its_diagram(loop, tmp_path, capsys):
    log = tmp_path / "log.h5"
    assert run("run-realtime", loop, "--until", 0.02, "--log", log) == 0
    assert run("replay", log, "--plot", tmp_path / "again.png") == 0
    assert f"signals equal those of {log}, bit for bit" in capsys.readouterr().out
