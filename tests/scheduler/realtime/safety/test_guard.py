"""The guard: another process sends safe values when that of the run has died or stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from biella import BiellaError, cli, run_realtime

sys.path.insert(0, str(Path(__file__).parent))
from udp_rig import LIVE, Board, bind, build, wait_until  # type: ignore[import-not-found]

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(sys.platform != "linux", reason="the guard needs Linux"),
]


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Board]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    board = Board()
    yield board
    board.close()


def start(board: Board, options: str, *before: str) -> subprocess.Popen[str]:
    """A process with a run; it has begun when this returns."""
    text = f"""
        import os, sys, time
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from udp_rig import bind, build
        from biella import run_realtime
        run = run_realtime(build(), bind=bind({board.port}){options})
        print(os.getpid(), flush=True)
        time.sleep(60)
    """
    process = subprocess.Popen(
        [*before, sys.executable, "-c", textwrap.dedent(text)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(lambda: board.last == pytest.approx(LIVE))
    return process


def test_a_killed_run_is_made_safe_and_latched(board, capsys):
    process = start(board, ", guard=True")
    assert not board.is_safe
    process.kill()
    wait_until(lambda: board.is_safe)
    process.communicate()
    wait_until(lambda: any(Path(os.environ["XDG_RUNTIME_DIR"], "biella").glob("*.latch")))
    with pytest.raises(BiellaError, match=r"the last run with these devices died at .*rearm"):
        run_realtime(build(), bind=bind(board.port), guard=True)
    assert cli.main(["rearm"]) == 0
    assert f"process {process.pid}" in capsys.readouterr().out
    with run_realtime(build(), bind=bind(board.port), guard=True) as run:
        wait_until(lambda: board.last == pytest.approx(LIVE))
        assert run.report().info["guarded"]
    assert board.is_safe


def test_a_stopped_run_is_made_safe_and_latched_when_it_continues(board):
    process = start(board, ", guard=True, watchdog=0.2, max_stall=0")
    try:
        os.kill(process.pid, signal.SIGSTOP)
        wait_until(lambda: board.is_safe)
        os.kill(process.pid, signal.SIGCONT)
        count = len(board.seen)
        wait_until(lambda: len(board.seen) > count + 50)
        assert all(flags & 2 for _, _, flags in board.seen[count:])
    finally:
        process.kill()
        process.communicate()


def test_a_command_is_guarded_as_a_whole(board):
    guard = [sys.executable, "-m", "biella", "guard", "--"]
    process = start(board, "", *guard)
    assert process.stdout is not None
    os.kill(int(process.stdout.readline()), signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert board.is_safe and "died during a real-time run" in errors
    assert process.returncode == 128 + signal.SIGKILL


def test_a_command_keeps_its_exit_code(capfd):
    command = [sys.executable, "-c", "import sys; sys.exit(7)"]
    done = subprocess.run([sys.executable, "-m", "biella", "guard", "--", *command])
    assert done.returncode == 7
    assert cli.main(["guard"]) == 1
    assert cli.main(["guard", "--", "no-such-command"]) == 1
    assert "`no-such-command` cannot be started" in capfd.readouterr().err


def test_what_the_guard_cannot_reach_is_named():
    rig = bind(1)
    rig["devices"]["drive"] = {
        "driver": "loopback",
        "send": {"u": {"limits": [-10, 10], "safe": 0}},
        "receive": {"y": {"limits": [-10, 10]}},
    }
    with pytest.warns(Warning, match="the guard cannot send to drive"):
        run = run_realtime(build(), until=0.01, bind=rig, guard=True)
    run.wait()
