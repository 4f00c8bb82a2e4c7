"""Systems and states that several tests of formulations use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from biella.blocks.multibody import Formula, Linear, Sine, System, mechanisms
from biella.blocks.multibody.reference_formulations import (
    AbstractModel,
    EulerModel,
    NaturalModel,
    assemble,
    consistent_velocity,
)
from biella.blocks.multibody.system._rotations import rotation_about

Array = NDArray[np.float64]
SETS: dict[str, type[AbstractModel]] = {"natural": NaturalModel, "euler": EulerModel}


def state(model: AbstractModel, seed: int = 0, size: float = 0.05) -> tuple[Array, Array]:
    """Return a random state that satisfies the constraints, near the given pose, at t = 0."""
    rng = np.random.default_rng(seed)
    q = assemble(model, 0.0, model.q0 + size * rng.normal(size=model.n))
    v, _ = consistent_velocity(model, 0.0, q, rng.normal(size=model.n))
    return q, v


def jointed(kind: str, planar: bool) -> System:
    """Return two free bodies with centers of mass off their frames, and one joint, all driven."""
    rng = np.random.default_rng(3)
    s = System("pair", planar=planar)

    def vector() -> Any:
        return rng.normal(size=2 if planar else 3)

    bodies = [
        s.body(
            name,
            mass=2.0,
            inertia=0.7 if planar else (0.5, 0.6, 0.7),
            com=vector(),
            position=vector(),
            rotation=0.4 if planar else rotation_about([0.6, 0.0, 0.8], 0.7),
            free=True,
        )
        for name in ("a", "b")
    ]
    moves = {"x": Sine(0.1, 2.0, 0.3), "y": Linear(0.0, 0.2)}
    if kind == "distance":
        first = bodies[0].marker("m", vector(), motion=moves)
        s.distance("joint", first, bodies[1].marker("m", vector()), length=1.3)
        return s
    turn_i = 0.3 if planar else rotation_about([0.0, 0.6, 0.8], 0.9)
    turn_j = 0.5 if planar else rotation_about([0.0, 0.6, 0.8], 1.1)
    if kind == "universal":
        turn_j = (
            bodies[1].rotation.T @ bodies[0].rotation @ turn_i @ [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
        )
    first = bodies[0].marker("m", vector(), rotation=turn_i, motion=moves)
    second = bodies[1].marker("m", vector(), rotation=turn_j)
    joint = getattr(s, "planar_joint" if kind == "planar" else kind)("joint", first, second)
    for n in range(len(joint.coordinates)):
        s.driver(f"drive{n}", joint, Formula("0.3*sin(2*t) + 0.1"), coordinate=n)
    return s


FREE = {
    "slider-crank": lambda: mechanisms.slider_crank("spherical"),
    "mcpherson": mechanisms.mcpherson,
    "pendulum": mechanisms.pendulum_on_cart,
}
REDUNDANT = {
    "slider-crank": mechanisms.slider_crank,
    "five-bar": mechanisms.five_bar,
    "cardan": mechanisms.cardan,
}


def everything(planar: bool, turning: float = 4.0) -> System:
    """Return a cart, a double pendulum on it and one of each element.

    The bushing turns about z with the stiffness `turning`.
    """
    g = (0.3, -9.81) if planar else (0.3, -9.81, 0.5)

    def vector(x: float, y: float, z: float = 0.0) -> Any:
        return (x, y) if planar else (x, y, z)

    s = System("everything", g, planar=planar)
    size: Any = 0.3 if planar else (0.2, 0.25, 0.3)
    cart = s.body("cart", mass=2.0, inertia=size, com=vector(0.1, 0.2))
    arm = s.body("arm", mass=1.0, inertia=size, position=vector(0.5, 0), com=vector(0, 0.1))
    tip = s.body("tip", mass=0.5, inertia=size, position=vector(1.5, 0))
    loose = s.body("loose", mass=0.7, inertia=size, position=vector(2.2, 0.1))
    slide = s.prismatic("slide", s.ground, cart, at=vector(0, 0), axis=vector(1, 0))
    axis = None if planar else (0, 0, 1)
    elbow = s.revolute("elbow", cart, arm, at=vector(0, 0), axis=axis)
    wrist = s.revolute("wrist", arm, tip, at=vector(1, 0), axis=axis)
    road = s.ground.marker("road", vector(0, -2), motion={"x": Sine(0.1, 3.0)})
    end, other = tip.marker("end", vector(0.5, 0)), loose.marker("end", vector(-0.2, 0.1))
    s.spring(
        "spring", road, end, stiffness="100 + 5*l", damping=3.0, free_length=0.5, force="2*t + v"
    )
    s.spring("lift", s.ground.marker("hook"), end, stiffness=20.0, components="y")
    s.bushing(
        "bushing",
        end,
        other,
        stiffness=(50, 60, turning) if planar else (50, 60, 70, 3, 5, turning),
        damping=(1, 2, 0.3) if planar else (1, 2, 3, 0.1, 0.2, 0.3),
    )
    s.force("push", slide, 3.0)
    s.torque("motor", elbow, "4*cos(t)")
    s.force("follower", end, (1.0, 2.0) if planar else (1.0, 2.0, 0.0), frame="body")
    s.torque("twist", other, 1.5)
    s.torsional_spring("coil", wrist, stiffness=5.0, damping=0.2, free_angle=0.3, torque=0.1)
    s.friction("rub", elbow, viscous=0.3, coulomb=0.5, smoothing_speed=0.1)
    s.stop("stop", slide, lower=-1.0, upper=-0.5, stiffness=200.0, damping=3.0)
    return s
