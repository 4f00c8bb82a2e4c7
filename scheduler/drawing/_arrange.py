"""From a diagram or a plan to its picture.

Each subsystem is laid out by itself and then stands in its surroundings as one large block, so a
wire passes a frame only at a port.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...blocks.basic.routing._bus import Bus, BusSelector
from ...blocks.core._block import AbstractBlock
from ...blocks.core._ports import PortRef
from ...blocks.external._python import FunctionBlock
from ...errors import BiellaError, DiagramError
from ..compile._buses import Element, find_shape, list_elements
from ..compile._compiler import outline_flat, read_settings
from ..compile._flatten import flatten
from ..compile.diagram._boundary import Inport
from ..compile.diagram._subsystem import Subsystem
from ..compile.plan._described import AbstractDescribed
from ..compile.plan._plan import Plan
from ._layering import Cell, Link
from ._layout import arrange_level
from ._picture import Box, Dot, Frame, Picture, Wire
from ._symbols import Facts, Look, Words, look_of_block, look_of_border, measure, shorten
from ._wiring import Point, simplify

if TYPE_CHECKING:
    from ..compile.diagram._diagram import Diagram

_TITLE, _TITLE_STRIP, _FOOT = 8.5, 22.0, 12.0
_SIGN = 8.0
_WIDTH_NUMBER = 6.5
_SMALLEST_FRAME = 60.0
_SIGNED = {"Sum": "+-", "Product": "*/", "Divide": "*/"}


@dataclass(frozen=True, slots=True)
class _Item:
    """A block of one level, ready to be placed."""

    name: str
    look: Look | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    rate: str = ""
    inside: _Inside | None = None


@dataclass(frozen=True, slots=True)
class _Inside:
    """A laid out subsystem and the heights of its ports."""

    picture: Picture
    inputs: tuple[float, ...]
    outputs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Signal:
    rate: str
    width: int
    is_bus: bool = False


@dataclass(frozen=True, slots=True)
class _Join:
    link: Link
    signal: _Signal


@dataclass(slots=True)
class _Scope:
    """One use of a diagram, which may be used at several places."""

    diagram: Diagram
    prefix: str
    depth: int = 0
    parent: _Scope | None = None
    subsystem: Subsystem | None = None
    inner: dict[AbstractBlock, _Scope] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, block in self.diagram.blocks.items():
            if isinstance(block, Subsystem):
                self.inner[block] = _Scope(
                    block.diagram, f"{self.prefix}{name}.", self.depth + 1, self, block
                )


def arrange(
    source: Diagram | Plan, plan: AbstractDescribed | None = None, *, closed: bool = False
) -> Picture:
    """Lay out a diagram with its subsystems, or a plan: all its blocks under their full paths.

    A diagram is checked for its rates and widths, unless `plan` has these already: what the diagram
    was compiled to. Subsystems are single boxes if `closed`.
    """
    if isinstance(source, Plan):
        items, joins = _read_plan(source)
        picture = _compose(items, joins, "", 0)[0]
    else:
        found: AbstractDescribed | None = plan
        if found is None:
            # A diagram that is not finished yet is drawn all the same.
            with suppress(BiellaError):
                found = outline_flat(flatten(source), read_settings(source))
        picture = _Reader(found, closed).read(_Scope(source, ""))[0]
    picture.name = source.name
    return picture


class _Reader:
    """Turns diagrams into items and joins."""

    def __init__(self, plan: AbstractDescribed | None, closed: bool = False) -> None:
        self.compiled = plan is not None
        self.closed = closed
        self.rates = {block.path: block.rate for block in plan.blocks} if plan else {}
        self.widths = {path: port.width for path, port in plan.signals.items()} if plan else {}

    def read(self, scope: _Scope) -> tuple[Picture, list[list[float]], list[list[float]]]:
        """Lay out one level and all below it."""
        diagram = scope.diagram
        items = [self._item(scope, name, block) for name, block in diagram.blocks.items()]
        numbers = {block: n for n, block in enumerate(diagram.blocks.values())}
        if scope.subsystem is not None and scope.subsystem.control:
            control = scope.subsystem.control
            rate = self._control_rate(scope)
            items.append(_Item(control, look_of_border(control, inward=True), (), ("y",), rate))
        joins = []

        def join(ref: PortRef, target: int, number: int, cost: float) -> None:
            output = ref.block.output_index[ref.name]
            link = Link(numbers[ref.block], output, target, number, cost)
            joins.append(_Join(link, self._signal(scope, ref)))

        for block, target in numbers.items():
            for number in range(len(block.inputs)):
                ref = diagram.sources.get((block, number))
                if ref is not None:
                    join(ref, target, number, _cut_cost(ref, block, number))
        for name, port in diagram.outports.items():
            rate = self._signal(scope, port.source).rate
            items.append(_Item(name, look_of_border(name, inward=False), (), (), rate))
            join(port.source, len(items) - 1, 0, 10.0)
        return _compose(items, joins, scope.prefix, scope.depth)

    def _item(self, scope: _Scope, name: str, block: AbstractBlock) -> _Item:
        inputs, outputs = tuple(block.input_index), tuple(block.output_index)
        if isinstance(block, Inport):
            rate = self._signal(scope, PortRef(block, block.outputs[0].name)).rate
            return _Item(name, look_of_border(name, inward=True), (), outputs, rate)
        if isinstance(block, Subsystem) and not self.closed:
            inside = self._frame(scope.inner[block], name, block)
            return _Item(name, None, inputs, outputs, inside=inside)
        rate = self.rates.get(scope.prefix + name, "")
        if isinstance(block, Bus):
            rate = self._signal(scope, PortRef(block, "bus")).rate
        elif isinstance(block, BusSelector):
            ref = scope.diagram.sources.get((block, 0))
            rate = self._signal(scope, ref).rate if ref else ""
        return _Item(name, look_of_block(_facts(name, block)), inputs, outputs, rate)

    def _frame(self, scope: _Scope, name: str, block: Subsystem) -> _Inside:
        """Lay out a subsystem and put a frame with its title around it."""
        inner, inputs, outputs = self.read(scope)
        title = {"enable": "enabled", "trigger": "triggered", "reset": "resettable"}
        note = title.get(block.control or "", "")
        width = max(inner.width, _SMALLEST_FRAME)
        text = name
        while len(text) > 2 and measure(text, _TITLE, True) + 18 > width:
            text = shorten(text, len(text) - 1)
        picture = Picture(width, inner.height + _TITLE_STRIP + _FOOT)
        picture.frames.append(Frame(scope.prefix[:-1], (0, 0, width, picture.height), scope.depth))
        picture.words.append(Words(text, 9, 11, _TITLE, "left", bold=True))
        used = measure(text, _TITLE, True) + 16
        if note and used + measure(note, _TITLE - 1.5) + 9 < width:
            picture.words.append(Words(note, used, 11.3, _TITLE - 1.5, "left", tone="soft"))
        picture.paste(inner, 0, _TITLE_STRIP)
        # The level's own cells came in the order of the blocks, then the control, then the outputs.
        count = len(block.diagram.blocks)
        borders = [n for n, b in enumerate(block.diagram.blocks.values()) if isinstance(b, Inport)]
        borders += [count] if block.control else []
        first = count + bool(block.control)
        return _Inside(
            picture,
            tuple(_TITLE_STRIP + outputs[n][0] for n in borders),
            tuple(_TITLE_STRIP + ports[0] for ports in inputs[first:]),
        )

    def _control_rate(self, scope: _Scope) -> str:
        block = scope.subsystem
        assert block is not None and scope.parent is not None and block.control
        ref = scope.parent.diagram.sources.get((block, block.input_index[block.control]))
        return self._signal(scope.parent, ref).rate if ref else ""

    def _signal(self, scope: _Scope, ref: PortRef) -> _Signal:
        """Return what a wire carries; a bus has the rate that all of its signals have, if any."""
        shape = None
        with suppress(DiagramError):  # a bus that contains itself
            shape = find_shape(scope.diagram, ref)
        if shape is None:
            return self._follow(scope, ref, ())
        signals = [self._follow(scope, ref, element) for element in list_elements(shape)]
        rates = {signal.rate for signal in signals}
        rate = rates.pop() if len(rates) == 1 else ""
        return _Signal(rate, sum(signal.width for signal in signals), True)

    def _follow(self, scope: _Scope, ref: PortRef, element: Element, depth: int = 0) -> _Signal:
        """Follow a signal through the borders of subsystems and through buses to the block that
        drives it."""
        block = ref.block
        name = scope.diagram.names[block]
        free = "continuous" if self.compiled else ""
        if depth > 100:
            return _Signal("", 1)
        if isinstance(block, Inport):
            if scope.parent is not None and scope.subsystem is not None:
                key = (scope.subsystem, scope.subsystem.input_index[name])
                outer = scope.parent.diagram.sources.get(key)
                if outer is not None:
                    return self._follow(scope.parent, outer, element, depth + 1)
            width = block.port.width
            if block.bus:
                signals = {tuple(path.split(".")): port for path, port in block.bus.list_signals()}
                width = signals[element].width if element in signals else 1
            return _Signal(free, width if isinstance(width, int) else 1)
        if isinstance(block, BusSelector):
            element = (*ref.name.split("."), *element)
        if isinstance(block, Bus | BusSelector):
            number = 0
            if isinstance(block, Bus):
                number = block.input_index.get("".join(element[:1]), -1)
                element = element[1:]
            outer = scope.diagram.sources.get((block, number))
            return self._follow(scope, outer, element, depth + 1) if outer else _Signal("", 1)
        path = ".".join((f"{scope.prefix}{name}.{ref.name}", *element))
        if isinstance(block, Subsystem):
            if path in self.rates:
                # The held output of a conditional subsystem is a block of the plan.
                return _Signal(self.rates[path], self.widths.get(f"{path}.y", 1))
            inner = scope.inner[block]
            return self._follow(inner, inner.diagram.outports[ref.name].source, element, depth + 1)
        width = block.outputs[block.output_index[ref.name]].width
        fixed = width if isinstance(width, int) else 1
        return _Signal(self.rates.get(scope.prefix + name, ""), self.widths.get(path, fixed))


def _read_plan(plan: Plan) -> tuple[list[_Item], list[_Join]]:
    """Find the wires of a plan again: an input lies where the output lies that feeds it."""
    values = plan.first_values
    items: list[_Item] = []
    drivers: dict[int, tuple[int, int, _Signal]] = {}
    for name, port in plan.inputs.items():
        drivers[port.slot] = (len(items), 0, _Signal("continuous", port.width))
        items.append(_Item(name, look_of_border(name, inward=True), (), ("y",), "continuous"))
    first = len(items)
    for block in plan.blocks:
        inputs = tuple(port.path.removeprefix(block.path + ".") for port in block.inputs)
        outputs = tuple(port.path.removeprefix(block.path + ".") for port in block.outputs)
        value = None
        if block.parameters:
            known = block.parameters[0]
            value = values[known.slot : known.slot + known.size].reshape(known.shape)
        look = look_of_block(Facts(block.path, block.type, inputs, outputs, value))
        for n, port in enumerate(block.outputs):
            drivers[port.slot] = (len(items), n, _Signal(block.rate, port.width))
        items.append(_Item(block.path, look, inputs, outputs, block.rate))
    joins = []
    for target, block in enumerate(plan.blocks, first):
        for n, port in enumerate(block.inputs):
            if port.slot in drivers:
                source, output, signal = drivers[port.slot]
                joins.append(_Join(Link(source, output, target, n), signal))
    for name, port in plan.outputs.items():
        source, output, signal = drivers[port.slot]
        joins.append(_Join(Link(source, output, len(items), 0), signal))
        items.append(_Item(name, look_of_border(name, inward=False), (), (), signal.rate))
    return items, joins


def _compose(
    items: Sequence[_Item], joins: Sequence[_Join], prefix: str, depth: int
) -> tuple[Picture, list[list[float]], list[list[float]]]:
    """Lay out one level; return it with the heights of all inputs and outputs in it."""
    layout = arrange_level([_cell(item) for item in items], [join.link for join in joins])
    picture = Picture(layout.width, layout.height)
    wired = {(join.link.target, join.link.input) for join in joins}
    inputs, outputs = [], []
    for n, (item, (x, y)) in enumerate(zip(items, layout.corners, strict=True)):
        inputs.append([y + offset for offset in layout.inputs[n]])
        if item.inside is not None:
            outputs.append([y + offset for offset in item.inside.outputs])
            picture.paste(item.inside.picture, x, y)
            continue
        look = item.look
        assert look is not None
        outputs.append([y + offset for offset in look.outputs])
        left, top, width, height = look.body
        loose = tuple(
            (x + left, y + offset)
            for k, offset in enumerate(layout.inputs[n])
            if (n, k) not in wired and look.shape != "circle"
        )
        picture.boxes.append(
            Box(
                prefix + item.name,
                (x, y, look.width, look.height),
                (x + left, y + top, width, height),
                look,
                item.rate,
                loose,
            )
        )
        picture.words += [word.moved(x, y) for word in look.words]
        picture.words += _signs(look, layout.inputs[n], x, y)
    numbered: set[tuple[int, int]] = set()
    for join, line in zip(joins, layout.wires, strict=True):
        link, signal = join.link, join.signal
        source, target = items[link.source], items[link.target]
        start, end = line[0], line[-1]
        if source.look is not None:
            left, _, width, _ = source.look.body
            start = (layout.corners[link.source][0] + left + width, start[1])
        ends = [end]
        if target.look is not None:
            ends = _enter(target.look, layout.corners[link.target], end)
        points = simplify([start, *line, *ends])
        picture.wires.append(
            Wire(
                f"{prefix}{source.name}.{source.outputs[link.output]}",
                ".".join([prefix + target.name, *target.inputs[link.input : link.input + 1]]),
                tuple(points),
                signal.rate,
                signal.width,
                depth,
                signal.is_bus,
            )
        )
        if signal.width > 1 and not signal.is_bus and (link.source, link.output) not in numbered:
            numbered.add((link.source, link.output))
            at = Words(str(signal.width), start[0] + 3, start[1] - 6, _WIDTH_NUMBER, "left")
            picture.words.append(at)
    picture.dots = [*picture.dots, *(Dot(at, joins[n].signal.rate) for n, at in layout.dots)]
    return picture, inputs, outputs


def _cell(item: _Item) -> Cell:
    if item.inside is not None:
        picture = item.inside.picture
        return Cell(picture.width, picture.height, item.inside.inputs, item.inside.outputs)
    look = item.look
    assert look is not None
    if look.shape == "inport":
        return Cell(look.width, look.height, (), look.outputs, "left")
    if look.shape == "outport":
        return Cell(look.width, look.height, look.inputs, (), "right")
    return Cell(look.width, look.height, look.inputs, look.outputs, spots=look.spots)


def _enter(look: Look, corner: Point, end: Point) -> list[Point]:
    """Return the last points of a wire, from the cell's border to the shape inside it."""
    left, top, width, height = look.body
    x, y = corner[0] + left, corner[1] + top
    if look.shape == "circle" and abs(end[1] - (y + height / 2)) > 1:
        side = y if end[1] < y else y + height
        return [(x + width / 2, end[1]), (x + width / 2, side)]
    return [(x, end[1])]


