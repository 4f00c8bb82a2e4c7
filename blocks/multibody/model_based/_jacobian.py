"""The Jacobian of a marker within a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._tree_model import AbstractTreeModel

if TYPE_CHECKING:
    from ..system._system import System


class Jacobian(AbstractTreeModel):
    """Jacobian J(q) of a marker of a tree of joints: its velocity is J v, its acceleration J a + b.

    The rows are the velocity along x, y, z and the angular velocity about x, y, z of the world; in
    a planar mechanism those along x and y and about z. `jacobian` has the rows one after another,
    `velocity` is J v, and `bias` is b = dJ/dt v, the acceleration at constant joint speeds.

    Parameters
    ----------
    system
        A tree of joints that turn and slide, which hangs on the ground; its loads do not count.
    marker
        Path of a marker, such as ``"hand.tip"``, or name of a body.
    coordinates
        Paths of all joint coordinates, in the order of columns; in the order of the joints if not
        given.
    """

    kernel = "mechanism_jacobian"

    def __init__(
        self, system: System, marker: str, coordinates: Sequence[str] | None = None
    ) -> None:
        super().__init__(
            system,
            coordinates,
            ["position", "speed"],
            ["jacobian", "velocity", "bias"],
            markers=[marker],
            independent=[("jacobian", "speed")],
        )
