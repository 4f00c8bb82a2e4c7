"""A peer in a process of its own: it may need another environment, and it must not disturb ours.

The life of a peer: it is started, says that it is ready or absent, then does a work once for each
line that it is sent, which names the work and the seconds to simulate. So its runs can be
interleaved with ours. Only the standard library is used here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cached_property
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

Prepare = Callable[[], Callable[[], Any]]
"""Prepares one run, untimed, and gives the function to time, which returns the final output.

The output is whatever JSON carries: a number, or an object with all that is compared.
"""


class PeerFailed(RuntimeError):
    """A peer is installed but its process ended before it answered."""


class Peer:
    """Our end: a peer's process, which is started and not waited for.

    `arguments` are for the peer's file.
    """

    def __init__(self, package: str, python: str | None = None, *arguments: str) -> None:
        self.package = package
        # A file and not a pipe: a talkative peer would fill a pipe that nobody reads, and stop.
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115, closed by close()
        self._process = subprocess.Popen(
            [python or sys.executable, "-m", f"peers.{package}", *arguments],
            cwd=Path(__file__).parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    @cached_property
    def version(self) -> str:
        """Version of the peer, once it is ready; empty if it is not installed."""
        return str(self._read()["version"])

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise PeerFailed(f"{self.package}:\n{self._errors.read()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def run(self, work: str, seconds: float) -> tuple[float, Any]:
        """Do a work once for simulated seconds; return the time it took and its final output.

        Read `version` before the first call: the peer has to be ready.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(f"{work} {seconds!r}\n")
        self._process.stdin.flush()
        answer = self._read()
        return answer["seconds"], answer["output"]

    def close(self) -> None:
        """Let the process end."""
        self._process.communicate()
        self._errors.close()


def serve(
    package: str, works: dict[str, Callable[[float], Prepare]], distribution: str | None = None
) -> None:
    """Be the peer's end: call this as the last line of a peer's file.

    `works` maps a name to a function of the simulated seconds. `distribution` is what the package
    is installed as, if that is another name.
    """
    # What the peer prints goes to stderr; only answers go to the pipe.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        print(json.dumps({"version": ""}), file=answers)
        return
    print(json.dumps({"version": metadata.version(distribution or package)}), file=answers)
    prepared: dict[str, Prepare] = {}
    for line in sys.stdin:
        if line not in prepared:
            work, seconds = line.split()
            prepared[line] = works[work](float(seconds))
        run = prepared[line]()
        start = time.perf_counter()
        output = run()
        elapsed = time.perf_counter() - start
        print(json.dumps({"seconds": elapsed, "output": output}), file=answers)
