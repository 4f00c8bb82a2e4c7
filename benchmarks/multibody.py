"""Mechanisms: our plant beside Exudyn, MuJoCo and Pinocchio, all at steps of 1 ms.

    python benchmarks/multibody.py [--quick] [--json FILE] [--peers-python PATH]

The mechanisms are defined in `mechanisms/plants.py`. All participants of a work take turns in one
run and the best time of each counts: of the steps alone, models are built before. Ours runs in this
process, each peer in one of its own (`pip install exudyn mujoco pin`, here or in an environment
given by `--peers-python`). In a run apart from those timed, `mechanisms/measure.py` looks at all
bodies after every
step: the largest gap of a joint, the largest error of the energy balance. Final positions are
compared with equations in the fewest coordinates that `mechanisms/reduced.py` solves to round-off;
if one is further off than its method explains, no figure is printed. `--quick` simulates less.

Then, of ours alone: how time grows with size (`mechanisms/growth.py`) and where it goes
(`mechanisms/shares.py`).
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from mechanisms.plants import STEP, plant, spanning_tree
from mechanisms.reduced import reference, rk4_reference
from peers.process import Peer
from rich.console import Console
from rich.table import Table
from table import (
    Row,
    at_most,
    beside,
    figure,
    not_installed,
    parse_arguments,
    print_rows,
    say,
    times_faster,
    within,
    write_json,
)
from turns import Entrant, ratios, take_turns

try:
    from mechanisms import ours_multibody
except ModuleNotFoundError as error:
    if error.name != "biella":
        raise
    sys.exit("biella is not installed in this environment: run `pip install .` first.")

from mechanisms.accuracy import compare_mcpherson, compare_tree
from mechanisms.growth import measure_growth
from mechanisms.shares import measure_shares

PRETTY = {"exudyn": "Exudyn", "mujoco": "MuJoCo", "pinocchio": "Pinocchio"}
INSTALL = {
    "exudyn": "pip install exudyn",
    "mujoco": "pip install mujoco",
    "pinocchio": "pip install pin",
}
RK4_PEERS = ("mujoco", "pinocchio")

CLOSED = 1e-10
"""What we promise of every joint, meters."""

ENERGY_FLOOR = 1e-10
"""Joule: below this, the energy errors of these works are rounding and not the method's."""


@dataclass(frozen=True)
class Case:
    """A work, how long it is simulated, and how far from the reference everyone may end, meters.

    That tells a wrong motion from an inexact one: Exudyn is of second order, MuJoCo's closures give
    way, Pinocchio's `integrate` costs RK4 its order for a free body.
    """

    title: str
    seconds: float
    quick_seconds: float
    agreement: dict[str, float]
    rounds: int = 7
    planar: bool = True
    """Whether it can move in a plane."""
    exudyn_3d: tuple[float, float] | None = None
    """What Exudyn simulates of the redundant model, whose dense matrix takes it long; 0: nothing.

    In a whole run and in a quick one, seconds.
    """


_FOUR_BARS = {"ours": 1e-6, "exudyn": 1e-3, "mujoco": 1e-3, "pinocchio": 1e-6}
CASES = {
    "pendulum": Case(
        "pendulum A01",
        10.0,
        1.0,
        {"ours": 1e-9, "exudyn": 1e-2, "mujoco": 1e-9, "pinocchio": 1e-9},
    ),
    "slider_crank": Case(
        "slider-crank",
        5.0,
        1.0,
        {"ours": 2e-5, "exudyn": 1e-2, "mujoco": 1e-3, "pinocchio": 2e-5},
    ),
    "four_bars_2": Case("2 four-bars", 10.0, 1.0, _FOUR_BARS, exudyn_3d=(10.0, 0.3)),
    "four_bars_10": Case("10 four-bars", 10.0, 0.5, _FOUR_BARS, exudyn_3d=(0.3, 0.02)),
    "four_bars_40": Case("40 four-bars", 10.0, 0.2, _FOUR_BARS, rounds=3, exudyn_3d=(0.005, 0.0)),
    "chain_20": Case(
        "chain of 20",
        5.0,
        0.5,
        {"ours": 1e-7, "exudyn": 1e-2, "mujoco": 1e-7, "pinocchio": 1e-7},
    ),
    "tumbler": Case(
        "tumbling body",
        100.0,
        2.0,
        {"ours": 1e-8, "exudyn": 1e-1, "mujoco": 1e-8, "pinocchio": 1e-3},
        planar=False,
    ),
}


