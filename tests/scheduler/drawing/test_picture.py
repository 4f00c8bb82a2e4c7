"""A picture as plain geometry: pasting moves everything, rates are in order."""

import dataclasses

from biella.scheduler.drawing._picture import Box, Dot, Frame, Picture, Wire
from biella.scheduler.drawing._symbols import Look, Words

LOOK = Look("box", 10.0, 5.0, (0.0, 0.0, 10.0, 5.0), (), ())


def box(path="a", rate="", **more):
    return Box(path, (1.0, 2.0, 10.0, 5.0), (2.0, 3.0, 8.0, 3.0), LOOK, rate, **more)


def test_everything_that_is_pasted_moves():
    part = Picture(
        boxes=[box(open_inputs=((1.0, 4.0),))],
        frames=[Frame("s", (0.0, 0.0, 20.0, 10.0), 1)],
        wires=[Wire("a.y", "b.u", ((0.0, 0.0), (5.0, 1.0)), "", 1, 0)],
        dots=[Dot((3.0, 1.0), "")],
        words=[Words("text", 1.0, 1.0, 8.0)],
    )
    whole = Picture(boxes=[box("first")])
    whole.paste(part, 100.0, 10.0)
    assert [b.path for b in whole.boxes] == ["first", "a"]
    assert whole.boxes[0].rect == (1.0, 2.0, 10.0, 5.0)
    moved = whole.boxes[1]
    assert moved.rect == (101.0, 12.0, 10.0, 5.0) and moved.body == (102.0, 13.0, 8.0, 3.0)
    assert moved.open_inputs == ((101.0, 14.0),)
    assert whole.frames[0].rect == (100.0, 10.0, 20.0, 10.0)
    assert whole.wires[0].points == ((100.0, 10.0), (105.0, 11.0))
    assert whole.dots[0].at == (103.0, 11.0)
    assert (whole.words[0].x, whole.words[0].y) == (101.0, 11.0)
    assert part.boxes[0].rect == (1.0, 2.0, 10.0, 5.0), "the pasted picture is not changed"


def test_pasting_keeps_all_that_has_no_place():
    wire = Wire("a.y", "b.u", ((0.0, 0.0),), "1e-3 s", 3, 2)
    whole = Picture()
    whole.paste(Picture(wires=[wire]), 1.0, 1.0)
    assert dataclasses.replace(whole.wires[0], points=wire.points) == wire


def test_rates_are_ordered_by_speed():
    rates = ["0.1 s", "continuous", "", "2e-3 s", "constant", "odd", "0.01 s", "2e-3 s"]
    picture = Picture(boxes=[box(rate=rate) for rate in rates])
    assert picture.rates == ["constant", "continuous", "2e-3 s", "0.01 s", "0.1 s", "odd"]
