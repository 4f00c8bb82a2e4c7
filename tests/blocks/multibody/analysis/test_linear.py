"""Small motions about a state of rest: frequencies, modes and damping in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from biella import DiagramError
from biella.blocks.multibody import System

from .test_equilibrium import sprung_pendulum

pytestmark = pytest.mark.engine

G = 9.81


def test_double_pendulum_has_its_two_frequencies():
    """Two rods of length L: M = m L² [[4/3, 1/2], [1/2, 1/3]], K = m g L/2 diag(3, 1), absolute."""
    s = System("double", (0, -G), planar=True)
    bars = []
    for n in range(2):
        position = (0.3 * (n + 0.5), 0)
        bars.append(s.body(f"bar{n}", mass=1.0, inertia=0.09 / 12, position=position))
        s.revolute(f"pin{n}", bars[n - 1] if n else s.ground, bars[n], at=(0.3 * n, 0))
    mass = 0.09 * np.array([[4 / 3, 1 / 2], [1 / 2, 1 / 3]])
    stiffness = 0.5 * G * 0.3 * np.diag([3.0, 1.0])
    exact = np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(mass, stiffness)))) / (2 * np.pi)
    rest = s.equilibrium()
    assert rest.stability == "stable"
    modes = s.modes(rest)
    # Central differences of step 1e-5 are right to about 1e-9.
    assert [mode.frequency for mode in modes] == pytest.approx(exact, rel=1e-8)
    assert np.allclose([mode.damping for mode in modes], 0.0, atol=1e-8)
    # In phase, then out of phase: rotations of the two bars.
    turns = [mode.shape["bar1"].rotation[2] / mode.shape["bar0"].rotation[2] for mode in modes]
    assert turns[0].real > 0 > turns[1].real
    # In joint coordinates, where θ2 = pin0 + pin1, the same matrices.
    linear = s.linearize(rest, coordinates=["pin0.angle", "pin1.angle"])
    change = np.array([[1.0, 0.0], [1.0, 1.0]])
    assert np.allclose(linear.mass, change.T @ mass @ change, atol=1e-10)
    assert np.allclose(linear.stiffness, change.T @ stiffness @ change, atol=1e-7)
    assert np.allclose(linear.residual, 0.0, atol=1e-7)


def test_a_chain_of_masses_has_the_modes_of_its_formula():
    """ω_n = 2 √(k/m) sin(n π / (2 (N + 1))) between two walls, with proportional damping."""
    count, k, c, m = 4, 900.0, 0.6, 2.0
    s = System("chain", (0, 0, 0))
    ends = [s.ground.marker("left", (0, 0, 0))]
    for n in range(count):
        x = 0.5 * (n + 1)
        body = s.body(f"m{n}", mass=m, inertia=0.1, position=(x, 0, 0))
        s.prismatic(f"slide{n}", s.ground, body, at=(x, 0, 0), axis=(1, 0, 0))
        ends.append(body.marker("spring"))
    ends.append(s.ground.marker("right", (0.5 * (count + 1), 0, 0)))
    for n in range(count + 1):
        s.spring(f"s{n}", ends[n], ends[n + 1], stiffness=k, damping=c, free_length=0.5)
    order = np.arange(1, count + 1)
    exact = 2.0 * np.sqrt(k / m) * np.sin(order * np.pi / (2 * (count + 1)))
    linear = s.linearize()
    modes = linear.modes()
    assert 2 * np.pi * np.array([mode.frequency for mode in modes]) == pytest.approx(
        exact, rel=1e-7
    )
    # C = (c / k) K makes ζ = c ω / (2 k).
    assert [mode.damping for mode in modes] == pytest.approx(c * exact / (2 * k), rel=1e-6)
    shape = np.array([modes[0].shape[f"m{i}"].displacement[0] for i in range(count)])
    sine = np.sin(np.pi * order / (count + 1))
    assert np.allclose(shape / shape[0], sine / sine[0], atol=1e-6)
    values = np.linalg.eigvals(linear.state_matrix)
    assert np.sort(np.abs(values)) == pytest.approx(np.repeat(exact, 2), rel=1e-7)


def test_a_loaded_joint_has_geometric_stiffness_in_space_too():
    """A compound pendulum on a spatial revolute, tilted: ω² = m g cos β l / (J + m l²)."""
    beta = 0.3
    s = System("tilted", (0, -G * np.cos(beta), -G * np.sin(beta)))
    bob = s.body("bob", mass=2.0, inertia=(0.1, 0.2, 0.3), position=(0.1, -0.5, 0))
    s.revolute("pin", s.ground, bob, at=(0, 0, 0), axis=(0, 0, 1))
    length = np.hypot(0.1, 0.5)
    exact = np.sqrt(2.0 * G * np.cos(beta) * length / (0.3 + 2.0 * length**2)) / (2 * np.pi)
    (mode,) = s.modes()
    assert mode.frequency == pytest.approx(exact, rel=1e-8)


def test_linearize_wants_as_many_coordinates_as_there_is_freedom():
    s = sprung_pendulum(20.0)
    with pytest.raises(DiagramError, match="1 degrees of freedom"):
        s.linearize(coordinates=[])
    assert s.linearize(coordinates=["pin"]).mass == pytest.approx(np.array([[1.2]]))
