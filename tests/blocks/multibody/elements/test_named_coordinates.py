"""Euler parameters of bodies in constraints: derivatives, a ball joint held as a hinge, signs."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram, DiagramError, Fmu, simulate
from biella.blocks.multibody import FormulaConstraint, System
from biella.blocks.multibody.analysis._manifold import make_manifold

from .test_formula_constraint import MODES, run

pytestmark = pytest.mark.engine

PSI = "two.e0*two.e3 + 0.5*two.x*two.e1 - k*one.e2**2 + 0.3*one.e1*sin(t) - c"


def make_pair(c: float) -> System:
    """Two bodies of which one has a free rotation, tied by a formula of both and of time."""
    s = System("pair", (0, 0.5, -9.0))
    one = s.body("one", mass=1.0, inertia=(0.02, 0.03, 0.04), position=(0.3, 0.1, 0.2),
                 rotation=(0.1, 0.7, 0.5, -0.5))  # fmt: skip
    two = s.body(
        "two", mass=0.7, inertia=[[0.01, 0.002, 0], [0.002, 0.02, 0], [0, 0, 0.015]],
        position=(0.5, 0.4, -0.3), rotation=(0.9, 0.1, 0.3, 0.3), com=(0.1, 0.05, 0.0),
        angular_velocity=(1.0, 2.0, -1.0),
    )  # fmt: skip
    s.revolute("hinge", s.ground, one, at=(0, 0, 0), axis=(0.6, 0, 0.8))
    s.spherical("ball", one, two, at=(0.4, 0.2, 0.1))
    s.constraint("held", PSI, parameters={"k": 1.3, "c": c})
    return s


def pair() -> System:
    (item,) = make_pair(0.0).general_constraints
    assert isinstance(item, FormulaConstraint)
    return make_pair(
        item.value([term.joint.given_value(term.coordinate) for term in item.terms], 0.0)
    )


def test_derivatives_are_those_of_finite_differences() -> None:
    """Ψ_q along random motions, Ψ_t and γ: differences with steps of 1e-4 are good to 1e-7."""
    model = make_manifold(pair())
    generator = np.random.default_rng(3)
    q, h, t = model.q0, 1e-4, 0.7
    own = slice(model.m - 1 - model.base_rows, None)
    for _ in range(5):
        q = model.move(q, 0.3 * generator.normal(size=model.size))
        u = generator.normal(size=model.size)
        e = model.equations(t, q, u)

        def psi(time: float, by: float, q=q, u=u) -> np.ndarray:
            return model.closure(t + time, model.move(q, by * u))[0][own]

        along = (psi(0, h) - psi(0, -h)) / (2 * h)
        assert e.jacobian[own] @ u == pytest.approx(along, abs=1e-6)
        assert e.phi_t[own] == pytest.approx((psi(h, 0) - psi(-h, 0)) / (2 * h), abs=1e-6)
        # u is constant along a move, so that its second derivative is -γ.
        second = (psi(h, h) - 2 * psi(0, 0) + psi(-h, -h)) / h**2
        assert -e.gamma[own] == pytest.approx(second, abs=1e-5)


def test_engine_has_the_derivatives_of_the_reference_equations() -> None:
    """Accelerations and multiplier of the engine satisfy M u̇ + Ψ_uᵀ λ = Q and Ψ_u u̇ = γ."""
    s = pair()
    names = [
        f"{b}.{w}"
        for b in ("one", "two")
        for w in ("position", "e0", "e1", "e2", "e3", "velocity", "angular_velocity",
                  "acceleration", "angular_acceleration")
    ]  # fmt: skip
    with pytest.warns(match="velocities given do not fit"):
        r = run(s, [*names, "held.force"], 0.6)
    model = make_manifold(s)
    bodies = {body.name: body for body in s.bodies}
    turned = []
    for k in (0, 200, 599):
        at = {name: r[f"p.{name}"][k] for name in names}
        q, u, u_t = [], [], []
        for b, body in bodies.items():
            p = np.array([at[f"{b}.e{n}"] for n in range(4)])
            turned.append(p)
            matrix = model.rotations(np.tile([0, 0, 0, *p], 2))[0]
            arm, w, wd = (
                matrix @ body.com,
                at[f"{b}.angular_velocity"],
                at[f"{b}.angular_acceleration"],
            )
            q += [*(at[f"{b}.position"] + arm), *p]
            u += [*(at[f"{b}.velocity"] + np.cross(w, arm)), *w]
            u_t += [
                *(at[f"{b}.acceleration"] + np.cross(wd, arm) + np.cross(w, np.cross(w, arm))),
                *wd,
            ]
        e = model.equations(k * 1e-3, np.array(q), np.array(u))
        # Of the constraints closed by the engine; as in test_formula_constraint.py.
        assert np.abs(e.phi).max() < 1e-10
        assert e.jacobian @ u + e.phi_t == pytest.approx(np.zeros(len(e.phi)), abs=1e-9)
        assert e.jacobian @ u_t == pytest.approx(e.gamma, abs=1e-8)
        lam = np.linalg.lstsq(e.jacobian.T, e.force - e.mass @ u_t, rcond=None)[0]
        assert e.mass @ u_t + e.jacobian.T @ lam == pytest.approx(e.force, abs=1e-8)
        assert r["p.held.force"][k] == pytest.approx(-lam[-1], rel=1e-7)
    assert np.abs(turned[0] - turned[-2]).max() > 0.1


def wheel(hinge: bool, cut: bool = False) -> System:
    """A wheel with an imbalance on a hinge about z, or on a ball joint held by e1 and e2."""
    s = System("wheel", (0.3, -9.0, 0.5))
    body = s.body(
        "body", mass=2.0,
        inertia=[[0.03, 0.002, 0.001], [0.002, 0.05, -0.001], [0.001, -0.001, 0.04]],
        com=(0.1, 0.02, 0.05), angular_velocity=(0, 0, 12.0),
    )  # fmt: skip
    foot = s.ground.marker("foot", motion={"x": "0*t"} if cut else None)
    if hinge:
        s.revolute("main", foot, body.marker("hub"))
    else:
        s.spherical("main", foot, body.marker("hub"))
        s.constraint("e1", "body.e1")
        s.constraint("e2", "body.e2")
    s.torque("brake", body.marker("rim"), (0.0, 0.0, "-0.2*body.e0"))
    return s


@pytest.mark.parametrize("options", MODES, ids=["continuous", "rk4", "implicit"])
@pytest.mark.parametrize("cut", [False, True])
def test_a_ball_joint_without_e1_and_e2_is_a_hinge(options, cut) -> None:
    """Over two turns, in which e0 changes its sign; and what keeps it so, a torque about x, y."""
    names = ["body.angular_velocity", "body.e0", "body.e3", "main.force"]
    found = run(wheel(False, cut), [*names, "e1.force", "e2.force"], 1.2, **options)
    wanted = run(wheel(True), [*names, "main.torque"], 1.2, **options)
    for name in names:
        size = np.abs(wanted[f"p.{name}"]).max()
        # Two sets of coordinates, in steps of 1 ms of order 4 or 2 at 12 rad/s: (12e-3)^5, ^3.
        near = 1e-5 if "integrator" in options else 1e-8
        np.testing.assert_allclose(
            found[f"p.{name}"], wanted[f"p.{name}"], rtol=0, atol=near * size, err_msg=name
        )
    assert np.ptp(np.sign(found["p.body.e0"])) == 2.0
    # The effort F on e1 is the torque F ½ (e0, e3, -e2), on e2 F ½ (-e3, e0, e1).
    e0, e3 = found["p.body.e0"], found["p.body.e3"]
    f1, f2 = found["p.e1.force"], found["p.e2.force"]
    torque = 0.5 * np.column_stack([f1 * e0 - f2 * e3, f1 * e3 + f2 * e0])
    size = np.abs(wanted["p.main.torque"]).max()
    np.testing.assert_allclose(
        torque,
        wanted["p.main.torque"][:, :2],
        rtol=0,
        atol=(1e-4 if "integrator" in options else 1e-7) * size,
    )


@pytest.mark.parametrize("start", [-3.0, 0.0, 3.0])
def test_a_driver_of_both_is_the_angle_over_turns(start) -> None:
    """e0 = cos(a/2), e3 = sin(a/2) from any start, e0 ≥ 0 there; the sign of the outputs."""
    made = []
    for euler in (True, False):
        s = System("driven", (0, 0, 0))
        half = 0.5 * start
        body = s.body("body", mass=1.0, inertia=0.1, rotation=(np.cos(half), 0, 0, np.sin(half)),
                      angular_velocity=(0, 0, 5))  # fmt: skip
        main = s.revolute("main", s.ground, body, at=(0, 0, 0), axis=(0, 0, 1))
        if euler:
            s.constraint("d0", "body.e0 - cos((a + 5*t)/2)", parameters={"a": start})
            s.constraint("d3", "body.e3 - sin((a + 5*t)/2)", parameters={"a": start})
        else:
            s.driver("drive", main, f"{start} + 5*t")
        made.append(s)
    one, other = (run(s, ["body.e0", "body.e3", "main.speed"], 3.0, 5e-3) for s in made)
    for name in ("body.e0", "body.e3", "main.speed"):
        # Each row is singular twice a turn, for some starts at a point of time to rounding.
        np.testing.assert_allclose(one[f"p.{name}"], other[f"p.{name}"], rtol=0, atol=1e-8)
    t = np.arange(len(one["p.body.e0"])) * 5e-3
    np.testing.assert_allclose(one["p.body.e0"], np.cos(0.5 * (start + 5 * t)), atol=1e-9)
    assert made[0].report().freedom == 0


def test_equilibrium_small_motions_and_fmu(tmp_path) -> None:
    """A plate on a ball joint, held by Euler parameters: a pendulum about z with m g r / J."""
    s = System("plate", (0, -9.0, 0))
    body = s.body("body", mass=2.0, inertia=0.04, com=(0.0, -0.2, 0.0))
    s.spherical("main", s.ground, body, at=(0, 0, 0))
    s.constraint("e1", "body.e1")
    s.constraint("e2", "body.e2")
    (mode,) = s.modes()
    assert mode.frequency * 2 * np.pi == pytest.approx(
        np.sqrt(2.0 * 9.0 * 0.2 / (0.04 + 2.0 * 0.04)), rel=1e-6
    )
    path = wheel(False).export_fmu(
        tmp_path / "wheel.fmu", outputs=["body.e0", "e1.force"], step=1e-3
    )
    inside = run(wheel(False), ["body.e0", "e1.force"], 0.5)
    d = Diagram("fmu", step=1e-3)
    d.add(Fmu(path), name="p")
    outside = simulate(d, 0.5)
    for name in ("body.e0", "e1.force"):
        np.testing.assert_allclose(
            outside[f"p.{name}"], inside[f"p.{name}"], rtol=1e-12, atol=1e-12
        )


def test_what_is_no_euler_parameter() -> None:
    s = System("space")
    body = s.body("body", mass=1.0, inertia=0.1)
    body.marker("tip", (1, 0, 0))
    with pytest.raises(DiagramError, match=r"`body.tip.e1`.*those of bodies; name `body.e1`"):
        s.constraint("c", "body.tip.e1")
    with pytest.raises(DiagramError, match=r"no coordinate `body\.e4`.*body\.e3"):
        s.constraint("c", "body.e4")
    with pytest.raises(DiagramError, match=r"`ground\.e0`"):
        s.constraint("c", "ground.e0")
    plane = System("plane", planar=True)
    plane.body("body", mass=1.0, inertia=0.1)
    with pytest.raises(DiagramError, match=r"`body.e0`.*a plane has an angle; name `body.angle`"):
        plane.constraint("c", "body.e0")
