"""Bushings: oscillations, potential, damping, momentum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import simpson

from biella.blocks.multibody import System

from ..small_systems import ENERGIES, run, solve

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("axis", range(3))
def test_a_bushing_swings_along_each_axis(axis):
    """m x'' + c x' + k x = 0 along the axes of the first marker, which are turned."""
    turned = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]], dtype=float)
    k, c = np.array([40.0, 90.0, 160.0]), np.array([0.4, 0.0, 2.0])
    direction = turned[:, axis]
    s = System("soft", gravity=(0, 0, 0))
    body = s.body("mass", mass=2.0, inertia=0.1, position=0.02 * direction)
    s.bushing(
        "rubber", s.ground.marker("seat", rotation=turned), body.marker("seat", rotation=turned),
        stiffness=[*k, 1, 2, 3], damping=[*c, 0, 0, 0],
    )  # fmt: skip
    t, (place,) = run(s, 1.0, ["mass.position"])
    decay, omega = c[axis] / 4.0, np.sqrt(k[axis] / 2.0 - (c[axis] / 4.0) ** 2)
    swing = np.exp(-decay * t) * (np.cos(omega * t) + decay / omega * np.sin(omega * t))
    assert np.allclose(place, 0.02 * np.outer(swing, direction), atol=1e-9)


@pytest.mark.parametrize("axis", range(3))
def test_a_bushing_swings_about_each_axis(axis):
    """I ψ'' = -k sin ψ - c ψ' about one axis, also far from none."""
    k, c, inertia = np.array([3.0, 5.0, 7.0]), np.array([0.0, 0.1, 0.2]), np.array([0.2, 0.3, 0.4])
    s = System("soft", gravity=(0, 0, 0))
    spin = np.zeros(3)
    spin[axis] = 4.0
    body = s.body("mass", mass=2.0, inertia=np.diag(inertia), angular_velocity=spin)
    s.bushing(
        "rubber", s.ground.marker("seat"), body.marker("seat"),
        stiffness=[1, 1, 1, *k], damping=[0, 0, 0, *c],
    )  # fmt: skip
    t, (turn, w, kinetic, potential) = run(
        s, 1.5, ["mass.rotation", "mass.angular_velocity", *ENERGIES]
    )

    def slope(_, y):
        return y[1], -(k[axis] * np.sin(y[0]) + c[axis] * y[1]) / inertia[axis]

    angle, speed = solve(slope, 1.5, (0.0, 4.0))
    found = 2 * np.arctan2(turn[-1, 1 + axis], turn[-1, 0])
    assert np.angle(np.exp(1j * (found - angle))) == pytest.approx(0.0, abs=1e-8)
    assert w[-1, axis] == pytest.approx(speed, abs=1e-7)
    lost = simpson(c[axis] * w[:, axis] ** 2, x=t)
    energy = kinetic + potential
    assert energy[0] - energy[-1] == pytest.approx(lost, abs=1e-8)


def _soft(k, rotation, *, spin=(0.0, 0.0, 0.0), damping=0.0, place=(0.0, 0.0, 0.0)):
    """A body of unequal inertia on a bushing of unequal stiffness, with turned markers."""
    s = System("soft", gravity=(0, 0, 0))
    body = s.body("mass", mass=1.0, inertia=np.diag([0.1, 0.2, 0.25]), position=place,
                  rotation=rotation, angular_velocity=spin, free=True)  # fmt: skip
    seat = [0.8, 0.6, 0.0, 0.0]
    s.bushing("rubber", s.ground.marker("seat", (0.1, 0, 0.2), rotation=seat),
              body.marker("seat", (0.1, 0, 0.2), rotation=seat),
              stiffness=k, damping=damping)  # fmt: skip
    return s


def _product(p, q):
    """The product of two quaternions."""
    scalar = p[0] * q[0] - p[1:] @ q[1:]
    return np.array([scalar, *(p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:]))])


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10)
def test_forces_of_a_bushing_are_the_gradient_of_its_potential(seed):
    """At any rotation: -∂U along each axis and about it is force and torque on the body."""
    rng = np.random.default_rng(seed)
    k = rng.uniform(0.0, 20.0, 6)
    start, place = rng.normal(size=4), rng.normal(size=3)
    start /= np.linalg.norm(start)
    inertia = np.diag([0.1, 0.2, 0.25])
    paths = ["potential_energy", "mass.acceleration", "mass.angular_acceleration", "mass.rotation"]
    h = 1e-5

    def look(shift, turn):
        half = 0.5 * np.asarray(turn)
        rotation = _product(np.array([np.sqrt(1.0 - half @ half), *half]), start)
        _, values = run(_soft(k, rotation, place=place + shift), 1e-3, paths)
        return [value[0] for value in values]

    _, acceleration, turning, found = look(np.zeros(3), np.zeros(3))
    e0, e = found[0], found[1:]
    cross = np.array([[0, -e[2], e[1]], [e[2], 0, -e[0]], [-e[1], e[0], 0]])
    r = (e0**2 - e @ e) * np.eye(3) + 2 * np.outer(e, e) + 2 * e0 * cross
    force, torque = acceleration, r @ inertia @ r.T @ turning
    none = np.zeros(3)
    for n, axis in enumerate(np.eye(3)):
        down, up = (look(sign * h * axis, none)[0] for sign in (-1, 1))
        # Differences: h² of a third derivative of about 100, and rounding of 100 J over 2 h.
        assert (down - up) / (2 * h) == pytest.approx(force[n], abs=1e-7)
        down, up = (look(none, sign * h * axis)[0] for sign in (-1, 1))
        assert (down - up) / (2 * h) == pytest.approx(torque[n], abs=1e-7)


