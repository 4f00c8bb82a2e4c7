"""Friction in spherical joints: closed forms, Newton–Euler in numpy, balances, loops, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.optimize import root

from biella import Diagram, DiagramError, System, linearize
from biella.blocks.multibody import film_friction, stribeck_friction
from biella.blocks.multibody.plant._tree import grow_tree

from .test_joint_friction import run, see

pytestmark = pytest.mark.engine

G = 9.80665
SHARP = 1e-9
TURN = np.array([
    [0.36, 0.48, -0.8],
    [-0.8, 0.6, 0.0],
    [0.48, 0.64, 0.6],
])  # fmt: skip
MODES: dict[str, dict[str, Any]] = {
    "continuous": {},
    "internal": {"mode": "internal"},
    "implicit": {"mode": "internal", "integrator": "implicit", "substeps": 2},
}


def top(omega, *, turn=None, mass=2.0, inertia=0.01):
    """A ball on a ball joint at its center."""
    turn = np.eye(3) if turn is None else turn
    s = System("top", tuple(turn @ (0.0, 0.0, -G)))
    ball = s.body("ball", mass=mass, inertia=inertia, angular_velocity=turn @ omega)
    return s, s.spherical("socket", s.ground, ball, at=(0, 0, 0))


@pytest.mark.parametrize("options", list(MODES.values()), ids=list(MODES))
@pytest.mark.parametrize("turn", [None, TURN], ids=["straight", "turned"])
def test_a_spinning_ball_stops_when_it_should(turn, options):
    """|ω| falls by f m g R / J, its direction stays; at rest after ω₀ J / (f m g R)."""
    f, radius, omega = 0.1, 0.02, np.array([3.0, -4.0, 12.0])
    s, socket = top(omega, turn=turn)
    s.friction("rub", socket, coefficient=f, diameter=2 * radius, smoothing_speed=2e-3)
    slowing = f * 2.0 * G * radius / 0.01
    stops = 13.0 / slowing
    names = ["ball.angular_velocity", "rub.torque", "rub.load", "rub.power_loss"]
    t, (found, torque, load, loss) = run(s, 1.1 * stops, names, step=stops / 200, **options)
    direction = (np.eye(3) if turn is None else turn) @ omega / 13.0
    speed = 13.0 - slowing * t
    # At 0.9 stops the slip is 26 mm/s, where 1 - tanh(13) is 1e-11; implicit steps are iterated.
    slides = t < 0.9 * stops
    near = 1e-7 if "integrator" in options else 1e-10
    np.testing.assert_allclose(
        found[slides], speed[slides, None] * direction, rtol=0, atol=13.0 * near
    )
    brake = f * 2.0 * G * radius
    np.testing.assert_allclose(
        torque[slides], np.tile(-brake * direction, (slides.sum(), 1)), rtol=0, atol=1e-6 * brake
    )
    np.testing.assert_allclose(load, 2.0 * G, rtol=1e-12)
    np.testing.assert_allclose(loss[slides], brake * speed[slides], rtol=1e-6)
    # Below the smoothing speed, 0.1 rad/s, it decays with f m g R² / (J w) = 39 1/s.
    assert np.linalg.norm(found[t > 1.05 * stops], axis=1).max() < 1e-2


@pytest.mark.parametrize("options", list(MODES.values()), ids=list(MODES))
def test_a_given_torque_stops_a_ball_too(options):
    """J ω' = -viscous ω - coulomb: ω = (ω₀ + c/b) exp(-b t / J) - c/b."""
    viscous, coulomb = 0.004, 0.03
    s, socket = top(np.array([6.0, 0.0, -8.0]))
    s.friction("rub", socket, viscous=viscous, coulomb=coulomb, smoothing_speed=1e-3)
    names = ["ball.angular_velocity", "rub.torque", "rub.power_loss", "power_loss"]
    t, (found, torque, loss, lost) = run(s, 1.0, names, step=5e-3, **options)
    speed = (10.0 + coulomb / viscous) * np.exp(-viscous * t / 0.01) - coulomb / viscous
    assert speed[-1] > 1.0
    # The implicit rule of order 2 has an error of (h b / J)² / 12 or so.
    near = 1e-6 if "integrator" in options else 1e-10
    direction = np.array([0.6, 0.0, -0.8])
    np.testing.assert_allclose(found, speed[:, None] * direction, rtol=0, atol=10.0 * near)
    brake = viscous * np.linalg.norm(found, axis=1) + coulomb
    np.testing.assert_allclose(torque, -brake[:, None] * direction, atol=1e-12)
    np.testing.assert_allclose(loss, brake * np.linalg.norm(found, axis=1), rtol=1e-10)
    np.testing.assert_array_equal(loss, lost)


