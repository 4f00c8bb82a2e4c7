"""Block diagrams: our engine beside C, Jaxonomy, PathSim and bdsim.

    python benchmarks/diagram.py [--quick] [--json FILE] [--peers-python PATH]

The diagrams are defined in `workloads/works.py`. All participants of a work take turns in one run
and the best time of each counts. C and ours run in this process, each peer in one of its own
(install them with `pip install "biella[peers]"`, here or in an environment given by
`--peers-python`). The final outputs are compared with that of the C written out, or with the closed
form; if one is wrong, no figure is printed.

The last rows are the cost of events within a tick, `workloads/events.py`, and of a state machine,
`workloads/machines.py`; ``--events`` measures
these alone.
"""

from __future__ import annotations

import gc
import math
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

from peers.process import Peer
from table import (
    Row,
    at_most,
    not_installed,
    parse_arguments,
    print_rows,
    times_faster,
    within,
    write_json,
)
from turns import Entrant, fit_exponent, take_turns, timed
from workloads.baseline import Baseline, build_baselines
from workloads.works import BLOCKS, SECONDS, STEP, line_output, ticks

try:
    from biella import Diagram, simulate
except ModuleNotFoundError as error:
    if error.name != "biella":
        raise
    sys.exit("biella is not installed in this environment: run `pip install .` first.")

from workloads import events, machines
from workloads.ours import BUILD, Decay, build_line, decay

from biella.blocks import Integrator

AGREEMENT = 1e-9
"""Largest accepted difference of final outputs. All outputs are of order 1."""

PRETTY = {"pathsim": "PathSim", "bdsim": "bdsim", "jaxonomy": "Jaxonomy"}


@dataclass
class Contest:
    """One diagram run by all."""

    work: str
    title: str
    c: dict[str, Entrant]
    ours: Entrant
    """The engine alone, on a compiled plan, like the C."""
    whole: Entrant
    """`simulate()` on a new diagram: build, compile, run, record one signal."""
    first_whole: float
    """The first of these: what Python imports on the way is in it; seconds."""
    peers: dict[str, Entrant | None]
    """None: not installed."""
    first_run: float
    """Jaxonomy's first run, which contains its compilation; seconds."""

    @property
    def entrants(self) -> list[Entrant]:
        return [*self.c.values(), self.ours, self.whole, *filter(None, self.peers.values())]


def hold_contest(
    work: str,
    title: str,
    baselines: dict[str, Baseline],
    peers: dict[str, Peer],
    slow: dict[str, float],
    quick: bool,
) -> Contest:
    """Measure one diagram for all. `slow` gives the simulated seconds for each slow peer."""
    seconds = SECONDS[work]

    def run_engine() -> tuple[float, float | None]:
        instance.reset()
        elapsed, _ = timed(lambda: instance.run(ticks(seconds)))()
        return elapsed, float(instance.get("x.y"))

    def run_whole() -> float:
        result = simulate(BUILD[work](), until=seconds, record=["x"])
        return float(result["x"][-1])

    first_whole, _ = timed(run_whole)()
    instance = BUILD[work]().compile().instantiate()
    # For the line Jaxonomy compiles for longer than all the rest takes.
    simulated = slow if quick and work == "line" else {"jaxonomy": seconds, **slow}

    def enter(package: str) -> Entrant | None:
        peer = peers[package]
        if not peer.version:
            return None
        return Entrant(
            f"{PRETTY[package]} {peer.version}",
            lambda: peer.run(work, simulated[package]),
            simulated[package],
            repeats=1 if package in slow else 3,
            rounds=(1 if quick else 2) if package in slow else None,
        )

    entered = {package: enter(package) for package in simulated}
    jaxonomy = entered.get("jaxonomy")
    contest = Contest(
        work,
        title,
        c={
            name: Entrant(f"C {name}", timed(lambda f=f: f(seconds)), seconds, repeats=10)
            for name, f in baselines.items()
        },
        ours=Entrant("ours, engine", run_engine, seconds, repeats=10),
        whole=Entrant("ours, simulate()", timed(run_whole), seconds),
        first_whole=first_whole,
        peers=entered,
        first_run=jaxonomy.run()[0] if jaxonomy else math.nan,
    )
    take_turns(contest.entrants, rounds=4 if quick else 15)
    return contest


