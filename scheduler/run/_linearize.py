"""`linearize`: a diagram as a linear state space about an operating point."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...blocks.core._block import AbstractBlock, NativeBlock
from ...blocks.core._ports import Same
from ...blocks.core._units import Unit
from ...errors import BiellaError, name_list, suggest
from ..compile._model import Model
from ..compile.diagram._diagram import Diagram
from ..compile.plan._plan import Plan, slots_of
from ..engine._engine import Instance
from ._linear_model import LinearModel, OperatingPoint, list_elements

Array = npt.NDArray[np.float64]


def linearize(
    diagram: Diagram | AbstractBlock,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    *,
    at: float | Mapping[str, npt.ArrayLike] | None = None,
    period: float | None = None,
) -> LinearModel:
    """Return the linear state space of a diagram or a block about an operating point.

    Without `period` the model is continuous: dx/dt = A x + B u, y = C x + D u. With `period` it is
    discrete: the map of all states, continuous and discrete, over that many seconds with the inputs
    held; a diagram with sampled blocks has only this one.

    Derivatives are central differences, with steps of 6e-6 of a value of 1 or more, or smaller by
    100 or 10⁴ where that is too coarse, as it is for an oil film; for a smooth diagram the relative
    error is about 1e-9, for a film about 1e-6.

    Active limits, the modes of blocks with discontinuities such as `Saturation`, `Abs` or an
    `Expression` with ``where``, and the activity of conditional subsystems are those at the
    operating point: no difference is taken across a kink or a jump. A `Relay` that continuous
    states depend on holds its output, so its gain is zero.

    Parameters
    ----------
    diagram
        A diagram, or a block alone, such as ``system.block(…)``.
    inputs, outputs
        For a diagram: inputs or source blocks, and signals; by default the inputs and outputs that
        it declares, if any. For a block: ports; by default all of them.
    at
        The operating point: a time in seconds up to which to simulate, or values by path for
        parameters and inputs. By default the initial state.
    period
        Period in seconds: a whole multiple of the period of every sampled block.

    Raises
    ------
    BiellaError
        If the diagram has sampled blocks and no `period` is given, or blocks whose memory is not a
        smooth state, such as a counter.

    Examples
    --------
    >>> model = linearize(system.block(["motor.torque"], ["hinge.angle"]))
    >>> model.states, model.poles()
    """
    if isinstance(diagram, Diagram):
        return _linearize(diagram, inputs, outputs, at, period)
    if not isinstance(diagram, AbstractBlock):
        raise BiellaError(f"linearize requires a Diagram or a block, got {diagram!r}.")
    wrapped, sources, shown = _wrap(diagram, inputs, outputs, period)
    if isinstance(at, Mapping):
        at = {sources.get(path, f"{_BLOCK}.{path}"): value for path, value in at.items()}
    chosen = list(sources) if inputs is None else inputs
    found = _linearize(
        wrapped, [sources[name] for name in chosen], list(shown.values()), at, period
    )
    return _without_wrapper(found, {new: old for old, new in (sources | shown).items()})


_BLOCK = "block"


def _wrap(
    block: AbstractBlock,
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
    period: float | None,
) -> tuple[Diagram, dict[str, str], dict[str, str]]:
    """Return a diagram of the block alone, with its inputs and outputs by the block's names."""
    step = 1e-3
    sampled = block.rate.kind in ("sampled", "switching")
    if block.rate.kind == "periodic":
        step = block.rate.period
    elif sampled and period is not None:
        step = period
    elif period is not None:
        step = period / max(1, math.ceil(period / step - 1e-9))
    diagram = Diagram(type(block).__name__, step=step)
    diagram.add(block, name=_BLOCK, period=period if sampled else None)
    sources: dict[str, str] = {}
    shown: dict[str, str] = {}
    wanted = [port.name for port in block.inputs] if inputs is None else inputs
    for name in wanted:
        if name not in block.input_index:
            raise BiellaError(
                f"{block} has no input `{name}`.{suggest(name, block.input_index)} "
                f"Inputs: {name_list(block.input_index)}."
            )
    for number, port in enumerate(block.inputs):
        if port.name not in wanted and port.default is not None:
            continue
        source = diagram.input(
            f"u{number}",
            unit=str(port.unit) if isinstance(port.unit, Unit) else None,
            default=0.0 if port.default is None else port.default,
            width=port.width if isinstance(port.width, int) else 1,
            kind="real" if isinstance(port.kind, Same) else port.kind,
        )
        diagram.connect(source, block[port.name])
        sources[port.name] = f"u{number}"
    for name in [port.name for port in block.outputs] if outputs is None else outputs:
        if name not in block.output_index:
            raise BiellaError(
                f"{block} has no output `{name}`.{suggest(name, block.output_index)} "
                f"Outputs: {name_list(block.output_index)}."
            )
        shown[name] = f"y{block.output_index[name]}"
        diagram.output(shown[name], block[name])
    return diagram, sources, shown


