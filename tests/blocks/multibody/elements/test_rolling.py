"""Rolling without slip: a disc in its known equations, a wheel, a sphere on a turntable."""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from biella import Diagram, Fmu, simulate
from biella.blocks.multibody import System
from biella.blocks.multibody.analysis._manifold import make_manifold
from biella.errors import BiellaWarning, DiagramError

G, M, R = 9.80665, 1.3, 0.2
C = 0.5 * M * R * R
A = 0.5 * C
MODES: list[dict[str, Any]] = [
    {},
    {"mode": "internal"},
    {"mode": "internal", "integrator": "implicit", "spectral_radius": 1.0},
]
IDS = ["continuous", "rk4", "implicit"]


def disc(theta: float, nodding: float, turning: float, spin: float, gravity: float = G) -> System:
    """A disc with lean θ, θ̇, Ω and ω₃ in the axes e1 (level), e2 (steepest) and e3 (its own)."""
    s = System("disc", gravity=(0, 0, -gravity))
    sine, cosine = np.sin(theta), np.cos(theta)
    # Rows are e1, e2, e3 in the world, with z = sin θ e2 + cos θ e3: e3 leans towards -y.
    frame = np.array([[1, 0, 0], [0, cosine, sine], [0, -sine, cosine]], dtype=float)
    axes = frame.T
    omega = axes @ [nodding, turning * sine, spin]
    body = s.body(
        "disc", mass=M, inertia=(A, A, C), position=axes @ [0, R, 0], rotation=axes,
        angular_velocity=omega, velocity=np.cross(omega, axes @ [0, R, 0]),
    )  # fmt: skip
    s.rolling("roll", s.ground.marker("plane"), body.marker("hub"), radius=R)
    return s


def known(theta: float, nodding: float, turning: float, spin: float, until: float) -> np.ndarray:
    """Integrate the equations of a rolling disc; returns θ, θ̇, Ω, ω₃, φ, x, y of its center.

    (A + m R²) θ̈ = A Ω² sin θ cos θ - (C + m R²) Ω ω₃ sin θ - m g R cos θ
    A d(Ω sin θ)/dt = C ω₃ θ̇ - A Ω θ̇ cos θ,   (C + m R²) ω̇₃ = m R² Ω θ̇ sin θ
    """

    def rates(_, y):
        th, n, w, w3, phi, _, _ = y
        s, c = np.sin(th), np.cos(th)
        n_t = (A * w**2 * s * c - (C + M * R**2) * w * w3 * s - M * G * R * c) / (A + M * R**2)
        w_t = ((C * w3 * n - A * w * n * c) / A - w * c * n) / s
        w3_t = M * R**2 * w * n * s / (C + M * R**2)
        e1 = np.array([np.cos(phi), np.sin(phi)])
        e3 = np.array([s * np.sin(phi), -s * np.cos(phi)])
        v = -w3 * R * e1 + n * R * e3
        return [n, n_t, w_t, w3_t, w, *v]

    start = [theta, nodding, turning, spin, 0.0, 0.0, R * np.cos(theta)]
    return solve_ivp(rates, (0, until), start, rtol=1e-12, atol=1e-12).y[:, -1]


def run(s: System, outputs: list[str], until: float, **options):
    d = Diagram("run", step=1e-3)
    d.add(s.block(outputs=outputs, **options), name="p")
    return simulate(d, until)


@pytest.mark.parametrize("options", MODES, ids=IDS)
def test_disc_moves_by_its_known_equations_and_keeps_its_energy(options) -> None:
    """RK4: errors of about (ω h)⁴ = (7e-3)⁴ a second; generalized-α: (ω h)² / 12 a second."""
    start = (1.2, 0.3, 0.8, -6.0)
    names = ["disc.position", "disc.velocity", "kinetic_energy", "potential_energy", "closure"]
    r = run(disc(*start), [*names, "closure_rate"], 2.0, **options)
    at = known(*start, 2.0)
    implicit = "integrator" in options
    found = r["p.disc.position"][-1]
    assert found[:2] == pytest.approx(at[5:], abs=5e-4 if implicit else 1e-8)
    assert found[2] == pytest.approx(R * np.sin(at[0]), abs=5e-4 if implicit else 1e-8)
    energy = r["p.kinetic_energy"] + r["p.potential_energy"]
    assert np.ptp(energy) < (1e-4 if implicit else 1e-8) * energy[0]
    assert r["p.closure"].max() < 1e-13
    assert r["p.closure_rate"].max() < 1e-12
    # Rolling moves it: a holonomic row would hold its place.
    assert np.ptp(r["p.disc.position"][:, 0]) > 0.5


