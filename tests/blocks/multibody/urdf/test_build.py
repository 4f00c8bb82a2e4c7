"""Mechanisms from URDF files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray

from biella import Diagram, DiagramError
from biella.blocks.multibody import Body, EndStop, Friction, Marker, System

from .robots import DOUBLE, write

Array = NDArray[np.float64]
MOTION = ("position", "velocity", "angular_velocity", "acceleration", "angular_acceleration")
ARM = Path(__file__).parent / "arm.urdf"


def see(system: System, paths: list[str]) -> dict[str, Array]:
    diagram = Diagram("robot", step=1e-3)
    diagram.add(system.block(outputs=paths), name="plant")
    with diagram.compile().instantiate() as instance:
        return {path: np.array(instance.get(f"plant.{path}")) for path in paths}


def turn(axis: Array, angle: float) -> Array:
    """Rodrigues' rotation, by components."""
    x, y, z = axis
    c, s = np.cos(angle), np.sin(angle)
    k = 1 - c
    return np.array(
        [
            [c + x * x * k, x * y * k - z * s, x * z * k + y * s],
            [y * x * k + z * s, c + y * y * k, y * z * k - x * s],
            [z * x * k - y * s, z * y * k + x * s, c + z * z * k],
        ]
    )


def numbers(element: ElementTree.Element | None, attribute: str, default: str) -> Array:
    text = default if element is None else element.get(attribute, default)
    return np.array([float(token) for token in text.split()])


def origin(element: ElementTree.Element) -> Array:
    """The 4×4 matrix of an <origin>."""
    found = element.find("origin")
    made = np.eye(4)
    made[:3, 3] = numbers(found, "xyz", "0 0 0")
    for axis, angle in zip(np.eye(3), numbers(found, "rpy", "0 0 0"), strict=True):
        made[:3, :3] = turn(axis, angle) @ made[:3, :3]
    return made


QUARTER = np.sqrt(0.5)
POSITIONS: dict[str, Any] = {
    "drift": (0.3, 0.1, -0.2, QUARTER, 0.0, QUARTER, 0.0),
    "shoulder": 0.7,
    "elbow": -1.1,
    "extend": 0.25,
    "pitch": 0.4,
    "yaw": -2.0,
    "slide_about": (0.2, -0.3, 0.9),
}
VELOCITIES: dict[str, Any] = {
    "drift": (0.5, -0.4, 0.3, 1.0, -2.0, 0.7),
    "shoulder": 1.5,
    "elbow": -0.8,
    "extend": 0.6,
    "pitch": 2.0,
    "yaw": -1.2,
    "slide_about": (0.4, 0.9, -1.6),
}


