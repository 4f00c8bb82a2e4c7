"""The mass matrix of a mechanism within a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._tree_model import AbstractTreeModel

if TYPE_CHECKING:
    from ..system._system import System


class MassMatrix(AbstractTreeModel):
    """Mass matrix M(q) of a tree of joints: the kinetic energy is vᵀ M v / 2.

    The output has its rows one after another. It is symmetric to the bit. Its column k has the
    efforts of a unit acceleration of coordinate k, at rest and without weight.

    Parameters
    ----------
    system
        A tree of joints that turn and slide, which hangs on the ground; its loads do not count.
    coordinates
        Paths of all its joint coordinates, in the order of rows and columns; in the order of its
        joints if not given.
    """

    kernel = "mass_matrix"

    def __init__(self, system: System, coordinates: Sequence[str] | None = None) -> None:
        super().__init__(system, coordinates, ["position"], ["mass"])
