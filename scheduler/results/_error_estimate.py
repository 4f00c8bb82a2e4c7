"""`ErrorEstimate`: how far a run with fixed steps is from one with very short steps.

In windows of one tick a run has been compared with a shadow that takes half steps: see
scheduler/engine/solvers/error_estimate.c. For a method of order p the deviation d is
(2^p - 1) / 2^p of the local error of that tick. The error of the run is the sum of local errors,
each propagated to the end of the run. How they are propagated is measured in the windows in which
a deviation was followed for some ticks: its size at their start, after half of them, and at their
end. A block whose deviations have decayed by then forgets its errors; what is left decays further
at the rate between half and end, as far as that is significant. Three sums are made:

    unsigned    Σ |d_i| q e^(-r (t - t_i)), with the part q that is left and its rate r of decay;
                errors do not cancel
    signed      |Σ d_i|, of a column that keeps its deviations, as an integrator does
    in time     |Σ δ_i g^(t - t_i)| |dy/dt|, the time by which the run is early or late, where δ is
                the component of d along the motion, in ticks: exact for an oscillator

The unsigned sum holds, or the signed one where it applies, or the one in time if that is larger.
Growth of deviations beyond the followed ticks, as in chaotic motion, is not extrapolated: it is
computed along the run (scheduler/engine/solvers/tangent.c), and decides whether the run is repeated
as a whole. A run that is repeated as a whole has deviations that are its errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LARGEST_ERROR = 1e-3
"""Error, relative to the range of a signal, above which a run warns."""

_FEWEST = 4  # windows from which a rate is taken
_ROUNDING = 1e-12  # of the range: deviations below are not used for rates
_CONSTANT = 1e-9  # of its size: a signal that varies less is constant
_RARE = 0.03  # of the windows
_EPSILON = 1e-16  # of the range: what rounding is at least
_LARGEST_GAIN = 200.0  # logarithm of growth: more does not matter
_LOST = 0.3  # of the ranges: errors above are of the size of the motion
_MUCH = 32.0  # growth of errors, while time doubles, that is not one of a regular motion
_SCATTER = 0.3  # of time shifts: those that vary more have no common rate
PARTS = 2  # of each step, in the shadow
MOST_PARTS = 1000  # of a step that are recommended


@dataclass(frozen=True)
class ErrorEstimate:
    """Estimated error of a run with fixed steps, from ticks that were repeated with half steps.

    Attributes
    ----------
    signals
        Largest error of each signal during the run, relative to its range; of a vector, that of its
        worst element.
    energy
        Largest error of the energy of each mechanism, relative to its largest kinetic energy or to
        the range of its potential energy, whichever is larger.
    not_judged
        The other signals, each with the reason.
    step
        Step in s that would reduce all errors below 1e-3; the run's own if they are.
    whole
        Whether the run was repeated as a whole. If not, errors are lower bounds where deviations
        grow.
    growth
        Rate in 1/s at which deviations grow exponentially, from a run repeated as a whole; 0 if
        they do not, or that is unknown.
    windows, cost
        Number of ticks that were repeated with half steps, and the ticks' worth of computation that
        the estimate has added, relative to those of the run.
    """

    signals: Mapping[str, float]
    energy: Mapping[str, float]
    not_judged: Mapping[str, str]
    step: float
    whole: bool
    growth: float
    windows: int
    cost: float

    @property
    def worst(self) -> str:
        """Path of the signal with the largest error; empty if there is none."""
        return max(self.signals, key=self.signals.__getitem__, default="")

    @property
    def sensitive(self) -> bool:
        """Whether deviations grow exponentially, to the size of the motion, as in chaos.

        Then single values depend on the step, and in the end on rounding.
        """
        return self.growth > 0.0

    @property
    def largest(self) -> float:
        """The largest error of a signal or of an energy."""
        return max([*self.signals.values(), *self.energy.values()], default=0.0)

    def describe(self) -> dict[str, object]:
        """Return the attributes by name, for `from_description`; JSON can store them."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_description(cls, described: object) -> ErrorEstimate | None:
        """Return what `describe` was called for; None if `described` is something else."""
        names = {field.name for field in fields(cls)}
        if not (isinstance(described, Mapping) and set(described) == names):
            return None
        return cls(**described)


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else value