OMEGA, COM = np.array([2.0, -1.0, 3.0]), np.array([0.1, 0.3, -0.05])
INERTIA = np.array([[0.03, 0.002, 0.0], [0.002, 0.05, -0.001], [0.0, -0.001, 0.04]])


def heavy(turn=None, *, reverse=False, cut=False, **friction):
    """A body that hangs at a point and spins; `cut`: by a joint that closes a loop."""
    turn = np.eye(3) if turn is None else turn
    s = System("heavy", tuple(turn @ (0.0, 0.4, -G)))
    body = s.body("body", mass=2.0, inertia=INERTIA, com=COM, rotation=turn,
                  angular_velocity=turn @ OMEGA)  # fmt: skip
    at = (s.ground.marker("p", motion={"x": "0*t"} if cut else None), body.marker("p"))
    ball = s.spherical("ball", *(at[::-1] if reverse else at))
    assert (ball in grow_tree(s).cuts) == cut
    s.friction("rub", ball, **friction)
    return s


def newton_euler(coefficient, radius, w=SHARP):
    """Return ω', N and the torque: moments about the joint, and N = |m (a - g)|."""
    g, m = np.array([0.0, 0.4, -G]), 2.0
    about = INERTIA + m * (COM @ COM * np.eye(3) - np.outer(COM, COM))
    slip = radius * np.linalg.norm(OMEGA)
    direction = OMEGA / np.linalg.norm(OMEGA)

    def friction(alpha):
        a = np.cross(alpha, COM) + np.cross(OMEGA, np.cross(OMEGA, COM))
        load = np.linalg.norm(m * (a - g))
        return load, -coefficient(slip, load) * load * radius * np.tanh(slip / w) * direction

    def equations(alpha):
        return (
            about @ alpha + np.cross(OMEGA, about @ OMEGA) - m * np.cross(COM, g)
            - friction(alpha)[1]
        )  # fmt: skip

    found = root(equations, np.zeros(3), tol=1e-14)
    assert np.abs(equations(found.x)).max() < 1e-11
    return found.x, *friction(found.x)


LAWS = {
    "number": (0.3, lambda v, N: 0.3),
    "Stribeck": (
        stribeck_friction(0.1, 0.2, 0.05, viscous=0.1),
        lambda v, N: 0.1 + 0.1 * np.exp(-((v / 0.05) ** 2)) + 0.1 * v,
    ),
    "film": (
        film_friction(viscosity=0.1, length=0.03, relative_clearance=2e-3),
        lambda v, N: (
            6 * 0.03 * 0.1 * v / (N * 2e-3)
            if 2 * 0.03 * 0.1 * v > N * 4e-6
            else 3 * np.sqrt(2 * 0.03 * 0.1 * v / N)
        ),
    ),
}


