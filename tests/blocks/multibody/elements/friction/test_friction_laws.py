"""Friction from reactions whose coefficient is a law of slip and load, against closed forms."""

from typing import Any

import fmpy
import numpy as np
import pytest

from biella import BlockError, Diagram, DiagramError, simulate
from biella.blocks.multibody import Input, Joint, System, Table, film_friction, stribeck_friction

R, J, MASS, G = 0.02, 0.3, 4.0, 9.80665
LOAD = MASS * G
FILM = {"viscosity": 0.08, "length": 0.03, "relative_clearance": 1e-3}
MODES = [{}, {"mode": "internal"}, {"mode": "internal", "integrator": "implicit"}]


def wheel(coefficient, speed=0.0, smoothing=1e-6, planar=True):
    """A balanced wheel on a pin that carries its weight."""
    s = System("wheel", planar=planar, gravity=(0, -G) if planar else (0, -G, 0))
    spin = speed if planar else (0, 0, speed)
    body = s.body("wheel", mass=MASS, inertia=J, angular_velocity=spin)
    zero = (0, 0) if planar else (0, 0, 0)
    pin = s.revolute("pin", s.ground, body, at=zero, **({} if planar else {"axis": (0, 0, 1)}))
    sizes: dict[str, Any] = {"diameter": 2 * R} if planar else {"diameter": 2 * R, "length": 0.1}
    s.friction("rub", pin, coefficient=coefficient, smoothing_speed=smoothing, **sizes)
    return s


def run(system, outputs, until, *, step=1e-3, **mode):
    d = Diagram("run", step=step)
    d.add(system.block(outputs=list(outputs), **mode), name="p")
    result = simulate(d, until)
    return [result[f"p.{name}"] for name in outputs]


def stribeck(v):
    return 0.08 + (0.2 - 0.08) * np.exp(-((v / 0.05) ** 1.5)) + 0.01 * v


