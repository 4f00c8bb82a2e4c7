"""One level of a statechart: rows, places and lines."""

import itertools

import pytest

from biella.scheduler.drawing.statechart._level import Edge, Item, Place, place_level, rank_rows


def test_the_initial_item_is_at_the_top_and_ends_on_the_frame_at_its_sides():
    places: list[Place] = ["middle", "middle", "middle", "header", "dot", "top", "bottom"]
    edges = [Edge(4, 2), Edge(2, 1), Edge(1, 0), Edge(0, 2), Edge(5, 0), Edge(1, 6)]
    rows = rank_rows(places, edges)
    assert rows == [3, 2, 1, 0, 0, 0, 4]


def test_a_single_line_is_straight():
    items = [Item(80, 30), Item(60, 30)]
    level = place_level(items, [Edge(0, 1, (50.0, 10.0))], [0, 1])
    (line,) = level.lines
    assert len(line) == 2 and line[0][0] == line[1][0]
    assert line[0][1] == items[0].y + 30 and line[1][1] == items[1].y
    (label,) = level.labels
    assert label is not None and label[0] > line[0][0]


def test_two_lines_between_two_items_have_their_labels_outside():
    items = [Item(80, 30), Item(80, 30)]
    level = place_level(items, [Edge(0, 1, (70.0, 10.0)), Edge(1, 0, (70.0, 10.0))], [0, 1])
    down, up = level.lines
    assert down[0][1] < down[-1][1] and up[0][1] > up[-1][1]
    assert len(down) == len(up) == 2
    lefts = [label[0] for label in level.labels if label is not None]
    a, b = sorted([(down[0][0], lefts[0]), (up[0][0], lefts[1])])
    assert a[1] + 70 < a[0] and b[1] > b[0]


def test_lines_meet_a_box_at_fixed_places_and_between_them():
    items = [Item(200, 30, fixed_bottom={0: 92.0, 2: 108.0}), Item(60, 30)]
    edges = [Edge(0, 1), Edge(0, 1), Edge(0, 1), Edge(1, 0)]
    level = place_level(items, edges, [0, 1])
    starts = [line[0][0] - items[0].x for line in level.lines[:3]]
    starts.append(level.lines[3][-1][0] - items[0].x)
    assert starts[0] == pytest.approx(92.0, abs=0.02)
    assert starts[2] == pytest.approx(108.0, abs=0.02)
    assert min(abs(a - b) for a, b in itertools.combinations(starts, 2)) > 15.9
    assert all(0 < x < 200 for x in starts)


def test_items_of_a_row_are_ordered_so_that_lines_do_not_cross():
    items = [Item(60, 30) for _ in range(4)]
    place_level(items, [Edge(0, 3), Edge(1, 2)], [0, 0, 1, 1])
    assert (items[0].x < items[1].x) == (items[3].x < items[2].x)
