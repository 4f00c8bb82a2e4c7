"""Mechanisms with the data of their sources: [O] Oldani, [V] Vita, [P] the Polish chapter.

[HW] is Hairer and Wanner, Solving Ordinary Differential Equations II.

Where a source does not print a value, the docstring of the function states our choice.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ...errors import DiagramError
from ..bearings import ShortBearing
from ..core._vectors import require_choice
from .elements.clearance._clearance import ContactLaw
from .system._bodies import Body, Marker
from .system._laws import Formula, Input, Linear, Sine
from .system._system import System

__all__ = [
    "cardan",
    "crank_pin",
    "crank_pin_film",
    "crank_rocker",
    "five_bar",
    "four_bar",
    "mcpherson",
    "pendulum_on_cart",
    "rotor",
    "slider_crank",
    "squeezer",
]

_ROOT = float(np.sqrt(0.5))

Drive = Literal["motor", "as listed", "one second", "none"]


def slider_crank(
    pins: Literal["revolute", "spherical"] = "revolute",
    *,
    planar: bool = False,
    drive: Drive = "motor",
) -> System:
    """Make Oldani's centered slider-crank [O 4.1, listing A.1]: crank 1 m, rod 2 m, at 45°, at
    rest.

    It moves in the plane x-z, gravity along -z; the planar one in x-y. Body frames are at the
    centers of mass. Markers are rounded as printed: pins are up to 1e-8 m apart.

    Parameters
    ----------
    pins
        ``"revolute"`` about y: 19 equations, 17 of them independent, one degree of freedom. Or
        ``"spherical"``, as listed: 13 equations and five degrees of freedom.
    planar
        Make the planar model: 8 equations for 9 coordinates. Angles and torques are then positive
        from x toward y, so that the motor's 10 N m about y become -10 N m.
    drive
        ``"motor"``: a torque of 10 N m on the crank, called ``motor``, as in listing A.2. ``"as
        listed"``: the 20 N that turn with the crank at its center, as in A.1, called ``drive``; the
        motion is the same, but it loads the bearing. ``"one second"``: the same until t = 1 s.
    """
    require_choice("pins", pins, ("revolute", "spherical"))
    require_choice("drive", drive, ("motor", "as listed", "one second", "none"))
    s = System("slider-crank", (0, -9.80665) if planar else (0, 0, -9.80665), planar=planar)

    def at(x: float, z: float) -> tuple[float, ...]:
        return (x, z) if planar else (x, 0.0, z)

    crank = s.body(
        "crank", mass=1.0, inertia=0.1, position=at(0.353553390593274, 0.353553390593274)
    )
    rod = s.body("rod", mass=2.0, inertia=0.2, position=at(1.64252113, 0.35355339))
    slider = s.body("slider", mass=4.0, inertia=0.3, position=at(2.57793547, 0.0))

    pivot_axis = None if planar else (0, 1, 0)
    pivot = s.ground.marker("pivot", at(0, 0), axis=pivot_axis)
    crank_foot = crank.marker("foot", at(-0.35355339, -0.35355339), axis=pivot_axis)
    crank_pin = crank.marker("pin", at(0.35355339, 0.35355339), axis=pivot_axis)
    rod_pin = rod.marker("pin", at(-0.93541435, 0.35355339), axis=pivot_axis)
    rod_end = rod.marker("wrist", at(0.93541435, -0.35355339), axis=pivot_axis)
    wrist = slider.marker("wrist", at(0, 0), axis=pivot_axis)
    rail = s.ground.marker("rail", at(0, 0), axis=at(1, 0))
    shoe = slider.marker("shoe", at(0, 0), axis=at(1, 0))

    pin = s.spherical if pins == "spherical" and not planar else s.revolute
    pin("main", pivot, crank_foot)
    pin("crank_pin", crank_pin, rod_pin)
    pin("wrist_pin", rod_end, wrist)
    (s.prismatic if planar else s.cylindrical)("slide", rail, shoe)

    center = crank.marker("center", axis=pivot_axis)
    if drive == "motor":
        s.torque("motor", center, -10.0 if planar else 10.0)
    elif drive != "none":
        push = 14.142135623730951
        values = [push, -push] if planar else [push, 0.0, -push]
        if drive == "one second":
            laws = [Formula(f"where(t < 1, {value!r}, 0)") for value in values]
            s.force("drive", center, laws, frame="body")
        else:
            s.force("drive", center, values, frame="body")
    return s


def mcpherson() -> System:
    """Make Oldani's McPherson suspension [O 4.2, listing A.3] on a road that moves vertically.

    26 equations, all independent, and four degrees of freedom: travel, spin of the wheel, of the
    tie rod and of the top mount. The hub turns about x as listed, though y is the axis of a wheel.
    """
    s = System("McPherson suspension", (0, 0, -9.80665))
    arm = s.body(
        "lower_arm", mass=4.6, inertia=0.1, position=(0.4162012549, -0.168540764, -0.027081527958)
    )
    strut = s.body(
        "strut", mass=12.1, inertia=0.25, position=(0.4630090362, -0.2796688292, 0.1641816967)
    )
    tie_rod = s.body("tie_rod", mass=1.0, inertia=0.1, position=(0.515, -0.120, 0.075))
    wheel = s.body("wheel", mass=25.0, inertia=0.1, position=(0.452, -0.410, 0.020))
    mount = s.body("top_mount", mass=1.0, inertia=0.1, position=(0.460, -0.180, 0.470))

    arm_axis, hub_axis, strut_axis = (0.27, -0.005, -0.01), (1, 0, 0), (0.01, 0.15, 0.51)
    chassis = s.ground.marker("arm", (0.27, -0.005, -0.01), axis=arm_axis)
    rack = s.ground.marker("rack", (0.47, 0.06, 0.09))
    tower = s.ground.marker("tower", (0.46, -0.18, 0.47))
    road = s.ground.marker(
        "road", (0.452, -0.410, -0.330), motion={"z": Sine(0.03, 15.707963267948966)}
    )
    arm_in = arm.marker("inner", (-0.146201255, 0.163540764, 0.017081528), axis=arm_axis)
    arm_out = arm.marker("outer", (0.033798745, -0.161459236, -0.012918472))
    strut_low = strut.marker("lower", (-0.013009036, -0.050331171, -0.204181697))
    hub = strut.marker("hub", (-0.011009036, -0.130331171, -0.144181697), axis=hub_axis)
    steering = strut.marker("steering", (0.096990964, -0.020331171, -0.104181697))
    strut_top = strut.marker("upper", (-0.003009036, 0.099668829, 0.305818303), axis=strut_axis)
    tie_out = tie_rod.marker("outer", (0.045, -0.18, -0.015))
    tie_in = tie_rod.marker("inner", (-0.045, 0.18, 0.015))
    center = wheel.marker("center", axis=hub_axis)
    mount_center = mount.marker("center", axis=strut_axis)

    s.revolute("arm_pivot", chassis, arm_in)
    s.revolute("hub", hub, center)
    s.spherical("ball_joint", arm_out, strut_low)
    s.spherical("tie_rod_outer", steering, tie_out)
    s.spherical("tie_rod_inner", rack, tie_in)
    s.spherical("top_ball", tower, mount_center)
    s.cylindrical("damper_rod", strut_top, mount_center)
    s.spring(
        "suspension", strut_low, mount_center, stiffness=4.22e4, damping=2.7e3, free_length=0.4815
    )
    s.spring("tire", road, center, stiffness=2.0e5, damping=8.0e4, free_length=0.35)
    return s


def five_bar() -> System:
    """Make Vita's spatial five-bar [V 4.7.1]: three bars of 1 m carry a coupler of 2.5 m.

    Six revolutes about z: 30 equations, 23 of them independent, one degree of freedom.
    """
    s = System("five-bar", (0, -9.81, 0))
    turned = (0.9238795325, 0, 0, -0.3826834323)

    def bar(name: str, x: float) -> None:
        inertia, position = (0.13, 6.565, 6.565), (x, -0.3535533905, 0)
        s.body(name, mass=78, inertia=inertia, position=position, rotation=turned)

    bar("left", 0.3535533905)
    inertia, position = (0.325, 101.725, 101.725), (1.957106781, -0.707106781, 0)
    s.body("coupler", mass=195, inertia=inertia, position=position)
    bar("right", 2.85355339)
    bar("center", 1.60355339)

    frame = np.array([[_ROOT, -_ROOT, 0], [_ROOT, _ROOT, 0], [0, 0, 1]])
    bodies = {"ground": s.ground, **{body.name: body for body in s.bodies}}
    for name, (first, x_i), (second, x_j) in (
        ("C1", ("ground", 0.0), ("left", -0.5)),
        ("C2", ("left", 0.5), ("coupler", -1.25)),
        ("C3", ("right", 0.5), ("coupler", 1.25)),
        ("C4", ("ground", 2.5), ("right", -0.5)),
        ("C5", ("ground", 1.25), ("center", -0.5)),
        ("C6", ("center", 0.5), ("coupler", 0.0)),
    ):
        i = bodies[first].marker(name, (x_i, 0, 0), rotation=frame)
        j = bodies[second].marker(name, (x_j, 0, 0), rotation=frame)
        s.revolute(name, i, j)
    return s


def cardan(angle: float = np.radians(10.0), speed: float = 2.0) -> System:
    """Make Vita's Cardan joint [V 4.7.3]: two forks and a cross, driven at constant speed.

    Each fork holds the cross in two bearings, so six revolutes give 30 equations, 17 of them
    independent. Masses and lengths are ours: the source prints none, and the motion is prescribed.

    Parameters
    ----------
    angle
        Between the shafts, in rad.
    speed
        Of the input fork about its shaft, along x, in rad/s.
    """
    s = System("Cardan joint", (0, 0, 0))
    shaft = np.array([np.cos(angle), 0.0, np.sin(angle)])
    pin_in = np.array([0.0, 1.0, 0.0])
    pin_out = np.cross(pin_in, shaft)
    arm, reach = 0.05, 0.1
    inertia = (1e-3, 2e-3, 2e-3)
    fork_in = s.body("input", mass=1.0, inertia=inertia, position=(-reach, 0, 0))
    cross = s.body("cross", mass=0.2, inertia=1e-4)
    tilt = np.column_stack([shaft, pin_in, np.cross(shaft, pin_in)])
    fork_out = s.body("output", mass=1.0, inertia=inertia, position=reach * shaft, rotation=tilt)
    drive = s.revolute("input_shaft", s.ground, fork_in, at=(-2 * reach, 0, 0), axis=(1, 0, 0))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        s.revolute(f"input_{side}", fork_in, cross, at=sign * arm * pin_in, axis=pin_in)
        s.revolute(f"output_{side}", cross, fork_out, at=sign * arm * pin_out, axis=pin_out)
    s.revolute("output_shaft", s.ground, fork_out, at=2 * reach * shaft, axis=shaft)
    s.driver("drive", drive, Linear(0.0, speed))
    return s


def four_bar(n: int = 1, *, planar: bool = True) -> System:
    """Make n four-bars in a row, IFToMM benchmark A02: one degree of freedom.

    n + 1 upright bars and n couplers, slender rods of 1 m and 1 kg with their frames at the center
    and x along the rod; feet at (i, 0), tops at (i, 1), moving at 1 m/s along +x; gravity 9.81 m/s²
    along -y. In a plane 6 n + 2 equations, all independent until the bars lie flat; in space
    15 n + 5, of which 12 n + 5 are independent.
    """

    if n < 1:
        raise DiagramError(f"a row has at least one four-bar, got n={n!r}.")

    def vector(x: float, y: float) -> tuple[float, ...]:
        return (x, y) if planar else (x, y, 0.0)

    s = System(f"{n} four-bars", vector(0, -9.81), planar=planar)
    inertia = 1 / 12 if planar else (0.0, 1 / 12, 1 / 12)
    upright = np.pi / 2 if planar else np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    axis = None if planar else (0, 0, 1)
    bars = []
    for i in range(n + 1):
        bar = s.body(
            f"bar{i}",
            mass=1.0,
            inertia=inertia,
            position=vector(i, 0.5),
            rotation=upright,
            velocity=vector(0.5, 0),
            angular_velocity=-1.0 if planar else (0, 0, -1.0),
        )
        s.revolute(f"foot{i}", s.ground, bar, at=vector(i, 0), axis=axis)
        bars.append(bar)
    for i in range(n):
        coupler = s.body(
            f"coupler{i}",
            mass=1.0,
            inertia=inertia,
            position=vector(i + 0.5, 1),
            velocity=vector(1, 0),
        )
        s.revolute(f"top{i}", bars[i], coupler, at=vector(i, 1), axis=axis)
        s.revolute(f"end{i}", coupler, bars[i + 1], at=vector(i + 1, 1), axis=axis)
    return s


def crank_rocker(
    pin: ContactLaw | Literal["ideal", "link"] = "ideal",
    *,
    speed: float,
    crank: float = 0.065,
    clearance: float = 5e-4,
    toward: float = 0.0,
    drive: Literal["speed", "torque"] = "speed",
) -> System:
    """Make a planar crank-rocker with clearance between the coupler and the pin of the rocker.

    Benchmark (i) gives clearances of 0.1 to 1 mm, cranks of 65 and 85 mm and speeds of 500 to 3000
    rpm; all else is ours: ground and coupler 0.2 m, rocker 0.15 m, slender rods of 0.4 and 0.3 kg;
    a balanced crank of 1 kg and 0.002 kg m²; a pin of 10 mm radius; 9.81 m/s².
    It starts with the crank at 60° at its speed, the pin at rest at the wall of its hole.

    Parameters
    ----------
    pin
        Pin between rocker and coupler: ``"ideal"``, a revolute; a contact law, a
        revolute with clearance; ``"link"``, a rod without mass, as long as the clearance, between
        their centers, which models a permanent contact.
    speed
        Of the crank at the start, in rad/s.
    crank, clearance
        In m.
    toward
        The angle from the center of the hole to that of the pin at the start, in rad.
    drive
        ``"speed"``: the driver ``drive`` holds the speed. ``"torque"``: the torque ``motor`` on the
        crank, 0 if nothing gives it.
    """
    require_choice("drive", drive, ("speed", "torque"))
    ground, coupler, rocker, start = 0.2, 0.2, 0.15, np.pi / 3
    s = System("crank-rocker", (0.0, -9.81), planar=True)
    joint = crank * np.array([np.cos(start), np.sin(start)])
    offset = (0.0 if pin == "ideal" else clearance) * np.array([np.cos(toward), np.sin(toward)])
    # The hole is on a circle about the crank's pin, and on one about the rocker's foot, moved.
    between = np.array([ground, 0.0]) - offset - joint
    away = float(np.linalg.norm(between))
    along = (away**2 + coupler**2 - rocker**2) / (2.0 * away)
    across = np.array([-between[1], between[0]]) / away
    hole = joint + along / away * between + np.sqrt(coupler**2 - along**2) * across
    arm, lever = hole - joint, hole + offset - np.array([ground, 0.0])
    # Both ends of the play move alike: ω × joint + a × arm = b × lever.
    rates = np.linalg.solve(
        np.array([[-arm[1], lever[1]], [arm[0], -lever[0]]]),
        -speed * np.array([-joint[1], joint[0]]),
    )
    wheel = s.body("crank", mass=1.0, inertia=0.002, rotation=start, angular_velocity=speed)
    rod = s.body(
        "coupler", mass=0.4, inertia=0.4 * coupler**2 / 12, com=(coupler / 2, 0), position=joint,
        rotation=np.arctan2(arm[1], arm[0]), velocity=speed * np.array([-joint[1], joint[0]]),
        angular_velocity=rates[0],
    )  # fmt: skip
    swing = s.body(
        "rocker", mass=0.3, inertia=0.3 * rocker**2 / 12, com=(rocker / 2, 0),
        position=(ground, 0.0), rotation=np.arctan2(lever[1], lever[0]), angular_velocity=rates[1],
    )  # fmt: skip
    main = s.revolute("main", s.ground, wheel, at=(0.0, 0.0))
    s.revolute("crank_pin", wheel.marker("pin", (crank, 0.0)), rod.marker("start"))
    s.revolute("foot", s.ground, swing, at=(ground, 0.0))
    ends = rod.marker("hole", (coupler, 0.0)), swing.marker("pin", (rocker, 0.0))
    if pin == "ideal":
        s.revolute("pin", *ends)
    elif pin == "link":
        s.distance("pin", *ends, length=clearance)
    else:
        s.clearance_revolute(
            "pin", ends[1], ends[0], clearance=clearance, pin_radius=0.01, contact=pin
        )
    if drive == "speed":
        s.driver("drive", main, Linear(start, speed))
    else:
        s.torque("motor", main, 0.0)
    return s


def pendulum_on_cart() -> System:
    """Make the planar slider, pendulum and damper of [P, examples 3.1-3.9]; two degrees of freedom.

    The damper reaches from the free end of the pendulum to the ground at (4, -1) m; gravity is
    10 m/s². The pendulum starts at 45°, at rest. The prismatic joint is marked at the origin and
    not at (100, 0): its equations are the same.
    """
    a, angle = 1.0, np.pi / 4
    s = System("slider, pendulum, damper", (0, -10), planar=True)
    cart = s.body("cart", mass=5.0, inertia=2.0)
    swung = (a * np.sin(angle), -a * np.cos(angle))
    pendulum = s.body("pendulum", mass=3.0, inertia=3.0 * a**2 / 3, position=swung, rotation=angle)
    s.prismatic("slide", s.ground, cart, at=(0, 0), axis=(1, 0))
    s.revolute("pivot", cart.marker("pivot"), pendulum.marker("pivot", (0, a)))
    tip, wall = pendulum.marker("tip", (0, -a)), s.ground.marker("wall", (4 * a, -a))
    s.spring("damper", tip, wall, damping=10.0)
    return s


def rotor(speed: float = 100.0, *, stiffness: float | None = 1e6, damping: float = 100.0) -> System:
    """Make Vita's unbalanced rotor [V 4.8, tables 4.2-4.3]: 1 kg, 1 mm off its axis, along z.

    The frame is on the axis of the shaft, level with the center of mass; the supports are 0.2 m
    below and 0.1 m above it, at markers ``a`` and ``b``. Its inertia, (0.01, 0.01, 0.3) kg m², is
    not physical, but it is the printed one. One equation holds it at z = 0. There is no gravity.

    Parameters
    ----------
    speed
        At the start, in rad/s.
    stiffness, damping
        Of each support, the same in x and y, in N/m and N s/m: ours, the source has oil films
        there. With ``stiffness=None`` there are no supports: add bearings at the markers.
    """
    s = System("rotor", (0, 0, 0))
    body = s.body(
        "rotor",
        mass=1.0,
        inertia=(0.01, 0.01, 0.3),
        com=(0.001, 0, 0),
        angular_velocity=(0, 0, speed),
        allow_nonphysical=True,
    )
    s.in_plane("axial", s.ground, body, at=(0, 0, 0), axis=(0, 0, 1))
    for name, z in (("a", -0.2), ("b", 0.1)):
        seat, journal = s.ground.marker(name, (0, 0, z)), body.marker(name, (0, 0, z))
        if stiffness is not None:
            s.bushing(
                f"support_{name}",
                seat,
                journal,
                stiffness=(stiffness, stiffness, 0, 0, 0, 0),
                damping=(damping, damping, 0, 0, 0, 0),
            )
    return s


def crank_pin(
    pin: Literal["ideal", "force", "constraint", "open"] = "force", *, speed: float = 628.3185
) -> System:
    """Make Vita's planar slider-crank with a lubricated crank pin [V 4.8.1, table 4.1].

    Crank 30 mm, rod 110 mm; the slider has no mass, so that the small end of the rod, a marker,
    stays on a line. As in the source the journal's point, ``rod.big``, is on the rod and the bush,
    ``crank.pin``, on the crank, and the steady law uses ω_rod - ω_crank: its load turns with the
    crank. The source prints neither drive nor start nor gravity. Ours: a steady speed, from the
    position with crank and rod in line, with the velocities of the ideal mechanism; no gravity.

    Parameters
    ----------
    pin
        An ideal revolute; a film with squeeze as a force; the steady film as a constraint; or
        no connection, for a film as a block: its force and torque on the rod are then the inputs
        ``push`` and ``brake``. The drive carries its reaction on the crank.
    speed
        Of the crank, in rad/s.
    """
    crank_length, rod_length = 0.030, 0.110
    s = System("slider-crank", (0, 0), planar=True)
    crank = s.body(
        "crank",
        mass=0.20,
        inertia=0.15e-4,
        position=(crank_length / 2, 0),
        velocity=(0, speed * crank_length / 2),
        angular_velocity=speed,
    )
    rod = s.body(
        "rod",
        mass=0.40,
        inertia=4.03e-4,
        position=(crank_length + rod_length / 2, 0),
        velocity=(0, speed * crank_length / 2),
        angular_velocity=-speed * crank_length / rod_length,
    )
    s.driver("drive", s.revolute("main", s.ground, crank, at=(0, 0)), Linear(0.0, speed))
    s.guide("slider", s.ground.marker("line"), rod.marker("small", (rod_length / 2, 0)))
    seat, big = crank.marker("pin", (crank_length / 2, 0)), rod.marker("big", (-rod_length / 2, 0))
    if pin == "ideal":
        s.revolute("pin", seat, big)
    elif pin == "force":
        s.bearing("pin", big, seat, crank_pin_film())
    elif pin == "constraint":
        film = crank_pin_film(squeeze=False)
        s.bearing("pin", big, seat, film, coupling="constraint", load_axes="bush")
    else:
        require_choice("`pin` of crank_pin", pin, ("ideal", "force", "constraint", "open"))
        s.force("push", big, (Input(), Input()))
        s.torque("brake", big, Input())
    return s


def crank_pin_film(*, squeeze: bool = True) -> ShortBearing:
    """Make the film of `crank_pin` as a block [V table 4.1]."""
    return ShortBearing(
        radius=0.025, length=0.040, clearance=0.254e-4, viscosity=0.0242, squeeze=squeeze
    )


def squeezer() -> System:
    """Make Andrews' squeezer mechanism [HW VII.7]: seven bodies in a plane, one degree of freedom.

    A torque of 0.033 N m, called ``motor``, turns the shortest link; a spring acts on the body
    that is pinned at B. Three links share one pin, which gives ten pins. It starts at rest,
    without gravity. The seven published coordinates are joint angles: β is ``beta.angle``, and so
    on for theta, gamma, phi, delta, omega and epsilon. Masses, inertias and lengths are those of
    Schiehlen, Multibody Systems Handbook (1990), as given in the Test Set for IVP Solvers.
    """
    beta, theta, gamma = -0.0617138900142764496, 0.0, 0.455279819163070380
    phi, delta = 0.222668390165885885, 0.487364979543842550
    omega, epsilon = -0.222668390165885885, 1.23054744454982119
    s = System("squeezer", (0, 0), planar=True)
    a = s.ground.marker("A", (-0.06934, -0.00227))
    b = s.ground.marker("B", (-0.03635, 0.03273))

    def pinned(
        name: str, angle: str, foot: Marker, turned: float, inert: tuple[float, float], com: Any
    ) -> Body:
        """Add a body with its frame at the pin ``angle`` at its foot, rotated relative to it."""
        first = foot.body
        body = s.body(
            name,
            mass=inert[0],
            inertia=inert[1],
            com=com,
            position=foot.world_position[:2],
            rotation=float(np.arctan2(first.rotation[1, 0], first.rotation[0, 0])) + turned,
        )
        s.revolute(angle, foot, body.marker("foot"))
        return body

    k1 = pinned("K1", "beta", s.ground.marker("O"), beta, (0.04325, 2.194e-6), (0.00092, 0))
    k2 = pinned(
        "K2", "theta", k1.marker("end", (0.007, 0)), theta, (0.00365, 4.41e-7), (-0.0115, 0)
    )
    k3 = pinned("K3", "gamma", b, gamma, (0.02373, 5.255e-6), (0.01043, -0.01874))
    k5 = pinned("K5", "delta", a, delta, (0.0705, 1.169e-5), (0.02308, 0.00916))
    k4 = pinned("K4", "phi", k5.marker("end", (0.04, 0)), phi, (0.00706, 5.667e-7), (0, -0.00579))
    k7 = pinned("K7", "epsilon", a, epsilon, (0.05498, 1.912e-5), (-0.00449, -0.01228))
    k6 = pinned(
        "K6", "omega", k7.marker("end", (0, -0.04)), omega, (0.00706, 5.667e-7), (0.00579, 0)
    )
    common = k2.marker("end", (-0.028, 0))
    for body, place in ((k3, (0, -0.035)), (k4, (0, -0.02)), (k6, (0.02, 0))):
        s.revolute(f"common_{body.name}", common, body.marker("end", place))
    s.spring(
        "spring",
        s.ground.marker("C", (0.014, 0.072)),
        k3.marker("D", (0.02, -0.018)),
        stiffness=4530.0,
        free_length=0.07785,
    )
    s.torque("motor", k1.marker("motor"), 0.033)
    return s
