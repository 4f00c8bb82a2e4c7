"""Implicit internal steps: order, closure, stiff forces, singular positions, jumps of inputs,
states.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import cast

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from biella import BiellaWarning, BlockError, Diagram, DiagramError, simulate
from biella.blocks import Step
from biella.blocks.multibody import Joint, System
from biella.blocks.multibody.mechanisms import cardan, five_bar, four_bar, mcpherson, slider_crank
from biella.scheduler.engine._engine import Instance

# Steps are coarse on purpose, or beside the point: the errors warned of are real.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore:the estimated error")]

ENERGIES = ["kinetic_energy", "potential_energy"]
TRAPEZOIDAL = 1.0


def run(system, until, outputs, step, *, radius=0.8, integrator="implicit", every=1, **options):
    d = Diagram("mechanism", step=step)
    block = system.block(
        outputs=outputs,
        mode="internal",
        integrator=integrator,
        spectral_radius=radius,
        **options,
    )
    d.add(block, name="plant")
    return simulate(d, until, every=every)


def energy(result):
    return result["plant.kinetic_energy"] + result["plant.potential_energy"]


@pytest.mark.parametrize("radius", [1.0, 0.8, 0.0])
def test_mcpherson_is_stable_at_ten_milliseconds_and_converges_with_order_two(radius):
    """Beyond the first second, in which a step of 10 ms cannot follow the tire's damper."""
    reference = run(mcpherson(), 2.0, ["wheel.position"], 2e-4, integrator="rk4", every=50)
    late = reference.t > 1.0
    errors = []
    for step, every in ((1e-2, 1), (5e-3, 2), (2.5e-3, 4)):
        result = run(
            mcpherson(), 2.0, ["wheel.position", "closure"], step, every=every, radius=radius
        )
        assert result["plant.closure"].max() < 1e-10
        errors.append(np.abs(result["plant.wheel.position"] - reference["plant"])[late].max())
    assert errors[0] < (2e-3 if radius == 0.0 else 1e-4)
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.15)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.15)


def test_mcpherson_runs_on_for_five_seconds():
    result = run(mcpherson(), 5.0, ["wheel.position", "closure"], 1e-2)
    assert result["plant.closure"].max() < 1e-10
    height = result["plant.wheel.position"][:, 2]
    # It follows the road, 0.03 sin(5 π t), to the end.
    for start in (1.0, 3.0, 4.0):
        part = height[(result.t > start) & (result.t < start + 1.0)]
        assert np.ptp(part) == pytest.approx(0.058, rel=0.01)


@pytest.mark.parametrize(
    "options",
    [{"planar": True}, {}, {"pins": "spherical"}],
    ids=["planar", "revolute", "spherical"],
)
def test_slider_crank_closes_and_keeps_its_energy_at_ten_milliseconds(options):
    result = run(
        slider_crank(drive="none", **options),
        20.0,
        ["closure", *ENERGIES],
        1e-2,
        radius=TRAPEZOIDAL,
    )
    assert result["plant.closure"].max() <= 1e-10
    # The trapezoidal rule lets the energy swing with the motion, by 0.1 J; the projections can only
    # take some out, here 2 mJ a second.
    off = energy(result) - energy(result)[0]
    assert np.abs(off).max() < 0.15
    assert off[result.t > 15.0].max() < off[result.t < 5.0].max()
    assert abs(np.median(off[result.t > 15.0])) < 0.05


@pytest.mark.parametrize("radius", [1.0, 0.8])
def test_slider_crank_converges_with_order_two(radius):
    outputs = ["crank.position", "closure"]
    crank = lambda: slider_crank(drive="as listed")  # noqa: E731
    exact = run(crank(), 1.0, outputs, 1e-4, integrator="rk4")["plant.crank.position"][-1]
    errors = []
    for step in (4e-3, 2e-3, 1e-3):
        result = run(crank(), 1.0, outputs, step, radius=radius)
        assert result["plant.closure"].max() <= 1e-10
        errors.append(np.abs(result["plant.crank.position"][-1] - exact).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.15)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("planar", [True, False], ids=["planar", "spatial, redundant"])
