"""Points on curves through given points."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from biella import Diagram, simulate
from biella.blocks.multibody import System
from biella.blocks.multibody.analysis._manifold import make_manifold
from biella.errors import BiellaError, DiagramError
from biella.scheduler.compile.plan._plan import read_arrays
from biella.scheduler.engine._engine import Instance

from .plan_cells import with_cell

G = 9.80665
MODES = [
    {},
    {"mode": "internal"},
    {"mode": "internal", "integrator": "implicit", "spectral_radius": 1.0},
]
IDS = ["continuous", "rk4", "implicit"]


def run(s: System, outputs: list[str], until: float, **options):
    d = Diagram("run", step=1e-3)
    d.add(s.block(outputs=outputs, **options), name="p")
    return simulate(d, until)


@pytest.mark.parametrize("options", MODES, ids=IDS)
def test_bead_on_a_table_of_a_parabola(options) -> None:
    """A spline over chords of h = 0.02 m is off by 5 h⁴ / 384 times C'''' ≈ 3 κ³ = 24: 5e-8 m."""
    s = System("bead", planar=True)
    bead = s.body("bead", mass=2.0, inertia=0.01, position=(0.5, 0.25))
    x = np.linspace(-1, 1, 101)
    points = np.column_stack([x, x * x])
    s.on_curve("wire", s.ground.marker("frame"), bead.marker("eye"), points=points)
    r = run(
        s, ["bead.position", "kinetic_energy", "potential_energy", "wire.force"], 1.0, **options
    )

    def rates(_, y):
        k = 4 * y[0]
        return [y[1], -(k * y[1] ** 2 + 2 * G * y[0]) / (1 + k * y[0])]

    at = solve_ivp(rates, (0, 1), [0.5, 0.0], rtol=1e-12, atol=1e-12).y[:, -1]
    implicit = "integrator" in options
    p = r["p.bead.position"]
    assert p[-1, :2] == pytest.approx([at[0], at[0] ** 2], abs=2e-5 if implicit else 1e-6)
    energy = r["p.kinetic_energy"] + r["p.potential_energy"]
    assert np.ptp(energy) < (1e-3 if implicit else 1e-7)
    assert np.abs(p[:, 1] - p[:, 0] ** 2).max() < 1e-7
    # The normal has a length near 1: at the bottom the force is m (g + κ v²), κ = 2, v² = g / 2.
    low = int(np.argmin(np.abs(p[:, 0])))
    assert r["p.wire.force"][low] == pytest.approx(2.0 * (G + 2 * 2 * G * 0.25), rel=1e-2)


def test_bead_runs_round_a_closed_curve_on_a_body_that_turns() -> None:
    """A circle fixed to a turning body: the bead keeps its angular momentum without weight."""
    s = System("hoop", planar=True, gravity=(0, 0))
    hoop = s.body("hoop", mass=1.0, inertia=0.5, angular_velocity=2.0)
    s.revolute("axle", s.ground, hoop, at=(0, 0))
    bead = s.body("bead", mass=0.5, inertia=0.01, position=(0.4, 0.0), velocity=(0.0, -1.6))
    angles = np.linspace(0, 2 * np.pi, 61)[:-1]
    circle = 0.4 * np.column_stack([np.cos(angles), np.sin(angles)])
    s.on_curve("ring", hoop.marker("rim"), bead.marker("eye"), points=circle, closed=True)
    r = run(s, ["bead.position", "axle.angle", "kinetic_energy"], 4.0)
    p = r["p.bead.position"]
    t = np.arange(len(p)) * 1e-3
    # The hoop is a circle about the axle: neither feels the other's angle.
    assert r["p.axle.angle"] == pytest.approx(2.0 * t, abs=1e-4)
    turned = np.unwrap(np.arctan2(p[:, 1], p[:, 0]))
    assert turned == pytest.approx(-4.0 * t, abs=1e-4)
    assert np.hypot(p[:, 0], p[:, 1]) == pytest.approx(0.4, abs=1e-6)
    assert np.ptp(r["p.kinetic_energy"]) < 1e-8


def helix() -> System:
    s = System("helix")
    bead = s.body("bead", mass=1.5, inertia=0.01, position=(0.3, 0.0, 0.0))
    u = np.linspace(-6, 3, 400)
    points = np.column_stack([0.3 * np.cos(u), 0.3 * np.sin(u), 0.2 * u])
    s.on_curve("wire", s.ground.marker("frame"), bead.marker("eye"), points=points)
    return s


@pytest.mark.parametrize("options", MODES, ids=IDS)
def test_bead_slides_down_a_helix(options) -> None:
    """(R² + c²) ü = -g c, with z = c u: constant acceleration."""
    r = run(helix(), ["bead.position"], 0.5, **options)
    u = -0.5 * G * 0.2 / (0.3**2 + 0.2**2) * 0.5**2
    wanted = [0.3 * np.cos(u), 0.3 * np.sin(u), 0.2 * u]
    tolerance = 2e-5 if "integrator" in options else 1e-7
    assert r["p.bead.position"][-1] == pytest.approx(wanted, abs=tolerance)


def test_derivatives_are_those_of_differences_off_the_curve_as_well() -> None:
    model = make_manifold(helix())
    generator = np.random.default_rng(4)
    h = 1e-4
    for _ in range(5):
        q = model.move(model.q0, 0.02 * generator.normal(size=6))
        u = generator.normal(size=6)
        e = model.equations(0.0, q, u)
        ahead, behind = (model.closure(0.0, model.move(q, x * u))[0] for x in (h, -h))
        assert e.jacobian @ u == pytest.approx((ahead - behind) / (2 * h), abs=1e-6)
        assert -e.gamma == pytest.approx((ahead - 2 * e.phi + behind) / h**2, abs=2e-4)


def test_engine_satisfies_the_reference_equations() -> None:
    s = helix()
    names = [
        f"bead.{what}"
        for what in ("position", "rotation", "velocity", "angular_velocity", "acceleration",
                     "angular_acceleration")
    ]  # fmt: skip
    r = run(s, names, 0.4)
    model = make_manifold(s)
    for k in (0, 200, 399):
        p, e, v, w, a, alpha = (r[f"p.{name}"][k] for name in names)
        at = model.equations(0.0, np.concatenate([p, e]), np.concatenate([v, w]))
        assert np.abs(at.phi).max() < 1e-12
        assert at.jacobian @ np.concatenate([a, alpha]) == pytest.approx(at.gamma, abs=1e-8)


@pytest.mark.parametrize(
    "points, message",
    [
        ([(0, 0), (1, 1), (2, 0)], "4 to"),
        ([(0, 0, 0)] * 5, "rows of 2"),
        ([(0, 0), (1, 1), (1, 1), (2, 0)], "points 1 and 2 of `wire` coincide"),
        ([(0, 0), (1, np.nan), (1, 1), (2, 0)], "finite"),
    ],
)
def test_bad_input(points, message) -> None:
    s = System("bead", planar=True)
    bead = s.body("bead", mass=2.0, inertia=0.01)
    with pytest.raises(DiagramError, match=message):
        s.on_curve("wire", s.ground.marker("frame"), bead.marker("eye"), points=points)


def test_any_integer_of_a_plan_is_refused_or_runs() -> None:
    """Rows of formulas, curves and rolling, and angles: nothing is read or written outside."""
    s = System("hostile")
    arm = s.body("arm", mass=1.0, inertia=0.1, position=(0.3, 0, 0))
    s.revolute("hinge", s.ground, arm, at=(0, 0, 0), axis=(0, 1, 0))
    disc = s.body("disc", mass=1.0, inertia=0.1, position=(1.3, 0, 0.2))
    hub = disc.marker("hub", axis=(0, 1, 0))
    s.rolling("roll", s.ground.marker("floor"), hub, radius=0.2)
    s.constraint("tie", "disc.y - k*hinge.angle", parameters={"k": 1.0})
    bead = s.body("bead", mass=1.0, inertia=0.1, position=(2, 0, 0))
    points = [(2 + 0.1 * x, 0.02 * x * x, -0.1 * x) for x in range(-2, 3)]
    s.on_curve("wire", s.ground.marker("o"), bead.marker("eye"), points=points)
    d = Diagram("hostile", step=1e-3)
    outputs = ["arm.angles_ZXZ", "roll.power", "wire.force", "tie.force"]
    d.add(s.block(outputs=outputs, mode="internal"), name="p")
    plan = d.compile()
    runs = []
    for index in range(0, read_arrays(plan.sections)["INTS"].size, 5):
        for value in (-1, 0, 2, 54, 1000, 2**31 - 1, -(2**31)):
            try:
                with Instance(with_cell(plan, "INTS", index, value)) as instance:
                    instance.initialize()
                    instance.run(2)
                runs.append(True)
            except BiellaError:
                runs.append(False)
    assert 0 < sum(runs) < len(runs)
