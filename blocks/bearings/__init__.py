"""Lubricated journal bearings."""

from typing import Any

from ..._deprecation import renamed_attribute
from ._analysis import Coefficients, OilEquilibrium
from ._bearings import (
    AbstractBearing,
    Contact,
    LongBearing,
    MisalignedShortBearing,
    ShortBearing,
)
from ._bush import lobes
from ._finite import FiniteBearing, Hole, Pocket
from ._oil import OilTemperature, Vogel, Walther

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
