"""Standard error of a confined process: into the log, bounded in rate and length."""

from __future__ import annotations

import logging
import os
import select
import threading
import time

_RATE = 20.0  # lines per second that are logged
_BURST = 100.0  # of them at a time, after silence
_LINE = 500  # characters of a line that are logged
_READ = 1 << 16  # bytes
_PAUSE = 0.1  # s between reads while lines are dropped: who writes more than that waits
_LOOK = 0.2  # s
_log = logging.getLogger("biella")


def printable(text: bytes) -> str:
    """Return a text of an FMU without what would control a terminal."""
    decoded = text.decode(errors="replace")
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in decoded
    )


class StderrLog:
    """Logs what comes from a pipe as warnings: at most 20 lines a second, 100 in a burst.

    The rest is dropped and counted. A process that writes more than the pipe holds waits; it never
    holds up the run, but for the calls in which it waits.

    Parameters
    ----------
    descriptor
        Read end of the pipe; closed by `close`.
    name
        Of the FMU, before each line.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        self.descriptor, self.name = descriptor, name
        self.dropped = 0
        """Lines that were not logged."""
        self._allowed, self._since = _BURST, time.monotonic()
        self._rest = b""
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._read, name="biella stderr", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            ended = self._ending.is_set()
            if not select.select([self.descriptor], [], [], 0.0 if ended else _LOOK)[0]:
                if ended:
                    return
                continue
            data = os.read(self.descriptor, _READ)
            if not data:
                return
            dropped = self.dropped
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._take(line)
            self._rest = self._rest[: 4 * _LINE]
            if ended and self.dropped > dropped:  # a child of the process may write for ever
                return
            if self.dropped > dropped:
                self._ending.wait(_PAUSE)

    def _take(self, line: bytes) -> None:
        now = time.monotonic()
        self._allowed = min(self._allowed + _RATE * (now - self._since), _BURST)
        self._since = now
        if self._allowed < 1.0:
            self.dropped += 1
            return
        self._allowed -= 1.0
        text = printable(line[: 4 * _LINE])
        shown = text if len(text) <= _LINE else f"{text[:_LINE]}…"
        _log.warning("%s: %s", self.name, shown)

    def close(self) -> None:
        """Log what is left, once the process has ended."""
        self._ending.set()
        self._thread.join()
        os.close(self.descriptor)
        if self._rest:
            self._take(self._rest)
        if self.dropped:
            _log.warning(
                "%s: %d more lines of its standard error were dropped.", self.name, self.dropped
            )