def _without_wrapper(model: LinearModel, names: Mapping[str, str]) -> LinearModel:
    """Return the model with the names that inputs, outputs and states have in the block."""

    def own(name: str) -> str:
        base, bracket, element = name.partition("[")
        return names.get(base, base.removeprefix(f"{_BLOCK}.")) + bracket + element

    point = model.operating_point
    values = {
        what: {own(name): value for name, value in getattr(point, what).items()}
        for what in ("states", "inputs", "outputs")
    }
    return replace(
        model,
        states=tuple(own(name) for name in model.states),
        inputs=tuple(own(name) for name in model.inputs),
        outputs=tuple(own(name) for name in model.outputs),
        operating_point=OperatingPoint(point.time, **values),
    )


def _linearize(
    diagram: Diagram,
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
    at: float | Mapping[str, npt.ArrayLike] | None,
    period: float | None,
) -> LinearModel:
    plan = diagram.compile(inputs=inputs or (), outputs=outputs or ())
    hidden = {n for n, block in plan.external.items() if not block.has_engine_states}
    if hidden:
        raise BiellaError(
            f"{plan.name_external(hidden)} cannot be linearized: its states are not accessible to "
            f"the engine."
        )
    shown = list(plan.outputs if outputs is None else outputs)
    chosen_inputs = [plan.inputs[name] for name in (plan.inputs if inputs is None else inputs)]
    chosen_outputs = [plan.find_signal(name) for name in shown]
    ticks = _whole_ticks(plan, at) if isinstance(at, Real) else 0
    _check_sampled(plan, period, ticks)
    with Instance(plan) as instance:
        if isinstance(at, Mapping):
            for path, value in at.items():
                instance.set(path, value)
        elif not isinstance(at, Real | None):
            raise BiellaError(
                f"`at` must be a time in s or a mapping of values by path, got {at!r}."
            )
        instance.initialize()
        if instance.run(ticks)[0] < ticks:
            raise BiellaError(
                f"the run ended at t = {instance.time:g} s, before the operating point at "
                f"t = {at:g} s."
            )
        in_slots, out_slots = slots_of(chosen_inputs), slots_of(chosen_outputs)
        states = _list_states(plan, instance, discrete=period is not None)
        instance.evaluate()
        here = instance.values.copy()
        with instance.frozen_modes():
            if period is None:
                found = _continuous(instance, states, in_slots, out_slots)
            else:
                found = _discrete(plan, instance, states, in_slots, out_slots, period)
        names = list_elements([(port.path, port.width) for port in chosen_inputs])
        seen = list_elements(
            [(name, port.width) for name, port in zip(shown, chosen_outputs, strict=True)]
        )
        kept, a, b, c, d = found
        states = [states[k] for k in kept]
        sign = np.array([state.sign for state in states], dtype=np.float64)
        return LinearModel(
            A=sign[:, None] * a * sign,
            B=sign[:, None] * b,
            C=c * sign,
            D=d,
            states=tuple(state.name for state in states),
            inputs=tuple(names),
            outputs=tuple(seen),
            dt=period,
            operating_point=OperatingPoint(
                time=instance.time,
                states={s.name: s.sign * float(here[s.slot]) for s in states},
                inputs={n: float(v) for n, v in zip(names, here[in_slots], strict=True)},
                outputs={n: float(v) for n, v in zip(seen, here[out_slots], strict=True)},
            ),
        )


def _whole_ticks(plan: Plan, at: Real) -> int:
    ticks = round((float(at) - plan.start_time) / plan.step)
    if ticks < 0:
        raise BiellaError(
            f"the operating point at t = {at:g} s is before the start time, {plan.start_time:g} s."
        )
    return ticks


def _check_sampled(plan: Model, period: float | None, at: int) -> None:
    """Reject blocks without a linearization of the requested kind, or at tick `at`."""
    rates = np.vstack([plan.tick_rates, (1, 0)])  # of what passes on the outputs of internal steps
    ticks = None if period is None else round(period / plan.step)
    located = set(np.frombuffer(plan.sections.get("EVNT", b""), dtype="<i4").tolist())
    for number, (info, item, record) in enumerate(
        zip(plan.blocks, plan.flat.blocks, plan.block_records, strict=True)
    ):
        block = item.block
        every, offset = (int(v) for v in rates[record["rate"]])
        holds = record["z_count"] == 0 or (
            isinstance(block, NativeBlock)
            and (block.memory_holds or (block.memory_is_mode and number in located))
        )
        if holds and every <= 1:
            continue  # nothing that could vary from tick to tick
        if isinstance(block, NativeBlock) and not (holds or block.smooth_memory):
            raise BiellaError(
                f"`{info.path}` ({info.type}) has discrete memory that is not a smooth state "
                f"and cannot be linearized. Replace it by its averaged behavior."
            )
        if ticks is None:
            raise BiellaError(
                f"`{info.path}` ({info.type}) is sampled, so the diagram has no continuous "
                f"linearization: set period=… in s."
            )
        if every and (ticks % every or offset):
            raise BiellaError(
                f"a period of {period:g} s is not an integer multiple of the period of "
                f"`{info.path}`, "
                f"{info.rate}."
            )
        if every and at % every:
            raise BiellaError(
                f"at t = {plan.start_time + at * plan.step:g} s `{info.path}` ({info.type}, every "
                f"{info.rate}) is between two samples: linearize at an integer multiple of its "
                f"period."
            )


