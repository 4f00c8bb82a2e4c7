"""Tolerance studies: Monte Carlo, and worst case and root-sum-square from sensitivities.

With sensitivities S_k = ∂Y/∂x_k by central differences, and tolerances T_k:

    worst case ΔY = Σ |S_k| T_k,   RSS ΔY = √Σ (S_k T_k)²,   σ_Y² = Σ S_k² σ_k²
    C_p = (USL - LSL) / (6 σ_Y),   C_pk = min(USL - μ, μ - LSL) / (3 σ_Y)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ....errors import BiellaError, name_list, suggest
from ...compile.diagram._diagram import Diagram
from ...compile.plan._plan import Plan
from ...results._result import Result
from .._sweep import Case, sweep
from ._variables import AbstractDimension, AbstractVariable, Array

if TYPE_CHECKING:
    from ....blocks.core._figure import ShownFigure

Set = dict[str, float]
"""Values of all variables, by name."""
Measured = float | Mapping[str, npt.ArrayLike]
Figure = float | Array
"""A number, or an array of one for each element of what is measured."""
Limits = Mapping[str, tuple[float | None, float | None]]


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """How one measured quantity varies. If it is an array, so are all figures.

    Attributes
    ----------
    nominal
        With all dimensions at their nominal; the mean over free quantities if there are any.
    values
        Of the random sets, along the first axis; without those that failed.
    mean, deviation
        Of the values: mean μ and standard deviation σ.
    standard_error
        Of the standard deviation: σ / √(2 (n - 1)).
    sensitivities
        ∂Y/∂x by variable; their root mean square, without sign, if quantities are free.
    worst_case
        Largest deviation with every dimension at its least favorable limit, linearized.
    root_sum_square
        √Σ (S_k T_k)².
    linear_deviation
        Standard deviation from sensitivities and the distributions of the dimensions. Free
        quantities contribute through the dimensions only.
    limits
        Lower and upper specification limit, None for none.
    """

    nominal: Figure
    values: Array
    mean: Figure
    deviation: Figure
    standard_error: Figure
    sensitivities: dict[str, Figure]
    worst_case: Figure
    root_sum_square: Figure
    linear_deviation: Figure
    limits: tuple[float | None, float | None] = (None, None)

    @property
    def cp(self) -> Figure:
        """Return C_p of the random sets; NaN without two limits."""
        low, high = self.limits
        if low is None or high is None:
            return np.nan
        return _ratio(high - low, 6.0 * self.deviation)

    @property
    def cpk(self) -> Figure:
        """Return C_pk of the random sets; with one limit that of its side, NaN without limits."""
        low, high = self.limits
        sides = [] if high is None else [high - self.mean]
        sides += [] if low is None else [self.mean - low]
        return _ratio(np.min(np.array(sides), axis=0), 3.0 * self.deviation) if sides else np.nan

    @property
    def within(self) -> Figure:
        """Return the part of the random sets within the limits."""
        low, high = self.limits
        inside = np.ones(self.values.shape, dtype=bool)
        if low is not None:
            inside &= self.values >= low
        if high is not None:
            inside &= self.values <= high
        return _plain(inside.mean(axis=0))


class ToleranceStudy(Mapping[str, Spread]):
    """Result of a tolerance study: a `Spread` for each measured quantity, by name.

    Printed, it is a table.

    Attributes
    ----------
    variables
        What varied.
    sets
        Values of all variables in each random set.
    failures
        Errors of random sets that could not be measured, by number.
    """

    def __init__(
        self,
        spreads: dict[str, Spread],
        variables: dict[str, AbstractVariable],
        sets: list[Set],
        failures: dict[int, BiellaError],
    ) -> None:
        self._spreads = spreads
        self.variables = variables
        self.sets = sets
        self.failures = failures

    def __getitem__(self, name: str) -> Spread:
        """Return the figures of a measured quantity."""
        if name not in self._spreads:
            raise KeyError(
                f"`{name}` was not measured.{suggest(name, self._spreads)} There are: "
                f"{name_list(self._spreads)}."
            )
        return self._spreads[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._spreads)

    def __len__(self) -> int:
        return len(self._spreads)

    def __str__(self) -> str:
        width = max(len(name) for name in self._spreads)
        head = f"{len(self.sets)} sets of {len(self.variables)} variables"
        if self.failures:
            head += f", {len(self.failures)} failed"
        lines = [head]
        columns = ("nominal", "mean", "σ", "σ linear", "RSS", "worst case", "Cp", "Cpk")
        lines.append(" " * width + "".join(f"{name:>12}" for name in columns))
        for name, s in self._spreads.items():
            if np.ndim(s.mean):
                lines.append(f"{name:<{width}}  array of shape {np.shape(s.mean)}")
                continue
            figures = (s.deviation, s.linear_deviation, s.root_sum_square, s.worst_case)
            row = f"{s.nominal:>12.6g}{s.mean:>12.6g}"
            row += "".join(f"{value:>12.4g}" for value in figures)
            for value in (s.cp, s.cpk):
                row += f"{'-':>12}" if np.isnan(value) else f"{value:>12.3g}"
            lines.append(f"{name:<{width}}{row}")
        return "\n".join(lines)

    def plot(self, *names: str, path: str | Path | None = None) -> ShownFigure:
        """Draw histograms and the contributions of the variables, and save them to a file.

        A histogram has the normal curve of its mean and deviation, and lines at the limits of worst
        case and root-sum-square about the nominal. Bars show |S_k| T_k, the largest first.

        Parameters
        ----------
        names
            Measured quantities; all by default. They must be numbers.
        path
            File to write.

        Raises
        ------
        BiellaError
            If a quantity is an array, or `path` has an unknown extension.
        """
        from ._picture import plot

        return plot(self, names or tuple(self), path)


def tolerance_study(
    measure: Callable[[Set], Measured],
    variables: Mapping[str, AbstractVariable],
    samples: int = 1000,
    *,
    seed: int = 0,
    limits: Limits | None = None,
    difference: float = 0.1,
    directions: int = 64,
    vectorized: bool = False,
) -> ToleranceStudy:
    """Vary dimensions within their tolerances, and return how a measured quantity varies.

    Parameters
    ----------
    measure
        Function of a set, values by name of the variable. It returns a number, or numbers and
        arrays by name: ``lambda x: {"reach": x["a"] + x["b"]}``. A set for which it raises a
        `BiellaError` counts as failed.
    variables
        `Normal`, `Uniform` or `Free`, by name.
    samples, seed
        Number of random sets, at least 2, and where their random numbers start.
    limits
        Lower and upper specification limit by name of the measured quantity; ``"value"`` is the
        name of a single number. ``None`` for none.
    difference
        Half the width of the differences that give sensitivities, as a part of the tolerances.
    directions
        Number of values of the free quantities at which sensitivities are taken.
    vectorized
        Whether `measure` takes all sets at once: an array of values by name of the variable, and
        returns arrays whose first axis is that of the sets. Its errors are then not caught.

    Raises
    ------
    BiellaError
        For invalid arguments, and if the nominal set or one for a sensitivity fails.
    """
    plan = _Plan(variables, samples, seed, difference, directions)
    values: list[Any] = []
    failures: dict[int, BiellaError] = {}
    if vectorized:
        columns: Any = {name: np.array([one[name] for one in plan.sets]) for name in variables}
        return plan.evaluate(_rows(measure(columns), len(plan.sets)), failures, limits or {})
    for number, case in enumerate(plan.sets):
        try:
            values.append(measure(dict(case)))
        except BiellaError as error:
            values.append(None)
            failures[number] = error
    return plan.evaluate(values, failures, limits or {})


def sweep_tolerances(
    diagram: Diagram | Plan,
    until: float,
    variables: Mapping[str, AbstractVariable],
    measure: Callable[[Result], Measured],
    samples: int = 200,
    *,
    parameters: Callable[[Set], Case] | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    difference: float = 0.1,
    directions: int = 8,
    record: Sequence[str] | None = None,
    workers: int | None = None,
    progress: bool = True,
    solver: str | None = None,
) -> ToleranceStudy:
    """Do a tolerance study of a diagram or of a mechanism in it: one run for each set, by `sweep`.

    Parameters
    ----------
    diagram, until, measure
        As in `sweep`; `measure` returns a number, or numbers and arrays by name.
    variables, samples, seed, limits, difference, directions
        As in `tolerance_study`.
    parameters
        Function that makes parameters of the diagram, values by path, of a set. By default the
        names of the variables are the paths.
    record, workers, progress, solver
        As in `sweep`.

    Raises
    ------
    BiellaError
        As in `sweep` and `tolerance_study`.
    """
    plan = _Plan(variables, samples, seed, difference, directions)
    cases: list[Case] = [parameters(dict(case)) if parameters else case for case in plan.sets]
    found = sweep(
        diagram, until, cases, measure, record=record, workers=workers, progress=progress,
        solver=solver,
    )  # fmt: skip
    return plan.evaluate(found.values, dict(found.failures), limits or {})


class _Plan:
    """The sets to be measured: nominal and steps for each direction, then the random ones."""

    def __init__(
        self,
        variables: Mapping[str, AbstractVariable],
        samples: int,
        seed: int,
        difference: float,
        directions: int,
    ) -> None:
        for what, value, least in (("samples", samples, 2), ("directions", directions, 1)):
            if not isinstance(value, int | np.integer) or value < least:
                raise BiellaError(f"`{what}` is a whole number from {least}, got {value!r}.")
        if not 0 < difference <= 1:
            raise BiellaError(
                f"`difference` is a part of the tolerances, in (0, 1]; got {difference!r}."
            )
        self.variables = dict(variables)
        for name, variable in self.variables.items():
            if not isinstance(variable, AbstractVariable):
                raise BiellaError(
                    f"variable `{name}` is a Normal, Uniform or Free; got {variable!r}."
                )
        self.dimensions = {
            name: v for name, v in self.variables.items() if isinstance(v, AbstractDimension)
        }
        if not self.dimensions:
            raise BiellaError("a tolerance study needs at least one dimension with a tolerance.")
        free = {name: v for name, v in self.variables.items() if name not in self.dimensions}
        self.difference = difference
        self.directions = directions if free else 1
        rng = np.random.default_rng(seed)
        random = {name: v.draw(rng, samples) for name, v in self.variables.items()}
        drawn = {name: v.draw(rng, self.directions) for name, v in free.items()}
        nominal = {name: v.nominal for name, v in self.dimensions.items()}
        self.sets: list[Set] = []
        for k in range(self.directions):
            here = {**nominal, **{name: float(values[k]) for name, values in drawn.items()}}
            self.sets.append(here)
            for name, v in self.dimensions.items():
                for end in v.limits:
                    self.sets.append({**here, name: v.nominal + difference * end})
        self.first_random = len(self.sets)
        self.sets += [
            {name: float(values[k]) for name, values in random.items()} for k in range(samples)
        ]

    def evaluate(
        self, values: Sequence[Any], failures: dict[int, BiellaError], limits: Limits
    ) -> ToleranceStudy:
        first = self.first_random
        needed = [number for number in failures if number < first]
        if needed:
            raise BiellaError(
                f"a set near the nominal cannot be measured: {failures[needed[0]]} Its values: "
                f"{self.sets[needed[0]]}."
            ) from failures[needed[0]]
        known = [None if k in failures else _read(value) for k, value in enumerate(values)]
        names = list(known[0] or {})
        if not names:
            raise BiellaError("`measure` returned nothing: give it a number, or numbers by name.")
        for number, found in enumerate(known):
            if found is not None:
                _compare(found, known[0] or {}, number)
        _check_limits(limits, names)
        good = [found for found in known[first:] if found is not None]
        if len(good) < 2:
            raise BiellaError(
                f"only {len(good)} of {len(known) - first} random sets could be measured; the "
                f"first error: {next(iter(failures.values()))}"
            )
        spreads = {
            name: self._spread(
                [found[name] for found in known[:first] if found is not None],
                np.array([found[name] for found in good]),
                limits.get(name, (None, None)),
            )
            for name in names
        }
        shifted = {number - first: error for number, error in failures.items()}
        return ToleranceStudy(spreads, self.variables, self.sets[first:], shifted)

    def _spread(
        self, near: list[Array], values: Array, limits: tuple[float | None, float | None]
    ) -> Spread:
        block = 1 + 2 * len(self.dimensions)
        rows = np.array(near).reshape(self.directions, block, *values.shape[1:])
        sensitivities: dict[str, Figure] = {}
        square, variance = np.zeros(values.shape[1:]), np.zeros(values.shape[1:])
        low_side, high_side = np.zeros(rows[:, 0].shape), np.zeros(rows[:, 0].shape)
        for k, (name, v) in enumerate(self.dimensions.items()):
            low, high = v.limits
            width = self.difference * (high - low)
            change = rows[:, 2 + 2 * k] - rows[:, 1 + 2 * k]
            slope = change / width if width > 0 else np.zeros_like(change)
            mean, mean_square = v.moments
            size = np.sqrt((slope**2).mean(axis=0))
            signed = slope[0] if self.directions == 1 else size
            sensitivities[name] = _plain(signed)
            low_side += np.minimum(slope * low, slope * high)
            high_side += np.maximum(slope * low, slope * high)
            square += (size * max(-low, high)) ** 2
            variance += size**2 * mean_square - (slope.mean(axis=0) * mean) ** 2
        worst = np.maximum(-low_side, high_side).max(axis=0)
        deviation = values.std(axis=0, ddof=1)
        return Spread(
            _plain(rows[:, 0].mean(axis=0)),
            values,
            _plain(values.mean(axis=0)),
            _plain(deviation),
            _plain(deviation / np.sqrt(2.0 * (len(values) - 1))),
            sensitivities,
            _plain(worst),
            _plain(np.sqrt(square)),
            _plain(np.sqrt(variance)),
            limits,
        )


def _rows(found: Any, count: int) -> list[Any]:
    named = found if isinstance(found, Mapping) else {"value": found}
    for name, column in named.items():
        if np.shape(column)[:1] != (count,):
            raise BiellaError(
                f"`measure` of {count} sets returned an array of shape {np.shape(column)} for "
                f"`{name}`: its first axis must be that of the sets."
            )
    return [{name: column[k] for name, column in named.items()} for k in range(count)]


def _read(value: Any) -> dict[str, Array]:
    try:
        named = value if isinstance(value, Mapping) else {"value": value}
        found = {str(name): np.asarray(one, dtype=np.float64) for name, one in named.items()}
    except (TypeError, ValueError):
        raise BiellaError(
            f"`measure` returns a number, or numbers and arrays by name; got {value!r}."
        ) from None
    for name, one in found.items():
        if not np.all(np.isfinite(one)):
            raise BiellaError(f"`measure` returned {one!r} for `{name}`, which is not finite.")
    return found


def _compare(found: dict[str, Array], first: dict[str, Array], number: int) -> None:
    """Refuse what has other names or shapes than the first set."""
    if list(found) != list(first):
        raise BiellaError(
            f"`measure` returned {name_list(found)} for set {number}, but {name_list(first)} for "
            f"the first one."
        )
    for name, one in found.items():
        if one.shape != first[name].shape:
            raise BiellaError(
                f"`measure` returned an array of shape {one.shape} for `{name}` of set {number}, "
                f"but {first[name].shape} for the first one: take it at given instants or angles."
            )


def _check_limits(limits: Limits, names: Sequence[str]) -> None:
    for name, pair in limits.items():
        if name not in names:
            raise BiellaError(
                f"`limits` has `{name}`, which is not measured.{suggest(name, names)} There "
                f"are: {name_list(names)}."
            )
        try:
            low, high = (one if one is None else float(one) for one in pair)
        except (TypeError, ValueError):
            low = high = np.nan
        given = [one for one in (low, high) if one is not None]
        if not np.all(np.isfinite(given)) or given != sorted(set(given)):
            raise BiellaError(
                f"`limits` of `{name}` are a lower and a higher number, or None for no limit; got "
                f"{pair!r}."
            )


def _plain(value: Array) -> Figure:
    return float(value) if np.ndim(value) == 0 else value


def _ratio(part: Figure, whole: Figure) -> Figure:
    with np.errstate(divide="ignore", invalid="ignore"):
        return _plain(np.asarray(part, dtype=np.float64) / np.asarray(whole, dtype=np.float64))