def test_implicit_steps_are_of_second_order() -> None:
    """Half the step, a quarter of the error: so it is if the end of a step does not slip."""
    at = known(1.2, 0.3, 0.8, -6.0, 2.0)
    errors = []
    for step in (4e-3, 2e-3, 1e-3):
        d = Diagram("run", step=step)
        plant = disc(1.2, 0.3, 0.8, -6.0).block(outputs=["disc.position"], **MODES[2])
        d.add(plant, name="p")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BiellaWarning)  # of the estimated error, for 4 ms
            p = simulate(d, 2.0)["p.disc.position"]
        errors.append(np.abs(p[-1, :2] - at[5:]).max())
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.1)


def test_steady_turning_is_a_circle_with_the_weight_as_normal_force() -> None:
    """With θ and Ω given, ω₃ = (A Ω² cos θ sin θ - m g R cos θ) / ((C + m R²) Ω sin θ)."""
    theta, turning = 1.1, 2.0
    s, c = np.sin(theta), np.cos(theta)
    spin = (A * turning**2 * s * c - M * G * R * c) / ((C + M * R * R) * turning * s)
    names = ["disc.position", "roll.force", "roll_x.force", "roll_y.force"]
    r = run(disc(theta, 0.0, turning, spin), names, np.pi)
    p = r["p.disc.position"]
    assert p[:, 2] == pytest.approx(np.full(len(p), R * s), abs=1e-8)
    # One turn takes 2 π / Ω = π s; the center is on a circle of radius ω₃ R / Ω.
    radius = abs(spin * R / turning)
    middle = (p[0] + p[1571]) / 2
    assert np.linalg.norm(p[:, :2] - middle[:2], axis=1) == pytest.approx(radius, abs=2e-3)
    assert r["p.roll.force"] == pytest.approx(np.full(len(p), M * G), rel=1e-7)
    side = np.hypot(r["p.roll_x.force"], r["p.roll_y.force"])
    assert side == pytest.approx(np.full(len(p), M * turning**2 * radius), rel=1e-7)


def test_wheel_rolls_down_a_line() -> None:
    """A cylinder on a slope: a = g sin α / (1 + J / m R²), and its friction J a / R²."""
    s = System("slope", planar=True)
    slope, inertia = 0.3, 0.01
    normal = np.array([-np.sin(slope), np.cos(slope)])
    wheel = s.body("wheel", mass=M, inertia=inertia, position=R * normal)
    line = s.ground.marker("line", rotation=slope)
    s.rolling("roll", line, wheel.marker("hub"), radius=R)
    r = run(s, ["wheel.position", "wheel.angular_velocity", "roll.force", "roll_x.force"], 1.0)
    a = G * np.sin(slope) / (1 + inertia / (M * R * R))
    moved = r["p.wheel.position"][-1, :2] - R * normal
    assert moved == pytest.approx([-0.5 * a * np.cos(slope), -0.5 * a * np.sin(slope)], abs=1e-10)
    assert r["p.wheel.angular_velocity"][-1, 2] == pytest.approx(a / R, rel=1e-10)
    assert r["p.roll.force"][-1] == pytest.approx(M * G * np.cos(slope), rel=1e-8)
    assert r["p.roll_x.force"][-1] == pytest.approx(inertia * a / R**2, rel=1e-8)


