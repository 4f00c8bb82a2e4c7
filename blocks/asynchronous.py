"""`Asynchronous`: a slow block that a paced run does not wait for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DiagramError
from .ports import Port
from .python import PythonBlock

Values = npt.NDArray[np.float64]


class Asynchronous(PythonBlock):
    """A Python block that takes its time: its results come later, and the run goes on meanwhile.

    In a paced run a worker thread takes the newest inputs once in a period, computes, and hands the
    result over; it enters at the next tick, whenever that is. Offline a result comes exactly one
    period after its inputs, so that a run is the same every time.

    Outputs: those of the block, zero until the first result; ``since``, the time in s at which the
    inputs of the newest result were taken, and ``age``, how long that is ago.

    Parameters
    ----------
    block
        Any Python block without continuous states, with ports of fixed width.
    period
        In s, how often it starts to compute; a worker that is not done by then skips.
    """

    def __init__(self, block: PythonBlock, *, period: float) -> None:
        if not isinstance(block, PythonBlock):
            raise DiagramError(f"Asynchronous wants a Python block, got {block!r}.")
        if block.is_continuous:
            raise DiagramError(f"{block!r} has continuous states, which cannot wait for a worker.")
        taken = [port.name for port in block.outputs if port.name in ("since", "age")]
        if taken:
            raise DiagramError(f"{block!r} has an output `{taken[0]}`, as Asynchronous has.")
        self.block = block
        self.period = period
        self.widths = [_width(port, block) for port in block.outputs]
        for port in block.inputs:
            _width(port, block)
        # The block's state, its newest result, when that was begun; whether there is one.
        state = np.concatenate([block.initial_state, np.zeros(sum(self.widths) + 1)])
        super().__init__(
            inputs=list(block.inputs),
            outputs=[
                *block.outputs,
                Port("since", unit="s", doc="when the inputs of the newest result were taken"),
                Port("age", unit="s", doc="how long that is ago"),
            ],
            state=state,
            period=period,
            feedthrough=False,
        )

    def __repr__(self) -> str:
        return f"Asynchronous({self.block!r})"

    def compute(self, t: float, x: Values, u: Any) -> tuple[Values, Values]:
        """Return the block's outputs one after the other, and its next state."""
        given = self.block.output(t, x, u) if self.widths else ()  # type: ignore[attr-defined]
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


def _width(port: Port, block: PythonBlock) -> int:
    if not isinstance(port.width, int):
        raise DiagramError(
            f"Asynchronous wants ports of fixed width, unlike `{port.name}` of {block!r}: declare "
            f"it as Port({port.name!r}, width)."
        )
    return port.width
