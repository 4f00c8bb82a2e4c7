"""A mechanism in motion: pictures one after the other, or several in one."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from numpy.typing import NDArray
from PIL import Image

from ....errors import DiagramError
from ..system._bodies import Marker
from ._figure import SystemFigure, paint, set_up
from ._poses import Snapshot
from ._scene import Scene
from ._strokes import LOAD_LAYER, Stroke

Picture = NDArray[np.uint8]

# Enough for crisp letters on some ten colors, and small files.
_GIF_COLORS, _APART = 128, 10
_TRACE_LAYER = 2.6


class Animation:
    """Draws the poses of a scene on the same axes.

    Parameters
    ----------
    scene
        The mechanism, whose bounds hold all poses.
    title
        Above each picture; "" for none.
    traces
        Markers whose paths are drawn.
    course
        All poses there are, from which the paths are made.
    """

    def __init__(
        self, scene: Scene, title: str, traces: Sequence[Marker], course: Sequence[Snapshot]
    ) -> None:
        self._scene = scene
        self._title = title
        self._times = np.array([frame.t for frame in course])
        self._traces = [
            (
                scene.color(marker.body),
                np.array([scene.paper.at(frame.point(marker)) for frame in course]),
            )
            for marker in traces
        ]

    def still(self, frames: Sequence[Snapshot]) -> SystemFigure:
        """Return one figure with all poses, earlier ones paler and plainer, and the whole paths."""
        figure, axes = set_up(self._scene, self._title)
        scale = self._scene.paper.scale
        paint(axes, self._scene.ground, scale)
        for n, frame in enumerate(frames):
            fade = 0.72 * (1.0 - n / (len(frames) - 1)) ** 0.6
            # Each pose lies above all of the earlier ones.
            strokes = self._scene.moving_strokes(frame)
            if n < len(frames) - 1:
                strokes = [s for s in strokes if s.layer < LOAD_LAYER and s.alpha == 1.0]
            paint(axes, strokes, scale, fade, lift=10.0 * n)
        paint(axes, self._paths(None), scale, lift=10.0 * len(frames))
        self._write_time(axes, f"t = {frames[0].t:g} … {frames[-1].t:g} s")
        return figure

    def pictures(
        self, frames: Sequence[Snapshot], progress: Callable[[int, int], object] | None
    ) -> Iterator[Picture]:
        """Yield the pictures, each of shape (height, width, 3)."""
        figure, axes = set_up(self._scene, self._title)
        canvas: Any = FigureCanvasAgg(figure)
        scale = self._scene.paper.scale
        paint(axes, self._scene.ground, scale)
        canvas.draw()
        # The static parts are painted once.
        background = canvas.copy_from_bbox(figure.bbox)
        digits = _digits(frames)
        for n, frame in enumerate(frames, 1):
            canvas.restore_region(background)
            artists = paint(
                axes, [*self._paths(frame.t), *self._scene.moving_strokes(frame)], scale
            )
            artists.append(self._write_time(axes, f"t = {frame.t:.{digits}f} s"))
            for artist in sorted(artists, key=lambda artist: artist.get_zorder()):
                axes.draw_artist(artist)
                artist.remove()
            yield np.asarray(canvas.buffer_rgba())[:, :, :3].copy()
            if progress is not None:
                progress(n, len(frames))

    def _paths(self, until: float | None) -> list[Stroke]:
        stop = len(self._times)
        if until is not None:
            stop = int(np.searchsorted(self._times, until * (1 + 1e-12) + 1e-12, side="right"))
        return [
            Stroke(points[: max(stop, 1)], color, width=1.6, layer=_TRACE_LAYER)
            for color, points in self._traces
        ]

    def _write_time(self, axes: Axes, text: str) -> Text:
        written = axes.text(1.0, 1.0, text, transform=axes.transAxes, size=10)
        written.set(ha="right", va="bottom", zorder=LOAD_LAYER)
        return written


def write_gif(path: Path, pictures: Iterable[Picture], fps: float) -> None:
    """Write an endless GIF; all pictures share the commonest colors, so that white stays white."""
    images = [Image.fromarray(picture) for picture in pictures]
    palette = _palette([images[0], images[len(images) // 2], images[-1]])
    flat = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    duration = round(1000.0 / fps)
    flat[0].save(path, save_all=True, append_images=flat[1:], duration=duration, loop=0)


def find_ffmpeg(target: Path) -> str:
    """Return the path of ffmpeg, or raise an error that names alternatives."""
    program = shutil.which("ffmpeg")
    if program is None:
        raise DiagramError(
            f"cannot write `{target.name}`: MP4 needs the program ffmpeg, which is not installed. "
            f"Write a GIF instead, `{target.with_suffix('.gif').name}`, which needs nothing."
        )
    return program


def write_mp4(path: Path, pictures: Iterable[Picture], fps: float, program: str) -> None:
    """Write an MP4 that every player shows, through ffmpeg."""
    pictures = iter(pictures)
    first = next(pictures)
    height, width, _ = first.shape
    command = [program, "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24"]
    command += ["-s", f"{width}x{height}", "-r", f"{fps:.6f}", "-i", "-", "-an", "-c:v", "libx264"]
    command += ["-pix_fmt", "yuv420p", "-crf", "18", "-movflags", "+faststart", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stderr is not None
        try:
            process.stdin.write(first.tobytes())
            for picture in pictures:
                process.stdin.write(picture.tobytes())
            process.stdin.close()
        except BrokenPipeError:
            pass  # its error output, read below, gives the reason
        words = process.stderr.read().decode(errors="replace").strip()
    if process.returncode:
        raise DiagramError(f"ffmpeg could not write the animation: {words or process.returncode}.")


def _palette(images: Sequence[Image.Image]) -> Image.Image:
    """Return an image that holds the commonest colors of some others."""
    counts: Counter[tuple[int, ...]] = Counter()
    for image in images:
        for count, color in image.getcolors(image.width * image.height) or ():
            assert isinstance(color, tuple)
            counts[color] += count
    # Equal counts in the order of the colors: the same animation gives the same file. Pillow finds
    # the
    # nearest color only roughly, so that close ones would be mixed up, and white turn gray.
    chosen = np.empty((0, 3))
    for color in sorted(counts, key=lambda color: (-counts[color], color)):
        if (np.abs(chosen - color).max(axis=1) >= _APART).all():
            chosen = np.vstack([chosen, color])
        if len(chosen) == _GIF_COLORS:
            break
    holder = Image.new("P", (1, 1))
    holder.putpalette(chosen.astype(int).ravel().tolist())
    return holder


def _digits(frames: Sequence[Snapshot]) -> int:
    """Return the number of decimals that distinguishes adjacent times."""
    step = frames[1].t - frames[0].t
    return int(np.clip(np.ceil(-np.log10(step) - 1e-9), 0, 6))
