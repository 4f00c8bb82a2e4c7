"""The mechanism in the engine, against closed forms and equations of one coordinate by scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from biella import BiellaError, BlockError, Diagram, DiagramError, Fmu, simulate
from biella.blocks.multibody import Input, Sine, System
from biella.blocks.multibody.mechanisms import (
    cardan,
    five_bar,
    four_bar,
    mcpherson,
    pendulum_on_cart,
    slider_crank,
)
from biella.blocks.multibody.plant._tree import find_pattern, grow_tree
from biella.scheduler.engine._library import kernel_sizes

pytestmark = pytest.mark.engine


def run(system, until, outputs, *, step=1e-3, inputs=(), mode="continuous", every=1, **options):
    d = Diagram("mechanism", step=step)
    d.add(system.block(inputs, outputs, mode=mode), name="plant")
    return simulate(d, until, every=every, **options)


def drift(result):
    energy = result["plant.kinetic_energy"] + result["plant.potential_energy"]
    return float(np.ptp(energy))


ENERGIES = ["kinetic_energy", "potential_energy"]


def test_a_point_pendulum_swings_as_its_equation_says():
    """IFToMM A01: 1 kg on 1 m from the horizontal; θ'' = -g sin θ from θ = 90°."""
    s = System("pendulum", gravity=(0, -9.81, 0))
    bob = s.body("bob", mass=1.0, inertia=0.0, position=(1, 0, 0))
    s.revolute("pin", s.ground, bob, at=(0, 0, 0), axis=(0, 0, 1))
    result = run(s, 10.0, ["pin.angle", *ENERGIES])
    exact = solve_ivp(
        lambda t, y: (y[1], -9.81 * np.cos(y[0])), (0, 10), (0, 0), rtol=1e-12, atol=1e-12
    )
    # RK4 at 1 ms over ten seconds: a global error of a few 1e-9 rad.
    assert result["plant.pin.angle"][-1] == pytest.approx(exact.y[0, -1], abs=2e-8)
    assert drift(result) < 1e-9


@pytest.mark.parametrize("planar", [True, False], ids=["planar", "spatial, redundant"])
@pytest.mark.parametrize("n", [1, 2, 10])
def test_rows_of_four_bars_pass_their_singular_position(n, planar):
    """IFToMM A02 against its equation of one coordinate, m θ'' = g ((n+1)/2 + n) sin θ."""
    s = four_bar(n, planar=planar)
    first = s.bodies[0].name
    result = run(s, 10.0, [f"{first}.position", "closure", *ENERGIES], mode="internal", every=10)
    rate = 9.81 * ((n + 1) / 2 + n) / ((n + 1) / 3 + n)
    exact = solve_ivp(
        lambda t, y: (y[1], rate * np.sin(y[0])), (0, 10), (0, 1), rtol=1e-12, atol=1e-12
    ).y[0, -1]
    expected = [0.5 * np.sin(exact), 0.5 * np.cos(exact), 0.0]
    assert np.allclose(result[f"plant.{first}.position"][-1], expected, rtol=0, atol=1e-6)
    assert result["plant.closure"].max() < 1e-12
    assert drift(result) < 1e-7


def crank_angle(until):
    """Oldani's slider-crank as one equation: the angle of the crank from x toward z."""
    a, b, g, torque = 1.0, 2.0, 9.80665, 10.0
    mass, inertia = (1.0, 2.0, 4.0), (0.1, 0.2)

    def slope(t, y):
        theta, rate = y
        sin, cos = np.sin(theta), np.cos(theta)
        sin_rod = a * sin / b
        cos_rod = np.sqrt(1 - sin_rod**2)
        d = a * cos / (b * cos_rod)
        dd = (b * sin_rod * d**2 - a * sin) / (b * cos_rod)
        rod1 = np.array([-sin_rod * d, -cos_rod * d])
        rod2 = np.array([-cos_rod * d**2 - sin_rod * dd, sin_rod * d**2 - cos_rod * dd])
        pin1, pin2 = a * np.array([-sin, cos]), a * np.array([-cos, -sin])
        first = (pin1 / 2, pin1 + b / 2 * rod1, pin1 + b * rod1)
        second = (pin2 / 2, pin2 + b / 2 * rod2, pin2 + b * rod2)
        m, half, push = inertia[0] + inertia[1] * d**2, inertia[1] * d * dd, -torque
        for weight, r1, r2 in zip(mass, first, second, strict=True):
            m += weight * (r1 @ r1)
            half += weight * (r1 @ r2)
            push -= weight * g * r1[1]
        return rate, (push - half * rate**2) / m

    y = solve_ivp(slope, (0, until), (np.pi / 4, 0.0), method="DOP853", rtol=1e-12, atol=1e-12).y
    return y[0, -1]


