"""Which tests execute which line: the map by which a mutant's tests are chosen.

As a pytest plugin (``-p cover``) it notes, for each test, the basic blocks of the engine that were
executed, its processor time, and whether it passed. Lines of Python come from coverage.py,
whose context is the test.
"""

from __future__ import annotations

import _ctypes
import ctypes
import json
import os
import re
import subprocess
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

FOLDER = os.environ.get("BIELLA_TRACE", "")
_CAPACITY = 1 << 20


class Tracer:
    """The plugin: one line of JSON and one block of addresses for each test."""

    def __init__(self, folder: Path) -> None:
        self._buffer = np.empty(_CAPACITY, dtype=np.uint32)
        self._addresses = (folder / f"{os.getpid()}.trace").open("ab")
        self._tests = (folder / f"{os.getpid()}.tests").open("a", encoding="utf-8")
        self._failed = False

    def take(self) -> bytes:
        """Return the addresses executed since the last call, in the engine and in loaded FMUs."""
        maps = Path("/proc/self/maps").read_text().splitlines()
        paths = {line.split(maxsplit=5)[5] for line in maps if " r-xp " in line and "/" in line}
        taken = []
        for path in sorted(path for path in paths if path.endswith(".so")):
            # Not kept open: an FMU is unloaded when the test frees it.
            try:
                loaded = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
            except OSError:
                continue
            try:
                if (take := getattr(loaded, "bl_trace_take", None)) is not None:
                    take.restype = ctypes.c_int64
                    buffer = self._buffer.ctypes.data_as(ctypes.c_void_p)
                    count = take(buffer, ctypes.c_int64(_CAPACITY))
                    taken.append(self._buffer[:count].tobytes())
            finally:
                _ctypes.dlclose(loaded._handle)
        return b"".join(taken)

    def pytest_runtest_setup(self) -> None:
        self._began, self._failed = _processor_time(), False
        self.take()

    def pytest_runtest_logreport(self, report) -> None:
        self._failed |= report.outcome != "passed"

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        data = self.take()
        self._addresses.write(f"{nodeid}\n{len(data) // 4}\n".encode() + data)
        self._addresses.flush()
        seconds = _processor_time() - self._began
        self._tests.write(json.dumps([nodeid, round(seconds, 3), not self._failed]) + "\n")
        self._tests.flush()


def _processor_time() -> float:
    """Return what this process and those that it waited for have used, in s."""
    return sum(os.times()[:4])


def pytest_configure(config) -> None:
    worker = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    if FOLDER and worker:
        config.pluginmanager.register(Tracer(Path(FOLDER)))


def read_tests(folder: Path) -> dict[str, float]:
    """Return the processor time in s of each test that passed."""
    return {test: seconds for test, seconds, passed in _read(folder) if passed}


def read_failed(folder: Path) -> list[str]:
    """Return the tests that did not pass, skipped ones among them."""
    return sorted({test for test, _, _ in _read(folder)} - read_tests(folder).keys())


def _read(folder: Path) -> list[tuple[str, float, bool]]:
    return [
        json.loads(line)
        for path in folder.glob("*.tests")
        for line in path.read_text("utf-8").splitlines()
    ]


def read_traces(folder: Path, wanted: Iterable[int]) -> dict[int, set[str]]:
    """Return, for each wanted address of the engine, the tests that executed it."""
    addresses = np.unique(np.fromiter(wanted, dtype=np.uint32))
    found: dict[int, set[str]] = defaultdict(set)
    for path in folder.glob("*.trace"):
        with path.open("rb") as file:
            while name := file.readline().decode():
                count = int(file.readline())
                hit = np.frombuffer(file.read(4 * count), dtype=np.uint32)
                # The environment of a subprocess names the phase, too: "test_x.py::test_y (call)".
                test = re.sub(r" \((?:setup|call|teardown)\)$", "", name.rstrip("\n"))
                for address in np.intersect1d(hit, addresses):
                    found[int(address)].add(test)
    return found


def block_addresses(library: Path) -> dict[tuple[str, int], set[int]]:
    """Return the addresses of the basic blocks that hold code of each file and line."""
    blocks, called = [], False
    listing = _objdump(library, "--disassemble", "--no-show-raw-insn")
    for line in listing.splitlines():
        instruction = re.match(r"\s+([0-9a-f]+):\s+(.*)", line)
        if instruction:
            if called:
                blocks.append(int(instruction[1], 16))
            called = "call" in instruction[2] and "__sanitizer_cov_trace_pc" in instruction[2]
    blocks.sort()
    lines: dict[tuple[str, int], set[int]] = defaultdict(set)
    rows = re.findall(
        r"^\S+\.[ch]\s+\d+\s+(0x[0-9a-f]+)", _objdump(library, "--dwarf=decodedline"), re.MULTILINE
    )
    addresses = sorted(set(rows), key=lambda text: int(text, 16))
    named = subprocess.run(
        ["addr2line", "-e", str(library)],
        input="\n".join(addresses),
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    for address, place in zip(addresses, named, strict=True):
        path, _, number = place.split(" ")[0].rpartition(":")
        index = bisect_right(blocks, int(address, 16)) - 1
        if index >= 0 and number.isdigit():
            relative = os.path.relpath(path, library.parent) if path.startswith("/") else path
            lines[os.path.normpath(relative), int(number)].add(blocks[index])
    return lines


def _objdump(library: Path, *options: str) -> str:
    return subprocess.run(
        ["objdump", *options, str(library)], check=True, capture_output=True, text=True
    ).stdout
