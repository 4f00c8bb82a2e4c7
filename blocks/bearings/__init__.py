"""Lubricated journal bearings."""

from .analysis import Coefficients, OilEquilibrium
from .bearings import (
    AbstractBearing,
    Contact,
    FiniteBearing,
    LongBearing,
    ShortBearing,
    TiltedShortBearing,
)

__all__ = [
    "AbstractBearing",
    "Coefficients",
    "Contact",
    "FiniteBearing",
    "LongBearing",
    "OilEquilibrium",
    "ShortBearing",
    "TiltedShortBearing",
]
