"""`sweep`: run one diagram many times with different parameters, on all cores."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ...errors import BiellaError, BlockError
from ..compile.diagram._diagram import Diagram
from ..compile.diagram._solver_options import Tolerance
from ..compile.plan._plan import Plan, read_value
from ..results._result import Result
from ._progress import Progress
from ._simulate import choose_signals, plan_of, run_plan

Case = Mapping[str, npt.ArrayLike]
"""Parameters and inputs of one run, by path."""
Cases = Mapping[str, Sequence[npt.ArrayLike]] | Sequence[Case]
"""A grid, or a list of cases."""
T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Sweep(Generic[T]):
    """Results of `sweep`: one value per case, in the order of the cases.

    Attributes
    ----------
    cases
        Parameter values of each run.
    values
        Measured value of each run, or its `Result`; ``None`` for a failed run.
    failures
        Errors of failed runs, by index of the case.
    shape
        Shape of the grid; for a list of cases, their number.
    """

    cases: list[Case]
    values: list[T | None]
    failures: dict[int, BlockError]
    shape: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.cases)

    def __iter__(self) -> Iterator[tuple[Case, T | None]]:
        return iter(zip(self.cases, self.values, strict=True))

    def __repr__(self) -> str:
        from ..notebook._sweep import describe_sweep

        return describe_sweep(self)

    def _repr_html_(self) -> str:
        from ..notebook._sweep import show_sweep

        return show_sweep(self)

    def array(self) -> npt.NDArray[np.float64]:
        """Return the measured numbers in the shape of the grid; NaN where a run failed."""
        known = [np.asarray(value, dtype=np.float64) for value in self.values if value is not None]
        empty = np.full(known[0].shape if known else (), np.nan)
        rows = [empty if value is None else np.asarray(value, np.float64) for value in self.values]
        return np.array(rows).reshape(*self.shape, *empty.shape)


@overload
def sweep(
    diagram: Diagram | Plan,
    until: float,
    parameters: Cases,
    measure: None = None,
    *,
    record: Sequence[str] | None = None,
    workers: int | None = None,
    progress: bool = True,
    step: float | None = None,
    solver: str | None = None,
    every: int = 1,
    checkpoint: bytes | None = None,
    keep_state: bool | None = None,
    coupling: str | None = None,
    extrapolation: int | None = None,
    coupling_tolerance: float | None = None,
    estimate_error: int = 0,
    tolerance: Tolerance | None = None,
    events: str | None = None,
    error_estimate: bool = False,
) -> Sweep[Result]: ...
@overload
def sweep(
    diagram: Diagram | Plan,
    until: float,
    parameters: Cases,
    measure: Callable[[Result], T],
    *,
    record: Sequence[str] | None = None,
    workers: int | None = None,
    progress: bool = True,
    step: float | None = None,
    solver: str | None = None,
    every: int = 1,
    checkpoint: bytes | None = None,
    keep_state: bool | None = None,
    coupling: str | None = None,
    extrapolation: int | None = None,
    coupling_tolerance: float | None = None,
    estimate_error: int = 0,
    tolerance: Tolerance | None = None,
    events: str | None = None,
    error_estimate: bool = False,
) -> Sweep[T]: ...
def sweep(
    diagram: Diagram | Plan,
    until: float,
    parameters: Cases,
    measure: Callable[[Result], T] | None = None,
    *,
    record: Sequence[str] | None = None,
    workers: int | None = None,
    progress: bool = True,
    step: float | None = None,
    solver: str | None = None,
    every: int = 1,
    checkpoint: bytes | None = None,
    keep_state: bool | None = None,
    coupling: str | None = None,
    extrapolation: int | None = None,
    coupling_tolerance: float | None = None,
    estimate_error: int = 0,
    tolerance: Tolerance | None = None,
    events: str | None = None,
    error_estimate: bool = False,
) -> Sweep[T] | Sweep[Result]:
    """Run `diagram` once for each case, several at a time.

    The diagram is compiled once. The engine releases the GIL: threads use all cores, unless most of
    the work is in Python blocks.

    Parameters
    ----------
    until
        End time in seconds.
    parameters
        A grid, ``{"pid.kp": [1, 2, 5], "pid.ki": [0, 3]}``: every combination, the last one varies
        fastest. Or a list of cases, ``[{"load.mass": m} for m in rng.normal(5, 0.2, 1000)]``.
    measure
        Function that reduces each `Result` to a value, to save memory in sweeps of thousands of
        runs. By default the whole `Result` is stored.
    record
        As in `simulate`.
    workers
        Number of simultaneous runs; by default one per core.
    progress
        Show a progress bar on a terminal when the sweep takes more than two seconds.
    step, solver, every, checkpoint, keep_state, coupling, extrapolation, coupling_tolerance,
    estimate_error, tolerance, events, error_estimate
        As in `simulate`; errors of fixed steps are estimated on request only.

    Returns
    -------
    Sweep
        With the error of each failed run; the values of the others are available.

    Raises
    ------
    BiellaError
        If a path or a value is invalid; no run is started.
    """
    cases, shape = _cases(parameters)
    plan = plan_of(
        diagram,
        step,
        solver,
        coupling,
        extrapolation,
        estimate_error,
        tolerance,
        events,
        coupling_tolerance,
    )
    choose_signals(plan, record)
    for number, case in enumerate(cases):
        _check_case(plan, number, case)

    def run(case: Case) -> Any:
        result = run_plan(
            plan,
            until,
            record,
            case,
            every=every,
            checkpoint=checkpoint,
            keep_state=keep_state,
            progress=False,
            error_estimate=error_estimate,
        )
        return result if measure is None else measure(result)

    values: list[Any] = [None] * len(cases)
    failures: dict[int, BlockError] = {}
    pool = ThreadPoolExecutor(workers or os.cpu_count() or 1)
    with Progress(
        len(cases),
        f"{plan.name}: {len(cases)} runs",
        show_after=2.0 if progress else float("inf"),
        unit="runs",
    ) as bar:
        try:
            numbers: dict[Future[Any], int] = {
                pool.submit(run, case): number for number, case in enumerate(cases)
            }
            for future in as_completed(numbers):
                try:
                    values[numbers[future]] = future.result()
                except BlockError as error:
                    failures[numbers[future]] = error
                bar.advance(1)
        finally:
            pool.shutdown(cancel_futures=True)
    return Sweep(cases, values, dict(sorted(failures.items())), shape)


def _cases(
    parameters: Cases,
) -> tuple[list[Case], tuple[int, ...]]:
    if isinstance(parameters, Mapping):
        axes = {path: list(values) for path, values in parameters.items()}
        combinations = itertools.product(*axes.values())
        cases: list[Case] = [dict(zip(axes, values, strict=True)) for values in combinations]
        shape = tuple(len(values) for values in axes.values())
    else:
        cases = [dict(case) for case in parameters]
        shape = (len(cases),)
    if not cases:
        raise BiellaError("sweep requires at least one case.")
    return cases, shape


def _check_case(plan: Plan, number: int, case: Case) -> None:
    for path, value in case.items():
        where, shape = plan.find_settable(path)
        try:
            read_value(path, value, shape, plan.first_values[where])
        except BiellaError as error:
            raise BiellaError(f"case {number} of the sweep: {error}") from None
