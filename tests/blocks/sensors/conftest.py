"""Sensors alone, fed with arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from biella import Diagram, simulate
from biella.blocks import Convert, Playback
from biella.blocks.authoring import NativeBlock

Measure = Callable[..., dict[str, NDArray[np.float64]]]


@pytest.fixture(scope="session")
def measure() -> Measure:
    """Return a function that gives all outputs of a block for inputs given tick by tick.

    Inputs go by name, of shape (ticks,) or (ticks, width); those not given keep their defaults.
    """

    def measure(
        block: NativeBlock,
        *,
        step: float = 1e-3,
        parameters: dict[str, Any] | None = None,
        **inputs: ArrayLike,
    ) -> dict[str, NDArray[np.float64]]:
        d = Diagram("one sensor", step=step)
        d.add(block, name="block")
        ticks = 0
        for name, values in inputs.items():
            samples = np.asarray(values, np.float64)
            ticks = len(samples)
            source = d.add(Playback(np.arange(ticks) * step, samples, interpolation="hold"))
            if block.inputs[block.input_index[name]].kind == "boolean":
                logic = d.add(Convert("boolean"))
                d.connect(source, logic)
                d.connect(logic, block[name])
            else:
                d.connect(source, block[name])
        named = {f"block.{name}": value for name, value in (parameters or {}).items()}
        result = simulate(
            d,
            (ticks - 1) * step,
            record=[f"block.{port.name}" for port in block.outputs],
            parameters=named,
            progress=False,
        )
        return {port.name: result[f"block.{port.name}"] for port in block.outputs}

    return measure
