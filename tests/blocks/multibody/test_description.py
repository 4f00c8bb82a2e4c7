"""Describing a mechanism: data, the errors that teach, and the counts of ready mechanisms."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from biella import DiagramError
from biella.blocks.core.formula._formula import FUNCTIONS, Number, read_formula
from biella.blocks.multibody import (
    Body,
    Constant,
    Formula,
    Input,
    Joint,
    Linear,
    Load,
    Marker,
    Sine,
    System,
    Table,
    mechanisms,
)
from biella.blocks.multibody.system._joints import PLANAR, SPATIAL, Coordinate, Row
from biella.blocks.multibody.system._laws import AbstractLaw
from biella.blocks.multibody.system._rotations import (
    frame_along,
    quaternion_from_rotation,
    rotation_about,
    rotation_from_quaternion,
    skew,
)

Array = NDArray[np.float64]


class Pose:
    """Positions and rotations of all bodies, moved by small steps; an oracle of its own."""

    def __init__(self, system: System, step: Array | None = None, t: float = 0.0) -> None:
        self.t = t
        size = 3 if system.planar else 6
        self.where = {"ground": (np.zeros(3), np.eye(3), 0.0)}
        for n, body in enumerate(system.bodies):
            move = np.zeros(6)
            if step is not None:
                part = step[size * n : size * (n + 1)]
                move[[0, 1, 5] if system.planar else slice(None)] = part
            angle = float(np.linalg.norm(move[3:]))
            turn = rotation_about(move[3:] / angle, angle) if angle else np.eye(3)
            self.where[body.name] = (body.position + move[:3], turn @ body.rotation, move[5])

    def point(self, marker: Marker) -> Array:
        position, rotation, _ = self.where[marker.body.name]
        return position + rotation @ marker.place(self.t)[0]

    def axis(self, joint: Joint, name: str) -> Array:
        marker, frame = {"i": (joint.first, joint.frame_i), "j": (joint.second, joint.frame_j)}[
            name[2]
        ]
        return self.where[marker.body.name][1] @ frame[:, "fgh".index(name[0])]

    def row(self, joint: Joint, row: Row) -> float:
        d = self.point(joint.second) - self.point(joint.first)
        match row.kind:
            case "S":
                return float(d[row.component])
            case "d1":
                return float(self.axis(joint, row.a) @ self.axis(joint, row.b))
            case "d2":
                return float(self.axis(joint, row.a) @ d)
            case "SS":
                assert joint.length is not None
                return float(d @ d - joint.length**2)
            case "angle":
                f_i, f_j = self.axis(joint, "f_i"), self.axis(joint, "f_j")
                return math.atan2(np.cross(f_i, f_j)[2], f_i @ f_j)

    def coordinate(self, joint: Joint, coordinate: Coordinate) -> float:
        if coordinate.kind == "length":
            d = self.point(joint.second) - self.point(joint.first)
            return float(d @ self.axis(joint, coordinate.along))
        of, start, about = (
            self.axis(joint, name) for name in (coordinate.of, coordinate.start, coordinate.about)
        )
        return math.atan2(of @ np.cross(about, start), of @ start)

    def rows(self, system: System) -> Array:
        return np.array([self.row(joint, row) for joint in system.joints for row in joint.rows])


def jacobian(system: System) -> Array:
    """Return the constraint Jacobian by central differences; its error is about 1e-10."""
    size = (3 if system.planar else 6) * len(system.bodies)
    step = 1e-5 * np.eye(size)
    return np.column_stack(
        [(Pose(system, e).rows(system) - Pose(system, -e).rows(system)) / 2e-5 for e in step]
    )


def rank(matrix: Array) -> int:
    """Return the rank; the gap between true singular values and rounding is wide here."""
    values = np.linalg.svd(matrix, compute_uv=False)
    assert not ((values > 1e-7) & (values < 1e-3)).any(), values
    return int((values > 1e-5).sum())


@pytest.mark.parametrize(
    ("make", "rows", "independent", "columns", "closure"),
    [
        (lambda: mechanisms.slider_crank("revolute"), 19, 17, 18, 2e-8),
        (lambda: mechanisms.slider_crank("spherical", drive="as listed"), 13, 13, 18, 2e-8),
        (lambda: mechanisms.slider_crank(planar=True), 8, 8, 9, 2e-8),
        (mechanisms.mcpherson, 26, 26, 30, 1e-9),
        (mechanisms.five_bar, 30, 23, 24, 1e-9),
        (mechanisms.cardan, 30, 17, 18, 1e-15),
        (mechanisms.four_bar, 8, 8, 9, 1e-15),
        (lambda: mechanisms.four_bar(5), 32, 32, 33, 1e-15),
        (lambda: mechanisms.four_bar(planar=False), 20, 17, 18, 1e-15),
        (lambda: mechanisms.four_bar(3, planar=False), 50, 41, 42, 1e-15),
        (mechanisms.pendulum_on_cart, 4, 4, 6, 1e-15),
        (mechanisms.rotor, 1, 1, 6, 0.0),
    ],
)
def test_counts(
    make: Callable[[], System], rows: int, independent: int, columns: int, closure: float
) -> None:
    """Rows and ranks are the published ones; the data close to the digits they are printed with."""
    system = make()
    system.validate()
    matrix = jacobian(system)
    assert matrix.shape == (rows, columns)
    assert rank(matrix) == independent
    assert np.abs(Pose(system).rows(system)).max() <= closure
    assert system.mobility == columns - rows - len(system.drivers)


def two_bodies(kind: str, planar: bool) -> System:
    """Return two bodies in general pose, with a joint of that kind between them."""
    rng = np.random.default_rng(3)
    size = 2 if planar else 3
    s = System("two", planar=planar)
    ends = []
    for name in ("one", "two"):
        turn = rng.normal(size=1 if planar else 4)
        rotation = float(turn[0]) if planar else turn / np.linalg.norm(turn)
        ends.append(
            s.body(name, mass=1, inertia=1, position=rng.normal(size=size), rotation=rotation)
        )
    at, axis = rng.normal(size=size), rng.normal(size=size)
    if kind == "distance":
        markers = [body.marker("m", rng.normal(size=size)) for body in ends]
        s.distance("j", *markers)
    elif kind in ("fixed", "spherical") or (planar and kind == "revolute"):
        getattr(s, kind)("j", *ends, at=at)
    elif kind == "universal":
        s.universal("j", *ends, at=at, axis=(axis, np.cross(axis, [1.0, 2.0, 3.0])))
    else:
        getattr(s, "planar_joint" if kind == "planar" else kind)("j", *ends, at=at, axis=axis)
    return s


KINDS = [(kind, False) for kind in SPATIAL] + [(kind, True) for kind in PLANAR]


@pytest.mark.parametrize(("kind", "planar"), KINDS)
def test_every_joint_is_closed_and_independent(kind: str, planar: bool) -> None:
    """A joint made at a place in the world closes there, and its rows are independent."""
    system = two_bodies(kind, planar)
    counts = {
        False: dict(
            fixed=6, revolute=5, prismatic=5, cylindrical=4, spherical=3, universal=4, planar=3,
            guide=2, in_plane=1, distance=1,
        ),
        True: dict(fixed=3, revolute=2, prismatic=2, guide=1, distance=1),
    }  # fmt: skip
    matrix = jacobian(system)
    assert len(matrix) == counts[planar][kind]
    assert rank(matrix) == len(matrix)
    assert np.abs(Pose(system).rows(system)).max() < 1e-14


@pytest.mark.parametrize(("kind", "planar"), KINDS)
def test_coordinates_are_what_a_joint_leaves_free(kind: str, planar: bool) -> None:
    """Rows and coordinates together are independent: no coordinate is one that the rows hold."""
    system = two_bodies(kind, planar)
    (joint,) = system.joints
    if not joint.coordinates:
        assert kind in ("fixed", "spherical", "distance")
        return
    size = 6 if planar else 12

    def values(step: Array) -> Array:
        pose = Pose(system, step)
        return np.array([pose.coordinate(joint, one) for one in joint.coordinates])

    free = np.column_stack([(values(e) - values(-e)) / 2e-5 for e in 1e-5 * np.eye(size)])
    matrix = np.vstack([jacobian(system), free])
    assert rank(matrix) == len(matrix)
    # Joints of all free motions named: rows and coordinates fill the relative motion.
    if kind not in ("guide", "in_plane") or planar:
        assert len(matrix) == size // 2
    if not planar:
        assert np.abs(values(np.zeros(size))).max() < 1e-14  # counted from the given pose


def test_angle_of_bodies_that_turn_about_the_axis() -> None:
    """The angle of a revolute is that between the bodies, in a plane and in space alike."""
    for planar in (True, False):
        s = System("swing", planar=planar)
        angle = 0.3 if planar else rotation_about([0.0, 0.0, 1.0], 0.3)
        arm = s.body("arm", mass=1, inertia=1, rotation=angle)
        if planar:
            joint = s.revolute("pin", s.ground, arm, at=(0, 0))
        else:
            joint = s.revolute("pin", s.ground, arm, at=(0, 0, 0), axis=(0, 0, 1))
        assert Pose(s).coordinate(joint, joint.coordinates[0]) == pytest.approx(0.3, abs=1e-15)


def test_prismatic_holds_the_given_pose() -> None:
    """Markers with an axis only do not turn a body that slides: the open angle is as given."""
    s = System("slide")
    body = s.body("b", mass=1, inertia=1, rotation=rotation_about([0.6, 0.0, 0.8], 1.0))
    axis = np.array([1.0, 2.0, 3.0])
    rail = s.ground.marker("rail", axis=axis)
    shoe = body.marker("shoe", axis=body.rotation.T @ axis)
    s.prismatic("slide", rail, shoe)
    assert np.abs(Pose(s).rows(s)).max() < 1e-15
    # The same if the first marker is the one with an open angle.
    whole = body.marker("whole", rotation=frame_along(shoe.rotation[:, 2], planar=False))
    s.prismatic("other", rail, whole)
    # Where one marker has no axis at all, it takes that of the other.
    s.revolute("hinge", rail, body.marker("plain"))
    s.revolute("hinge2", s.ground.marker("plain"), shoe)
    assert np.abs(Pose(s).rows(s)).max() < 1e-15


def test_rotations() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 3))
    assert np.allclose(skew(a) @ b, np.cross(a, b), atol=1e-15)
    for e in [*rng.normal(size=(20, 4)), np.array([0.0, 0.0, 1.0, 0.0])]:
        e = e / np.linalg.norm(e) * (1 if e[0] >= 0 else -1)
        rotation = rotation_from_quaternion(e)
        assert np.allclose(rotation.T @ rotation, np.eye(3), atol=1e-15)
        assert np.allclose(quaternion_from_rotation(rotation), e, atol=1e-14)
        angle = 2 * math.acos(e[0])
        assert np.allclose(rotation_about(e[1:] / np.linalg.norm(e[1:]), angle), rotation)
    for axis in (*np.eye(3), *-np.eye(3), a / np.linalg.norm(a)):
        frame = frame_along(axis, planar=False)
        assert np.allclose(frame[:, 2], axis, atol=1e-15)
        assert np.allclose(frame.T @ frame, np.eye(3), atol=1e-15)
        assert np.linalg.det(frame) > 0


@pytest.mark.parametrize(
    "law",
    [
        Constant(3.0),
        Linear(1.0, -2.0),
        Sine(0.3, 7.0, 0.4, 1.0),
        Table([0, 0.5, 2.0], [0, 1, -1]),
        Table([0, 0.5, 1.3, 2.0], [0, 1, -1, 3], interpolation="cubic"),
        Formula("0.03*sin(5*pi*t)"),
        Formula("exp(-t)*t**3 - t**2.5 + 2**t + t**t"),
        Formula("hypot(t, 2) + atan2(t, 1 + t**2) + log(t)/sqrt(t)"),
        Formula("tan(t) + asin(t/2) - acos(t/3) + atan(2*t) + log10(t)"),
        Formula("sinh(t)*cosh(t)/tanh(t) + abs(-t) + min(t, 9) + max(t, t*t, -9)"),
        Formula("where(0 < t < 1, 3*t**2, -t) + clip(t, 0, 5) + t % 0.3 + sign(t) + floor(t)"),
    ],
)
def test_laws_and_their_derivatives(law: AbstractLaw) -> None:
    """Rates and accelerations agree with central differences, of an error of about 1e-8."""
    for t in (0.13, 0.7, 1.1):
        h = 1e-5
        around = [law.value(t - h), law.value(t), law.value(t + h)]
        assert law.rate(t) == pytest.approx((around[2] - around[0]) / (2 * h), rel=1e-7, abs=1e-7)
        slopes = law.rate(t + h) - law.rate(t - h)
        assert law.acceleration(t) == pytest.approx(slopes / (2 * h), rel=1e-6, abs=1e-6)
        assert law.jet(t)[0] == law.value(t)


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_formula_values_are_those_of_the_reader(function: str) -> None:
    """Python evaluates a formula as the reader folds constants, which the engine's tests check."""
    count = {"atan2": 2, "hypot": 2, "min": 2, "max": 2, "mod": 2, "pow": 2, "clip": 3, "where": 3}
    numbers = ["0.5", "0.3", "0.4"][: count.get(function, 1)]
    folded = read_formula(f"{function}({', '.join(numbers)})").term
    assert isinstance(folded, Number)
    text = f"{function}({', '.join(['t', *numbers[1:]])})"
    assert Formula(text).value(0.5) == folded.value


