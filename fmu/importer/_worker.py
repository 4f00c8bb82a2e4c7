"""The process that `isolated` starts: it runs one FMU through the engine and answers requests.

It makes the same block as its parent and calls the same kernel, so that results are bit-identical.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from ...blocks.core._block import AbstractBlock
from ...errors import BiellaError, FmuError
from ...scheduler.compile.diagram._diagram import Diagram
from ...scheduler.engine._engine import OK, STOP, UNCHANGED, Instance
from ...scheduler.engine._library import contract
from ._fmu import EngineFmu, Fmu
from ._isolated import DONE, FAILED, REPLY, REQUEST, STOPPED

_OPERATIONS = {
    b"I": contract.BL_OP_INIT,
    b"O": contract.BL_OP_OUTPUT,
    b"A": contract.BL_OP_ADVANCE,
    b"B": contract.BL_OP_EXIT_INITIALIZATION,
}


class Worker:
    """One FMU, alone in an engine."""

    def __init__(self, order: dict[str, Any]) -> None:
        digest = order.pop("digest")
        for name, values in order.pop("binaries", {}).items():
            data = [bytes.fromhex(value) for value in values]
            order["parameters"][name] = data[0] if len(data) == 1 else data
        block = Fmu(order.pop("path"), period=1.0, **order)
        assert isinstance(block, EngineFmu)
        if block.description.archive.digest != digest:
            raise FmuError(f"{block.external_name} has changed since the block was created.")
        self.instance = Instance(_alone(block).compile())
        plan = self.instance.plan
        info, record = plan.blocks[0], plan.block_records[0]
        self.first = int(record["p_first"])
        self.inputs = [p.slot + k for p in info.inputs for k in range(p.width)]
        self.outputs = [p.slot + k for p in info.outputs for k in range(p.width)]

    def answer(self, op: bytes, t: float, dt: float, payload: bytes) -> bytes:
        """Execute a request and return the response."""
        values = self.instance.values
        if op == b"W":
            return self._warning().encode()
        if op == b"S":
            return self.instance.external[0].save()
        if op == b"R":
            self.instance.external[0].restore(payload)
            return b""
        numbers = np.frombuffer(payload)
        tuned = numbers.size if op == b"I" else numbers.size - len(self.inputs)
        values[self.first : self.first + tuned] = numbers[:tuned]
        if op != b"I":
            values[self.inputs] = numbers[tuned:]
        status = self._call(_OPERATIONS[op], t, dt)
        if op == b"B":
            return bytes([status == OK])
        return bytes(values[self.outputs].tobytes()) if op == b"O" else b""

    def _warning(self) -> str:
        """Return the warning of the block about the run; empty: none."""
        text: bytes = self.instance.library.bl_fmu_warning(self.instance.handle, 0)
        return text.decode(errors="replace")

    def _call(self, op: int, t: float, dt: float) -> int:
        instance = self.instance
        status = int(instance.library.bl_call_block(instance.handle, 0, op, t, dt))
        if status in (OK, UNCHANGED):
            return status
        message = instance.library.bl_message(instance.handle).decode(errors="replace")
        raise _Ended(message) if status == STOP else FmuError(message)


class _Ended(Exception):
    """The FMU has ended the simulation."""


def _alone(block: AbstractBlock) -> Diagram:
    """Return a diagram of the block alone, whose inputs are set where their defaults lie."""
    inputs = tuple(replace(port, default=port.default or 0.0) for port in block.inputs)
    diagram = Diagram("isolated", step=1.0)
    diagram.add(block.copy_with(inputs=inputs), name="fmu")
    return diagram


def main() -> None:
    """Answer requests until the parent is done, or gone."""
    # Ctrl-C is for the parent, which then ends this process; an FMU in a call is not interrupted.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What the FMU itself prints must not get among the answers.
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=_leave_with_parent, args=(os.getppid(),), daemon=True).start()
    worker: Worker | None = None
    while head := requests.read(REQUEST.size):
        op, t, dt, size = REQUEST.unpack(head)
        payload = requests.read(size)
        outcome = DONE
        if op == b"Q":
            break
        try:
            if op == b"L":
                worker, answer = Worker(json.loads(payload)), b""
            else:
                assert worker is not None
                answer = worker.answer(op, t, dt, payload)
        except _Ended as end:
            outcome, answer = STOPPED, str(end).encode()
        except BiellaError as error:
            outcome, answer = FAILED, str(error).encode()
        except Exception as error:
            outcome, answer = FAILED, f"{type(error).__name__}: {error}".encode()
        answers.write(REPLY.pack(outcome, len(answer)) + answer)
        answers.flush()
    if worker is not None:
        worker.instance.close()


def _leave_with_parent(parent: int) -> NoReturn:
    """End this process when the parent is gone, even while the FMU hangs."""
    while os.name == "nt" or os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


if __name__ == "__main__":
    main()
    sys.exit(0)
