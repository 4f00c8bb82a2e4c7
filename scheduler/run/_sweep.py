"""`sweep`: run one diagram many times with other parameters, on all cores."""

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
from ..compile.plan._plan import Plan, read_value
from ..results._result import Result
from ._progress import Progress
from ._simulate import choose_signals, plan_of, run_plan

Case = Mapping[str, npt.ArrayLike]
"""Parameters and inputs of one run, by path."""
Cases = Mapping[str, Sequence[npt.ArrayLike]] | Sequence[Case]
"""A grid, or a list of cases."""
T = TypeVar("T")


@dataclass(frozen=True)
class Sweep(Generic[T]):
    """What `sweep` gives: an answer for each case, in the order of the cases.

    Attributes
    ----------
    cases
        What was set in each run.
    values
        What was measured in each, or its `Result`; ``None`` where it failed.
    failures
        By number of the case: the error that ended it.
    shape
        Of the grid, if the cases are one; else their number.
    """

    cases: list[Case]
    values: list[T | None]
    failures: dict[int, BlockError]
    shape: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.cases)

    def __iter__(self) -> Iterator[tuple[Case, T | None]]:
        return iter(zip(self.cases, self.values, strict=True))

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
    estimate_error: int = 0,
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
    estimate_error: int = 0,
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
    estimate_error: int = 0,
) -> Sweep[T] | Sweep[Result]:
    """Run `diagram` once for each case, several at a time.

    The diagram is compiled once. The engine runs outside of Python's lock, so that threads keep all
    cores busy, unless most of the work is in Python blocks.

    Parameters
    ----------
    until
        End time in seconds.
    parameters
        A grid, ``{"pid.kp": [1, 2, 5], "pid.ki": [0, 3]}``: every combination, the last one varies
        fastest. Or a list of cases, ``[{"load.mass": m} for m in rng.normal(5, 0.2, 1000)]``.
    measure
        What to keep of each `Result`, so that thousands fit into memory; all of it if not given.
    record
        As in `simulate`.
    workers
        How many run at once; one for each core if not given.
    progress
        Show a progress bar on a terminal when it takes more than two seconds.
    step, solver, every, checkpoint, keep_state, coupling, extrapolation, estimate_error
        As in `simulate`.

    Returns
    -------
    Sweep
        With the error of each run that failed; the others are not lost.

    Raises
    ------
    BiellaError
        If a path or a value is wrong: before anything runs.
    """
    cases, shape = _cases(parameters)
    plan = plan_of(diagram, step, solver, coupling, extrapolation, estimate_error)
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
        raise BiellaError("a sweep wants at least one case.")
    return cases, shape


def _check_case(plan: Plan, number: int, case: Case) -> None:
    for path, value in case.items():
        where, shape = plan.find_settable(path)
        try:
            read_value(path, value, shape, plan.first_values[where])
        except BiellaError as error:
            raise BiellaError(f"case {number} of the sweep: {error}") from None
