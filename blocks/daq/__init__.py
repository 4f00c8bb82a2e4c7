"""Data acquisition: what stands between a sensor's volts and a computer's numbers."""

from .converters import ADC, DAC, ScanList
from .counter import Tachometer
from .filters import AntiAliasFilter, Decimator
from .pwm import PWMInput, PWMOutput
from .scaling import Scaling
from .trigger import Trigger

__all__ = [
    "ADC",
    "DAC",
    "AntiAliasFilter",
    "Decimator",
    "PWMInput",
    "PWMOutput",
    "Scaling",
    "ScanList",
    "Tachometer",
    "Trigger",
]
