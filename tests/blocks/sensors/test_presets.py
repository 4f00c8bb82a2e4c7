"""Instruments with the figures of data sheets."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks import (
    Accelerometer,
    Constant,
    Gyroscope,
    LoadCell,
    TorqueMeter,
)
from biella.blocks.sensors import presets

pytestmark = pytest.mark.engine


QUIET: dict[str, Any] = {"noise": 0.0, "random_walk": 0.0}


def test_preset_of_the_torque_meter(measure: Any) -> None:
    meter = TorqueMeter(replace(presets.TORQUE_METER, **QUIET))
    torque = np.repeat([0.0, 10.0, 100.0, 200.0], 100)
    y = measure(meter, step=1e-3, torque=torque)["y"][99::100]
    # 100 mV/(N m), within 0.1 % of 10 V for linearity and 0.05 % for hysteresis
    assert y[:3] == pytest.approx([0.0, 1.0, 10.0], abs=0.0151)
    assert y[3] == 11.0


def test_load_cell_preset_closes_its_error_band(measure: Any) -> None:
    cell = LoadCell(replace(presets.LOAD_CELL, noise=0.0, drift=0.0))
    t = np.arange(4000) * 1e-3
    force = 5000.0 * np.sin(2 * np.pi * 0.5 * t)
    error = measure(cell, force=force)["y"] - force / 500.0
    lag = 10.0 * 2 * np.pi * 0.5 * math.sqrt(2) / (2 * np.pi * 1000)  # of the low-pass
    assert 2e-4 * 10.0 < np.abs(error).max() < (3e-4 + 1e-4) * 10.0 + lag


def test_gyro_of_the_data_sheet_has_its_numbers() -> None:
    d = Diagram(step=1e-4)
    d.add(Gyroscope(presets.GYROSCOPE, axes=[0, 0, 1], seed=2), name="gyro")
    d.connect(d.add(Constant([0.1, -0.2, 3.0], unit="rad/s")), "gyro.angular_velocity")
    y = simulate(d, 2.0)["gyro"][10_000:]
    sheet: Any = presets.GYROSCOPE  # its numbers hold for each axis
    bow = sheet.nonlinearity * sheet.full_scale
    assert y.mean() == pytest.approx(3.0 + sheet.offset, abs=bow)
    step = sheet.resolution
    assert np.allclose(y / step, np.round(y / step), atol=1e-6)
    density = sheet.noise**2 * 1.11 * 100.0  # Butterworth's noise bandwidth
    assert y.std() == pytest.approx(math.sqrt(density + step**2 / 12), rel=0.1)


def test_preset_of_the_accelerometer(measure: Any) -> None:
    y = measure(Accelerometer(presets.ACCELEROMETER), acceleration=np.zeros((20_000, 3)))["y"]
    lsb, band = 32 * 9.80665 / 2**16, 400 * np.pi / 2 / math.sqrt(2)
    assert np.allclose(y / lsb, np.round(y / lsb))
    settled = y[10:] - y[10:].mean(axis=0)
    assert settled.std() == pytest.approx(150e-6 * 9.80665 * math.sqrt(band), rel=0.05)
