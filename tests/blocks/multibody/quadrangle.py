"""A square of four bars."""

import numpy as np

from biella import System


def quadrangle(coupler: float = 1.0, *, spins: tuple[float, float, float] = (0, 0, 0)) -> System:
    """Make a square of bars of 1 m on the ground, with a coupler of any length.

    A coupler of more than 3 m cannot be closed: what is missing is what it is longer than that.
    """
    s = System("quadrangle", planar=True)
    up = np.pi / 2
    left = s.body(
        "left", mass=1, inertia=0.1, position=(0, 0), rotation=up, angular_velocity=spins[0]
    )
    right = s.body(
        "right", mass=1, inertia=0.1, position=(1, 0), rotation=up, angular_velocity=spins[1]
    )
    bar = s.body(
        "coupler",
        mass=1,
        inertia=0.1,
        position=(0, 1),
        velocity=(-spins[0], 0),
        angular_velocity=spins[2],
    )
    s.revolute("foot_a", s.ground.marker("a", (0, 0)), left.marker("foot", (0, 0)))
    s.revolute("foot_b", s.ground.marker("b", (1, 0)), right.marker("foot", (0, 0)))
    s.revolute("top_a", left.marker("top", (1, 0)), bar.marker("a", (0, 0)))
    s.revolute("top_b", bar.marker("b", (coupler, 0)), right.marker("top", (1, 0)))
    return s
