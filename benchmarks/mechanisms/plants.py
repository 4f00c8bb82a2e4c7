"""The mechanisms that every participant of `multibody.py` runs, as data; only numpy is used here.

All body frames sit at the center of mass and are parallel to the world at t = 0; points and axes of
joints are in body axes, those of the ground in the world. The tree robot is a `Link` list instead,
because its frames are in a general position.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Vector = tuple[float, float, float]

STEP = 1e-3
"""Step of every participant, seconds."""

ZERO: Vector = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Body:
    """A rigid body; its principal moments are about axes parallel to the world at t = 0."""

    name: str
    mass: float
    inertia: Vector
    position: Vector
    velocity: Vector = ZERO
    angular_velocity: Vector = ZERO


@dataclass(frozen=True)
class Joint:
    """Two points that coincide, of two bodies; `first` is -1 for the ground."""

    kind: str
    """Revolute, spherical, or cylindrical: then the second point stays on the axis of the first."""
    first: int
    second: int
    at_first: Vector
    at_second: Vector
    axis: Vector = ZERO


@dataclass(frozen=True)
class Plant:
    """A mechanism, its gravity, and what is asked of it."""

    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    gravity: Vector
    normal: Vector
    """Normal of the plane it moves in; rotations are positive about it."""
    torque: float = 0.0
    """On the first body, about the normal, constant: N m."""
    points: dict[str, tuple[int, Vector]] = field(default_factory=dict)
    """Whose final positions are compared: body and place in body axes."""


@dataclass(frozen=True)
class Spring:
    """Tension k (l - free) + c dl/dt between two points."""

    first: int
    second: int
    at_first: Vector
    at_second: Vector
    stiffness: float
    damping: float
    free: float


def slider_crank() -> Plant:
    """Give Oldani's slider-crank in the plane x-z, its markers rounded as printed.

    The force of 20 N that turns with the crank stands across it, so it does the work of a torque
    about y on the crank of 20 N times the distance of its center from the pivot.
    """
    a, b, c = 0.35355339, 0.93541435, 0.35355339
    # The crank at exactly 45 degrees, the rest assembled on it: as printed, pins are 1e-8 m apart.
    rod = np.hypot(2 * b, 2 * c)
    wrist = float(2 * a + np.sqrt(rod**2 - (2 * a) ** 2))
    # The rod as printed is turned by some 1e-9 rad from the one that closes.
    half = ((wrist - 2 * a) / 2, 0.0, -a)
    back = (-half[0], 0.0, -half[2])
    return Plant(
        bodies=(
            Body("crank", 1.0, (0.1, 0.1, 0.1), (a, 0.0, a)),
            Body("rod", 2.0, (0.2, 0.2, 0.2), (2 * a + half[0], 0.0, a)),
            Body("slider", 4.0, (0.3, 0.3, 0.3), (wrist, 0.0, 0.0)),
        ),
        joints=(
            Joint("revolute", -1, 0, ZERO, (-a, 0.0, -a), (0.0, 1.0, 0.0)),
            Joint("revolute", 0, 1, (a, 0.0, a), back, (0.0, 1.0, 0.0)),
            Joint("revolute", 1, 2, half, ZERO, (0.0, 1.0, 0.0)),
            Joint("cylindrical", -1, 2, ZERO, ZERO, (1.0, 0.0, 0.0)),
        ),
        gravity=(0.0, 0.0, -9.80665),
        normal=(0.0, 1.0, 0.0),
        torque=float(20.0 * np.sqrt(2.0) * a),
        points={"crank": (0, ZERO), "rod": (1, ZERO), "slider": (2, ZERO)},
    )


def four_bars(n: int) -> Plant:
    """Give IFToMM A02 in the plane x-y: bars 0 … n first, then couplers 0 … n - 1."""
    third = 1 / 12
    spin, z = (0.0, 0.0, -1.0), (0.0, 0.0, 1.0)
    foot, top = (0.0, -0.5, 0.0), (0.0, 0.5, 0.0)
    left, right = (-0.5, 0.0, 0.0), (0.5, 0.0, 0.0)
    bars = [
        Body(f"bar{i}", 1.0, (third, 0.0, third), (float(i), 0.5, 0.0), (0.5, 0.0, 0.0), spin)
        for i in range(n + 1)
    ]
    couplers = [
        Body(f"coupler{i}", 1.0, (0.0, third, third), (i + 0.5, 1.0, 0.0), (1.0, 0.0, 0.0))
        for i in range(n)
    ]
    feet = [Joint("revolute", -1, i, (float(i), 0.0, 0.0), foot, z) for i in range(n + 1)]
    tops = [Joint("revolute", i, n + 1 + i, top, left, z) for i in range(n)]
    ends = [Joint("revolute", n + 1 + i, i + 1, right, top, z) for i in range(n)]
    return Plant(
        bodies=(*bars, *couplers),
        joints=(*feet, *tops, *ends),
        gravity=(0.0, -9.81, 0.0),
        normal=z,
        points={"first top": (0, top), "last top": (n, top)},
    )


def pendulum() -> Plant:
    """Give IFToMM A01 in the plane x-y: a point mass on 1 m without mass, from the horizontal."""
    return Plant(
        bodies=(Body("bob", 1.0, ZERO, (1.0, 0.0, 0.0)),),
        joints=(Joint("revolute", -1, 0, ZERO, (-1.0, 0.0, 0.0), (0.0, 0.0, 1.0)),),
        gravity=(0.0, -9.81, 0.0),
        normal=(0.0, 0.0, 1.0),
        points={"bob": (0, ZERO)},
    )


def chain(n: int) -> Plant:
    """Give n slender rods of 1 m and 1 kg in the plane x-y, hanging straight, swung at 1 rad/s."""
    third, z = 1 / 12, (0.0, 0.0, 1.0)
    top, tip = (0.0, 0.5, 0.0), (0.0, -0.5, 0.0)
    bodies = tuple(
        Body(f"rod{i}", 1.0, (third, 0.0, third), (0.0, -i - 0.5, 0.0), (i + 0.5, 0.0, 0.0), z)
        for i in range(n)
    )
    joints = tuple(
        Joint("revolute", i - 1, i, tip if i else ZERO, top, z) for i in range(len(bodies))
    )
    points = {"middle": (n // 2, ZERO), "tip": (n - 1, tip)}
    return Plant(bodies, joints, gravity=(0.0, -9.81, 0.0), normal=z, points=points)


def tumbler() -> Plant:
    """Give a free body without weight that turns nearly about its middle axis, so turns over."""
    return Plant(
        bodies=(Body("body", 1.0, (1.0, 2.0, 2.5), ZERO, ZERO, (0.1, 2.0, 0.1)),),
        joints=(),
        gravity=ZERO,
        normal=ZERO,
        points={"x": (0, (1.0, 0.0, 0.0)), "y": (0, (0.0, 1.0, 0.0))},
    )


def plant(work: str) -> Plant:
    """Give the mechanism of a work by its name; `four_bars_` and `chain_` end with a number."""
    kind, _, number = work.rpartition("_")
    if kind == "four_bars":
        return four_bars(int(number))
    if kind == "chain":
        return chain(int(number))
    return {"pendulum": pendulum, "slider_crank": slider_crank, "tumbler": tumbler}[work]()


WORKS = (
    "pendulum",
    "slider_crank",
    "four_bars_2",
    "four_bars_10",
    "four_bars_40",
    "chain_20",
    "tumbler",
)
"""What every participant can do."""


def spanning_tree(plant: Plant) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Give the tree as (body, its parent, joint between them), and the joints it cuts.

    A body that no joint reaches is free: its parent is the ground, its joint -1.

    The tree is breadth-first from the ground, so that loops stay short, and listed depth-first:
    Pinocchio's constrained dynamics gives wrong accelerations, without a word, if the joints of a
    subtree do not follow one another.
    """
    carried: dict[int, tuple[int, int]] = {}
    queue = [-1]
    for base in queue:
        for number, joint in enumerate(plant.joints):
            if base in (joint.first, joint.second):
                body = joint.second if joint.first == base else joint.first
                if body != -1 and body not in carried:
                    carried[body] = (base, number)
                    queue.append(body)
    for body in range(len(plant.bodies)):
        carried.setdefault(body, (-1, -1))
    listed: list[tuple[int, int, int]] = []

    def descend(base: int) -> None:
        for body, (parent, number) in carried.items():
            if parent == base:
                listed.append((body, parent, number))
                descend(body)

    descend(-1)
    used = {number for _, _, number in listed}
    return listed, [number for number in range(len(plant.joints)) if number not in used]


