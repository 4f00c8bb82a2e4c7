"""The run under test of the soak: a diagram at 1 kHz with three devices, changed all the while.

    python benchmarks/soak/soak_run.py FOLDER DISK SEED RELAY_PORT

Takes orders on its standard input: faults of the driver in Python (``stick``, ``free``, ``raise``,
``nan``), ``calm`` (no more changes), ``stop``. Leaves `run.h5` in DISK, and in FOLDER what its
driver saw (`card.wire`), the changes it made (`changes.txt`) and how it ended (`run.json`).
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from soak_peers import DOWN, TIMEOUT, UP, Orders, WireLog, mark, say

from biella import Diagram, run_realtime
from biella.blocks import Constant, Gain, Integrator, Mux, Sum, UnitDelay
from biella.scheduler.devices import DeviceDriver
from biella.scheduler.realtime._live import LiveRun
from biella.scheduler.results import _recorder as recorder

STEP = 1e-3
DEVICES = ("net", "line", "card")
SAFE_OUT = (-1.0, -2.0)  # on the wire when all must be safe
SAFE_IN = (-1.0, -2.0, -3.0)  # taken while a device is lost
SIGNALS = [
    "count", "scaled", "state", "realtime.lateness", "realtime.execution", "realtime.overruns",
    "realtime.lost", *(f"from_{name}" for name in DEVICES),
    *(f"{name}.{what}" for name in DEVICES for what in ("age", "alive", "delay")),
]  # fmt: skip
# So small that a disk that is full for seconds makes a gap; otherwise it takes a minute.
_BLOCK_ROWS, _CHUNK_BYTES = 1000, 1 << 18
_CHANGE_SECONDS = 0.04


def diagram() -> Diagram:
    """Return what is run: a count of ticks, `k` times it, a state that all devices move."""
    d = Diagram("soak", step=STEP)
    one = d.add(Constant(1.0), name="one")
    count = d.add(UnitDelay(), name="count", period=STEP)
    more = d.add(Sum("++"), name="more")
    scaled = d.add(Gain(1.0), name="scaled")
    d.connect(one, more["u1"])
    d.connect(count, more["u2"])
    d.connect(more, count)
    d.connect(count, scaled)
    state = d.add(Integrator(0.0), name="state")
    decay = d.add(Gain(-1.0), name="decay")
    pull = d.add(Sum("+++++"[: len(DEVICES) + 1]), name="pull")
    d.connect(state, decay)
    d.connect(decay, pull["u1"])
    for number, name in enumerate(DEVICES):
        outside = d.add(Constant([0.0, 0.0, 0.0]), name=f"from_{name}")
        weight = d.add(Gain([[1e-3, 1e-6, 1e-7]]), name=f"weight_{name}")
        to = d.add(Mux(2), name=f"to_{name}")
        d.connect(outside, weight)
        d.connect(weight, pull[f"u{number + 2}"])
        d.connect(count, to["u1"])
        d.connect(scaled, to["u2"])
    d.connect(pull, state)
    return d


def rig(tty: Path, relay_port: int) -> dict[str, Any]:
    """Return the binding: a UDP device behind the UDP proxy, a serial line, a driver in Python."""
    drivers: dict[str, dict[str, Any]] = {
        "net": {"driver": "udp", "host": "127.0.0.1", "port": relay_port, "precision": "float64"},
        "line": {
            "driver": "serial", "port": str(tty), "baud": 4_000_000, "precision": "float64",
            "on_loss": "hold",
        },
        "card": {"driver": "soak"},
    }  # fmt: skip
    common = {
        "timeout": TIMEOUT,
        "on_loss": "safe",
        "receive": {"said": {"width": 3, "safe": list(SAFE_IN)}},
        "send": {"told": {"width": 2, "safe": list(SAFE_OUT)}},
    }
    devices = {name: common | about for name, about in drivers.items()}
    ties = {f"from_{name}": f"{name}.said" for name in DEVICES}
    return {
        "devices": devices,
        "signals": ties | {f"to_{name}": f"{name}.told" for name in DEVICES},
    }


class SoakDriver(DeviceDriver):
    """A card that is stuck, or fails, when it is told to."""

    timeout = TIMEOUT
    retry = 0.3
    answers_at_once = True
    wire: WireLog
    may_go = threading.Event()
    fault = ""

    def open(self) -> None:
        self.wire.life += 1
        self.number = 0

    def read(self) -> Sequence[float]:
        SoakDriver.may_go.wait()
        fault, SoakDriver.fault = SoakDriver.fault, ""
        if fault == "raise":
            raise OSError("the soak has pulled the card out")
        if fault == "nan":
            return [1.0, float("nan"), 1.0]
        self.number += 1
        life = self.wire.life
        values = (life, self.number, mark(life, self.number))
        self.wire.note(UP, values, valid=1, sequence=self.number)
        return values

    def write(self, values: Sequence[float]) -> None:
        self.wire.note(DOWN, values, valid=1)

    def safe(self, values: Sequence[float]) -> None:
        self.wire.note(DOWN, values, valid=1, flags=2)


def install_driver(folder: Path) -> None:
    """Make the driver known as a package of somebody else would: by an entry point."""
    about = folder / "soak_driver-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: soak-driver\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[biella.drivers]\nsoak = soak_run:SoakDriver\n")
    sys.path.insert(0, str(folder))


class Changes:
    """Parameters that are changed while it runs, by seed; each is noted in a file."""

    def __init__(self, run: LiveRun, seed: int, file: Path) -> None:
        self.run, self._draw = run, random.Random(seed)
        self._file = file.open("w", buffering=1)
        self.is_over = threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)
        self._thread.start()

    def _go(self) -> None:
        while not self.is_over.wait(_CHANGE_SECONDS):
            path = self._draw.choice(["scaled.k", "decay.k"])
            value = self._draw.uniform(0.5, 2.0) * (1 if path == "scaled.k" else -1)
            tick = self.run.tick
            self.run[path] = value
            self._file.write(f"{json.dumps([tick, path, value])}\n")

    def end(self) -> None:
        self.is_over.set()
        self._thread.join(60)
        self._file.close()


def main() -> None:
    """Run until told to stop."""
    folder, disk, seed, port = Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:])
    sys.modules["soak_run"] = sys.modules["__main__"]
    recorder._BLOCK_ROWS, recorder._CHUNK_BYTES = _BLOCK_ROWS, _CHUNK_BYTES
    install_driver(folder)
    SoakDriver.wire = WireLog(folder / "card.wire")
    SoakDriver.may_go.set()
    orders = Orders()
    run = run_realtime(
        diagram(), bind=rig(folder / "tty", port), record=SIGNALS, out=disk / "run.h5",
        overrun="skip", watchdog=0, max_stall=0,  # it continues after stops, which are counted
    )  # fmt: skip
    changes = Changes(run, seed, folder / "changes.txt")
    say("ready")
    while run.running:
        time.sleep(0.01)
        for order in orders.take():
            if order in ("stick", "free"):
                (SoakDriver.may_go.clear if order == "stick" else SoakDriver.may_go.set)()
            elif order in ("raise", "nan"):
                SoakDriver.fault = order
            elif order == "calm":
                changes.end()
            elif order == "tick":
                pass
            elif order == "stop":
                run.stop()
            say(f"{order} {run.tick}")
    changes.end()
    result = run.wait()
    slots = {path: run.plan.parameters[path].slot for path in ("scaled.k", "decay.k")}
    told = {"info": dict(result.info), "slots": slots}
    (folder / "run.json").write_text(json.dumps(told, default=str))
    say("done")


if __name__ == "__main__":
    main()