@pytest.mark.parametrize("step", [1e-2, 1e-3])
def test_four_bars_pass_their_singular_position(planar, step):
    """IFToMM A02 with n = 2 against its equation of one coordinate."""
    rate = 9.81 * (1.5 + 2) / (1 + 2)
    angle = solve_ivp(
        lambda t, y: (y[1], rate * np.sin(y[0])), (0, 10), (0, 1), rtol=1e-12, atol=1e-12
    ).y[0, -1]
    result = run(four_bar(2, planar=planar), 10.0, ["bar0.position", "closure"], step)
    reached = result["plant.bar0.position"][-1]
    # Order two: 9e-5 m at 10 ms, 1e-6 m at 1 ms.
    expected = [0.5 * np.sin(angle), 0.5 * np.cos(angle), 0.0]
    assert np.allclose(reached, expected, rtol=0, atol=2.0 * step**2)
    assert result["plant.closure"].max() <= 1e-10


@pytest.mark.parametrize("make", [five_bar, cardan])
def test_redundant_joints_are_harmless(make):
    outputs = [f"{make().bodies[-1].name}.position", "closure"]
    implicit = run(make(), 2.0, outputs, 5e-3)
    exact = run(make(), 2.0, outputs, 5e-3, integrator="rk4")
    assert implicit["plant.closure"].max() <= 1e-10
    gap = implicit[f"plant.{outputs[0]}"] - exact[f"plant.{outputs[0]}"]
    assert np.abs(gap).max() < 1e-4


def stiff_pendulum(stiffness, damping=0.0):
    """1 kg on a spring of 1 m, from the horizontal, at the end of its stretch."""
    s = System("stiff pendulum", gravity=(0, -9.81), planar=True)
    bob = s.body("bob", mass=1.0, inertia=0.01, position=(1.0, 0.0))
    s.spring(
        "rod",
        s.ground.marker("hook"),
        bob.marker("eye"),
        stiffness=stiffness,
        damping=damping,
        free_length=1.0,
    )
    return s


@pytest.mark.parametrize("damping", [0.0, 1e5], ids=["spring", "spring and damper"])
def test_a_pendulum_on_a_stiff_spring_swings_as_on_a_rod(damping):
    """Radial frequency 1e4 rad/s, stepped at 5 ms: 50 rad a step; the stretch is 3e-7 m."""
    s = stiff_pendulum(1e8, damping)
    assert s.largest_stable_step() < 3e-4
    angle = solve_ivp(
        lambda t, y: (y[1], -9.81 * np.cos(y[0])), (0, 3), (0, 0), rtol=1e-11, atol=1e-11
    ).y[0, -1]
    errors = []
    for step in (5e-3, 2.5e-3):
        place = run(s, 3.0, ["bob.position"], step)["plant"]
        assert np.allclose(np.linalg.norm(place[:, :2], axis=1), 1.0, rtol=0, atol=1e-3)
        errors.append(np.abs(place[-1, :2] - [np.cos(angle), np.sin(angle)]).max())
    assert errors[0] < 1e-3
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.3)


def test_a_spinning_body_turns_with_order_two():
    """Fast enough, 0.6 rad a step, that what a turn does to its own tangent matters to Newton."""
    inertia = np.diag([0.1, 0.2, 0.25])

    def spin(step, **options):
        s = System("tumbling", gravity=(0, 0, 0))
        s.body("body", mass=1.0, inertia=inertia, angular_velocity=(1.0, 60.0, 2.0), free=True)
        return run(s, 0.4, ["body.rotation"], step, **options)["plant"][-1]

    exact = spin(2e-5, integrator="rk4")
    assert np.abs(spin(1e-2) - exact).max() < 1.0
    errors = [np.abs(spin(step) - exact).max() for step in (1e-3, 5e-4)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.15)


@pytest.mark.parametrize("radius", [1.0, 0.8, 0.0])
def test_an_input_that_jumps_acts_from_its_tick_on(radius):
    """x = ½ (F/m) (t - 0.5)² without any error: the force is constant in every step."""
    s = System("cart", gravity=(0, 0, 0))
    body = s.body("mass", mass=2.0, inertia=0.1)
    s.prismatic("slide", s.ground, body, at=(0, 0, 0), axis=(1, 0, 0))
    s.force("push", body.marker("tip"), (0.0, 0.0, 0.0))
    d = Diagram("push", step=0.1)
    block = s.block(
        ["push.force.x"],
        ["slide.displacement", "slide.speed"],
        mode="internal",
        integrator="implicit",
        spectral_radius=radius,
    )
    plant = d.add(block, name="plant")
    d.connect(d.add(Step(at=0.5, to=3.0, unit="N"), name="step"), plant["push.force.x"])
    result = simulate(d, 2.0)
    since = np.maximum(result.t - 0.5, 0.0)
    assert np.allclose(result["plant.slide.displacement"], 0.75 * since**2, rtol=0, atol=1e-12)
    assert np.allclose(result["plant.slide.speed"], 1.5 * since, rtol=0, atol=1e-12)