@pytest.mark.parametrize("options", MODES, ids=IDS)
def test_sphere_on_a_turntable_runs_in_a_circle(options) -> None:
    """Its center turns at 2/7 of the speed of the table: 1 / (1 + m R² / J) with J = 2/5 m R²."""
    s = System("turntable")
    table = s.body("table", mass=5.0, inertia=(1.0, 1.0, 2.0), angular_velocity=(0, 0, 3.5))
    hinge = s.revolute("hinge", s.ground, table, at=(0, 0, 0), axis=(0, 0, 1))
    s.driver("motor", hinge, "3.5*t")
    start = np.array([0.5, 0.0, R])
    # At the start it spins so that the center is at rest over a table that moves: ω × R z = -v.
    v = np.array([0.2, 0.1, 0.0])
    slip = np.cross([0, 0, 3.5], start) - v
    omega = np.cross(slip, [0, 0, 1]) / R
    ball = s.body(
        "ball", mass=M, inertia=0.4 * M * R * R, position=start, velocity=v, angular_velocity=omega,
    )  # fmt: skip
    table_marker = table.marker("top")
    s.rolling("roll", table_marker, ball.marker("center"), radius=R, shape="sphere")
    r = run(s, ["ball.position", "roll.force"], 2.0, **options)
    p = r["p.ball.position"]
    rate = 3.5 * 2 / 7
    # c = x - (v rotated by a quarter turn) / rate: v = rate × (x - c).
    center = start[:2] + np.array([-v[1], v[0]]) / rate
    turned = rate * 2.0
    rotation = np.array([[np.cos(turned), -np.sin(turned)], [np.sin(turned), np.cos(turned)]])
    wanted = center + rotation @ (start[:2] - center)
    assert p[-1, :2] == pytest.approx(wanted, abs=1e-4 if "integrator" in options else 1e-8)
    assert p[:, 2] == pytest.approx(np.full(len(p), R), abs=1e-12)


def test_rolling_on_a_body_keeps_momentum_and_energy() -> None:
    """A disc on a plate that is free to slide: no horizontal force acts from outside."""
    s = System("plate")
    plate = s.body("plate", mass=2.0, inertia=(0.1, 0.1, 0.2))
    s.planar_joint("floor", s.ground, plate, at=(0, 0, 0), axis=(0, 0, 1))
    body = s.body(
        "disc", mass=M, inertia=(A, A, C), position=(0.1, 0.2, R), angular_velocity=(0, 8.0, 0.5),
        velocity=(8.0 * R, 0, 0), rotation=(np.sqrt(0.5), np.sqrt(0.5), 0, 0),
    )  # fmt: skip
    s.rolling("roll", plate.marker("top"), body.marker("hub"), radius=R)
    names = ["plate.velocity", "disc.velocity", "kinetic_energy", "potential_energy"]
    r = run(s, names, 2.0)
    momentum = 2.0 * r["p.plate.velocity"] + M * r["p.disc.velocity"]
    assert momentum[:, :2] == pytest.approx(np.tile(momentum[0, :2], (len(momentum), 1)), abs=1e-9)
    energy = r["p.kinetic_energy"] + r["p.potential_energy"]
    assert np.ptp(energy) < 1e-8 * energy[0]
    assert np.ptp(r["p.plate.velocity"][:, 1]) > 1e-3


def test_reference_equations_have_the_rows_of_the_engine() -> None:
    """Engine states satisfy Φ_u u̇ = γ of numpy; its Jacobian is that of differences."""
    s = disc(1.2, 0.3, 0.8, -6.0)
    names = [
        f"disc.{what}"
        for what in ("position", "rotation", "velocity", "angular_velocity", "acceleration",
                     "angular_acceleration")
    ]  # fmt: skip
    r = run(s, names, 0.5)
    model = make_manifold(s)
    for k in (0, 250, 499):
        p, e, v, w, a, alpha = (r[f"p.{name}"][k] for name in names)
        q, u, u_t = np.concatenate([p, e]), np.concatenate([v, w]), np.concatenate([a, alpha])
        at = model.equations(k * 1e-3, q, u)
        assert np.abs(at.phi).max() < 1e-12
        assert at.jacobian @ u == pytest.approx(np.zeros(3), abs=1e-11)
        assert at.jacobian @ u_t == pytest.approx(at.gamma, abs=1e-9)
        h = 1e-5
        ahead, behind = (model.equations(0.0, model.move(q, x * u), u) for x in (h, -h))
        change = (ahead.jacobian @ u - behind.jacobian @ u) / (2 * h)
        assert -at.gamma == pytest.approx(change, abs=1e-6)
        # The rate of the row that touches is its own difference.
        assert (ahead.phi[0] - behind.phi[0]) / (2 * h) == pytest.approx(0.0, abs=1e-8)


def test_fmu_rolls_as_the_diagram(tmp_path) -> None:
    """Also angles, tilts and curves are in the same plan: positions, a sequence, and a force."""
    names = ["disc.position", "disc.angles_ZXZ", "roll.force"]
    s = disc(1.2, 0.3, 0.8, -6.0)
    s.export_fmu(tmp_path / "disc.fmu", outputs=names, sources=False)
    d = Diagram("import", step=1e-3)
    d.add(Fmu(tmp_path / "disc.fmu"), name="p")
    outside, inside = simulate(d, 0.3), run(s, names, 0.3)
    for name in names:
        assert outside[f"p.{name}"] == pytest.approx(inside[f"p.{name}"], abs=1e-12)


