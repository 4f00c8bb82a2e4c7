"""Nets: slots in the columns that a wire passes, bundles in the channels between."""

from biella.scheduler.drawing._layering import Cell, Link
from biella.scheduler.drawing._nets import Level, Pin

BLOCK = Cell(40.0, 30.0, (15.0,), (15.0,))
SOURCE = Cell(40.0, 30.0, (), (15.0,))
ADDER = Cell(22.0, 22.0, (11.0, 22.0), (11.0,), spots=(0.0, 11.0, 22.0))


def test_a_chain_has_a_cell_in_each_column_and_a_bundle_between():
    level = Level([SOURCE, BLOCK, BLOCK], [Link(0, 0, 1, 0), Link(1, 0, 2, 0)])
    assert level.column_of == [0, 1, 2] and level.columns == [[0], [1], [2]]
    assert [len(bundles) for bundles in level.bundles] == [0, 1, 1, 0]
    (bundle,) = level.bundles[1]
    assert bundle.net == (0, 0) and bundle.left == [Pin(0, 0)] and bundle.right == [Pin(1, 0)]


def test_a_wire_over_a_column_has_a_slot_of_no_height_in_it():
    cells = [SOURCE, BLOCK, ADDER]
    level = Level(cells, [Link(0, 0, 1, 0), Link(1, 0, 2, 0), Link(0, 0, 2, 1)])
    (passing,) = [slot for slot in level.slots if slot.cell < 0]
    assert passing.column == 1 and passing.height == 0.0 and not passing.backward
    # Both ends of the net leave the source as one.
    (first,) = level.bundles[1]
    assert first.left == [Pin(0, 0)]
    assert sorted(pin.slot for pin in first.right) == [1, passing.number]


def test_a_loop_has_one_wire_that_runs_back():
    cells = [SOURCE, ADDER, BLOCK]
    level = Level(cells, [Link(0, 0, 1, 0), Link(1, 0, 2, 0), Link(2, 0, 1, 1)])
    assert level.column_of == [0, 1, 2]
    back = [slot for slot in level.slots if slot.backward]
    assert back and all(slot.cell < 0 for slot in back)
    assert {slot.column for slot in back} <= {1, 2}


def test_every_end_of_every_link_is_in_a_bundle():
    cells = [SOURCE, ADDER, BLOCK, BLOCK]
    links = [Link(0, 0, 1, 0), Link(1, 0, 2, 0), Link(2, 0, 3, 0), Link(3, 0, 1, 1)]
    level = Level(cells, links)
    pins = [pin for bundles in level.bundles for bundle in bundles for pin in bundle.right]
    for link in links:
        assert pins.count(Pin(link.target, link.input)) == 1


def test_parts_without_a_wire_between_them_are_numbered_apart():
    level = Level([SOURCE, BLOCK, SOURCE, BLOCK], [Link(0, 0, 1, 0), Link(2, 0, 3, 0)])
    assert [slot.part for slot in level.slots] == [0, 0, 1, 1]


def test_the_end_of_a_wire_is_where_the_port_is():
    level = Level([SOURCE, ADDER], [Link(0, 0, 1, 0)])
    assert level.offset(Pin(0, 0), "left") == 15.0
    assert level.offset(Pin(1, 1), "right") in (0.0, 11.0, 22.0)