def test_substeps_are_steps():
    outputs = ["wheel.position"]
    fine = run(mcpherson(), 0.5, outputs, 5e-3, every=2)["plant"]
    coarse = run(mcpherson(), 0.5, outputs, 1e-2, substeps=2)["plant"]
    # The same steps, but for the rounding of t.
    assert np.allclose(fine, coarse, rtol=0, atol=1e-9)


def test_a_saved_state_goes_on_bit_for_bit():
    d = Diagram("saved", step=1e-2)
    block = mcpherson().block([], ["wheel.position"], mode="internal", integrator="implicit")
    d.add(block, name="plant")
    plan = d.compile()
    with Instance(plan) as instance, Instance(plan) as other:
        instance.initialize()
        instance.run(73)
        saved = instance.save()
        instance.run(100)
        ended = instance.save()
        instance.restore(saved)
        instance.run(100)
        assert instance.save() == ended
        other.initialize()
        other.restore(saved)
        other.run(100)
        assert other.save() == ended


def test_a_step_that_does_not_converge_is_taken_in_halves():
    """At 20 ms Newton does not find through the first kick of the tire's damper in one step."""
    result = run(mcpherson(), 1.0, ["wheel.position", "closure"], 2e-2)
    exact = run(mcpherson(), 1.0, ["wheel.position"], 2e-4, integrator="rk4", every=100)
    assert result["plant.closure"].max() < 1e-10
    assert np.abs(result["plant.wheel.position"] - exact["plant"])[25:].max() < 2e-3


def test_a_step_that_does_not_converge_stops_the_run():
    """Many turns of the crank in one step, in which it cannot find its way."""
    with pytest.raises(BlockError, match=r"`plant`.*0.5 s from t = .* s does not converge, nor do"):
        run(slider_crank(drive="as listed"), 50.0, ["closure"], 0.5)


def test_the_largest_stable_step_is_where_rk4_breaks():
    s = System("damped", gravity=(0, 0, 0))
    body = s.body("mass", mass=2.0, inertia=0.1, position=(0, 0, 1.0))
    s.prismatic("guide", s.ground, body, at=(0, 0, 0), axis=(0, 0, 1))
    foot = body.marker("foot")
    s.spring("damper", s.ground.marker("floor"), foot, damping=6000.0, free_length=1.0)
    assert s.largest_stable_step() == pytest.approx(2.78 / 3000.0, rel=1e-6)
    assert stiff_pendulum(1e6).largest_stable_step() == pytest.approx(2.78e-3, rel=1e-3)

    free = System("free", gravity=(0, 0, 0))
    free.body("stone", mass=2.0, inertia=0.1, free=True)
    assert free.largest_stable_step() == math.inf

    limit = mcpherson().largest_stable_step()
    assert limit == pytest.approx(1.3e-3, rel=0.02)
    exact = run(mcpherson(), 1.0, ["wheel.position"], 1e-2)["plant"]
    for factor, stable in ((0.9, True), (1.1, False)):
        step = factor * limit
        told = nullcontext() if stable else pytest.warns(BiellaWarning, match="stable|resolved")
        with told:
            result = run(
                mcpherson(), round(1.0 / step) * step, ["wheel.position"], step, integrator="rk4"
            )
        gap = np.abs(result["plant"][-1] - exact[-1]).max()
        assert (gap < 2e-3) == stable


def test_mistakes_teach():
    s = slider_crank()
    with pytest.raises(DiagramError, match=r"`integrator` is 'rk4' or 'implicit', got 'euler'"):
        s.block(mode="internal", integrator="euler")  # type: ignore[arg-type]
    with pytest.raises(DiagramError, match=r"set mode='internal' too"):
        s.block(integrator="implicit")
    with pytest.raises(DiagramError, match=r"`spectral_radius` is between 0 and 1, got 1.5"):
        s.block(mode="internal", integrator="implicit", spectral_radius=1.5)
    with pytest.raises(DiagramError, match=r"401 speeds.*up to 300.*integrator='rk4'"):
        four_bar(200).block(mode="internal", integrator="implicit")


def test_accelerations_that_fit_the_constraints_halve_the_error():
    """A crank on ball pins that swings freely, against RK4 at a tenth of the step.

    Accelerations are put on the constraints after every step: 2.5e-5 m. As Newton leaves them they
    are off by what the projection of velocities took out, and carry 4.8e-5 m into the motion.
    """
    crank = lambda: slider_crank(drive="none", pins="spherical")  # noqa: E731
    exact = run(crank(), 2.0, ["crank.position"], 2e-4, integrator="rk4", every=10)["plant"]
    found = run(crank(), 2.0, ["crank.position"], 2e-3, radius=TRAPEZOIDAL)["plant"]
    assert np.abs(found - exact).max() < 3.2e-5