def judge(contest: Contest) -> list[Row]:
    """Make the rows of a contest."""
    work, title = contest.work, contest.title
    ours, whole = contest.ours.best * 1e3, contest.whole.best * 1e3
    rows = [
        at_most(title, e.name, ours, e.best * 1e3, "ms", 3 if name == "table" else None)
        for name, e in contest.c.items()
    ]
    for package, entrant in contest.peers.items():
        if entrant is None and package != "jaxonomy":
            rows.append(not_installed(title, PRETTY[package], ours, "ms", "≥ 500× faster"))
        elif entrant is not None:
            theirs = entrant.best * 1e3 * SECONDS[work] / entrant.simulated
            times = None if package == "jaxonomy" else 500
            rows.append(times_faster(title, entrant.name, ours, theirs, "ms", times))
    if work == "line":
        each = contest.ours.best / (ticks(SECONDS[work]) * 4 * BLOCKS[work])
        rows.append(within(f"{title}: per block and stage", each * 1e9, 10, "ns"))
    counted = f"{title}, compile counted"
    least = 1 if work == "pid" else None
    if "jaxonomy" not in contest.peers:
        return rows
    if (jaxonomy := contest.peers["jaxonomy"]) is None:
        rows.append(not_installed(counted, "Jaxonomy", whole, "ms", "≥ 1× faster" if least else ""))
    else:
        theirs = contest.first_run * 1e3
        rows.append(times_faster(counted, jaxonomy.name, whole, theirs, "ms", least))
    return rows


def comment(contest: Contest, reference: Baseline) -> list[str]:
    """Say what a reader of the rows has to know."""
    title, seconds = contest.title, SECONDS[contest.work]
    notes = [
        f"{title}: the whole simulate() call (build, compile, run, record one signal) takes"
        f" {contest.whole.best * 1e3:.3g} ms, the first time"
        f" {contest.first_whole * 1e3:.3g} ms; the engine alone {contest.ours.best * 1e3:.3g} ms."
    ]
    for package, entrant in contest.peers.items():
        if entrant is None:
            notes.append(
                f"{PRETTY[package]} is not installed here: `pip install 'biella[peers]'`,"
                " or name the interpreter that has it with --peers-python."
            )
        elif package == "jaxonomy":
            notes.append(
                f"{title}: {entrant.name} compiles in {contest.first_run - entrant.best:.2f} s"
                " (its import and the building of its diagram are not counted)."
            )
        elif entrant.simulated != seconds:
            notes.append(
                f"{title}: {entrant.name} ran {entrant.simulated:g} s instead of {seconds:g} s;"
                " its time is scaled."
            )
    if "jaxonomy" not in contest.peers:
        notes.append(f"{title}: Jaxonomy is left out of --quick, its compilation takes too long.")
    notes.append(check_agreement(title, reference, contest.entrants))
    return notes


def check_agreement(title: str, reference: Baseline, entrants: list[Entrant]) -> str:
    """Say how far the final outputs are apart; stop if one of them solved something else."""
    apart = {
        e.name: abs(e.output - reference(e.simulated)) for e in entrants if e.output is not None
    }
    wrong = [f"{name} by {gap:.2e}" for name, gap in apart.items() if not gap <= AGREEMENT]
    if wrong:
        sys.exit(f"{title}: these final outputs are wrong: {', '.join(wrong)}.")
    worst = max(apart, key=lambda name: apart[name])
    return (
        f"{title}: the final outputs of {', '.join(apart)} agree to"
        f" {apart[worst]:.1e} (farthest: {worst})."
    )


