"""Figures of mechanisms: extent, view, title, equal files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from biella import DiagramError
from biella.blocks.multibody import mechanisms
from biella.blocks.multibody.drawing._picture import draw
from biella.blocks.multibody.drawing._poses import (
    given_poses,
    snapshots,
)
from biella.blocks.multibody.drawing._view import read_view

from .drawn import READY, everything, scene_of


@pytest.mark.parametrize("name", [*READY, "everything"])
def test_nothing_is_outside_of_the_picture(name: str) -> None:
    scene = scene_of(READY[name]() if name in READY else everything())
    for stroke in (*scene.ground, *scene.moving_strokes(scene.frames[0])):
        assert np.isfinite(stroke.points).all()
        assert (stroke.points > scene.bounds.low).all()
        assert (stroke.points < scene.bounds.high).all()


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