@dataclass
class Contestant:
    """One participant of one work: how it runs, timed and looked at."""

    package: str
    name: str
    model: str
    spatial: bool | None
    """None: its only model stands beside both of ours."""
    seconds: float
    run: Callable[[float], tuple[float, Any]]
    check: Callable[[float], dict[str, Any]]


@dataclass
class Measured:
    """What one participant did in one work."""

    contestant: Contestant
    entrant: Entrant
    closure: float
    energy: float
    momentum: float
    error: float
    """Largest distance of a named point from the reference, meters."""

    @property
    def us_per_step(self) -> float:
        return self.entrant.best / round(self.contestant.seconds / STEP) * 1e6

    @property
    def name(self) -> str:
        return f"{self.contestant.name}, {self.contestant.model}"


def _has_loops(work: str) -> bool:
    return bool(spanning_tree(plant(work))[1])


def _enter_all(work: str, peers: dict[str, Peer], quick: bool) -> list[Contestant]:
    case, loops = CASES[work], _has_loops(work)
    seconds = case.quick_seconds if quick else case.seconds
    kinds = [False, True] if case.planar else [True]
    models = {False: "planar", True: "3-D, redundant" if loops else "3-D"}

    def enter(package: str, model: str, spatial: bool | None) -> Contestant:
        peer, name = peers[package], f"{work}_3d" if spatial else work
        some = case.exudyn_3d if spatial else None
        return Contestant(
            package,
            f"{PRETTY[package]} {peer.version}",
            model,
            spatial,
            some[quick] if some else seconds,
            partial(peer.run, name),
            lambda seconds: peer.run(f"check_{name}", seconds)[1],
        )

    contestants = []
    for spatial in kinds:
        ours = ours_multibody.Ours(work, spatial)
        contestants.append(
            Contestant("ours", "ours", models[spatial], spatial, seconds, ours.run, ours.check)
        )
    if peers["exudyn"].version:
        entered = [enter("exudyn", models[spatial], spatial) for spatial in kinds]
        contestants += [contestant for contestant in entered if contestant.seconds]
    if peers["mujoco"].version:
        contestants.append(enter("mujoco", "RK4, soft closures" if loops else "RK4", None))
    if peers["pinocchio"].version:
        contestants.append(enter("pinocchio", "RK4, proximal" if loops else "RK4", None))
    return contestants


def hold_contest(work: str, peers: dict[str, Peer], quick: bool) -> list[Measured]:
    """Measure one work for all that are installed."""
    case = CASES[work]
    say(f"{case.title}: closure, energy and final positions")
    measured = []
    for contestant in _enter_all(work, peers, quick):
        seen = contestant.check(contestant.seconds)
        error = _distance(work, contestant, seen["points"])
        entrant = _make_entrant(case, contestant, seen["points"])
        measured.append(
            Measured(
                contestant,
                entrant,
                seen["closure_m"],
                seen["energy_drift_J"],
                seen["momentum_drift"],
                error,
            )
        )
    rounds = min(5, case.rounds) if quick else case.rounds
    say(f"{case.title}: {len(measured)} participants take {rounds} turns")
    take_turns([m.entrant for m in measured], rounds)
    return measured


def _distance(work: str, contestant: Contestant, points: dict[str, list[float]]) -> float:
    """Give how far the points are from the reference; stop if that is too far."""
    case = CASES[work]
    expected = reference(work, plant(work), contestant.seconds)
    error = max(math.dist(points[name], expected[name]) for name in expected)
    limit = case.agreement[contestant.package]
    if not error <= limit:
        sys.exit(
            f"{case.title}: {contestant.name} ({contestant.model}) ends {error:.2e} m from the"
            f" reference, more than {limit:g} m."
        )
    return error


