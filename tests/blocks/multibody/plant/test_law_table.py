"""Laws in the engine: formulas, tables, inputs and their numbers."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram, DiagramError, simulate
from biella.blocks.multibody import Input, Sine, Table
from biella.blocks.multibody.system._laws import Formula

from ..small_systems import expect_jump, run, slider

pytestmark = pytest.mark.engine


FORMULAS = [
    "0.3*sin(5*pi*t) + t**3 - 2*t",
    "cos(t)*exp(-t) / (1 + t)",
    "tan(t/3) - asin(t/4) + acos(t/5)",
    "atan(t)*sinh(t) - cosh(t/2) + tanh(2*t)",
    "sqrt(1 + t)*log(2 + t)*log10(3 + t)",
    "hypot(t, 1 - t) + atan2(t, 2)",
    "(1 + t)**(t + 0.5) + pow(2 + t, -1.5)",
    "(1 + t)**1 + (2 + t)**0 + t**2",
    "min(t, 0.35) + max(2*t, 0.7) + clip(t**2, 0.05, 0.4)",
    "(t**2 if t < 1 else t) + where(0.1 < t < 11 and not t > 12 or t == 9, t, t)",
    "abs(0.35 - t) + t % 11 + t//12 + floor(t/13) + ceil(t/14 + .1) + round(t/25) + sign(t + 1)",
    "-(t >= 15) * t + (t <= 15) + (t != 16) + (-t)**2",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_drives_with_its_derivatives(text):
    """Place, speed and acceleration of a driven body are the jet that calculus gives in Python."""
    s, _ = slider()
    s.driver("drive", s["slide"], text)
    paths = ["slide.displacement", "slide.speed", "slide.acceleration"]
    with expect_jump("rate of the prescribed motion" if "0.35" in text else ""):
        t, (place, speed, acceleration) = run(s, 0.6, paths, step=0.06)
    expected = np.array([Formula(text).jet(now) for now in t])
    # The projection leaves 1e-13 of errors in places, the multipliers 1e-12 of accelerations.
    assert np.allclose(place, expected[:, 0], rtol=0, atol=1e-11)
    assert np.allclose(speed, expected[:, 1], rtol=0, atol=1e-10)
    assert np.allclose(acceleration, expected[:, 2], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("interpolation", ["linear", "cubic"])
def test_a_table_drives_with_its_derivatives(interpolation):
    law = Table([0.1, 0.2, 0.5, 0.7], [1.0, 1.2, 0.4, 0.6], interpolation)
    s, _ = slider()
    s.driver("drive", s["slide"], law)
    # A spline has no rate beyond its ends either.
    with expect_jump("rate of the prescribed motion `drive` jumps by"):
        t, (place, speed, acceleration) = run(
            s, 0.9, ["slide.displacement", "slide.speed", "slide.acceleration"], step=0.03
        )
    inner = np.all(
        np.abs(t[:, None] - law.points) > 1e-9, axis=1
    )  # which side of a point is rounding
    expected = np.array([law.jet(now) for now in t])
    assert np.allclose(place, expected[:, 0], rtol=0, atol=1e-11)
    assert np.allclose(speed[inner], expected[inner, 1], rtol=0, atol=1e-10)
    assert np.allclose(acceleration[inner], expected[inner, 2], rtol=1e-9, atol=1e-9)


def test_numbers_of_laws_are_settable_and_constants_can_be_inputs():
    s, body = slider(position=0.8)
    s.spring(
        "spring", s.ground.marker("a"), body.marker("b"), stiffness=8.0, free_length=0.5,
        force=Sine(0.0, 1.0),
    )  # fmt: skip
    _, (place,) = run(s, 1.0, ["slide.displacement"], parameters={"plant.spring.stiffness": 32.0})
    assert place[-1] == pytest.approx(0.5 + 0.3 * np.cos(4.0), abs=1e-9)
    d = Diagram()
    stiffness = d.input("k", unit="N/m", default=32.0)
    plant = d.add(s.block(["spring.stiffness"], ["slide.displacement"]), name="plant")
    d.connect(stiffness, plant["spring.stiffness"])
    assert simulate(d, 1.0)["plant"][-1] == pytest.approx(place[-1], abs=1e-12)


def test_an_input_law_is_a_coefficient():
    s, body = slider(position=1.0)
    s.spring("spring", s.ground.marker("a"), body.marker("b"), stiffness=Input("k", 8.0))
    block = s.block(outputs=["slide.displacement"])
    assert [(port.name, str(port.unit)) for port in block.inputs] == [("k", "N/m")]
    assert not [p.name for p in block.parameters if "default" in p.name and not p.hidden]
    _, (place,) = run(s, 1.0, ["slide.displacement"])
    assert place[-1] == pytest.approx(np.cos(2.0), abs=1e-9)


def test_two_inputs_of_one_name_must_agree():
    s, body = slider()
    s.force("a", body.marker("a"), (Input("u"), 0, 0))
    s.spring("b", s.ground.marker("c"), body.marker("d", (1, 0, 0)), stiffness=Input("u"))
    with pytest.raises(DiagramError, match="two inputs are called `u`"):
        s.block()
