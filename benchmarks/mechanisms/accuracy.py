"""Motions compared with those of other programs, apart from any timing.

Accelerations of random trees with Pinocchio's and with a projection in numpy; the McPherson
suspension with Exudyn's.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from peers.process import Peer
from table import Row, figure, within

from mechanisms import ours_multibody
from mechanisms.plants import tree_robot
from mechanisms.reduced import tree_accelerations

TREE_AGREEMENT = 1e-9
"""Of accelerations of order 10: the finite differences of the projection leave 1e-10."""


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


def compare_mcpherson(peers: dict[str, Peer], quick: bool) -> tuple[list[Row], list[str]]:
    """Compare the suspension with Exudyn's, extrapolated to step zero."""
    peer = peers["exudyn"]
    if not peer.version:
        return [], []
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
    ours = np.array(ours_multibody.mcpherson_track(seconds, 1e-4, every))
    gap = float(np.abs(ours - extrapolated).max())
    work = f"McPherson, {seconds:g} s at 0.1 ms: from Exudyn's"
    return [figure(work, gap, "m")], notes
