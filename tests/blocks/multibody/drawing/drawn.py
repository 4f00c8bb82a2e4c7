"""Systems and poses that several tests of pictures draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from numpy.typing import NDArray

from biella.blocks.multibody import Input, Marker, System, mechanisms
from biella.blocks.multibody.drawing._figure import SystemFigure
from biella.blocks.multibody.drawing._poses import (
    Poses,
    given_poses,
    snapshots,
)
from biella.blocks.multibody.drawing._scene import Scene
from biella.blocks.multibody.drawing._view import read_view
from biella.blocks.multibody.system._rotations import quaternion_from_rotation, rotation_about

Array = NDArray[np.float64]

READY: dict[str, Callable[[], System]] = {
    "slider_crank": mechanisms.slider_crank,
    "slider_crank_planar": lambda: mechanisms.slider_crank(planar=True),
    "slider_crank_listed": lambda: mechanisms.slider_crank("spherical", drive="as listed"),
    "mcpherson": mechanisms.mcpherson,
    "five_bar": mechanisms.five_bar,
    "cardan": mechanisms.cardan,
    "four_bar": lambda: mechanisms.four_bar(3),
    "pendulum_on_cart": mechanisms.pendulum_on_cart,
    "rotor": mechanisms.rotor,
}


def everything() -> System:
    """Make a system with every kind of joint and element, between bodies and on the ground."""
    s = System("everything", (0, 0, -9.81))
    base = s.body("base", mass=1, inertia=1.0, position=(0, 0, 0))
    s.fixed("weld", s.ground, base, at=(0, 0, 0))
    places = {
        "prismatic": (1, 0, 0),
        "cylindrical": (1, 1, 0),
        "universal": ((1, 0, 0), (0, 1, 0)),
        "planar": (0, 0, 1),
        "guide": (0, 1, 0),
        "in_plane": (0, 0, 1),
    }
    joints = {}
    for n, (kind, axis) in enumerate(places.items()):
        body = s.body(kind, mass=1, inertia=0.1, position=(n % 3 + 1, n // 3, 0.3))
        body.marker("end", (0, 0, 0.4))
        method = "planar_joint" if kind == "planar" else kind
        joints[kind] = getattr(s, method)(f"{kind}_joint", base, body, at=body.position, axis=axis)
    ball = s.body("ball", mass=1, inertia=0.1, position=(2, 2, 1))
    ball.marker("side", (0.2, 0.1, 0))
    soft = (1e3, 1e3, 1e3, 0, 0, 0)
    anchor = s.ground.marker("anchor", (2, 2, 2))
    s.distance("rope", anchor, ball.marker("hook"))
    s.bushing("rubber", base.marker("seat", (2, 2, 1)), ball.marker("core"), stiffness=soft)
    s.bushing(
        "foot",
        s.ground.marker("floor", (0, 0, -1)),
        base.marker("foot", (0, 0, -1)),
        stiffness=soft,
    )
    s.spring("coil", anchor, base.marker("lug", (0, 2, 1)), stiffness=10.0)
    s.spring("actuator", anchor, base.marker("lug2", (0, 1, 1)), force=Input())
    end = cast(Marker, s["guide.end"])
    s.force("push", end, (1, 0, 0))
    s.torque("twist", end, Input())
    s.force("shove", joints["prismatic"], 5.0)
    s.torsional_spring("watch", joints["universal"], stiffness=1.0)
    s.friction("drag", joints["prismatic"], viscous=1.0)
    s.stop("stop", joints["prismatic"], lower=-1.0, stiffness=1e3)
    s.driver("drive", joints["cylindrical"], "0.1 * t", coordinate=0)
    return s


def slider_crank_motion(n: int = 41, turns: float = 1.0) -> Poses:
    """Return the closed-form motion of the slider-crank: crank 1 m, rod 2 m, in the plane x-z."""
    times = np.linspace(0.0, 1.0, n)
    angle = np.pi / 4 + 2 * np.pi * turns * times
    sine, cosine = np.sin(angle), np.cos(angle)
    reach = np.sqrt(4.0 - sine**2)
    zero = np.zeros(n)
    positions = np.stack(
        [
            np.column_stack([cosine / 2, zero, sine / 2]),
            np.column_stack([cosine + reach / 2, zero, sine / 2]),
            np.column_stack([cosine + reach, zero, zero]),
        ],
        axis=1,
    )
    # Markers are given for 45°; the rod then points down by asin(sin 45° / 2).
    lean = np.arcsin(sine / 2) - np.arcsin(np.sqrt(0.5) / 2)
    turned = np.stack([-(angle - np.pi / 4), lean, zero], axis=1)
    rotations = [[rotation_about((0, 1, 0), a) for a in row] for row in turned]
    quaternions = np.array([[quaternion_from_rotation(r) for r in row] for row in rotations])
    return Poses(times, positions, quaternions)


def scene_of(system: System, poses: Poses | None = None) -> Scene:
    frames = snapshots(poses or given_poses(system))
    return Scene(system, frames, read_view(system, frames, None))


def text_boxes(figure: SystemFigure) -> dict[str, Array]:
    """Return the boxes of all names on the main axes as matplotlib draws them, in pixels."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    found = {}
    for text in figure.axes[0].texts:
        assert isinstance(text, Text)
        box = text.get_window_extent(renderer)
        found[text.get_text()] = np.array([box.x0, box.y0, box.x1, box.y1])
    return found
