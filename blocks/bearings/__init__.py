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
from .oil import OilTemperature, Vogel, Walther

__all__ = [
    "AbstractBearing",
    "Coefficients",
    "Contact",
    "FiniteBearing",
    "Hole",
    "LongBearing",
    "OilEquilibrium",
    "OilTemperature",
    "Pocket",
    "ShortBearing",
    "TiltedShortBearing",
    "Vogel",
    "Walther",
    "lobes",
]
