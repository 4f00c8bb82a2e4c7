"""Workers of live runs: each computes an `Asynchronous` block at its rate, in its own thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from ..blocks.asynchronous import Asynchronous
from ..blocks.block import AbstractBlock
from ..blocks.outside import RECEIVED, Outside
from .diagram import Diagram
from .flatten import flatten

if TYPE_CHECKING:
    from .realtime import LiveRun


def find_slow_blocks(diagram: Diagram) -> dict[str, Asynchronous]:
    """Return the asynchronous blocks of a diagram, by path."""
    blocks = flatten(diagram).blocks
    return {item.path: item.block for item in blocks if isinstance(item.block, Asynchronous)}


def stand_in(block: Asynchronous) -> AbstractBlock:
    """Return what stands in a paced diagram for a block that a worker computes."""
    return Outside(list(block.inputs), list(block.outputs))


class Worker:
    """Takes the newest inputs, computes, hands over the result; again and again, until the end.

    Attributes
    ----------
    count, skipped
        Results handed over, and periods that it was too slow for.
    """

    def __init__(self, run: LiveRun, path: str, block: Asynchronous) -> None:
        self.count = 0
        self.skipped = 0
        self.path = path
        self._run, self._block = run, block
        plan = run.plan
        (about,) = (item for item in plan.blocks if item.path == path)
        self._inputs = [(port.slot, port.width) for port in about.inputs]
        first = plan.parameters[f"{path}.{RECEIVED}"].slot
        width = sum(block.widths)
        self._slots = range(first, first + width + 1)  # results, and since
        self.since_slot, self.age_slot = first + width, first + width + 1
        self._period = max(1, round(block.period / plan.step))  # in ticks
        self._thread = threading.Thread(target=self._work, name=f"biella {path}", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def _work(self) -> None:
        try:
            self._loop()
        except BaseException as error:
            self._run._fail(self.path, error)

    def _loop(self) -> None:
        run, block = self._run, self._block
        state = block.block.initial_state.copy()
        due, pause = 0, min(run.plan.step, 1e-3)
        while run.running:
            frame = run._mailbox.take()
            if frame is None or frame[0] < due:
                run._over.wait(pause)
                continue
            tick = int(frame[0])
            time = run.plan.start_time + tick * run.plan.step
            results, state = block.compute(time, state, self._read(frame))
            run._enter(self._slots, [*results, time])
            self.count += 1
            due = (tick // self._period + 1) * self._period
            late = run.tick - due
            if late > 0:  # those that have passed meanwhile
                self.skipped += late // self._period
                due = (run.tick // self._period) * self._period

    def _read(self, frame: Any) -> Any:
        """Return the inputs as a Python block wants them."""
        run = self._run
        read = []
        for slot, width in self._inputs:
            if slot < run._parameter_count:  # an input of the diagram
                values = run._input_values(slot, width)
            else:
                place = 1 + slot - run._parameter_count
                values = frame[place : place + width]
            read.append(float(values[0]) if width == 1 else np.array(values))
        return read[0] if len(read) == 1 else tuple(read)
