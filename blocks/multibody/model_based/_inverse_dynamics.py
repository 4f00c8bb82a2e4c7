"""Efforts that a motion of a mechanism needs, within a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._tree_model import AbstractTreeModel

if TYPE_CHECKING:
    from ..system._system import System


class InverseDynamics(AbstractTreeModel):
    """Inverse dynamics of a tree of joints: effort = M(q) a + h(q, v) [M 12].

    M is the mass matrix, and h the effects of speeds, weight, springs, friction and all other loads
    of the mechanism. These efforts give the joint coordinates the accelerations a at the positions
    q and speeds v: feedforward, or with a = a_d + K_v (v_d - v) + K_q (q_d - q) computed torque.
    Solved by the recursive Newton-Euler method, in a time linear in the number of joints.

    Laws of `Input` in the mechanism, such as the torque of its motor, remain inputs of the block;
    they act in addition to `effort`, and are at their defaults if not connected.

    Parameters
    ----------
    system
        A tree of joints that turn and slide, which hangs on the ground: no loops, and no bodies
        without a joint. Without contacts, bearings, and friction that sticks or that follows from
        reactions.
    coordinates
        Paths of all its joint coordinates, such as ``["shoulder.angle", "elbow.angle"]``, in the
        order of the elements of vectors; in the order of its joints if not given. The attribute
        `coordinates` has them.
    """

    kernel = "inverse_dynamics"

    def __init__(self, system: System, coordinates: Sequence[str] | None = None) -> None:
        super().__init__(
            system,
            coordinates,
            ["position", "speed", "acceleration"],
            ["effort"],
            elements=True,
        )
