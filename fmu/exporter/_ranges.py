"""Ranges of variables that blocks declare: of parameters, and of outputs that never leave one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from ...blocks.core._ports import Port
from ...errors import BiellaError
from ...scheduler.compile._flatten import FlatBlock
from ...scheduler.compile._model import Model
from ._variables import Variable

Range = tuple[float | None, float | None]


def with_declared_ranges(
    model: Model, variables: Sequence[Variable], *, outputs: bool
) -> list[Variable]:
    """Return the variables with the ranges that blocks declare.

    With `outputs` also those of outputs and local variables. A limit that is a parameter of a block
    counts only if the FMU does not show that parameter: a tool could change it.

    Raises
    ------
    BiellaError
        If a parameter has a value outside its range.
    """
    shown = {v.name for v in variables if v.causality == "parameter"}
    ranges = _list_parameters(model)
    if outputs:
        ranges |= _list_outputs(model, variables, shown)
    return [_with_range(v, ranges.get(v.name, (None, None))) for v in variables]


def _with_range(variable: Variable, found: Range) -> Variable:
    low, high = (None if value is None or np.isinf(value) else float(value) for value in found)
    outside = [
        value
        for value in variable.start or ()
        if (low is not None and value < low) or (high is not None and value > high)
    ]
    if outside:
        raise BiellaError(
            f"`{variable.name}` is {outside[0]:g}, outside its range from "
            f"{'-inf' if low is None else f'{low:g}'} to {'inf' if high is None else f'{high:g}'}."
        )
    return replace(variable, minimum=low, maximum=high)


def _prefix(item: FlatBlock) -> str:
    return "" if item.bare else f"{item.path}."


def _list_parameters(model: Model) -> dict[str, Range]:
    return {
        _prefix(item) + parameter.name: (parameter.minimum, parameter.maximum)
        for item in model.flat.blocks
        for parameter in item.block.parameters
        if not parameter.hidden
    }


def _list_outputs(
    model: Model, variables: Sequence[Variable], shown: Collection[str]
) -> dict[str, Range]:
    """Return the ranges of outputs and local variables, by the block whose signal they are."""
    declared = {
        info.slot: _read_limits(item, port, model, shown)
        for item, block in zip(model.flat.blocks, model.blocks, strict=True)
        for port, info in zip(item.block.outputs, block.outputs, strict=True)
        if port.limits is not None
    }
    ports = {**model.signals, **model.outputs}
    return {
        v.name: declared[ports[v.name].slot]
        for v in variables
        if v.causality in ("output", "local") and ports[v.name].slot in declared
    }


def _read_limits(item: FlatBlock, port: Port, model: Model, shown: Collection[str]) -> Range:
    assert port.limits is not None
    found: list[float | None] = []
    for limit, loosest in zip(port.limits, (np.min, np.max), strict=True):
        if not isinstance(limit, str):
            found.append(limit)
            continue
        name = _prefix(item) + limit
        if name in shown or name not in model.parameters:
            found.append(None)
            continue
        info = model.parameters[name]
        values = model.first_values[info.slot : info.slot + info.size]
        found.append(float(loosest(values)))
    return found[0], found[1]
