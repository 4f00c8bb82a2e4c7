"""Journal bearings: the time of one call, beside projected over-relaxation in C and in numpy.

    python benchmarks/bearings.py [--quick] [--json FILE] [--peers-python PATH]

A journal moves on a circle by 1e-3 of the clearance a tick, so that a finite film starts from a
near one; ours is then solved to rounding. Peers solve the same 64 × 16 cells with Reynolds'
condition, warm-started too, with as many sweeps as bring every load within an error of ours. ROSS,
which is not among the `peers` extra and lives best in an environment of its own, solves its own
equation on as many nodes, each time anew: so long a user waits for a position. Our times are of
whole ticks of the engine, less those of the same diagram without the bearing.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from peers.process import Peer
from table import (
    Row,
    figure,
    not_installed,
    parse_arguments,
    print_rows,
    times_faster,
    within,
    write_json,
)
from turns import Entrant, take_turns, timed
from workloads.baseline import FLAGS

try:
    from biella import Diagram
except ModuleNotFoundError as error:
    if error.name != "biella":
        raise
    sys.exit("biella is not installed in this environment: run `pip install .` first.")

from biella.blocks import FiniteBearing, MisalignedShortBearing, ShortBearing, Sine
from biella.blocks.bearings import AbstractBearing

Array = npt.NDArray[np.float64]

RADIUS, LENGTH, CLEARANCE, VISCOSITY, SPEED = 0.02, 0.02, 2e-5, 0.03, 300.0
SIZE = (RADIUS, LENGTH, CLEARANCE, VISCOSITY)
CELLS = (64, 16)
ECCENTRICITY, TURN = 0.6, 1e-3
STEP = 1e-3
GROOVE = [(np.pi, 0.3)]
ERROR, CONVERGED = 1e-4, 1e-9
POSITIONS = 100


def place(ticks: Array) -> Array:
    """Give the journal's place in clearances, x and y."""
    angle = TURN / ECCENTRICITY * ticks
    return ECCENTRICITY * np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def build(bearing: AbstractBearing | None, ends: int) -> Diagram:
    """Make a diagram of a journal on a circle; its second end is a little off, if it has one."""
    d = Diagram("bearing", step=STEP)
    frequency = TURN / ECCENTRICITY / (2 * np.pi * STEP)
    phases = [np.pi / 2, 0.0, np.pi / 2 + 0.05, 0.05][: 2 * ends]
    size = ECCENTRICITY * CLEARANCE * np.array([1.0, 1.0, 1.05, 1.05])[: 2 * ends]
    journal = d.add(Sine(size, frequency, phase=phases, unit="m"), name="journal")
    spin = d.add(Sine(0.0, 1.0, bias=SPEED, unit="rad/s"), name="spin")
    if bearing is not None:
        d.add(bearing, name="bearing")
        d.connect(journal, bearing["position"])
        d.connect(spin, bearing["journal_speed"])
    return d


def time_bearings(quick: bool) -> dict[str, float]:
    """Give the time of a call of each model in µs."""
    models: dict[str, tuple[AbstractBearing, int, int]] = {
        "short": (ShortBearing(*SIZE), 1, 20_000),
        "tilted short": (MisalignedShortBearing(*SIZE), 2, 1000),
        "finite": (FiniteBearing(*SIZE), 1, 100),
        "finite, Gümbel": (FiniteBearing(*SIZE, cavitation="gumbel"), 1, 100),
        "finite, tilted": (FiniteBearing(*SIZE, tilt=True), 2, 40),
        "finite, tilted, Gümbel": (
            FiniteBearing(*SIZE, tilt=True, cavitation="gumbel"),
            2,
            40,
        ),
        "finite, JFO": (FiniteBearing(*SIZE, cavitation="jfo", grooves=GROOVE), 1, 40),
        "finite, JFO, tilted": (
            FiniteBearing(*SIZE, cavitation="jfo", grooves=GROOVE, tilt=True),
            2,
            20,
        ),
    }
    entrants = []
    for name, (bearing, ends, ticks) in models.items():
        for label, block in ((name, bearing), (f"{name} without", None)):
            instance = build(block, ends).compile().instantiate()
            instance.run(2)
            run = timed(lambda instance=instance, ticks=ticks: instance.run(ticks))
            entrants.append(Entrant(label, run, ticks * STEP, repeats=3))
    take_turns(entrants, rounds=10 if quick else 40)
    best = {entrant.name: entrant.best for entrant in entrants}
    return {
        name: (best[name] - best[f"{name} without"]) / ticks * 1e6
        for name, (_, _, ticks) in models.items()
    }


