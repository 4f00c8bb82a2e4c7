"""The methods of `System` that make elements: one line for each."""

from __future__ import annotations

from ._bushing import BushingMethods
from ._coupling import CouplingMethods
from ._driver import DriverMethods
from ._load import LoadMethods
from ._spring import SpringMethods
from ._stop import StopMethods
from ._torsional_spring import TorsionalSpringMethods
from .bearing._bearing import BearingMethods
from .clearance._clearance import ClearanceMethods
from .friction._friction import FrictionMethods


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
