"""Symbols of joints and elements."""

from __future__ import annotations

from biella.blocks.multibody.drawing._picture import draw
from biella.blocks.multibody.drawing._symbols import JointView

from .drawn import everything, scene_of, text_boxes


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