@pytest.mark.filterwarnings("ignore:the estimated error")  # of coarse steps, and real
@pytest.mark.parametrize("mode", ["continuous", "internal"])
@pytest.mark.parametrize(
    "options",
    [{"planar": True}, {}, {"pins": "spherical"}],
    ids=["planar", "revolute", "spherical"],
)
def test_oldanis_slider_crank_closes_and_keeps_its_phase(options, mode):
    """Five seconds through the dead points, redundant or not; the exact phase from one equation."""
    theta = crank_angle(5.0)
    errors = []
    for step in (1e-2, 1e-3):
        result = run(
            slider_crank(drive="as listed", **options),
            5.0,
            ["crank.position", "closure"],
            step=step,
            mode=mode,
        )
        assert result["plant.closure"].max() <= 1e-10
        x, z = result["plant.crank.position"][-1][[0, 1 if options.get("planar") else 2]]
        angle = np.arctan2(z, x)
        errors.append(abs(np.angle(np.exp(1j * (angle - theta)))))
    # Order four: at 1 ms the crank, by then at 16 rad/s, is 3e-6 rad off; at 10 ms 0.08 rad.
    assert errors[0] < 0.1
    assert errors[1] < 1e-5


def test_reactions_of_a_hanging_chain_are_its_weights():
    s = System("chain", gravity=(0, 0, -10.0))
    upper = s.body("upper", mass=2.0, inertia=0.1, position=(0, 0, -0.5))
    lower = s.body("lower", mass=3.0, inertia=0.1, position=(0, 0, -1.5))
    s.revolute("top", s.ground, upper, at=(0, 0, 0), axis=(0, 1, 0))
    s.spherical("middle", lower, upper, at=(0, 0, -1.0))
    result = run(s, 0.01, ["top.force", "top.torque", "middle.force"])
    assert np.allclose(result["plant.top.force"][0], [0, 0, 50.0], atol=1e-10)
    assert np.allclose(result["plant.top.torque"][0], 0.0, atol=1e-10)
    # `middle` runs from the lower body to the upper one, which it pulls down by 30 N.
    assert np.allclose(result["plant.middle.force"][0], [0, 0, -30.0], atol=1e-10)


def test_reactions_are_the_same_wherever_the_loop_is_cut():
    """The wrist pin closes the loop; its force must balance the slider: m a = sum of forces."""
    result = run(
        slider_crank(drive="as listed"),
        1.0,
        ["wrist_pin.force", "slide.force", "slider.acceleration"],
    )
    acceleration = result["plant.slider.acceleration"]
    weight = np.array([0.0, 0.0, -4.0 * 9.80665])
    slide, pin = result["plant.slide.force"], result["plant.wrist_pin.force"]
    s: Any = slider_crank(drive="as listed")
    signs = [1.0 if s[n].second.body.name == "slider" else -1.0 for n in ("slide", "wrist_pin")]
    total = signs[0] * slide + signs[1] * pin + weight
    assert np.allclose(total, 4.0 * acceleration, atol=1e-8)


def test_a_tumbling_body_keeps_energy_and_angular_momentum():
    """Over 10^5 steps; the momentum in world axes is constant in all components."""
    s = System("tumbling", gravity=(0, 0, 0))
    inertia = np.diag([0.1, 0.2, 0.25])
    s.body("body", mass=1.0, inertia=inertia, angular_velocity=(0.5, 6.0, 0.2), free=True)
    result = run(s, 100.0, ["body.rotation", "body.angular_velocity", "kinetic_energy"], every=100)
    energy = result["plant.kinetic_energy"]
    assert np.ptp(energy) / energy[0] < 1e-8
    momenta = []
    for e, w in zip(
        result["plant.body.rotation"], result["plant.body.angular_velocity"], strict=True
    ):
        e0, v = e[0], e[1:]
        skew = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
        r = (2 * e0**2 - 1) * np.eye(3) + 2 * (np.outer(v, v) + e0 * skew)
        momenta.append(r @ inertia @ r.T @ w)
    assert np.abs(np.array(momenta) - momenta[0]).max() < 1e-7


