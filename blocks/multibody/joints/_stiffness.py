"""Stiffness of joints, by which redundant ones share a load."""

from __future__ import annotations

from ....errors import DiagramError
from ..elements._element import Element
from ..system._parts import Parts
from ..system._reading import read_number, suggest_keywords
from ._joint import Joint


class StiffnessMethods(Parts):
    """Sets the stiffness of joints."""

    @suggest_keywords
    def joint_stiffness(self, joint: Joint | str, *, force: float, torque: float) -> None:
        """Set the stiffness of a joint for the load distribution among redundant joints.

        Joints stay rigid: the motion does not change. The reactions of redundant joints are those
        with the least elastic energy, Σ |F|² / (2 force) + |M|² / (2 torque), the limit of small
        compliance. Set it for all joints of the system or for none; see
        docs/explanation/redundancy.md.

        Parameters
        ----------
        joint
            The joint or its name, or the name of a bearing held by a constraint.
        force
            In N/m, against displacements.
        torque
            In N m/rad, against rotations; a small value models a self-aligning bearing.

        Raises
        ------
        DiagramError
            If the joint does not exist, or a value is not positive.
        """
        name = joint if isinstance(joint, str) else joint.name
        part = self[name]
        if not isinstance(part, Joint) and not (isinstance(part, Element) and part.row_count):
            raise DiagramError(f"`{name}` is not a joint: only joints have a joint_stiffness.")
        read = [
            read_number(f"`{what}` of `{name}`", value)
            for what, value in (("force", force), ("torque", torque))
        ]
        if not min(read) > 0.0:
            raise DiagramError(
                f"the stiffnesses of `{name}` must be positive, got force={force!r}, "
                f"torque={torque!r}."
            )
        self._stiffnesses[name] = (read[0], read[1])
