"""One bearing, asked directly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np
import pytest

from biella.blocks.bearings import AbstractBearing
from biella.blocks.bearings._analysis import open_film

Answer = dict[str, np.ndarray]


@pytest.fixture
def ask() -> Iterator[Callable[..., Answer]]:
    """Return a function that evaluates a bearing: all its outputs by name.

    A position or velocity of two numbers is given to both ends of a bearing that may tilt. A
    bearing is kept open, so that a finite film starts from the last one.
    """
    with ExitStack() as stack:
        films = {}

        def answer(bearing: AbstractBearing, position, velocity=(0.0, 0.0), speed=0.0, bush=0.0):
            if bearing not in films:
                films[bearing] = stack.enter_context(open_film(bearing))
            instance = films[bearing].instance
            for name, value in (("position", position), ("velocity", velocity)):
                value = np.asarray(value, dtype=float)
                instance.set(name, np.tile(value, 2 * bearing.ends // value.size))
            instance.set("journal_speed", speed)
            instance.set("bush_speed", bush)
            instance.run(1)
            instance.evaluate()
            return {port.name: films[bearing].read(port.name) for port in bearing.outputs}

        yield answer
