"""Pictures of mechanisms: what is in them, that nothing overlaps, and the errors that teach."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from biella import DiagramError
from biella.blocks.multibody import System, mechanisms
from biella.blocks.multibody.drawing._picture import animate, draw, poses_from_result
from biella.blocks.multibody.drawing._poses import (
    Poses,
    snapshots,
)
from biella.scheduler.results._result import Result

from .drawn import READY, Array, scene_of, slider_crank_motion, text_boxes


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


def test_bad_targets_are_reported_before_any_work(tmp_path: Path) -> None:
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
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
