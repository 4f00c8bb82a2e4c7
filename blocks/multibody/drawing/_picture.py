"""Pictures of mechanisms: bodies between their markers, joints as textbook signs, equal axes.

This module imports matplotlib, so it is imported only when something is drawn. Figures are made
without pyplot: no display is needed, and no global state is left behind.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np

from ....errors import DiagramError
from ..system._bodies import Marker
from ..system._reading import read_number, suggest_keywords
from ._animation import Animation, find_ffmpeg, write_gif, write_mp4
from ._figure import STYLE, SystemFigure, paint, set_up, write_labels
from ._labels import place_labels
from ._poses import (
    Poses,
    Snapshot,
    given_poses,
    poses_from_result,
    read_poses,
    snapshots,
)
from ._scene import Scene
from ._view import read_view

if TYPE_CHECKING:
    from ..system._system import System

__all__ = ["Poses", "animate", "draw", "poses_from_result"]

FORMATS = ("png", "svg", "pdf")
ANIMATIONS = ("gif", "mp4", "png")

_STILLS = 7
_MOST_FRAMES = 3000


@suggest_keywords
def draw(
    system: System,
    path: str | Path | None = None,
    *,
    poses: Any = None,
    view: Any = None,
    title: str | None = None,
) -> SystemFigure:
    """Draw a mechanism with the names of its parts.

    Planar motion is drawn in its plane, with axes in m; other mechanisms are viewed obliquely from
    above, with the directions of the world and a scale below. A name that has no free
    place beside its part is left out.

    Parameters
    ----------
    system
        What to draw.
    path
        Where to save the picture: ``.png``, ``.svg`` or ``.pdf``. Equal systems give equal bytes.
    poses
        `Poses`, (times, positions, quaternions) or a result: the first of them is drawn. The poses
        that the bodies were given if none are.
    view
        ``"xy"``, ``"xz"``, ``"yz"``, ``"zx"``, or a direction (x, y, z) to the eye; chosen if not
        given.
    title
        Instead of the system's name; ``""`` for none.

    Raises
    ------
    DiagramError
        If there is nothing to draw, `poses` or `view` cannot be used, or `path` has another
        extension.
    """
    target = None if path is None else _read_target(path, FORMATS)
    frames = snapshots(given_poses(system) if poses is None else read_poses(system, poses))
    with mpl.rc_context(STYLE):
        scene = _scene(system, frames, view)
        figure, axes = set_up(scene, system.name if title is None else title)
        strokes = [*scene.ground, *scene.moving_strokes(frames[0])]
        paint(axes, strokes, scene.paper.scale)
        bounds = scene.bounds
        placed = place_labels(
            scene.labels(frames[0]), strokes, bounds.low, bounds.high, scene.paper.size
        )
        write_labels(axes, placed, scene.paper.scale)
        if target is not None:
            _save_figure(figure, target)
    return figure


@suggest_keywords
def animate(
    system: System,
    motion: Any,
    path: str | Path,
    *,
    traces: Sequence[str] = (),
    fps: float = 25.0,
    speed: float = 1.0,
    view: Any = None,
    title: str | None = None,
    prefix: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Path:
    """Show a mechanism move, and return where the picture was written.

    Parameters
    ----------
    system
        What moves.
    motion
        `Poses`, (times, positions, quaternions), or the result of a run with recorded poses; see
        `poses_from_result`.
    path
        ``.gif``; ``.mp4`` where the program ffmpeg is installed; or ``.png``: one picture with
        several poses, earlier ones paler.
    traces
        Markers whose paths are drawn, such as ``("rod.tip",)``.
    fps
        Pictures per second. A GIF counts in hundredths of a second: 100, 50, 33.3, 25, 20 ….
    speed
        Seconds of motion in a second of animation: 0.1 is slow motion.
    view, title
        As in `draw`.
    prefix
        Of the recorded poses in a result; found if only one can be meant.
    progress
        Called with the pictures made and their number, after each.

    Raises
    ------
    DiagramError
        If there is no motion, a trace is not a marker, or the animation cannot be written.
    """
    target = _read_target(path, ANIMATIONS)
    kind = target.suffix.lower().lstrip(".")
    program = find_ffmpeg(target) if kind == "mp4" else ""
    poses = read_poses(system, motion, prefix)
    if len(poses) < 2:
        raise DiagramError("an animation needs poses at two times or more; with one, use draw(…).")
    markers = [_read_trace(system, name) for name in traces]
    shown = frame_times(poses, kind, fps, speed)
    frames = snapshots(poses.at(shown))
    with mpl.rc_context(STYLE):
        scene = _scene(system, frames, view)
        animation = Animation(
            scene, system.name if title is None else title, markers, snapshots(poses)
        )
        if kind == "png":
            _save_figure(animation.still(frames), target)
        else:
            pictures = animation.pictures(frames, progress)
            rate = 1.0 / _frame_seconds(kind, fps)
            if kind == "gif":
                _save_whole(target, lambda file: write_gif(file, pictures, rate))
            else:
                _save_whole(target, lambda file: write_mp4(file, pictures, rate, program))
    return target


def frame_times(poses: Poses, kind: str, fps: float, speed: float) -> Any:
    """Return the times of the pictures of an animation, or of a still."""
    start, stop = float(poses.times[0]), float(poses.times[-1])
    fps, speed = read_number("`fps`", fps), read_number("`speed`", speed)
    if not 0.0 < fps <= 100.0:
        raise DiagramError(f"`fps` is above 0 and at most 100 pictures per second, got {fps:g}.")
    if speed <= 0.0:
        raise DiagramError(f"`speed` is above 0 (0.1 is slow motion), got {speed:g}.")
    if kind == "png":
        return np.linspace(start, stop, _STILLS)
    step = speed * _frame_seconds(kind, fps)
    count = int(np.floor((stop - start) / step * (1.0 + 1e-12))) + 1
    if count > _MOST_FRAMES:
        raise DiagramError(
            f"{stop - start:g} s of motion at speed {speed:g} and {fps:g} pictures per second are "
            f"{count} pictures; the most is {_MOST_FRAMES}. Raise `speed`, lower `fps`, or give "
            f"fewer poses."
        )
    return start + step * np.arange(max(count, 2))


def _frame_seconds(kind: str, fps: float) -> float:
    """Return how long a picture is shown; in a GIF a whole number of hundredths."""
    return max(1, round(100.0 / fps)) / 100.0 if kind == "gif" else 1.0 / fps


def _read_trace(system: System, name: str) -> Marker:
    marker = system[name] if isinstance(name, str) else name
    if not isinstance(marker, Marker):
        raise DiagramError(
            f"a trace follows a marker, such as `body.marker`; {name!r} is a "
            f"{type(marker).__name__.lower()}."
        )
    return marker


def _scene(system: System, frames: Sequence[Snapshot], view: Any) -> Scene:
    if not system.bodies:
        raise DiagramError(
            f"the system `{system.name}` has no bodies to draw: add one with .body(…)."
        )
    return Scene(system, frames, read_view(system, frames, view))


def _read_target(path: str | Path, formats: Sequence[str]) -> Path:
    """Return where to save, checked before any work is done."""
    target = Path(path)
    if target.suffix.lower().lstrip(".") not in formats:
        raise DiagramError(
            f"cannot draw to `{target.name}`: give it one of the extensions {', '.join(formats)}."
        )
    if not target.parent.is_dir():
        raise DiagramError(f"cannot write `{target}`: there is no folder `{target.parent}`.")
    return target


def _save_figure(figure: SystemFigure, target: Path) -> None:
    suffix = target.suffix.lower().lstrip(".")
    # Dates would make every file different.
    dated: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    _save_whole(
        target, lambda file: figure.savefig(file, format=suffix, metadata=dated.get(suffix))
    )


def _save_whole(target: Path, write: Callable[[Path], object]) -> None:
    """Write a file whole or not at all."""
    temporary = target.with_name(f".{target.stem}-{secrets.token_hex(4)}{target.suffix}")
    try:
        write(temporary)
        os.replace(temporary, target)
    except OSError as error:
        raise DiagramError(f"cannot write `{target}`: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)
