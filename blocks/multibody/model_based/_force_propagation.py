"""Static efforts of a mechanism under forces at its markers, within a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....errors import DiagramError
from ._tree_model import AbstractTreeModel

if TYPE_CHECKING:
    from ..system._system import System


class ForcePropagation(AbstractTreeModel):
    """Efforts that hold forces at markers of a tree of joints: effort = -Jᵀ F [A.5].

    Wrenches are carried from the outermost bodies to the ground; the efforts are those that hold
    the mechanism at rest, and `base` is the wrench of the ground on it, about the origin of the
    world. To *exert* a force at a marker, use the efforts that hold the opposite one.
    `System.static_efforts` is the same for one pose.

    A wrench is a force along x, y, z and a torque about x, y, z of the world; in a planar mechanism
    a force along x and y and a torque about z. Of several markers the wrenches follow one another.

    Parameters
    ----------
    system
        A tree of joints that turn and slide, which hangs on the ground; its loads do not count.
    markers
        Paths of markers, such as ``"hand.tip"``, or names of bodies: where the wrenches act.
    coordinates
        Paths of all joint coordinates, in the order of `effort`; in the order of the joints if not
        given.
    weight
        Whether the efforts also hold the weight.
    """

    kernel = "force_propagation"

    def __init__(
        self,
        system: System,
        markers: str | Sequence[str],
        coordinates: Sequence[str] | None = None,
        *,
        weight: bool = False,
    ) -> None:
        listed = [markers] if isinstance(markers, str) else list(markers)
        if not listed:
            raise DiagramError("ForcePropagation needs at least one marker at which a force acts.")
        super().__init__(
            system,
            coordinates,
            ["position", "wrench"],
            ["effort", "base"],
            markers=listed,
            weight=weight,
        )