def _signs(look: Look, inputs: Sequence[float], x: float, y: float) -> list[Words]:
    """Write the signs of a round sum where its inputs enter."""
    left, top, width, height = look.body
    middle = top + height / 2
    words = []
    for sign, offset in zip(look.signs, inputs, strict=False):
        if abs(offset - middle) < 1:
            place = (left - 5, middle - 6)
        elif offset < middle:
            place = (left + width / 2 + 6, top - 7)
        else:
            place = (left + width / 2 - 6, top + height + 7)
        words.append(Words(sign, x + place[0], y + place[1], _SIGN))
    return words


def _facts(name: str, block: AbstractBlock) -> Facts:
    kind = str(block) if isinstance(block, FunctionBlock) else type(block).__name__
    value = block.parameters[0].value if block.parameters else None
    integers = getattr(block, "integers", ())
    signs = ""
    if kind in _SIGNED and not callable(integers) and len(integers) == len(block.inputs):
        signs = "".join(_SIGNED[kind][n < 0] for n in integers)
    formula = getattr(block, "formula", "")
    inputs, outputs = tuple(block.input_index), tuple(block.output_index)
    text = formula if isinstance(formula, str) else ""
    return Facts(name, kind, inputs, outputs, value, signs, text)


def _cut_cost(ref: PortRef, target: AbstractBlock, number: int) -> float:
    """Return how odd a wire would look as feedback: least into a minus, most into a lone input."""
    cost = 6.0 if len(target.inputs) == 1 else 3.0
    if "-" in _facts("", target).signs[number : number + 1]:
        cost = 1.0
    if not isinstance(ref.block, Subsystem):
        holds = not ref.block.feedthrough[ref.block.output_index[ref.name]]
        cost *= 0.7 if holds else 1.0
    return cost
