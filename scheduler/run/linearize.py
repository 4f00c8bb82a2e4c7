"""`linearize`: a diagram as a linear state space about an operating point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from ...blocks.core.block import NativeBlock
from ...errors import BiellaError
from ..compile.diagram import Diagram
from ..compile.model import Model
from ..compile.plan import Plan, PortInfo, slots_of
from ..engine.engine import Instance

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

    Derivatives are central differences, with steps of 6e-6 of a value of 1 or more, or smaller by
    100 or 10⁴ where that is too coarse, as it is for an oil film; for a smooth diagram the relative
    error is about 1e-9, for a film about 1e-6.
    For its poles take ``numpy.linalg.eigvals(system.A)``: scipy's ``poles`` go through polynomials.

    A limit that is reached, and whether a conditional subsystem runs, count as they are at the
    operating point.

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
    model = plan = diagram.compile(inputs=inputs or (), outputs=outputs or ())
    if plan.foreign:
        raise BiellaError(
            f"{plan.name_foreign()} cannot be linearised: the states are not in the engine."
        )
    chosen_inputs = _choose(plan.inputs, inputs, "inputs")
    chosen_outputs = [plan.find_signal(name) for name in outputs or plan.outputs]
    if not chosen_outputs:
        raise BiellaError("linearize wants outputs: name them, or declare them with d.output(…).")
    ticks = _whole_ticks(plan, at) if isinstance(at, Real) else 0
    _check_sampled(model, period, ticks)
    with Instance(plan) as instance:
        if isinstance(at, Mapping):
            for path, value in at.items():
                instance.set(path, value)
        elif not isinstance(at, Real | None):
            raise BiellaError(f"at is a time in seconds, or values by path, not {at!r}.")
        instance.initialise()
        if instance.run(ticks)[0] < ticks:
            raise BiellaError(
                f"the run ended at t = {instance.time:g} s, before the operating point at "
                f"t = {at:g} s."
            )
        in_slots, out_slots = slots_of(chosen_inputs), slots_of(chosen_outputs)
        if period is None:
            return _continuous(instance, in_slots, out_slots)
        return _discrete(model, instance, in_slots, out_slots, period)


def _whole_ticks(plan: Plan, at: Real) -> int:
    ticks = round((float(at) - plan.start_time) / plan.step)
    if ticks < 0:
        raise BiellaError(
            f"the operating point at t = {at:g} s lies before the start, {plan.start_time:g} s."
        )
    return ticks


def _check_sampled(plan: Model, period: float | None, at: int) -> None:
    """Refuse what has no linearisation of the kind that is asked for, or none at tick `at`."""
    rates = np.vstack([plan.tick_rates, (1, 0)])  # of what passes on the outputs of own steps
    ticks = None if period is None else round(period / plan.step)
    for info, item, record in zip(plan.blocks, plan.flat.blocks, plan.block_records, strict=True):
        block = item.block
        every, offset = (int(v) for v in rates[record["rate"]])
        holds = record["z_count"] == 0 or (isinstance(block, NativeBlock) and block.memory_holds)
        if holds and every <= 1:
            continue  # nothing that could vary from tick to tick
        if isinstance(block, NativeBlock) and not (holds or block.smooth_memory):
            raise BiellaError(
                f"`{info.path}` ({info.type}) has memory that is no smooth state: it cannot be "
                f"linearised. Replace it, for this purpose, by what it does on average."
            )
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
        if every and at % every:
            raise BiellaError(
                f"at t = {plan.start_time + at * plan.step:g} s `{info.path}` ({info.type}, every "
                f"{info.rate}) is between two samples: linearise at a whole multiple of its period."
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
    plan: Model,
    instance: Instance,
    in_slots: list[int],
    out_slots: list[int],
    period: float,
) -> Any:
    from scipy.signal import StateSpace

    ticks = round(period / plan.step)
    if ticks < 1 or abs(ticks * plan.step - period) > 1e-9 * period:
        raise BiellaError(
            f"a period of {period:g} s is not a whole multiple of the step, {plan.step:g} s."
        )
    state_slots = _state_slots(plan, instance)

    def measure() -> Array:
        saved = instance.save()
        instance.evaluate()
        shown = instance.values[out_slots].copy()
        instance.run(ticks)
        reached = instance.values[state_slots].copy()
        instance.restore(saved)
        return np.concatenate([reached, shown])

    jacobian = _difference(instance, state_slots + in_slots, measure)
    n = len(state_slots)
    # Work memory is written before it is read, so nothing depends on what it was: it is no state.
    kept = np.flatnonzero(jacobian[:, :n].any(axis=0))
    forward, shown = jacobian[kept], jacobian[n:]
    return StateSpace(forward[:, kept], forward[:, n:], shown[:, kept], shown[:, n:], dt=period)


def _state_slots(plan: Model, instance: Instance) -> list[int]:
    """Where the states of all blocks lie: the continuous ones, and memory that is smooth."""
    layout = instance.layout
    first = layout.parameters + layout.signals
    slots = list(range(first, first + layout.states))
    for item, record in zip(plan.flat.blocks, plan.block_records, strict=True):
        block = item.block
        if isinstance(block, NativeBlock) and block.memory_holds:
            continue
        begin = first + layout.states + int(record["z_first"])
        slots += range(begin, begin + int(record["z_count"]))
    return slots


_SIZES = 6e-6 * np.array([1.0, 1e-2, 1e-4])
"""Of differences, as parts of a value that is 1 or more. The first is best for what is of that
size, the cube root of rounding; an oil film of some µm is nowhere near straight over it."""
_AGREEMENT = 1e-7
_ROUNDING = 1e-15


def _difference(instance: Instance, slots: list[int], measure: Any) -> Array:
    """Central differences of `measure` with respect to the values in `slots`.

    Where two sizes of step do not agree, there is a third, and of each entry that one is taken
    which differs least from the next, counting what rounding makes of it.
    """
    saved = instance.save()
    columns = [_differentiate(instance, slot, measure, saved) for slot in slots]
    rows = measure().size
    instance.restore(saved)
    return np.stack(columns, axis=1) if columns else np.empty((rows, 0))


def _differentiate(instance: Instance, slot: int, measure: Any, saved: bytes) -> Array:
    """Return one column of `_difference`."""
    found: list[tuple[Array, Array]] = []
    failure: BiellaError | None = None
    for size in _SIZES * max(1.0, abs(float(instance.values[slot]))):
        try:
            found.append(_central(instance, slot, float(size), measure, saved))
        except BiellaError as error:  # a block has no value there; nearer by it may have one
            failure = error
        if len(found) == 2 and failure is None and _agree(*found):
            return found[0][0]
    if not found and failure is not None:
        raise failure
    slopes, rounding = (np.array(parts) for parts in zip(*found, strict=True))
    errors = 10.0 * rounding
    apart = np.abs(np.diff(slopes, axis=0))
    errors[:-1] += apart
    if len(apart):
        errors[-1] += 1e-4 * apart[-1]
    best: Array = np.take_along_axis(slopes, errors.argmin(axis=0)[None], axis=0)[0]
    return best


def _central(
    instance: Instance, slot: int, size: float, measure: Any, saved: bytes
) -> tuple[Array, Array]:
    """Return the central difference over ±`size`, and how much of it may be rounding."""
    kept = float(instance.values[slot])
    points, ends = (kept + size, kept - size), []
    try:
        for value in points:
            instance.values[slot] = value
            instance.touch()
            ends.append(measure())
            instance.restore(saved)
    finally:
        instance.restore(saved)
    span = points[0] - points[1]
    return (ends[0] - ends[1]) / span, _ROUNDING * np.maximum(*np.abs(ends)) / span


def _agree(one: tuple[Array, Array], other: tuple[Array, Array]) -> bool:
    apart = np.abs(one[0] - other[0])
    return bool((apart <= _AGREEMENT * np.abs(one[0]) + 10.0 * other[1]).all())


def _choose(
    available: Mapping[str, PortInfo], names: Sequence[str] | None, what: str
) -> list[PortInfo]:
    if not available:
        raise BiellaError(f"linearize wants {what}: name them, or declare them with d.input(…).")
    return [available[name] for name in names] if names else list(available.values())