def joint_speeds(plant: Plant) -> list[float]:
    """Give the speed of each joint of the tree at t = 0: its bodies turn in the plane or rest.

    A free body has no such speed, but 0 here.
    """
    n = np.array(plant.normal)
    spins = [float(n @ np.array(body.angular_velocity)) for body in plant.bodies]
    return [
        spins[body] - (spins[base] if base >= 0 else 0.0)
        for body, base, _ in spanning_tree(plant)[0]
    ]


ROAD = (0.452, -0.410, -0.330)
ROAD_AMPLITUDE, ROAD_OMEGA = 0.03, 5 * np.pi


def mcpherson() -> tuple[Plant, tuple[Spring, ...]]:
    """Give Oldani's McPherson suspension, listing A.3, with its two springs.

    The first end of the second spring is the road: `ROAD`, plus `ROAD_AMPLITUDE`
    sin(`ROAD_OMEGA` t) along z.
    """

    def cube(name: str, mass: float, inertia: float, *position: float) -> Body:
        x, y, z = position
        return Body(name, mass, (inertia, inertia, inertia), (x, y, z))

    arm, strut, tie, wheel, mount = range(5)
    arm_axis, strut_axis = (0.27, -0.005, -0.01), (0.01, 0.15, 0.51)
    low = (-0.013009036, -0.050331171, -0.204181697)
    joints = (
        Joint(
            "revolute",
            -1,
            arm,
            (0.27, -0.005, -0.01),
            (-0.146201255, 0.163540764, 0.017081528),
            arm_axis,
        ),
        Joint(
            "revolute",
            strut,
            wheel,
            (-0.011009036, -0.130331171, -0.144181697),
            ZERO,
            (1.0, 0.0, 0.0),
        ),
        Joint("spherical", arm, strut, (0.033798745, -0.161459236, -0.012918472), low),
        Joint(
            "spherical",
            strut,
            tie,
            (0.096990964, -0.020331171, -0.104181697),
            (0.045, -0.18, -0.015),
        ),
        Joint("spherical", -1, tie, (0.47, 0.06, 0.09), (-0.045, 0.18, 0.015)),
        Joint("spherical", -1, mount, (0.46, -0.18, 0.47), ZERO),
        Joint(
            "cylindrical", strut, mount, (-0.003009036, 0.099668829, 0.305818303), ZERO, strut_axis
        ),
    )
    suspension = Plant(
        bodies=(
            cube("lower_arm", 4.6, 0.1, 0.4162012549, -0.168540764, -0.027081527958),
            cube("strut", 12.1, 0.25, 0.4630090362, -0.2796688292, 0.1641816967),
            cube("tie_rod", 1.0, 0.1, 0.515, -0.120, 0.075),
            cube("wheel", 25.0, 0.1, 0.452, -0.410, 0.020),
            cube("top_mount", 1.0, 0.1, 0.460, -0.180, 0.470),
        ),
        joints=joints,
        gravity=(0.0, 0.0, -9.80665),
        normal=ZERO,
        points={"lower_arm": (arm, ZERO), "strut": (strut, ZERO), "wheel": (wheel, ZERO)},
    )
    springs = (
        Spring(strut, mount, low, ZERO, 4.22e4, 2.7e3, 0.4815),
        Spring(-1, wheel, ROAD, ZERO, 2.0e5, 8.0e4, 0.35),
    )
    return suspension, springs


