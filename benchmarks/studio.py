"""What the studio costs a real-time run, and how soon a slider moves a signal.

    python benchmarks/studio.py [--rounds 5] [--seconds 3]

A diagram of 64 signals at 1 kHz runs in turns with and without a page that records all of them.
The page is a process of its own, as a browser is. The time from a slider to its signal is that from
sending `set` to receiving the first sample with the new value, at this page.
"""

from __future__ import annotations

import argparse
import json
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
from websockets.sync.client import connect

from biella import Diagram
from biella.blocks import Gain, Sine, Sum
from biella.scheduler.realtime._start import start_run
from biella.studio._attached import AttachedSession
from biella.studio._server import StudioServer

SIGNALS, STEP = 64, 1e-3


def diagram() -> Diagram:
    """Return a diagram of 64 signals: waves, each scaled, and one that follows an input."""
    d = Diagram("64 signals", step=STEP)
    push = d.input("push", default=0.0)
    wave = d.add(Sine(frequency=3.0), "wave", period=STEP)
    last = d.add(Sum("++"), "sum", u1=wave, u2=push)
    for number in range(SIGNALS - 4):
        last = d.add(Gain(1.01), f"gain{number}", u=last)
    d.add(Gain(1.0), "pushed", u=push)
    return d


class Page:
    """A page that takes all that it can get."""

    def __init__(self, url: str) -> None:
        port, token = int(url.split(":")[2].split("/")[0]), url.rpartition("=")[2]
        self.messages = self._receive(port, token)
        next(self.messages)

    def _receive(self, port: int, token: str) -> Iterator[object]:
        with connect(f"ws://127.0.0.1:{port}/live", max_size=None) as self.socket:
            self.ask("hello", token=token, protocol=1)
            yield None
            for message in self.socket:
                yield json.loads(message) if isinstance(message, str) else read(message)

    def ask(self, name: str, **fields: object) -> None:
        """Send a request."""
        self.socket.send(json.dumps({"id": 1, "do": name, **fields}))

    def subscribe(self) -> None:
        """Subscribe to every signal at its full rate, in scopes of 16."""
        for message in self.messages:
            if isinstance(message, dict) and message.get("event") == "signals":
                paths = [item["path"] for item in message["list"]]
                break
        for number in range(0, len(paths), 16):
            chosen = paths[number : number + 16]
            self.ask("subscribe", scope=1 + number, signals=chosen, rate=1e3, history=0)
        self.ask("watch", on=True)


def read(message: bytes) -> tuple[int, int, np.ndarray]:
    """Return kind, scope and table of a binary message."""
    kind, scope, columns, rows, _, _ = struct.unpack_from("<6I", message)
    content = np.frombuffer(message, "<f8", offset=24)
    return kind, scope, content.reshape(rows, columns) if kind == 1 else content


def record(url: str) -> None:
    """Be a page that records until the server ends."""
    page = Page(url)
    page.subscribe()
    print("subscribed", flush=True)
    for _ in page.messages:
        pass


def run_once(seconds: float, watched: bool) -> dict[str, float]:
    """Run for some seconds; return figures of its lateness in µs, and overruns in percent."""
    d = diagram()
    options = {"until": seconds, "record": ["*"]}
    run = start_run(d, options, {}, history=64 << 20, paused=True)
    with run, StudioServer(AttachedSession(run, d)) as server:
        command = [sys.executable, __file__, "--page", server.url]
        page = subprocess.Popen(command, stdout=subprocess.PIPE) if watched else None
        if page is not None and page.stdout is not None:
            page.stdout.readline()  # it has subscribed
        run.resume()
        result = run.wait()
    if page is not None:
        page.communicate()
    report = result.info["realtime"]
    late = report["lateness"]
    return {
        "p50": 1e6 * late["p50"],
        "p99": 1e6 * late["p99"],
        "overruns": 100.0 * report["overruns"] / report["ticks"],
    }


def measure_slider(times: int) -> list[float]:
    """Return in ms how long it took from sending a value to receiving its first sample."""
    d = diagram()
    run = start_run(d, {"record": ["*"]}, {}, history=64 << 20)
    took = []
    with run, StudioServer(AttachedSession(run, d)) as server:
        page = Page(server.url)
        page.ask("subscribe", scope=1, signals=["pushed.y"], rate=1e3, history=0)
        for number in range(1, times + 1):
            time.sleep(0.013)
            start = time.perf_counter()
            page.ask("set", path="push", value=number)
            for message in page.messages:
                if not isinstance(message, tuple) or message[0] != 1:
                    continue
                if len(message[2]) and message[2][-1, 2] == number:
                    break
            took.append(1e3 * (time.perf_counter() - start))
        run.stop()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--page", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.page:
        record(options.page)
        return
    found: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    for number in range(options.rounds):
        for watched in (number % 2 == 0, number % 2 == 1):
            found[watched].append(run_once(options.seconds, watched))
    for watched, runs in found.items():
        print("with a page   " if watched else "without a page", end="")
        for name, unit in (("p50", "µs"), ("p99", "µs"), ("overruns", "%")):
            values = [run[name] for run in runs]
            least, most = min(values), max(values)
            print(f"   {name} {statistics.median(values):.3g} {unit} ", end="")
            print(f"({least:.3g} … {most:.3g})", end="")
        print()
    took = sorted(measure_slider(100))
    print(f"slider to signal: median {statistics.median(took):.1f} ms, p95 {took[94]:.1f} ms")


if __name__ == "__main__":
    main()
