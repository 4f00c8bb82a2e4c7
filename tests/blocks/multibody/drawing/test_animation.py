"""Animations of mechanisms: frames, traces, files."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from biella import DiagramError
from biella.blocks.multibody import mechanisms
from biella.blocks.multibody.drawing import _animation as animation
from biella.blocks.multibody.drawing._picture import animate, draw, frame_times
from biella.blocks.multibody.drawing._poses import (
    given_poses,
)

from .drawn import READY, slider_crank_motion


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
