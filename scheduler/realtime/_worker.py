"""Workers of live runs: each computes an `Asynchronous` block at its rate, in its own thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ...blocks.core._block import AbstractBlock
from ...blocks.external._asynchronous import AbstractAsynchronous, Values
from ...blocks.external._external_block import EndOfRun
from ...blocks.external._external_input import RECEIVED, ExternalInput
from ..compile._flatten import FlatDiagram

if TYPE_CHECKING:
    from ._live import LiveRun

_PATIENCE = 2.0  # s, for a worker to complete its current computation


def find_slow_blocks(flat: FlatDiagram) -> dict[str, AbstractAsynchronous]:
    """Return the asynchronous blocks of a diagram, by path."""
    return {
        item.path: item.block
        for item in flat.blocks
        if isinstance(item.block, AbstractAsynchronous)
    }


def stand_in(block: AbstractAsynchronous, start_time: float, path: str) -> AbstractBlock:
    """Return the block that represents, in a real-time diagram, the result of a worker."""
    results, start, place = block.first_results(start_time, path), {}, 0
    for port, width in zip(block.outputs, block.widths, strict=False):
        start[port.name] = results[place : place + width]
        place += width
    return ExternalInput(
        list(block.inputs), list(block.outputs), start={**start, "since": start_time}
    )


class Worker:
    """Computes an asynchronous block from the newest inputs repeatedly until the end of the run.

    Attributes
    ----------
    count, skipped
        Number of results, and of periods that were missed.
    behind
        Delay of the current period in ticks, if periods are not skipped.
    """

    def __init__(self, run: LiveRun, path: str, block: AbstractAsynchronous) -> None:
        self.count = 0
        self.skipped = 0
        self.behind = 0
        self.path = path
        self._run = run
        plan = run.plan
        (about,) = (item for item in plan.blocks if item.path == path)
        self._inputs = [(port.slot, port.width) for port in about.inputs]
        first = plan.parameters[f"{path}.{RECEIVED}"].slot
        width = sum(block.widths)
        self._slots = range(first, first + width + 1)  # results, and since
        self.since_slot, self.age_slot = first + width, first + width + 1
        self._period = max(1, round(block.period / plan.step))  # in ticks
        self._computation = block.begin(plan.start_time, path)
        self._thread = threading.Thread(target=self._work, name=f"biella {path}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wait(self) -> None:
        """Wait for the end of the thread, which cannot be interrupted, up to a time limit."""
        if self._thread.ident is not None:
            self._thread.join(_PATIENCE)

    def close(self) -> None:
        """Close the computation, unless the thread was started and closes it itself."""
        if self._thread.ident is None:
            self._computation.close()

    def _work(self) -> None:
        try:
            self._loop()
        except EndOfRun as end:
            self._run._end(f"`{self.path}` ended the run: {end}")
        except BaseException as error:
            self._run._fail(self.path, error)
        finally:
            self._computation.close()

    def _loop(self) -> None:
        run, computation = self._run, self._computation
        due, pause = 0, min(run.plan.step, 1e-3)
        while run.running:
            frame = run._pipes.mailbox.take()
            if frame is None or frame[0] < due:
                run._over.wait(pause)
                continue
            tick = int(frame[0])
            time = run.plan.start_time + tick * run.plan.step
            results = computation.compute(time, self._read(frame))
            self.count += 1  # before it enters: no run has more results than are counted
            run._enter(self._slots, [*results, time])
            due = self._next_due(due, tick)

    def _next_due(self, due: int, begun: int) -> int:
        """Return the tick of the next computation."""
        if not self._computation.skips:
            due += self._period
            self.behind = max(0, self._run.tick - due)
            return due
        due = (begun // self._period + 1) * self._period
        late = self._run.tick - due
        if late <= 0:
            return due
        self.skipped += late // self._period  # those that have passed meanwhile
        return self._run.tick // self._period * self._period

    def _read(self, frame: Values) -> list[Values]:
        """Return the inputs, port after port."""
        return [self._run._values_in(frame, slot, width) for slot, width in self._inputs]
