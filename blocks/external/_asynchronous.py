"""`Asynchronous`: a slow block that a real-time run does not wait for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..._services import find_service
from ...errors import DiagramError
from ..core._ports import Numbers, Port
from ._python import PythonBlock

Values = npt.NDArray[np.float64]


def Asynchronous(what: object, *, period: float) -> AbstractAsynchronous:
    """Return a block that computes asynchronously: its results arrive later.

    In a real-time run a worker thread reads the newest inputs once per period, without blocking
    the run. Its result is applied at the first tick after it is complete. Offline a result is
    applied exactly one period after its inputs, so that runs are reproducible.

    Outputs: those of `what`; ``since``, the time in s at which the inputs of the newest result were
    read, and ``age``, the time in s since then.

    A Python block computes its outputs from the inputs; they are zero until the first result. If
    it is not done within a period, it skips the missed periods.

    An FMU, any other block, or a whole diagram is a model with its own time. It advances one
    period ahead with its internal solver and with constant inputs. Until the first result its
    outputs are the initial ones. It never skips a period: when it is late, it computes the next
    periods without a pause. Its parameters are those at construction.

    Parameters
    ----------
    what
        A Python block without continuous states, an `Fmu`, another block, or a `Diagram`. Ports
        have fixed widths.
    period
        In s, how often it starts to compute. The steps of a model fit into it: those of a diagram,
        the period of an FMU; for a block without one it is a single step.
    """
    if isinstance(what, PythonBlock) and not what.has_internal_solver:
        return AsynchronousPython(what, period)
    model: AbstractAsynchronous = find_service("AsynchronousModel")(what, period)
    return model


class Computation(Protocol):
    """What a worker does in one run."""

    skips: bool
    """Whether it leaves out periods that it is too late for."""

    def compute(self, t: float, inputs: Sequence[Values]) -> Values:
        """Return the results for the inputs of time `t`, one port after the other."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class AbstractAsynchronous(PythonBlock):
    """A block that a worker computes; made by `Asynchronous`."""

    designs_with_period = True

    def __init__(
        self, inputs: Sequence[Port], outputs: Sequence[Port], period: float, state: Numbers = ()
    ) -> None:
        taken = [port.name for port in outputs if port.name in ("since", "age")]
        if taken:
            raise DiagramError(f"{self} already has an output `{taken[0]}`.")
        self.period = period
        self.widths = [self._width(port) for port in outputs]
        for port in inputs:
            self._width(port)
        super().__init__(
            inputs=inputs,
            outputs=[
                *outputs,
                Port("since", unit="s", doc="when the inputs of the newest result were taken"),
                Port("age", unit="s", doc="time since then"),
            ],
            state=state,
            period=period,
            feedthrough=False,
        )

    @abstractmethod
    def begin(self, start_time: float, path: str) -> Computation:
        """Open it for a worker; `path` is its own in the top diagram."""

    def first_results(self, start_time: float, path: str) -> Values:
        """Return the outputs before the first result."""
        return np.zeros(sum(self.widths))

    def _width(self, port: Port) -> int:
        if not isinstance(port.width, int):
            raise DiagramError(
                f"{self} needs ports of fixed width, unlike `{port.name}`: declare that as "
                f"Port({port.name!r}, width), or put the block into a Diagram whose inputs have "
                f"widths, and pass the Diagram."
            )
        return port.width


class AsynchronousPython(AbstractAsynchronous):
    """A Python block that a worker computes; made by `Asynchronous`."""

    def __init__(self, block: PythonBlock, period: float) -> None:
        self.block = block
        if block.is_continuous:
            raise DiagramError(
                f"{block} has continuous states, which cannot wait for a worker: put it into a "
                f"Diagram and give that."
            )
        outputs = list(block.outputs)
        widths = sum(port.width for port in outputs if isinstance(port.width, int))
        # The block's state, its newest result, when that was begun.
        state = np.concatenate([block.initial_state, np.zeros(widths + 1)])
        super().__init__(block.inputs, outputs, period, state)

    def __str__(self) -> str:
        return f"Asynchronous({self.block})"

    def begin(self, start_time: float, path: str) -> Computation:
        return PythonComputation(self)

    def compute(self, t: float, x: Values, u: Any) -> tuple[Values, Values]:
        """Return the block's outputs one after the other, and its next state."""
        given = self.block.output(t, x, u) if self.widths else ()  # type: ignore[attr-defined]
        if given is None:
            raise TypeError("output returned None: every path needs a `return`")
        outputs = (given,) if len(self.widths) == 1 else given
        if len(outputs) != len(self.widths):
            raise TypeError(f"output must return {len(self.widths)} values, got {given!r}")
        parts = [np.asarray(value, dtype=np.float64).ravel() for value in outputs]
        for part, width in zip(parts, self.widths, strict=True):
            if part.size != width:
                raise ValueError(f"output must return {width} values, got {part.size}")
        if x.size:
            x = np.array(self.block.update(t, x, u), dtype=np.float64).ravel()  # type: ignore[attr-defined]
        return np.concatenate([np.empty(0), *parts]), x

    def output(self, t: float, x: Any, u: Any) -> Any:
        since = float(x[-1])
        place, results = self.block.initial_state.size, []
        for width in self.widths:
            results.append(x[place] if width == 1 else x[place : place + width])
            place += width
        return [*results, since, t - since]

    def update(self, t: float, x: Any, u: Any) -> Any:
        results, state = self.compute(t, np.array(x[: self.block.initial_state.size]), u)
        return np.concatenate([state, results, [t]])


class PythonComputation:
    """A Python block in a worker, with its state."""

    skips = True

    def __init__(self, slow: AsynchronousPython) -> None:
        self.slow = slow
        self.state = slow.block.initial_state.copy()

    def compute(self, t: float, inputs: Sequence[Values]) -> Values:
        read = [float(values[0]) if values.size == 1 else values for values in inputs]
        u = read[0] if len(read) == 1 else tuple(read)
        results, self.state = self.slow.compute(t, self.state, u)
        return results

    def close(self) -> None:
        pass
