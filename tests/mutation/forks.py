"""Runs of pytest without the time that its imports take: a process that forks for each run.

Reads a line of JSON for each run, `[arguments, limits, output]`, and answers with the exit code,
the processor time and the time on the clock. `limits` is the processor time in s that each test may
take; the file `<output>.test` names the test that ran last. What the copy of the checkout contains
is imported by the fork.

No limit is one of the clock, so a busy machine ends no test: a test that computes for too long is
ended by its limit of processor time, and one that waits for ever when all its processes have slept
for `IDLE_SECONDS`.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

IDLE_SECONDS = 25.0
IDLE_PROCESSOR_SECONDS = 0.1
"""A run that uses less than this while it sleeps for `IDLE_SECONDS` waits for something that never
comes. A process that waits for a processor does not sleep, however busy the machine is."""

_TICKS = os.sysconf("SC_CLK_TCK")


class Limits:
    """The pytest plugin that gives each test its limit of processor time."""

    def __init__(self, seconds: dict[str, float], running: Path) -> None:
        self._seconds, self._running = seconds, running

    def pytest_runtest_setup(self, item) -> None:
        self._running.write_text(item.nodeid, "utf-8")
        used = resource.getrusage(resource.RUSAGE_SELF)
        limit = used.ru_utime + used.ru_stime + self._seconds.get(item.nodeid, 30.0)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (round(limit) + 1, hard))


def serve() -> None:
    """Answer until the input ends."""
    import h5py  # noqa: F401
    import networkx  # noqa: F401
    import numpy as np  # noqa: F401
    import pytest
    import scipy.linalg
    import scipy.optimize
    import scipy.signal  # noqa: F401

    sys.path.insert(0, os.getcwd())
    for line in sys.stdin:
        arguments, seconds, output = json.loads(line)
        running = Path(f"{output}.test")
        running.unlink(missing_ok=True)
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            os.setsid()  # signals to the group are for the tests
            file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for number, handle in ((0, os.open(os.devnull, os.O_RDONLY)), (1, file), (2, file)):
                os.dup2(handle, number)
            code = 3
            try:
                code = int(pytest.main(arguments, plugins=[Limits(seconds, running)]))
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        code, processor = _wait(child)
        with contextlib.suppress(BrokenPipeError):  # the run was ended
            print(json.dumps([code, processor, time.monotonic() - began]), flush=True)


def _wait(child: int) -> tuple[int, float]:
    """Wait for a run, and end it if it sleeps for ever; returns exit code and processor time."""
    used, since = 0.0, time.monotonic()
    while True:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
        time.sleep(0.05 if time.monotonic() - since < 1 else 0.25)
        awake, now = _processor_time(child)
        if awake or now > used + IDLE_PROCESSOR_SECONDS:
            used, since = now, time.monotonic()
        elif time.monotonic() - since > IDLE_SECONDS:
            _end(child)
            since = time.monotonic()


def _processor_time(session: int) -> tuple[bool, float]:
    """Whether a process of a session runs or could, and what they all have used, in s."""
    awake, total = False, 0
    for _, fields in _processes(session):
        awake |= fields[0] in "RD"
        total += sum(map(int, fields[11:15]))
    return awake, total / _TICKS


def _processes(session: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the processes of a session with what /proc shows of them, from their state on."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                yield int(name), fields


def _end(session: int) -> None:
    for process, _ in _processes(session):
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    assert "biella" not in sys.modules
    Path("build").mkdir(exist_ok=True)
    serve()
