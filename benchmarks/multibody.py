"""Mechanisms: our plant beside Exudyn, MuJoCo and Pinocchio, all at steps of 1 ms.

    python benchmarks/multibody.py [--quick] [--json FILE] [--peers-python PATH]

The mechanisms are defined in `plants.py`. All participants of a work take turns in one run and the
best time of each counts: of the steps alone, models are built before. Ours runs in this process,
each peer in one of its own (`pip install exudyn mujoco pin`, here or in an environment given by
`--peers-python`). In a run apart from those timed, `measure.py` looks at all bodies after every
step: the largest gap of a joint, the largest error of the energy balance. Final positions are
compared with the equation of one coordinate that `reduced.py` solves to round-off; if one is
further off than its method explains, no figure is printed. `--quick` simulates less.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from peers.process import Peer
from plants import STEP, plant, tree_robot
from reduced import reference, tree_accelerations
from rich.console import Console
from rich.table import Table
from table import Row, at_most, parse_arguments, print_rows, times_faster, within
from turns import Entrant, take_turns

try:
    import ours_multibody
except ModuleNotFoundError as error:
    if error.name != "biella":
        raise
    sys.exit("biella is not installed in this environment: run `pip install .` first.")

PRETTY = {"exudyn": "Exudyn", "mujoco": "MuJoCo", "pinocchio": "Pinocchio"}
FULL = {"slider_crank": 5.0, "four_bars_2": 10.0, "four_bars_10": 10.0, "four_bars_40": 10.0}
QUICK = {"slider_crank": 1.0, "four_bars_2": 1.0, "four_bars_10": 1.0, "four_bars_40": 0.7}
TITLES = {
    "slider_crank": "slider-crank, 5 s",
    "four_bars_2": "2 four-bars, 10 s",
    "four_bars_10": "10 four-bars, 10 s",
    "four_bars_40": "40 four-bars, 10 s",
}
CLOSED = 1e-10
"""What we promise of every joint, metres."""

AGREEMENT = {
    "slider_crank": {"ours": 2e-5, "exudyn": 1e-2, "mujoco": 1e-3, "pinocchio": 2e-5},
    "four_bars": {"ours": 1e-6, "exudyn": 1e-3, "mujoco": 1e-3, "pinocchio": 1e-6},
}
"""Largest accepted distance from the reference at the end, metres.