def test_law_details() -> None:
    table = Table([0, 1], [2, 4])
    assert (table.value(-1), table.value(5), table.rate(5)) == (2, 4, 0)
    assert (table.value(0), table.value(0.25), table.rate(0.25)) == (2, 2.5, 2)
    cubic = Table([0, 1, 2, 3], [0, 1, 8, 27], interpolation="cubic")  # a cubic is its own spline
    assert cubic.jet(1.5) == pytest.approx((1.5**3, 3 * 1.5**2, 6 * 1.5), rel=1e-14)
    assert Formula("sqrt(t)").value(0.0) == 0.0  # though its rate there is infinite
    with pytest.raises(DiagramError, match=r"`sqrt\(t\)` has no finite value where t = 0"):
        Formula("sqrt(t)").rate(0.0)
    assert Input("push", 3.0).jet(1.0) == (3.0, 0.0, 0.0)
    assert Formula("l*v + t").evaluate(t=1.0, l=2.0, v=3.0) == 7.0
    assert Table([0, 1], [0, 10], of="l").evaluate(t=9.0, l=0.5, v=9.0) == 5.0
    with pytest.raises(DiagramError, match=r"must rise: 1 comes after 2"):
        Table([0, 2, 1], [0, 0, 0])
    with pytest.raises(DiagramError, match="same length"):
        Table([0, 2], [0, 0, 0])
    with pytest.raises(DiagramError, match="'linear' or 'cubic'"):
        Table([0, 2], [0, 0], interpolation="spline")
    with pytest.raises(DiagramError, match=r"`amplitude` of a Sine wants numbers, got 'a'"):
        Sine("a", 1.0)  # type: ignore[arg-type]
    with pytest.raises(DiagramError, match="`v` is one number"):
        Formula("v[0]")


