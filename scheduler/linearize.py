"""`linearize`: a diagram as a linear state space about an operating point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..blocks.block import NativeBlock
from ..errors import BiellaError
from .diagram import Diagram
from .engine import Instance
from .flatten import flatten
from .plan import Plan, PortInfo

Array = npt.NDArray[np.float64]


def linearize(
    diagram: Diagram,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    *,
    at: float | Mapping[str, Any] | None = None,
    period: float | None = None,
) -> Any:
    """Return ``scipy.signal.StateSpace`` of `diagram` from `inputs` to `outputs`.

    Without `period` the model is continuous: dx/dt = A x + B u, y = C x + D u. With `period` it is
    discrete: the map of all states, continuous and discrete, over that many seconds with the inputs
    held; a diagram with sampled blocks has only this one.

    Derivatives are central differences; for a smooth diagram the relative error is about 1e-9.

    Parameters
    ----------
    inputs, outputs
        Inputs or source blocks, and signals; those that the diagram declares if not given.
    at
        The operating point: a time in seconds to run to first, or values by path for parameters and
        inputs; the start if not given.
    period
        In seconds: a whole multiple of the period of every sampled block.

    Raises
    ------
    BiellaError
        If the diagram has sampled blocks and no `period` is given, or blocks whose memory is no
        smooth state, such as a counter.
    """
    plan = diagram.compile(inputs=inputs or (), outputs=outputs or ())
    chosen_inputs = _choose(plan.inputs, inputs, "inputs")
    chosen_outputs = [plan.find_signal(name) for name in outputs or plan.outputs]
    if not chosen_outputs:
        raise BiellaError("linearize wants outputs: name them, or declare them with d.output(…).")
    _check_sampled(diagram, plan, period)
    with Instance(plan) as instance:
        if isinstance(at, Mapping):
            for path, value in at.items():
                instance.set(path, value)
        instance.initialise()
        if isinstance(at, int | float):
            instance.run(round((at - plan.start_time) / plan.step))
        in_slots, out_slots = _slots(chosen_inputs), _slots(chosen_outputs)
        if period is None:
            return _continuous(instance, in_slots, out_slots)
        return _discrete(plan, instance, in_slots, out_slots, period)


def _check_sampled(diagram: Diagram, plan: Plan, period: float | None) -> None:
    """Refuse what has no linearisation of the kind that is asked for."""
    objects = {item.path: item.block for item in flatten(diagram).blocks}
    rates = np.frombuffer(plan.sections["RATE"], dtype="<i8").reshape(-1, 2)
    ticks = None if period is None else round(period / plan.step)
    for info, record in zip(plan.blocks, plan.block_records, strict=True):
        every, offset = (int(v) for v in rates[record["rate"]])
        if record["z_count"] == 0 and every <= 1:
            continue  # nothing to remember and nothing to hold
        if ticks is None:
            raise BiellaError(
                f"`{info.path}` ({info.type}) is sampled, so the diagram has no continuous "
                f"linearisation: give period=… in seconds."
            )
        if every and (ticks % every or offset):
            raise BiellaError(
                f"a period of {period:g} s is no whole multiple of that of `{info.path}`, "
                f"{info.rate}."
            )
        block = objects.get(info.path)
        if isinstance(block, NativeBlock) and record["z_count"] and not block.smooth_memory:
            raise BiellaError(
                f"`{info.path}` ({info.type}) has memory that is no smooth state: it cannot be "
                f"linearised. Replace it, for this purpose, by what it does on average."
            )


def _continuous(instance: Instance, in_slots: list[int], out_slots: list[int]) -> Any:
    from scipy.signal import StateSpace

    states = instance.states
    first = instance.layout.parameters + instance.layout.signals
    state_slots = list(range(first, first + states.size))

    def measure() -> Array:
        slopes = instance.derivatives()
        return np.concatenate([slopes, instance.values[out_slots]])

    instance.evaluate()
    jacobian = _difference(instance, state_slots + in_slots, measure)
    n = states.size
    return StateSpace(jacobian[:n, :n], jacobian[:n, n:], jacobian[n:, :n], jacobian[n:, n:])


def _discrete(
    plan: Plan, instance: Instance, in_slots: list[int], out_slots: list[int], period: float
) -> Any:
    from scipy.signal import StateSpace

    ticks = round(period / plan.step)
    if ticks < 1 or abs(ticks * plan.step - period) > 1e-9 * period:
        raise BiellaError(
            f"a period of {period:g} s is not a whole multiple of the step, {plan.step:g} s."
        )
    layout = instance.layout
    first = layout.parameters + layout.signals
    state_slots = list(range(first, first + layout.states + layout.memory))

    def measure() -> Array:
        saved = instance.save()
        instance.evaluate()
        shown = instance.values[out_slots].copy()
        instance.run(ticks)
        instance.evaluate()
        reached = instance.values[state_slots].copy()
        instance.restore(saved)
        return np.concatenate([reached, shown])

    jacobian = _difference(instance, state_slots + in_slots, measure)
    n = len(state_slots)
    return StateSpace(
        jacobian[:n, :n], jacobian[:n, n:], jacobian[n:, :n], jacobian[n:, n:], dt=period
    )


def _difference(instance: Instance, slots: list[int], measure: Any) -> Array:
    """Central differences of `measure` with respect to the values in `slots`."""
    saved = instance.save()
    columns = []
    for slot in slots:
        ends = []
        kept = float(instance.values[slot])
        size = 6e-6 * max(1.0, abs(kept))  # cube root of the rounding error: best for this formula
        points = (kept + size, kept - size)
        for value in points:
            instance.values[slot] = value
            instance.touch()
            ends.append(measure())
            instance.restore(saved)
        columns.append((ends[0] - ends[1]) / (points[0] - points[1]))
    rows = measure().size
    instance.restore(saved)
    return np.stack(columns, axis=1) if columns else np.empty((rows, 0))


def _choose(
    available: Mapping[str, PortInfo], names: Sequence[str] | None, what: str
) -> list[PortInfo]:
    if not available:
        raise BiellaError(f"linearize wants {what}: name them, or declare them with d.input(…).")
    return [available[name] for name in names] if names else list(available.values())


def _slots(ports: Sequence[PortInfo]) -> list[int]:
    return [port.slot + k for port in ports for k in range(port.width)]
