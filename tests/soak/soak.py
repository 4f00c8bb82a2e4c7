"""The soak: a diagram at 1 kHz with three devices, and everything that can go wrong with them.

    python -m tests.soak [--hours 1 | --minutes 10 | --seconds 60] [--seed 1] [--keep FOLDER]
        [--limit]

A UDP device behind a UDP proxy that loses 5 % of the frames and spoils, repeats and reorders
others; a
serial device on a pty with the like; a driver in Python. On top of that, in an order that the seed
gives: the cable is cut, the network gets slow, peers fall silent, are killed and started again, the
serial line is pulled out, the driver is stuck, fails and says NaN, the whole process is stopped for
a moment, processors are taken away, and the disk is full. Parameters are changed all the while.

Whoever does harm writes down what and when; peers write down each frame that they see. At the end
all that biella has counted is held against that. Nothing is judged by how long it took: a busy
machine adds overruns and losses, which must be counted and have a cause on the wire. Exit code 1 if
any judgment fails.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from soak_judge import Judgment, judge
from soak_run import STEP

from biella.scheduler.run._progress import Progress

HERE = Path(__file__).parent
_START, _SETTLE, _END = 3.0, 0.8, 2.0  # s without faults: at the start, between two, at the end
_TMPFS_SECONDS = 900  # a longer log does not fit into memory; its file is held to a size instead
_TMPFS_BYTES_PER_SECOND, _TMPFS_SPARE = 2 << 20, 64 << 20
_SAMPLES = 60


class Crash(Exception):
    """A process has ended that nobody has killed."""


class Child:
    """A process of the soak that takes orders and answers each with a line."""

    def __init__(self, script: str, *arguments: object, errors: Path) -> None:
        self.name = script
        self._errors = errors.open("a")
        self.process = subprocess.Popen(
            [sys.executable, HERE / script, *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
        )  # fmt: skip
        self.first = self._answer()

    @property
    def pid(self) -> int:
        return self.process.pid

    def order(self, text: str) -> str:
        """Give an order and wait until it is carried out."""
        assert self.process.stdin
        try:
            self.process.stdin.write(f"{text}\n")
            self.process.stdin.flush()
        except OSError as error:
            raise Crash(f"{self.name} has ended") from error
        return self._answer()

    def _answer(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise Crash(f"{self.name} has ended with {self.process.wait(60)}")
        return line.strip()

    def kill(self) -> None:
        """Let it die at once."""
        self.process.kill()
        self.end()

    def end(self) -> int:
        """Close its standard input, which ends it."""
        assert self.process.stdin and self.process.stdout
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        code = self.process.wait(60)
        self.process.stdout.close()
        self._errors.close()
        return code


class Disk:
    """Where the log goes, which can be full: a small file system, or a limit of the file's size."""

    def __init__(self, folder: Path, seconds: float, limit: bool) -> None:
        self.folder = folder / "disk"
        self.folder.mkdir()
        self._ballast = self.folder / "ballast"
        size = int(seconds * _TMPFS_BYTES_PER_SECOND) + _TMPFS_SPARE
        self.is_mounted = not limit and seconds <= _TMPFS_SECONDS and self._mount(size)

    def _mount(self, size: int) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", self.folder]
        if sys.platform != "linux" or not shutil.which("mount"):
            return False
        return subprocess.run(command, capture_output=True, timeout=300).returncode == 0

    def fill(self, pid: int) -> None:
        """Leave no room for the process `pid`."""
        if not self.is_mounted:
            size = (self.folder / "run.h5").stat().st_size
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            return
        with self._ballast.open("wb") as file:
            size, piece = 0, 1 << 26
            while piece >= 4096:
                try:
                    os.posix_fallocate(file.fileno(), size, piece)
                    size += piece
                except OSError:
                    piece //= 2

    def free(self, pid: int) -> None:
        """Make room again."""
        if self.is_mounted:
            self._ballast.unlink()
        else:
            unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)

    def close(self) -> None:
        """Give it back."""
        if self.is_mounted:
            subprocess.run(["umount", self.folder], check=True, timeout=300)


