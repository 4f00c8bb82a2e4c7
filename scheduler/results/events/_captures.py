"""Captures of Trigger blocks, as separate results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....blocks.daq._trigger import Trigger
from ...engine._library import contract
from .._result_file import Array, Capture
from .._signals import ResultError, Signal

if TYPE_CHECKING:
    from ...compile.plan._plan import Plan
    from ...engine._engine import Instance
    from .._result import Result


Captures = dict[str, "Result | str"]
"""The capture of each Trigger, or the reason why there is none."""


def declare_captures(plan: Plan) -> list[Signal]:
    """Return the Triggers of a plan, as signals with the width and unit of what they capture."""
    return [
        Signal(block.path, block.inputs[0].width, block.inputs[0].unit)
        for block in (plan.blocks[number] for number in _find_triggers(plan))
    ]


def read_captures(instance: Instance) -> Captures:
    """Return for each Trigger of a run its record, or why it has none."""
    plan = instance.plan
    return {plan.blocks[number].path: _read(instance, number) for number in _find_triggers(plan)}


def pack_captures(captures: Captures) -> list[Capture]:
    """Return records as a file has them."""
    packed: list[Capture] = []
    for path, found in captures.items():
        if isinstance(found, str):
            packed.append((Signal(path), np.empty((0, 2)), found))
            continue
        signal = found.signals["u"]
        rows = np.column_stack([found.t, found["u"]])
        packed.append((Signal(path, signal.width, signal.unit), rows, found.info))
    return packed


def unpack_captures(packed: list[Capture]) -> Captures:
    """Return records from what a file has."""
    return {
        signal.path: about
        if isinstance(about, str)
        else _make_record(rows[:, 0], rows[:, 1:], signal.unit, about)
        for signal, rows, about in packed
    }


def _find_triggers(plan: Plan) -> list[int]:
    return [number for number, kernel in enumerate(plan.kernels) if kernel == Trigger.kernel]


def _make_record(t: Array, samples: Array, unit: str | None, about: Any) -> Result:
    from .._result import Result

    return Result.from_arrays(t, {Signal("u", samples.shape[1], unit): samples}, info=about)


def _read(instance: Instance, number: int) -> Result | str:
    plan = instance.plan
    block, place = plan.blocks[number], plan.block_records[number]
    kept = instance.memory[place["z_first"] : place["z_first"] + place["z_count"]]
    phase, count = kept[contract.TRIGGER_PHASE], kept[contract.TRIGGER_KEPT]
    time, newest = kept[contract.TRIGGER_TIME], kept[contract.TRIGGER_LAST_TIME]
    if phase < contract.TRIGGER_FILLING:
        return "its event did not occur, or fewer samples than `pre` preceded it"
    if phase < contract.TRIGGER_READY:
        left = kept[contract.TRIGGER_LEFT]
        return f"{left:g} samples after its event were missing when the run ended"
    port = block.inputs[0]
    ring = kept[contract.TRIGGER_SAMPLES :].reshape(-1, port.width)
    samples = np.roll(ring, -int(kept[contract.TRIGGER_OLDEST]), axis=0)
    period = max(int(plan.tick_rates[place["rate"], 0]), 1) * plan.step
    t = newest - period * np.arange(count - 1, -1, -1)
    about = {"diagram": f"{plan.name}: {block.path}", "step": period, "trigger_time": float(time)}
    return _make_record(t, samples, port.unit, about)


def find_capture(captures: Captures, name: str) -> Result:
    """Return the record of a Trigger, or raise an error that lists the valid names."""
    if name not in captures:
        there = ", ".join(captures) or "none"
        raise ResultError(f"there is no Trigger `{name}` in this run. Triggers: {there}.")
    found = captures[name]
    if isinstance(found, str):
        raise ResultError(f"`{name}` has no capture: {found}.")
    return found