def make_by_hand() -> System:
    """The arm link by link: 4×4 matrices for poses, twists about the world's origin for speeds.

    Nothing is merged: fixed joints are joints. The tool, which has no mass, is left out.
    """
    root = ElementTree.parse(ARM).getroot()
    s = System("by hand")
    bodies: dict[str, Body] = {"world": s.ground}
    poses, twists = {"world": np.eye(4)}, {"world": np.zeros(6)}
    for element in root.findall("joint"):
        name, kind = element.attrib["name"], element.attrib["type"]
        parent, child = (element.find(tag).attrib["link"] for tag in ("parent", "child"))  # type: ignore[union-attr]
        if name == "flange":
            continue
        base = poses[parent] @ origin(element)
        r, p = base[:3, :3], base[:3, 3]
        axis = numbers(element.find("axis"), "xyz", "1 0 0")
        axis = axis / np.linalg.norm(axis)
        q, v = np.atleast_1d(POSITIONS.get(name, 0.0)), np.atleast_1d(VELOCITIES.get(name, 0.0))
        move, twist = np.eye(4), twists[parent].copy()
        if kind in ("revolute", "continuous"):
            move[:3, :3] = turn(axis, q[0])
            twist += np.r_[np.cross(p, r @ axis), r @ axis] * v[0]
        elif kind == "prismatic":
            move[:3, 3] = axis * q[0]
            twist[:3] += r @ axis * v[0]
        elif kind == "planar":
            move[:2, 3], move[:3, :3] = q[:2], turn(axis, q[2])
            pivot, spin = (base @ move)[:3, 3], r @ axis * v[2]
            twist += np.r_[r[:, :2] @ v[:2] + np.cross(pivot, spin), spin]
        elif kind == "floating":
            # The Euler parameters above are a quarter of a turn about y.
            move[:3, 3], move[:3, :3] = q[:3], turn(np.array([0.0, 1.0, 0.0]), np.pi / 2)
            pivot, spin = (base @ move)[:3, 3], r @ v[3:]
            twist += np.r_[r @ v[:3] + np.cross(pivot, spin), spin]
        pose = base @ move
        poses[child], twists[child] = pose, twist
        inertial = root.find(f"link[@name='{child}']/inertial")
        mass, com, inertia = 0.0, np.zeros(3), np.zeros((3, 3))
        if inertial is not None:
            mass = numbers(inertial.find("mass"), "value", "")[0]
            own = origin(inertial)
            for i, j in np.ndindex(3, 3):
                key = "i" + "".join(sorted("xyz"[i] + "xyz"[j]))
                inertia[i, j] = numbers(inertial.find("inertia"), key, "")[0]
            com, inertia = own[:3, 3], own[:3, :3] @ inertia @ own[:3, :3].T
        bodies[child] = s.body(
            child,
            mass=mass,
            com=com,
            inertia=inertia,
            position=pose[:3, 3],
            rotation=pose[:3, :3],
            velocity=twist[:3] + np.cross(twist[3:], pose[:3, 3]),
            angular_velocity=twist[3:],
            free=kind == "floating",
        )
        ends = bodies[parent], bodies[child]
        if kind == "fixed":
            s.fixed(name, *ends, at=p)
        elif kind == "planar":
            s.planar_joint(name, *ends, at=p, axis=r @ axis)
        elif kind == "prismatic":
            s.prismatic(name, *ends, at=p, axis=r @ axis)
        elif kind != "floating":
            s.revolute(name, *ends, at=p, axis=r @ axis)
        dynamics = element.find("dynamics")
        if dynamics is not None:
            viscous, coulomb = (numbers(dynamics, what, "0")[0] for what in ("damping", "friction"))
            joint = s.joints[-1]
            s.friction(
                f"{name}_friction", joint, viscous=viscous, coulomb=coulomb, smoothing_speed=0.5
            )
    return s


@pytest.mark.engine
def test_an_arm_moves_like_one_made_by_hand() -> None:
    s = System.from_urdf(ARM, positions=POSITIONS, velocities=VELOCITIES, smoothing_speed=0.5)
    assert s.name == "arm"
    assert [b.name for b in s.bodies] == [
        "pedestal", "puck", "upper", "forearm", "ram", "cross", "hand",
    ]  # fmt: skip
    paths = [f"{body.name}.{what}" for body in s.bodies for what in MOTION]
    seen, expected = see(s, paths), see(make_by_hand(), paths)
    size = max(np.abs(value).max() for value in expected.values())
    assert size > 10.0
    for path in paths:
        assert seen[path] == pytest.approx(expected[path], rel=0, abs=1e-13 * size), path


@pytest.mark.engine
def test_joints_start_where_they_were_placed() -> None:
    s = System.from_urdf(ARM, positions=POSITIONS, velocities=VELOCITIES)
    single = ("shoulder", "elbow", "pitch", "yaw")
    paths = [f"{name}.{what}" for name in single for what in ("angle", "speed")]
    paths += ["extend.displacement", "extend.speed", "slide_about.angle"]
    paths += ["slide_about.displacement_1", "slide_about.displacement_2_speed", "closure"]
    seen = {path: float(value) for path, value in see(s, paths).items()}
    for name in single:
        assert seen[f"{name}.angle"] == pytest.approx(POSITIONS[name], abs=1e-14)
        assert seen[f"{name}.speed"] == pytest.approx(VELOCITIES[name], abs=1e-14)
    assert seen["extend.displacement"] == pytest.approx(0.25, abs=1e-14)
    assert seen["extend.speed"] == pytest.approx(0.6, abs=1e-14)
    assert seen["slide_about.displacement_1"] == pytest.approx(0.2, abs=1e-14)
    assert seen["slide_about.displacement_2_speed"] == pytest.approx(0.9, abs=1e-14)
    assert seen["slide_about.angle"] == pytest.approx(0.9, abs=1e-14)
    assert seen["closure"] < 1e-14