class _State(NamedTuple):
    """A state of the model: minus the value in its slot if `sign` is -1."""

    name: str
    slot: int
    sign: int = 1


Matrices = tuple[Sequence[int], Array, Array, Array, Array]
"""Which of the states are those of the model, then A, B, C, D."""


def _continuous(
    instance: Instance, states: list[_State], in_slots: list[int], out_slots: list[int]
) -> Matrices:
    def measure() -> Array:
        slopes = instance.derivatives()
        return np.concatenate([slopes, instance.values[out_slots]])

    jacobian = _difference(instance, [s.slot for s in states] + in_slots, measure)
    n = len(states)
    return range(n), jacobian[:n, :n], jacobian[:n, n:], jacobian[n:, :n], jacobian[n:, n:]


def _discrete(
    plan: Model,
    instance: Instance,
    states: list[_State],
    in_slots: list[int],
    out_slots: list[int],
    period: float,
) -> Matrices:
    ticks = round(period / plan.step)
    if ticks < 1 or abs(ticks * plan.step - period) > 1e-9 * period:
        raise BiellaError(
            f"a period of {period:g} s is not an integer multiple of the step, {plan.step:g} s."
        )
    state_slots = [state.slot for state in states]

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
    # Work memory is written before it is read: its past value has no effect, it is not a state.
    kept = np.flatnonzero(jacobian[:, :n].any(axis=0))
    forward, shown = jacobian[kept], jacobian[n:]
    return kept.tolist(), forward[:, kept], forward[:, n:], shown[:, kept], shown[:, n:]


def _list_states(plan: Model, instance: Instance, discrete: bool) -> list[_State]:
    """Return the continuous states of all blocks and, if discrete, memory that is smooth."""
    layout = instance.layout
    first = layout.parameters + layout.signals
    continuous: list[_State] = []
    sampled: list[_State] = []
    for item, record in zip(plan.flat.blocks, plan.block_records, strict=True):
        block = item.block
        begin, count = first + int(record["x_first"]), int(record["x_count"])
        given = block.state_names or list_elements([("x", count)])
        for k, name in enumerate(given[:count]):
            plain = name.removeprefix("-")
            sign = 1 if plain == name else -1
            continuous.append(_State(f"{item.path}.{plain}", begin + k, sign))
        if isinstance(block, NativeBlock) and (block.memory_holds or block.memory_is_mode):
            continue
        begin, count = first + layout.states + int(record["z_first"]), int(record["z_count"])
        names = list_elements([(f"{item.path}.z", count)])
        sampled += [_State(name, begin + k) for k, name in enumerate(names)]
    continuous.sort(key=lambda state: state.slot)
    return continuous + sampled if discrete else continuous


_SIZES = 6e-6 * np.array([1.0, 1e-2, 1e-4])
"""Of differences, as parts of a value that is 1, or its nominal value, or more. The first is best
for what is of that size, the cube root of rounding; an oil film of some µm is nowhere near straight
over it."""
_AGREEMENT = 1e-7
_ROUNDING = 1e-15


def _difference(instance: Instance, slots: list[int], measure: Callable[[], Array]) -> Array:
    """Central differences of `measure` with respect to the values in `slots`.

    A third step size is used where two do not agree. Each entry is taken from the step size that
    differs least from the next one, including the estimated rounding error.
    """
    saved = instance.save()
    columns = [_differentiate(instance, slot, measure, saved) for slot in slots]
    rows = measure().size
    instance.restore(saved)
    return np.stack(columns, axis=1) if columns else np.empty((rows, 0))


def _differentiate(
    instance: Instance, slot: int, measure: Callable[[], Array], saved: bytes
) -> Array:
    """Return one column of `_difference`."""
    found: list[tuple[Array, Array]] = []
    failure: BiellaError | None = None
    nominal = float(instance.library.bl_nominal(instance.handle, slot))
    for size in _SIZES * max(nominal, abs(float(instance.values[slot]))):
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
    instance: Instance, slot: int, size: float, measure: Callable[[], Array], saved: bytes
) -> tuple[Array, Array]:
    """Return the central difference over ±`size` and its estimated rounding error."""
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