def _make_entrant(case: Case, contestant: Contestant, points: dict[str, list[float]]) -> Entrant:
    def run() -> tuple[float, None]:
        elapsed, output = contestant.run(contestant.seconds)
        if output["points"] != points:
            sys.exit(f"{case.title}: {contestant.name} ends elsewhere when it is looked at.")
        return elapsed, None

    # As many tries for each: on a busy machine the best of more is better.
    return Entrant(contestant.name, run, contestant.seconds)


def judge(
    work: str, measured: list[Measured], peers: dict[str, Peer]
) -> tuple[list[Row], list[Row]]:
    """Make the rows of a work, and those that only `--json` has: the errors of both sides."""
    case = CASES[work]
    mine = {bool(m.contestant.spatial): m for m in measured if m.contestant.package == "ours"}
    rows: list[Row] = []
    errors: list[Row] = []
    for spatial, ours in mine.items():
        title = f"{case.title}, {ours.contestant.model}"
        for package in PRETTY:
            found = [m for m in _beside(spatial, measured) if m.contestant.package == package]
            for other in found:
                us = (ours.us_per_step, other.us_per_step)
                rows.append(times_faster(title, other.name, *us, "µs/step", 1))
                errors += _errors(title, ours, other)
            if not peers[package].version:
                name, command = PRETTY[package], INSTALL[package]
                rows.append(
                    not_installed(title, name, ours.us_per_step, "µs/step", "≥ 1× faster", command)
                )
        rows += _judge_errors(work, title, ours, measured)
        errors += _rk4_error(work, title, ours)
    if work == "slider_crank":
        rows.append(within(f"{case.title}: a planar step", mine[False].us_per_step, 5, "µs"))
    if len(mine) == 2:
        planar, spatial_us = mine[False].us_per_step, mine[True].us_per_step
        rows.append(at_most(f"{case.title}: 3-D", "ours, planar", spatial_us, planar, "µs/step", 2))
    return rows, errors


def _beside(spatial: bool, measured: list[Measured]) -> list[Measured]:
    """Give the peers that a model of ours stands beside."""
    return [
        m
        for m in measured
        if m.contestant.package != "ours" and m.contestant.spatial in (None, spatial)
    ]


def _errors(title: str, ours: Measured, other: Measured) -> list[Row]:
    rows = [
        beside(f"{title}: energy error", other.name, ours.energy, other.energy, "J"),
        beside(f"{title}: position error", other.name, ours.error, other.error, "m"),
    ]
    if ours.closure or other.closure:
        rows.append(beside(f"{title}: closure error", other.name, ours.closure, other.closure, "m"))
    return rows


def _judge_errors(work: str, title: str, ours: Measured, measured: list[Measured]) -> list[Row]:
    rows = []
    if _has_loops(work):
        rows.append(within(f"{title}: closure error", ours.closure, CLOSED, "m"))
    rk4 = [m for m in measured if m.contestant.package in RK4_PEERS]
    best = min(rk4, key=lambda m: m.energy, default=None)
    if best and 2 * best.energy > ENERGY_FLOOR:
        rows.append(at_most(f"{title}: energy error", best.name, ours.energy, best.energy, "J", 2))
    elif best:
        rows.append(within(f"{title}: energy error", ours.energy, ENERGY_FLOOR, "J"))
    if work == "tumbler":
        rows.append(figure(f"{title}: angular momentum, relative", ours.momentum, ""))
    return rows


def _rk4_error(work: str, title: str, ours: Measured) -> list[Row]:
    """Stand beside ours what RK4 leaves on the equation of one coordinate."""
    seconds = ours.contestant.seconds
    one = rk4_reference(work, plant(work), seconds)
    if not one:
        return []
    end = reference(work, plant(work), seconds)
    error = max(math.dist(end[name], one[name]) for name in end)
    return [beside(f"{title}: position error", "RK4 on one coordinate", ours.error, error, "m")]


