"""Lubricated journal bearings."""

from typing import Any

from ...deprecation import renamed_attribute
from .analysis import Coefficients, OilEquilibrium
from .bearings import (
    AbstractBearing,
    Contact,
    LongBearing,
    MisalignedShortBearing,
    ShortBearing,
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
    "MisalignedShortBearing",
    "OilEquilibrium",
    "OilTemperature",
    "Pocket",
    "ShortBearing",
    "Vogel",
    "Walther",
    "lobes",
]


def __getattr__(name: str) -> Any:
    return renamed_attribute(__name__, name)
