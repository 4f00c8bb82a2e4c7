"""Sensors as a laboratory has them: with noise, bandwidth, latency, faults."""

from . import presets
from .encoder import Encoder
from .instrument import AbstractSensor, Instrument
from .sensors import Accelerometer, LoadCell, ProximityPair, Sensor, TorqueMeter

__all__ = [
    "AbstractSensor",
    "Accelerometer",
    "Encoder",
    "Instrument",
    "LoadCell",
    "ProximityPair",
    "Sensor",
    "TorqueMeter",
    "presets",
]
