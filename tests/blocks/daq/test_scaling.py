"""Scaling: sensitivities, calibrations and their inverses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella import Diagram, DiagramError, simulate
from biella.blocks import Gain, Scaling, Sine

pytestmark = pytest.mark.engine


CALIBRATION: dict[str, Any] = {
    "readings": [-2.0, -0.5, 0.0, 1.0, 4.0],
    "values": [90.0, 30.0, 8.0, 1.0, -5.0],
}


def test_calibration_and_its_inverse(run_block: Any) -> None:
    u = np.linspace(-4, 6, 101)
    inside = (u >= -2) & (u <= 4)
    y = run_block(Scaling(**CALIBRATION, unit="mm"), u)
    expected = np.interp(u[inside], CALIBRATION["readings"], CALIBRATION["values"])
    assert np.allclose(y[inside], expected, atol=1e-12)
    back = run_block(Scaling(**CALIBRATION, unit="mm", inverse=True), y)
    assert np.allclose(back, u, atol=1e-12)  # also beyond the table, along its last lines
    held = run_block(Scaling(**CALIBRATION, unit="mm", extrapolation="hold"), u)
    assert held.min() == -5.0 and held.max() == 90.0


def test_sensitivity_has_units() -> None:
    d = Diagram(step=1e-3)
    torque = d.add(Sine(50.0, 10.0, unit="N.m"), name="torque")
    meter = d.add(Scaling(10.0, unit="N.m", inverse=True), name="meter")  # 100 mV / (N m)
    back = d.add(Scaling(10.0, unit="N.m"), name="back")
    d.connect(torque, meter)
    d.connect(meter, back)
    d.connect(back, d.add(Gain(1.0)))
    result = simulate(d, 0.2)
    assert result.units["meter.y"] == "V" and result.units["back.y"] == "N.m"
    assert np.allclose(result["meter"], result["torque"] / 10, atol=1e-13)
    assert np.allclose(result["back"], result["torque"], atol=1e-12)
    d.connect(d.add(Sine(unit="m")), d.add(Scaling(10.0, unit="N"), name="wrong"))
    with pytest.raises(DiagramError, match="wrong"):
        d.compile()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scaling(), "a `sensitivity`, or a table"),
        (lambda: Scaling(0.0), "other than 0"),
        (lambda: Scaling(readings=[1, 0], values=[0, 1]), "must rise"),
        (lambda: Scaling(readings=[0, 1], values=[0, 1, 2]), "got 2 and 3"),
        (lambda: Scaling(readings=[0, 1, 2], values=[0, 2, 1], inverse=True), "turn back"),
    ],
)
def test_wrong_parameters_say_what_is_possible(make: Any, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        make()
