"""The methods of `System` that make elements: one line for each."""

from __future__ import annotations

from ._bushing import BushingMethods
from ._coupling import CouplingMethods
from ._curve import CurveMethods
from ._driver import DriverMethods
from ._formula_constraint import FormulaConstraintMethods
from ._load_methods import LoadMethods
from ._rolling import RollingMethods
from ._spring import SpringMethods
from ._stop import StopMethods
from ._torsional_spring import TorsionalSpringMethods
from .bearing._bearing import BearingMethods
from .clearance._clearance import ClearanceMethods
from .contact._contact import ContactMethods
from .friction._friction import FrictionMethods


class ElementMethods(
    LoadMethods,
    SpringMethods,
    TorsionalSpringMethods,
    BushingMethods,
    BearingMethods,
    ClearanceMethods,
    ContactMethods,
    FrictionMethods,
    StopMethods,
    DriverMethods,
    CouplingMethods,
    FormulaConstraintMethods,
    CurveMethods,
    RollingMethods,
):
    """Adds what acts on markers and on joint coordinates."""
