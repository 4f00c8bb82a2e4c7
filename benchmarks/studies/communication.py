"""Adaptive communication steps against fixed ones: how many two cases need for equal errors.

    python benchmarks/studies/communication.py [--quick] [--fmu]

- *Quarter car*: a wheel of 40 kg on a tire, excited by a road step of 0.1 m, and a chassis of
  400 kg on a spring and a damper: the benchmark of Sadjina, Kyllingstad, Skjong and Pedersen
  (Energy conservation and power bonds in co-simulations, Engineering with Computers 33, 2017), with
  the numbers of the test FMUs of libcosim's adaptive algorithm, without gravity. The wheel has the
  suspension, gets the motion of the chassis and gives the force.
- *Dual mass oscillator* of OMSimulator's test suite: two masses of 1 kg on springs of 1e4 and
  1e5 N/m, coupled by 1e6 N/m with little damping. The second mass has the coupling spring, gets the
  motion of the first and gives the force. A fast oscillation dies away, a slow one remains.

The error is the largest deviation from the closed form (the matrix exponential) at ticks, relative
to the largest value of each state. For each tolerance the fixed step with the same error is found
by interpolation between runs with fixed steps. Printed is how many steps both take: communication
steps, with rejected ones, and steps of each member, which iterations repeat.

With ``--fmu`` the parts are exported and coupled as FMUs.
"""

from __future__ import annotations

import argparse
import atexit
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.linalg import expm

from biella import Diagram, Fmu, simulate
from biella.blocks import Expression
from biella.blocks.multibody import System
from biella.errors import CouplingWarning

SUBSTEPS = 4
MOTION = ["slide.displacement", "slide.speed"]
STATES = [f"{name}.{path}" for name in ("first", "second") for path in MOTION]


@dataclass(frozen=True)
class Case:
    """Two masses. The first has its own spring; the second its own, and the spring between them.

    Springs of the masses are (stiffness, damping, place at rest) in N/m, N s/m, m.
    """

    name: str
    masses: tuple[float, float]
    own: tuple[tuple[float, float, float], tuple[float, float, float]]
    between: tuple[float, float]
    start: tuple[float, float]
    until: float
    step: float
    """The base step: the interval of outputs, and the largest communication step."""
    method: str
    extrapolation: int


