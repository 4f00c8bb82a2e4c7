"""Layout of a drawing: everything is there and nothing overlaps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biella import Diagram, DiagramError, Subsystem
from biella.blocks import Constant, Gain, Integrator, Port, PythonBlock, Sum, UnitDelay
from biella.scheduler.drawing._arrange import arrange
from biella.scheduler.drawing._paint import finish
from biella.scheduler.drawing._picture import Box, Picture

from .diagrams import multirate, nested, oscillator

TOUCH = 0.01
"""Closer than this, in points, is the same place."""


class Machine(PythonBlock):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            inputs=[f"in{n}" for n in range(inputs)],
            outputs=[f"out{n}" for n in range(outputs)],
            state=[0.0],
            feedthrough=False,
        )

    def output(self, t: float, x: Any, u: Any) -> Any:
        return tuple(0.0 for _ in self.outputs) if len(self.outputs) > 1 else 0.0

    def derivative(self, t: float, x: Any, u: Any) -> Any:
        return [0.0]


def pid_loop() -> Diagram:
    d = Diagram("PID loop with plant")
    reference = d.add(Constant(30.0), name="reference")
    error = d.add(Sum("+-"), name="error")
    kp, ki, kd = (d.add(Gain(k), name=n) for n, k in (("kp", 2.0), ("ki", 12.0), ("kd", 0.05)))
    integral = d.add(Integrator(), name="integral")
    effort = d.add(Sum("+++"), name="effort")
    plant = d.add(Machine(2, 2), name="plant")
    load = d.add(Constant(0.5), name="load")
    encoder = d.add(UnitDelay(), name="encoder", period=1e-3)
    d.connect(reference, error["u1"])
    d.connect(error, kp, ki, kd)
    d.connect(ki, integral)
    for source, port in ((kp, "u1"), (integral, "u2"), (kd, "u3")):
        d.connect(source, effort[port])
    d.connect(effort, plant["in0"])
    d.connect(load, plant["in1"])
    d.connect(plant["out1"], encoder)
    d.connect(encoder, error["u2"])
    d.output("speed", encoder)
    d.output("angle", plant["out0"])
    return d


def forty() -> Diagram:
    d = Diagram("forty blocks")
    sums, states = [], []
    for k in range(5):
        r, e = d.add(Constant(float(k)), name=f"r{k}"), d.add(Sum("+-"), name=f"e{k}")
        c, hold = d.add(Gain(2.0 + k), name=f"c{k}"), d.add(UnitDelay(), period=1e-3 * (k + 1))
        s, f = d.add(Sum("++"), name=f"s{k}"), d.add(Gain(0.5), name=f"f{k}")
        x, q = d.add(Integrator(), name=f"x{k}"), d.add(Integrator(), name=f"q{k}")
        d.connect(r, e["u1"])
        d.connect(hold, s["u1"])
        for a, b in itertools.pairwise([e, c, hold]):
            d.connect(a, b)
        for a, b in itertools.pairwise([s, x, q, f]):
            d.connect(a, b)
        d.connect(f, e["u2"])
        d.output(f"q{k}", q)
        sums.append(s)
        states.append(x)
    for k in range(5):
        d.connect(states[(k + 1) % 5], sums[k]["u2"])
    return d


def mimo() -> Diagram:
    d = Diagram("MIMO state feedback")
    r = d.input("r", width=2)
    n, b = d.add(Gain(np.eye(4, 2)), name="N"), d.add(Gain(np.eye(4, 2)), name="B")
    k, c = d.add(Gain(np.eye(2, 4)), name="K"), d.add(Gain(np.eye(2, 4)), name="C")
    a, x = d.add(Gain(-np.eye(4)), name="A"), d.add(Integrator(np.zeros(4)), name="x")
    e, dx = d.add(Sum("+-"), name="e"), d.add(Sum("++"), name="dx")
    d.connect(r, n)
    d.connect(n, e["u1"])
    d.connect(x, e["u2"], a, c)
    d.connect(e, k)
    d.connect(k, b)
    d.connect(b, dx["u1"])
    d.connect(a, dx["u2"])
    d.connect(dx, x)
    d.output("y", c)
    return d


def fan_out() -> Diagram:
    d = Diagram("wide fan-out")
    source, collect = d.add(Constant(1.0), name="source"), d.add(Machine(12, 2), name="collect")
    for k in range(12):
        gain = d.add(Gain(float(k)), name=f"gain {k}")
        d.connect(source, gain)
        d.connect(gain, collect[f"in{k}"])
    d.output("total", collect["out0"])
    return d


DIAGRAMS = [pid_loop, multirate, nested, forty, mimo, fan_out, oscillator]


def expected_wires(d: Diagram, prefix: str = "") -> Iterator[tuple[str, str]]:
    for (block, number), ref in d.sources.items():
        target = f"{prefix}{d.names[block]}.{block.inputs[number].name}"
        yield f"{prefix}{d.name_port(ref)}", target
    for name, port in d.outports.items():
        yield f"{prefix}{d.name_port(port.source)}", f"{prefix}{name}"
    for name, block in d.blocks.items():
        if isinstance(block, Subsystem):
            yield from expected_wires(block.diagram, f"{prefix}{name}.")


def expected_boxes(d: Diagram, prefix: str = "") -> Iterator[str]:
    yield from (prefix + name for name in d.outports)
    for name, block in d.blocks.items():
        if isinstance(block, Subsystem):
            yield from expected_boxes(block.diagram, f"{prefix}{name}.")
            if block.control:
                yield f"{prefix}{name}.{block.control}"
        else:
            yield prefix + name


def overlap(a: tuple[float, ...], b: tuple[float, ...], slack: float = TOUCH) -> bool:
    """Whether two rectangles (left, top, right, bottom) share an area."""
    return min(a[2], b[2]) - max(a[0], b[0]) > slack and min(a[3], b[3]) - max(a[1], b[1]) > slack


def corners(rect: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    x, y, width, height = rect
    return x, y, x + width, y + height


def segments(points: tuple[tuple[float, float], ...]) -> list[tuple[float, float, float, float]]:
    return [
        (min(ax, bx), min(ay, by), max(ax, bx), max(ay, by))
        for (ax, ay), (bx, by) in itertools.pairwise(points)
    ]


def hits(segment: tuple[float, ...], area: tuple[float, ...]) -> bool:
    """Whether a horizontal or vertical segment passes through the inside of an area."""
    thick = (segment[0] - 0.3, segment[1] - 0.3, segment[2] + 0.3, segment[3] + 0.3)
    return overlap(thick, area, 0.31)


def check_picture(picture: Picture) -> None:
    for a, b in itertools.combinations(picture.boxes, 2):
        assert not overlap(corners(a.rect), corners(b.rect)), f"{a.path} lies on {b.path}"
    check_frames(picture)
    outports = {box.path: box for box in picture.boxes if box.look.shape == "outport"}
    blocks = {box.path: box for box in picture.boxes if box.look.shape != "outport"}
    for wire in picture.wires:
        # A subsystem is a frame, no box: a wire to it meets the picture of the port inside.
        source = blocks.get(wire.source.rpartition(".")[0], outports.get(wire.source))
        target = blocks.get(wire.target.rpartition(".")[0])
        target = target or outports.get(wire.target) or blocks[wire.target]
        assert all(
            abs(ax - bx) < TOUCH or abs(ay - by) < TOUCH
            for (ax, ay), (bx, by) in itertools.pairwise(wire.points)
        ), f"{wire.source} → {wire.target} is not orthogonal"
        for segment in segments(wire.points):
            for box in picture.boxes:
                area = box.body if box is source or box is target else box.rect
                assert not hits(segment, corners(area)), f"{wire} through {box.path}"
            for frame in picture.frames:
                if frame.depth > wire.depth:
                    assert not hits(segment, corners(frame.rect)), f"{wire} through {frame.path}"
        assert source is not None
        check_ends(wire.points, source, 0)
        check_ends(wire.points, target, -1)
    check_nets(picture)


def check_ends(points: tuple[tuple[float, float], ...], box: Box, end: int) -> None:
    """A wire touches the shape of its block: from the left or, at a round sum, above or below."""
    x, y = points[end]
    left, top, right, bottom = corners(box.body)
    if box.look.shape in ("inport", "outport"):
        assert abs(y - (top + bottom) / 2) < TOUCH
    if end == 0:
        assert abs(x - right) < TOUCH
        assert top <= y <= bottom
    elif box.look.shape == "circle":
        middle = (left + right) / 2, (top + bottom) / 2
        assert abs(np.hypot(x - middle[0], y - middle[1]) - (right - left) / 2) < TOUCH
    else:
        assert abs(x - left) < TOUCH
        assert top <= y <= bottom


def check_frames(picture: Picture) -> None:
    for frame in picture.frames:
        outer = corners(frame.rect)
        for box in picture.boxes:
            inner = corners(box.rect)
            inside = box.path.startswith(frame.path + ".")
            assert overlap(outer, inner) == inside, f"{box.path} and frame {frame.path}"
            if inside:
                assert all(inner[n] >= outer[n] - TOUCH for n in (0, 1)), box.path
                assert all(inner[n] <= outer[n] + TOUCH for n in (2, 3)), box.path
    for a, b in itertools.combinations(picture.frames, 2):
        related = a.path.startswith(b.path + ".") or b.path.startswith(a.path + ".")
        assert overlap(corners(a.rect), corners(b.rect)) == related


def check_nets(picture: Picture) -> None:
    """Wires from different outputs may cross, but not run along each other or meet in a corner."""
    nets: dict[str, set[tuple[float, float, float, float]]] = {}
    bends: dict[str, set[tuple[float, float]]] = {}
    for wire in picture.wires:
        nets.setdefault(wire.source, set()).update(segments(wire.points))
        bends.setdefault(wire.source, set()).update(wire.points)
    for (a, first), (b, second) in itertools.combinations(nets.items(), 2):
        for p, q in itertools.product(first, second):
            for along, across in ((0, 1), (1, 0)):
                flat = p[across] == p[across + 2] and q[across] == q[across + 2]
                shared = min(p[along + 2], q[along + 2]) - max(p[along], q[along])
                if flat and shared > TOUCH:
                    assert abs(p[across] - q[across]) > 3, f"{a} runs along {b}: {p} {q}"
        for net, other in ((a, second), (b, first)):
            for x, y in bends[net]:
                for q in other:
                    on = q[0] - TOUCH < x < q[2] + TOUCH and q[1] - TOUCH < y < q[3] + TOUCH
                    assert not on, f"{net} bends on another wire at {x}, {y}"


def check_words(page: Picture) -> None:
    for word in page.words:
        left, top, right, bottom = word.extent
        assert left >= 0 and top >= 0 and right <= page.width and bottom <= page.height, word
    for a, b in itertools.combinations(page.words, 2):
        assert not overlap(a.extent, b.extent, 0.5), f"{a} lies on {b}"
    for wire in page.wires:
        for segment in segments(wire.points):
            for word in page.words:
                left, top, right, bottom = word.extent
                middle = (left + 1, top + 2, right - 1, bottom - 2)
                assert not hits(segment, middle), f"{wire} strikes {word} out"


class TestGeometry:
    @pytest.mark.parametrize("make", DIAGRAMS)
    def test_all_is_there_and_nothing_overlaps(self, make: Callable[[], Diagram]) -> None:
        d = make()
        picture = arrange(d)
        drawn = [(wire.source, wire.target) for wire in picture.wires]
        assert sorted(drawn) == sorted(expected_wires(d))
        assert sorted(box.path for box in picture.boxes) == sorted(expected_boxes(d))
        check_picture(picture)
        check_words(finish(picture))

    @pytest.mark.parametrize("make", DIAGRAMS)
    def test_a_plan_can_be_drawn(self, make: Callable[[], Diagram]) -> None:
        plan = make().compile()
        picture = arrange(plan)
        check_picture(picture)
        assert len(picture.boxes) == len(plan.blocks) + len(plan.inputs) + len(plan.outputs)

    def test_a_chain_is_straight(self) -> None:
        d = Diagram("chain")
        blocks = [d.add(Constant(1.0)), d.add(Gain(2.0)), d.add(Integrator()), d.add(UnitDelay())]
        for a, b in itertools.pairwise(blocks):
            d.connect(a, b)
        d.output("end", blocks[-1])
        assert all(len(wire.points) == 2 for wire in arrange(d).wires)

    @pytest.mark.parametrize("make", DIAGRAMS)
    def test_no_wire_is_a_hair_off_straight(self, make: Callable[[], Diagram]) -> None:
        for wire in arrange(make()).wires:
            steps = [abs(ay - by) for (_, ay), (_, by) in itertools.pairwise(wire.points)]
            assert all(step == 0 or step > 5 for step in steps), f"{wire.source} → {wire.target}"

    def test_feedback_is_cut_at_the_minus_and_returns_below(self) -> None:
        picture = arrange(pid_loop())
        boxes = {box.path: box.rect for box in picture.boxes}
        chain = ["reference", "error", "ki", "integral", "effort", "plant", "encoder", "speed"]
        lefts = [boxes[name][0] for name in chain]
        assert lefts == sorted(lefts)
        back = next(wire for wire in picture.wires if wire.target == "error.u2")
        assert max(y for _, y in back.points) >= max(y + h for _, y, _, h in boxes.values())

    def test_order_of_adding_does_not_turn_a_loop_around(self) -> None:
        """The disturbance comes first, yet the loop is not opened at the plant."""
        d = Diagram()
        disturbance = d.add(Constant(1.0), name="disturbance")
        entry, plant = d.add(Sum("++"), name="entry"), d.add(Integrator(), name="plant")
        error, gain = d.add(Sum("+-"), name="error"), d.add(Gain(2.0), name="gain")
        reference = d.add(Constant(1.0), name="reference")
        d.connect(disturbance, entry["u2"])
        d.connect(entry, plant)
        d.connect(plant, error["u2"])
        d.connect(error, gain)
        d.connect(gain, entry["u1"])
        d.connect(reference, error["u1"])
        boxes = {box.path: box.rect for box in arrange(d).boxes}
        lefts = [boxes[name][0] for name in ("reference", "error", "gain", "entry", "plant")]
        assert lefts == sorted(lefts)

    def test_vectors_and_rates(self) -> None:
        picture = arrange(mimo())
        widths = {wire.source: wire.width for wire in picture.wires}
        assert widths["r.y"] == 2 and widths["x.y"] == 4
        assert {word.text for word in picture.words} >= {"2", "4"}
        assert arrange(multirate()).rates == ["continuous", "0.002 s", "0.01 s"]
        rates = {box.path: box.rate for box in arrange(multirate()).boxes}
        assert rates["controller.measurement"] == "0.002 s"
        assert rates["controller.effort"] == "0.01 s"

    def test_branches_have_dots(self) -> None:
        picture = arrange(fan_out())
        # Of the twelve branches on the trunk the outermost two are bends.
        assert len(picture.dots) == 10

    def test_unfinished_diagrams_are_drawn_without_rates(self) -> None:
        d = Diagram("unfinished")
        lonely = d.add(Sum("+-"), name="sum")
        d.add(Gain(1.0), name="open")
        d.connect(lonely, lonely["u2"])
        with pytest.raises(DiagramError):
            d.compile()
        picture = arrange(d)
        check_picture(picture)
        assert picture.rates == []
        assert next(box for box in picture.boxes if box.path == "open").open_inputs
        assert arrange(Diagram("empty")).boxes == []

    def test_empty_subsystem(self) -> None:
        d = Diagram()
        d.add(Subsystem(Diagram("nothing")), name="a rather long name for so small a frame")
        page = finish(arrange(d))
        check_words(page)

    def test_wide_ports_in_a_subsystem_of_unknown_blocks(self) -> None:
        class Oddity(PythonBlock):
            def output(self, t: float, x: Any, u: Any) -> Any:
                return u

        d = Diagram()
        odd = d.add(Oddity(inputs=[Port("u", width=3)], outputs=[Port("y", width=3)]), name="odd")
        source = d.add(Constant([1.0, 2.0, 3.0]), name="source")
        d.connect(source, odd)
        picture = arrange(d)
        texts = [word.text for word in picture.words]
        assert "Oddity" in texts and "[1 2 3]" in texts and "3" in texts


@st.composite
def diagrams(draw_value: st.DrawFn, depth: int = 1) -> Diagram:
    """Blocks of every shape, wired at random: forward, backward, to themselves or not at all."""
    d = Diagram("random")
    for n in range(draw_value(st.integers(0, 2))):
        d.input(f"in{n}")
    makers: list[Callable[[], Any]] = [
        lambda: Gain(2.0),
        lambda: Sum("+-"),
        lambda: Sum("++-"),
        lambda: Sum("+-+-+"),
        Integrator,
        UnitDelay,
        lambda: Constant(1.0),
        lambda: Machine(2, 3),
        lambda: Machine(3, 1),
    ]
    for n in range(draw_value(st.integers(1, 12))):
        if depth and draw_value(st.integers(0, 7)) == 0:
            inner = draw_value(diagrams(depth=depth - 1))
            d.add(Subsystem(inner, enable=draw_value(st.booleans())), name=f"sub{n}")
        else:
            d.add(makers[draw_value(st.integers(0, len(makers) - 1))](), name=f"b{n}")
    outputs = [block[port.name] for block in d.blocks.values() for port in block.outputs]
    for block in d.blocks.values():
        for port in block.inputs:
            if outputs and draw_value(st.integers(0, 9)) > 0:
                d.connect(outputs[draw_value(st.integers(0, len(outputs) - 1))], block[port.name])
    for n in range(draw_value(st.integers(0, 2)) if outputs else 0):
        d.output(f"out{n}", outputs[draw_value(st.integers(0, len(outputs) - 1))])
    return d


@settings(max_examples=40)
@given(diagrams())
def test_random_diagrams(d: Diagram) -> None:
    picture = arrange(d)
    check_picture(picture)
    check_words(finish(picture))
    drawn = [(wire.source, wire.target) for wire in picture.wires]
    assert sorted(drawn) == sorted(expected_wires(d))
