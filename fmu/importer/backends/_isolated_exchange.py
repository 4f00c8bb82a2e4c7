"""FMUs for model exchange in a separate process: the engine integrates their states as usual.

The block is that of the engine, with its states and memory; the operations that need the FMU are
passed on to the worker of ``_isolated.py``, which has the same block alone in an engine:

    X   operation dt at t: tunable parameters, inputs, states, memory; the reply has the engine's
        status and whether the FMU has ended the run, then states, memory, and the result
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from ctypes import POINTER, c_int32
from typing import Any

import numpy as np

from ....blocks.external._external_block import EndOfRun
from ....errors import FmuError
from ....scheduler.engine._engine import ERROR_BLOCK, OK, STOP, UNCHANGED, Instance
from ....scheduler.engine._library import contract
from .._exchange import ExchangeFmu
from .._interface import Description, Interface
from .._options import Options
from ._called import Values
from ._isolated import IsolatedSession, Isolation

ANSWER = struct.Struct("<bb")


class IsolatedExchangeFmu(ExchangeFmu):
    """A model-exchange FMU in a separate process; made by `Fmu` with isolate=True."""

    def __init__(
        self,
        description: Description,
        interface: Interface,
        input_values: Mapping[str, Any],
        options: Options,
        how: Isolation,
    ) -> None:
        super().__init__(description, interface, input_values, options)
        if how.timeout is not None and not how.timeout > 0:
            raise FmuError(f"the timeout must be a positive time in s, got {how.timeout!r}.")
        self.how = how
        self.can_be_lent = False
        self.can_be_repeated = True

    @property
    def isolation(self) -> dict[str, dict[str, Any]] | None:
        """What strict isolation granted and refused in the last run; None: it is not strict."""
        return self.how.isolation

    def open(self, instance: Instance, number: int) -> IsolatedExchange:  # type: ignore[override]
        """Start the process and load the FMU in it."""
        return IsolatedExchange(self, instance, number)


class IsolatedExchange(IsolatedSession):
    """The worker process of one block in one run, and the function by which the engine calls it."""

    def __init__(self, block: IsolatedExchangeFmu, instance: Instance, number: int) -> None:
        self._instance, self._number = instance, number
        record, layout = instance.plan.block_records[number], instance.layout
        first = layout.parameters + layout.signals + int(record["x_first"])
        self._x = slice(first, first + int(record["x_count"]))
        first = layout.parameters + layout.signals + layout.states + int(record["z_first"])
        self._z = slice(first, first + int(record["z_count"]))
        library, handle = instance.library, instance.handle
        self._call_back = contract.bl_remote_call(self._run)  # as long as the engine needs it
        file = block.description.archive.path.name.encode()
        if library.bl_attach_remote(handle, number, file, self._call_back) != OK:
            raise FmuError(library.bl_message(handle).decode(errors="replace"))
        width = sum(port.width for port in instance.plan.blocks[number].inputs)
        kinds = np.zeros(max(width, 1), dtype=np.int32)
        library.bl_exchange_inputs(handle, number, kinds.ctypes.data_as(POINTER(c_int32)))
        integers = np.frombuffer(instance.plan.sections["INTS"], dtype="<i4")
        self._sizes = {
            contract.BL_OP_OUTPUT: sum(p.width for p in instance.plan.blocks[number].outputs),
            contract.BL_OP_DERIVATIVE: self._x.stop - self._x.start,
            contract.BL_OP_CROSSINGS: int(
                integers[int(record["i_first"]) + contract.HOST_INDICATORS]
            ),
        }
        self.more = {
            "step": instance.plan.step,
            "kinds": kinds[:width].tolist(),
            "coupled": int(library.bl_exchange_is_coupled(handle)),
        }
        super().__init__(block, Values(instance, number, block))

    def _run(self, number: int, op: int, t: float, out: Any) -> int:
        instance = self._instance
        note = instance.library.bl_remote_note
        try:
            return self._pass_on(op, t, out)
        except EndOfRun as end:
            note(instance.handle, number, 1, str(end).encode())
            return STOP
        except FmuError as error:
            note(instance.handle, number, 0, str(error).rstrip(".").encode())
            return ERROR_BLOCK
        except BaseException as error:
            instance._raised = number, error
            interrupted = isinstance(error, KeyboardInterrupt)
            return contract.BL_ERROR_INTERRUPT if interrupted else ERROR_BLOCK

    def _pass_on(self, op: int, t: float, out: Any) -> int:
        if op == contract.BL_OP_INIT:
            self.start(t)
            return OK
        if op in (contract.BL_OP_SAVE, contract.BL_OP_RESTORE):
            self._call(b"K" if op == contract.BL_OP_SAVE else b"P", dt=t)
            return OK
        values = self._instance.values
        state = values[self._x].tobytes() + values[self._z].tobytes()
        answer = self._call(b"X", t, float(op), self._present() + state)
        x, z = self._x.stop - self._x.start, self._z.stop - self._z.start
        size = x + z + self._sizes.get(op, 0)
        if len(answer) != ANSWER.size + 8 * size:  # it would be written beyond its place
            raise FmuError(f"{self.block.external_name} sent an answer of {len(answer)} bytes.")
        status, ended = ANSWER.unpack_from(answer)
        if status not in (OK, UNCHANGED):  # others come as failures
            raise FmuError(f"{self.block.external_name} sent an answer with the status {status}.")
        numbers = np.frombuffer(answer[ANSWER.size :])
        result = numbers[x + z :]
        if op == contract.BL_OP_OUTPUT:
            self._show(result.copy())
        elif out:
            np.ctypeslib.as_array(out, shape=result.shape)[:] = result
        else:
            values[self._x], values[self._z] = numbers[:x], numbers[x : x + z]
        self._instance.library.bl_remote_note(self._instance.handle, self._number, ended, None)
        return int(status)
