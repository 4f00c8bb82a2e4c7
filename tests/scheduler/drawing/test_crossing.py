"""The order within columns: wires that need not cross do not."""

import itertools

import pytest

from biella.scheduler.drawing._crossing import order_columns
from biella.scheduler.drawing._layering import Cell, Link
from biella.scheduler.drawing._nets import Level


def source(ports=1):
    return Cell(40.0, 30.0, (), tuple(10.0 * (k + 1) for k in range(ports)))


def sink(ports=1):
    return Cell(40.0, 30.0, tuple(10.0 * (k + 1) for k in range(ports)), ())


def crossings(level):
    """Count pairs of straight wires that cross, channel by channel."""
    row = {n: k for column in level.columns for k, n in enumerate(column)}
    total = 0
    for bundles in level.bundles:
        lines = [
            ((row[b.left[0].slot], level.offset(b.left[0], "left")),
             (row[pin.slot], level.offset(pin, "right")))
            for b in bundles if b.left for pin in b.right
        ]  # fmt: skip
        for (a, b), (c, d) in itertools.combinations(lines, 2):
            total += (a < c and b > d) or (a > c and b < d)
    return total


@pytest.mark.parametrize("turned", list(itertools.permutations(range(3))))
def test_parallel_wires_do_not_cross_however_the_cells_are_listed(turned):
    """One source with three ports, three blocks after it, three sinks after these."""
    block = Cell(40.0, 30.0, (15.0,), (15.0,))
    cells = [source(3), block, block, block, sink(), sink(), sink()]
    links = [Link(0, k, 1 + (k + 1) % 3, 0) for k in range(3)]
    links += [Link(1 + k, 0, 4 + turned[k], 0) for k in range(3)]
    level = Level(cells, links)
    order_columns(level)
    assert level.columns[1] == [2, 3, 1] and crossings(level) == 0


def test_the_ports_of_one_block_order_what_is_wired_to_them():
    cells = [source(3), sink(), sink(), sink()]
    level = Level(cells, [Link(0, 0, 3, 0), Link(0, 1, 1, 0), Link(0, 2, 2, 0)])
    order_columns(level)
    assert level.columns[1] == [3, 1, 2] and crossings(level) == 0


def test_a_complete_graph_of_two_and_two_crosses_once():
    cells = [source(), source(), sink(2), sink(2)]
    links = [Link(0, 0, 2, 0), Link(0, 0, 3, 0), Link(1, 0, 2, 1), Link(1, 0, 3, 1)]
    level = Level(cells, links)
    order_columns(level)
    assert crossings(level) == 1


def test_every_slot_keeps_its_column():
    cells = [source(2), sink(), sink(2), source()]
    level = Level(cells, [Link(0, 0, 1, 0), Link(0, 1, 2, 0), Link(3, 0, 2, 1)])
    before = [sorted(column) for column in level.columns]
    order_columns(level)
    assert [sorted(column) for column in level.columns] == before


@pytest.mark.parametrize(("upper", "lower"), [(0, 1), (1, 0)])
def test_a_sum_takes_its_inputs_from_the_side_they_come_from(upper, lower):
    adder = Cell(22.0, 22.0, (11.0, 22.0), (11.0,), spots=(0.0, 11.0, 22.0))
    level = Level([source(), source(), adder], [Link(0, 0, 2, upper), Link(1, 0, 2, lower)])
    order_columns(level)
    row = {n: k for k, n in enumerate(level.columns[0])}
    places = sorted([(row[0], level.inputs[2][upper]), (row[1], level.inputs[2][lower])])
    assert places[0][1] < places[1][1] and len(set(level.inputs[2])) == 2
