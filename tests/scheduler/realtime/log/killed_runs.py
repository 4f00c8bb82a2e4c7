"""Real-time runs that are killed: forked from a process that has imported everything.

    python killed_runs.py

reads a path, a time in s and a number for each run from its standard input, starts the run, kills
it that long after its log has appeared, and prints the number of ticks that it had made at least.
"""

from __future__ import annotations

import mmap
import os
import random
import signal
import struct
import sys
import time
from pathlib import Path

from biella import Diagram, run_realtime
from biella.blocks import Gain, Integrator, Noise, Relay, Sum

STEP = 1e-3
_TICK = struct.Struct("<q")
RIG = {
    "devices": {
        "rig": {
            "driver": "loopback", "delay": 2, "jitter": 2, "loss": 0.1, "noise": 0.01, "seed": 7,
            "timeout": 5.0,
            "receive": {"back": {"limits": [-50, 50]}},
            "send": {"out": {"limits": [-50, 50], "safe": 0}},
        }
    },
    "blocks": {"stage": {"device": "rig", "inputs": {"u": "out"}, "outputs": {"y": "back"}}},
}  # fmt: skip


def diagram() -> Diagram:
    """A loop with events, noise and a device; its timing signals are recorded, too."""
    d = Diagram("killed", step=STEP)
    x = d.add(Integrator(0.055), "x")
    relay = d.add(Relay(0.1, -0.1, -20.0, 20.0), "relay", u=x)
    noise = d.add(Noise(density=1e-6), name="noise", period=2 * STEP)
    total = d.add(Sum("++"), name="total")
    d.connect(relay, total["u1"])
    d.connect(noise, total["u2"])
    d.connect(total, x)
    d.connect(x, d.add(Gain(1.0), name="stage"))
    d.connect(d["stage"], d.add(Gain(3.0), name="k"))
    return d


def run(path: Path, number: int, shared: mmap.mmap) -> None:
    """Run until killed, with random changes; the ticks so far are in `shared`."""
    draw = random.Random(number)
    with run_realtime(diagram(), bind=RIG, out=path) as live:
        while True:
            _TICK.pack_into(shared, 0, live.tick)
            if draw.random() < 0.2:
                live["k.k"] = draw.uniform(-3.0, 3.0)
            time.sleep(1e-3)


def main() -> None:
    """Start and kill runs until the standard input ends."""
    for line in sys.stdin:
        name, seconds, number = line.rsplit(" ", 2)
        path, shared = Path(name), mmap.mmap(-1, _TICK.size)
        child = os.fork()
        if child == 0:
            run(path, int(number), shared)
        deadline = time.monotonic() + 20.0
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(1e-4)
        time.sleep(float(seconds))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print(_TICK.unpack_from(shared)[0], flush=True)


if __name__ == "__main__":
    main()
