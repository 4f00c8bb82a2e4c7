"""Forces whose point of application is a formula."""

import numpy as np
import pytest

from biella import Diagram, DiagramError, simulate
from biella.blocks.multibody import Formula, System


def run(system, outputs, until, **mode):
    d = Diagram("run", step=1e-3)
    d.add(system.block(outputs=list(outputs), **mode), name="p")
    result = simulate(d, until)
    return [result[f"p.{name}"] for name in outputs]


@pytest.mark.parametrize(
    "mode", [{}, {"mode": "internal"}, {"mode": "internal", "integrator": "implicit"}]
)
def test_a_point_that_moves_outwards(mode):
    """J φ̈ = F a t for a force across the body at the distance a t: φ = F a t³ / 6 J."""
    s = System("disc", planar=True, gravity=(0, 0))
    disc = s.body("disc", mass=3.0, inertia=0.4)
    hinge = s.revolute("hinge", s.ground, disc, at=(0, 0))
    place = disc.marker("c", (0.1, 0.3))
    s.force("jet", place, (0, 2.0), frame="body", point=(Formula("a*t - 0.1", {"a": 0.5}), -0.3))
    (angle,) = run(s, ["hinge.angle"], 1.0, **mode)
    assert hinge.name == "hinge"
    expected = 2.0 * 0.5 * np.linspace(0, 1, 1001) ** 3 / (6 * 0.4)
    np.testing.assert_allclose(angle, expected, atol=2e-7 if "integrator" in mode else 1e-12)


def crane(point):
    """A beam on a hinge in space, and a trolley with a displacement of its own on a rail."""
    s = System("crane")
    beam = s.body("beam", mass=20.0, inertia=(1.0, 8.0, 8.0), position=(1, 0, 0), com=(0.1, 0, 0))
    s.revolute("hinge", s.ground, beam, at=(0, 0, 0), axis=(0, 1, 0))
    trolley = s.body("trolley", mass=1.0, inertia=0.1, position=(0.4, 1, 0), velocity=(0.5, 0, 0))
    s.prismatic("rail", s.ground, trolley, at=(0, 1, 0), axis=(1, 0, 0))
    s.force("load", beam.marker("root", (-1, 0, 0.2)), (3.0, 0, -50.0), point=point)
    return s


def test_the_point_follows_an_output_and_its_power_is_that_of_the_body():
    s = crane(("trolley.x", 0, -0.2))
    point, power, trolley, position, rotation, v, w = run(
        s,
        [
            "load.point",
            "load.power",
            "trolley.x",
            "beam.position",
            "hinge.angle",
            "beam.velocity",
            "beam.angular_velocity",
        ],
        0.4,
    )
    # The marker is 1 m behind the frame of the beam, at its hinge.
    np.testing.assert_allclose(point[:, 0], trolley * np.cos(rotation), atol=1e-12)
    np.testing.assert_allclose(point[:, 2], -trolley * np.sin(rotation), atol=1e-12)
    at = v + np.cross(w, point - position)
    np.testing.assert_allclose(power, at @ [3.0, 0, -50.0], rtol=1e-11, atol=1e-11)


def test_analyses_know_the_point():
    """A driver holds the beam level: it carries the moments of weight and load."""
    s = crane(("0.3 + trolley.x", 0, 0))
    s.driver("hold", s["hinge"], "0*t")
    s.driver("move", s["rail"], "0.5*t")
    t = np.linspace(0, 1, 6)
    found = s.kinematics(t).efforts["hold"]
    arm = 0.3 + 0.4 + 0.5 * t
    moment = 20 * 9.80665 * 1.1 + 50.0 * arm + 3.0 * 0.2  # about y, of the load and the weight
    np.testing.assert_allclose(found, -moment, rtol=1e-12)
    effort, point = run(s, ["hold.effort", "load.point"], 1.0)
    np.testing.assert_allclose(effort[::200], -moment, rtol=1e-9)
    np.testing.assert_allclose(point[::200, 0], arm, rtol=1e-12)


def test_what_is_wrong_with_a_point_is_said():
    s = System("disc", planar=True)
    disc = s.body("disc", mass=3.0, inertia=0.4)
    rail = s.prismatic("rail", s.ground, disc, at=(0, 0), axis=(1, 0))
    with pytest.raises(
        DiagramError, match="`push` acts on a joint coordinate: it takes no `point`"
    ):
        s.force("push", rail, 1.0, point=(0, 0))
    with pytest.raises(DiagramError, match="`point` of `push` has 2 numbers or laws"):
        s.force("push", disc.marker("c"), (1, 0), point=(0, 0, 0))
    assert "push" not in s.parts
    s.force("push", disc.marker("d"), (1, 0), point=("push.point[0]", 0))
    with pytest.raises(DiagramError, match=r"`push\.point\.x` → `push\.point.0.` → `push"):
        s.block()


def test_numbers_of_the_point_are_parameters():
    s = System("disc", planar=True, gravity=(0, 0))
    disc = s.body("disc", mass=3.0, inertia=0.4)
    s.revolute("hinge", s.ground, disc, at=(0, 0))
    s.force("push", disc.marker("c"), (0, 1.0), point=(Formula("k + 0*t", {"k": 0.2}), 0.1))
    d = Diagram("run", step=1e-3)
    d.add(s.block(["push.point.y"], ["push.point", "hinge.acceleration"]), name="p")
    result = simulate(d, 1e-3, parameters={"p.push.point.x.k": 0.5})
    np.testing.assert_allclose(result["p.push.point"][0], [0.5, 0.1, 0], atol=1e-15)
    assert result["p.hinge.acceleration"][0] == pytest.approx(0.5 / 0.4, rel=1e-12)
