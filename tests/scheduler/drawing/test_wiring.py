"""Channels of a drawing: wires that run beside each other."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from biella.scheduler.drawing._wiring import Piece, route_channel

TOUCH = 0.01
"""Closer than this, in points, is the same place."""


def segments(points: tuple[tuple[float, float], ...]) -> list[tuple[float, float, float, float]]:
    return [
        (min(ax, bx), min(ay, by), max(ax, bx), max(ay, by))
        for (ax, ay), (bx, by) in itertools.pairwise(points)
    ]


heights = st.lists(st.integers(0, 12).map(lambda n: 10.0 * n), max_size=24, unique=True)


@settings(max_examples=200)
@given(heights, heights, st.randoms(use_true_random=False))
def test_channels_keep_wires_apart(left: list[float], right: list[float], random: Any) -> None:
    """Rings of demands included: ends at the same heights on both sides, in any pairing."""
    pieces = []
    left, right = list(left), list(right)
    while left and right:
        some = [right.pop() for _ in range(min(len(right), random.randint(1, 3)))]
        pieces.append(Piece([left.pop()], some))
    channel = route_channel(pieces)
    nets = []
    for piece, route in zip(pieces, channel.routes, strict=True):
        a = piece.left[0]
        nets.append(
            {
                segment
                for b in piece.right
                for segment in segments(((0.0, a), *route.cross(a, b), (channel.width, b)))
            }
        )
    for first, second in itertools.combinations(nets, 2):
        for p, q in itertools.product(first, second):
            for along, across in ((0, 1), (1, 0)):
                flat = p[across] == p[across + 2] == q[across] == q[across + 2]
                shared = min(p[along + 2], q[along + 2]) - max(p[along], q[along])
                assert not (flat and shared > TOUCH)