@pytest.mark.parametrize("planar", [True, False])
@pytest.mark.parametrize("speed", [0.5, 2.5, -2.5, 40.0])
def test_stribeck_torque(speed, planar):
    s = wheel(stribeck_friction(0.08, 0.2, 0.05, exponent=1.5, viscous=0.01), speed, planar=planar)
    torque, load, loss, acceleration = (
        values[0]
        for values in run(s, ["rub.torque", "rub.load", "rub.power_loss", "pin.acceleration"], 1e-3)
    )
    expected = -np.sign(speed) * stribeck(R * abs(speed)) * LOAD * R
    assert load == pytest.approx(LOAD, rel=1e-12)
    assert torque == pytest.approx(expected, rel=1e-12)
    assert acceleration == pytest.approx(expected / J, rel=1e-11)
    assert loss == pytest.approx(-expected * speed, rel=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_a_film_with_little_load_damps_in_proportion(mode):
    """S < 1: M = 6 r² B μ ω / φ, ω = ω₀ e^(-6 r² B μ t / φ J), whatever the load."""
    start, mu, b, phi = 4000.0, *FILM.values()
    rate = 6 * R**2 * b * mu / (phi * J)
    assert LOAD * phi**2 / (2 * b * mu * R * start * np.exp(-rate)) < 1
    (speed,) = run(wheel(film_friction(**FILM), start), ["pin.speed"], 1.0, **mode)
    expected = start * np.exp(-rate * np.linspace(0, 1, len(speed)))
    np.testing.assert_allclose(speed, expected, rtol=1e-6 if "integrator" in mode else 1e-10)


@pytest.mark.parametrize("mode", MODES)
def test_a_film_with_much_load_damps_as_the_root(mode):
    """S ≥ 1: M = c √ω with c = 3 r √(2 B μ r N), √ω = √ω₀ - c t / 2 J."""
    start, mu, b, phi = 5.0, *FILM.values()
    assert LOAD * phi**2 / (2 * b * mu * R * start) < 1  # so a thinner film
    film = {**FILM, "relative_clearance": 0.02}
    assert LOAD * 0.02**2 / (2 * b * mu * R * start) > 1
    assert phi == 1e-3
    c = 3 * R * np.sqrt(2 * b * mu * R * LOAD)
    (speed,) = run(wheel(film_friction(**film), start), ["pin.speed"], 1.0, **mode)
    expected = (np.sqrt(start) - c * np.linspace(0, 1, len(speed)) / (2 * J)) ** 2
    np.testing.assert_allclose(speed, expected, rtol=1e-6 if "integrator" in mode else 1e-10)


def test_a_film_without_load_still_drags():
    """Without weight N = 0, and the friction is that of S < 1."""
    s = wheel(film_friction(**FILM), 100.0)
    s.gravity = np.zeros(3)
    torque, load = run(s, ["rub.torque", "rub.load"], 1e-3)
    mu, b, phi = FILM.values()
    assert load[0] < 1e-12
    assert torque[0] == pytest.approx(-6 * R**2 * b * mu * 100.0 / phi, rel=1e-9)


def slider(coefficient):
    """A block pressed on a rail by a rod at an angle: the load depends on the friction."""
    s = System("slider", planar=True, gravity=(0, -G))
    block = s.body("block", mass=2.0, inertia=0.1, velocity=(1.0, 0))
    rail = s.prismatic("rail", s.ground, block, at=(0, 0), axis=(1, 0))
    s.friction("rub", rail, coefficient=coefficient, length=0.2, smoothing_speed=1e-6)
    s.force("push", block.marker("c"), (5.0, -8.0))
    return s


def test_a_law_of_the_load_is_iterated_with_it():
    """N = m g + 8 without tilt, f = 0.1 + 0.02 N: m a = 5 - f N."""
    load, acceleration = run(slider("0.1 + 0.02*N"), ["rub.load", "rail.acceleration"], 1e-3)
    n = 2 * G + 8
    assert load[0] == pytest.approx(n, rel=1e-12)
    assert acceleration[0] == pytest.approx((5 - (0.1 + 0.02 * n) * n) / 2, rel=1e-11)


TURNS = {"main.speed": 8.0}


def loop(coefficient):
    """A slider-crank in which friction loads the other joints."""
    s = System("loop", planar=True)
    crank = s.body("crank", mass=1.0, inertia=0.01, position=(0.05, 0.05))
    rod = s.body("rod", mass=0.7, inertia=0.02, position=(0.3, 0.05))
    piston = s.body("piston", mass=0.4, inertia=0.01, position=(0.5, 0.0))
    main = s.revolute("main", s.ground, crank, at=(0, 0))
    pin = s.revolute("pin", crank, rod, at=(0.1, 0.1))
    s.revolute("wrist", rod, piston, at=(0.5, 0.0))
    slide = s.prismatic("slide", s.ground, piston, at=(0.5, 0.0), axis=(1, 0))
    bearings: list[tuple[Joint, dict[str, Any]]] = [
        (main, {"diameter": 0.04}),
        (pin, {"diameter": 0.03}),
        (slide, {"length": 0.05}),
    ]
    for joint, sizes in bearings:
        s.friction(f"rub {joint.name}", joint, coefficient=coefficient, **sizes)
    s.torque("motor", main, 2.0)
    return s


@pytest.mark.parametrize("mode", MODES)
def test_a_constant_law_is_the_number(mode):
    names = ["main.angle", "main.speed", "pin.force", "rub slide.force", "efficiency"]
    law = run(loop("0.12 + 0*v*N"), names, 0.3, initial=TURNS, **mode)
    number = run(loop(0.12), names, 0.3, initial=TURNS, **mode)
    for a, b in zip(law, number, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7)  # rounding, near a reversal


def test_power_balance_with_a_law():
    """The change of energy is the work of the motor less the heat."""
    s = loop(stribeck_friction(0.05, 0.15, 0.1))
    names = ["kinetic_energy", "weight_energy", "motor.power", "rub main.power_loss",
             "rub pin.power_loss", "rub slide.power_loss"]  # fmt: skip
    kinetic, weight, motor, *loss = run(s, names, 0.3, step=1e-4, initial=TURNS)
    net = motor - sum(loss)
    work = 1e-4 * np.concatenate([[0], np.cumsum(0.5 * (net[1:] + net[:-1]))])
    change = kinetic + weight - kinetic[0] - weight[0]
    assert np.abs(sum(loss)).max() > 1.0
    np.testing.assert_allclose(change, work, atol=2e-5)


def test_its_numbers_are_parameters_and_an_fmu_has_them(tmp_path):
    s = wheel(stribeck_friction(0.08, 0.2, 0.05), 2.5)
    d = Diagram("run", step=1e-3)
    d.add(s.block(outputs=["rub.torque"]), name="p")
    result = simulate(d, 1e-3, parameters={"p.rub.coefficient.speed": 0.025})
    expected = -(0.08 + 0.12 * np.exp(-4.0)) * LOAD * R
    assert result["p.rub.torque"][0] == pytest.approx(expected, rel=1e-12)
    path = s.export_fmu(tmp_path / "wheel.fmu", outputs=["pin.speed"], sources=False)
    outside = fmpy.simulate_fmu(
        str(path),
        stop_time=0.5,
        output_interval=1e-2,
        output=["pin.speed"],
        start_values={"rub.coefficient.speed": 0.025},
    )
    inside = simulate_with(s, {"p.rub.coefficient.speed": 0.025})
    np.testing.assert_allclose(outside["pin.speed"], inside[::10], atol=1e-12)


def simulate_with(system, parameters):
    d = Diagram("run", step=1e-3)
    d.add(system.block(outputs=["pin.speed"]), name="p")
    return simulate(d, 0.5, parameters=parameters)["p.pin.speed"]


def test_a_table_of_slip():
    """f falls from 0.3 at rest to 0.1 at 0.1 m/s."""
    s = wheel(Table([0.0, 0.1], [0.3, 0.1], of="v"), 2.5)
    (torque,) = run(s, ["rub.torque"], 1e-3)
    assert torque[0] == pytest.approx(-0.2 * LOAD * R, rel=1e-12)


@pytest.mark.parametrize(
    ("coefficient", "message"),
    [
        ("0.1*w", "depends on `w`, which is not available.*It may depend on t, v, N"),
        (Input("mu"), "is an Input"),
        ("0.1*rub.load", "`rub.coefficient` depends on itself"),
        (-0.1, "`coefficient`"),
    ],
)
def test_what_cannot_be_a_coefficient(coefficient, message):
    with pytest.raises(DiagramError, match=message):
        wheel(coefficient).block()


def test_a_joint_with_a_law_does_not_stick():
    s = wheel(0.1)
    other = s.body("other", mass=1, inertia=1)
    joint = s.revolute("second", s.ground, other, at=(0, 0))
    with pytest.raises(
        DiagramError, match="has `static` friction, and a coefficient that is a law"
    ):
        s.friction("r", joint, coefficient="0.1 + v", static=0.2, diameter=0.1)


def test_a_coefficient_without_a_finite_value_is_reported():
    with pytest.raises(BlockError, match=r"`rub.coefficient` = `1/\(v - v\)` has no finite value"):
        run(wheel("1/(v - v)", 2.0), ["rub.torque"], 1e-2)


def test_numbers_of_the_laws_are_checked():
    with pytest.raises(DiagramError, match="speed"):
        stribeck_friction(0.1, 0.2, 0.0)
    with pytest.raises(DiagramError, match="viscosity"):
        film_friction(viscosity=-1.0, length=0.1, relative_clearance=1e-3)


@pytest.mark.parametrize("mode", MODES)
def test_a_negative_coefficient_is_refused_where_it_becomes_negative(mode):
    """Below 0 from 0.05 s on it would drive the wheel."""
    s = wheel("0.1 - 2*t", 40.0)
    with pytest.raises(
        BlockError, match=r"coefficient of friction `rub` in joint `pin` is -\S+ at t"
    ):
        run(s, ["rub.torque"], 0.1, **mode)
    assert run(s, ["rub.torque"], 0.04, **mode)[0][-1] < 0.0
