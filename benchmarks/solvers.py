"""Solvers with error control: work and precision beside scipy's `solve_ivp` and SUNDIALS CVODE.

    python benchmarks/solvers.py [--quick] [--json FILE] [--plot FILE]

The problems are those of `workloads/initial_value_problems.py`: `radau5` solves the stiff ones,
`dopri5` the others. Each solver runs over tolerances from 1e-3 to 1e-10. Its error at the end,
against the reference solution, its time, and its work, which is the number of evaluations of the
right-hand side and of factorizations, make a curve. Two solvers are compared at equal error: time
and work are interpolated on both curves, at errors that both reach. The ratio is the geometric mean
over these errors.

Work is counted alike for all: every evaluation counts, those for Jacobians and the first step
included; a real and a complex factorization count as two. Evaluations of scipy's methods are
counted by the function that they call. Ours counts its own.

CVODE, from scikit-sundae, runs twice: as it is called from Python, where a right-hand side in
Python takes most of the time, and from C with a right-hand side in C. The right-hand side of ours
is an `Expression`, which the engine interprets.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from peers import cvode
from scipy.integrate import solve_ivp
from table import (
    Row,
    at_most,
    not_installed,
    parse_arguments,
    print_rows,
    say,
    times_faster,
    write_json,
)
from workloads.initial_value_problems import SMOOTH, STIFF, Problem

from biella.scheduler.engine._library import contract

OURS = "biella"
PYTHON_CVODE, C_CVODE = "CVODE from Python", "CVODE in C"
SCIPY_STIFF, SCIPY_SMOOTH = ("Radau", "BDF", "LSODA"), ("RK45", "DOP853", "LSODA")
LARGEST_WORK = 1.5
COMPARED = np.logspace(-2, -10, 17)
"""Errors at which two solvers are compared, as far as both reach them."""

Solved = tuple[Any, int | None]
"""The states at the end, and the work; None: not known."""


@dataclass
class Curve:
    """What a solver needs for a problem: one point for each tolerance."""

    solver: str
    solve: Callable[[float, float], Solved]
    error: list[float] = field(default_factory=list)
    time: list[float] = field(default_factory=list)
    work: list[int | None] = field(default_factory=list)

    def measure(self, problem: Problem, relative: float, least: float) -> None:
        """Add the point of a tolerance; the best time of runs that together take `least` counts.

        Time is that of the processor: it leaves out what others do on a busy machine.
        """
        best, x, work = math.inf, None, None
        begin = time.process_time()
        while best == math.inf or time.process_time() - begin < least:
            start = time.process_time()
            x, work = self.solve(relative, problem.floor * relative)
            best = min(best, time.process_time() - start)
        error = problem.error(np.asarray(x))
        # Below this a reference solution of 16 digits says nothing.
        self.error.append(max(error, 1e-14) if math.isfinite(error) else math.inf)
        self.time.append(best)
        self.work.append(work)

    def cost_at(self, errors: Any, costs: Sequence[float]) -> Any:
        """Return costs at these errors; NaN where the solver does not reach them.

        Between points, logarithms are interpolated. A point counts only if no other one is both
        cheaper and more precise.
        """
        points: list[tuple[float, float]] = []
        for error, cost in sorted(zip(self.error, costs, strict=True), key=lambda p: (p[1], p[0])):
            if error <= 1.0 and (not points or error < points[-1][0]):
                points.append((error, cost))
        if len(points) < 2:
            return np.full(len(errors), math.nan)
        x, y = np.log(np.array(points[::-1])).T
        return np.exp(np.interp(np.log(errors), x, y, left=math.nan, right=math.nan))


def solve_with_engine(
    problem: Problem, tolerances: Sequence[float]
) -> Callable[[float, float], Solved]:
    """Return ours: the engine alone, on plans that are compiled here."""
    solver = "radau5" if problem.stiff else "dopri5"
    instances = {
        relative: problem.diagram(solver, relative).compile().instantiate()
        for relative in tolerances
    }

    def solve(relative: float, absolute: float) -> Solved:
        instance = instances[relative]
        instance.reset()
        instance.run(1)
        evaluations, factorizations = (
            int(instance.counters[contract.BL_EVENT_COUNTERS + counter])
            for counter in (contract.BL_SOLVER_EVALUATIONS, contract.BL_SOLVER_FACTORIZATIONS)
        )
        return instance.get("x.y"), evaluations + factorizations

    return solve


def solve_with_scipy(problem: Problem, method: str) -> Callable[[float, float], Solved]:
    """Return a method of `solve_ivp`, with the right-hand side in Python."""
    function, calls = problem.function(), 0

    def counted(t: float, x: Any) -> Any:
        nonlocal calls
        calls += 1
        return function(t, x)

    def solve(relative: float, absolute: float) -> Solved:
        nonlocal calls
        calls = 0
        start = np.array(problem.start, dtype=float)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of tolerances that a method calls too small
            result = solve_ivp(
                counted, (0.0, problem.end), start, method=method, rtol=relative, atol=absolute
            )
        x = result.y[:, -1] if result.success else np.full(len(start), np.nan)
        # LSODA does not report its factorizations: its work is then less than it was.
        return x, calls + int(result.nlu or 0)

    return solve


def measure_problem(problem: Problem, tolerances: Sequence[float], quick: bool) -> list[Curve]:
    """Run all solvers over all tolerances, in turns."""
    curves = [Curve(OURS, solve_with_engine(problem, tolerances))]
    curves += [
        Curve(f"scipy {method}", solve_with_scipy(problem, method))
        for method in (SCIPY_STIFF if problem.stiff else SCIPY_SMOOTH)
    ]
    if cvode.is_installed():
        called = cvode.solve_in_python(problem)
        curves.append(Curve(PYTHON_CVODE, lambda r, a: (called(r, a), None)))
        built = cvode.build_function(problem)
        if built is not None:
            compiled = built
            curves.append(Curve(C_CVODE, lambda r, a: ((s := compiled(r, a))[0], s[1] + s[2])))
    for tolerance in tolerances:
        for curve in curves:
            curve.measure(problem, tolerance, least=0.002 if quick else 0.02)
    return curves


def compare(problem: Problem, curves: Sequence[Curve]) -> tuple[list[Row], str]:
    """Make the rows of a problem, and the note with the range of its ratios of work."""
    ours, rows, ranges = curves[0], [], []
    work_of_ours = [float(work or 0) for work in ours.work]
    for quantity in ("time", "work"):
        for curve in curves[1:]:
            theirs = curve.time if quantity == "time" else curve.work
            if any(value is None for value in theirs):
                continue
            own = ours.time if quantity == "time" else work_of_ours
            a = ours.cost_at(COMPARED, own)
            b = curve.cost_at(COMPARED, [float(value or 0) for value in theirs])
            both = np.isfinite(a) & np.isfinite(b)
            if not both.any():
                ranges.append(f"{curve.solver} reaches no error that ours reaches")
                continue
            mean_a, mean_b = (float(np.exp(np.log(v[both]).mean())) for v in (a, b))
            ratios = (a / b)[both]
            if quantity == "work":
                ranges.append(
                    f"{curve.solver} {ratios.min():.2g} to {ratios.max():.2g}"
                    f" ({COMPARED[both].max():.0e} to {COMPARED[both].min():.0e})"
                )
            title = f"{problem.name}: {quantity} at equal error"
            if quantity == "time":
                # A right-hand side in C is beyond the target: it is there to be read.
                least = None if curve.solver == C_CVODE else 1
                rows.append(
                    times_faster(title, curve.solver, mean_a * 1e3, mean_b * 1e3, "ms", least)
                )
            else:
                most = LARGEST_WORK if has_target(curve.solver) else None
                rows.append(at_most(title, curve.solver, mean_a, mean_b, "", most))
    if not cvode.is_installed():
        title = f"{problem.name}: time at equal error"
        rows.append(
            not_installed(
                title, "CVODE", math.nan, "ms", "≥ 1× faster", "pip install scikit-sundae"
            )
        )
    return rows, f"{problem.name}, ratios of work (and errors): {'; '.join(ranges)}."


def has_target(solver: str) -> bool:
    """Return whether work is held against this solver: not where it does not count all of it."""
    return solver != "scipy LSODA"


PAIRS = 3
"""Problems beside each other in the picture."""
STYLES = {
    OURS: ("#c1272d", "o", 2.2),
    "scipy Radau": ("#1f77b4", "s", 1.2),
    "scipy BDF": ("#6baed6", "^", 1.2),
    "scipy LSODA": ("#9e9ac8", "v", 1.2),
    "scipy RK45": ("#1f77b4", "s", 1.2),
    "scipy DOP853": ("#6baed6", "^", 1.2),
    PYTHON_CVODE: ("#74a57f", "D", 1.2),
    C_CVODE: ("#1b6b3a", "D", 1.2),
}


def draw(measured: Sequence[tuple[Problem, list[Curve]]], path: Path) -> None:
    """Draw error against time and, beside it, against work: a pair of axes for each problem."""
    rows = math.ceil(len(measured) / PAIRS)
    figure = Figure(figsize=(5.2 * PAIRS, 2.9 * rows + 0.5), layout="constrained")
    parts = np.atleast_1d(figure.subfigures(rows, PAIRS, wspace=0.03, hspace=0.04)).ravel()
    handles: dict[str, Any] = {}
    for part, (problem, curves) in zip(parts, measured, strict=False):
        part.suptitle(problem.name, fontsize=11)
        axes = part.subplots(1, 2, sharey=True)
        for ax, quantity in zip(axes, ("time", "work"), strict=True):
            for curve in curves:
                values = [v * 1e3 for v in curve.time] if quantity == "time" else curve.work
                points = [
                    (value, error)
                    for value, error in zip(values, curve.error, strict=True)
                    if value is not None and error <= 3.0
                ]
                if not points:
                    continue
                color, marker, width = STYLES[curve.solver]
                (line,) = ax.loglog(
                    *zip(*points, strict=True), color=color, marker=marker, markersize=3.5,
                    linewidth=width, zorder=3 if curve.solver == OURS else 2,
                )  # fmt: skip
                handles.setdefault(curve.solver, line)
            ax.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
            ax.tick_params(labelsize=8)
            ax.xaxis.set_minor_formatter(NullFormatter())
            ax.set_xlabel(
                "processor time / ms" if quantity == "time" else "evaluations + factorizations"
            )
        axes[0].set_ylabel("error at the end")
    names = [name for name in STYLES if name in handles]
    figure.legend(
        [handles[name] for name in names], names, loc="outside lower center", ncols=len(names)
    )
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run all problems and print the table."""
    arguments = parse_arguments(
        "Solvers with error control beside scipy and SUNDIALS CVODE.", plot=True
    )
    quick = arguments.quick
    tolerances = np.logspace(-3, -10, 8 if quick else 15)
    rows: list[Row] = []
    notes: list[str] = []
    measured = []
    for problem in (*STIFF, *SMOOTH):
        say(problem.name)
        curves = measure_problem(problem, [float(t) for t in tolerances], quick)
        more_rows, note = compare(problem, curves)
        rows += more_rows
        notes.append(note)
        measured.append((problem, curves))
    print_rows("Solvers with error control, at equal error", rows, notes)
    if arguments.json:
        write_json(arguments.json, rows)
    if arguments.plot:
        draw(measured, arguments.plot)


if __name__ == "__main__":
    sys.exit(main())