def test_moving_marker() -> None:
    s = mechanisms.mcpherson()
    road = s["ground.road"]
    assert isinstance(road, Marker)
    position, rate, acceleration = road.place(0.1)
    omega = 5 * math.pi
    assert position == pytest.approx([0.452, -0.41, -0.33 + 0.03 * math.sin(omega * 0.1)])
    assert rate == pytest.approx([0, 0, 0.03 * omega * math.cos(omega * 0.1)], abs=1e-12)
    assert acceleration[2] == pytest.approx(-0.03 * omega**2 * math.sin(omega * 0.1))


def test_numbers() -> None:
    numbers = mechanisms.mcpherson().parameters()
    assert numbers["strut.mass"].value == 12.1
    assert numbers["suspension.stiffness"].value == 4.22e4
    assert str(numbers["suspension.damping"].unit) == "N.s/m"
    assert numbers["ground.road.z.omega"].value == pytest.approx(5 * math.pi)
    assert numbers["strut.hub.position"].value.tolist() == [
        -0.011009036,
        -0.130331171,
        -0.144181697,
    ]
    assert numbers["gravity"].value.tolist() == [0, 0, -9.80665]
    assert all(item.unit is not None and item.doc for item in numbers.values())
    assert "motor.torque" in mechanisms.slider_crank().parameters()
    assert "drive.force.z" in mechanisms.slider_crank(drive="as listed").parameters()
    planar = mechanisms.four_bar().parameters()
    assert planar["bar0.inertia"].value == 1 / 12
    assert planar["bar0.angle"].value == pytest.approx(math.pi / 2)
    assert planar["bar0.position"].value.tolist() == [0, 0.5]
    assert mechanisms.cardan().parameters()["drive.motion.slope"].value == 2.0
    assert str(mechanisms.cardan().parameters()["drive.motion.slope"].unit) == "rad/s"


