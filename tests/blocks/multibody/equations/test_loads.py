"""Loads of elements, against values by hand."""

from __future__ import annotations

import numpy as np
import pytest

from biella.blocks.multibody import System
from biella.blocks.multibody.reference_formulations import (
    AbstractModel,
    consistent_velocity,
)
from biella.blocks.multibody.system._rotations import rotation_about

from ..reference_formulations.formulation_cases import SETS


@pytest.mark.parametrize("kind", SETS.values())
def test_springs_and_bushings_by_hand(kind: type[AbstractModel]) -> None:
    """Wrenches of a spring and of a bushing on two loose bodies, from their laws."""
    turn = rotation_about([0.6, 0.0, 0.8], 0.7)
    spin, move = np.array([0.3, -0.5, 0.7]), np.array([0.2, 0.1, -0.4])
    at_a, at_b = np.array([0.2, 0.1, -0.3]), np.array([-0.1, 0.4, 0.2])
    place = np.array([1.0, 0.5, -0.4])
    k, c = np.array([50, 60, 70, 3, 5, 4.0]), np.array([1, 2, 3, 0.1, 0.2, 0.3])
    for element in ("spring", "bushing"):
        s = System("pair", (0, 0, 0))
        a = s.body("a", mass=1.0, inertia=0.4, free=True)
        b = s.body(
            "b",
            mass=1.0,
            inertia=0.4,
            position=place,
            rotation=turn,
            velocity=move,
            angular_velocity=spin,
            free=True,
        )
        ends = a.marker("m", at_a), b.marker("m", at_b)
        arm = turn @ at_b
        d = place + arm - at_a
        d_v = move + np.cross(spin, arm)
        if element == "spring":
            s.spring("e", *ends, stiffness=30.0, damping=4.0, free_length=0.5, force=1.5)
            length = np.linalg.norm(d)
            tension = 30.0 * (length - 0.5) + 4.0 * (d @ d_v / length) + 1.5
            push, twist = tension * d / length, np.zeros(3)
        else:
            s.bushing("e", *ends, stiffness=k, damping=c)
            e0, e = np.cos(0.35), np.sin(0.35) * np.array([0.6, 0.0, 0.8])
            elastic = 2.0 * (e0 * k[3:] * e + np.cross(e, k[3:] * e))
            push, twist = k[:3] * d + c[:3] * d_v, elastic + c[3:] * spin
        model = kind(s)
        force = model.blocks(model.forces(0.0, model.q0, model.v0))
        # Equal moments of inertia: no gyroscopic torque is in the way.
        on_a, on_b = (model.wrench(n, model.q0, force[n]) for n in (0, 1))
        assert on_a[0] == pytest.approx(push)
        assert on_b[0] == pytest.approx(-push)
        assert on_a[1] == pytest.approx(np.cross(at_a + d, push) + twist)
        assert on_b[1] == pytest.approx(-np.cross(arm, push) - twist)


def test_efforts_on_joints_by_hand() -> None:
    """Torsional spring, friction, stop and loads on a hinge and a slide: Q = effort · ∂q."""
    s = System("hinge", (0, 0, 0))
    arm = s.body("arm", mass=1.0, inertia=0.1, position=(1, 0, 0), angular_velocity=(0, 0, 2.0))
    hinge = s.revolute("hinge", s.ground, arm, at=(0, 0, 0), axis=(0, 0, 1))
    s.torsional_spring("coil", hinge, stiffness=5.0, damping=0.2, free_angle=0.3, torque=0.1)
    s.friction("rub", hinge, viscous=0.3, coulomb=0.5, smoothing_speed=4.0)
    s.stop("stop", hinge, upper=-0.1, stiffness=20.0, damping=1.0)
    s.torque("motor", hinge, 7.0)
    effort = 5.0 * 0.3 - 0.2 * 2 - 0.1 - 0.3 * 2 - 0.5 * np.tanh(0.5) - (20 * 0.1 + 2) + 7.0
    for kind in SETS.values():
        model = kind(s)
        v, _ = consistent_velocity(model, 0.0, model.q0)
        turning = model.spins(model.q0)[0] @ v
        own = model.wrench(0, model.q0, model.forces(0.0, model.q0, v))
        # Velocities are projected: the hinge turns at less than the given 2 rad/s.
        rate = turning[2]
        expected = effort + (0.2 + 0.3 + 1.0) * (2 - rate)
        expected += 0.5 * (np.tanh(0.5) - np.tanh(rate / 4))
        assert own[0] == pytest.approx([0, 0, 0], abs=1e-12)
        assert own[1] == pytest.approx([0, 0, expected])
