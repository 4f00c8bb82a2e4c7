"""Places of labels."""

from __future__ import annotations

import numpy as np

from biella.blocks.multibody import mechanisms
from biella.blocks.multibody.drawing._labels import place_labels
from biella.blocks.multibody.drawing._picture import draw

from .drawn import scene_of, text_boxes


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