def print_measured(contests: dict[str, list[Measured]]) -> None:
    """Print what everyone did."""
    table = Table(title="Mechanisms at steps of 1 ms", title_justify="left")
    for name in ("work", "participant", "model"):
        table.add_column(name)
    for name in (
        "µs/step",
        "wall, s",
        "× ours, by turn",
        "closure, m",
        "energy error, J",
        "position error, m",
    ):
        table.add_column(name, justify="right")
    for work, measured in contests.items():
        case = CASES[work]
        table.add_section()
        for number, m in enumerate(measured):
            wall = m.us_per_step * 1e-6 * case.seconds / STEP
            table.add_row(
                "" if number else f"{case.title}, {case.seconds:g} s",
                m.contestant.name,
                m.contestant.model,
                f"{m.us_per_step:.3g}",
                f"{wall:.3g}",
                _spread(m, measured),
                f"{m.closure:.1e}" if plant(work).joints else "",
                f"{m.energy:.1e}",
                f"{m.error:.1e}",
            )
    console = Console()
    if not console.is_terminal:
        console.width = 150
    console.print(table)


def _spread(m: Measured, measured: list[Measured]) -> str:
    """Give the least and the largest ratio to ours, round by round."""
    if m.contestant.package == "ours":
        return ""
    mine = [o for o in measured if o.contestant.package == "ours"]
    ours = next((o for o in mine if o.contestant.spatial == m.contestant.spatial), mine[0])
    scale = ours.contestant.seconds / m.contestant.seconds
    least, most = (scale * ratio for ratio in ratios(m.entrant, ours.entrant))
    return f"{least:.3g} … {most:.3g}"


def _remark(quick: bool) -> list[str]:
    """Say what a reader of the rows has to know."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
    notes = [f"{os.cpu_count()} cores, load {load:.2g} at the start."]
    for case in CASES.values():
        if quick:
            notes.append(
                f"{case.title}: {case.quick_seconds:g} s were simulated; wall times are scaled."
            )
        if case.exudyn_3d and case.exudyn_3d[quick] != case.seconds:
            some = case.exudyn_3d[quick]
            notes.append(
                f"{case.title}: of the redundant model, which takes its dense solver, Exudyn "
                + (f"simulated {some:g} s." if some else "simulates nothing in a quick run.")
            )
    return notes


def _print_shares(quick: bool) -> str:
    say("shares of a step")
    shares = measure_shares(20 if quick else 60)
    whole = sum(shares.values())
    if min(shares.values()) <= 0:
        return "slider-crank: the machine is too busy to tell the parts of a step."
    parts = ", ".join(f"{name} {us:.2g} µs ({us / whole:.0%})" for name, us in shares.items())
    return f"slider-crank, planar, a step of {whole:.3g} µs: {parts}."


def main() -> None:
    """Run all works and print the tables."""
    arguments = parse_arguments("Mechanisms beside Exudyn, MuJoCo and Pinocchio.")
    quick = arguments.quick
    peers = {package: Peer(package, arguments.peers_python) for package in PRETTY}
    for package, peer in peers.items():
        # All are ready before anything is timed.
        state = peer.version or f"not installed: `{INSTALL[package]}`, or see --peers-python"
        say(f"{PRETTY[package]} {state}")
    contests = {}
    rows: list[Row] = []
    errors: list[Row] = []
    notes = _remark(quick)
    for work in CASES:
        contests[work] = hold_contest(work, peers, quick)
        for all_rows, more in zip((rows, errors), judge(work, contests[work], peers), strict=True):
            all_rows += more
    say("tree robots and McPherson")
    for compare in (compare_tree, compare_mcpherson):
        more_rows, more_notes = compare(peers, quick)
        rows += more_rows
        notes += more_notes
    for peer in peers.values():
        peer.close()
    more_rows, more_notes = measure_growth(quick)
    rows += more_rows
    notes += [*more_notes, _print_shares(quick)]
    print_measured(contests)
    print_rows("Ours beside the others", rows, notes)
    if arguments.json:
        write_json(arguments.json, [*rows, *errors])
    say("done")


if __name__ == "__main__":
    main()
