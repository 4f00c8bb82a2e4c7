"""FMUs that run in Python or through it: what their blocks have in common."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import POINTER, c_double
from typing import Any

import numpy as np
import numpy.typing as npt

from ...blocks.core._block import AbstractBlock
from ...blocks.core._ports import EVERY_TICK, periodic
from ...blocks.external._external_block import EXPORT_BLOCKER, ExternalBlock
from ...blocks.external._python import PythonBlock
from ...scheduler.compile.plan._plan import slots_of
from ...scheduler.engine._engine import Instance
from ._interface import Description, Interface
from ._options import Options

Array = npt.NDArray[np.float64]


class AbstractCalledFmu(PythonBlock, ExternalBlock):
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
        self.kernel = "python_internal"
        self.initial_state = np.empty(0)
        self.is_continuous = False
        self.states = self.memory = 0
        AbstractBlock.__init__(
            self,
            inputs=interface.ports(interface.inputs, input_values),
            outputs=interface.ports(interface.outputs, {}),
            parameters=interface.block_parameters(),
            rate=periodic(options.period, otherwise=EVERY_TICK),
            feedthrough=interface.feedthrough(description),
        )

    def __str__(self) -> str:
        return f"Fmu({self.description.archive.path.name!r})"


class Values:
    """Where the inputs, outputs and parameters of one block lie in a running engine."""

    def __init__(self, instance: Instance, number: int, block: AbstractCalledFmu) -> None:
        info, record = instance.plan.blocks[number], instance.plan.block_records[number]
        self._instance, self._number = instance, number
        self._input_count = sum(port.width for port in info.inputs)
        self._y = slots_of(info.outputs)
        count = sum(group.width for group in block.interface.parameters)
        self._p = np.arange(int(record["p_first"]), int(record["p_first"]) + count)
        self._tunable = self._p[: block.interface.tunable]

    @property
    def inputs(self) -> Array:
        """All inputs, in the order of the ports, as the block is to see them now."""
        values = np.empty(self._input_count)
        pointer = values.ctypes.data_as(POINTER(c_double))
        self._instance.library.bl_inputs(self._instance.handle, self._number, pointer)
        return values

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
