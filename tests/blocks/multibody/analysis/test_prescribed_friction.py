"""Friction from reactions in prescribed motion, against closed forms and the engine."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from biella import BiellaWarning, Diagram, DiagramError, simulate
from biella.blocks.multibody import System, film_friction, stribeck_friction
from biella.blocks.multibody.mechanisms import slider_crank

G = 9.80665


def test_an_inclined_block():
    """Uphill and downhill: effort = m (a + g sin β) + f m g cos β sign(v)."""
    beta, f, m = 0.3, 0.25, 3.0
    s = System("incline", planar=True)
    along = (np.cos(beta), np.sin(beta))
    block = s.body("block", mass=m, inertia=0.1)
    rail = s.prismatic("rail", s.ground, block, at=(0, 0), axis=along)
    s.friction("rub", rail, coefficient=f, length=0.2, smoothing_speed=1e-9)
    t = np.array([0.1, 0.4, 0.8, 1.2])
    found = s.inverse_dynamics({"rail.displacement": "0.2*sin(3*t)"}, t).efforts[
        "rail.displacement"
    ]
    v, a = 0.6 * np.cos(3 * t), -1.8 * np.sin(3 * t)
    normal = m * G * np.cos(beta)
    np.testing.assert_allclose(
        found, m * (a + G * np.sin(beta)) + f * normal * np.sign(v), rtol=1e-10
    )


def test_a_pin_with_a_law():
    """A balanced wheel: the torque is that of the pin, r N f(r ω)."""
    s = System("wheel")
    wheel = s.body("wheel", mass=4.0, inertia=0.3)
    pin = s.revolute("pin", s.ground, wheel, at=(0, 0, 0), axis=(0, 1, 0))
    law = stribeck_friction(0.08, 0.2, 0.05)
    s.friction("rub", pin, coefficient=law, diameter=0.04, length=0.1, smoothing_speed=1e-9)
    found = s.inverse_dynamics({"pin.angle": "5*t"}, [0.5]).efforts["pin.angle"]
    f = 0.08 + 0.12 * np.exp(-((0.1 / 0.05) ** 2))
    assert found[0] == pytest.approx(0.02 * 4 * G * f, rel=1e-12)


def rubbing(planar, coefficient):
    s: Any = slider_crank(planar=planar)
    length: dict[str, Any] = {} if planar else {"length": 0.05}
    s.friction("rub main", s["main"], coefficient=coefficient, diameter=0.04, **length)
    s.friction("rub pin", s["crank_pin"], coefficient=coefficient, diameter=0.03, **length)
    sizes: dict[str, Any] = {"length": 0.06} if planar else {"length": 0.06, "diameter": 0.05}
    s.friction("rub slide", s["slide"], coefficient=coefficient, **sizes)
    return s


LAWS = {
    "number": 0.12,
    "film": film_friction(viscosity=0.1, length=0.03, relative_clearance=2e-3),
}


@pytest.mark.parametrize("planar", [True, False])
@pytest.mark.parametrize("law", LAWS)
def test_a_mechanism_needs_the_effort_that_the_engine_gives(planar, law):
    s = rubbing(planar, LAWS[law])
    motion = "20*t + 0.3*sin(9*t)"
    t = np.linspace(0, 0.4, 41)
    found = s.inverse_dynamics({"main.angle": motion}, t)
    without = slider_crank(planar=planar).inverse_dynamics({"main.angle": motion}, t)
    s.driver("drive", s["main"], motion)
    d = Diagram("run", step=1e-2)
    d.add(s.block(outputs=["drive.effort", "crank_pin.force", "slide.force"]), name="p")
    with nullcontext() if planar else pytest.warns(BiellaWarning, match="joints are redundant"):
        result = simulate(d, 0.4)
    effort = found.efforts["main.angle"]
    assert np.abs(effort - without.efforts["main.angle"]).max() > 1e-2
    scale = np.abs(effort).max()
    np.testing.assert_allclose(effort, result["p.drive.effort"], atol=1e-7 * scale)
    for name in ("crank_pin.force", "slide.force"):
        scale = np.abs(found[name]).max()
        np.testing.assert_allclose(found[name], result[f"p.{name}"], atol=1e-7 * scale)


def test_kinematics_has_it_too():
    s = rubbing(True, 0.12)
    s.driver("drive", s["main"], "20*t")
    with_friction = s.kinematics([0.1]).efforts["drive"][0]
    smooth: Any = slider_crank(planar=True)
    smooth.driver("drive", smooth["main"], "20*t")
    assert abs(with_friction - smooth.kinematics([0.1]).efforts["drive"][0]) > 1e-2


def test_a_joint_that_sticks_slides_in_a_prescribed_motion():
    s = System("rail", planar=True)
    block = s.body("block", mass=3.0, inertia=0.1)
    rail = s.prismatic("rail", s.ground, block, at=(0, 0), axis=(1, 0))
    s.friction("rub", rail, coefficient=0.2, static=0.4, length=0.1)
    found = s.inverse_dynamics({"rail.displacement": "-0.5*t"}, [0.5]).efforts
    assert found["rail.displacement"][0] == pytest.approx(-0.2 * 3 * G, rel=1e-12)


def test_a_joint_that_locks_itself_is_named():
    with pytest.raises(DiagramError, match="`rub slide` and the reactions that it causes have no"):
        rubbing(True, 8.0).inverse_dynamics({"main.angle": "5*t"}, np.linspace(0, 1, 11))
