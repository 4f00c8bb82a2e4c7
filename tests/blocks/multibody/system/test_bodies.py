"""Bodies and markers: what is refused, and markers that move."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from biella import BiellaWarning, DiagramError
from biella.blocks.multibody import Linear, Marker, Sine, System, mechanisms

from ..small_systems import arm, flat, hinged, run, slider, solve, wheel

pytestmark = pytest.mark.engine


def test_a_pendulum_on_a_pivot_that_moves():
    """(m L² + I) θ'' = -m L (g sin θ + x'' cos θ) for a bob below a pivot that moves sideways."""
    s = System("pivot", gravity=(0, -9.81, 0))
    bob = s.body("bob", mass=1.5, inertia=0.1, position=(0, -1, 0))
    pivot = s.ground.marker("pivot", axis=(0, 0, 1), motion={"x": "0.1*sin(3*t)"})
    s.revolute("pin", pivot, bob.marker("pin", (0, 1, 0), axis=(0, 0, 1)))
    outputs = ["bob.position", "pin.angle", "pin.force", "ground.pivot.position",
               "ground.pivot.velocity", "ground.pivot.acceleration", "closure"]  # fmt: skip
    with pytest.warns(BiellaWarning, match="it starts with an impulse: `bob`"):
        t, (place, angle, force, moved, v, a, closure) = run(s, 3.0, outputs)

    def slope(t, y):
        return y[1], -1.5 / 1.6 * (9.81 * np.sin(y[0]) - 0.9 * np.sin(3 * t) * np.cos(y[0]))

    # The bob was given no velocity, but the pivot moves at 0.3 m/s: of all motions that fit, the
    # projection takes the one of least energy, (m L² + I) θ' = -0.3 m L.
    spin = -0.3 * 1.5 / 1.6
    theta, _ = solve(slope, 3.0, (0.0, spin))
    x = 0.1 * np.sin(3 * t)
    assert np.allclose(moved[:, 0], x, atol=1e-14)
    assert np.allclose(v[:, 0], 0.3 * np.cos(3 * t), atol=1e-14)
    assert np.allclose(a[:, 0], -0.9 * np.sin(3 * t), atol=1e-14)
    assert closure.max() < 1e-10
    assert place[-1, 0] == pytest.approx(x[-1] + np.sin(theta), abs=1e-7)
    assert angle[-1] == pytest.approx(theta, abs=1e-7)
    assert force[0, 1] == pytest.approx(1.5 * (9.81 + spin**2), abs=1e-8)


def test_a_marker_that_moves_on_a_turning_body():
    """A bead on a spoke at r(t) = 0.5 + 0.2 sin 2t, turned at ω: its acceleration has all parts."""
    omega = 3.0
    s, disc = wheel()
    s.driver("turn", s["pin"], Linear(0.0, omega))
    bead = s.body("bead", mass=0.5, inertia=0.01, position=(0.5, 0, 0))
    spoke = disc.marker("spoke", (0.5, 0, 0), motion={"x": Sine(0.2, 2.0)})
    s.spherical("hold", spoke, bead.marker("center"))
    t, (place, force, a) = run(s, 2.0, ["bead.position", "hold.force", "disc.spoke.acceleration"])
    turn = np.exp(1j * omega * t)
    r, r1, r2 = 0.5 + 0.2 * np.sin(2 * t), 0.4 * np.cos(2 * t), -0.8 * np.sin(2 * t)
    exact = (r2 - omega**2 * r + 2j * omega * r1) * turn
    assert np.allclose(place[:, 0] + 1j * place[:, 1], r * turn, atol=1e-10)
    assert np.allclose(a[:, 0] + 1j * a[:, 1], exact, atol=1e-8)
    assert np.allclose(force[:, 0] + 1j * force[:, 1], 0.5 * exact, atol=1e-7)


def test_a_load_and_a_bushing_on_a_marker_that_moves():
    s, disc = wheel(inertia=0.5)
    arm = disc.marker("arm", (0, 0, 0), motion={"x": Linear(0.0, 1.0)})
    s.force("push", arm, (0.0, 2.0, 0.0), frame="body")
    _, (speed,) = run(s, 1.0, ["pin.speed"])
    # I ω' = 2 x with x = t.
    assert speed[-1] == pytest.approx(2.0 * 0.5 / 0.5, abs=1e-10)
    s, body = slider()
    seat = s.ground.marker("seat", motion={"x": Sine(0.1, 2.0)})
    s.bushing(
        "rubber",
        seat,
        body.marker("seat"),
        stiffness=[50, 0, 0, 0, 0, 0],
        damping=[3, 0, 0, 0, 0, 0],
    )
    _, (place,) = run(s, 2.0, ["slide.displacement"])

    def slope(t, y):
        return y[1], -(50 * (y[0] - 0.1 * np.sin(2 * t)) + 3 * (y[1] - 0.2 * np.cos(2 * t))) / 2.0

    assert place[-1] == pytest.approx(solve(slope, 2.0, (0.0, 0.0))[0], abs=1e-9)


def test_moving_marker() -> None:
    s = mechanisms.mcpherson()
    road = s["ground.road"]
    assert isinstance(road, Marker)
    position, rate, acceleration = road.place(0.1)
    omega = 5 * math.pi
    assert position == pytest.approx([0.452, -0.41, -0.33 + 0.03 * math.sin(omega * 0.1)])
    assert rate == pytest.approx([0, 0, 0.03 * omega * math.cos(omega * 0.1)], abs=1e-12)
    assert acceleration[2] == pytest.approx(-0.03 * omega**2 * math.sin(omega * 0.1))


BAD: list[tuple[str, Callable[[], object]]] = [
    (
        r"body `rotor` has principal moments of inertia \(0.01, 0.01, 0.3\) kg m², which no body "
        r"has: 0.3 is larger than 0.01 \+ 0.01. .*allow_nonphysical=True",
        lambda: System("s").body("rotor", mass=1, inertia=(0.01, 0.01, 0.3)),
    ),
    (
        r"`inertia` of body `b` is not symmetric: element \(1, 2\) is 0.1, \(2, 1\) is 0",
        lambda: System("s").body("b", mass=1, inertia=[[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]),
    ),
    (
        r"body `b` has principal moments of inertia \(-1, 1, 1\).*none may be negative",
        lambda: System("s").body("b", mass=1, inertia=(1, -1, 1), allow_nonphysical=True),
    ),
    (r"tensor, got \[1, 2\]", lambda: System("s").body("b", mass=1, inertia=[1, 2])),
    (r"body `b` has mass -1 kg", lambda: System("s").body("b", mass=-1, inertia=1)),
    (r"`mass` of body `b` must be finite", lambda: System("s").body("b", mass=np.nan, inertia=1)),
    (
        r"`rotation` of body `b` is not orthonormal: RᵀR differs from the identity by 0.21",
        lambda: System("s").body("b", mass=1, inertia=1, rotation=np.diag([1, 1, 1.1])),
    ),
    (
        r"`rotation` of body `b` is a reflection",
        lambda: System("s").body("b", mass=1, inertia=1, rotation=np.diag([1, 1, -1])),
    ),
    (
        r"Euler parameters \[1.0, 1.0, 0.0, 0.0\] of length 1.41421",
        lambda: System("s").body("b", mass=1, inertia=1, rotation=(1, 1, 0, 0)),
    ),
    (
        r"System.body has no keyword `masss`. Did you mean `mass`\? Keywords: name, mass",
        lambda: System("s").body("b", masss=1, inertia=1),  # type: ignore[call-arg]
    ),
    (
        r"Body.marker has no keyword `axes`. Did you mean `axis`",
        lambda: arm()[1].marker("m", axes=(1, 0, 0)),  # type: ignore[call-arg]
    ),
    (
        r"System has no keyword `planer`. Did you mean `planar`",
        lambda: System("s", planer=True),  # type: ignore[call-arg]
    ),
    (
        r"there is a body called `arm` already",
        lambda: arm()[0].body("arm", mass=1, inertia=1),
    ),
    (r"there is a number called `gravity`", lambda: arm()[0].body("gravity", mass=1, inertia=1)),
    (
        r"there is a joint called `hinge` already",
        lambda: hinged()[0].body("hinge", mass=1, inertia=1),
    ),
    (r"name without dots, got 'a.b'", lambda: arm()[0].body("a.b", mass=1, inertia=1)),
    (r"`arm.mass` is a number of the body", lambda: arm()[1].marker("mass")),
    (
        r"there is a marker `ground.hinge` already",
        lambda: hinged()[0].ground.marker("hinge"),
    ),
    (
        r"give one of them",
        lambda: arm()[1].marker("m", axis=(1, 0, 0), rotation=np.eye(3)),
    ),
    (r"`axis` of marker `arm.m` has no direction", lambda: arm()[1].marker("m", axis=(0, 0, 0))),
    (r"moves along `w`; the axes are x, y, z", lambda: arm()[1].marker("m", motion={"w": 1.0})),
    (
        r"motion `x` of marker `arm.m` depends on `l`, which is not available. It may depend on t",
        lambda: arm()[1].marker("m", motion={"x": "l"}),
    ),
    (
        r"`position` of marker `arm.m` has three numbers.*planar: give \(x, y\)",
        lambda: flat()[1].marker("m", (1, 2, 3)),
    ),
    (r"`gravity` has three numbers", lambda: System("s", (0, 0, -9.81), planar=True)),
    (r"`gravity` has two numbers.*planar=True", lambda: System("s", (0, -9.81))),
    (
        r"in a planar system is one number, J_z",
        lambda: System("s", planar=True).body("b", mass=1, inertia=(1, 1, 1)),
    ),
    (
        r"in a planar system is an angle in rad",
        lambda: System("s", planar=True).body("b", mass=1, inertia=1, rotation=np.eye(3)),
    ),
    (
        r"`j`: a planar system has no spherical joint: a revolute does the same. Joints in a "
        r"plane: fixed, revolute, prismatic, guide, distance",
        lambda: flat()[0].spherical("j", flat()[1], flat()[1], at=(0, 0)),
    ),
]


@pytest.mark.parametrize(("message", "make"), BAD)
def test_bad_bodies_and_markers_teach(message: str, make: Callable[[], object]) -> None:
    with pytest.raises(DiagramError, match=message):
        make()


def test_nonphysical_inertia_can_be_insisted_on() -> None:
    body = System("s").body("r", mass=1, inertia=(0.01, 0.01, 0.3), allow_nonphysical=True)
    assert np.diag(body.inertia).tolist() == [0.01, 0.01, 0.3]
    # Rods and plates are at the limit, and physical.
    System("s").body("rod", mass=1, inertia=(0, 1, 1))
    System("s").body("plate", mass=1, inertia=(0.1, 0.2, 0.1 + 0.2))


def test_a_free_body_is_declared() -> None:
    s = System("tumbling", (0, 0, 0))
    s.body("brick", mass=1, inertia=(1, 2, 2.5), angular_velocity=(0, 1, 0.01), free=True)
    s.validate()
    s.body("dust", mass=1, inertia=0, free=True)
    with pytest.raises(DiagramError, match="`dust` has no joint and a principal moment"):
        s.validate()


def test_motion_that_is_no_dict_is_named() -> None:
    wrong: Any = (1, 2, 3)
    with pytest.raises(
        DiagramError, match=r"`motion` of marker `ground\.m` is a dict.*\(1, 2, 3\)"
    ):
        System("s").ground.marker("m", motion=wrong)