def find_forces(warm: bool, count: int) -> Array:
    """Give our forces along the way, warm-started or each from nothing."""
    d = build(FiniteBearing(*SIZE, cells=CELLS), 1)
    forces = []
    with d.compile().instantiate() as instance:
        info = next(p for p in instance.plan.blocks[-1].outputs if p.path.endswith(".force"))
        for _ in range(count):
            if not warm:
                instance.memory[:] = 0.0
                instance.touch()
            instance.evaluate()
            forces.append(instance.values[info.slot : info.slot + 2].copy())
            instance.run(1)
    scale = 6 * VISCOSITY * SPEED * (RADIUS / CLEARANCE) ** 2 * RADIUS * LENGTH
    return np.array(forces) / scale


def worst(forces: Array, wanted: Array) -> float:
    """Give the largest error of a load, as a part of it; the first positions only settle."""
    off = np.linalg.norm(forces - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    return float(off[POSITIONS // 4 :].max())


Walk = Callable[[Array, int], Array]
"""Gives the forces along positions for a number of sweeps."""


def build_sor() -> Walk:
    """Compile the over-relaxation in C."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        sys.exit("The C peer needs a C compiler: install one as `cc`, or name it in CC.")
    source = Path(__file__).parent / "workloads" / "film_sor.c"
    flags = [flag if flag != "-O2" else "-O3" for flag in FLAGS]
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "film_sor.so"
        subprocess.run(
            [*compiler.split(), *flags, str(source), "-lm", "-o", str(target)], check=True
        )
        function = ctypes.CDLL(str(target)).film_sor
    pointer = ctypes.POINTER(ctypes.c_double)

    def walk(positions: Array, sweeps: int) -> Array:
        forces = np.empty_like(positions)
        function(
            ctypes.c_long(len(positions)),
            positions.ctypes.data_as(pointer),
            ctypes.c_double(RADIUS / LENGTH),
            ctypes.c_double(1.7),
            ctypes.c_long(sweeps),
            forces.ctypes.data_as(pointer),
        )
        return forces

    return walk


def make_numpy() -> Walk:
    """Make the same in numpy: red and black cells in turn, each as one array operation."""
    n, m = CELLS
    dt, dz = 2 * np.pi / n, 1 / m
    theta = (np.arange(n) + 0.5) * dt
    ends = np.ones((1, m + 1))
    ends[:, [0, -1]] = 2.0
    black = np.indices(CELLS).sum(axis=0) % 2 == 1
    q = np.zeros((n, m + 2))

    def walk(positions: Array, sweeps: int) -> Array:
        forces = []
        for x, y in positions:
            middle = 1 - x * np.cos(theta) - y * np.sin(theta)
            face = 1 - x * np.cos(theta + dt / 2) - y * np.sin(theta + dt / 2)
            after = (face**3 / dt**2)[:, None]
            before = np.roll(after, 1, axis=0)
            along = (RADIUS / LENGTH) ** 2 * (middle**3)[:, None] / dz**2 * ends
            diagonal = after + before + along[:, :-1] + along[:, 1:]
            source = (y * np.cos(theta) - x * np.sin(theta)) * np.sin(dt / 2) / (dt / 2)
            below = along[:, :-1] * (np.arange(m) > 0)
            above = along[:, 1:] * (np.arange(m) < m - 1)
            inner = q[:, 1:-1]
            for _ in range(sweeps):
                for cells in (black, ~black):
                    total = (
                        after * np.roll(inner, -1, axis=0)
                        + before * np.roll(inner, 1, axis=0)
                        + below * q[:, :-2]
                        + above * q[:, 2:]
                        + source[:, None]
                    )
                    next_q = np.maximum(inner + 1.7 * (total / diagonal - inner), 0.0)
                    inner[cells] = next_q[cells]
            sums = inner.sum(axis=1) * dt * dz
            forces.append([-sums @ np.cos(theta), -sums @ np.sin(theta)])
        return np.array(forces)

    return walk


def count_sweeps(walk: Walk, positions: Array, wanted: Array, error: float) -> int:
    """Find how many sweeps at each position bring all loads within an error."""
    walk(positions[:1], 2000)
    for sweeps in range(1, 400):
        if worst(walk(positions, sweeps), wanted) <= error:
            return sweeps
    sys.exit(f"Over-relaxation does not come within {error:g} of our loads: one of them is wrong.")


def time_walk(walk: Walk, positions: Array, sweeps: int, rounds: int) -> float:
    """Give the time of a position in µs."""
    entrant = Entrant("sor", timed(lambda: walk(positions, sweeps)), 0.0)
    take_turns([entrant], rounds)
    return entrant.best / len(positions) * 1e6


def main() -> None:
    """Time all and print the table."""
    arguments = parse_arguments("Journal bearings beside over-relaxation in C and in numpy.")
    quick = arguments.quick
    ours = time_bearings(quick)
    positions = place(np.arange(float(POSITIONS)))
    wanted = find_forces(False, POSITIONS)
    finite = "finite bearing, 64 × 16, warm-started"
    rows: list[Row] = [
        within("short bearing, one call", ours["short"], 0.5, "µs"),
        within("tilted short bearing, one call", ours["tilted short"], 20, "µs"),
        within(finite, ours["finite"], 100, "µs"),
        within(f"{finite}: load error", worst(find_forces(True, POSITIONS), wanted), ERROR, ""),
    ]
    notes = []
    compiled = build_sor()
    for name, walk, error, count in (
        ("projected SOR in C", compiled, ERROR, POSITIONS),
        ("projected SOR in C", compiled, CONVERGED, POSITIONS),
        ("projected SOR in numpy", make_numpy(), ERROR, POSITIONS // 2),
    ):
        sweeps = count_sweeps(walk, positions[:count], wanted[:count], error)
        taken = time_walk(walk, positions[:count], sweeps, 3 if quick else 10)
        peer = f"{name}, to {error:g}"
        rows.append(times_faster(finite, peer, ours["finite"], taken, "µs"))
        notes.append(f"{peer}: {sweeps} sweeps at each position.")
    ross = Peer("ross", arguments.peers_python)
    if not ross.version:
        rows.append(not_installed(finite, "ROSS", ours["finite"], "µs", ""))
    else:
        taken = min(ross.run("film", ECCENTRICITY)[0] for _ in range(5)) * 1e6
        rows.append(times_faster(finite, f"ROSS {ross.version}", ours["finite"], taken, "µs"))
    ross.close()
    rows += [
        within(f"finite bearing, 64 × 16, {name}", ours[f"finite, {name}"], 100, "µs")
        for name in ("Gümbel", "tilted", "tilted, Gümbel")
    ]
    rows += [
        figure(f"finite bearing, 64 × 16, {name}, one tick", ours[f"finite, {name}"], "µs")
        for name in ("JFO", "JFO, tilted")
    ]
    print_rows("Journal bearings, one evaluation", rows, notes)
    if arguments.json:
        write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
