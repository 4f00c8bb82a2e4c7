"""Data acquisition: converters, filters, counters, PWM and triggers."""

from ._converters import ADC, DAC, ScanList
from ._counter import Tachometer
from ._filters import AntiAliasFilter, Decimator
from ._pwm import PWMInput, PWMOutput
from ._scaling import Scaling
from ._trigger import Trigger

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
