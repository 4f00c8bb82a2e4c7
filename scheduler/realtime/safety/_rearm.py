"""Arm a latched run again: `biella rearm` asks for it by a file beside the page of the run."""

from __future__ import annotations

import argparse
import contextlib
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ....errors import BiellaError
from .._watch import Glance, choose_page, read_page

if TYPE_CHECKING:
    from .._live import LiveRun

_SUFFIX = ".rearm"
_PATIENCE = 5.0  # s until a run has noticed
_log = logging.getLogger("biella")


class LatchNotice:
    """What the recorder of a run tells of its latch, and the requests that it answers."""

    def __init__(self, run: LiveRun, page: Path | None) -> None:
        self._run = run
        self._request = page.with_suffix(_SUFFIX) if page else None
        self._told = 0

    def look(self) -> None:
        """Log a new latch; arm the run again if that was asked for."""
        run = self._run
        why, count = run.latched, int(run._pace.latches)
        if why and count != self._told and not run._pace.signal:
            self._told = count
            _log.warning(
                "the run of %r is latched at t = %.9g s: %s. Its devices get their safe values. "
                "run.rearm() or `biella rearm` continues it, Ctrl-C ends it.",
                run.plan.name, run.time, why,
            )  # fmt: skip
        if self._request is not None and self._request.exists():
            self._request.unlink(missing_ok=True)
            with contextlib.suppress(BiellaError):  # another request has come first
                run.rearm()

    def close(self) -> None:
        """Take away a request that came too late."""
        if self._request is not None:
            with contextlib.suppress(OSError):
                self._request.unlink(missing_ok=True)


def rearm(options: argparse.Namespace) -> None:
    """Ask a latched run of this user to continue, or let the next run after a dead one start."""
    from ._guard import clear_latches

    if options.run is None and (cleared := clear_latches()):
        print(f"armed again after the death of {'; '.join(cleared)}")
        return
    page = choose_page(options.run)
    glance = read_page(page)
    if glance is None:
        raise BiellaError("the run has just ended.")
    request_rearm(page, glance)
    print(f"the run of {glance.name!r} (process {glance.pid}) continues")


def request_rearm(page: Path, glance: Glance) -> None:
    """Ask a latched run to continue, and wait until it has noticed."""
    if not glance.latched:
        raise BiellaError(f"the run of `{glance.name}` (process {glance.pid}) is not latched.")
    request = page.with_suffix(_SUFFIX)
    request.touch(mode=0o600)
    limit = time.monotonic() + _PATIENCE
    while request.exists():
        if time.monotonic() > limit:
            request.unlink(missing_ok=True)
            raise BiellaError(
                f"process {glance.pid} does not respond: a block may not have returned. It stays "
                f"latched; end it with a signal."
            )
        time.sleep(0.02)
