"""Efforts in a universal joint: the moment about one axis tilts the pin of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .....errors import DiagramError, name_list
from ...joints._joint import Joint

if TYPE_CHECKING:
    from ...plant._tables import Tables
    from ...system._parts import Parts


def pivot_efforts(system: Parts, joint: Joint) -> list[str]:
    """Return the names of what acts on the coordinates of a joint, but for smoothed friction."""
    names = [item.name for item in system.elements if item.acts_on is joint]
    ties = (*system.drivers, *system.couplings, *system.general_constraints)
    return names + [item.name for item in ties if any(of.joint is joint for of in item.terms)]


def require_tree(tables: Tables, name: str, joint: Joint) -> None:
    """Require that the efforts on a universal joint with friction are known.

    In the tree they follow from the wrench through the joint; a closure knows those of smoothed
    friction alone.
    """
    if joint.name in tables.tree.tree_joints:
        return
    names = pivot_efforts(tables.system, joint)
    if names:
        raise DiagramError(
            f"friction `{name}` follows from the moments that tilt the pivots of `{joint.name}`, a "
            f"universal joint that closes a loop, where those of "
            f"{name_list(f'`{one}`' for one in names)} are not known. Replace the joint by two "
            f"revolutes with a body of mass 0 between them."
        )
