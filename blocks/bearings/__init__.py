"""Lubricated journal bearings."""

from .analysis import Coefficients, OilEquilibrium
from .bearings import (
    AbstractBearing,
    Contact,
    LongBearing,
    ShortBearing,
    TiltedShortBearing,
)
from .bush import lobes
from .finite import FiniteBearing, Hole, Pocket

__all__ = [
    "AbstractBearing",
    "Coefficients",
    "Contact",
    "FiniteBearing",
    "Hole",
    "LongBearing",
    "OilEquilibrium",
    "Pocket",
    "ShortBearing",
    "TiltedShortBearing",
    "lobes",
]
