"""Pictures of mechanisms: what is in them, that nothing overlaps, and the errors that teach."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from numpy.typing import NDArray
from PIL import Image

from biella import DiagramError
from biella.blocks.multibody import Input, Marker, System, mechanisms
from biella.blocks.multibody.drawing import _animation as animation
from biella.blocks.multibody.drawing._figure import SystemFigure
from biella.blocks.multibody.drawing._labels import place_labels
from biella.blocks.multibody.drawing._picture import animate, draw, frame_times, poses_from_result
from biella.blocks.multibody.drawing._poses import (
    Poses,
    Snapshot,
    given_poses,
    read_poses,
    snapshots,
)
from biella.blocks.multibody.drawing._scene import Scene
from biella.blocks.multibody.drawing._strokes import hull, zigzag
from biella.blocks.multibody.drawing._symbols import JointView
from biella.blocks.multibody.drawing._view import read_view
from biella.blocks.multibody.system._rotations import quaternion_from_rotation, rotation_about
from biella.scheduler.results._result import Result

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


@pytest.mark.parametrize("name", READY)
def test_a_ready_mechanism_is_drawn_whole(name: str, tmp_path: Path) -> None:
    system = READY[name]()
    figure = draw(system, tmp_path / "picture.png")
    image = np.asarray(Image.open(tmp_path / "picture.png").convert("RGB"))
    colors = {tuple(pixel) for pixel in image.reshape(-1, 3)[::7].tolist()}
    assert len(colors) > 20
    axes = figure.axes[0]
    assert axes.get_aspect() == 1.0
    # A meter is as long to the right as upwards, to a hundredth of a pixel.
    x, y = axes.transData.transform([[0, 0], [1, 0]]), axes.transData.transform([[0, 0], [0, 1]])
    assert x[1, 0] - x[0, 0] == pytest.approx(y[1, 1] - y[0, 1], abs=1e-2)

    boxes = text_boxes(figure)
    parts: list[Any] = [*system.bodies, *system.joints, *system.drivers]
    names = {part.name for part in parts}
    assert names <= set(boxes)
    window = axes.get_window_extent()
    listed = list(boxes.items())
    for n, (label, box) in enumerate(listed):
        assert window.x0 <= box[0] and box[2] <= window.x1, label
        assert window.y0 <= box[1] and box[3] <= window.y1, label
        for other_label, other in listed[:n]:
            apart = (box[:2] >= other[2:]).any() or (other[:2] >= box[2:]).any()
            assert apart, f"{label} over {other_label}"


@pytest.mark.parametrize("name", [*READY, "everything"])
def test_nothing_is_outside_of_the_picture(name: str) -> None:
    scene = scene_of(READY[name]() if name in READY else everything())
    for stroke in (*scene.ground, *scene.moving_strokes(scene.frames[0])):
        assert np.isfinite(stroke.points).all()
        assert (stroke.points > scene.bounds.low).all()
        assert (stroke.points < scene.bounds.high).all()


def test_planes_of_motion_are_found() -> None:
    expected = {
        "slider_crank": ("x [m]", "z [m]"),
        "slider_crank_listed": ("x [m]", "z [m]"),
        "five_bar": ("x [m]", "y [m]"),
        "four_bar": ("x [m]", "y [m]"),
        "rotor": ("z [m]", "x [m]"),
    }
    for name, labels in expected.items():
        axes = draw(READY[name]()).axes[0]
        assert (axes.get_xlabel(), axes.get_ylabel()) == labels
    for name in ("mcpherson", "cardan"):
        view = scene_of(READY[name]()).paper.view
        assert not view.flat
        # Gravity, or z, still points down and straight.
        assert view.project(np.array([0.0, 0.0, -1.0]))[0] == pytest.approx(0.0, abs=1e-12)
        assert view.project(np.array([0.0, 0.0, -1.0]))[1] < 0.0


def test_a_motion_out_of_the_plane_is_seen_obliquely() -> None:
    s = System("spherical pendulum", (0, 0, -9.81))
    bob = s.body("bob", mass=1, inertia=0.1, position=(1, 0, 0))
    s.spherical("ball", s.ground, bob, at=(0, 0, 0))
    bob.marker("tip", (0.5, 0, 0))
    angles = np.linspace(0, 2 * np.pi, 20)
    turns = np.array([[quaternion_from_rotation(rotation_about((0, 0, 1), a))] for a in angles])
    places = np.stack([np.cos(angles), np.sin(angles), 0.5 * np.cos(2 * angles)], 1)[:, None]
    poses = Poses(angles, places, turns)
    assert scene_of(s).paper.view.flat
    assert not scene_of(s, poses).paper.view.flat


def test_a_tilted_plane_is_called_by_its_directions() -> None:
    root = np.sqrt(0.5)
    s = System("tilted", (0, 0, -9.81))
    bar = s.body("bar", mass=1, inertia=0.1, position=(root, root, 0))
    s.revolute("pin", s.ground, bar, at=(0, 0, 0), axis=(root, -root, 0))
    bar.marker("tip", (root, root, 1))
    axes = draw(s).axes[0]
    assert axes.get_xlabel() == "along (0.71, 0.71, 0.00) [m]"
    assert axes.get_ylabel() == "z [m]"


def test_shapes_follow_from_markers() -> None:
    kinds = {
        name: {n: shape.kind for n, shape in scene_of(READY[name]()).shapes.items()}
        for name in ("slider_crank", "mcpherson", "pendulum_on_cart", "cardan")
    }
    assert kinds["slider_crank"] == {"crank": "rod", "rod": "rod", "slider": "block"}
    assert kinds["pendulum_on_cart"] == {"cart": "block", "pendulum": "rod"}
    assert kinds["mcpherson"]["wheel"] == "disc"
    assert kinds["mcpherson"]["strut"] == "plate"
    assert kinds["mcpherson"]["top_mount"] == "block"
    assert kinds["cardan"] == {"input": "plate", "cross": "plate", "output": "plate"}
    # J = m r²/2: a wheel of 25 kg and 0.1 kg m² has r = 0.0894 m.
    wheel = scene_of(READY["mcpherson"]()).shapes["wheel"]
    assert wheel.disc == pytest.approx(np.sqrt(2 * 0.1 / 25))


def test_every_joint_and_element_has_a_sign_unless_said() -> None:
    system = everything()
    scene = scene_of(system)
    frame, paper = scene.frames[0], scene.paper
    for joint in system.joints:
        view = JointView(joint, frame, paper, scene.rails[joint.name])
        assert joint.entry.draw(view), joint.name
    signs = {
        part.name: len(part.draw(frame, paper)) for part in (*system.elements, *system.drivers)
    }
    # A bushing on the ground is a part of the ground.
    assert {name for name, strokes in signs.items() if not strokes} == {"drag", "stop", "foot"}
    written = set(text_boxes(draw(system)))
    assert {body.name for body in system.bodies} | {"coil", "push", "twist", "watch"} <= written
    assert not {"drag", "stop"} & written


def test_a_place_on_the_ground_is_hatched_once() -> None:
    s = System("cart", (0, -9.81), planar=True)
    cart = s.body("cart", mass=1, inertia=1.0)
    s.prismatic("slide", s.ground, cart, at=(0, 0), axis=(1, 0))
    wall = s.ground.marker("wall", (-1, 0))
    s.spring("coil", wall, cart.marker("a"), stiffness=1.0)
    once = len(scene_of(s).ground)
    s.spring("pot", wall, cart.marker("b"), damping=1.0)
    assert len(scene_of(s).ground) == once


def test_arrows_turn_with_the_right_hand() -> None:
    for torque, turn in ((1.0, 1.0), (-1.0, -1.0)):
        s = System("fan", (0, 0), planar=True)
        fan = s.body("fan", mass=1, inertia=1.0)
        pin = s.revolute("pin", s.ground, fan, at=(0, 0))
        load = s.torque("motor", pin, torque)
        arc = load.draw(scene_of(s).frames[0], scene_of(s).paper)[0].points
        cross = arc[:-1, 0] * arc[1:, 1] - arc[:-1, 1] * arc[1:, 0]
        assert (np.sign(cross) == turn).all()


def test_a_body_alone_is_drawn() -> None:
    s = System("stone", (0, 0, -9.81))
    s.body("stone", mass=1, inertia=1.0, free=True)
    assert "stone" in text_boxes(draw(s))


def test_names_that_find_no_room_are_left_out() -> None:
    system = mechanisms.four_bar(40)
    boxes = list(text_boxes(draw(system)).items())
    assert 10 < len(boxes) < 200
    for n, (label, box) in enumerate(boxes):
        for other_label, other in boxes[:n]:
            assert (box[:2] >= other[2:]).any() or (other[:2] >= box[2:]).any(), (
                label,
                other_label,
            )
    scene = scene_of(system)
    strokes = scene.moving_strokes(scene.frames[0])
    nowhere = np.zeros(2)
    assert place_labels(scene.labels(scene.frames[0]), strokes, nowhere, nowhere) == []


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_equal_systems_give_equal_files(suffix: str, tmp_path: Path) -> None:
    files = [tmp_path / f"{n}.{suffix}" for n in (1, 2)]
    for file in files:
        mechanisms.mcpherson().draw(file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert sorted(tmp_path.iterdir()) == files


def test_the_view_and_the_title_can_be_chosen() -> None:
    system = mechanisms.mcpherson()
    axes = draw(system, view="yz", title="").axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("y [m]", "z [m]")
    view = read_view(system, snapshots(given_poses(system)), (1, 1, 1))
    assert view.toward == pytest.approx(np.full(3, np.sqrt(1 / 3)))
    assert not view.flat
    with pytest.raises(DiagramError, match=r"`view` is one of xy, xz, yz, zx, or a direction"):
        draw(system, view="top")


def test_poses_are_drawn_instead_of_the_given_ones() -> None:
    system, motion = mechanisms.slider_crank(), slider_crank_motion()
    halfway = motion.at(np.array([0.5]))
    frame = snapshots(halfway)[0]
    pin = frame.point(system["crank.pin"])  # type: ignore[arg-type]
    assert pin == pytest.approx(
        [np.cos(np.pi * 1.25), 0, np.sin(np.pi * 1.25)], abs=1e-8
    )  # markers are printed with 8 decimals
    assert frame.point(system["rod.pin"]) == pytest.approx(pin, abs=1e-7)  # type: ignore[arg-type]
    scene = scene_of(system, halfway)
    drawn = np.vstack([stroke.points for stroke in scene.moving_strokes(frame)])
    assert np.abs(drawn - scene.paper.at(pin)).max(axis=1).min() < 8.0


def test_rails_are_as_long_as_the_travel() -> None:
    system = mechanisms.slider_crank()
    low, high = scene_of(system, slider_crank_motion(401)).rails["slide"]
    assert (low, high) == pytest.approx((1.0, 3.0), abs=1e-3)


def test_poses_between_times() -> None:
    motion = slider_crank_motion(3, turns=0.25)
    flipped = Poses(motion.times, motion.positions, motion.quaternions * [[[1]], [[-1]], [[1]]])
    for poses in (motion, flipped):
        middle = poses.at(np.array([0.25]))
        turn = snapshots(middle)[0].rotation(mechanisms.slider_crank().bodies[0])
        # Halfway between two turns about one axis, whatever the signs of the parameters.
        assert turn == pytest.approx(rotation_about((0, 1, 0), -np.pi / 8), abs=1e-12)
    assert motion.at(np.array([-1.0, 9.0])).positions == pytest.approx(motion.positions[[0, -1]])


def test_a_gif_moves_and_leaves_traces(tmp_path: Path) -> None:
    system, calls = mechanisms.slider_crank(), []
    path = animate(
        system,
        slider_crank_motion(),
        tmp_path / "film.gif",
        traces=("rod.pin", "slider.wrist"),
        fps=10,
        progress=lambda done, total: calls.append((done, total)),
    )
    with Image.open(path) as image:
        assert getattr(image, "n_frames", None) == 11
        assert image.info["duration"] == 100
        assert image.info["loop"] == 0
        frames = []
        for n in range(11):
            image.seek(n)
            frames.append(np.asarray(image.convert("RGB")).astype(int))
    assert frames[5][0, 0].tolist() == [255, 255, 255]
    assert calls == [(n, 11) for n in range(1, 12)]
    for one, two in pairwise(frames):
        assert (np.abs(one - two).sum(axis=2) > 60).mean() > 0.005
    # After a whole turn the poses are the first ones, and the traces are what differs.
    added = (np.abs(frames[0] - frames[-1]).sum(axis=2) > 60).mean()
    assert 0.001 < added < 0.03
    assert list(tmp_path.iterdir()) == [path]


def test_animations_are_deterministic(tmp_path: Path) -> None:
    system, motion = mechanisms.slider_crank(), slider_crank_motion(9)
    for kind in ("gif", "png"):
        made = [animate(system, motion, tmp_path / f"{n}.{kind}", fps=5) for n in (1, 2)]
        assert made[0].read_bytes() == made[1].read_bytes()


def test_a_still_shows_several_poses(tmp_path: Path) -> None:
    motion = slider_crank_motion()
    one = draw(mechanisms.slider_crank(), poses=motion, title="one")
    path = animate(mechanisms.slider_crank(), motion, tmp_path / "s.png", traces=["crank.pin"])
    image = np.asarray(Image.open(path).convert("RGB")).astype(int)
    one.savefig(tmp_path / "one.png")
    single = np.asarray(Image.open(tmp_path / "one.png").convert("RGB")).astype(int)
    inked = [(picture.sum(axis=2) < 740).mean() for picture in (image, single)]
    assert inked[0] > 1.5 * inked[1]


def test_animation_times() -> None:
    poses = slider_crank_motion(11)
    assert frame_times(poses, "gif", 25, 1.0) == pytest.approx(np.arange(26) * 0.04)
    # A GIF shows a picture for whole hundredths of a second: 30 per second become 33.3.
    assert frame_times(poses, "gif", 30, 1.0) == pytest.approx(np.arange(34) * 0.03)
    assert frame_times(poses, "mp4", 30, 0.5) == pytest.approx(np.arange(61) / 60)


def test_a_animation_asks_for_sensible_numbers(tmp_path: Path) -> None:
    system, motion = mechanisms.slider_crank(), slider_crank_motion(5)
    for options, words in (
        ({"fps": 0}, "`fps` is above 0 and at most 100"),
        ({"speed": -1}, r"`speed` is above 0 \(0.1 is slow motion\), got -1"),
        ({"speed": 1e-4}, "250001 pictures; the most is 3000. Raise `speed`"),
        ({"traces": ["rod.tip"]}, "`rod` has no marker `tip`. Markers: pin, wrist"),
        ({"traces": ["rod"]}, "a trace follows a marker, .* 'rod' is a body"),
        ({"trace": ["rod"]}, "animate has no keyword `trace`. Did you mean `traces`"),
    ):
        with pytest.raises(DiagramError, match=words):
            animate(system, motion, tmp_path / "film.gif", **options)
    assert not list(tmp_path.iterdir())
    with pytest.raises(DiagramError, match="two times or more; with one, use draw"):
        animate(system, given_poses(system), tmp_path / "film.gif")


def test_an_mp4_needs_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DiagramError, match=r"needs the program ffmpeg.* a GIF instead, `a.gif`"):
        animate(mechanisms.slider_crank(), slider_crank_motion(5), tmp_path / "a.mp4")


def test_an_mp4_is_piped_to_ffmpeg(tmp_path: Path) -> None:
    """A stand-in for ffmpeg keeps what it is told and given: the real one is rarely installed."""
    program = tmp_path / "ffmpeg"
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "open(sys.argv[-1], 'wb').write(sys.stdin.buffer.read())\n"
        "open(sys.argv[-1] + '.txt', 'w').write(' '.join(sys.argv))\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    pictures = [np.full((4, 6, 3), n, np.uint8) for n in range(3)]
    animation.write_mp4(tmp_path / "a.mp4", iter(pictures), 25.0, str(program))
    assert (tmp_path / "a.mp4").read_bytes() == b"".join(p.tobytes() for p in pictures)
    assert "-s 6x4 -r 25.000000" in (tmp_path / "a.mp4.txt").read_text(encoding="utf-8")
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('no such codec')\n")
    with pytest.raises(DiagramError, match="ffmpeg could not write the animation: no such codec"):
        animation.write_mp4(tmp_path / "b.mp4", iter(pictures), 25.0, str(program))


def test_pictures_have_an_even_number_of_pixels() -> None:
    # H.264 in its common form refuses others.
    for name in READY:
        figure = draw(READY[name]())
        width, height = figure.canvas.get_width_height()
        assert width % 2 == 0 and height % 2 == 0


def recorded(prefix: str = "plant") -> tuple[Poses, dict[str, Array]]:
    motion = slider_crank_motion(5)
    signals = {}
    for n, body in enumerate(mechanisms.slider_crank().bodies):
        signals[f"{prefix}.{body.name}.position"] = motion.positions[:, n]
        signals[f"{prefix}.{body.name}.rotation"] = motion.quaternions[:, n]
    return motion, signals


def test_poses_come_from_a_result(tmp_path: Path) -> None:
    system = mechanisms.slider_crank()
    motion, signals = recorded("car.plant")
    result = Result.from_arrays(motion.times, signals)
    for prefix in ("car.plant", None):
        poses = poses_from_result(system, result, prefix)
        assert (poses.times == motion.times).all()
        assert (poses.positions == motion.positions).all()
        assert poses.quaternions == pytest.approx(motion.quaternions)
    assert system.animate(result, tmp_path / "film.gif", fps=5).exists()


def test_a_result_without_poses_is_reported() -> None:
    system = mechanisms.slider_crank()
    motion, signals = recorded()
    twice = Result.from_arrays(motion.times, {**signals, **recorded("other")[1]})
    with pytest.raises(DiagramError, match=r"under `plant`, `other`: choose one with prefix="):
        poses_from_result(system, twice)
    del signals["plant.rod.rotation"]
    with pytest.raises(DiagramError, match=r"has no `plant.rod.rotation`.* Record the pose"):
        poses_from_result(system, Result.from_arrays(motion.times, signals))
    with pytest.raises(DiagramError, match=r"has no `….crank.position`: record position"):
        poses_from_result(system, Result.from_arrays(motion.times, {"a": motion.times}))
    signals["plant.rod.rotation"] = motion.times
    with pytest.raises(DiagramError, match=r"`plant.rod.rotation` has shape \(5,\); .* \(5, 4\)"):
        poses_from_result(system, Result.from_arrays(motion.times, signals))


def test_bad_poses_are_reported() -> None:
    system, motion = mechanisms.slider_crank(), slider_crank_motion(5)
    t, p, e = motion.times, motion.positions, motion.quaternions
    spoilt = p.copy()
    spoilt[3, 0, 0] = np.nan
    for value, words in (
        ((t, p[:, :2], e), r"`positions` .* \(5, 2, 3\); .* 3 bodies .* must be \(5, 3, 3\)"),
        ((t, p, e[:4]), r"`quaternions` of the poses has shape \(4, 3, 4\)"),
        ((t[::-1], p, e), "`times` of the poses must rise: 0.75 s comes after 1 s"),
        ((t, spoilt, e), "`positions` of the poses must be finite; row 3 is not"),
        ((t, p, 2 * e), "those of `crank` in row 0 have length 2"),
        (([], p[:0], e[:0]), "with at least one time"),
        (7, r"poses are \(times, positions, quaternions\), Poses, or the result of a run; got int"),
    ):
        with pytest.raises(DiagramError, match=words):
            read_poses(system, value)


def test_bad_targets_are_told_before_any_work(tmp_path: Path) -> None:
    system = mechanisms.slider_crank()
    with pytest.raises(DiagramError, match=r"cannot draw to `a.bmp`: .* extensions png, svg, pdf"):
        draw(system, tmp_path / "a.bmp")
    with pytest.raises(DiagramError, match=r"there is no folder"):
        draw(system, tmp_path / "none" / "a.png")
    with pytest.raises(DiagramError, match=r"`a.svg`: .* extensions gif, mp4, png"):
        animate(system, slider_crank_motion(5), tmp_path / "a.svg")
    with pytest.raises(DiagramError, match=r"the system `empty` has no bodies to draw"):
        draw(System("empty"))
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(DiagramError, match=r"cannot write `.*folder.png`"):
        draw(system, tmp_path / "folder.png")
    assert [file.name for file in tmp_path.iterdir()] == ["folder.png"]


def test_describing_does_not_import_matplotlib() -> None:
    code = (
        "import sys; from biella.blocks.multibody import mechanisms; mechanisms.rotor(); "
        "assert 'matplotlib' not in sys.modules; mechanisms.rotor().draw(); "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_hull_and_a_spring() -> None:
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5], [0.5, 0.0]])
    assert {tuple(p) for p in hull(square).tolist()} == {(0, 0), (1, 0), (1, 1), (0, 1)}
    line = zigzag(np.zeros(2), np.array([100.0, 0.0]), 5.0)
    assert line[0].tolist() == [0, 0] and line[-1].tolist() == [100, 0]
    assert (np.diff(line[:, 0]) >= 0).all() and np.abs(line[:, 1]).max() == 5.0


def test_a_snapshot_knows_moving_markers() -> None:
    system = mechanisms.mcpherson()
    given = given_poses(system)
    frame = Snapshot(0.1, given.positions[0], given.quaternions[0])
    road = frame.point(system["ground.road"])  # type: ignore[arg-type]
    # 0.03 sin(15.708 · 0.1) at the top of its first wave.
    assert road == pytest.approx([0.452, -0.410, -0.300], abs=1e-9)
