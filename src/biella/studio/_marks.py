"""Located events of a run while it goes on, for marks in scopes: as many as they can show."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._messages import Message

if TYPE_CHECKING:
    from ..scheduler.results.events._event_log import EventLog
    from ..scheduler.results.events._events import Event

AT_ONCE = 40  # in a message, of which there are five a second
_KEPT = 1000  # for pages that come later


class Marks:
    """Events of one run.

    Parameters
    ----------
    run
        Its number: pages forget the marks of other runs.
    log
        Where its events are; None: whoever has them calls `take`.

    Attributes
    ----------
    total
        Events so far.
    """

    def __init__(self, run: int = 0, log: EventLog | None = None) -> None:
        self.run = run
        self.total = 0
        self._log = log
        self._kept: deque[Message] = deque(maxlen=_KEPT)

    def look(self) -> Message | None:
        """Return what pages are told of the events since the last call; None if there are none."""
        if self._log is None:
            return None
        return self.take(*self._log.read_newest(self.total, AT_ONCE))

    def take(self, total: int, newest: Sequence[Event | Sequence[object]]) -> Message | None:
        """Take the number of events so far, and the newest of those that are new."""
        if total == self.total:
            return None
        self.total = total
        new = [{"time": time, "block": block, "text": kind} for time, block, kind in newest]
        self._kept += new
        return {"event": "marks", "run": self.run, "list": new, "total": total}

    def describe(self) -> Message:
        """Return what a new page has to know."""
        return {"event": "marks", "run": self.run, "list": list(self._kept), "total": self.total}