def test_small_motions_of_a_rolling_cylinder_in_a_bowl_of_springs() -> None:
    """A wheel on a line with a spring at its center: ω² = k / (m + J / R²)."""
    s = System("spring", planar=True)
    wheel = s.body("wheel", mass=M, inertia=0.02, position=(0.0, R))
    hub = wheel.marker("hub")
    s.rolling("roll", s.ground.marker("line"), hub, radius=R)
    wall = s.ground.marker("wall", (-1.0, R))
    s.spring("spring", wall, hub, stiffness=80.0, free_length=1.0)
    rest = s.equilibrium()
    (mode,) = [mode for mode in s.modes(rest) if mode.frequency > 1e-6]
    omega = (80.0 / (M + 0.02 / R**2)) ** 0.5
    assert mode.frequency == pytest.approx(omega / (2 * np.pi), rel=1e-6)


def test_report_counts_rows_of_velocities() -> None:
    s = disc(1.2, 0.3, 0.8, -6.0)
    found = s.report()
    assert (found.freedom, found.redundant) == (3, 0)


def test_a_disc_that_does_not_touch_is_put_down_where_it_stands() -> None:
    """Assembly moves it down and not sideways, and its motion then rolls."""
    s2 = System("above")
    (upright,) = disc(np.pi / 2, 0.0, 0.0, 0.0).bodies
    axes = upright.rotation
    body = s2.body("disc", mass=M, inertia=(A, A, C), position=(0.3, 0.4, R + 0.05), rotation=axes)
    s2.rolling("roll", s2.ground.marker("plane"), body.marker("hub"), radius=R)
    d = Diagram("run", step=1e-3)
    d.add(s2.block(outputs=["disc.position"]), name="p")
    with pytest.warns(match="is moved by 0.05 m"):
        p = simulate(d, 0.01)["p.disc.position"]
    assert p[0] == pytest.approx([0.3, 0.4, R], abs=1e-12)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"radius": 0.0}, "radius"),
        ({"radius": R, "shape": "cube"}, "'disc' or a 'sphere'"),
        ({"radius": R}, "lies flat on its plane"),
    ],
)
def test_bad_input(arguments, message) -> None:
    s = System("bad")
    body = s.body("disc", mass=M, inertia=(A, A, C), position=(0, 0, R))
    with pytest.raises(DiagramError, match=message):
        s.rolling("roll", s.ground.marker("plane"), body.marker("hub"), **arguments)
    assert list(s.parts) == ["ground", "disc"]


def test_power_of_a_plane_that_a_law_moves_is_the_change_of_energy() -> None:
    s = System("shaker")
    top = s.ground.marker("top", motion={"x": "0.05*(1 - cos(9*t))", "z": "0.02*(1 - cos(7*t))"})
    body = s.body("ball", mass=M, inertia=0.4 * M * R * R, position=(0, 0, R))
    s.rolling("roll", top, body.marker("hub"), radius=R, shape="sphere")
    names = ["kinetic_energy", "potential_energy", "roll.power", "roll_x.power", "roll_y.power"]
    r = run(s, names, 1.0)
    energy = r["p.kinetic_energy"] + r["p.potential_energy"]
    power = sum(r[f"p.{name}"] for name in names[2:])
    simpson = (power[:-2:2] + 4 * power[1:-1:2] + power[2::2]).sum() * 1e-3 / 3
    assert np.abs(r["p.roll_x.power"]).max() > 1e-2
    assert energy[-1] - energy[0] == pytest.approx(simpson, abs=1e-8)


def test_assembly_moves_a_wheel_without_turning_it() -> None:
    """Rows of velocities do not bind the way from the given pose to the initial one."""
    s = System("shifted", planar=True)
    wheel = s.body("wheel", mass=M, inertia=0.02, position=(0.3, R))
    s.rolling("roll", s.ground.marker("line"), wheel.marker("hub"), radius=R)
    s.constraint("hold", "wheel.x - 0.5")
    d = Diagram("run", step=1e-3)
    d.add(s.block(outputs=["wheel.position", "wheel.angle"]), name="p")
    r = simulate(d, 0.01)
    assert r["p.wheel.position"][0] == pytest.approx([0.5, R, 0.0], abs=1e-12)
    assert r["p.wheel.angle"][0] == pytest.approx(0.0, abs=1e-12)