@dataclass(frozen=True)
class Samples:
    """Rows of a run and of its deviations: one per window, and one per window that is followed.

    Attributes
    ----------
    before, after, deviations
        Values before and after a tick, and shadow - run after it.
    halfway
        shadow - run, `half` ticks later, of every `every`-th window. If `every` is 0, the shadow
        has repeated the whole run, and deviations are its errors.
    last, end, propagated
        As the first three, `follow` ticks later.
    spacing
        Ticks of the run for which a window stands.
    order, step
        Of the solver.
    columns, energies
        Place in a row of each signal, and of the energy of each mechanism.
    references
        What an error of a column is relative to; NaN for its range.
    floors
        Range up to which a column counts as constant.
    groups
        Number of the block of each column: deviations of its columns are propagated together.
    is_state
        Which columns are states, or outputs of an internal solver.
    not_judged, cost
        See `ErrorEstimate`.
    growths, growth_every, starts
        Logarithm of the growth of a small deviation since the start, after every so many ticks, if
        it is known; the ticks at which windows start.
    """

    before: Array
    after: Array
    deviations: Array
    halfway: Array
    last: Array
    end: Array
    propagated: Array
    spacing: float
    follow: int
    every: int
    order: int
    step: float
    columns: Mapping[str, slice]
    energies: Mapping[str, int]
    references: Array
    floors: Array
    groups: NDArray[np.int64]
    is_state: NDArray[np.bool_]
    not_judged: Mapping[str, str]
    cost: float
    growths: Array = field(default_factory=lambda: np.zeros(0))
    growth_every: int = 1
    starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @cached_property
    def done(self) -> NDArray[np.bool_]:
        """Which windows are complete: a run may end early, and a shadow may fail."""
        done: NDArray[np.bool_] = ~np.isnan(self.deviations[:, 0])
        return done

    @cached_property
    def ranges(self) -> Array:
        """What errors are relative to; infinite for a column that is constant up to rounding."""
        seen = np.concatenate([self.before[self.done], self.after[self.done]])
        if not len(seen):
            return np.full(self.before.shape[1], math.inf)
        low, high = seen.min(axis=0), seen.max(axis=0)
        ranges: Array = high - low
        constant = np.maximum(_CONSTANT * np.maximum(np.abs(low), np.abs(high)), self.floors)
        ranges[ranges <= constant] = math.inf
        given = ~np.isnan(self.references)
        ranges[given] = self.references[given]
        return ranges

    @cached_property
    def scale(self) -> Array:
        """By which a deviation is multiplied to give the error relative to the range."""
        scale: Array = PARTS**self.order / (PARTS**self.order - 1.0) / self.ranges
        return scale

    @cached_property
    def local(self) -> Array:
        """Errors of the sampled ticks, relative to ranges."""
        local: Array = self.deviations[self.done] * self.scale
        return local

    @cached_property
    def slopes(self) -> Array:
        """Changes per tick, relative to ranges."""
        slopes: Array = (self.after - self.before)[self.done] / self.ranges
        return slopes

    @cached_property
    def shifts(self) -> Array:
        """Errors of the sampled ticks along the motion, in ticks."""
        return _project(self.local[:, self.is_state], self.slopes[:, self.is_state])

    @cached_property
    def followed(self) -> tuple[Array, Array, Array]:
        """Errors of the followed ticks, relative to ranges: at the start, halfway, at the end."""
        rows = np.flatnonzero(~np.isnan(self.propagated[:, 0]))
        starts = rows * self.every
        return (
            self.deviations[starts] * self.scale,
            self.halfway[rows] * self.scale,
            self.propagated[rows] * self.scale,
        )

    def is_surely_small(self) -> bool:
        """Return whether no error can exceed 1e-3, however deviations are propagated."""
        if not self.every:
            return False
        first, _, second = self.followed
        size = np.linalg.norm(self.local, axis=1).sum()
        late = np.abs(self.shifts).sum() * np.abs(self.slopes).max(initial=0.0)
        grown = np.abs(second).max(initial=0.0) / max(np.abs(first).max(initial=0.0), _ROUNDING)
        return bool(self.spacing * max(size * max(1.0, grown), late) < LARGEST_ERROR)

    def may_grow(self) -> bool:
        """Return whether errors may exceed 1e-3 by their growth after the followed ticks.

        Each is multiplied by the largest growth, from its tick on, of a small deviation that was
        propagated along the run; rounding grows too.
        """
        if not (self.every and self.growths.size):
            return False
        levels = np.concatenate([[0.0], self.growths])
        latest = np.maximum.accumulate(levels[::-1])[::-1]  # the largest from there on
        places = np.minimum(self.starts[self.done] // self.growth_every, levels.size - 1)
        gains = np.minimum(latest[places] - levels[places], _LARGEST_GAIN)
        sizes = np.maximum(np.linalg.norm(self.local, axis=1), _EPSILON)
        return bool(self.spacing * (sizes * np.exp(gains)).sum() > LARGEST_ERROR)


def estimate_errors(samples: Samples, result: Mapping[str, Array]) -> ErrorEstimate:
    """Return the estimate for the run with these samples and these recorded signals."""
    found = accumulate(samples)
    signals, not_judged = {}, dict(samples.not_judged)
    for path, place in samples.columns.items():
        errors = found.errors[place]
        if errors.max() > LARGEST_ERROR and path in result:  # windows may miss peaks
            recorded = np.ptp(np.asarray(result[path]).reshape(-1, errors.size), axis=0)
            errors = errors * np.minimum(1.0, samples.ranges[place] / np.maximum(recorded, 1e-300))
        signals[path] = float(errors.max())
        if np.isinf(samples.ranges[place]).all():
            not_judged[path] = "constant"
            del signals[path]
    energy = {path: float(found.errors[place]) for path, place in samples.energies.items()}
    return ErrorEstimate(
        signals=signals,
        energy=energy,
        not_judged=not_judged,
        step=find_step(
            samples.step, max([*signals.values(), *energy.values()], default=0.0), samples.order
        ),
        whole=samples.every == 0,
        growth=found.growth / samples.step,
        windows=int(np.count_nonzero(samples.done)),
        cost=samples.cost,
    )


@dataclass(frozen=True)
class Accumulated:
    """Largest error of each column during a run, relative to its range; growth per tick."""

    errors: Array
    growth: float


def accumulate(samples: Samples) -> Accumulated:
    """Return the estimated error of each column."""
    local = samples.local
    if samples.every == 0:
        return Accumulated(_largest(local), _find_growth(samples))
    errors = np.maximum(_add_signed(samples, _add_unsigned(samples)), _add_shifts(samples))
    return Accumulated(np.maximum(errors, _largest(local)), 0.0)


def _find_growth(samples: Samples) -> float:
    """Return the rate per tick at which errors of a whole run grow; 0 if not exponentially.

    Errors of regular motions grow with a power of time, of two or three. So what counts is the
    growth from half the time to the whole time until errors saturate, at a tenth of the largest.
    That of a single window, at an impact for instance, is no growth; nor is one that ends with
    small errors.
    """
    judged = np.zeros(samples.groups.size, dtype=np.bool_)
    for place in samples.columns.values():
        judged[place] = True
    errors = np.abs(samples.local[:, judged]).max(axis=1, initial=0.0)
    sizes = np.maximum.accumulate(errors)
    sizes = sizes[sizes > 1e3 * _ROUNDING]
    if sizes.size < 2 * _FEWEST or sizes[-1] < _LOST:
        return 0.0
    whole = int(np.argmax(sizes >= 0.1 * sizes[-1]))
    steps = np.diff(np.log(sizes[whole // 2 : whole + 1]))
    if steps.size < _FEWEST or steps.sum() < math.log(_MUCH) or steps.max() > 0.5 * steps.sum():
        return 0.0
    return float(steps.mean()) / samples.spacing


def _add_unsigned(samples: Samples) -> Array:
    """Sum the sizes of errors of each block, propagated as those that were followed."""
    order = np.argsort(samples.groups, kind="stable")
    starts = np.flatnonzero(np.diff(samples.groups[order], prepend=-1))
    block = np.empty(order.size, dtype=np.int64)  # of each column, in the order of `starts`
    block[order] = np.repeat(np.arange(starts.size), np.diff(np.append(starts, order.size)))

    def size(rows: Array) -> Array:
        return np.sqrt(np.add.reduceat((rows * rows)[:, order], starts, axis=1))

    first, half, second = samples.followed
    sizes, halves, ends = size(first), size(half), size(second)
    clear = sizes > _ROUNDING
    mean = (sizes * clear).sum(axis=0)
    known = mean > 0.0
    divisor = np.where(known, mean, 1.0)[block]
    left = [
        (np.abs(rows) * clear[:, block]).sum(axis=0) / divisor for rows in (first, half, second)
    ]
    left = [np.where(known[block], part, 1.0) for part in left]
    ticks = samples.follow // 2, samples.follow - samples.follow // 2
    soon = ticks[0] * _mean_of_decay(left[0], left[1]) + ticks[1] * _mean_of_decay(left[1], left[2])
    decay = _find_decay(halves, ends, clear)
    local = _limit(size(samples.local))
    sums = _add_up(local, np.exp(-decay / ticks[1] * samples.spacing))
    errors: Array = samples.spacing * left[2] * _largest(sums)[block]
    return errors + soon * _largest(local)[block]


def _mean_of_decay(start: Array, end: Array) -> Array:
    """Return the mean of a size that decays, or grows, exponentially between these."""
    low, high = np.minimum(start, end), np.maximum(start, end)
    low = np.maximum(low, 1e-12 * high)
    apart = high > 1.000001 * low
    ratio = np.where(apart, high / np.where(low > 0.0, low, 1.0), math.e)
    mean: Array = np.where(apart, (high - low) / np.log(ratio), high)
    return mean


def _find_decay(halves: Array, ends: Array, clear: NDArray[np.bool_]) -> Array:
    """Return the mean logarithm of decay of each block, as far as it is significant."""
    floor = 1e-3 * _ROUNDING
    logs = np.log(np.maximum(halves, floor) / np.maximum(ends, floor))
    clear = clear & (halves > floor)
    count = clear.sum(axis=0)
    enough = count >= _FEWEST
    count = np.maximum(count, 2)
    mean = (logs * clear).sum(axis=0) / count
    spread = np.sqrt(((logs - mean) ** 2 * clear).sum(axis=0) / (count - 1) / count)
    decay: Array = np.where(enough, np.maximum(mean - 2.0 * spread, 0.0), 0.0)
    return decay


def _add_signed(samples: Samples, unsigned: Array) -> Array:
    """Replace the sums of columns that keep their deviations, and their signs."""
    first, _, second = samples.followed
    squares = (first * first).sum(axis=0)
    if len(first) < _FEWEST:
        return unsigned
    changes = np.sqrt(((second - first) ** 2).sum(axis=0) / np.where(squares > 0.0, squares, 1.0))
    changed = np.where(squares > 0.0, changes * samples.spacing / samples.follow, 1.0)
    signed = samples.spacing * _largest(np.cumsum(_limit(samples.local), axis=0))
    return np.minimum(unsigned, signed + np.minimum(changed, 1.0) * unsigned)


def _add_shifts(samples: Samples) -> Array:
    """Sum the errors along the motion, where these persist."""
    is_state, every = samples.is_state, samples.every
    first, _, second = samples.followed
    rows = np.flatnonzero(~np.isnan(samples.propagated[:, 0]))
    starts = rows * every
    kept = _find_persistence(
        first[:, is_state],
        ((samples.after - samples.before)[starts] / samples.ranges)[:, is_state],
        second[:, is_state],
        ((samples.end - samples.last)[rows] / samples.ranges)[:, is_state],
    )
    if not kept > 0.0:
        return np.zeros(is_state.size)
    factor = kept ** (samples.spacing / samples.follow)
    late = _add_up(_limit(samples.shifts[:, None]), np.array([factor]))
    return samples.spacing * _largest(late * samples.slopes)


def _limit(local: Array) -> Array:
    """Limit the largest samples of each column: what one window of 30 meets is not extrapolated."""
    rare = math.ceil(_RARE * len(local))
    if not rare:
        return local
    limits = np.partition(np.abs(local), -rare, axis=0)[-rare]
    return np.clip(local, -limits, limits)


def _add_up(local: Array, factors: Array) -> Array:
    """Sum rows up to each row, where a sum changes by a factor from row to row."""
    decays = (factors > 0.0) & (factors < 1.0 - 1e-9)
    inside = np.where(decays, factors, 0.5)
    sums = local * np.where(
        decays, (inside - 1.0) / np.log(inside), np.where(factors > 0.0, 1.0, 0.0)
    )
    ahead = 1
    while ahead < len(sums):
        later = sums.copy()
        later[ahead:] += factors**ahead * sums[:-ahead]
        sums, ahead = later, 2 * ahead
    return sums


def _largest(rows: Array) -> Array:
    largest: Array = np.abs(rows).max(axis=0, initial=0.0)
    return largest


def _project(deviations: Array, slopes: Array) -> Array:
    """Return the time, in ticks, by which deviations are a shift along the motion."""
    squares = (slopes * slopes).sum(axis=1)
    shifts: Array = (deviations * slopes).sum(axis=1) / np.where(squares > 0.0, squares, 1.0)
    return shifts


def _find_persistence(first: Array, slopes: Array, second: Array, slopes_later: Array) -> float:
    """Return the part of a time shift that is left after the follow; 0 if shifts do not persist."""
    shifts, later = _project(first, slopes), _project(second, slopes_later)
    weights = np.minimum((slopes * slopes).sum(axis=1), (slopes_later * slopes_later).sum(axis=1))
    total = float((weights * shifts * shifts).sum())
    if shifts.size < _FEWEST or not total > 0.0:
        return 0.0
    kept = float((weights * shifts * later).sum()) / total
    scatter = math.sqrt(float((weights * (later - kept * shifts) ** 2).sum()) / total)
    if not (kept > _SCATTER and scatter < _SCATTER):
        return 0.0
    return min(kept + 2.0 * scatter / math.sqrt(shifts.size), 1.0)


def find_step(step: float, error: float, order: int) -> float:
    """Return a whole part of `step` that reduces `error` to half of what is allowed."""
    if error <= LARGEST_ERROR:
        return step
    parts = math.pow(2.0 * min(error, 1e12) / LARGEST_ERROR, 1.0 / order)
    return step / min(math.ceil(parts), MOST_PARTS)