class Soak:
    """All processes of a soak; does harm and writes it down."""

    def __init__(self, folder: Path, disk: Disk, seed: int, stack: ExitStack) -> None:
        self.folder, self.disk, self.seed = folder, disk, seed
        self.done: list[dict[str, Any]] = []
        self._draw = random.Random(seed)
        self._errors = folder / "errors.txt"
        self._lives = {"net": 0, "line": 0}
        self._udp_port = free_port()
        self.relay = self._start("soak_peers.py", "relay", folder, seed, self._udp_port)
        self._ports = [int(port) for port in self.relay.first.split()]
        stack.callback(self._end_peers)
        self.peers: dict[str, Child] = {}
        for name in self._lives:
            self._start_peer(name)
        self.run = self._start("soak_run.py", folder, disk.folder, seed, self._ports[0])
        stack.callback(self._end_run)

    def _start(self, *arguments: object) -> Child:
        return Child(str(arguments[0]), *arguments[1:], errors=self._errors)

    def _start_peer(self, name: str) -> None:
        self._lives[name] += 1
        role = {
            "net": ("udp", self.folder, self._lives[name], self._udp_port, self._ports[1]),
            "line": ("serial", self.folder, self._lives[name], self.seed),
        }[name]
        self.peers[name] = self._start("soak_peers.py", *role)

    def _end_peers(self) -> None:
        for child in (self.relay, *self.peers.values()):
            child.end()

    def _end_run(self) -> None:
        if self.run.process.poll() is None:
            self.run.process.send_signal(signal.SIGCONT)
            self.run.kill()

    @property
    def tick(self) -> int:
        return int(self.run.order("tick").split()[1])

    @property
    def memory(self) -> int:
        """Bytes of the run that are in memory."""
        resident = Path(f"/proc/{self.run.pid}/statm").read_text().split()[1]
        return int(resident) * resource.getpagesize()

    # --- harm ---

    @contextlib.contextmanager
    def harm(self, kind: str, device: str = "") -> Iterator[None]:
        """Write down what is done, from when to when, in s of the monotonic clock and in ticks."""
        what = {"kind": kind, "device": device, "from": time.monotonic(), "first": self.tick}
        yield
        self.done.append(what | {"to": time.monotonic(), "last": self.tick})

    def last(self, seconds: float, longest: float) -> None:
        time.sleep(self._draw.uniform(seconds, longest))

    def cut(self) -> None:
        with self.harm("cable cut", "net"):
            self.relay.order("cut")
            self.last(0.5, 1.0)
            self.relay.order("join")

    def slow(self) -> None:
        with self.harm("network slow", ""):
            self.relay.order("slow")
            self.last(1.0, 1.5)
            self.relay.order("bad")

    def mute(self, name: str) -> None:
        with self.harm("peer silent", name):
            self.peers[name].order("mute")
            self.last(0.5, 1.0)
            self.peers[name].order("speak")

    def kill(self, name: str) -> None:
        with self.harm("peer killed", name):
            if name == "line":  # its pty goes with it, and the name may become somebody else's
                (self.folder / "tty").unlink()
            self.peers[name].kill()
            self.last(0.5, 1.0)
            self._start_peer(name)

    def unplug(self) -> None:
        with self.harm("line pulled out", "line"):
            self.peers["line"].order("unplug")
            self.last(0.5, 1.0)
            self.peers["line"].order("plug")

    def stick(self) -> None:
        with self.harm("driver stuck", "card"):
            self.run.order("stick")
            self.last(0.5, 1.0)
            self.run.order("free")

    def fail(self, how: str) -> None:
        with self.harm({"raise": "driver raises", "nan": "driver says NaN"}[how], "card"):
            self.run.order(how)
            time.sleep(0.6)

    def freeze(self) -> None:
        begin = {"kind": "process stopped", "device": "", "first": self.tick}
        os.kill(self.run.pid, signal.SIGSTOP)
        began = time.monotonic()
        time.sleep(self._draw.uniform(0.02, 0.08))
        ended = time.monotonic()
        os.kill(self.run.pid, signal.SIGCONT)
        self.done.append(begin | {"from": began, "to": ended, "last": self.tick})

    def hog(self) -> None:
        code = "while True: pass"
        with self.harm("processors taken", ""):
            hogs = [subprocess.Popen([sys.executable, "-c", code])
                    for _ in range(2 * (os.cpu_count() or 1))]  # fmt: skip
            self.last(1.5, 2.0)
            for hog in hogs:
                hog.kill()
                hog.wait()

    def fill_disk(self) -> None:
        with self.harm("disk full", "recorder"):
            self.disk.fill(self.run.pid)
            self.last(5.0, 6.0)
            self.disk.free(self.run.pid)

    @property
    def kinds(self) -> list[Callable[[], None]]:
        return [
            self.cut, self.slow, self.unplug, self.stick, self.hog, self.fill_disk,
            lambda: self.mute("net"), lambda: self.mute("line"), lambda: self.kill("net"),
            lambda: self.kill("line"), lambda: self.fail("raise"), lambda: self.fail("nan"),
            self.freeze, self.freeze, self.freeze,
        ]  # fmt: skip

    # --- the end ---

    def hush(self) -> dict[str, Any]:
        """Let the lines run dry, so that what was sent can be held against what came; then stop."""
        self.relay.order("quiet")
        self.peers["line"].order("quiet")
        self.run.order("calm")
        time.sleep(0.3)
        with self.harm("hush", "net"), self.harm("hush", "line"):
            self.peers["net"].order("mute")
            self.peers["line"].order("mute")
            time.sleep(0.1)
            relayed = json.loads(self.relay.order("counts"))
        drops = kernel_drops(relayed["host"])
        stopped = self.run.order("stop")
        told = {"drops": drops, "stopped": stopped, "relay": relayed["counts"]}
        code = self.run.process.wait()
        time.sleep(0.3)  # what is under way to the peers arrives
        return told | {"exit": code}