This tells a wrong motion from an inexact one; how exact ours is, a row of its own judges. RK4 at
1 ms leaves 5e-6 in the slider-crank and less than 1e-9 in the four-bars if their singular positions
are passed without loss; Exudyn is of second order, MuJoCo's closures give way.
"""

TREE_AGREEMENT = 1e-9
"""Of accelerations of order 10: the finite differences of the projection leave 1e-10."""


@dataclass
class Measured:
    """What one participant did in one work."""

    work: str
    participant: str
    kind: str
    """Planar or 3-D, or how the coordinates are chosen."""
    simulated_s: float
    wall_s: float
    us_per_step: float
    closure_m: float
    energy_drift_J: float
    error_m: float
    """Largest distance of a named point from the reference."""
    points: dict[str, list[float]]


@dataclass
class Contestant:
    """One participant of one work: how it runs, timed and looked at."""

    package: str
    name: str
    kind: str
    run: Callable[[float], tuple[float, Any]]
    check: Callable[[float], dict[str, Any]]


def _enter_peer(peer: Peer, work: str, kind: str) -> Contestant:
    name = f"{work}_3d" if kind == "3-D redundant" else work
    return Contestant(
        peer.package,
        f"{PRETTY[peer.package]} {peer.version}",
        kind,
        lambda seconds: peer.run(name, seconds),
        lambda seconds: peer.run(f"check_{name}", seconds)[1],
    )


def _enter_ours(work: str, spatial: bool) -> Contestant:
    ours = ours_multibody.Ours(work, spatial)
    kind = "3-D redundant" if spatial else "planar"
    return Contestant("ours", "ours", kind, ours.run, ours.check)


def hold_contest(work: str, seconds: float, peers: dict[str, Peer], rounds: int) -> list[Measured]:
    """Measure one work for all that are installed."""
    contestants = []
    if ours_multibody.available():
        contestants += [_enter_ours(work, spatial) for spatial in (False, True)]
    if peers["exudyn"].version:
        contestants.append(_enter_peer(peers["exudyn"], work, "planar"))
        if work == "slider_crank":
            contestants.append(_enter_peer(peers["exudyn"], work, "3-D redundant"))
    if peers["mujoco"].version:
        contestants.append(_enter_peer(peers["mujoco"], work, "RK4, soft closures"))
    if peers["pinocchio"].version:
        contestants.append(_enter_peer(peers["pinocchio"], work, "RK4, proximal"))
    expected = reference(work, plant(work), seconds)
    seen = [contestant.check(seconds) for contestant in contestants]
    last: list[Any] = [None] * len(contestants)

    def enter(number: int) -> Entrant:
        contestant = contestants[number]

        def run() -> tuple[float, None]:
            elapsed, last[number] = contestant.run(seconds)
            return elapsed, None

        # As many tries for each: on a busy machine the best of more is better.
        return Entrant(contestant.name, run, seconds)

    entrants = [enter(number) for number in range(len(contestants))]
    if entrants:
        take_turns(entrants, rounds)
    steps = round(seconds / STEP)
    measured = []
    for contestant, entrant, looked, output in zip(contestants, entrants, seen, last, strict=True):
        points = output["points"]
        error = max(math.dist(points[name], expected[name]) for name in expected)
        limits = AGREEMENT["slider_crank" if work == "slider_crank" else "four_bars"]
        if not error <= limits[contestant.package]:
            sys.exit(
                f"{TITLES[work]}: {contestant.name} ({contestant.kind}) ends {error:.2e} m from the"
                f" reference, more than {limits[contestant.package]:g} m."
            )
        if looked["points"] != points:
            sys.exit(f"{TITLES[work]}: {contestant.name} ends elsewhere when it is looked at.")
        measured.append(
            Measured(
                work,
                contestant.name,
                contestant.kind,
                seconds,
                entrant.best,
                entrant.best / steps * 1e6,
                looked["closure_m"],
                looked["energy_drift_J"],
                error,
                points,
            )
        )
    return measured


def judge(work: str, measured: list[Measured]) -> list[Row]:
    """Make the rows of a work; there are none without ours."""
    title = TITLES[work]
    mine = {m.kind: m for m in measured if m.participant == "ours"}
    others = [m for m in measured if m.participant != "ours"]
    if not mine:
        return []
    planar, spatial = mine["planar"], mine["3-D redundant"]
    rows = []
    for other in others:
        ours = spatial if other.kind == "3-D redundant" else planar
        name = f"{other.participant}, {other.kind}"
        rows.append(times_faster(title, name, ours.us_per_step, other.us_per_step, "µs/step", 1))
    if work == "slider_crank":
        rows.append(within(f"{title}: a step", planar.us_per_step, 5, "µs"))
    rows.append(
        at_most(f"{title}: 3-D", "ours, planar", spatial.us_per_step, planar.us_per_step, "µs", 2)
    )
    for kind, m in mine.items():
        rows.append(within(f"{title}: closure, {kind}", m.closure_m, CLOSED, "m"))
    # "RK4's error": what the same method leaves on the equation of one coordinate.
    end = reference(work, plant(work), planar.simulated_s)
    rk4 = reference(work, plant(work), planar.simulated_s, rk4=True)
    error = max(math.dist(end[name], rk4[name]) for name in end)
    # The references themselves are good to 1e-10 m.
    rows.append(
        at_most(
            f"{title}: final position",
            "RK4, one coordinate",
            planar.error_m,
            max(error, 1e-10),
            "m",
            10,
        )
    )
    return rows


def compare_tree(peers: dict[str, Peer], quick: bool) -> tuple[list[Row], list[str]]:
    """Compare accelerations of random trees with Pinocchio's and with the projection."""
    peer = peers["pinocchio"]
    apart: dict[str, float] = {}

    def note(pair: str, one: dict[str, list[float]], other: dict[str, list[float]]) -> None:
        gap = max(float(np.abs(np.subtract(one[name], other[name])).max()) for name in one)
        apart[pair] = max(apart.get(pair, 0.0), gap)

    seeds = range(1, 5 if quick else 11)
    for seed in seeds:
        projected = tree_accelerations(tree_robot(seed))
        theirs = peer.run("tree_robot", float(seed))[1] if peer.version else None
        if theirs:
            note("Pinocchio and the projection", theirs, projected)
        if ours_multibody.available():
            ours = ours_multibody.tree_accelerations(seed)
            note("ours and the projection", ours, projected)
            if theirs:
                note("ours and Pinocchio", ours, theirs)
    wrong = [pair for pair, gap in apart.items() if not gap <= TREE_AGREEMENT]
    if wrong:
        sys.exit(
            f"tree robot: {', '.join(f'{pair} by {apart[pair]:.1e}' for pair in wrong)} apart."
        )
    gaps = ", ".join(f"{pair} {gap:.1e}" for pair, gap in apart.items())
    rows = []
    if "ours and Pinocchio" in apart:
        gap = apart["ours and Pinocchio"]
        rows.append(within("tree robots, 12 links: from Pinocchio's", gap, 1e-10, "m/s², rad/s²"))
    return rows, [
        f"tree robots: largest difference of accelerations in {len(seeds)} trees: {gaps}."
    ]


