"""Clocks of an exported FMU: the sampled rates of the diagram."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from ctypes import byref, c_uint64
from dataclasses import dataclass, replace

from ...errors import BiellaError
from ...scheduler.compile._model import Model
from ...scheduler.compile.plan._plan import Plan
from ...scheduler.engine._library import contract
from ._variables import Variable

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_LISTED = 5  # blocks that the description of a clock names


@dataclass(frozen=True, slots=True)
class Clock:
    """A periodic input clock with a constant interval.

    Attributes
    ----------
    interval, shift
        Its period, and the time of its first tick after the start, in s.
    fraction
        The same two and their common resolution, as integers; None if the base step is no
        fraction.
    doc
        Which blocks it samples.
    """

    name: str
    interval: float
    shift: float
    fraction: tuple[int, int, int] | None
    doc: str


def find_clock_rates(model: Model) -> list[int]:
    """Return the rates of blocks with a period, as numbers of the plan's table of rates.

    Raises
    ------
    BiellaError
        If there are none, or too many.
    """
    rates = model.block_records["rate"].tolist()
    last = len(model.sections["RATE"]) // 16  # beyond it: blocks that also run between ticks
    found = {
        rate
        for rate, item in zip(rates, model.flat.blocks, strict=True)
        if item.rate.kind == "periodic" and contract.BL_RATE_CONSTANT < rate < last
    }
    if not found:
        raise BiellaError(
            "`clocks=True`, but no block of the diagram has a period: there is no rate to declare "
            "as a clock. Export without clocks."
        )
    if len(found) > contract.BL_CLOCKS:
        raise BiellaError(
            f"the diagram has {len(found)} different periods and offsets; an FMU has at most "
            f"{contract.BL_CLOCKS} clocks. Export without clocks."
        )
    return sorted(found)


def describe_clocks(plan: Plan, rates: Sequence[int], taken: Collection[str]) -> list[Clock]:
    """Return the clocks of a plan with these rates, with names that are not `taken`."""
    numbers = plan.block_records["rate"].tolist()
    names = set(taken)
    clocks = []
    with plan.open() as engine:
        library, handle = engine.library, engine.handle
        numerator, resolution = c_uint64(), c_uint64()
        exact = bool(library.bl_step_fraction(handle, byref(numerator), byref(resolution)))
        for k, rate in enumerate(rates):
            ticks = (library.bl_clock_period(handle, k), library.bl_clock_shift(handle, k))
            interval, shift = (count * plan.step for count in ticks)
            name = _name_clock(interval, shift)
            while name in names:
                name += "_"
            names.add(name)
            counters = [count * numerator.value for count in ticks]
            blocks = [b.path for b, own in zip(plan.blocks, numbers, strict=True) if own == rate]
            more = f" and {len(blocks) - _LISTED} more" if len(blocks) > _LISTED else ""
            clocks.append(
                Clock(
                    name,
                    interval,
                    shift,
                    (counters[0], counters[1], resolution.value) if exact else None,
                    f"samples {', '.join(blocks[:_LISTED])}{more}",
                )
            )
    return clocks


def with_clocks(
    plan: Plan, variables: Sequence[Variable], rates: Sequence[int], first: int
) -> list[Variable]:
    """Return the variables, those of sampled blocks with the reference of their clock.

    `first` is the reference of the first clock.
    """
    numbers = plan.block_records["rate"].tolist()
    references = {rate: first + k for k, rate in enumerate(rates)}
    clock_of: Mapping[int, int] = {
        port.slot + element: references[rate]
        for block, rate in zip(plan.blocks, numbers, strict=True)
        if rate in references
        for port in block.outputs
        for element in range(port.width)
    }
    ports = {**plan.signals, **plan.outputs}
    return [
        replace(v, clock=clock_of.get(ports[v.name].slot))
        if v.causality in ("output", "local") and v.variability == "discrete"
        else v
        for v in variables
    ]


def _name_clock(interval: float, shift: float) -> str:
    """Return a name such as ``clock_5ms`` or ``clock_5ms_from_1ms``."""
    name = f"clock_{_write_time(interval)}"
    return f"{name}_from_{_write_time(shift)}" if shift else name


def _write_time(seconds: float) -> str:
    """Return a time in the largest unit in which it is a whole number, as part of a name."""
    for unit, symbol in _UNITS:
        count = round(seconds / unit)
        if count > 0 and abs(seconds / unit - count) < 1e-12 * count:
            return f"{count}{symbol}"
    return f"{seconds:.9g}s".replace(".", "_").replace("-", "m").replace("+", "")