def free_port() -> int:
    """Return a port of this machine that nobody has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


def kernel_drops(port: int) -> int:
    """Return how many datagrams the kernel has dropped for want of room at a port."""
    for line in Path("/proc/net/udp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].rpartition(":")[2], 16) == port:
            return int(fields[-1])
    return 0


def soak(folder: Path, seconds: float, seed: int, limit: bool) -> list[Judgment]:
    """Run, do harm, and judge."""
    with ExitStack() as stack:
        disk = Disk(folder, seconds, limit)
        stack.callback(disk.close)
        try:
            told, done, memory = inflict(folder, disk, seconds, seed)
        except Crash as crash:
            errors = (folder / "errors.txt").read_text()
            return [Judgment("no crash", "0", f"{crash}\n{errors[-2000:]}", False)]
        shutil.copy(disk.folder / "run.h5", folder)
        about = {"told": told, "done": done, "memory": memory}
        (folder / "soak.json").write_text(json.dumps(about))
    print("Replaying and judging …", flush=True)
    return judge(folder)


def inflict(
    folder: Path, disk: Disk, seconds: float, seed: int
) -> tuple[dict[str, Any], list[dict[str, Any]], list[tuple[float, int]]]:
    """Return how the run ended, what was done to it, and its memory as (s, bytes)."""
    draw, memory = random.Random(f"order {seed}"), []
    with ExitStack() as stack:
        s = Soak(folder, disk, seed, stack)
        began = time.monotonic()
        progress = stack.enter_context(Progress(int(seconds / STEP), "soak", step=STEP))

        def sample() -> None:
            now = time.monotonic() - began
            progress.advance(int(now / STEP) - progress.done)
            if not memory or now > len(memory) * seconds / _SAMPLES:
                memory.append((now, s.memory))
                if len(memory) % (_SAMPLES // 10) == 1:
                    print(f"{now:6.0f} s  {memory[-1][1] / 1e6:7.1f} MB  tick {s.tick}  "
                          f"{len(s.done)} faults", flush=True)  # fmt: skip

        def rest(until: float) -> None:
            while time.monotonic() - began < until:
                sample()
                time.sleep(0.05)

        rest(_START)
        left: list[Callable[[], None]] = []
        while (now := time.monotonic() - began) < seconds - _END - 8.0:
            if not left:
                left = draw.sample(s.kinds, len(s.kinds))
            left.pop()()
            rest(time.monotonic() - began + _SETTLE + draw.random() * now / seconds)
        rest(seconds - 0.5)
        return s.hush(), s.done, memory


def show(rows: list[Judgment]) -> None:
    """Print a table."""
    table = Table("judgment", "expected", "found", "", title="Soak")
    for row in rows:
        table.add_row(row.what, row.expected, row.found, "✓" if row.holds else "✗ FAILED")
    Console(width=None if sys.stdout.isatty() else 150).print(table)


def main() -> int:
    """Soak as long as asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--hours", type=float)
    length.add_argument("--minutes", type=float, default=10.0, help="10 if not given")
    length.add_argument("--seconds", type=float, help="60 is the shortest in which all happens")
    parser.add_argument("--seed", type=int, default=1, help="of all that is done; 1 if not given")
    parser.add_argument(
        "--keep", type=Path, help="leave all logs in this folder, which must be new"
    )
    parser.add_argument(
        "--limit",
        action="store_true",
        help="fill the disk by a limit of the file's size also where a small one can be mounted",
    )
    options = parser.parse_args()
    if sys.platform != "linux":
        parser.exit(2, "The soak needs Linux: ptys, /proc and prlimit.\n")
    minutes = 60.0 * options.hours if options.hours else options.minutes
    seconds = options.seconds or 60.0 * minutes
    with ExitStack() as stack:
        if options.keep:
            options.keep.mkdir(parents=True)
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        print(f"Soak of {seconds:g} s, seed {options.seed}", flush=True)
        rows = soak(folder.resolve(), seconds, options.seed, options.limit)
    show(rows)
    failed = sum(not row.holds for row in rows)
    print(f"{len(rows)} judgments, {failed} failed; seed {options.seed}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
