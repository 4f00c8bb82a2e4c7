"""What Trigger blocks have captured, as results of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..blocks.daq.trigger import MEMORY, Trigger
from .signals import ResultError, Signal

if TYPE_CHECKING:
    from .engine import Instance
    from .result import Result

_FILLING, _READY = 1, 2


def read_captures(instance: Instance) -> dict[str, Result | str]:
    """Return for each Trigger of a run its record, or why it has none."""
    plan = instance.plan
    kernels = plan.sections["KERN"].split(b"\0")
    return {
        plan.blocks[number].path: _read(instance, number)
        for number, record in enumerate(plan.block_records)
        if kernels[record["kernel"]] == Trigger.kernel.encode()
    }


def _read(instance: Instance, number: int) -> Result | str:
    from .result import Result

    plan = instance.plan
    block, place = plan.blocks[number], plan.block_records[number]
    kept = instance.memory[place["z_first"] : place["z_first"] + place["z_count"]]
    phase, count, left, time, _, _, newest, oldest = kept[:MEMORY]
    if phase < _FILLING:
        return "its event did not happen, or fewer samples than `pre` were there before it"
    if phase < _READY:
        return f"{left:g} samples after its event were still to come when the run ended"
    port = block.inputs[0]
    samples = np.roll(kept[MEMORY:].reshape(-1, port.width), -int(oldest), axis=0)
    rates = np.frombuffer(plan.sections["RATE"], dtype="<i8").reshape(-1, 2)
    period = max(int(rates[place["rate"], 0]), 1) * plan.step
    t = newest - period * np.arange(count - 1, -1, -1)
    return Result.from_arrays(
        t,
        {Signal("u", port.width, port.unit): samples},
        info={"diagram": f"{plan.name}: {block.path}", "step": period, "trigger_time": float(time)},
    )


def find_capture(captures: dict[str, Result | str], name: str) -> Result:
    """Return the record of a Trigger, or raise an error that says what there is."""
    if name not in captures:
        there = ", ".join(captures) or "none"
        raise ResultError(
            f"there is no Trigger `{name}` in this run. Triggers: {there}. Records are kept with "
            f"the result that `simulate` returns, not in its files: save one by itself."
        )
    found = captures[name]
    if isinstance(found, str):
        raise ResultError(f"`{name}` has no record: {found}.")
    return found
