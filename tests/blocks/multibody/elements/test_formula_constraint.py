"""Constraints by formula: derivatives, closed forms, ready joints, all solvers, FMU, bad input."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from biella import Diagram, Fmu, simulate
from biella.blocks.multibody import FormulaConstraint, Input, System
from biella.blocks.multibody.analysis._manifold import make_manifold
from biella.errors import BiellaError, BiellaWarning, BlockError, DiagramError

G = 9.80665
MODES = [
    {},
    {"mode": "internal"},
    {"mode": "internal", "integrator": "implicit", "spectral_radius": 1.0},
]


def bead(a: float = 1.0, x: float = 0.5, v: float = 0.3) -> System:
    s = System("bead", planar=True)
    s.body(
        "bead", mass=2.0, inertia=0.01, position=(x, a * x * x), velocity=(v, 2 * a * x * v),
    )  # fmt: skip
    s.constraint("track", "bead.y - a*bead.x**2", parameters={"a": a})
    return s


def run(s: System, outputs: list[str], until: float, step: float = 1e-3, **options):
    d = Diagram("run", step=step)
    d.add(s.block(outputs=outputs, **options), name="p")
    return simulate(d, until)


def parabola(a: float, x: float, v: float, until: float) -> np.ndarray:
    """Return x and ẋ at the end: (1 + 4 a² x²) ẍ + 4 a² x ẋ² + 2 a g x = 0."""

    def rates(_, y):
        k = 4 * a * a * y[0]
        return [y[1], -(k * y[1] ** 2 + 2 * a * G * y[0]) / (1 + k * y[0])]

    return solve_ivp(rates, (0, until), [x, v], rtol=1e-12, atol=1e-12).y[:, -1]


@pytest.mark.parametrize("options", MODES, ids=["continuous", "rk4", "implicit"])
def test_bead_on_a_parabola(options) -> None:
    outputs = [
        "bead.position",
        "bead.velocity",
        "kinetic_energy",
        "potential_energy",
        "track.force",
    ]
    r = run(bead(), outputs, 1.0, **options)
    p, v = r["p.bead.position"], r["p.bead.velocity"]
    x, rate = parabola(1.0, 0.5, 0.3, 1.0)
    implicit = "integrator" in options
    # RK4 with 1 ms: (ω h)⁴ ~ 1e-9 a period; generalized-α of second order: (ω h)² / 12 ~ 1e-5.
    assert p[-1, :2] == pytest.approx([x, x * x], abs=2e-5 if implicit else 1e-8)
    assert v[-1, 0] == pytest.approx(rate, abs=1e-4 if implicit else 1e-8)
    assert np.abs(p[:, 1] - p[:, 0] ** 2).max() < 1e-12
    energy = r["p.kinetic_energy"] + r["p.potential_energy"]
    assert np.ptp(energy) < (1e-3 if implicit else 1e-8)
    # From Newton's law along y: m ÿ = -m g + force (∂Ψ/∂y = 1), ÿ = 2 ẋ² + 2 x ẍ.
    acceleration = -(4 * x * rate**2 + 2 * G * x) / (1 + 4 * x * x)
    force = 2.0 * (G + 2 * rate**2 + 2 * x * acceleration)
    assert r["p.track.force"][-1] == pytest.approx(force, rel=1e-4 if implicit else 1e-7)


def test_parameters_are_set_later_and_the_initial_state_follows() -> None:
    d = Diagram("run", step=1e-3)
    d.add(bead(1.0, 0.5, 0.0).block(outputs=["bead.position", "bead.velocity"]), name="p")
    with pytest.warns(BiellaWarning, match="`bead` is moved by 0.122 m"):
        r = simulate(d, 0.5, parameters={"p.track.a": 2.0})
    p, v = r["p.bead.position"], r["p.bead.velocity"]
    assert np.abs(p[:, 1] - 2.0 * p[:, 0] ** 2).max() < 1e-12
    x, rate = parabola(2.0, p[0, 0], v[0, 0], 0.5)
    assert p[-1, 0] == pytest.approx(x, abs=1e-8)
    assert v[-1, 0] == pytest.approx(rate, abs=1e-8)


def spatial() -> System:
    """Two bodies with a loop of formulas of tree coordinates, measured ones, and time."""
    open_by = [
        item.value([term.joint.given_value(term.coordinate) for term in item.terms], 0.0)
        for item in make_spatial(0.0, 0.0).general_constraints
        if isinstance(item, FormulaConstraint)
    ]
    return make_spatial(*open_by)


def make_spatial(c: float, d: float) -> System:
    s = System("spatial")
    one = s.body("one", mass=1.0, inertia=(0.02, 0.03, 0.04), position=(0.3, 0.1, 0.2))
    two = s.body(
        "two", mass=0.7, inertia=(0.01, 0.02, 0.015), position=(0.5, 0.4, -0.3),
        rotation=(0.9, 0.1, 0.3, 0.3),
    )  # fmt: skip
    tip = one.marker("tip", (0.2, -0.1, 0.3), axis=(1, 2, 2))
    eye = two.marker("eye", (0.1, 0.2, -0.1), axis=(0, 1, 1))
    s.revolute("hinge", s.ground, one, at=(0, 0, 0), axis=(0.6, 0, 0.8))
    s.cylindrical("link", one, two, at=(0.4, 0.2, 0.1), axis=(0, 0.6, 0.8))
    s.constraint(
        "first",
        "sin(hinge.angle)*two.x + exp(0.3*link.displacement) - k*atan(two.eye.z) - c",
        parameters={"k": 1.3, "c": c},
    )
    s.constraint("second", "x*y + 0.2*cos(2*t)*z + link.angle*one.tip.y - d", between=(tip, eye),
                 parameters={"d": d})  # fmt: skip
    return s


def test_derivatives_are_those_of_finite_differences() -> None:
    """Ψ_q along random motions, Ψ_t and γ: differences with steps of 1e-5 are good to 1e-8."""
    s = spatial()
    model = make_manifold(s)
    generator = np.random.default_rng(3)
    q, h, t = model.q0, 1e-4, 0.7
    rows = slice(model.m - 2, model.m)
    for _ in range(5):
        q = model.move(q, 0.1 * generator.normal(size=model.size))
        u = generator.normal(size=model.size)
        e = model.equations(t, q, u)
        own = slice(rows.start - model.base_rows, None)

        def psi(time: float, by: float, q=q, u=u, own=own) -> np.ndarray:
            return model.closure(t + time, model.move(q, by * u))[0][own]

        along = (psi(0, h) - psi(0, -h)) / (2 * h)
        assert e.jacobian[own] @ u == pytest.approx(along, abs=1e-6)
        by_time = (psi(h, 0) - psi(-h, 0)) / (2 * h)
        assert e.phi_t[own] == pytest.approx(by_time, abs=1e-6)
        # The second derivative along a motion with constant u (move is exp along u: u̇ = 0).
        second = (psi(h, h) - 2 * psi(0, 0) + psi(-h, -h)) / h**2
        assert -e.gamma[own] == pytest.approx(second, abs=1e-5)


def test_engine_has_the_derivatives_of_the_reference_equations() -> None:
    """Accelerations and multipliers of the engine satisfy M u̇ + Ψ_uᵀ λ = Q and Ψ_u u̇ = γ."""
    s = spatial()
    names = [
        f"{b}.{w}"
        for b in ("one", "two")
        for w in ("position", "rotation", "velocity", "angular_velocity", "acceleration",
                  "angular_acceleration")
    ]  # fmt: skip
    r = run(s, [*names, "first.force", "second.force"], 0.6, initial={"hinge.speed": 2.0})
    model = make_manifold(s)
    for k in (0, 200, 599):
        at = {name: r[f"p.{name}"][k] for name in names}
        q = np.concatenate([[*at[f"{b}.position"], *at[f"{b}.rotation"]] for b in ("one", "two")])
        u, u_t = (
            np.concatenate([[*at[f"{b}.{v}"], *at[f"{b}.{w}"]] for b in ("one", "two")])
            for v, w in (("velocity", "angular_velocity"), ("acceleration", "angular_acceleration"))
        )
        t = k * 1e-3
        e = model.equations(t, q, u)
        assert np.abs(e.phi).max() < 1e-10
        assert e.jacobian @ u + e.phi_t == pytest.approx(np.zeros(len(e.phi)), abs=1e-9)
        assert e.jacobian @ u_t == pytest.approx(e.gamma, abs=1e-8)
        lam = np.linalg.lstsq(e.jacobian.T, e.force - e.mass @ u_t, rcond=None)[0]
        assert e.mass @ u_t + e.jacobian.T @ lam == pytest.approx(e.force, abs=1e-8)
        forces = [r["p.first.force"][k], r["p.second.force"][k]]
        assert forces == pytest.approx(-lam[-2:], rel=1e-7)


def test_power_of_a_formula_of_time_is_the_change_of_energy() -> None:
    s = spatial()
    wanted = ["kinetic_energy", "potential_energy", "first.power", "second.power", "power_in"]
    r = run(s, wanted, 0.5)
    energy = r["p.kinetic_energy"] + r["p.potential_energy"]
    power = r["p.second.power"]
    assert np.abs(r["p.first.power"]).max() < 1e-12
    assert np.abs(power).max() > 1e-2
    h = 1e-3
    simpson = h / 3 * (power[:-2:2] + 4 * power[1:-1:2] + power[2::2])
    assert energy[-1] - energy[0] == pytest.approx(simpson.sum(), abs=1e-8)
    assert r["p.power_in"] == pytest.approx(np.maximum(power, 0.0), abs=1e-12)


def crank() -> System:
    """The sample driver of the S3D cards: x - A cos(ω t) + A - 0.108 with x = 0.125 cos φ."""
    s = System("crank", planar=True)
    height = (0.125**2 - 0.108**2) ** 0.5
    arm = s.body("arm", mass=1.0, inertia=0.01, position=(0.108, height))
    s.revolute("main", s.ground, arm, at=(0, 0))
    s.constraint("drive", "arm.x - A*cos(w*t) + A - 0.108", parameters={"A": 0.125, "w": 3.0})
    return s


@pytest.mark.parametrize("options", MODES, ids=["continuous", "rk4", "implicit"])
def test_driver_that_becomes_infeasible_ends_with_its_name(options) -> None:
    """It asks for x < -0.125 from t = 0.871319 s on."""
    end = np.arccos(1 - (0.125 + 0.108) / 0.125) / 3.0
    assert end == pytest.approx(0.871319, abs=1e-6)
    r = run(crank(), ["arm.position"], 0.86, **options)
    t = np.arange(861) * 1e-3
    wanted = 0.125 * np.cos(3 * t) - 0.125 + 0.108
    assert r["p.arm.position"][:, 0] == pytest.approx(wanted, abs=1e-11)
    with pytest.raises(BlockError, match=r"t = 0.87[0-2].*`drive` stays open by .* m") as error:
        run(crank(), ["arm.position"], 1.0, **options)
    assert "out of reach" in str(error.value)


@pytest.mark.parametrize("start", [-3.0, -2.5, 0.5 * np.pi])
def test_a_row_that_is_singular_to_rounding_hands_over_to_the_other(start) -> None:
    """sin φ and cos φ both driven: at φ = 0 or π / 2 one has the derivative 0, or 1e-16."""
    s = System("driven", (0, 0, 0))
    rotation = (np.cos(0.5 * start), 0, 0, np.sin(0.5 * start))
    body = s.body(
        "body", mass=1.0, inertia=0.1, rotation=rotation, angular_velocity=(0, 0, 5)
    )  # fmt: skip
    s.revolute("main", s.ground, body, at=(0, 0, 0), axis=(0, 0, 1))
    s.constraint("sine", "sin(main.angle) - sin(a + 5*t)", parameters={"a": start})
    s.constraint("cosine", "cos(main.angle) - cos(a + 5*t)", parameters={"a": start})
    r = run(s, ["main.angle", "main.speed"], 1.5, 5e-3)
    # Rounding of 1e-16, divided by the slope at which weights change, 1e-4.
    np.testing.assert_allclose(r["p.main.angle"], start + 5 * r.t, rtol=0, atol=1e-11)
    np.testing.assert_allclose(r["p.main.speed"], 5.0, rtol=0, atol=1e-9)


def test_redundant_formulas_are_reported_as_joints_are() -> None:
    s = crank()
    s.constraint("again", "2*(arm.x - 0.125*cos(3*t) + 0.125 - 0.108)")
    found = s.report()
    assert (found.freedom, found.redundant) == (0, 1)
    assert set(found.not_unique) == {"drive", "again"}
    assert found.consistent
    with pytest.warns(BiellaWarning, match="redundant|not unique|share"):
        r = run(s, ["drive.force", "again.force", "arm.position"], 0.5)
    single = run(crank(), ["drive.force"], 0.5)["p.drive.force"]
    assert r["p.drive.force"] + 2 * r["p.again.force"] == pytest.approx(single, rel=1e-6, abs=1e-9)


def test_equilibrium_and_small_motions() -> None:
    """A bead at rest at the bottom of y = a x²: ω² = 2 a g; its force is its weight."""
    s = bead(1.7, 0.1, 0.0)
    rest = s.equilibrium()
    assert rest.bodies[0].position[:2] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert rest.stability != "unstable"
    omega = sorted(mode.frequency for mode in s.modes(rest))[-1]
    assert omega == pytest.approx((2 * 1.7 * G) ** 0.5 / (2 * np.pi), rel=1e-9)


def test_assembly_finds_the_nearest_point_of_the_parabola() -> None:
    s = System("bead", planar=True)
    s.body("bead", mass=2.0, inertia=0.01, position=(0.0, 2.0))
    s.constraint("track", "bead.y - bead.x**2 - 0.3*bead.x")
    d = Diagram("run", step=1e-3)
    d.add(s.block(outputs=["bead.position"]), name="p")
    with pytest.warns(BiellaWarning, match="is moved by"):
        x, y, _ = simulate(d, 0.0)["p.bead.position"][0]
    assert y == pytest.approx(x * x + 0.3 * x, abs=1e-12)
    # The way to the given point is normal to the curve.
    assert (x - 0.0) + (y - 2.0) * (2 * x + 0.3) == pytest.approx(0.0, abs=1e-6)


def test_fmu_moves_as_the_diagram(tmp_path) -> None:
    s = bead()
    s.export_fmu(tmp_path / "bead.fmu", outputs=["bead.position", "track.force"], sources=False)
    d = Diagram("import", step=1e-3)
    d.add(Fmu(tmp_path / "bead.fmu"), name="p")
    outside = simulate(d, 0.5)
    inside = run(bead(), ["bead.position", "track.force"], 0.5)
    for name in ("p.bead.position", "p.track.force"):
        assert outside[name] == pytest.approx(inside[name], abs=1e-12)


@pytest.mark.parametrize(
    "formula, message",
    [
        ("bead.y - abs(bead.x)", "not smooth.*`abs`"),
        ("bead.y - min(bead.x, 1)", "not smooth.*`min`"),
        ("bead.y - (bead.x if t < 1 else 0)", "not smooth"),
        ("bead.yy - bead.x", "there is no coordinate `bead.yy`.*bead.y"),
        ("bed.y", "there is no coordinate `bed.y`.*Did you mean"),
        ("bead.speed - 1", "`bead.speed` is a rate"),
        ("2*t - 1", "contains no coordinate"),
        ("ground.peg.x + 1", "`ground.peg.x` cannot move"),
        ("bead.position[2]", "is no coordinate"),
        ("bead.y - ", "cannot be read"),
        ("(bead.y).x", "there is no coordinate"),
        ("sin(bead.y).x", "cannot hold a dot"),
        ("y - bead.x", "there is no coordinate `y`"),
    ],
)
def test_bad_formulas(formula, message) -> None:
    s = System("bead", planar=True)
    s.body("bead", mass=2.0, inertia=0.01)
    s.ground.marker("peg", (1, 0))
    with pytest.raises(DiagramError, match=message):
        s.constraint("track", formula)
    assert list(s.parts) == ["ground", "bead"]


def test_bad_parameters() -> None:
    s = System("bead", planar=True)
    eye = s.body("bead", mass=2.0, inertia=0.01).marker("eye")
    with pytest.raises(DiagramError, match="finite"):
        s.constraint("track", "bead.y - k", parameters={"k": np.inf})
    with pytest.raises(DiagramError, match="name of letters"):
        s.constraint("track", "bead.y - t", parameters={"t": 1.0})
    with pytest.raises(DiagramError, match="also a coordinate"):
        s.constraint("track", "y - x", between=(s.ground.marker("o"), eye), parameters={"x": 1.0})
    with pytest.raises(DiagramError, match="two markers"):
        s.constraint("track", "y - x", between=eye)  # type: ignore[arg-type]


def test_a_value_without_a_number_ends_with_a_message() -> None:
    """sqrt of a negative number, where the motion leads out of what the formula describes."""
    s = System("bead", planar=True)
    s.body("bead", mass=2.0, inertia=0.01, position=(0.5, 0.25), velocity=(-1.0, -1.5 * 0.5**0.5))
    s.constraint("track", "bead.y - bead.x**1.5 - 0.25 + 0.5**1.5")
    with pytest.raises(BiellaError, match="track"):
        run(s, ["bead.position"], 2.0)


@pytest.mark.parametrize("held", ["formula", "curve"])
def test_power_of_loads_beside_a_constraint_follows_their_inputs(held) -> None:
    """Power is F v at once: with the input F, and with a formula that reads an output."""
    s = System("bead", planar=True, gravity=(0, 0))
    body = s.body("bead", mass=2.0, inertia=0.01, position=(0.5, 0.0), velocity=(0.3, 0.0))
    if held == "formula":
        s.constraint("track", "bead.y")
    else:
        line = [(x, 0.0) for x in range(-2, 3)]
        s.on_curve("track", s.ground.marker("axes"), body.marker("eye"), points=line)
    center = body.marker("c")
    s.force("push", center, (Input("F", default=3.0), 0))
    s.force("pull", center, ("-4*bead.x", 0))
    s.force("echo", center, ("2*push.applied_force[0]", 0))
    outputs = ["push.power", "pull.power", "echo.power", "bead.position"]
    block = s.block(outputs=outputs)
    assert block.feedthrough == ((0,), (), (0,), ())
    r = run(s, outputs, 0.1)
    assert r["p.push.power"][0] == pytest.approx(3.0 * 0.3)
    assert r["p.pull.power"][0] == pytest.approx(-4.0 * 0.5 * 0.3)
    assert r["p.echo.power"][0] == pytest.approx(6.0 * 0.3)
    omega = 2.0**0.5  # 2 ẍ = 9 - 4 x
    expected = 2.25 - 1.75 * np.cos(omega * 0.1) + 0.3 / omega * np.sin(omega * 0.1)
    assert r["p.bead.position"][-1, 0] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("held", ["formula", "curve"])
def test_power_of_a_constraint_whose_marker_moves_is_the_work_on_the_mechanism(held) -> None:
    """The energy changes by the work of the row alone, trapezoidal: (ω h)² / 12 of it a second."""
    s = System("bead", planar=True, gravity=(0, 0))
    body = s.body("bead", mass=1.0, inertia=0.1, position=(0.4, 0.16), velocity=(1.0, 1.3))
    ends = s.ground.marker("axes", motion={"y": "0.1*sin(5*t)"}), body.marker("eye")
    if held == "formula":
        s.constraint("track", "y - x**2", between=ends)
    else:
        x = np.linspace(-3, 3, 61)
        s.on_curve("track", *ends, points=np.column_stack([x, x * x]))
    r = run(s, ["track.power", "power_in", "kinetic_energy"], 0.6)
    power, energy = r["p.track.power"], r["p.kinetic_energy"]
    assert np.ptp(energy) > 0.03
    assert np.trapezoid(power, dx=1e-3) == pytest.approx(energy[-1] - energy[0], abs=1e-5)
    assert r["p.power_in"] == pytest.approx(np.maximum(power, 0.0), abs=1e-14)
