"""Instruments with typical data-sheet values, one of each kind.

Only the torque meter is a real product, and only its marked values are from its data sheet. All
other values are typical of devices of that class. Change a number with ``dataclasses.replace``.
"""

from __future__ import annotations

import math
from typing import Any

from ._instrument import Instrument

__all__ = [
    "ACCELEROMETER",
    "GYROSCOPE",
    "LOAD_CELL",
    "OPTICAL_ENCODER",
    "PROXIMITY_PROBE",
    "TORQUE_METER",
    "TORQUE_METER_PULSES",
]

_G = 9.80665

TORQUE_METER = Instrument(
    gain=0.1,  # V/(N m), of the rig
    unit="V",
    full_scale=100.0,  # N m, of the rig
    limits=(-11.0, 11.0),
    nonlinearity=1e-3,
    hysteresis=1e-3,
    bandwidth=1000.0,
    order=2,
    noise=30e-6,
    drift=1e-7,
)
"""Torque meter of Vita's rig: 100 N m, 100 mV/(N m). Other values: typical of class 0.1 %."""

TORQUE_METER_PULSES: dict[str, Any] = {"counts": 60, "decoding": 1, "direction": False}
"""For an `Encoder`: the toothed wheel in that torque meter, 60 pulses per revolution."""

OPTICAL_ENCODER: dict[str, Any] = {
    "counts": 4096,
    "decoding": 4,
    "clock": 10e6,
    "eccentricity": 1e-4,
    "edge_error": 0.05,
    "fastest": 1.2e6,
}
"""For an `Encoder`: an optical one of 1024 lines, with a counter card of 10 MHz."""

LOAD_CELL = Instrument(
    gain=10.0 / 5000.0,  # V/N, after its amplifier
    unit="V",
    full_scale=5000.0,
    limits=(-10.5, 10.5),
    nonlinearity=3e-4,
    hysteresis=2e-4,
    bandwidth=1000.0,
    order=2,
    noise=20e-6,
    drift=1e-7,
)
"""A strain-gauge load cell of 5 kN with an amplifier of ±10 V."""

ACCELEROMETER = Instrument(
    unit="m/s2",
    offset=0.05 * _G,
    full_scale=16.0 * _G,
    limits=(-16.0 * _G, 16.0 * _G),
    resolution=32.0 * _G / 2**16,
    nonlinearity=5e-3,
    bandwidth=400.0,
    order=2,
    noise=150e-6 * _G,
    random_walk=20e-6 * _G,
    latency=1e-3,
)
"""A micromachined accelerometer of ±16 g with 16 bits. Sample it at 1 ms or faster."""

_DEGREE = math.pi / 180

GYROSCOPE = Instrument(
    unit="rad/s",
    offset=0.5 * _DEGREE,
    full_scale=500.0 * _DEGREE,
    limits=(-500.0 * _DEGREE, 500.0 * _DEGREE),
    resolution=1000.0 * _DEGREE / 2**16,
    nonlinearity=1e-3,
    bandwidth=100.0,
    order=2,
    noise=0.007 * _DEGREE,
    random_walk=2e-4 * _DEGREE,
    latency=1e-3,
)
"""A micromachined gyro of ±500 °/s with 16 bits: 0.3 °/√h. Sample it at 1 ms or faster."""

PROXIMITY_PROBE = Instrument(
    gain=7870.0,  # V/m: 200 mV per thousandth of an inch
    unit="V",
    full_scale=2e-3,
    limits=(0.0, 18.0),
    nonlinearity=5e-3,
    bandwidth=10e3,
    order=1,
    noise=5e-6,
)
"""An eddy-current probe with an 8 mm tip, linear to 2 mm."""
