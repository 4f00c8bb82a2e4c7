"""Cost per tick of the limits and of the guard of a real-time run, and how soon they react.

    python benchmarks/studies/guard.py [--rounds N]

Cost: runs of 20,000 ticks as fast as possible with one UDP device, without limits, with limits, and
guarded, taking turns; the least of the means of each. Reaction: from SIGKILL to the first safe
value at a UDP peer, in processes of their own; median and largest of N.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SAFETY = Path(__file__).parents[2] / "tests" / "scheduler" / "realtime" / "safety"
sys.path.insert(0, str(SAFETY))
from udp_rig import LIVE, SAFE, Board, bind, build, wait_until  # type: ignore[import-not-found]  # noqa: E402

from biella import run_realtime  # noqa: E402

TICKS = 20_000
VARIANTS = {
    "without limits": {"watchdog": 0.0, "max_stall": 0.0},
    "watchdog and max_stall": {},
    "and guard": {"guard": True},
}


def measure_tick(options: dict[str, float]) -> float:
    """Return the mean execution time of a tick in s."""
    board = Board()
    board.answers = False
    try:
        run = run_realtime(
            build(), TICKS * 1e-3, bind=bind(board.port), clock="free", record=[], **options
        )
        return float(run.wait().info["realtime"]["execution"]["mean"])
    finally:
        board.close()


def measure_reaction() -> float:
    """Return the time in s from SIGKILL to the first safe value."""
    board = Board()
    text = (
        f"import sys, time; sys.path.insert(0, {str(SAFETY)!r})\n"
        f"from udp_rig import *; from biella import run_realtime\n"
        f"run = run_realtime(build(), bind=bind({board.port}), guard=True)\n"
        f"time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", text], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: abs(board.last - LIVE) < 1e-3)
        time.sleep(0.1)
        killed = time.monotonic()
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: board.last == SAFE)
        return next(when for when, value, _ in board.seen if value == SAFE) - killed
    finally:
        process.kill()
        process.wait()
        board.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        least: dict[str, list[float]] = {name: [] for name in VARIANTS}
        for _ in range(options.rounds):
            for name, given in VARIANTS.items():
                least[name].append(measure_tick(given))
        base = min(least["without limits"])
        for name, times in least.items():
            more = min(times) - base
            print(f"tick, {name}: {1e6 * min(times):.2f} us ({1e6 * more:+.2f} us)")
        times = []
        for _ in range(options.rounds):
            times.append(measure_reaction())
            for latch in Path(folder).rglob("*.latch"):
                latch.unlink()
        median, most = statistics.median(times), max(times)
        print(f"SIGKILL to safe value: median {1e3 * median:.1f} ms, largest {1e3 * most:.1f} ms")


if __name__ == "__main__":
    main()