def test_every_element_gives_its_numbers() -> None:
    s = System("all")
    arm = s.body("arm", mass=1, inertia=1)
    cyl = s.cylindrical("cyl", s.ground, arm, at=(0, 0, 0), axis=(0, 0, 1))
    rod = s.distance("rod", s.ground.marker("a", (0, 0, 2)), arm.marker("b", (0, 0, 1)))
    s.force("push", cyl, "sin(t)")
    s.torque("turn", cyl, Input())
    s.torsional_spring("twist", cyl, stiffness=2, damping="where(t < 4, 8, 2*abs(v))", free_angle=1)
    s.friction("rub", cyl, viscous=1, coulomb=2, coordinate=1)
    s.stop("end", cyl, upper=1, stiffness=1e5, coordinate=0)
    s.bushing("rubber", rod.first, rod.second, stiffness=range(6))
    s.driver("drive", cyl, Sine(1, 2), coordinate=1)
    numbers = s.parameters()
    assert rod.length == 1 and numbers["rod.length"].value == 1
    assert numbers["turn.torque.default"].value == 0
    assert numbers["rub.coulomb"].unit is not None and str(numbers["rub.coulomb"].unit) == "N.m"
    assert str(numbers["end.stiffness"].unit) == "N/m"
    assert numbers["end.lower"].value == -np.inf
    assert numbers["rubber.stiffness.rz"].value == 5
    assert "twist.damping" not in numbers  # a formula stays as it was given
    assert {"push", "turn", "twist", "rub", "end", "rubber"} == {e.name for e in s.elements}
    assert [driver.coordinate for driver in s.drivers] == [1]
    assert repr(s) == "System('all', 1 bodies, 2 joints, 6 forces, 1 drivers)"


