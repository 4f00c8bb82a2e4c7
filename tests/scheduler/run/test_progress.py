"""The progress of a run on a terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys

import pytest

from biella.scheduler.run._progress import Progress, _duration, _speed


class TestProgress:
    def test_silent_off_a_terminal(self, capfd: pytest.CaptureFixture[str]) -> None:
        with Progress(10, "run", show_after=0.0) as progress:
            progress.advance(10)
        assert progress.done == 10
        assert capfd.readouterr() == ("", "")

    @staticmethod
    def in_terminal(body: str) -> str:
        """Run a script with stderr on a terminal, and return what appears there."""
        master, slave = pty.openpty()
        script = f"import time\nfrom biella.scheduler.run._progress import Progress\n{body}"
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            stderr=slave,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        )
        os.close(slave)
        seen = b""
        while True:
            ready, _, _ = select.select([master], [], [], 30.0)
            assert ready, "the script hangs"
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            seen += piece
        os.close(master)
        assert process.wait(60) == 0
        return seen.decode()

    def test_short_runs_are_silent(self) -> None:
        seen = self.in_terminal("with Progress(10, 'run') as p:\n    p.advance(10)")
        assert seen == ""

    def test_long_runs_show_speed_and_remaining_time(self) -> None:
        seen = self.in_terminal("""
with Progress(40, "crank", step=0.5) as p:
    for _ in range(30):
        time.sleep(0.1)
        p.advance(1)
""")
        assert "crank" in seen
        assert "75%" in seen
        assert "ticks/s" in seen and "× real time" in seen and " left" in seen

    def test_interrupted(self) -> None:
        seen = self.in_terminal("""
try:
    with Progress(40, "crank", show_after=0.0) as p:
        p.advance(20)
        raise KeyboardInterrupt
except KeyboardInterrupt:
    pass
""")
        assert "50%" in seen
        assert seen.rstrip("\r\n").endswith("\x1b[?25h"), "the cursor must come back"

    @pytest.mark.parametrize(
        ("rate", "step", "text"),
        [
            (12.0, None, "12 ticks/s"),
            (12_340_000.0, 1e-3, "12.3 M ticks/s, 1.23e+04 × real time"),
        ],
    )
    def test_speed(self, rate: float, step: float | None, text: str) -> None:
        assert _speed(rate, step) == text

    @pytest.mark.parametrize(
        ("seconds", "text"),
        [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1:00 min"), (185, "3:05 min"), (7800, "2:10 h")],
    )
    def test_duration(self, seconds: float, text: str) -> None:
        assert _duration(seconds) == text


def test_the_progress_of_a_sweep_counts_runs():
    from biella.scheduler.run._progress import _speed

    assert _speed(12.0, None, "runs") == "12 runs/s"
    assert _speed(2e6, None) == "2 M ticks/s"
