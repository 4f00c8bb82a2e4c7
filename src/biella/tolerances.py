"""Tolerance studies of any function, diagram or mechanism: Monte Carlo, worst case and RSS."""

from .scheduler.run.tolerances._study import (
    Spread,
    ToleranceStudy,
    sweep_tolerances,
    tolerance_study,
)
from .scheduler.run.tolerances._variables import Free, Normal, Uniform

__all__ = [
    "Free",
    "Normal",
    "Spread",
    "ToleranceStudy",
    "Uniform",
    "sweep_tolerances",
    "tolerance_study",
]
