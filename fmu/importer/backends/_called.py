"""FMUs that run in Python or through it: what their blocks have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from ctypes import POINTER, c_char_p, c_double, c_uint8, cast
from typing import Any

import numpy as np
import numpy.typing as npt

from ....blocks.core._block import AbstractBlock
from ....blocks.core._ports import EVERY_TICK, periodic
from ....blocks.external._external_block import EXPORT_BLOCKER, ExternalBlock
from ....blocks.external._python import PythonBlock
from ....errors import FmuError
from ....scheduler.compile.plan._plan import slots_of
from ....scheduler.engine._engine import Instance
from ....scheduler.engine._library import contract
from ....scheduler.run._texts import read_binary
from ...standards._terminal_ports import TerminalBlock
from .._interface import Description, Interface
from .._options import Options
from .._variables import STRING

Array = npt.NDArray[np.float64]


class AbstractCalledFmu(TerminalBlock, PythonBlock, ExternalBlock):
    """A block that the engine calls back, and that a session runs."""

    has_internal_solver = shows_parameters = True
    export_blocker = EXPORT_BLOCKER

    def __init__(
        self,
        description: Description,
        interface: Interface,
        input_values: Mapping[str, list[float]],
        options: Options,
    ) -> None:
        self.description, self.interface, self.options = description, interface, options
        self.external_name = f"the FMU `{description.archive.path.name}`"
        flags = description.model.coSimulation
        self.can_roll_back = flags is not None and self._can_repeat(flags)
        self.takes_any_step = bool(flags and flags.canHandleVariableCommunicationStepSize)
        self.kernel = "python_internal_rollback" if self.can_roll_back else "python_internal"
        self.initial_state = np.empty(0)
        self.is_continuous = False
        self.states = self.memory = 0
        flags = description.model.coSimulation
        self.takes_any_step = flags is None or bool(flags.canHandleVariableCommunicationStepSize)
        AbstractBlock.__init__(
            self,
            inputs=interface.ports(interface.inputs, input_values),
            outputs=interface.ports(interface.outputs, {}),
            parameters=interface.block_parameters(),
            rate=periodic(options.period, otherwise=EVERY_TICK),
            feedthrough=interface.feedthrough(description),
        )

    def _can_repeat(self, flags: Any) -> bool:
        """Return whether the session of this block restores states; `flags` are the FMU's."""
        return bool(flags.canGetAndSetFMUstate)

    @property
    def code_digest(self) -> str:
        return self.description.archive.digest

    def __str__(self) -> str:
        return f"Fmu({self.description.archive.path.name!r})"


class AbstractSnapshots(ABC):
    """A session whose steps can be repeated: its snapshots, and what the FMU is promised."""

    initializing = False
    ended: float | None = None
    """When the FMU ended the run, at the end of its last step."""

    def __init__(self) -> None:
        self._forget_snapshots()

    @abstractmethod
    def begin(self, t: float) -> bool:
        """End the initialization; return whether it had not ended before."""

    @abstractmethod
    def _get_state(self) -> Any:
        """Return a new state of the FMU."""

    @abstractmethod
    def _set_state(self, state: Any) -> None:
        """Restore a state of the FMU."""

    @abstractmethod
    def _free_state(self, state: Any) -> None:
        """Free a state of the FMU."""

    def accept_step(self, t: float) -> None:
        """Start a coupled step: states from before it are not restored any more."""
        self.begin(t)
        self._settled, self._oldest = t, math.inf

    def keep(self, snapshot: int) -> None:
        """Save the state under a number."""
        before = self._snapshots.pop(snapshot, None)
        if before is not None:
            self._free_state(before[0])
        self._snapshots[snapshot] = self._get_state(), self.initializing, self.ended
        self._oldest = self._settled

    def put_back(self, snapshot: int) -> None:
        """Restore the state saved under a number."""
        state, self.initializing, self.ended = self._snapshots[snapshot]
        self._set_state(state)

    def _promises_no_return(self, t: float) -> bool:
        """Return whether no state from before the step at `t` can be restored: see ``host.c``."""
        return t <= self._oldest

    def _forget_snapshots(self) -> None:
        """Start anew; the states were freed, or their instance is."""
        self._snapshots: dict[int, tuple[Any, bool, float | None]] = {}
        self._settled, self._oldest = -math.inf, math.inf

    def _free_snapshots(self) -> None:
        for state, _, _ in self._snapshots.values():
            self._free_state(state)
        self._forget_snapshots()


