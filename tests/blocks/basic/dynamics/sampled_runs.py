"""Runs of one discrete block, and restored runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from biella import Diagram, Plan, simulate
from biella.blocks import PythonBlock
from biella.blocks.authoring import NativeBlock
from biella.blocks.core._ports import Port

Array = npt.NDArray[np.float64]
STEP = 0.01
U = np.random.default_rng(7).standard_normal((300, 2))


class Samples(PythonBlock):
    """Row k of an array at tick k."""

    def __init__(self, values: Array, *, unit: str | None = None, kind: Any = "real") -> None:
        self.values = values
        width = 1 if values.ndim == 1 else values.shape[1]
        super().__init__(outputs=[Port("y", width=width, unit=unit, kind=kind)], period=STEP)

    def output(self, t: float, x: Any, u: Any) -> Any:
        return self.values[min(round(t / STEP), len(self.values) - 1)]


def run(block: NativeBlock, u: Array = U, **rate: Any) -> Array:
    """Return the output of one block at each tick."""
    d = Diagram(step=STEP)
    d.add(block, name="block", inputs=d.add(Samples(u), name="u"), **rate)
    return simulate(d, STEP * (len(u) - 1), progress=False)["block"]


def go_on(instance: Any, evaluations: int) -> list[bytes]:
    """Return the states after 90 more ticks, with so many extra evaluations before each."""
    seen = []
    for _ in range(90):
        for _ in range(evaluations):
            instance.touch()
            instance.evaluate()
        instance.run(1)
        instance.evaluate()
        seen.append(instance.save())
    return seen


def check_restored_runs(plan: Plan) -> None:
    """Compare a run with two that start from a state in the middle of it, bit by bit."""
    with plan.instantiate() as first, plan.instantiate() as second:
        start = first.save()
        first.run(37)
        state = first.save()
        assert state != start
        through = go_on(first, 0)
        assert len(set(through)) == 90
        first.restore(state)
        second.restore(state)
        # Outputs are pure: evaluating them again and again leaves no trace.
        assert go_on(first, 3) == through
        assert go_on(second, 0) == through
