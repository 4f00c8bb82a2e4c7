"""Small systems, and runs of them."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from biella import BiellaWarning, Diagram, simulate
from biella.blocks.multibody import Body, Joint, System

ENERGIES = ["kinetic_energy", "potential_energy"]


def run(
    system, until, outputs, *, step=1e-3, inputs=(), mode="continuous", integrator="rk4", **options
):
    d = Diagram("mechanism", step=step)
    d.add(system.block(inputs, outputs, mode=mode, integrator=integrator), name="plant")
    result = simulate(d, until, **options)
    return result.t, [result[f"plant.{name}"] for name in outputs]


def solve(slope, until, start):
    """The state at the end, to some 1e-11."""
    return solve_ivp(slope, (0, until), start, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]


def slider(*, position=0.0, velocity=0.0):
    """A body of 2 kg on a slide along x."""
    s = System("slider", gravity=(0, 0, 0))
    body = s.body(
        "mass", mass=2.0, inertia=0.1, position=(position, 0, 0), velocity=(velocity, 0, 0)
    )
    axis = (1, 0, 0)
    s.prismatic("slide", s.ground.marker("rail", axis=axis), body.marker("shoe", axis=axis))
    return s, body


def wheel(*, inertia=0.5, speed=0.0, angle=0.0):
    """A body that turns about z."""
    s = System("wheel", gravity=(0, 0, 0))
    turn = [np.cos(angle / 2), 0, 0, np.sin(angle / 2)]
    body = s.body("disc", mass=1.0, inertia=inertia, rotation=turn, angular_velocity=(0, 0, speed))
    s.revolute("pin", s.ground, body, at=(0, 0, 0), axis=(0, 0, 1))
    return s, body


def expect_jump(text):
    """A warning with this text, or none."""
    return pytest.warns(BiellaWarning, match=text) if text else nullcontext()


def friction_loop(order):
    """A four-bar with friction and springs on every pin; `order` changes which pin is cut."""
    s = System("loop", gravity=(0, -9.81, 0))
    # Velocities that fit together, so that they do not depend on the tree that reads them.
    left, coupler, right = (
        s.body(
            name, mass=mass, inertia=0.2, position=p, velocity=(v, 0, 0), angular_velocity=(0, 0, w)
        )
        for name, mass, p, v, w in (
            ("left", 1.0, (0, 0.5, 0), 4.5, -9.0),
            ("coupler", 1.0, (1, 1.5, 0), 9.0, 0.0),
            ("right", 2.0, (2, 1.0, 0), 4.5, -4.5),
        )
    )
    pins = {
        "a": (s.ground, left, (0, 0, 0)),
        "b": (left, coupler, (0, 1, 0)),
        "c": (coupler, right, (2, 2, 0)),
        "d": (right, s.ground, (2, 0, 0)),
    }
    for name in order:
        first, second, at = pins[name]
        joint = s.revolute(name, first, second, at=at, axis=(0, 0, 1))
        s.friction(f"friction_{name}", joint, viscous=0.05, coulomb=0.1, smoothing_speed=0.5)
        s.torsional_spring(f"spring_{name}", joint, stiffness=0.5, free_angle=0.1)
    return s


def arm() -> tuple[System, Body]:
    s = System("arm")
    return s, s.body("arm", mass=1, inertia=1)


def flat() -> tuple[System, Body]:
    s = System("flat", planar=True)
    return s, s.body("arm", mass=1, inertia=1)


def hinged() -> tuple[System, Joint]:
    s, body = arm()
    return s, s.revolute("hinge", s.ground, body, at=(0, 0, 0), axis=(0, 0, 1))