def test_a_free_body_falls_as_galileo_says():
    s = System("falling", gravity=(0, 0, -9.81))
    s.body("stone", mass=2.0, inertia=0.1, velocity=(1.0, 2.0, 3.0), com=(0.1, 0.0, 0.0), free=True)
    result = run(s, 1.0, ["stone.position"])
    # The frame is not at the center of mass, but nothing turns it.
    assert np.allclose(result["plant.stone.position"][-1], [1.0, 2.0, 3.0 - 0.5 * 9.81], atol=1e-12)


def test_vitas_five_bar_runs_with_seven_redundant_constraints():
    result = run(five_bar(), 8.0, ["closure", *ENERGIES], mode="internal", every=10)
    assert result["plant.closure"].max() < 1e-12
    assert drift(result) < 1e-5 * np.abs(result["plant.potential_energy"]).max()


def test_a_cardan_joint_turns_as_its_law_says():
    """tan φ_out = tan φ_in / cos β, so ω_out = ω cos β / (1 - sin²β cos²(ωt)), from its start."""
    s = cardan()
    tree = grow_tree(s)
    assert tree.cuts
    names = [body.name for body in s.bodies]
    result = run(
        s, 2.0, ["closure", *(f"{name}.angular_velocity" for name in names)], mode="internal"
    )
    assert result["plant.closure"].max() < 1e-10
    speeds = {n: np.linalg.norm(result[f"plant.{n}.angular_velocity"], axis=1) for n in names}
    inward = [n for n in names if np.ptp(speeds[n]) < 1e-8]
    assert inward, "the driven fork turns at a constant speed"
    outward = max(names, key=lambda n: np.ptp(speeds[n]) if n not in inward else 0.0)
    beta = np.radians(10.0)
    omega = speeds[inward[0]][0]
    ratio = speeds[outward] / omega
    # Between cos β and 1 / cos β, whichever way the cross starts.
    assert ratio.min() == pytest.approx(np.cos(beta), rel=1e-3)
    assert ratio.max() == pytest.approx(1 / np.cos(beta), rel=1e-3)


def test_mcpherson_settles_into_a_stable_motion():
    """The tire's damper needs small steps of RK4: c/m is of the order of 3000 1/s."""
    result = run(mcpherson(), 2.0, ["closure", "wheel.position"], step=2e-4, every=10)
    assert result["plant.closure"].max() < 1e-10
    height = result["plant.wheel.position"][:, 2]
    late = height[result.t > 1.0]
    assert np.abs(late).max() < 0.2
    # It follows the road, 0.03 sin(5 π t).
    assert np.ptp(late) == pytest.approx(0.06, rel=0.3)


def test_an_input_drives_the_mechanism():
    s = pendulum_on_cart()
    with pytest.raises(DiagramError, match=r"no parameter `push.forc` to use as an input"):
        s.block(inputs=["push.forc"])
    plain = System("block", gravity=(0, 0, 0))
    body = plain.body("mass", mass=2.0, inertia=0.1)
    plain.prismatic("slide", plain.ground, body, at=(0, 0, 0), axis=(1, 0, 0))
    plain.force("push", body.marker("tip"), (3.0, 0.0, 0.0))
    result = run(plain, 1.0, ["slide.displacement"], inputs=["push.force.x"])
    assert result["plant.slide.displacement"][-1] == pytest.approx(0.5 * 3.0 / 2.0, abs=1e-12)
    d = Diagram()
    force = d.input("force", unit="N", default=8.0)
    plant = d.add(plain.block(["push.force.x"], ["slide.displacement"]), name="plant")
    d.connect(force, plant["push.force.x"])
    assert simulate(d, 1.0)["plant"][-1] == pytest.approx(2.0, abs=1e-12)


def test_a_driver_prescribes_motion_and_its_effort_is_shown():
    """A mass on a slide driven by 0.1 sin(2 t): the driver gives m a."""
    s = System("shaker", gravity=(0, 0, 0))
    body = s.body("table", mass=2.0, inertia=0.1)
    joint = s.prismatic("slide", s.ground, body, at=(0, 0, 0), axis=(0, 0, 1))
    s.driver("shake", joint, Sine(0.1, 2.0))
    result = run(s, 3.0, ["slide.displacement", "slide.speed", "shake.effort"])
    t = result.t
    assert np.allclose(result["plant.slide.displacement"], 0.1 * np.sin(2 * t), atol=1e-12)
    assert np.allclose(result["plant.slide.speed"], 0.2 * np.cos(2 * t), atol=1e-10)
    assert np.allclose(result["plant.shake.effort"], -2.0 * 0.4 * np.sin(2 * t), atol=1e-8)


