"""A result with signals of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import Signal

T = np.arange(101) * 0.01


@pytest.fixture
def result() -> Result:
    return Result.from_arrays(
        T,
        {
            Signal("ref.y", unit="rad/s"): np.where(T < 0.5, 0.0, 30.0),
            Signal("encoder.speed", unit="rad·s^-1", sampled=True): np.round(30 * T),
            Signal("pid.u", unit="N.m"): np.sin(7 * T),
            Signal("pid.saturated", kind="boolean"): np.sin(7 * T) > 0.5,
            Signal("sub.plant.force", 3, "N"): np.outer(T, [1.0, 2.0, 3.0]),
        },
        aliases={"ref": "ref.y", "lost": "lost.y"},
        info={"diagram": "loop", "step": 0.01, "ticks": 100, "stopped": None},
    )
