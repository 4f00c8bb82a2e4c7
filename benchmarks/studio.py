"""What the studio costs a real-time run, how soon a slider moves a signal, and how its page draws.

    python benchmarks/studio.py [--rounds 5] [--seconds 3] [--no-browser]

A diagram of 64 signals at 1 kHz runs in turns with and without a page that records all of them.
The page is a process of its own, as a browser is. The time from a slider to its signal is that from
sending `set` to receiving the first sample with the new value, at this page.

The page itself is measured in Chromium without a window and a graphics card: it shows the 64
signals in four scopes, in turns with an empty page in the same browser. Frames are counted by
requestAnimationFrame. Script time is the browser's own count, in processor time of the thread of
the page, so that other programs do not enter it; the frame rate they do enter: an empty page needs
nothing of a busy machine. Without Chromium or the built page that part is left out.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from websockets.sync.client import connect

from biella import Diagram
from biella.blocks import Gain, Sine, Sum
from biella.scheduler.realtime._start import start_run
from biella.studio._attached import AttachedSession
from biella.studio._page_file import has_page
from biella.studio._server import FILES, StudioServer

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


CHROMIUM = Path(__file__).parents[1] / "tests" / "browser" / "chromium.py"
EMPTY = "data:text/html,<title>empty</title><p>an empty page"
COUNT_FRAMES = """new Promise(done => {
  let frames = 0;
  const begin = performance.now();
  requestAnimationFrame(function count() {
    frames += 1;
    const took = performance.now() - begin;
    if (took < %g) requestAnimationFrame(count); else done([frames, took]);
  });
})"""


def load_chromium() -> Any:
    """Return the module that controls Chromium; None if there is no Chromium, or no page."""
    if not CHROMIUM.exists() or not has_page():
        return None
    spec = importlib.util.spec_from_file_location("chromium", CHROMIUM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module if module.find_chromium() else None


def count_frames(browser: Any, seconds: float) -> tuple[float, float, float]:
    """Return frames per second of the open page, and ms of script and of its thread for each."""

    def read() -> list[float]:
        metrics = browser._call("Performance.getMetrics")["metrics"]
        found = {item["name"]: 1e3 * item["value"] for item in metrics}
        return [found["ScriptDuration"], found["TaskDuration"]]

    before = read()
    frames, took = browser.do(COUNT_FRAMES % (1e3 * seconds))
    script, thread = ((b - a) / frames for a, b in zip(before, read(), strict=True))
    return 1e3 * frames / took, script, thread


def arrange_scopes(browser: Any, paths: list[str]) -> None:
    """Let the open page show these signals in four scopes from its next load on."""
    browser.wait("Object.keys(localStorage).some(key => key.includes('64 signals'))")
    part = -(-len(paths) // 4)
    scopes = [{"signals": paths[k : k + part]} for k in range(0, len(paths), part)]
    browser.do(
        "(() => { const key = Object.keys(localStorage).find(key => key.includes('64 signals'));"
        f"localStorage.setItem(key, JSON.stringify({{scopes: {json.dumps(scopes)}}})); }})()"
    )


def measure_page(
    chromium: Any, rounds: int, seconds: float
) -> dict[str, list[tuple[float, float, float]]]:
    """Return what `count_frames` finds of both pages, in turns."""
    d = diagram()
    run = start_run(d, {"record": ["*"]}, {}, history=64 << 20)
    found: dict[str, list[tuple[float, float, float]]] = {"empty": [], "studio": []}
    paths = [port.path for block in run.plan.blocks for port in block.outputs][:SIGNALS]
    with (
        run,
        StudioServer(AttachedSession(run, d)) as server,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        chromium.Chromium(folder) as browser,
    ):
        browser._call("Performance.enable", timeDomain="threadTicks")
        browser.open(server.url)
        arrange_scopes(browser, paths)
        for number in range(rounds):
            for name in ("empty", "studio") if number % 2 else ("studio", "empty"):
                browser.open(server.url if name == "studio" else EMPTY)
                if name == "studio":
                    shown = "document.querySelectorAll('[data-testid=trace]').length"
                    browser.wait(f"{shown} === {len(paths)}")
                    time.sleep(2.0)  # until it has drawn what is there
                else:
                    browser.wait("document.title === 'empty'")
                found[name].append(count_frames(browser, seconds))
        run.stop()
    return found


def report_page(chromium: Any, rounds: int, seconds: float) -> None:
    """Print how the page draws, and how large it is."""
    found = measure_page(chromium, rounds, seconds)
    for name, turns in found.items():
        print(f"{name:6} page", end="")
        for k, what in enumerate(("frames/s", "ms of script", "ms of its thread per frame")):
            values = [turn[k] for turn in turns]
            print(f"   {statistics.median(values):.3g} {what} ", end="")
            print(f"({min(values):.3g} … {max(values):.3g})", end="")
        print()
    pairs = zip(found["studio"], found["empty"], strict=True)
    ratios = [studio[0] / empty[0] for studio, empty in pairs]
    print(
        f"frame rate of the studio to that of the empty page: {statistics.median(ratios):.3f}",
        end="",
    )
    print(f" ({min(ratios):.3f} … {max(ratios):.3f})")
    size = sum(
        len(gzip.compress(path.read_bytes()))
        for path in FILES.rglob("*")
        if path.suffix in (".html", ".js", ".css")
    )
    print(f"the page has {size / 1e3:.0f} KB with gzip")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--no-browser", action="store_true", help="leave out the page itself")
    parser.add_argument("--only-browser", action="store_true", help="only the page itself")
    parser.add_argument("--page", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.page:
        record(options.page)
        return
    chromium = None if options.no_browser else load_chromium()
    if not options.only_browser:
        report_run(options)
    if chromium is not None:
        report_page(chromium, options.rounds, options.seconds)
    elif not options.no_browser:
        print("the page was not measured: there is no Chromium, or the page is not built")


def report_run(options: argparse.Namespace) -> None:
    """Print what a page costs a run, and how soon a slider moves a signal."""
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
