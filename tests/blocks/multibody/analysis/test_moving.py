"""Small motions about a motion: whirl, precession and nutation, against closed forms.

And the whole state matrix against differences of the engine's kernel.
"""

from __future__ import annotations

import numpy as np
import pytest

import biella
from biella import Diagram
from biella.blocks.multibody import Linear, System
from biella.blocks.multibody.plant._initial import coordinate_name
from biella.blocks.multibody.plant._tree import grow_tree

G = 9.81
M, IT, IA = 2.0, 0.02, 0.035
"""Of a disc: its mass, and its moments of inertia across its axis and about it."""


def whirl_speeds(modes):
    """Angular velocities of whirl, forward ones positive, as the disc's axis moves; spin is +z.

    The axis of a disc that is turned by the small vector φ points to (φ_y, -φ_x, 1).
    """
    found = []
    for mode in modes:
        turn = mode.shape["disc"].rotation
        x, y = turn[1], -turn[0]
        if abs(x) < 1e-9:
            continue
        # e^(iωt) (x, y) runs from x to y, forward, if y = -i x.
        assert abs(abs(y / x) - 1.0) < 1e-6, "a round rotor whirls in circles"
        found.append(-np.sign((y / x).imag) * mode.eigenvalue.imag)
    return np.sort(found)


def overhung_disc(spin, driven):
    """A disc at the free end of a massless cantilever, in a bearing at its center.

    A cantilever of length l holds its end as a bushing at l/2 does: 12 EI/l³ across, EI/l in tilt.
    """
    length, bending = 0.4, 300.0
    s = System("overhung disc", (0, 0, 0))
    sleeve = s.body("sleeve", mass=0.1, inertia=0.001, position=(0, 0, length))
    disc = s.body(
        "disc",
        mass=M,
        inertia=(IT, IT, IA),
        position=(0, 0, length),
        angular_velocity=(0, 0, spin),
    )
    bearing = s.revolute("bearing", sleeve, disc, at=(0, 0, length), axis=(0, 0, 1))
    across, tilt = 12.0 * bending / length**3, bending / length
    s.bushing(
        "shaft",
        s.ground.marker("middle", (0, 0, length / 2)),
        sleeve.marker("middle", (0, 0, -length / 2)),
        stiffness=(across, across, 5e4, tilt, tilt, 80.0),
    )
    if driven:
        s.driver("motor", bearing, Linear(0.0, spin))
    return s, length, bending


@pytest.mark.parametrize("driven", [False, True], ids=["spins freely", "driven"])
@pytest.mark.parametrize("spin", [0.001, 80.0, 400.0, -400.0])
def test_an_overhung_disc_whirls_as_stodola_says(spin, driven):
    """(k11 - m ω²)(k22 - It ω² + Ω Ia ω) = k12² with the stiffness of a cantilever's end.

    k11 = 12 EI/l³, k12 = 6 EI/l², k22 = 4 EI/l: two forward and two backward whirls.
    """
    s, length, bending = overhung_disc(spin, driven)
    mass, across = M + 0.1, IT + 0.001
    k11, k12, k22 = bending * np.array([12 / length**3, 6 / length**2, 4 / length])
    first = np.polynomial.Polynomial([k11, 0, -mass])
    second = np.polynomial.Polynomial([k22, spin * IA, -across])
    exact = np.sort((first * second - k12**2).roots().real)
    found = whirl_speeds(s.modes(s.assemble()))
    assert found == pytest.approx(exact, rel=2e-8)
    if abs(spin) > 1.0:
        assert (np.abs(np.abs(found[:2]) - found[:1:-1]) > 1.0).all(), "the whirls split"


@pytest.mark.parametrize("spin", [60.0, 15.0])
def test_a_sleeping_top_nutates_and_precesses(spin):
    """ω = (Ia Ω ± √(Ia² Ω² - 4 I m g l)) / (2 I), I = It + m l²; below 4 I m g l it falls."""
    length = 0.1
    s = System("top", (0, 0, -G))
    disc = s.body(
        "disc",
        mass=M,
        inertia=(IT, IT, IA),
        position=(0, 0, length),
        angular_velocity=(0, 0, spin),
    )
    s.spherical("point", s.ground, disc, at=(0, 0, 0))
    across = IT + M * length**2
    root = np.sqrt(complex((IA * spin) ** 2 - 4.0 * across * M * G * length))
    assert (root.real > 0) == (spin == 60.0), "both sides of the limit of stability"
    exact = 1j * (IA * spin + np.array([1.0, -1.0]) * root) / (2.0 * across)
    values = np.linalg.eigvals(s.linearize(s.assemble()).state_matrix)
    for value in exact:
        # Pairs that run away together are a double root of the noise that differences leave.
        assert np.abs(values - value).min() < 1e-7 * abs(value)
    if spin == 60.0:
        assert whirl_speeds(s.modes(s.assemble())) == pytest.approx(np.sort(exact.imag), rel=1e-7)