def test_springs_dampers_and_moving_markers():
    """A mass on a spring and a damper whose other end moves: against the linear equation."""
    s = System("road", gravity=(0, 0, -9.81))
    body = s.body("mass", mass=2.0, inertia=0.1, position=(0, 0, 1.0))
    s.prismatic("guide", s.ground, body, at=(0, 0, 0), axis=(0, 0, 1))
    road = s.ground.marker("road", (0, 0, 0), motion={"z": Sine(0.02, 5.0)})
    s.spring("spring", road, body.marker("foot"), stiffness=500.0, damping=10.0, free_length=1.0)
    result = run(s, 3.0, ["mass.position"])

    def slope(t, y):
        z, v = y
        stretch = z - 0.02 * np.sin(5 * t) - 1.0
        rate = v - 0.1 * np.cos(5 * t)
        return v, -9.81 - (500.0 * stretch + 10.0 * rate) / 2.0

    exact = solve_ivp(slope, (0, 3), (1.0, 0.0), rtol=1e-11, atol=1e-12).y[0, -1]
    assert result["plant.mass.position"][-1, 2] == pytest.approx(exact, abs=1e-8)


def test_masses_can_be_set_before_a_run():
    s = slider_crank(drive="as listed")
    light = run(s, 0.5, ["crank.position"], parameters={"plant.slider.mass": 1.0})
    heavy = run(s, 0.5, ["crank.position"])
    assert abs(light["plant.crank.position"][-1, 0] - heavy["plant.crank.position"][-1, 0]) > 1e-3


@pytest.mark.parametrize(
    ("planar", "what", "value", "message"),
    [
        (True, "rod.mass", -1.0, "body `rod` has mass -1 kg: it must not be negative"),
        (False, "slider.mass", -0.5, "body `slider` has mass -0.5 kg: it must not be negative"),
        (True, "rod.inertia", -1e-3, "body `rod` has a negative moment of inertia"),
        (False, "rod.inertia", np.diag([1, 1, -1e-3]), "body `rod` has a negative moment"),
        # All elements on the diagonal are positive; about one axis between them it is -1.
        (False, "rod.inertia", [[1, 2, 0], [2, 1, 0], [0, 0, 1]], "body `rod` has a negative"),
        (False, "rod.inertia", [[1, 0, 0], [0, 1, 2], [0, 2, 1]], "body `rod` has a negative"),
    ],
)
@pytest.mark.parametrize("mode", ["continuous", "internal"])
def test_masses_that_no_body_has_are_refused_when_set_later(planar, what, value, message, mode):
    s = slider_crank(planar=planar)
    with pytest.raises(BlockError, match=message):
        run(s, 0.1, ["closure"], mode=mode, parameters={f"plant.{what}": value})


def test_masses_at_the_edge_of_what_a_body_has_are_taken():
    s = slider_crank(planar=False)
    thin = np.diag([0.1, 0.1, 0.0])
    turned = np.array([[0.6, 0.8, 0], [-0.8, 0.6, 0], [0, 0, 1]]) @ np.diag([0.1, 0.0, 0.1])
    for inertia in (thin, turned @ np.array([[0.6, -0.8, 0], [0.8, 0.6, 0], [0, 0, 1]])):
        run(s, 0.01, ["closure"], parameters={"plant.rod.inertia": inertia})


def test_positions_that_cannot_be_assembled_stop_the_run():
    s = System("apart", gravity=(0, 0, 0))
    a = s.body("a", mass=1.0, inertia=0.1, position=(0, 0, 0))
    b = s.body("b", mass=1.0, inertia=0.1, position=(5, 0, 0))
    s.revolute("left", s.ground, a, at=(0, 0, 0), axis=(0, 1, 0))
    s.revolute("right", s.ground, b, at=(5, 0, 0), axis=(0, 1, 0))
    s.spherical("meet", a.marker("tip", (1, 0, 0)), b.marker("tip", (-1, 0, 0)))
    with pytest.raises((BlockError, BiellaError)):
        run(s, 0.1, ["closure"])


def test_mistakes_teach():
    s = slider_crank()
    with pytest.raises(
        DiagramError, match=r"no output `crank.positon`.*Did you mean `crank.position`"
    ):
        s.block(outputs=["crank.positon"])
    with pytest.raises(DiagramError, match=r"'continuous' or 'internal'"):
        s.block(mode="fast")  # type: ignore[arg-type]
    with pytest.raises(DiagramError, match=r"cannot be an input"):
        s.block(inputs=["crank.mass"])