@dataclass(frozen=True)
class Link:
    """A body of the tree robot and the joint that carries it, whose frame is the body's frame.

    A revolute turns about z of the joint frame and a prismatic slides along it. The frame of the
    joint in its parent, before it moves, is (`rotation`, `position`).
    """

    name: str
    parent: int
    """-1: the ground."""
    kind: str
    position: Array
    rotation: Array
    mass: float
    com: Array
    inertia: Array
    """About the center of mass, in body axes: a full tensor."""
    q: Array
    """One coordinate; a quaternion (w, x, y, z) for a spherical joint."""
    v: Array
    """Its speed; of a spherical joint the relative angular velocity, in body axes."""
    load: float | None
    """Force or torque on the coordinate; none for a spherical joint."""
    force: Array
    torque: Array
    """On the body at its frame, in world axes."""


def rotation_of(quaternion: Any) -> Array:
    """Give the matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def tree_robot(seed: int) -> list[Link]:
    """Draw a tree of 12 links with revolute, prismatic and spherical joints, in motion."""
    random = np.random.default_rng(seed)

    def draw_rotation() -> tuple[Array, Array]:
        quaternion = random.normal(size=4)
        quaternion /= np.linalg.norm(quaternion)
        return quaternion, rotation_of(quaternion)

    links = []
    for i in range(12):
        kind = ("revolute", "prismatic", "spherical")[int(random.integers(3))]
        axes = draw_rotation()[1]
        # Moments of a cloud of points: always those of some body.
        squares = random.uniform(0.02, 0.2, size=3)
        inertia = axes @ np.diag(squares.sum() - squares) @ axes.T
        turn = draw_rotation()[0]
        links.append(
            Link(
                name=f"link{i}",
                parent=int(random.integers(max(-1, i - 4), i)),
                kind=kind,
                position=random.uniform(-1, 1, size=3),
                rotation=draw_rotation()[1],
                mass=float(random.uniform(0.5, 3.0)),
                com=random.uniform(-0.3, 0.3, size=3),
                inertia=inertia,
                q=turn if kind == "spherical" else random.uniform(-1, 1, size=1),
                v=random.normal(size=3 if kind == "spherical" else 1),
                load=None if kind == "spherical" else float(random.normal(scale=5.0)),
                force=random.normal(scale=5.0, size=3),
                torque=random.normal(scale=5.0, size=3),
            )
        )
    return links


@dataclass(frozen=True)
class Placed:
    """Frame of a link in the world and its velocity there."""

    position: Array
    rotation: Array
    velocity: Array
    angular_velocity: Array


def place(links: list[Link]) -> list[Placed]:
    """Give where every link of a tree is and how it moves."""
    placed: list[Placed] = []
    ground = Placed(np.zeros(3), np.eye(3), np.zeros(3), np.zeros(3))
    for link in links:
        base = ground if link.parent < 0 else placed[link.parent]
        R = base.rotation @ link.rotation
        p = base.position + base.rotation @ link.position
        v, w = base.velocity, base.angular_velocity
        if link.kind == "prismatic":
            p = p + R[:, 2] * link.q[0]
            v = v + np.cross(w, p - base.position) + R[:, 2] * link.v[0]
        else:
            v = v + np.cross(w, p - base.position)
            if link.kind == "revolute":
                w = w + R[:, 2] * link.v[0]
                half = link.q[0] / 2
                R = R @ rotation_of((np.cos(half), 0.0, 0.0, np.sin(half)))
            else:
                R = R @ rotation_of(link.q)
                w = w + R @ link.v
        placed.append(Placed(p, R, v, w))
    return placed