def compare_mcpherson(peers: dict[str, Peer], quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Give Exudyn's suspension extrapolated to step zero, and how far ours is from it."""
    peer = peers["exudyn"]
    if not peer.version:
        return {}, []
    seconds = 0.5 if quick else 5.0
    works = ["mcpherson", "mcpherson_fine", *([] if quick else ["mcpherson_finest"])]
    answers = [peer.run(work, seconds)[1] for work in works]
    tracks = [np.array(answer["track"]) for answer in answers]
    # Of second order: the error at half the step is a third of the difference.
    extrapolated = tracks[-1] + (tracks[-1] - tracks[-2]) / 3
    if quick:
        estimate = float(np.abs(tracks[-1] - tracks[-2]).max()) / 3
        notes = [f"McPherson: Exudyn at 0.1 ms is good to {estimate:.1e} m before extrapolation."]
    else:
        coarse = tracks[1] + (tracks[1] - tracks[0]) / 3
        estimate = float(np.abs(extrapolated - coarse).max())
        order = math.log2(np.abs(tracks[1] - tracks[0]).max() / np.abs(tracks[2] - tracks[1]).max())
        notes = [
            f"McPherson, 5 s: Exudyn at 0.2, 0.1 and 0.05 ms converges with order {order:.2f};"
            f" its extrapolations agree to {estimate:.1e} m."
        ]
    every = answers[0]["every_s"]
    if ours_multibody.available():
        ours = np.array(ours_multibody.mcpherson_track(seconds, 1e-4, every))
        gap = float(np.abs(ours - extrapolated).max())
        notes.append(f"McPherson: ours at 0.1 ms is {gap:.1e} m from the extrapolation.")
    closure = max(answer["closure_m"] for answer in answers)
    track = {"every_s": every, "estimate_m": estimate, "closure_m": closure}
    return {**track, "track": extrapolated.tolist()}, notes


def measure_growth(quick: bool) -> list[Row]:
    """Fit how our time grows with the number of four-bars."""
    if not ours_multibody.available():
        return []
    sizes = [10, 100, 1000]
    steps = 20 if quick else 100
    best = dict.fromkeys(sizes, math.inf)
    runs = {size: ours_multibody.Ours(f"four_bars_{size}", False) for size in sizes}
    for _ in range(2 if quick else 10):
        for size, ours in runs.items():
            best[size] = min(best[size], ours.run(steps * STEP)[0])
    exponent = statistics.linear_regression(
        [math.log(size) for size in sizes], [math.log(best[size]) for size in sizes]
    ).slope
    # 1 is linear; the rest allows for caches and for the noise of a fit through three points.
    return [
        within(
            "four-bars, 10 to 1,000: time grows as their number to the power", exponent, 1.15, ""
        )
    ]


def print_measured(measured: list[Measured]) -> None:
    """Print what everyone did."""
    table = Table(title="Mechanisms at steps of 1 ms", title_justify="left")
    for name in ("work", "participant", "model"):
        table.add_column(name)
    for name in ("µs/step", "wall, s", "closure, m", "energy error, J", "position error, m"):
        table.add_column(name, justify="right")
    work = None
    for m in measured:
        if work is not None and m.work != work:
            table.add_section()
        wall = m.us_per_step * 1e-6 * FULL[m.work] / STEP
        table.add_row(
            TITLES[m.work] if m.work != work else "",
            m.participant,
            m.kind,
            f"{m.us_per_step:.3g}",
            f"{wall:.3g}",
            f"{m.closure_m:.1e}",
            f"{m.energy_drift_J:.1e}",
            f"{m.error_m:.1e}",
        )
        work = m.work
    console = Console()
    if not console.is_terminal:
        console.width = 140
    console.print(table)


def main() -> None:
    """Run all works and print the tables."""
    arguments = parse_arguments("Mechanisms beside Exudyn, MuJoCo and Pinocchio.")
    quick = arguments.quick
    peers = {package: Peer(package, arguments.peers_python) for package in PRETTY}
    absent = [PRETTY[package] for package, peer in peers.items() if not peer.version]
    measured: list[Measured] = []
    rows: list[Row] = []
    notes = []
    if absent:
        notes.append(
            f"Not installed here: {', '.join(absent)}. `pip install exudyn mujoco pin`, or name the"
            " interpreter that has them with --peers-python."
        )
    for work, seconds in (QUICK if quick else FULL).items():
        found = hold_contest(
            work, seconds, peers, rounds=2 if quick or work == "four_bars_40" else 5
        )
        measured += found
        rows += judge(work, found)
        if quick:
            notes.append(f"{TITLES[work]}: {seconds:g} s were simulated; wall times are scaled.")
    more_rows, more_notes = compare_tree(peers, quick)
    rows += more_rows
    notes += more_notes
    suspension, more_notes = compare_mcpherson(peers, quick)
    notes += more_notes
    for peer in peers.values():
        peer.close()
    rows += measure_growth(quick)
    print_measured(measured)
    print_rows("Ours beside the others", rows, notes)
    if arguments.json:
        content = {
            "measured": [asdict(m) for m in measured],
            "rows": [asdict(row) for row in rows],
            "mcpherson": suspension,
        }
        text = json.dumps(content, indent=2, ensure_ascii=False)
        arguments.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