def measure_compile(quick: bool) -> tuple[list[Row], list[str]]:
    """Time `Diagram.compile` on 10,000 blocks, and fit the exponent over sizes around it."""
    sizes = [5_000, 10_000, 20_000]
    best = dict.fromkeys(sizes, math.inf)
    built = dict.fromkeys(sizes, math.inf)
    for _ in range(2 if quick else 4):
        for size in sizes:
            start = time.perf_counter()
            d = build_line(size // 2)
            built[size] = min(built[size], time.perf_counter() - start)
            gc.collect()
            best[size] = min(best[size], timed(d.compile)()[0])
            del d
    rows = [
        within("compile 10,000 blocks", best[10_000], 2, "s"),
        # 1 is linear; the rest allows for the noise of a fit through three points.
        within("compile: time grows as blocks to the power", fit_exponent(best), 1.15, ""),
    ]
    listed = ", ".join(f"{size:,}: {best[size]:.3g} s" for size in sizes)
    return rows, [f"compile: {listed}; add and connect of 10,000 take {built[10_000]:.3g} s."]


def measure_python_block(quick: bool) -> list[Row]:
    """Time a call of a Python block that closes the loop around an integrator, all included."""
    counted = Decay()
    kinds = {"a class": counted, "a function": decay()}
    instances = {}
    for kind, python_block in kinds.items():
        d = Diagram("python block in the loop", step=STEP, solver="rk4")
        x = d.add(Integrator(1.0), name="x")
        y = d.add(python_block, name="decay")
        d.connect(x, y)
        d.connect(y, x)
        instances[kind] = d.compile().instantiate()
    number = 2000
    counted.calls = 0
    instances["a class"].run(number)
    calls = counted.calls

    def enter(kind: str) -> Entrant:
        instance = instances[kind]
        return Entrant(kind, timed(lambda: instance.run(number)), number * STEP, repeats=5)

    entrants = [enter(kind) for kind in kinds]
    take_turns(entrants, rounds=5 if quick else 20)
    return [
        within(f"one call of a Python block, {e.name}", e.best / calls * 1e6, 3, "µs")
        for e in entrants
    ]


def measure_import(quick: bool) -> list[Row]:
    """Time both imports in fresh interpreters, in turns; the medians count."""

    def import_in_child(module: str) -> float:
        code = f"from time import perf_counter as c; t = c(); import {module}; print(c() - t)"
        answer = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        return float(answer.stdout)

    modules = ("biella", "scipy.signal")
    taken: dict[str, list[float]] = {module: [] for module in modules}
    for number in range(3 if quick else 12):
        for module in modules:
            elapsed = import_in_child(module)
            # The first import of each may have to read the disk.
            if number:
                taken[module].append(elapsed)
    ours, theirs = (statistics.median(taken[module]) * 1e3 for module in modules)
    return [at_most("import biella", "import scipy.signal", ours, theirs, "ms", 1)]


def main() -> None:
    """Run all works and print the table."""
    arguments = parse_arguments(
        "Block diagrams beside C, Jaxonomy, PathSim and bdsim.",
        events="measure only the cost of events within a tick",
    )
    quick = arguments.quick
    title = "Block diagrams, RK4 at 1 ms"
    if arguments.events:
        measured = events.measure(20_000, 5 if quick else 20)
        print_rows(title, measured)
        if arguments.json:
            write_json(arguments.json, measured)
        return
    baselines = build_baselines()
    rows: list[Row] = []
    notes: list[str] = []
    references = {"pid": baselines["pid"]["written out"], "line": line_output}
    works = [
        ("pid", "PID loop, 16 blocks, 10 s", {"pathsim": 10.0, "bdsim": 10.0}),
        ("line", "100 gains + 100 integrators, 1 s", {"pathsim": 1.0}),
    ]
    peers = {package: Peer(package, arguments.peers_python) for package in PRETTY}
    for peer in peers.values():
        _ = peer.version  # all are ready before anything is timed
    for work, title, slow in works:
        horizons = {package: s / 10 if quick else s for package, s in slow.items()}
        contest = hold_contest(work, title, baselines[work], peers, horizons, quick)
        rows += judge(contest)
        notes += comment(contest, references[work])
    for peer in peers.values():
        peer.close()
    more_rows, more_notes = measure_compile(quick)
    rows += more_rows
    notes += more_notes
    rows += measure_python_block(quick)
    rows += measure_import(quick)
    rows += events.measure(20_000, 5 if quick else 20)
    rows += machines.measure(5 if quick else 30)
    print_rows(title, rows, list(dict.fromkeys(notes)))
    if arguments.json:
        write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