def test_a_bushing_of_unequal_stiffness_keeps_energy_through_large_rotations():
    """Two swings past 90° in all directions; RK4 loses some 1e-10 of the energy in 20 s."""
    s = _soft([100, 100, 100, 5.0, 9.0, 2.0], [1, 0, 0, 0], spin=(4.5, 3.0, -6.0))
    _, (kinetic, potential, turn) = run(s, 20.0, [*ENERGIES, "mass.rotation"])
    assert np.degrees(2 * np.arccos(np.abs(turn[:, 0]).min())) > 95.0
    energy = kinetic + potential
    assert np.ptp(energy) < 1e-9 * energy[0]


def test_damping_of_a_bushing_only_takes_energy():
    s = _soft([100, 100, 100, 5.0, 9.0, 2.0], [1, 0, 0, 0], spin=(3.0, 2.0, -4.0),
              damping=[1, 2, 3, 0.05, 0.1, 0.02])  # fmt: skip
    _, (kinetic, potential) = run(s, 10.0, ENERGIES)
    energy = kinetic + potential
    assert np.diff(energy).max() < 1e-12
    assert energy[-1] < 0.5 * energy[0]


def test_a_planar_bushing_counts_turns():
    """I ψ'' = -k ψ with the angle itself, over more than a turn; along x and y as in space."""
    s = System("soft", gravity=(0, 0), planar=True)
    body = s.body("mass", mass=2.0, inertia=0.5, angular_velocity=20.0, position=(0.1, -0.2))
    s.bushing("rubber", s.ground.marker("seat"), body.marker("seat"), stiffness=[8.0, 18.0, 2.0])
    t, (place, w, kinetic, potential) = run(
        s, 2.0, ["mass.position", "mass.angular_velocity", *ENERGIES]
    )
    assert np.allclose(w[:, 2], 20 * np.cos(2 * t), atol=1e-7)
    assert np.allclose(place[:, 0], 0.1 * np.cos(2 * t), atol=1e-9)
    assert np.allclose(place[:, 1], -0.2 * np.cos(3 * t), atol=1e-9)
    assert np.ptp(kinetic + potential) < 1e-7


def test_a_bushing_between_two_bodies_makes_no_momentum():
    s = System("pair", gravity=(0, 0, 0))
    a = s.body(
        "a", mass=1.0, inertia=np.diag([0.1, 0.2, 0.25]), free=True, angular_velocity=(1, 2, 3)
    )
    b = s.body("b", mass=3.0, inertia=0.3, position=(0.5, 0.2, -0.1), free=True, velocity=(0, 1, 0))
    s.bushing(
        "rubber", a.marker("m", (0.2, 0, 0)), b.marker("m", (-0.2, 0.1, 0)),
        stiffness=[30, 50, 20, 2, 2, 2], damping=[1, 2, 1, 0.1, 0.1, 0.1],
    )  # fmt: skip
    _, (va, vb) = run(s, 1.0, ["a.velocity", "b.velocity"])
    assert np.abs(va + 3 * vb - [0, 3, 0]).max() < 1e-11


def test_a_bushing_between_bodies_that_turn_together_damps_nothing():
    s = System("pair", gravity=(0, 0, 0))
    spin: dict[str, Any] = {"inertia": 0.1, "angular_velocity": (0, 0, 2.0), "free": True}
    a = s.body("a", mass=1.0, **spin)
    b = s.body("b", mass=1.0, position=(1, 0, 0), velocity=(0, 2.0, 0), **spin)
    s.bushing(
        "rubber", a.marker("m"), b.marker("m", (-0.5, 0, 0)), stiffness=0.0, damping=[9.0] * 6
    )
    _, values = run(s, 0.001, ["a.acceleration", "b.acceleration", "a.angular_acceleration"])
    assert np.abs([value[0] for value in values]).max() < 1e-12
