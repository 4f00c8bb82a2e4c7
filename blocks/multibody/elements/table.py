"""All elements of a mechanism, and the methods of `System` that make them: one line each."""

from __future__ import annotations

from .bearing import BearingMethods
from .bushing import BushingMethods
from .clearance import ClearanceMethods
from .coupling import CouplingMethods
from .driver import DriverMethods
from .friction import FrictionMethods
from .load import LoadMethods
from .spring import SpringMethods
from .stop import StopMethods
from .torsional_spring import TorsionalSpringMethods

KERNELS = (
    "force",
    "torque",
    "spring",
    "bushing",
    "bearing",
    "clearance_revolute",
    "torsional_spring",
    "friction",
    "stop",
    "joint_load",
    "rubbing",
    "coupling",
)
"""Names of the elements in the kernel, in the order of ``elements/table.c``."""

ON_COORDINATES = {"torsional_spring", "friction", "stop", "joint_load"}
"""Those whose record has a joint coordinate in I, J and EXTRA."""


class ElementMethods(
    LoadMethods,
    SpringMethods,
    TorsionalSpringMethods,
    BushingMethods,
    BearingMethods,
    ClearanceMethods,
    FrictionMethods,
    StopMethods,
    DriverMethods,
    CouplingMethods,
):
    """Adds what acts on markers and on joint coordinates."""
