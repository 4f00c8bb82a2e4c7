"""Sensor models with noise, bandwidth, latency and faults."""

from . import presets
from ._encoder import Encoder
from ._instrument import AbstractSensor, Instrument
from ._sensors import Accelerometer, Gyroscope, LoadCell, ProximityPair, Sensor, TorqueMeter

__all__ = [
    "AbstractSensor",
    "Accelerometer",
    "Encoder",
    "Gyroscope",
    "Instrument",
    "LoadCell",
    "ProximityPair",
    "Sensor",
    "TorqueMeter",
    "presets",
]
