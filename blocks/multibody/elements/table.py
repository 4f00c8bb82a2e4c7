"""The methods of `System` that make elements: one line for each."""

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
