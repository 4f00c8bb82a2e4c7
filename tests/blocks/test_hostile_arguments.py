"""Controllers, sensors and data acquisition: any argument gives a block that runs, or an error of
ours that names the mistake; never a bare TypeError from somewhere inside."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

import biella.blocks
from biella import Diagram
from biella.blocks.sensors import Instrument
from biella.errors import BiellaError

pytestmark = pytest.mark.engine

FINE: dict[str, dict[str, Any]] = {
    "PID": {"kp": 1.0, "ki": 1.0, "kd": 0.1},
    "RelayTuner": {"amplitude": 1.0},
    "StateFeedback": {"K": [1.0, 2.0], "Ki": [1.0], "N": [1.0]},
    "KalmanFilter": {"A": np.eye(2) / 2, "B": [[1.0], [0.0]], "C": [[1.0, 0.0]], "Q": 1.0, "R": 1},
    "LQTracking": {
        "A": [[0.0, 1.0], [0.0, 0.0]], "B": [0.0, 1.0], "C": [1.0, 0.0], "times": [0.0, 1.0],
        "reference": [0.0, 1.0], "Q": 1.0, "R": 1.0,
    },
    "LeadLag": {"zero": 1.0, "pole": 2.0},
    "Notch": {"frequency": 10.0, "bandwidth": 1.0},
    "Trapezoid": {"to": 1.0, "velocity": 1.0, "acceleration": 1.0},
    "SCurve": {"to": 1.0, "velocity": 1.0, "acceleration": 1.0, "jerk": 1.0},
    "CamLaw": {"law": "3-4-5", "to": 1.0, "duration": 1.0},
    "MinimumJerk": {"to": 1.0, "duration": 1.0},
    "Cam": {"segments": [("3-4-5", np.pi, 1.0), ("3-4-5", np.pi, -1.0)]},
    "Encoder": {"counts": 100},
    "Sensor": {},
    "TorqueMeter": {},
    "LoadCell": {},
    "Accelerometer": {},
    "Gyroscope": {},
    "ProximityPair": {},
    "ADC": {},
    "ScanList": {"channels": 2, "period": 1e-2},
    "DAC": {},
    "AntiAliasFilter": {"cutoff": 10.0},
    "Decimator": {"factor": 4},
    "Tachometer": {"pulses": 60},
    "Trigger": {"level": 1.0},
    "Scaling": {"sensitivity": 2.0},
    "PWMOutput": {"frequency": 100.0},
    "PWMInput": {},
}  # fmt: skip
HOSTILE: list[Any] = [
    None, "x", "", math.nan, math.inf, -math.inf, -1, 0, 1.5, 2, True, 10**400, [], (), {}, [1, 2],
    [1, 2, 3], [[1, 2], [3, 4]], np.array(1.0), 1j, [math.nan, 1], object(), [["a"]], abs,
]  # fmt: skip


def try_block(block: Any) -> None:
    """Run a block alone, its inputs at zero."""
    d = Diagram(step=1e-3)
    d.add(block, name="block")
    for port in block.inputs:
        width = port.width if isinstance(port.width, int) else 1
        source = d.input(f"to_{port.name}", width=width, kind=port.kind)
        d.connect(source, block[port.name])
    d.compile().instantiate().run(2)


def check(make: Any, fine: dict[str, Any]) -> None:
    tried = 0
    for name in inspect.signature(make).parameters:
        for value in HOSTILE:
            try:
                try_block(make(**{**fine, name: value}))
            except BiellaError as error:
                assert len(str(error)) > 15
            except Exception as error:
                raise AssertionError(
                    f"{name}={value!r}: {type(error).__name__}: {error}"
                ) from error
            tried += 1
    assert tried >= len(HOSTILE)


@pytest.mark.parametrize("name", FINE)
def test_no_argument_gives_a_bare_error(name: str) -> None:
    try_block(getattr(biella.blocks, name)(**FINE[name]))
    check(getattr(biella.blocks, name), FINE[name])


def test_no_entry_of_a_data_sheet_gives_a_bare_error() -> None:
    def make(**given: Any) -> Any:
        return biella.blocks.Sensor(Instrument(**given))

    make.__signature__ = inspect.signature(Instrument)  # type: ignore[attr-defined]
    check(make, {"full_scale": 1.0, "bandwidth": 10.0})


def test_no_argument_of_other_forms_gives_a_bare_error() -> None:
    kalman = {**FINE["KalmanFilter"], "covariance": 1.0}
    check(biella.blocks.KalmanFilter, kalman)
    check(biella.blocks.Scaling, {"readings": [0.0, 1.0], "values": [0.0, 1.0]})
    check(biella.blocks.PID, {"kp": [1, 2], "ki": 1.0, "kd": [0, 1], "schedule": [0, 1]})
    check(biella.blocks.PID, {"k": 1.0, "ti": 1.0, "td": 0.1, "method": "tustin", "period": 1e-3})
