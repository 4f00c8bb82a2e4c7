"""Sensors as a laboratory has them: with noise, bandwidth, latency, faults."""

from . import presets
from .encoder import Encoder
from .instrument import AbstractSensor, Instrument
from .sensors import Accelerometer, Gyroscope, LoadCell, ProximityPair, Sensor, TorqueMeter

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
