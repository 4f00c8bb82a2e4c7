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
from ctypes import POINTER, byref, c_double, c_int32
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
from ._isolated_exchange import ANSWER

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
        more = order.pop("exchange", None)
        if more is None:
            order["period"] = 1.0
        block: Any = Fmu(order.pop("path"), **order)
        if block.description.archive.digest != digest:
            raise FmuError(f"{block.external_name} has changed since the block was created.")
        if folder is not None:
            Folder.adopt(block.description.archive, folder)
        self.model = _alone(block, more["step"] if more else 1.0).compile()
        self.text_outputs = text_places(block.interface.outputs)
        self.text_inputs = text_places(block.interface.inputs)
        self.more = more

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
        if self.more:
            self._mirror(self.more)

    def _mirror(self, more: dict[str, Any]) -> None:
        """Let the block of a model-exchange FMU be as in the run."""
        instance, record = self.instance, self.instance.plan.block_records[0]
        kinds = (c_int32 * (len(more["kinds"]) + 1))(*more["kinds"])
        instance.library.bl_exchange_mirror(instance.handle, 0, kinds, more["coupled"])
        layout = instance.layout
        first = layout.parameters + layout.signals
        x, z = int(record["x_count"]), int(record["z_count"])
        self.state = (
            slice(first, first + x),
            slice(first + layout.states, first + layout.states + z),
        )
        integers = np.frombuffer(instance.plan.sections["INTS"], dtype="<i4")
        indicators = int(integers[int(record["i_first"]) + contract.HOST_INDICATORS])
        self.results = {
            contract.BL_OP_DERIVATIVE: np.zeros(x),
            contract.BL_OP_CROSSINGS: np.zeros(indicators),
        }

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
        if op == b"X":
            return self._exchange(int(dt), t, numbers)
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

    def _exchange(self, op: int, t: float, numbers: Any) -> bytes:
        """Execute an operation of a model-exchange FMU."""
        instance, values = self.instance, self.instance.values
        x, z = self.state
        ends = np.cumsum([len(self.inputs), x.stop - x.start, z.stop - z.start])
        tuned = numbers.size - int(ends[-1])
        values[self.first : self.first + tuned] = numbers[:tuned]
        given = np.split(numbers[tuned:], ends[:-1])
        values[self.inputs], values[x], values[z] = given
        for place, (_, number) in self.texts.items():
            values[self.inputs[place]] = number
        result, ended = self.results.get(op), c_int32()
        pointer = None if result is None else result.ctypes.data_as(POINTER(c_double))
        call = instance.library.bl_exchange_call
        status = int(call(instance.handle, 0, op, t, pointer, byref(ended)))
        self._check(status)
        if result is None:
            result = values[self.outputs] if op == contract.BL_OP_OUTPUT else np.empty(0)
        state = values[x].tobytes() + values[z].tobytes()
        return ANSWER.pack(status, ended.value) + state + result.tobytes()

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


def _alone(block: AbstractBlock, step: float) -> Diagram:
    """Return a diagram of the block alone, whose inputs are set where their defaults lie."""
    inputs = tuple(replace(port, default=port.default or 0.0) for port in block.inputs)
    diagram = Diagram("isolated", step=step)
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