def test_description_is_read_only() -> None:
    s = mechanisms.slider_crank()
    crank = s["crank"]
    assert isinstance(crank, Body)
    with pytest.raises(ValueError, match="read-only"):
        crank.position[0] = 1.0
    with pytest.raises(AttributeError):
        crank.mass = 2.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        s.parts["x"] = crank  # type: ignore[index]


def arm() -> tuple[System, Body]:
    s = System("arm")
    return s, s.body("arm", mass=1, inertia=1)


def flat() -> tuple[System, Body]:
    s = System("flat", planar=True)
    return s, s.body("arm", mass=1, inertia=1)


def hinged() -> tuple[System, Joint]:
    s, body = arm()
    return s, s.revolute("hinge", s.ground, body, at=(0, 0, 0), axis=(0, 0, 1))


BAD: list[tuple[str, Callable[[], object]]] = [
    (
        r"body `rotor` has principal moments of inertia \(0.01, 0.01, 0.3\) kg m², which no body "
        r"has: 0.3 is larger than 0.01 \+ 0.01. .*allow_nonphysical=True",
        lambda: System("s").body("rotor", mass=1, inertia=(0.01, 0.01, 0.3)),
    ),
    (
        r"`inertia` of body `b` is not symmetric: element \(1, 2\) is 0.1, \(2, 1\) is 0",
        lambda: System("s").body("b", mass=1, inertia=[[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]),
    ),
    (
        r"body `b` has principal moments of inertia \(-1, 1, 1\).*none may be negative",
        lambda: System("s").body("b", mass=1, inertia=(1, -1, 1), allow_nonphysical=True),
    ),
    (r"tensor, got \[1, 2\]", lambda: System("s").body("b", mass=1, inertia=[1, 2])),
    (r"body `b` has mass -1 kg", lambda: System("s").body("b", mass=-1, inertia=1)),
    (r"`mass` of body `b` must be finite", lambda: System("s").body("b", mass=np.nan, inertia=1)),
    (
        r"`rotation` of body `b` is not orthonormal: RᵀR differs from the identity by 0.21",
        lambda: System("s").body("b", mass=1, inertia=1, rotation=np.diag([1, 1, 1.1])),
    ),
    (
        r"`rotation` of body `b` is a reflection",
        lambda: System("s").body("b", mass=1, inertia=1, rotation=np.diag([1, 1, -1])),
    ),
    (
        r"Euler parameters \[1.0, 1.0, 0.0, 0.0\] of length 1.41421",
        lambda: System("s").body("b", mass=1, inertia=1, rotation=(1, 1, 0, 0)),
    ),
    (
        r"System.body has no keyword `masss`. Did you mean `mass`\? Keywords: name, mass",
        lambda: System("s").body("b", masss=1, inertia=1),  # type: ignore[call-arg]
    ),
    (
        r"Body.marker has no keyword `axes`. Did you mean `axis`",
        lambda: arm()[1].marker("m", axes=(1, 0, 0)),  # type: ignore[call-arg]
    ),
    (
        r"System has no keyword `planer`. Did you mean `planar`",
        lambda: System("s", planer=True),  # type: ignore[call-arg]
    ),
    (
        r"there is a body called `arm` already",
        lambda: arm()[0].body("arm", mass=1, inertia=1),
    ),
    (r"there is a number called `gravity`", lambda: arm()[0].body("gravity", mass=1, inertia=1)),
    (
        r"there is a joint called `hinge` already",
        lambda: hinged()[0].body("hinge", mass=1, inertia=1),
    ),
    (r"name without dots, got 'a.b'", lambda: arm()[0].body("a.b", mass=1, inertia=1)),
    (r"`arm.mass` is a number of the body", lambda: arm()[1].marker("mass")),
    (
        r"there is a marker `ground.hinge` already",
        lambda: hinged()[0].ground.marker("hinge"),
    ),
    (
        r"give one of them",
        lambda: arm()[1].marker("m", axis=(1, 0, 0), rotation=np.eye(3)),
    ),
    (r"`axis` of marker `arm.m` has no direction", lambda: arm()[1].marker("m", axis=(0, 0, 0))),
    (r"moves along `w`; the axes are x, y, z", lambda: arm()[1].marker("m", motion={"w": 1.0})),
    (
        r"motion `x` of marker `arm.m` depends on `l`, which is not available. It may depend on t",
        lambda: arm()[1].marker("m", motion={"x": "l"}),
    ),
    (
        r"`position` of marker `arm.m` has three numbers.*planar: give \(x, y\)",
        lambda: flat()[1].marker("m", (1, 2, 3)),
    ),
    (r"`gravity` has three numbers", lambda: System("s", (0, 0, -9.81), planar=True)),
    (r"`gravity` has two numbers.*planar=True", lambda: System("s", (0, -9.81))),
    (
        r"in a planar system is one number, J_z",
        lambda: System("s", planar=True).body("b", mass=1, inertia=(1, 1, 1)),
    ),
    (
        r"in a planar system is an angle in rad",
        lambda: System("s", planar=True).body("b", mass=1, inertia=1, rotation=np.eye(3)),
    ),
    (
        r"`j`: a planar system has no spherical joint: a revolute does the same. Joints in a "
        r"plane: fixed, revolute, prismatic, guide, distance",
        lambda: flat()[0].spherical("j", flat()[1], flat()[1], at=(0, 0)),
    ),
]


@pytest.mark.parametrize(("message", "make"), BAD)
def test_bad_bodies_and_markers_teach(message: str, make: Callable[[], object]) -> None:
    with pytest.raises(DiagramError, match=message):
        make()


def test_nonphysical_inertia_can_be_insisted_on() -> None:
    body = System("s").body("r", mass=1, inertia=(0.01, 0.01, 0.3), allow_nonphysical=True)
    assert np.diag(body.inertia).tolist() == [0.01, 0.01, 0.3]
    # Rods and plates are at the limit, and physical.
    System("s").body("rod", mass=1, inertia=(0, 1, 1))
    System("s").body("plate", mass=1, inertia=(0.1, 0.2, 0.1 + 0.2))


def test_bad_joints_teach() -> None:
    s, body = arm()
    m, other = body.marker("m"), System("other")
    with pytest.raises(DiagramError, match="`j` ties `arm` to itself"):
        s.revolute("j", m, body.marker("n"))
    with pytest.raises(DiagramError, match="`j` ties `arm` to itself"):
        s.revolute("j", body, body, at=(0, 0, 0), axis=(0, 0, 1))
    with pytest.raises(DiagramError, match=r"but where\? Give at="):
        s.revolute("j", s.ground, body)
    with pytest.raises(DiagramError, match="needs axis="):
        s.revolute("j", s.ground, body, at=(0, 0, 0))
    with pytest.raises(DiagramError, match="give the markers alone"):
        s.revolute("j", s.ground.marker("g"), m, at=(0, 0, 0))
    with pytest.raises(DiagramError, match="of another system, `other`"):
        s.revolute("j", other.ground.marker("m"), m)
    with pytest.raises(DiagramError, match=r"requires a marker, such as arm.marker"):
        s.revolute("j", s.ground.marker("h"), body)
    with pytest.raises(DiagramError, match=r"two axes are at 0° .*not those of the shafts"):
        s.universal("j", s.ground.marker("k", axis=(1, 0, 0)), body.marker("k", axis=(1, 0, 0)))
    with pytest.raises(DiagramError, match=r"two axes are at 80°"):
        skewed = (math.cos(math.radians(80)), math.sin(math.radians(80)), 0)
        s.universal("j", s.ground, body, at=(0, 0, 0), axis=((1, 0, 0), skewed))
    with pytest.raises(DiagramError, match=r"give marker `arm.m` one"):
        s.universal("j", s.ground.marker("l", axis=(1, 0, 0)), m)
    with pytest.raises(DiagramError, match="is a pair"):
        s.universal("j", s.ground, body, at=(0, 0, 0), axis=(1, 0, 0))
    with pytest.raises(DiagramError, match="distance of 0 m: it must be positive"):
        s.distance("j", s.ground.marker("o"), m)
    body.marker("taken")
    with pytest.raises(DiagramError, match=r"would put a marker `arm.taken` on `arm`"):
        s.spherical("taken", s.ground, body, at=(0, 0, 0))
    assert "taken" not in s.ground.markers
    assert not s.joints and "j" not in body.markers and "j" not in s.ground.markers


def test_bad_forces_teach() -> None:
    s, hinge = hinged()
    m, g = hinge.second, hinge.first
    with pytest.raises(DiagramError, match=r"a displacement. Coordinates of `hinge`.*0: angle"):
        s.force("f", hinge, 1.0)
    with pytest.raises(DiagramError, match="cannot act on coordinate 3"):
        s.driver("f", hinge, 1.0, coordinate=3)
    with pytest.raises(DiagramError, match="3 numbers in a spatial system"):
        s.force("f", m, (1, 2))
    with pytest.raises(DiagramError, match="'world' or 'body', got 'marker'"):
        s.force("f", m, (1, 2, 3), frame="marker")  # type: ignore[arg-type]
    with pytest.raises(DiagramError, match="takes no `frame`"):
        s.force("f", m, 1.0, frame="body")
    with pytest.raises(DiagramError, match=r"depends on `q`.*It may depend on t, l, v"):
        s.spring("f", g, m, stiffness="q")
    with pytest.raises(DiagramError, match="some of x, y, z, such as 'z'; got 'w'"):
        s.spring("f", g, m, components="w")
    with pytest.raises(DiagramError, match="no length is negative"):
        s.spring("f", g, m, free_length=-1)
    with pytest.raises(DiagramError, match="`stiffness` of `f` has 6 numbers"):
        s.bushing("f", g, m, stiffness=(1, 2, 3))
    with pytest.raises(DiagramError, match="`smoothing_speed` of `f` must be positive"):
        s.friction("f", hinge, coulomb=1, smoothing_speed=0)
    with pytest.raises(DiagramError, match="`viscous` of `f` must not be negative"):
        s.friction("f", hinge, viscous=-1)
    with pytest.raises(DiagramError, match="must be below the upper one"):
        s.stop("f", hinge, lower=1, upper=0, stiffness=1)
    s.driver("d", hinge, Linear(0, 1))
    with pytest.raises(DiagramError, match="which `d` drives already"):
        s.driver("f", hinge, 1.0)
    with pytest.raises(DiagramError, match=r"Choose with coordinate="):
        slide = s.cylindrical("c", g, m)
        s.friction("f", slide, viscous=1)
    assert not s.elements and len(s.drivers) == 1
    with pytest.raises(DiagramError, match="acts on `hinge`, a joint of another system"):
        System("other").driver("d", hinge, 1.0)


def test_one_number_acts_along_the_axis_of_a_marker() -> None:
    s, body = arm()
    load = s.torque("motor", body.marker("m", axis=(0, 1, 0)), 10.0)
    assert isinstance(load, Load) and load.frame == "marker"
    assert [law.value(0.0) for law in load.components] == [0, 0, 10]
    s, body = flat()
    load = s.force("push", body.marker("m", axis=(0, 1)), 10.0)
    assert isinstance(load, Load)
    assert [law.value(0.0) for law in load.components] == [10, 0, 0]


def test_validate_lists_all_problems() -> None:
    s = System("loose")
    with pytest.raises(DiagramError, match="has no bodies"):
        s.validate()
    one, two = (s.body(name, mass=1, inertia=1) for name in ("one", "two"))
    s.revolute("pin", one, two, at=(0, 0, 0), axis=(0, 0, 1))
    link = s.body("link", mass=0, inertia=0)
    s.spherical("ball", s.ground, link, at=(0, 0, 0))
    with pytest.raises(DiagramError) as caught:
        s.validate()
    assert len(caught.value.problems) == 2
    assert "nothing ties `one`, `two` to the ground" in caught.value.problems[0]
    assert "`link` has no mass and 1 joints" in caught.value.problems[1]
    s.spring("rope", s.ground.marker("m"), one.marker("m"), stiffness=1)
    s.spherical("ball2", link, two, at=(0, 0, 0))
    s.validate()


def test_a_free_body_is_declared() -> None:
    s = System("tumbling", (0, 0, 0))
    s.body("brick", mass=1, inertia=(1, 2, 2.5), angular_velocity=(0, 1, 0.01), free=True)
    s.validate()
    s.body("dust", mass=1, inertia=0, free=True)
    with pytest.raises(DiagramError, match="`dust` has no joint and a principal moment"):
        s.validate()


def test_finding_parts_by_name() -> None:
    s = mechanisms.slider_crank()
    marker = s["crank.pin"]
    assert isinstance(marker, Marker) and marker.path == "crank.pin"
    with pytest.raises(DiagramError, match=r"nothing called `crnk`. Did you mean `crank`"):
        s["crnk"]
    with pytest.raises(DiagramError, match=r"`crank` has no marker `pim`. Did you mean `pin`"):
        s["crank.pim"]
    with pytest.raises(DiagramError, match="pins is one of 'revolute', 'spherical'; got 'pins'"):
        mechanisms.slider_crank("pins")  # type: ignore[arg-type]


def test_initial_speeds_of_the_four_bars_are_consistent() -> None:
    """Velocities of A02 satisfy all constraints at velocity level, so that energy starts exact."""
    for planar in (True, False):
        s = mechanisms.four_bar(3, planar=planar)
        speeds = [
            np.concatenate([body.velocity, body.angular_velocity])[
                [0, 1, 5] if planar else slice(6)
            ]
            for body in s.bodies
        ]
        assert np.abs(jacobian(s) @ np.concatenate(speeds)).max() < 1e-9  # as exact as differences


def test_an_unknown_keyword_is_one_of_the_users_class():
    s = System("s", planar=True)
    with pytest.raises(
        DiagramError, match=r"^System\.force has no keyword `valu`. Did you mean `v"
    ):
        s.force("f", s.body("a", mass=1.0, inertia=1.0).marker("m"), valu=1.0)  # type: ignore[call-arg]
    with pytest.raises(DiagramError, match=r"^System has no keyword `gravitation`"):
        System("t", gravitation=(0, 0))  # type: ignore[call-arg]