@pytest.mark.parametrize("law", list(LAWS))
@pytest.mark.parametrize("turn", [None, TURN], ids=["straight", "turned"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("cut", [False, True])
def test_a_heavy_body_against_newton_and_euler(law, turn, reverse, cut):
    given, value = LAWS[law]
    s = heavy(turn, reverse=reverse, cut=cut, coefficient=given, diameter=0.1,
              smoothing_speed=SHARP)  # fmt: skip
    alpha, load, torque = newton_euler(value, 0.05)
    turned = np.eye(3) if turn is None else turn
    found = see(s, ["body.angular_acceleration", "rub.load", "rub.torque", "rub.power_loss"])
    sign = -1.0 if reverse else 1.0  # the second body of the joint is the ground
    near = 1e-9  # of the closure; in a tree and with numbers 1e-13
    np.testing.assert_allclose(found[0], turned @ alpha, rtol=near, atol=near * 10)
    assert found[1] == pytest.approx(load, rel=near)
    np.testing.assert_allclose(found[2], sign * turned @ torque, rtol=near, atol=near)
    assert found[3] == pytest.approx(-float(torque @ OMEGA), rel=near)


@pytest.mark.parametrize("kind", ["coefficient", "given"])
@pytest.mark.parametrize("options", list(MODES.values()), ids=list(MODES))
def test_a_spherical_pendulum_loses_what_friction_takes(kind, options):
    """Energy and ∫ power_loss over 0.4 s; Simpson's rule with 1 ms is exact to 1e-9 or so."""
    given: dict[str, Any] = (
        {"coefficient": 0.3, "diameter": 0.06, "smoothing_speed": 0.02}
        if kind == "coefficient"
        else {"coulomb": 0.2, "viscous": 0.05, "smoothing_speed": 0.5}
    )
    s = heavy(**given)
    names = ["kinetic_energy", "potential_energy", "power_loss", "rub.torque", "rub.power",
             "body.angular_velocity", "rub.power_loss"]  # fmt: skip
    t, (kinetic, potential, loss, torque, power, omega, own) = run(
        s, 0.4, names, step=1e-3, **options
    )
    np.testing.assert_allclose(power, (torque * omega).sum(axis=1), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(own, -power, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(own, loss)
    energy = kinetic + potential
    lost = simpson(loss, x=t)
    assert lost > 0.1
    # The implicit rule loses energy of its own, of order h².
    near = 1e-3 if "integrator" in options else 1e-6
    assert energy[0] - energy[-1] == pytest.approx(lost, rel=near)


def four_bar_in_space(cut):
    """Two cranks and a rod with ball joints, of which the first is cut or another one."""
    s = System("four-bar", (0, 0, -G))
    a = s.body("a", mass=1.0, inertia=0.01, position=(0.1, 0, 0))
    b = s.body("b", mass=1.0, inertia=0.02, position=(0.2, 0.3, 0.15))
    c = s.body("c", mass=1.0, inertia=0.01, position=(0.2, 0.6, 0.3))
    s.driver("drive", s.revolute("main", s.ground, a, at=(0, 0, 0), axis=(0, 0, 1)), "4*t")
    s.revolute("end", s.ground, c, at=(0.0, 0.6, 0.0), axis=(1, 0.1, 0.2))
    p = (a.marker("p", (0.1, 0, 0), motion={"x": "0*t"} if cut else None),
         b.marker("p", (0.0, -0.3, -0.15)))  # fmt: skip
    first = s.spherical("first", *p)
    second = s.universal("second", b, c, at=(0.2, 0.6, 0.3), axis=[(1, 0, 0), (0, 0, 1)])
    assert (first in grow_tree(s).cuts) == cut
    s.friction("rub", first, coefficient=0.2, diameter=0.1)
    s.friction("grip", second, coordinate=0, coefficient=0.2, diameter=0.05, length=0.1)
    s.friction("grasp", second, coordinate=1, coefficient=0.1, diameter=0.04, length=0.08)
    return s


def test_a_loop_rubs_alike_wherever_it_is_cut_and_in_kinematics():
    names = ["drive.effort", "rub.torque", "rub.load", "grip.load", "grasp.torque", "end.torque"]
    _, tree = run(four_bar_in_space(False), 0.02, names, step=1e-3)
    _, closure = run(four_bar_in_space(True), 0.02, names, step=1e-3)
    for name, x, y in zip(names, tree, closure, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-8 * np.abs(y).max(), err_msg=name)
    times = [0.0, 0.01, 0.02]
    motion = four_bar_in_space(False).kinematics(times)
    np.testing.assert_allclose(motion["drive.effort"], tree[0][::10], rtol=1e-7)
    free = four_bar_in_space(False)
    del free._parts["drive"]
    again = free.inverse_dynamics({"main": "4*t"}, times)
    np.testing.assert_allclose(again.efforts["main"], motion["drive.effort"], rtol=1e-10)
    without = four_bar_in_space(False)
    for name in ("rub", "grip", "grasp"):
        del without._parts[name]
    assert (
        np.abs(without.kinematics(times)["drive.effort"] / motion["drive.effort"] - 1).min() > 0.01
    )


def test_linear_models_and_equilibria_have_the_given_torque():
    """A ball at rest: ω' = -(viscous + coulomb / smoothing_speed) / J ω, about every axis."""
    s, socket = top(np.zeros(3))
    s.friction("rub", socket, viscous=0.004, coulomb=0.03, smoothing_speed=0.5)
    assert s.equilibrium() is not None
    slopes = np.linalg.eigvals(s.linearize().state_matrix)
    np.testing.assert_allclose(np.sort(slopes.real)[:3], -(0.004 + 0.03 / 0.5) / 0.01, rtol=1e-6)


@pytest.mark.parametrize("turning", [0.0, 2.0])
def test_a_diagram_is_linearized_with_both_laws(turning):
    """About z, while it turns: the slope of f N R tanh(R ω / w) is f N R² / w · sech²."""
    s, socket = top(np.array([0.0, 0.0, turning]))
    s.friction("rub", socket, coefficient=0.1, diameter=0.04, smoothing_speed=0.05)
    d = Diagram("top", step=1e-3)
    d.add(s.block([], ["ball.angular_velocity"]), name="plant")
    model = linearize(d, inputs=[], outputs=["plant.ball.angular_velocity"])
    slope = 0.1 * 2.0 * G * 0.02**2 / 0.05 / 0.01 / np.cosh(0.02 * turning / 0.05) ** 2
    eigenvalues = np.linalg.eigvals(model.A)
    assert np.abs(eigenvalues + slope).min() < 1e-5 * slope


def test_an_exported_ball_rubs_alike(tmp_path):
    fmpy = pytest.importorskip("fmpy")
    s = heavy(coefficient=0.3, diameter=0.06, smoothing_speed=0.02)
    body = s["body"]
    other = s.body("other", mass=0.5, inertia=0.002, position=(0.0, 0.0, -0.2),
                   velocity=np.cross(OMEGA, (0, 0, -0.2)), angular_velocity=OMEGA)  # fmt: skip
    u = s.universal("u", body, other, at=(0.0, 0.0, -0.1), axis=[(1, 0, 0), (0, 1, 0)])
    s.friction("pin", u, coordinate=0, coefficient=0.2, diameter=0.02, length=0.05)
    given = s.body("given", mass=1.0, inertia=0.01, angular_velocity=(1, 2, 3))
    s.friction("brake", s.spherical("b", s.ground, given, at=(0, 0, 0)), coulomb=0.02)
    names = ["rub.load", "rub.power_loss", "pin.torque", "brake.power_loss"]
    path = s.export_fmu(tmp_path / "ball.fmu", outputs=names, step=1e-3)
    outside = fmpy.simulate_fmu(
        str(path), stop_time=0.1, output_interval=0.01, output=names,
        start_values={"rub.coefficient": 0.1},
    )  # fmt: skip
    _, inside = run(s, 0.1, names, step=1e-3, parameters={"plant.rub.coefficient": 0.1})
    for name, value in zip(names, inside, strict=True):
        np.testing.assert_allclose(outside[name], value[::10], rtol=1e-12, err_msg=name)


def test_what_spherical_joints_refuse():
    s, socket = top(np.zeros(3))
    for given in ({"static": 0.2}, {"smoothing_speed": 0}):
        wanted = r"`rub` has .*in `socket`, a spherical joint.*Take a smoothing_speed above 0"
        with pytest.raises(DiagramError, match=wanted):
            s.friction("rub", socket, coefficient=0.1, diameter=0.1, **given)
        with pytest.raises(DiagramError, match=wanted):
            s.friction("rub", socket, coulomb=0.1, **given)
    with pytest.raises(DiagramError, match="takes no `length`: friction in a spherical joint"):
        s.friction("rub", socket, coefficient=0.1, diameter=0.1, length=0.1)
    with pytest.raises(DiagramError, match="needs `diameter`"):
        s.friction("rub", socket, coefficient=0.1)
    with pytest.raises(
        DiagramError, match="a spherical joint, and acts on all that it leaves free"
    ):
        s.friction("rub", socket, coefficient=0.1, diameter=0.1, coordinate=0)
    with pytest.raises(DiagramError, match=r"cannot act on coordinate 0.*: none"):
        s.friction("rub", socket, coulomb=0.1, coordinate=0)
    s.friction("rub", socket, coefficient=0.1, diameter=0.1)
    with pytest.raises(DiagramError, match="`rub` is friction from the reaction of `socket`"):
        s.friction("again", socket, coefficient=0.1, diameter=0.1)
    s.friction("given", socket, viscous=0.1)  # beside it
    turning, socket = top(np.array([0.0, 0.0, 1.0]))
    turning.friction("rub", socket, coefficient=0.1, diameter=0.1)
    with pytest.raises(DiagramError, match="friction `rub` follows from the reaction of `socket`"):
        turning.linearize()
