"""Directions of view, from the motion."""

from __future__ import annotations

import numpy as np
import pytest

from biella.blocks.multibody import System
from biella.blocks.multibody.drawing._picture import draw
from biella.blocks.multibody.drawing._poses import (
    Poses,
)
from biella.blocks.multibody.system._rotations import quaternion_from_rotation, rotation_about

from .drawn import READY, scene_of


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