def test_a_bead_on_a_turning_hoop_swings_about_its_place():
    """θ'' = (Ω² cos θ - g/R) sin θ rests at cos θ = g/(Ω² R), and swings there by Ω sin θ."""
    omega, radius = 8.0, 0.5
    theta = np.arccos(G / (omega**2 * radius))
    s = System("hoop", (0, 0, -G))
    hoop = s.body("hoop", mass=1.0, inertia=0.1, angular_velocity=(0, 0, omega))
    place = radius * np.array([np.sin(theta), 0.0, -np.cos(theta)])
    bead = s.body(
        "bead",
        mass=0.3,
        inertia=0.0,
        position=place,
        velocity=np.cross([0, 0, omega], place),
        angular_velocity=(0, 0, omega),
    )
    axle = s.revolute("axle", s.ground, hoop, at=(0, 0, 0), axis=(0, 0, 1))
    s.revolute("arm", hoop, bead, at=(0, 0, 0), axis=(0, -1, 0))
    s.driver("turn", axle, Linear(0.0, omega))
    for coordinates in (None, ["arm.angle"]):
        (mode,) = s.linearize(s.assemble(), coordinates=coordinates).modes()
        assert mode.eigenvalue == pytest.approx(1j * omega * np.sin(theta), rel=1e-7)


def test_a_pendulum_in_a_car_that_speeds_up_swings_about_the_apparent_weight():
    """ω² = m l √(g² + a²) / (J + m l²) about tan θ = a/g; its pivot moves by a law."""
    speeding, length, t = 4.0, 0.6, 1.5
    theta = np.arctan2(speeding, G)
    s = System("car", (0, -G), planar=True)
    pivot = s.ground.marker("pivot", motion={"x": f"0.5*{speeding}*t**2"})
    place = np.array([0.5 * speeding * t**2 - length * np.sin(theta), -length * np.cos(theta)])
    bob = s.body("bob", mass=2.0, inertia=0.1, position=place, velocity=(speeding * t, 0))
    s.revolute("pin", pivot, bob.marker("pin", (length * np.sin(theta), length * np.cos(theta))))
    (mode,) = s.modes(s.assemble(t))
    exact = np.sqrt(2.0 * length * np.hypot(G, speeding) / (0.1 + 2.0 * length**2))
    assert mode.eigenvalue == pytest.approx(1j * exact, rel=1e-7)


def moving_arm(velocities=None):
    """A tree of revolutes and slides in the midst of a motion, with springs and dampers."""
    s = System("arm", (0.5, -3.0, -9.0))
    rng = np.random.default_rng(8)
    last = s.ground
    for n, kind in enumerate(["universal", "cylindrical", "revolute", "prismatic"]):
        random = {
            "velocity": rng.normal(size=3),
            "angular_velocity": rng.normal(scale=2.0, size=3),
        }
        body = s.body(
            f"b{n}",
            mass=float(rng.uniform(0.5, 2.0)),
            inertia=rng.uniform(0.1, 0.15, size=3),
            com=rng.normal(scale=0.1, size=3),
            position=rng.normal(scale=0.5, size=3),
            **(velocities[n] if velocities else random),
        )
        at, axis = rng.normal(scale=0.3, size=3), list(rng.normal(size=3))
        if kind == "universal":
            axis = [(0, 0, 1), (0.6, 0.8, 0)]
        getattr(s, kind)(f"j{n}", last, body, at=at, axis=axis)
        s.spring(
            f"s{n}",
            s.ground.marker(f"hook{n}", rng.normal(size=3)),
            body.marker("hook", rng.normal(scale=0.2, size=3)),
            stiffness=30.0,
            damping=2.0,
        )
        last = body
    return s


def test_the_state_matrix_is_that_of_the_engine():
    """At a state that is neither at rest nor steady, in joint coordinates."""
    # From velocities that the joints allow, so that none are projected out of them.
    allowed = [
        {"velocity": body.velocity, "angular_velocity": body.angular_velocity}
        for body in moving_arm().assemble().bodies
    ]
    s = moving_arm(allowed)
    places = sorted(grow_tree(s).coordinates.items(), key=lambda item: item[1].q)
    assert all(at.sign == 1 for _, at in places)
    names = [f"{joint}.{coordinate_name(s[joint], number)}" for (joint, number), _ in places]
    ours = s.linearize(s.assemble(), coordinates=names).state_matrix
    d = Diagram("arm")
    plant = d.add(s.block(["s0.force"], ["b0.position"]), name="plant")
    d.connect(d.input("pull", unit="N"), plant["s0.force"])
    d.output("place", plant["b0.position"])
    engine = biella.linearize(d).A
    assert ours.shape == engine.shape == (12, 12)
    # Both are differences, right to some 1e-8 of the largest entry.
    assert ours == pytest.approx(engine, abs=1e-7 * np.abs(engine).max())
    rest = s.linearize(s.equilibrium(), coordinates=names).state_matrix
    assert np.abs(ours - rest).max() > 0.1 * np.abs(engine).max(), "speeds matter"


def test_at_rest_both_ways_are_one():
    """About a motion of next to no speed there are the matrices of the pose at rest."""
    made = []
    for spin in (0.0, 1e-9):
        s, *_ = overhung_disc(spin, False)
        made.append(s.linearize(s.assemble()))
    assert made[1].mass == pytest.approx(made[0].mass)
    assert made[1].stiffness == pytest.approx(made[0].stiffness, abs=1e-4)
    assert made[1].damping == pytest.approx(made[0].damping, abs=1e-4)