def test_an_input_law_is_a_port():
    s = System("cart", gravity=(0, 0, 0))
    body = s.body("cart", mass=1.0, inertia=0.1)
    s.prismatic("rail", s.ground, body, at=(0, 0, 0), axis=(1, 0, 0))
    s.force("motor", body.marker("m"), (Input("push", 2.0), 0.0, 0.0))
    block = s.block(outputs=["cart.position"])
    assert [port.name for port in block.inputs] == ["push"]


def test_the_factor_pattern_of_a_chain_has_no_fill():
    pattern = find_pattern(100, [[k, k + 1] for k in range(99)])
    assert len(pattern.column_of) == 99


def test_what_an_open_chain_needs_grows_with_its_links_alone():
    """It has no matrix; that of a chain with a closure is full, 1 + 2 + … entries."""

    def needs(links):
        s = System("chain", gravity=(0, -9.81), planar=True)
        body = s.ground
        for n in range(links):
            body, base = s.body(f"link{n}", mass=1.0, inertia=0.1, position=(n + 0.5, 0)), body
            s.revolute(f"pin{n}", base, body, at=(n, 0))
        assert [b.index for b in s.bodies] == list(range(links))
        block: Any = s.block(outputs=["link0.position"])
        sizes = kernel_sizes(
            block.kernel,
            inputs=[],
            outputs=[port.width for port in block.outputs],
            states=block.states,
            parameters=sum(item.value.size for item in block.parameters),
            integers=block.integers,
        )
        assert sizes is not None
        return np.array([len(block.integers), *sizes])

    few, more, most = needs(10), needs(20), needs(40)
    assert (most - more).tolist() == (2 * (more - few)).tolist()


@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_factor_pattern_of_a_full_matrix_is_full(n):
    pattern = find_pattern(n, [list(range(n))])
    assert len(pattern.row_of) == n * (n - 1) // 2
    assert pattern.permutation == [*range(n), *range(n)]


def test_leaves_as_an_fmu_with_the_same_bits(tmp_path):
    import fmpy

    d = Diagram("crank", step=1e-3)
    plant = d.add(
        slider_crank().block(["motor.torque"], ["main.angle", "main.speed"]), name="plant"
    )
    torque = d.input("torque", unit="N.m", default=10.0)
    d.connect(torque, plant["motor.torque"])
    d.output("angle", plant["main.angle"])
    path = d.export_fmu(tmp_path / "crank.fmu")
    outside = fmpy.simulate_fmu(str(path), stop_time=1.0, output_interval=0.01, output=["angle"])
    assert np.array_equal(outside["angle"], simulate(d, 1.0, every=10)["plant.main.angle"])


def test_what_is_tunable_acts_at_once_and_the_rest_says_that_it_is_fixed():
    """Parameters of a spring-mass on a slope: an FMU's description must not promise more."""
    s = System("slope", gravity=(0, -9.81, 0))
    block = s.body("block", mass=2.0, inertia=0.1)
    s.prismatic("slide", s.ground, block, at=(0, 0, 0), axis=(0.6, -0.8, 0))
    s.spring("spring", s.ground.marker("wall", (-1, 1, 0)), block.marker("hook"), stiffness=50.0)
    d = Diagram("slope", step=1e-3)
    d.add(s.block(outputs=["slide.acceleration"]), name="plant")
    plan = d.compile()
    tunable = [path for path, item in plan.parameters.items() if item.tunable]
    assert "plant.gravity" in tunable
    assert "plant.spring.stiffness" in tunable
    assert not any(path.startswith("plant.block.") for path in tunable)
    for path in tunable:
        with plan.instantiate() as run:
            run.run(10)
            before = float(run.get("plant.slide.acceleration"))
            run.set(path, 1.5 * np.asarray(run.get(path)) + 0.1)
            assert abs(float(run.get("plant.slide.acceleration")) - before) > 1e-3, path


def test_a_block_shows_by_default_what_an_fmu_shows(tmp_path):
    s = slider_crank()
    shown = [port.name for port in s.block().outputs]
    assert {"main.angle", "main.speed", "crank.position", "crank.rotation"} <= set(shown)
    path = s.export_fmu(tmp_path / "crank.fmu", sources=False)
    assert [port.name for port in Fmu(path).outputs] == shown
    assert s.block(outputs=[]).outputs == () and s.block([], []).outputs == ()
