"""Parameters whose values follow from a block's place in the diagram.

They are computed when a diagram is compiled and stored in the plan, so that a run, an exported FMU
and a replay use the same values, and equal diagrams have equal plans.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from ...blocks.core._ports import Parameter
from ._flatten import FlatDiagram

Array = npt.NDArray[np.float64]

_SEED_BITS = 53  # a whole number that a double holds


def derive_seed(path: str) -> int:
    """Return the seed of the block at `path`: the same on every machine and in every process."""
    digest = hashlib.sha256(path.encode()).digest()
    return int.from_bytes(digest[:8], "little") >> (64 - _SEED_BITS)


def derive_value(
    flat: FlatDiagram, number: int, parameter: Parameter, problems: list[str]
) -> Array:
    """Return the value of a parameter of block `number`."""
    if parameter.derived == "path":
        path = flat.blocks[number].path
        top = f"{flat.within}.{path}" if flat.within else path
        return np.asarray(derive_seed(top), dtype=np.float64)
    if parameter.derived == "gravity":
        return _find_gravity(flat, number, parameter, problems)
    return parameter.value


def _find_gravity(
    flat: FlatDiagram, number: int, parameter: Parameter, problems: list[str]
) -> Array:
    """Return the gravity of the nearest mechanisms upstream of the block's first input."""
    item = flat.blocks[number]
    level = {item.sources[0].block} if item.sources[0] is not None else set()
    seen: set[int] = set()
    while level := {n for n in level if n >= 0} - seen:
        found = {
            flat.blocks[n].path: gravity
            for n in sorted(level)
            if (gravity := flat.blocks[n].block.gravity) is not None
        }
        values: list[Array] = list(found.values())
        if any(not np.array_equal(values[0], other) for other in values):
            problems.append(
                f"`{item.path}.{item.block.inputs[0].name}` is connected to mechanisms with "
                f"different "
                f"gravity: {', '.join(f'`{path}` {g.tolist()}' for path, g in found.items())}. "
                f"Set `gravity` of `{item.path}` in m/s²."
            )
        if values:
            return values[0]
        seen |= level
        level = {
            source.block for n in level for source in flat.blocks[n].sources if source is not None
        }
    return parameter.value
