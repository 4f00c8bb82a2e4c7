"""One block alone, fed with arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from biella import Diagram, simulate
from biella.blocks import AbstractBlock
from biella.blocks.playback import Playback

RunBlock = Callable[..., NDArray[np.float64]]


@pytest.fixture
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
    ) -> NDArray[np.float64]:
        diagram = Diagram("one block", step=step, start=start)
        diagram.add(block, name="block")
        for port, values in zip(block.inputs, inputs, strict=True):
            ticks = len(np.asarray(values))
            times = start + np.arange(ticks) * step
            source = diagram.add(Playback(times, values, interpolation="hold"))
            diagram.connect(source, block[port.name])
        named = {f"block.{name}": value for name, value in (parameters or {}).items()}
        until = start + (ticks - 1) * step
        return simulate(diagram, until, record=["block"], parameters=named)["block"]

    return run