def open_writer(instance: Instance, type_: int) -> int:
    """Return a new writer of strings or binaries."""
    library = instance.library
    open_ = library.bl_string_open if type_ == STRING else library.bl_binary_open
    return int(open_(instance.handle))


def write_text(instance: Instance, writer: int, data: bytes, type_: int) -> float:
    """Return the number of a string or binary; 0: it is too long."""
    library, handle = instance.library, instance.handle
    if type_ == STRING:
        return float(library.bl_string_write(handle, writer, data))
    pointer = cast(c_char_p(data), POINTER(c_uint8))
    return float(library.bl_binary_write(handle, writer, pointer, len(data)))


def read_text(instance: Instance, number: float, type_: int) -> bytes | None:
    """Return the string or binary with a number; None: it is not kept any more."""
    if type_ == STRING:
        text: bytes | None = instance.library.bl_string_read(instance.handle, number)
        return text
    return read_binary(instance, number)


class Values:
    """Where the inputs, outputs and parameters of one block lie in a running engine."""

    def __init__(self, instance: Instance, number: int, block: Any) -> None:
        info, record = instance.plan.blocks[number], instance.plan.block_records[number]
        self._instance, self._number = instance, number
        self._input_count = sum(port.width for port in info.inputs)
        self._y = slots_of(info.outputs)
        self.output_count = len(self._y)
        count = sum(group.width for group in block.interface.parameters)
        self._p = np.arange(int(record["p_first"]), int(record["p_first"]) + count)
        self._tunable = self._p[: block.interface.tunable]
        self._writers: dict[int, int] = {}

    @property
    def inputs(self) -> Array:
        """All inputs, in the order of the ports, as the block is to see them now."""
        values = np.empty(self._input_count)
        pointer = values.ctypes.data_as(POINTER(c_double))
        self._instance.library.bl_inputs(self._instance.handle, self._number, pointer)
        return values

    def text(self, number: float, type_: int = STRING) -> str | bytes | None:
        """Return the value of a signal that is a string or binary; None: nothing was written."""
        if number == 0.0:
            return None
        value = read_text(self._instance, number, type_)
        if value is None:
            raise FmuError(
                "a string or binary of a signal is not available any more: its writer has changed "
                f"it {contract.BL_STRINGS_KEPT} times since, or the state was saved by another run."
            )
        return value.decode(errors="replace") if type_ == STRING else value

    def number(self, place: int, text: str | bytes | None, type_: int = STRING) -> float:
        """Return the number of a value for the output at `place` among all values of outputs."""
        if place not in self._writers:
            self._writers[place] = open_writer(self._instance, type_)
        data = text.encode() if isinstance(text, str) else text or b""
        number = write_text(self._instance, self._writers[place], data, type_)
        if number == 0.0:
            limit = contract.BL_STRING_SIZE - 1 if type_ == STRING else contract.BL_BINARY_SIZE
            what = "string" if type_ == STRING else "binary"
            raise FmuError(
                f"an output {what} has {len(data)} bytes; signals can hold up to {limit}."
            )
        return number

    @property
    def input_derivatives(self) -> Array | None:
        """The first derivatives of all inputs in a coupled step, then the second; None: held."""
        values = np.empty(2 * self._input_count)
        pointer = values.ctypes.data_as(POINTER(c_double))
        instance = self._instance
        found = instance.library.bl_input_derivatives(instance.handle, self._number, pointer)
        return values if found else None

    @property
    def parameters(self) -> Array:
        """All parameters, tunable ones first."""
        return self._instance.values[self._p]

    @property
    def tunable(self) -> Array:
        """The parameters that may change during a run."""
        return self._instance.values[self._tunable]

    def set_outputs(self, values: Any) -> None:
        """Write all outputs."""
        self._instance.values[self._y] = values
