"""What tests of drivers against servers share: where these live, and runs that meet them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any

from biella import run_realtime
from biella.errors import DeviceError

from .peer import wait_for


class LoopThread:
    """Runs coroutines in a thread of its own; a context manager."""

    def __enter__(self) -> LoopThread:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Return what a coroutine gives."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60.0)

    def __exit__(self, *error: object) -> None:
        self.run(self._end_tasks())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(60)
        self.loop.close()

    async def _end_tasks(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)  # transports that were closed say so to their protocols


def advance_until(run, condition, signals):
    """Run ticks until the values of `signals` are as wanted; return them."""
    rows: list[Any] = []

    def met():
        rows[:] = run.advance(1, signals=signals, now=time.monotonic_ns)
        return condition(*rows[0])

    wait_for(met)
    return rows[0]


def start_patiently(diagram, table):
    """Start a run whose timeout is short: a busy machine may not answer in time at first."""
    for _ in range(200):
        try:
            return run_realtime(diagram, bind=table)
        except DeviceError as error:
            last = error
    raise last