CASES = (
    Case(
        "quarter car", (400.0, 40.0), ((0.0, 0.0, 0.0), (150e3, 0.0, 0.1)), (15e3, 1e3),
        (0.0, 0.0), 4.0, 0.02, "jacobi", 2,
    ),
    Case(
        "dual mass oscillator", (1.0, 1.0), ((1e4, 2.0, 0.0), (1e5, 6.3246, 0.0)), (1e6, 14.1421),
        (0.0, 0.5), 0.5, 2e-3, "newton", 1,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """How exact a run is, and what it takes."""

    error: float
    steps: float
    """Communication steps, with rejected ones."""
    advances: float
    """Steps of each member."""
    rejected: float = 0.0
    exceeded: float = 0.0


@cache
def fmu_folder() -> Path:
    folder = TemporaryDirectory(prefix="communication-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def make_part(case: Case, n: int) -> System:
    """Return a mass on its springs; the one between both is attached to a point at rest."""
    s = System("mass", (0, 0), planar=True)
    body = s.body("mass", mass=case.masses[n], inertia=1.0, position=(case.start[n], 0))
    s.prismatic("slide", s.ground, body, at=(case.start[n], 0), axis=(1, 0))
    end = body.marker("end")
    for k, (stiffness, damping, rest) in enumerate((case.own[n], (*case.between, 0.0))[: 1 + n]):
        if stiffness == 0.0:
            continue
        wall = s.ground.marker(f"wall{k}", (-9, 0))
        s.spring(
            f"spring{k}", wall, end, stiffness=stiffness, damping=damping, free_length=9.0 + rest
        )
    s.force("push", end, (0.0, 0.0))
    return s


def make_diagram(case: Case, step: float, fmu: bool = False) -> Diagram:
    d = Diagram(case.name, step=step, coupling=case.method, extrapolation=case.extrapolation)
    for n, name in enumerate(("first", "second")):
        part = make_part(case, n)
        if fmu:
            path = fmu_folder() / f"{case.name} {name} {step:.3g}.fmu".replace(" ", "_")
            inner = Diagram(name, step=step)
            plant = inner.add(
                part.block(["push.force.x"], MOTION, mode="internal", substeps=SUBSTEPS), "plant"
            )
            inner.connect(inner.input("push_force_x", unit="N"), plant["push.force.x"])
            for path_of in MOTION:
                inner.output(path_of.replace(".", "_"), plant[path_of])
            inner.export_fmu(path, sources=False)
            d.add(Fmu(path), name)
        else:
            d.add(part.block(["push.force.x"], MOTION, mode="internal", substeps=SUBSTEPS), name)
    dot = "_" if fmu else "."
    # A mechanism gives its displacement from where it starts.
    numbers = dict(zip(("k", "c", "x10", "x20"), (*case.between, *case.start), strict=True))
    laws = {
        "first": "k*(x2 + x20 - x1 - x10) + c*(v2 - v1)",
        "second": "k*(x1 + x10) + c*v1",
    }
    for target, formula in laws.items():
        used = {name: value for name, value in numbers.items() if name in formula}
        law = d.add(Expression(formula, parameters=used, unit="N"), f"on_{target}")
        for port in law.input_index:
            source = {"1": "first", "2": "second"}[port[1]]
            quantity = {"x": "displacement", "v": "speed"}[port[0]]
            d.connect(d[source][f"slide{dot}{quantity}"], law[port])
        d.connect(law, d[target][f"push{dot}force{dot}x"])
    return d


@cache
def exact(case: Case, count: int) -> np.ndarray:
    """Return displacement and speed of both masses at `count` + 1 equal times, one row each."""
    m = np.diag(case.masses)
    pair = np.array([[1.0, -1.0], [-1.0, 1.0]])
    k = np.diag([own[0] for own in case.own]) + case.between[0] * pair
    c = np.diag([own[1] for own in case.own]) + case.between[1] * pair
    load = np.array([own[0] * own[2] for own in case.own])
    a = np.zeros((5, 5))
    a[:2, 2:4] = np.eye(2)
    a[2:4] = np.linalg.solve(m, np.column_stack([-k, -c, load]))
    step = expm(a * case.until / count)
    z = np.array([*case.start, 0.0, 0.0, 1.0])
    rows = np.empty((count + 1, 4))
    for n in range(count + 1):
        x1, x2, v1, v2, _ = z
        rows[n] = x1 - case.start[0], v1, x2 - case.start[1], v2
        z = step @ z
    return rows


def run_case(case: Case, step: float, tolerance: float | None = None, fmu: bool = False) -> Run:
    """Run with fixed steps of this length, or with base steps and this tolerance."""
    paths = [path.replace("slide.", "slide_") if fmu else path for path in STATES]
    run = simulate(
        make_diagram(case, step, fmu), case.until, record=paths, coupling_tolerance=tolerance,
        error_estimate=False,
    )  # fmt: skip
    rows = np.column_stack([run[path] for path in paths])
    true = exact(case, len(rows) - 1)
    every = max(1, round(case.step / step))  # errors are compared at the base step's ticks
    error = np.abs(rows - true)[::every].max(axis=0) / np.abs(true).max(axis=0)
    item = run.coupling_report().couplings[0]
    if tolerance is None:
        return Run(float(error.max()), item["steps"], item["sweeps"])
    return Run(
        float(error.max()), item["communication_steps"] + item["rejected"], item["sweeps"],
        item["rejected"], item["exceeded"],
    )  # fmt: skip


def compare(
    case: Case, tolerances: Sequence[float], divisions: Sequence[int], fmu: bool = False
) -> list[tuple[float, Run, Run]]:
    """Return, for each tolerance, the adaptive run and the fixed one of the same error."""
    fixed = [run_case(case, case.step / n, fmu=fmu) for n in divisions]
    found = []
    for tolerance in tolerances:
        adaptive = run_case(case, case.step, tolerance, fmu)
        found.append((tolerance, adaptive, _match(fixed, adaptive.error)))
    return found


def _match(fixed: Sequence[Run], error: float) -> Run:
    """Interpolate the numbers of steps at an error, in logarithms; the runs get more exact."""
    usable = [run for run in fixed if np.isfinite(run.error) and run.error < 1.0]
    logs: Any = np.log([[run.error, run.steps, run.advances] for run in usable[::-1]])
    if not logs[0, 0] <= np.log(error) <= logs[-1, 0]:
        return Run(error, np.nan, np.nan)
    steps, advances = (np.exp(np.interp(np.log(error), logs[:, 0], logs[:, n])) for n in (1, 2))
    return Run(error, float(steps), float(advances))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two tolerances instead of four")
    parser.add_argument("--fmu", action="store_true", help="the parts are FMUs")
    options = parser.parse_args()
    warnings.simplefilter("ignore", CouplingWarning)  # of energies that long fixed steps create
    tolerances = (1e-3, 1e-4) if options.quick else (1e-2, 1e-3, 1e-4, 1e-5)
    divisions = tuple(2**n for n in range(1, 9 if options.quick else 10))
    for case in CASES:
        print(
            f"\n{case.name}: {case.method}, extrapolation {case.extrapolation}, base step "
            f"{case.step * 1e3:g} ms, {case.until:g} s"
        )
        print(
            f"{'tolerance':>9} {'error':>8}   {'communication steps':^26}   {'member steps':^26}\n"
            f"{'':18}   {'adaptive':>8} {'fixed':>8} {'ratio':>8}   "
            f"{'adaptive':>8} {'fixed':>8} {'ratio':>8}"
        )
        for tolerance, adaptive, fixed in compare(case, tolerances, divisions, options.fmu):
            print(
                f"{tolerance:9.0e} {adaptive.error:8.1e}   {adaptive.steps:8.0f} "
                f"{fixed.steps:8.0f} {fixed.steps / adaptive.steps:8.2f}   "
                f"{adaptive.advances:8.0f} {fixed.advances:8.0f} "
                f"{fixed.advances / adaptive.advances:8.2f}"
            )


if __name__ == "__main__":
    main()
