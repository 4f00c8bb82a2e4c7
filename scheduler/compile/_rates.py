"""When each block runs: periods in whole ticks, and rates inherited from what feeds a block."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from ...blocks.core._block import NativeBlock
from ...blocks.core._ports import Rate
from ._flatten import FlatDiagram


@dataclass(frozen=True, slots=True, order=True)
class Ticks:
    """A rate in ticks of the base step; period 0 is continuous, period -1 constant."""

    period: int
    offset: int = 0

    def describe(self, step: float) -> str:
        """Return the rate in words."""
        if self.period == 0:
            return "continuous"
        if self.period == -1:
            return "constant"
        offset = f" + {self.offset * step:g} s" if self.offset else ""
        return f"{self.period * step:g} s{offset}"


CONTINUOUS = Ticks(0)
CONSTANT = Ticks(-1)
EVERY_TICK = Ticks(1)

_FLOWING = ("inherited", "continuous", "switching", "timed")
"""Kinds of rates by which a block may run between ticks."""
_FINEST = 1000  # steps into which a step is divided to fit a period, at most


def resolve_rates(
    flat: FlatDiagram, step: float, problems: list[str], locates: bool = False
) -> tuple[Ticks, ...]:
    """Return the rate of every block; periods that do not fit the step are added to `problems`.

    With `locates`, discontinuous blocks that continuous states depend on run in minor steps.
    """
    triggered = _triggered_guards(flat)
    located = _find_located(flat) if locates else set()
    rates: list[Ticks | None] = []
    for number, item in enumerate(flat.blocks):
        rate = item.rate
        if item.shows_guard in triggered:
            rates.append(EVERY_TICK)
        elif item.guard in triggered and rate.kind != "constant":
            _check_triggered(item.path, item.block, rate, problems)
            rates.append(EVERY_TICK)
        elif rate.kind == "periodic":
            rates.append(_whole_ticks(item.path, rate, step, problems))
        elif rate.kind in ("inherited", "sampled", "switching"):
            rates.append(EVERY_TICK if rate.kind != "inherited" and not item.block.inputs else None)
        elif rate.kind == "timed":
            rates.append(CONTINUOUS if number in located else EVERY_TICK)
        else:
            fixed = {"continuous": CONTINUOUS, "constant": CONSTANT, "every_tick": EVERY_TICK}
            rates.append(fixed[rate.kind])

    # Where outputs change less often than their block runs.
    slower: dict[int, Ticks | int] = {}
    for number, item in enumerate(flat.blocks):
        outputs = item.rate.outputs
        if callable(outputs):
            slower[number] = _whole_ticks(item.path, outputs(step), step, problems)
        elif outputs > 1:
            slower[number] = outputs

    # Inheritance: the join over what feeds a block, repeated until nothing changes.
    consumers: list[list[int]] = [[] for _ in flat.blocks]
    inherits = [rate is None for rate in rates]
    for number, item in enumerate(flat.blocks):
        if inherits[number]:
            for source in item.sources:
                if source is not None and source.block >= 0:
                    consumers[source.block].append(number)
    waiting = deque(n for n, open_ in enumerate(inherits) if open_)
    while waiting:
        number = waiting.popleft()
        item = flat.blocks[number]
        # Whether a conditional subsystem runs may change at any tick, and its outputs with it.
        joined: Ticks | None = EVERY_TICK if item.shows_guard >= 0 else None
        for source in item.sources:
            if source is None:
                known: Ticks | None = CONSTANT
            elif source.block < 0:
                known = CONTINUOUS
            else:
                known = _when_outputs_change(rates[source.block], slower.get(source.block))
            joined = known if joined is None else joined if known is None else _join(joined, known)
        at_ticks = item.rate.kind == "sampled" or (
            item.rate.kind == "switching" and number not in located
        )
        if at_ticks and joined is not None and joined.period <= 0:
            joined = EVERY_TICK
        elif number in located and joined == CONSTANT:
            joined = CONTINUOUS  # its output may change all the same: RateLimiter
        if joined is not None and joined != rates[number]:
            rates[number] = joined
            waiting.extend(consumers[number])
    # Rings of inheriting blocks that nothing drives run at every tick.
    return tuple(EVERY_TICK if rate is None else rate for rate in rates)


def _find_located(flat: FlatDiagram) -> set[int]:
    """Return the discontinuous blocks that continuous states depend on between two ticks."""
    waiting = [
        number
        for number, item in enumerate(flat.blocks)
        if getattr(item.block, "states", 0) != 0 and not item.block.has_internal_solver
    ]
    reached = set(waiting)
    while waiting:
        for source in flat.blocks[waiting.pop()].sources:
            if source is None or source.block < 0 or source.block in reached:
                continue
            if flat.blocks[source.block].rate.kind in _FLOWING:
                reached.add(source.block)
                waiting.append(source.block)
    return {n for n in reached if flat.blocks[n].rate.kind in ("switching", "timed")}


def find_flowing(flat: FlatDiagram, rates: Sequence[Ticks]) -> set[int]:
    """Return the blocks between ticks: those that pass on what blocks with an internal solver give.

    Such a block runs at every tick, as what feeds it does. Where a run stops within a tick, its
    inputs have moved, and its outputs follow them. Sampled blocks hold, and so do conditional
    subsystems.
    """
    readers: list[list[int]] = [[] for _ in flat.blocks]
    for number, item in enumerate(flat.blocks):
        follows = item.rate.kind == "inherited" and rates[number] == EVERY_TICK
        if follows and item.block.can_roll_back and item.guard < 0 and item.shows_guard < 0:
            for source in item.sources:
                if source is not None and source.block >= 0:
                    readers[source.block].append(number)
    waiting = [
        n
        for n, item in enumerate(flat.blocks)
        if item.block.has_internal_solver and item.guard < 0 and rates[n] == EVERY_TICK
    ]
    found: set[int] = set()
    while waiting:
        for number in readers[waiting.pop()]:
            if number not in found and not flat.blocks[number].block.has_internal_solver:
                found.add(number)
                waiting.append(number)
    return found


def _when_outputs_change(runs: Ticks | None, slower: Ticks | int | None) -> Ticks | None:
    if runs is None or slower is None:
        return runs
    if isinstance(slower, Ticks):
        return slower
    return Ticks(runs.period * slower, runs.offset) if runs.period > 0 else runs


def _join(a: Ticks, b: Ticks) -> Ticks:
    """Return the slowest rate that has all hits of both."""
    if a == b or b.period == -1:
        return a
    if a.period == -1:
        return b
    if a.period == 0 or b.period == 0:
        return CONTINUOUS
    period = gcd(a.period, b.period, abs(a.offset - b.offset))
    return Ticks(period, a.offset % period)


def _whole_ticks(path: str, rate: Rate, step: float, problems: list[str]) -> Ticks:
    found = []
    for what, seconds in (("period", rate.period), ("offset", rate.offset)):
        ticks = round(seconds / step)
        if abs(seconds - ticks * step) > 1e-9 * max(seconds, step) or (
            what == "period" and not ticks
        ):
            low, high = max(1, int(seconds / step)) * step, (int(seconds / step) + 1) * step
            near = f"{low:g} s or {high:g} s" if low != high else f"{low:g} s"
            common = _common_step(seconds, step)
            problems.append(
                f"the {what} of `{path}`, {seconds:g} s, is not an integer multiple of the step, "
                f"{step:g} s. {near} would fit{f'; so would a step of {common} s' * bool(common)}."
            )
            ticks = max(ticks, 1)
        found.append(ticks)
    return Ticks(found[0], found[1] % max(found[0], 1))


def _common_step(seconds: float, step: float) -> str:
    """Return the largest step that divides both, as it is to be written; nothing if there is none.

    A step without a short decimal representation is a fraction: ``1/3000``.
    """
    ratio = Fraction(seconds / step).limit_denominator(_FINEST)
    if not ratio or abs(float(ratio) * step - seconds) > 1e-9 * seconds:
        return ""
    common = step / ratio.denominator
    if abs(float(f"{common:g}") - common) <= 1e-12 * common:
        return f"{common:g}"
    whole = Fraction(common).limit_denominator(10**9)
    exact = abs(float(whole) - common) <= 1e-12 * common
    return str(whole) if exact else f"{common!r}"


def _triggered_guards(flat: FlatDiagram) -> set[int]:
    """Guards that are triggered, or inside such a one."""
    found: set[int] = set()
    for number, guard in enumerate(flat.guards):
        if guard.subsystem.control == "trigger" or guard.parent in found:
            found.add(number)
    return found


def _check_triggered(path: str, block: object, rate: Rate, problems: list[str]) -> None:
    if rate.kind == "periodic" or callable(rate.outputs):
        problems.append(f"`{path}` is in a triggered subsystem and cannot have its own period.")
    continuous = isinstance(block, NativeBlock) and block.states != 0
    if continuous or getattr(block, "is_continuous", False):
        problems.append(
            f"`{path}` has continuous states, but is in a triggered subsystem, where time does "
            f"not advance. Use its discrete counterpart."
        )
