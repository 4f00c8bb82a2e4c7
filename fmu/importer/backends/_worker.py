"""The process that `isolated` starts: it runs one FMU and answers requests.

It makes the block that its parent would have without isolation and calls the same operations, so
that results are bit-identical.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from ctypes import POINTER, c_double
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ....blocks.core._block import AbstractBlock
from ....errors import BiellaError, FmuError
from ....scheduler.compile.diagram._diagram import Diagram
from ....scheduler.engine._engine import OK, STOP, UNCHANGED, Instance
from ....scheduler.engine._library import contract
from .._archive import Folder
from .._fmu import Fmu
from .._variables import text_places
from ._called import open_writer, read_text, write_text
from ._isolated import DONE, FAILED, REPLY, REQUEST, STOPPED, pack_texts, unpack_texts

_OPERATIONS = {
    b"I": contract.BL_OP_INIT,
    b"O": contract.BL_OP_OUTPUT,
    b"A": contract.BL_OP_ADVANCE,
    b"B": contract.BL_OP_EXIT_INITIALIZATION,
    b"C": contract.BL_OP_ACCEPT_STEP,
    b"K": contract.BL_OP_SAVE,
    b"P": contract.BL_OP_RESTORE,
}
_HAS_INPUTS = (b"O", b"A", b"B", b"C", b"D")


class Worker:
    """One FMU, alone in an engine."""

    instance: Instance

    def __init__(self, order: dict[str, Any], folder: Path | None = None) -> None:
        digest = order.pop("digest")
        for name, values in order.pop("binaries", {}).items():
            data = [bytes.fromhex(value) for value in values]
            order["parameters"][name] = data[0] if len(data) == 1 else data
        block: Any = Fmu(order.pop("path"), period=1.0, **order)
        if block.description.archive.digest != digest:
            raise FmuError(f"{block.external_name} has changed since the block was created.")
        if folder is not None:
            Folder.adopt(block.description.archive, folder)
        self.model = _alone(block).compile()
        self.text_outputs = text_places(block.interface.outputs)
        self.text_inputs = text_places(block.interface.inputs)

    def open(self) -> None:
        """Load the FMU."""
        self.instance = Instance(self.model)
        plan = self.instance.plan
        info, record = plan.blocks[0], plan.block_records[0]
        self.first = int(record["p_first"])
        self.inputs = [p.slot + k for p in info.inputs for k in range(p.width)]
        self.outputs = [p.slot + k for p in info.outputs for k in range(p.width)]
        self.texts: dict[int, tuple[int, float]] = {
            place: (open_writer(self.instance, type_), 0.0)
            for place, type_ in self.text_inputs.items()
        }
        """Of inputs that are strings or binaries: their writers here, and their numbers."""

    def answer(self, op: bytes, t: float, dt: float, payload: bytes) -> bytes:
        """Execute a request and return the response."""
        if op == b"N":
            self.open()
            return b""
        values = self.instance.values
        if op == b"W":
            return self._warning().encode()
        if op == b"T":
            self._note_texts(unpack_texts(payload, len(self.text_inputs)))
            return b""
        if op == b"U":
            return pack_texts(
                [
                    read_text(self.instance, values[self.outputs[k]], type_) or b""
                    for k, type_ in self.text_outputs.items()
                ]
            )
        if op == b"S":
            return self.instance.external[0].save()
        if op == b"R":
            self.instance.external[0].restore(payload)
            return b""
        numbers = np.frombuffer(payload)
        derivatives = np.empty(0)
        if op == b"D":
            numbers, derivatives = np.split(numbers, [numbers.size - 2 * len(self.inputs)])
        tuned = numbers.size - (len(self.inputs) if op in _HAS_INPUTS else 0)
        values[self.first : self.first + tuned] = numbers[:tuned]
        if op in _HAS_INPUTS:
            values[self.inputs] = numbers[tuned:]
            for place, (_, number) in self.texts.items():
                values[self.inputs[place]] = number
        library, handle = self.instance.library, self.instance.handle
        if op == b"D":
            pointer = np.array(derivatives).ctypes.data_as(POINTER(c_double))
            status = library.bl_advance_block(handle, 0, t, dt, pointer)
        else:
            status = library.bl_call_block(handle, 0, _OPERATIONS[op], t, dt)
        self._check(int(status))
        if op == b"B":
            return bytes([status == OK])
        return bytes(values[self.outputs].tobytes()) if op == b"O" else b""

    def _note_texts(self, texts: list[bytes | None]) -> None:
        """Give the strings and binaries of inputs numbers in this process; none: not written."""
        for (place, type_), data in zip(self.text_inputs.items(), texts, strict=True):
            writer, _ = self.texts[place]
            number = 0.0 if data is None else write_text(self.instance, writer, data, type_)
            self.texts[place] = writer, number

    def _warning(self) -> str:
        """Return the warning of the block about the run; empty: none."""
        text: bytes = self.instance.library.bl_fmu_warning(self.instance.handle, 0)
        return text.decode(errors="replace")

    def _check(self, status: int) -> None:
        if status in (OK, UNCHANGED):
            return
        instance = self.instance
        raised, instance._raised = instance._raised, None
        if status == STOP and instance._end:
            raise _Ended(instance._end)
        if raised is not None:  # by a backend in Python
            raise raised[1]
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
    parent = int(sys.argv[1]) if len(sys.argv) > 1 else os.getppid()
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else None  # isolate="strict"
    threading.Thread(target=_leave_with_parent, args=(parent,), daemon=True).start()
    worker: Worker | None = None
    while head := requests.read(REQUEST.size):
        op, t, dt, size = REQUEST.unpack(head)
        payload = requests.read(size)
        outcome = DONE
        if op == b"Q":
            break
        try:
            if op == b"L":
                worker, answer = Worker(json.loads(payload), folder), b""
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
    if worker is not None and hasattr(worker, "instance"):
        worker.instance.close()


def _leave_with_parent(parent: int) -> NoReturn:
    """End this process when the parent is gone, even while the FMU hangs."""
    while os.name == "nt" or os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


if __name__ == "__main__":
    main()
    sys.exit(0)