def press(coupler):
    """Two heavy rockers, one driven and one on a stiff spring, and a coupler that presses."""
    s = System("press", (0, -9.81), planar=True)
    left = s.body("left", mass=50.0, inertia=5.0, position=(0, 0.5))
    middle = s.body("coupler", mass=coupler, inertia=0.01 * coupler, position=(1, 1))
    right = s.body("right", mass=50.0, inertia=5.0, position=(2, 0.5))
    ends = [s.ground, left, middle, right, s.ground]
    for n, corner in enumerate([(0, 0), (0, 1), (2, 1), (2, 0)]):
        s.revolute(f"pin{n}", ends[n], ends[n + 1], at=corner)
    s.torque("motor", cast(Joint, s["pin0"]), -3000.0)
    hook, tip = s.ground.marker("hook", (3, 1)), right.marker("tip", (0, 0.5))
    s.spring("spring", hook, tip, stiffness=1e5, damping=50.0, free_length=1.0)
    return s


def test_a_coupler_without_weight_carries_as_much_as_a_heavy_one():
    """3 kN through 1 mg, against RK4: rows are weighed by the mass they move, here next to none.

    Without the multipliers the weights alone would hold the coupler: 0.45 mm off instead of 0.28.
    """
    errors = []
    for mass in (1e-2, 1e-6):
        exact = run(press(mass), 0.5, ["right.position"], 2e-4, integrator="rk4", every=10)
        found = run(press(mass), 0.5, ["right.position"], 2e-3)
        errors.append(np.abs(found["plant"] - exact["plant"]).max())
    assert errors[0] < 3e-4
    assert errors[1] == pytest.approx(errors[0], rel=0.05)


def test_a_chain_of_balls_that_spins_fast_converges():
    """0.8 rad a step in a loop: Newton needs what a turn does to its own tangent, in all its parts.

    Far too coarse to be accurate, but the run must not stop. Without those parts it does, and at
    finer steps takes half as many iterations more.
    """
    s = System("chain", (0, 0, -9.81))
    last = s.ground
    for n in range(3):
        body = s.body(
            f"b{n}",
            mass=1.0,
            inertia=(0.02, 0.03, 0.04),
            position=(0.5 * n + 0.25, 0, 0),
            angular_velocity=(80.0, 0, 0),
        )
        s.spherical(f"ball{n}", last, body, at=(0.5 * n, 0, 0))
        last = body
    s.distance("rod", s.ground.marker("hook", (1.5, 0.5, 0.3)), last.marker("end", (0.25, 0, 0)))
    assert run(s, 1.0, ["closure"], 1e-2)["plant"].max() <= 1e-10


@pytest.mark.parametrize("radius", [1.0, 0.0])
def test_a_redundant_ring_moves_in_any_plane(radius):
    """Rounding in rows that move nothing must not become a constraint, nor stop Newton."""
    c, s_ = math.cos(0.7), math.sin(0.7)
    tilt = np.array([[c, -s_, 0], [s_, c, 0], [0, 0, 1]]) @ np.array(
        [[1, 0, 0], [0, 0.6, -0.8], [0, 0.8, 0.6]]
    )
    found = []
    for turn in (np.eye(3), tilt):
        s = System("parallelogram", gravity=turn @ (0, -10, 0))
        places = {"left": (0, 0.5, 0), "coupler": (1.0, 1, 0), "right": (2, 0.5, 0)}
        bodies = [
            s.body(name, mass=1.0, inertia=0.1, position=turn @ place, rotation=turn)
            for name, place in places.items()
        ]
        ends = [s.ground, *bodies, s.ground]
        for k, corner in enumerate([(0, 0, 0), (0, 1, 0), (2, 1, 0), (2, 0, 0)]):
            s.revolute(f"pin{k}", ends[k], ends[k + 1], at=turn @ corner, axis=turn @ (0, 0, 1))
        s.torque("motor", bodies[0].marker("motor"), turn @ (0, 0, -2.0))
        result = run(s, 3.0, ["coupler.position"], 1e-2, radius=radius)["plant"]
        found.append(result @ turn)
    assert np.ptp(found[0], axis=0)[:2].min() > 0.5
    # Other rows close the loop in the other plane: as near as the error of the step allows.
    assert np.abs(found[1] - found[0]).max() < (1e-2 if radius == 0.0 else 2e-3)
