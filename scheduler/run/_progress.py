"""A progress bar for long runs in a terminal, and silence everywhere else."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import rich.progress

_REFRESH_SECONDS = 0.1


class Progress:
    """Shows how far a run is, how fast it goes and how long it still takes.

    The bar appears on stderr once the run has lasted `show_after` seconds, and only if stderr is a
    terminal. Until then, and elsewhere, nothing is printed and rich is not imported.

    Parameters
    ----------
    total_ticks
        Length of the run, in ticks or in what `unit` names.
    description
        Shown before the bar.
    step
        Simulated time of one tick in s; if given, the speed is also shown against real time.
    show_after
        In s.
    unit
        What is counted.
    """

    def __init__(
        self,
        total_ticks: int,
        description: str = "",
        *,
        step: float | None = None,
        show_after: float = 2.0,
        unit: str = "ticks",
    ) -> None:
        self.total_ticks = total_ticks
        self.description = description
        self.done = 0
        self._step, self._unit = step, unit
        self._enabled = sys.stderr is not None and sys.stderr.isatty()
        self._bar: rich.progress.Progress | None = None
        self._task: rich.progress.TaskID | None = None
        self._started = time.monotonic()
        self._due = self._started + show_after

    def __enter__(self) -> Self:
        return self

    def advance(self, ticks: int) -> None:
        """Count ticks that were run. Costs well under a microsecond unless the bar is due."""
        self.done += ticks
        if not self._enabled:
            return
        now = time.monotonic()
        if now >= self._due:
            self._due = now + _REFRESH_SECONDS
            self._show(now)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._show(time.monotonic())
            self._bar.stop()

    def _show(self, now: float) -> None:
        if self._bar is None:
            self._bar = self._make_bar()
            self._task = self._bar.add_task(
                self.description, total=self.total_ticks, speed="", remaining=""
            )
            self._bar.start()
        assert self._task is not None
        rate = self.done / max(now - self._started, 1e-9)
        left = (self.total_ticks - self.done) / rate if rate else float("inf")
        self._bar.update(
            self._task,
            completed=self.done,
            speed=_speed(rate, self._step, self._unit),
            remaining=f"{_duration(left)} left"
            if left > 0
            else f"{_duration(now - self._started)}",
            refresh=True,
        )

    @staticmethod
    def _make_bar() -> rich.progress.Progress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        return Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            TaskProgressColumn(),
            TextColumn("{task.fields[speed]}"),
            TextColumn("{task.fields[remaining]}"),
            console=Console(stderr=True),
            # No thread beside the engine: the bar is drawn when ticks are counted.
            auto_refresh=False,
        )


def _speed(ticks_per_second: float, step: float | None, unit: str = "ticks") -> str:
    """Return ``12.3 M ticks/s`` and, if a tick has a length, ``12300 × real time``."""
    scale, prefix = 1.0, ""
    for larger, name in ((1e3, "k "), (1e6, "M "), (1e9, "G ")):
        if ticks_per_second >= larger:
            scale, prefix = larger, name
    text = f"{ticks_per_second / scale:.3g} {prefix}{unit}/s"
    return text if step is None else f"{text}, {ticks_per_second * step:.3g} × real time"


def _duration(seconds: float) -> str:
    """Return a time in common notation: 42 s, 3:05 min, 2:10 h."""
    if seconds == float("inf"):
        return "unknown time"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"
