"""`SavedStates`: states of a live run that it can be repeated from, in bounded memory.

The real-time thread copies the state of the engine into a pipe after some ticks, and the recorder
collects the copies. A state is copied only if that takes a small part of the period, and not more
often than its window needs, so that no tick is noticeably longer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np

from ...engine._library import library
from ..loop._pace import Pipe

if TYPE_CHECKING:
    from ...engine._engine import Instance
    from ..loop._pace import Pace

WINDOW = 60.0
"""Seconds of the diagram's time that saved states cover."""

_MOST = 240  # states
_LEAST = 8  # states that make it worth while
_FEWEST_TICKS = 32  # between states
_WAITING = 4  # states that the recorder has not collected yet
_COPIED = 4e9  # bytes in a second
_SHARE = 0.02  # of a period, that copying may take


class SavedStates:
    """The saved states of one run, the newest of them.

    Parameters
    ----------
    size
        Largest size of all in bytes; 0 for none.

    Attributes
    ----------
    every
        Ticks between states; 0 if none are saved.
    bytes
        Size of a state.
    """

    def __init__(self, size: int) -> None:
        self.every = self.bytes = 0
        self._size = size
        self._kept: list[tuple[int, bytes]] = []  # replaced as a whole: any thread may read it
        self._pipe: Pipe | None = None
        self._count = 0

    def open(self, stack: ExitStack, instance: Instance, pace: Pace) -> None:
        """Have a run save its states, unless they are too large or outside the engine."""
        step, size = instance.plan.step, int(library().bl_state_size(instance.handle))
        count = min(self._size // size, _MOST)
        if instance.plan.external or count < _LEAST:
            return
        if pace.factor > 0.0 and size > _SHARE * _COPIED * step / pace.factor:
            return
        self.bytes = size
        self.every = max(_FEWEST_TICKS, math.ceil(WINDOW / step / count))
        self._pipe = Pipe(np.dtype([("tick", np.int64), ("state", np.void, size)]), _WAITING)
        stack.callback(self._pipe.close)
        pace.save_states(self._pipe, self.every)
        self._count = count

    def collect(self) -> None:
        """Take the states that the run has saved by now."""
        if self._pipe is None:
            return
        new = [(int(tick), bytes(state)) for tick, state in self._pipe.pull()]
        if new:
            self._kept = [*self._kept, *new][-self._count :]

    def inherit(self, states: Sequence[tuple[int, bytes]]) -> None:
        """Keep states of the run that this one continues, too."""
        if self.every:
            self._kept = [*states, *self._kept][-self._count :]

    @property
    def kept(self) -> Sequence[tuple[int, bytes]]:
        """Ticks and states, the oldest first."""
        return self._kept

    def find(self, tick: int) -> tuple[int, bytes] | None:
        """Return the last state that is not after a tick; None if there is none."""
        return max((item for item in self._kept if item[0] <= tick), default=None)
