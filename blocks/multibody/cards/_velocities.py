"""Initial velocities by the rule of the cards: those given are kept, the others follow.

Of each body only the rates that are not 0 are given. All rates together satisfy Φ_q q̇ = -Φ_t and
the given ones by least squares, with the smallest q̇ if there are several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..analysis._manifold import make_kinematic_model
from ..analysis._pose import find_start
from ..equations._euler_parameters import transformations
from ..system._rotations import Array, rotation_from_quaternion, skew

if TYPE_CHECKING:
    from ..system._system import System

Velocity = tuple[Array, Array]
"""Of the origin of a body and its angular velocity, in world axes."""


def find_velocities(system: System, given: Sequence[Sequence[float]]) -> list[Velocity]:
    """Return the velocities of all bodies in the assembled pose.

    Parameters
    ----------
    system
        The mechanism.
    given
        Seven rates of each body, with the sign of its Euler parameters in the pose; 0 if unknown.
    """
    model = make_kinematic_model(system)
    q, u = find_start(model, 0.0)
    equations = model.equations(0.0, q, u, loads=False)
    poses = model.blocks(q)
    e, _ = transformations(poses[:, 3:])
    arms = [
        rotation_from_quaternion(pose[3:]) @ body.com
        for pose, body in zip(poses, system.bodies, strict=True)
    ]
    rows, wanted = [*equations.jacobian], [*-equations.phi_t]
    for n, rates in enumerate(given):
        own = np.zeros((7, 6))
        own[:3] = np.hstack([np.eye(3), skew(arms[n])])
        own[3:, 3:] = 0.5 * e[n].T
        for row, rate in zip(own, rates, strict=True):
            if rate:
                rows.append(np.zeros(model.size))
                rows[-1][6 * n : 6 * n + 6] = row
                wanted.append(rate)
    scale = np.tile([1.0, 1.0, 1.0, 2.0, 2.0, 2.0], len(given))  # |q̇|² = |v|² + |ω|² / 4
    found = np.linalg.lstsq(np.array(rows) * scale, np.array(wanted), rcond=1e-10)[0] * scale
    each = found.reshape(-1, 6)
    return [
        (one[:3] - np.cross(one[3:], arm), one[3:]) for one, arm in zip(each, arms, strict=True)
    ]