@pytest.mark.engine
def test_a_planar_joint_lies_normal_to_its_axis(tmp_path: Path) -> None:
    text = DOUBLE.replace('"continuous"', '"planar"').replace('xyz="0 1 0"', 'xyz="1 2 -2"')
    s = System.from_urdf(
        write(tmp_path, text),
        positions={"top": (0.4, -0.7, 1.2)},
        velocities={"top": (0.3, 0.5, -0.9)},
    )
    assert s.bodies[0].position @ [1, 2, -2] == pytest.approx(0.0, abs=1e-15)
    assert np.linalg.norm(s.bodies[0].position) == pytest.approx(np.hypot(0.4, 0.7), abs=1e-15)
    paths = ["displacement_1", "displacement_2", "angle"]
    paths += [f"{path}_speed" for path in paths]
    seen = see(s, [f"top.{path}" for path in paths] + ["closure"])
    values = [float(seen[f"top.{path}"]) for path in paths]
    assert values == pytest.approx([0.4, -0.7, 1.2, 0.3, 0.5, -0.9], abs=1e-14)
    assert seen["closure"] < 1e-14


@pytest.mark.engine
def test_a_double_pendulum_has_its_closed_form(tmp_path: Path) -> None:
    """Lagrange's equations in the angles θ1, θ2 from the vertical.

    (J1 + m1 c1² + m2 l²) θ1" + m2 l c2 cos(θ1-θ2) θ2" + m2 l c2 sin(θ1-θ2) θ2'²
        + (m1 c1 + m2 l) g sin θ1 = 0, and
    (J2 + m2 c2²) θ2" + m2 l c2 cos(θ1-θ2) θ1" - m2 l c2 sin(θ1-θ2) θ1'² + m2 c2 g sin θ2 = 0.
    """
    q, v = {"top": 0.8, "knee": -1.3}, {"top": 1.1, "knee": 2.3}
    s = System.from_urdf(write(tmp_path, DOUBLE), gravity=(0, 0, -9.81), positions=q, velocities=v)
    m1, c1, j1, length, m2, c2, j2, g = 2.0, 0.3, 0.06, 0.7, 1.5, 0.2, 0.04, 9.81
    one, two = q["top"], q["top"] + q["knee"]
    w1, w2 = v["top"], v["top"] + v["knee"]
    k, between = m2 * length * c2, one - two
    matrix = np.array(
        [
            [j1 + m1 * c1**2 + m2 * length**2, k * np.cos(between)],
            [k * np.cos(between), j2 + m2 * c2**2],
        ]
    )
    right = [
        -k * np.sin(between) * w2**2 - (m1 * c1 + m2 * length) * g * np.sin(one),
        k * np.sin(between) * w1**2 - m2 * c2 * g * np.sin(two),
    ]
    first, second = np.linalg.solve(matrix, right)
    seen = see(s, ["top.acceleration", "knee.acceleration"])
    assert float(seen["top.acceleration"]) == pytest.approx(first, rel=1e-13)
    assert float(seen["knee.acceleration"]) == pytest.approx(second - first, rel=1e-13)


def test_one_link_is_one_body_to_the_bit(tmp_path: Path) -> None:
    s = System.from_urdf(write(tmp_path, DOUBLE))
    a, b = s.bodies
    assert (a.mass, b.mass) == (2.0, 1.5)
    assert a.com.tolist() == [0.0, 0.0, -0.3]
    assert np.array_equal(b.inertia, np.diag([0.03, 0.04, 0.01]))
    assert b.position.tolist() == [0.0, 0.0, -0.7]


def test_limits_are_stops_if_they_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, DOUBLE)
    assert not System.from_urdf(path).elements
    for stiffness in (500.0, {"knee": 500.0}):
        (stop,) = System.from_urdf(path, stop_stiffness=stiffness, stop_damping=3.0).elements
        assert isinstance(stop, EndStop)
        assert (stop.name, stop.joint.name) == ("knee_stop", "knee")
        assert (stop.lower, stop.upper, stop.stiffness, stop.damping) == (-2.0, 2.5, 500.0, 3.0)
    assert not System.from_urdf(path, stop_stiffness={}).elements
    with pytest.raises(DiagramError, match=r"`stop_stiffness` has `top`.* has limits"):
        System.from_urdf(path, stop_stiffness={"top": 1.0})
    for wrong, told in (("", "lower=0 and upper=0"), ('lower="1" upper="-1"', "lower=1 and")):
        shut = write(tmp_path, DOUBLE.replace('lower="-2" upper="2.5"', wrong))
        System.from_urdf(shut)
        with pytest.raises(DiagramError, match=rf"line 9: joint `knee` has limits at {told}"):
            System.from_urdf(shut, stop_stiffness=1.0)


