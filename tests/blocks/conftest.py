"""One block alone, fed with arrays or with functions of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from biella import Diagram, simulate
from biella.blocks import PythonBlock
from biella.blocks.authoring import AbstractBlock
from biella.blocks.basic.sources._playback import Playback
from biella.blocks.core._ports import Port

RunBlock = Callable[..., NDArray[np.float64]]


@pytest.fixture(scope="session")
def run_block() -> RunBlock:
    """Return a function that gives the output of a block for inputs given tick by tick.

    Each input has shape (ticks,) or (ticks, width); a source is given `ticks`.
    """

    def run(
        block: AbstractBlock,
        *inputs: ArrayLike,
        step: float = 0.01,
        ticks: int = 0,
        start: float = 0.0,
        parameters: Mapping[str, Any] | None = None,
        period: float | None = None,
    ) -> NDArray[np.float64]:
        diagram = Diagram("one block", step=step, start_time=start)
        diagram.add(block, name="block", period=period)
        for port, values in zip(block.inputs, inputs, strict=True):
            samples = np.asarray(values, np.float64)
            ticks = len(samples)
            times = start + np.arange(ticks) * step
            source = diagram.add(Playback(times, samples, interpolation="hold"))
            diagram.connect(source, block[port.name])
        named = {f"block.{name}": value for name, value in (parameters or {}).items()}
        until = start + (ticks - 1) * step
        return simulate(diagram, until, record=["block"], parameters=named)["block"]

    return run


class Follow(PythonBlock):
    """y = f(t), also in minor steps; with a period, held between its hits."""

    def __init__(
        self, function: Callable[[float], Any], *, period: float | None = None, kind: Any = "real"
    ) -> None:
        self.function = function
        width = np.size(function(0.0))
        super().__init__(outputs=[Port("y", width=width, kind=kind)], period=period)

    def output(self, t: float, x: Any, u: Any) -> Any:
        return self.function(t)


@pytest.fixture(scope="session")
def follow() -> type[Follow]:
    """Return the class of blocks that follow a function of time."""
    return Follow


@pytest.fixture(scope="session")
def sample() -> Callable[[Any, float], Callable[[float], Any]]:
    """Return a function that makes a function of time of values at the ticks."""
    return lambda values, step: lambda t: values[min(round(t / step), len(values) - 1)]


@pytest.fixture(scope="session")
def run() -> Callable[..., tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return a function that gives (t, y) of one block whose inputs are functions of time."""

    def run(
        block: AbstractBlock,
        inputs: Mapping[str, Callable[[float], Any]],
        *,
        until: float,
        step: float = 1e-2,
        solver: str = "rk4",
        held: bool = False,
        events: str = "locate",
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        d = Diagram(step=step, solver=solver, events=events)
        d.add(block, name="block")
        for name, function in inputs.items():
            source = d.add(Follow(function, period=step if held else None), name=f"of {name}")
            d.connect(source, block[name])
        result = simulate(d, until, record=["block.y"], progress=False)
        return result.t, result["block.y"]

    return run
