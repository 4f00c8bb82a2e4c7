"""Report, assembly, kinematics, equilibrium, inverse dynamics and modes, against closed forms."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from biella import Diagram, DiagramError, simulate
from biella.blocks.multibody import Body, Formula, Input, Joint, Linear, Sine, System, Table
from biella.blocks.multibody.mechanisms import (
    cardan,
    five_bar,
    four_bar,
    mcpherson,
    slider_crank,
)

pytestmark = pytest.mark.engine

G = 9.81


def run(system, until, outputs, *, step=1e-3, parameters=None, every=1):
    d = Diagram("mechanism", step=step)
    d.add(system.block(outputs=outputs), name="plant")
    return simulate(d, until, every=every, parameters=parameters or {})


# -- report


@pytest.mark.parametrize(
    ("system", "freedom", "rows", "redundant"),
    [
        (five_bar(), 1, 30, 7),
        (slider_crank(), 1, 19, 2),
        (cardan(), 0, 31, 13),
        (mcpherson(), 4, 26, 0),
        (four_bar(3), 1, 20, 0),
        (four_bar(3, planar=False), 1, 50, 9),
    ],
    ids=lambda item: item.name if isinstance(item, System) else "",
)
def test_report_counts_what_is_redundant_and_names_the_joints(system, freedom, rows, redundant):
    report = system.report()
    assert (report.freedom, report.rows, report.redundant) == (freedom, rows, redundant)
    assert report.mobility == freedom - redundant
    assert report.rank == rows - redundant
    # The smallest singular value that counts is far above the threshold, the next far below.
    assert report.gap[0] > 1e-3 > report.threshold > 1e-12 > report.gap[1]
    assert sum(map(len, report.dependent.values())) == redundant
    assert set(report.dependent) <= {joint.name for joint in system.joints}
    assert set(report.not_unique).isdisjoint(report.unique)
    assert bool(report.not_unique) == bool(redundant)
    text = str(report)
    assert f"{redundant} redundant" in text
    assert ("not unique" in text) == bool(redundant)
    for name in report.dependent:
        assert f"`{name}`" in text


def test_report_separates_unique_reactions_from_shared_ones():
    """A pendulum under the slider hangs on one joint only; a five-bar shares all its forces."""
    s = slider_crank()
    bob = s.body("bob", mass=1.0, inertia=0.1, position=(2.57793547, 0.0, -1.0))
    s.revolute("hook", cast(Body, s["slider"]), bob, at=(2.57793547, 0.0, 0.0), axis=(0, 1, 0))
    report = s.report()
    assert report.unique == ("hook",)
    # The two redundant rows hold the plane: what they share at the pivot acts out of it.
    assert set(report.not_unique["main"]) == {"Fy", "Tz"}
    assert cardan().report().unique == ("drive",)


def test_report_warns_of_drivers_that_contradict_each_other():
    s = four_bar()
    s.driver("left", cast(Joint, s["foot0"]), Linear(np.pi / 2, 1.0))
    s.driver("right", cast(Joint, s["foot1"]), Linear(np.pi / 2, 2.0))
    report = s.report()
    assert not report.consistent
    assert "contradict" in str(report)
    assert report.not_unique["left"] == ["effort"]


# -- assembly


def loose_four_bar(reach):
    """Three bars of 1 m, given apart from each other, between feet `reach` apart."""
    s = System("linkage", (0, -G), planar=True)
    a = s.body("crank", mass=1, inertia=1, position=(0, 0.5), rotation=np.pi / 2)
    b = s.body("coupler", mass=1, inertia=1, position=(0.5, 1))
    c = s.body("rocker", mass=1, inertia=1, position=(reach - 1, 0.5), rotation=np.pi / 2)
    s.revolute("foot", s.ground.marker("a"), a.marker("foot", (-0.5, 0)))
    s.revolute("knee", a.marker("top", (0.5, 0)), b.marker("left", (-0.5, 0)))
    s.revolute("hinge", b.marker("right", (0.5, 0)), c.marker("top", (0.5, 0)))
    s.revolute("heel", s.ground.marker("b", (reach, 0)), c.marker("foot", (-0.5, 0)))
    return s


def test_assembly_closes_joints_that_were_given_open():
    s = loose_four_bar(1.5)
    assembly = s.assemble()
    assert assembly.error < 1e-12
    assert str(assembly.gaps["heel"]) == "1 m"
    assert set(assembly.gaps) == {"heel", "hinge"}
    assert 0.1 < assembly.correction < 1.5
    pins = []
    for name, end in (("crank", 0.5), ("coupler", -0.5), ("coupler", 0.5), ("rocker", 0.5)):
        body = assembly[name]
        pins.append(body.position + end * body.rotation[:, 0])
    assert np.allclose(pins[0], pins[1], atol=1e-11)
    assert np.allclose(pins[2], pins[3], atol=1e-11)
    assert assembly.poses.positions.shape == (1, 3, 3)
    assert "`heel` was open by 1 m" in str(s.report())


def test_a_large_mechanism_closes_to_the_digits_it_has():
    """A crank of 1 km, given 10 m off, on a rod of 3 km: 1e-12 m is beyond its numbers."""
    s = System("crane", (0, -G), planar=True)
    crank = s.body("crank", mass=1, inertia=1, position=(500.0, 10.0))
    s.revolute("foot", s.ground.marker("foot"), crank.marker("foot", (-500.0, 0)))
    far = s.ground.marker("far", (4000.0, 100.0))
    s.distance("rope", far, crank.marker("tip", (500.0, 0)), length=3020.0)
    assert s.assemble().error < 1e-6  # of a squared length of 1e7 m²
    s.block()


def test_a_linkage_that_is_too_short_names_the_joint_and_its_gap():
    """Bars of 3 m in all between feet 4 m apart: one meter is missing, whatever the pose."""
    s = loose_four_bar(4.0)
    for make in (s.assemble, s.block):
        with pytest.raises(DiagramError) as caught:
            make()
        text = str(caught.value)
        assert "open by 1 m" in text
        named = [name for name in ("foot", "knee", "hinge", "heel") if f"`{name}` of" in text]
        assert len(named) == 1
        # The others of the loop are named as the places to look at.
        assert all(f"`{name}`" in text for name in ("foot", "knee", "hinge", "heel"))


def test_a_pose_that_an_input_chooses_is_left_to_the_run():
    s = slider_crank(planar=True)
    s.driver("push", cast(Joint, s["slide"]), Input("place"))
    with pytest.raises(DiagramError, match="open by"):
        s.assemble()  # the default, 0, is out of reach
    assert s.block().inputs


def test_a_distance_that_cannot_be_reached_is_told_in_meters():
    s = System("rods", (0, 0, -G))
    bob = s.body("bob", mass=1, inertia=1, position=(1, 0, 0), free=True)
    for name, x in (("left", 0.0), ("right", 5.0)):
        s.distance(name, s.ground.marker(name, (x, 0, 0)), bob.marker(name), length=1.0)
    with pytest.raises(DiagramError, match="open by"):
        s.assemble()


def test_velocities_that_joints_forbid_are_projected_and_reported():
    """A point mass on a rod keeps only the part of its velocity across the rod."""
    s = System("pendulum", (0, -G), planar=True)
    bob = s.body("bob", mass=2.0, inertia=0.0, position=(1, 0), velocity=(3, 4))
    s.revolute("pin", s.ground, bob, at=(0, 0))
    assembly = s.assemble()
    assert np.allclose(assembly["bob"].velocity, [0, 4, 0], atol=1e-9)
    assert assembly["bob"].angular_velocity[2] == pytest.approx(4.0, abs=1e-9)
    assert assembly.velocity_correction == pytest.approx(3.0, abs=1e-9)
    assert "those given are impossible" in str(s.report())


# -- kinematics


def driven_slider_crank(speed=3.0):
    s = slider_crank(planar=True, drive="none")
    # The crank is given at 45°, so that joint angle 0 is there.
    s.driver("drive", cast(Joint, s["main"]), Linear(0.0, speed))
    return s


def slider_formula(t, speed):
    """x = cos θ + √(4 - sin² θ), and its rates by hand; crank 1 m, rod 2 m."""
    theta = np.pi / 4 + speed * t
    sin, cos = np.sin(theta), np.cos(theta)
    root = np.sqrt(4.0 - sin**2)
    rate = -sin - sin * cos / root
    bend = -cos - (cos**2 - sin**2) / root - (sin * cos) ** 2 / root**3
    return cos + root, rate * speed, bend * speed**2


def test_slider_crank_follows_its_formula_through_two_turns():
    times = np.linspace(0.0, 4.0, 41)
    motion = driven_slider_crank().kinematics(times)
    x, v, a = slider_formula(times, 3.0)
    # The printed lengths are right to 1e-8 m; rates multiply that by 3 and by 9.
    assert np.allclose(motion["slider.position"][:, 0], x, atol=5e-8)
    assert np.allclose(motion["slider.velocity"][:, 0], v, atol=2e-7)
    assert np.allclose(motion["slider.acceleration"][:, 0], a, atol=1e-6)
    assert np.allclose(motion["main.angle"], 3.0 * times, atol=1e-10)
    assert np.allclose(motion["main.angle_speed"], 3.0, atol=1e-10)
    assert not motion.not_unique


def test_a_frame_away_from_the_center_of_mass_moves_as_a_point_of_its_body():
    """On a wheel at θ = t²: position r e(θ), acceleration -r θ'² e + r θ'' e'."""
    s = System("wheel", (0, 0, 0))
    wheel = s.body("wheel", mass=1.0, inertia=0.1, com=(-0.2, 0.1, 0.3), position=(0.5, 0, 0))
    hub = s.revolute("hub", s.ground, wheel, at=(0, 0, 0), axis=(0, 0, 1))
    s.driver("drive", hub, Formula("t**2"))
    times = np.array([0.0, 0.7, 3.0])
    motion = s.kinematics(times)
    cos, sin, zero = np.cos(times**2), np.sin(times**2), 0 * times
    along, across = np.array([cos, sin, zero]).T, np.array([-sin, cos, zero]).T
    speed = 2.0 * times[:, None]
    assert np.allclose(motion["wheel.position"], 0.5 * along, atol=1e-10)
    assert np.allclose(motion["wheel.velocity"], 0.5 * speed * across, atol=1e-9)
    exact = -0.5 * speed**2 * along + 0.5 * 2.0 * across
    assert np.allclose(motion["wheel.acceleration"], exact, atol=1e-8)
    assert np.allclose(motion["hub.angle"], times**2, atol=1e-10)


def test_driver_effort_balances_power():
    """effort · speed = d/dt (kinetic energy) - power of weight, from the motion alone."""
    s = driven_slider_crank()
    times = np.linspace(0.1, 2.0, 20)
    motion = s.kinematics(times)
    power = np.zeros(times.size)
    for body in s.bodies:
        v, a = motion[f"{body.name}.velocity"], motion[f"{body.name}.acceleration"]
        omega = motion[f"{body.name}.angular_velocity"][:, 2]
        alpha = motion[f"{body.name}.angular_acceleration"][:, 2]
        power += body.mass * ((v * (a - s.gravity)).sum(1)) + body.inertia[2, 2] * omega * alpha
    assert np.allclose(motion.efforts["drive"] * 3.0, power, atol=1e-9)
    assert np.array_equal(motion["drive.effort"], motion.efforts["drive"])


def test_kinematics_has_the_paths_and_values_of_the_engine():
    s = driven_slider_crank()
    engine = run(s, 1.0, [
        "rod.position", "rod.velocity", "rod.acceleration", "rod.angular_acceleration",
        "main.angle", "main.force", "wrist_pin.force", "drive.effort",
    ], every=100)  # fmt: skip
    motion = s.kinematics(engine.t)
    for path in ("rod.position", "rod.velocity", "rod.acceleration", "rod.angular_acceleration",
                 "main.angle", "main.force", "wrist_pin.force", "drive.effort"):  # fmt: skip
        # Forces are some 100 N; the engine closes its loops to 1e-12 m.
        assert np.allclose(motion[path], engine[f"plant.{path}"], rtol=1e-7, atol=1e-7), path


def test_cardan_joint_turns_as_its_formula_says():
    """tan φ_out = cos β tan φ_in between forks, with 13 redundant equations."""
    beta = np.radians(30.0)
    times = np.linspace(0.0, 6.0, 31)
    motion = cardan(beta, 2.0).kinematics(times)
    exact = np.unwrap(np.arctan2(np.sin(2.0 * times) * np.cos(beta), np.cos(2.0 * times)))
    assert np.allclose(motion["output_shaft.angle"], exact, atol=1e-11)
    assert "drive" not in motion.not_unique
    assert "output_left" in motion.not_unique


def test_kinematics_refuses_freedom_and_places_out_of_reach():
    with pytest.raises(DiagramError, match=r"1 degrees of freedom.*`main.angle`"):
        slider_crank(planar=True).kinematics([0.0])
    s = slider_crank(planar=True)
    s.driver("push", cast(Joint, s["slide"]), Linear(2.57793547, 1.0))
    with pytest.raises(DiagramError, match=r"cannot follow its drivers beyond t = 0\.4|singular"):
        s.kinematics([1.0])
    with pytest.raises(DiagramError, match="must rise"):
        driven_slider_crank().kinematics([1.0, 0.0])
    with pytest.raises(KeyError, match=r"Did you mean `slider.position`"):
        driven_slider_crank().kinematics([0.0])["slider.positon"]


# -- inverse dynamics and static efforts


def arm(*, gravity=(0, 0, -G), second_axis=(0, 1, 0)):
    """A shoulder about z and an elbow about `second_axis`, with offset centers of mass."""
    s = System("arm", gravity)
    upper = s.body("upper", mass=3.0, inertia=(0.02, 0.1, 0.1), com=(0.4, 0.02, 0.0))
    lower = s.body(
        "lower", mass=2.0, inertia=(0.01, 0.05, 0.06), com=(0.3, 0, 0.05), position=(0.8, 0, 0)
    )
    s.revolute("shoulder", s.ground, upper, at=(0, 0, 0), axis=(0, 0, 1))
    # The lower arm is the first end here, so that the tree runs against the joint.
    s.revolute("elbow", lower, upper, at=(0.8, 0, 0), axis=second_axis)
    s.friction("grease", cast(Joint, s["elbow"]), viscous=0.3)
    lower.marker("hand", (0.6, 0, 0))
    return s


def test_inverse_dynamics_of_one_link_is_its_equation():
    """(J + m l²) θ'' + m g l cos θ."""
    s = System("link", (0, -G), planar=True)
    link = s.body("link", mass=2.0, inertia=0.3, position=(0.5, 0))
    s.revolute("pin", s.ground, link, at=(0, 0))
    times = np.linspace(0, 2, 9)
    found = s.inverse_dynamics({"pin.angle": Sine(0.7, 3.0)}, times).efforts["pin.angle"]
    theta, turning = 0.7 * np.sin(3 * times), -6.3 * np.sin(3 * times)
    assert np.allclose(found, (0.3 + 0.5) * turning + 2 * G * 0.5 * np.cos(theta), atol=1e-10)


def test_efforts_of_inverse_dynamics_give_the_motion_back():
    """The engine, driven by the efforts, moves as prescribed."""
    motion = {"shoulder": Formula("0.6*(1-cos(2*t))"), "elbow.angle": Formula("0.4*(cos(3*t)-1)")}
    times = np.linspace(0.0, 1.0, 101)
    found = arm().inverse_dynamics(motion, times)
    s = arm()
    for path, name in (("shoulder", "first"), ("elbow.angle", "second")):
        law = Table(times, found.efforts[path], "cubic")
        s.torque(name, s[path.partition(".")[0]], law)
    result = run(s, 1.0, ["shoulder.angle", "elbow.angle"], every=100)
    t = result.t
    # Splines of 10 ms miss torques of some 10 N m by 1e-8; RK4 at 1 ms adds less than 1e-9 rad.
    assert np.allclose(result["plant.shoulder.angle"], 0.6 * (1 - np.cos(2 * t)), atol=1e-7)
    assert np.allclose(result["plant.elbow.angle"], 0.4 * (np.cos(3 * t) - 1), atol=1e-7)
    assert len(arm().drivers) == 0


def test_inverse_dynamics_names_coordinates_that_do_not_exist():
    with pytest.raises(DiagramError, match=r"`sholder.angle`.*Did you mean `shoulder.angle`"):
        arm().inverse_dynamics({"sholder.angle": 0.0}, [0.0])
    with pytest.raises(DiagramError, match=r"1 degrees of freedom.*`elbow.angle`"):
        arm().inverse_dynamics({"shoulder.angle": 0.0}, [0.0])


def test_static_torques_of_a_planar_arm_are_minus_j_transpose_f():
    a1, a2, l1, l2 = 0.4, -0.9, 0.8, 0.5
    s = System("2R", (0, -G), planar=True)
    elbow = l1 * np.array([np.cos(a1), np.sin(a1)])
    first = s.body("first", mass=1.0, inertia=0.1, rotation=a1)
    second = s.body("second", mass=1.0, inertia=0.1, position=elbow, rotation=a1 + a2)
    s.revolute("shoulder", s.ground, first, at=(0, 0))
    s.revolute("elbow", first, second, at=elbow)
    second.marker("tip", (l2, 0))
    sin, cos = np.sin([a1, a1 + a2]), np.cos([a1, a1 + a2])
    jacobian = np.array(
        [[-l1 * sin[0] - l2 * sin[1], -l2 * sin[1]], [l1 * cos[0] + l2 * cos[1], l2 * cos[1]]]
    )
    force = np.array([3.0, -7.0])
    found = s.static_efforts({"second.tip": force}, {"second": 2.0})
    assert list(found) == ["shoulder.angle", "elbow.angle"]
    assert np.allclose(list(found.values()), -jacobian.T @ force - 2.0, atol=1e-12)


def test_static_efforts_hold_the_weight_as_inverse_dynamics_says():
    s = arm(gravity=(1.0, -2.0, -G), second_axis=(0, 1, 0))
    s.force("load", s["lower.hand"], (4, -3, 2))
    held = s.static_efforts({"lower.hand": (4, -3, 2)}, weight=True)
    dynamic = s.inverse_dynamics({"shoulder": 0.0, "elbow": 0.0}, [0.0]).efforts
    assert held["shoulder.angle"] == pytest.approx(dynamic["shoulder"][0], abs=1e-10)
    assert held["elbow.angle"] == pytest.approx(dynamic["elbow"][0], abs=1e-10)
    assert abs(held["elbow.angle"]) > 1.0
    with pytest.raises(DiagramError, match="has loops"):
        four_bar().static_efforts()


# -- equilibrium


def sprung_pendulum(stiffness, angle=0.0):
    """A bob of 1 kg on 1 m, upright at angle 0, with a spring at the pin."""
    s = System("pendulum", (0, -G), planar=True)
    place = (-np.sin(angle), np.cos(angle))
    bob = s.body("bob", mass=1.0, inertia=0.2, position=place, rotation=angle)
    pin = s.revolute("pin", s.ground.marker("pin"), bob.marker("pin", (0, -1)))
    s.torsional_spring("spring", pin, stiffness=stiffness)
    return s


def test_a_soft_spring_lets_an_upright_pendulum_buckle():
    """k θ = m g l sin θ: upright is unstable for k < m g l, and there are two others."""
    upright = sprung_pendulum(5.0).equilibrium()
    assert upright.stability == "unstable"
    assert upright.iterations == 0
    # K / M = (k - m g l) / (J + m l²)
    assert upright.stiffnesses == pytest.approx([(5.0 - G) / 1.2], rel=1e-6)
    bent = sprung_pendulum(5.0, 0.1).equilibrium()
    theta = np.arctan2(-bent["bob"].position[0], bent["bob"].position[1])
    assert bent.stability == "stable"
    assert 5.0 * theta == pytest.approx(G * np.sin(theta), abs=1e-7)
    assert theta > 1.0
    assert sprung_pendulum(20.0, 0.5).equilibrium().stability == "stable"
    # The pin carries the weight.
    assert np.allclose(bent.reactions["pin"].force_j, [0, G, 0], atol=1e-7)


def test_mcpherson_rests_where_the_engine_comes_to_rest():
    s = mcpherson()
    found = s.equilibrium()
    assert found.stability == "neutral"  # wheel, tie rod and top mount spin freely
    d = Diagram("rest", step=2e-4)
    d.add(s.block(outputs=["wheel.position", "strut.position"]), name="plant")
    still = {"plant.ground.road.z.amplitude": 0.0}
    result = simulate(d, 6.0, every=1000, parameters=still)
    # Travel creeps back as exp(-2.83 t): 4e-8 of the 6 mm are left after six seconds.
    for name in ("wheel", "strut"):
        assert np.allclose(result[f"plant.{name}.position"][-1], found[name].position, atol=1e-8)


def test_a_cart_that_nothing_holds_has_no_equilibrium():
    s = System("cart", (0, -G), planar=True)
    cart = s.body("cart", mass=1.0, inertia=1.0)
    s.prismatic("slide", s.ground, cart, at=(0, 0), axis=(1, 0))
    s.force("wind", cart.marker("sail"), (1.0, 0.0))
    with pytest.raises(DiagramError, match=r"no equilibrium.*`cart` is pushed"):
        s.equilibrium()


# -- small motions


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