def test_dynamics_are_friction() -> None:
    found = {one.name: one for one in System.from_urdf(ARM, smoothing_speed=0.01).elements}
    assert set(found) == {"shoulder_friction", "elbow_friction", "extend_friction"}
    one = found["extend_friction"]
    assert isinstance(one, Friction)
    assert (one.viscous, one.coulomb, one.smoothing_speed) == (5.0, 2.0, 0.01)


def test_welded_links_are_markers_and_their_masses_one() -> None:
    s = System.from_urdf(ARM)
    assert isinstance(s["hand.tool"], Marker)
    assert isinstance(s["ground.world"], Marker)
    pedestal = s["pedestal"]
    assert isinstance(pedestal, Body)
    assert pedestal.mass == 23.5
    assert s["hand.tool"].position.tolist() == [0.0, 0.02, 0.15]


def test_a_free_base_flies(tmp_path: Path) -> None:
    text = DOUBLE.replace('<link name="base"/>', "")
    text = re.sub(r'<joint name="top".*?</joint>', "", text, flags=re.DOTALL)
    place = (1.0, 2.0, 3.0, 0.0, 1.0, 0.0, 0.0)
    s = System.from_urdf(
        write(tmp_path, text),
        base="free",
        positions={"a": place},
        velocities={"a": (1, 0, 0, 0, 0, 2)},
    )
    a, b = s.bodies
    assert a.free and not b.free
    assert a.position.tolist() == [1.0, 2.0, 3.0]
    # Half a turn about x puts the knee above.
    assert b.position == pytest.approx(np.array([1.0, 2.0, 3.7]), abs=1e-15)
    assert a.angular_velocity.tolist() == b.angular_velocity.tolist() == [0.0, 0.0, 2.0]
    s.validate()


def test_names_that_are_taken_are_made_longer(tmp_path: Path) -> None:
    text = DOUBLE.replace('"knee"', '"b"').replace('"a"', '"mass"')
    s = System.from_urdf(write(tmp_path, text))
    assert [part.name for part in s.bodies] == ["mass_link", "b"]
    assert [part.name for part in s.joints] == ["top", "b_joint"]


def test_motion_that_overflows_as_it_starts_has_no_largest_step() -> None:
    s = System("arm")
    bar = s.body("bar", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0.5, 0.0, 0.0))
    s.revolute("pivot", s.ground, bar, at=(0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
    s.spring("k", bar.marker("end"), s.ground.marker("hook", (0, 0, 1)), stiffness=1.7e308)
    with pytest.raises(DiagramError, match=r"motion of `arm` overflow as it starts.*kg"):
        s.largest_stable_step()


def test_an_end_without_mass_is_reported(tmp_path: Path) -> None:
    text = re.sub(r'<link name="b">.*?</link>', '<link name="b"/>', DOUBLE, flags=re.DOTALL)
    with pytest.raises(DiagramError, match=r"line 5: link `b` has no mass.*ends a chain"):
        System.from_urdf(write(tmp_path, text))
    with pytest.raises(DiagramError, match=r"line 2: link `base` has no mass.*base='fixed'"):
        System.from_urdf(write(tmp_path, DOUBLE), base="free")


def test_wrong_options_are_reported(tmp_path: Path) -> None:
    path = write(tmp_path, DOUBLE)
    with pytest.raises(DiagramError, match=r"`positions` has `knees`.*Did you mean `knee`"):
        System.from_urdf(path, positions={"knees": 1.0})
    with pytest.raises(DiagramError, match=r"`velocities` of `knee`, a revolute joint, has 1 num"):
        System.from_urdf(path, velocities={"knee": (1.0, 2.0)})
    with pytest.raises(DiagramError, match="`stop_damping` is given without `stop_stiffness`"):
        System.from_urdf(path, stop_damping=1.0)
    with pytest.raises(DiagramError, match="`base` is 'fixed' or 'free', got 'flying'"):
        System.from_urdf(path, base="flying")  # type: ignore[arg-type]
    with pytest.raises(DiagramError, match=r"from_urdf has no keyword `position`.*`positions`"):
        System.from_urdf(path, position={})  # type: ignore[call-arg]
    with pytest.raises(DiagramError, match=r"cannot read the URDF file .*nowhere.urdf: No such"):
        System.from_urdf(tmp_path / "nowhere.urdf")
