"""One level of a diagram with coordinates: columns from left to right, wires from port to port."""

import itertools

import pytest

from biella.scheduler.drawing._layering import Cell, Link
from biella.scheduler.drawing._layout import arrange_level

BLOCK = Cell(40.0, 30.0, (15.0,), (15.0,))
WIDE = Cell(90.0, 60.0, (20.0, 40.0), (30.0,))
LOOP = ([BLOCK, WIDE, BLOCK], [Link(0, 0, 1, 0), Link(1, 0, 2, 0), Link(2, 0, 1, 1)])


def check(cells, links):
    layout = arrange_level(cells, links)
    for (a, (x, y)), (b, (u, v)) in itertools.combinations(enumerate(layout.corners), 2):
        apart = (
            x + cells[a].width <= u or u + cells[b].width <= x
            or y + cells[a].height <= v or v + cells[b].height <= y
        )  # fmt: skip
        assert apart, (a, b)
    for cell, (x, y) in zip(cells, layout.corners, strict=True):
        assert x >= 0 and x + cell.width <= layout.width + 1e-9
        assert y >= -1e-9 and y + cell.height <= layout.height + 1e-9
    for link, wire in zip(links, layout.wires, strict=True):
        x, y = layout.corners[link.source]
        source = cells[link.source]
        assert wire[0] == pytest.approx((x + source.width, y + source.outputs[link.output]))
        x, y = layout.corners[link.target]
        assert wire[-1] == pytest.approx((x, y + layout.inputs[link.target][link.input]))
        for p, q in itertools.pairwise(wire):
            assert p[0] == q[0] or p[1] == q[1], "wires run along the axes"
    return layout


def test_a_chain_is_straight():
    layout = check([BLOCK] * 4, [Link(k, 0, k + 1, 0) for k in range(3)])
    assert len({y for _, y in layout.corners}) == 1
    assert all(len(wire) == 2 for wire in layout.wires)
    xs = [x for x, _ in layout.corners]
    assert xs == sorted(xs) and layout.dots == []


def test_a_loop_runs_back_around_its_blocks():
    layout = check(*LOOP)
    back = layout.wires[2]
    assert back[0][0] > back[-1][0] and len(back) >= 4


def test_a_branch_has_a_dot_on_its_wires():
    cells = [BLOCK, BLOCK, BLOCK]
    layout = check(cells, [Link(0, 0, 1, 0), Link(0, 0, 2, 0)])
    ((_, (x, y)),) = layout.dots
    for wire in layout.wires:
        assert any(
            min(p[0], q[0]) - 1e-9 <= x <= max(p[0], q[0]) + 1e-9
            and min(p[1], q[1]) - 1e-9 <= y <= max(p[1], q[1]) + 1e-9
            for p, q in itertools.pairwise(wire)
        )


def test_borders_stand_at_the_edges():
    inport = Cell(20.0, 17.0, (), (8.5,), border="left")
    outport = Cell(20.0, 17.0, (8.5,), (), border="right")
    cells = [outport, BLOCK, BLOCK, inport]
    layout = check(cells, [Link(3, 0, 1, 0), Link(1, 0, 2, 0), Link(2, 0, 0, 0)])
    xs = [x for x, _ in layout.corners]
    assert xs[3] == min(xs) and xs[0] == max(xs)


def test_the_same_level_gives_the_same_layout():
    first, second = arrange_level(*LOOP), arrange_level(*LOOP)
    assert first == second


def test_one_cell_alone():
    layout = check([WIDE], [])
    assert layout.height >= WIDE.height and layout.wires == []
