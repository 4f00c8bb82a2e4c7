"""The bearings that tests of films go through."""

from __future__ import annotations

import pytest

from biella.blocks.bearings import (
    FiniteBearing,
    LongBearing,
    MisalignedShortBearing,
    ShortBearing,
)

R, B, C, MU, OMEGA = 0.02, 0.03, 2e-5, 0.03, 300.0
SIZE = (R, B, C, MU)
MODELS = [ShortBearing, MisalignedShortBearing, LongBearing, FiniteBearing]
EVERY_MODEL = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
