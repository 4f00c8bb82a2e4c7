"""A diagram or a subsystem in a notebook: its problems, its picture, its blocks and rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...blocks.core._block import AbstractBlock
from ...blocks.core._ports import Parameter
from ...blocks.core.notebook._html import (
    SHOWN,
    card,
    count_of,
    fold,
    list_problems,
    on_paper,
    paragraph,
    swatch,
    table,
)
from ...errors import BiellaError, DiagramError
from ..compile._compiler import outline_flat, read_settings
from ..compile._flatten import flatten
from ..compile._model import Outline
from ..compile.diagram._boundary import Inport
from ..compile.diagram._subsystem import Subsystem
from ..drawing._arrange import arrange
from ..drawing._paint import describe_rate, finish, rate_colors
from ..drawing._svg import write_svg

if TYPE_CHECKING:
    from ..compile.diagram._diagram import Diagram

DRAWN = 120
"""Most blocks of a picture: a layout takes a second at about 200."""

_SMALLEST = 0.6  # size of a picture, as part of that on paper
_VALUES = 6  # of a parameter


def show_diagram(diagram: Diagram) -> str:
    """Return a diagram as HTML; what is wrong with it is listed instead of raised."""
    outline, problems = _check(diagram)
    total = _count_blocks(diagram)
    facts = [count_of(total, "block"), f"step {diagram.step:g} s", diagram.solver]
    return card(
        diagram.name,
        "· " + " · ".join(["diagram", *facts]),
        list_problems(problems),
        _draw(diagram, outline, total),
        _describe_rates(outline),
        _list_blocks(diagram, outline, total),
        _list_ports(diagram, outline),
    )


def show_subsystem(block: Subsystem) -> str:
    """Return a subsystem as HTML: its ports, and the diagram inside."""
    inner = block.diagram
    try:
        outline: Outline | None = outline_flat(flatten(inner), read_settings(inner))
    except BiellaError:  # units and buses may be those of what it is connected to
        outline = None
    total = _count_blocks(inner)
    condition = {"enable": "enabled", "trigger": "triggered", "reset": "resettable"}
    facts = ["subsystem", condition.get(block.control or "", ""), count_of(total, "block")]
    rows = [("input", port.name, port.doc) for port in block.inputs]
    rows += [("output", port.name, port.doc) for port in block.outputs]
    return card(
        inner.name,
        "· " + " · ".join(fact for fact in facts if fact),
        _draw(inner, outline, total),
        _list_blocks(inner, outline, total),
        fold(count_of(len(rows), "port"), table(("", "port", ""), rows)),
    )


def _check(diagram: Diagram) -> tuple[Outline | None, Sequence[str]]:
    """Return what is known of a diagram once it is checked, or what is wrong with it."""
    try:
        return outline_flat(flatten(diagram), read_settings(diagram)), ()
    except DiagramError as error:
        return None, error.problems
    except BiellaError as error:
        return None, (str(error),)


def _count_blocks(diagram: Diagram) -> int:
    """Return the number of blocks, those in subsystems included."""
    return sum(
        _count_blocks(block.diagram) if isinstance(block, Subsystem) else 1
        for block in diagram.blocks.values()
        if not isinstance(block, Inport)
    )


def _draw(diagram: Diagram, outline: Outline | None, total: int) -> str:
    """Return the picture: subsystems are closed where it would be too large, or it is left out."""
    own = len(diagram.blocks)
    if not own:
        return paragraph("no blocks")
    if own > DRAWN:
        return paragraph(f"More than {DRAWN} blocks: not drawn here; .draw('picture.svg') does it.")
    closed = total > DRAWN
    page = finish(arrange(diagram, outline, closed=closed), "")
    note = "Subsystems are closed." if closed else ""
    return on_paper(write_svg(page), _SMALLEST * page.width) + paragraph(note)


def _describe_rates(outline: Outline | None) -> str:
    if outline is None:
        return ""
    counts = Counter(block.rate for block in outline.blocks)
    colors = rate_colors(list(counts))
    shown = [swatch(colors[rate][0], f"{describe_rate(rate)}: {n}") for rate, n in counts.items()]
    return f"<p>{''.join(shown[:20])}</p>" if shown else ""


def _list_blocks(diagram: Diagram, outline: Outline | None, total: int) -> str:
    rates = {block.path: describe_rate(block.rate) for block in outline.blocks} if outline else {}
    rows = [
        (path, str(block), rates.get(path, ""), _describe_parameters(block.parameters))
        for path, block in _first_blocks(diagram, "", SHOWN)
    ]
    body = table(("block", "type", "rate", "parameters"), rows, total=total)
    return fold(count_of(total, "block"), body)


def _first_blocks(diagram: Diagram, prefix: str, most: int) -> Iterator[tuple[str, AbstractBlock]]:
    """Yield blocks with their paths, those in subsystems included, in order, up to a number."""
    left = most
    for name, block in diagram.blocks.items():
        if left <= 0:
            return
        if isinstance(block, Subsystem):
            for item in _first_blocks(block.diagram, f"{prefix}{name}.", left):
                left -= 1
                yield item
        elif not isinstance(block, Inport):
            left -= 1
            yield f"{prefix}{name}", block


def _describe_parameters(parameters: Sequence[Parameter]) -> str:
    return ", ".join(
        f"{item.name} = {_describe_value(item)}" for item in parameters if not item.hidden
    )


def _describe_value(item: Parameter) -> str:
    values = np.asarray(item.value, dtype=np.float64)
    unit = f" {item.unit}" if item.unit is not None and str(item.unit) not in ("", "1") else ""
    if values.size == 1 and values.ndim == 0:
        return f"{float(values):g}{unit}"
    shown = ", ".join(f"{value:g}" for value in values.ravel()[:_VALUES])
    return f"[{shown}{', …' if values.size > _VALUES else ''}]{unit}"


def _list_ports(diagram: Diagram, outline: Outline | None) -> str:
    """Return the inputs and outputs of the whole diagram."""
    if outline is not None:
        known = [("input", port) for port in outline.inputs.values()]
        known += [("output", port) for port in outline.outputs.values()]
        rows = [(side, p.path, p.unit or "", str(p.width), p.doc) for side, p in known]
    else:
        rows = [("input", name, "", "", "") for name in diagram.inports]
        rows += [("output", name, "", "", "") for name in diagram.outports]
    title = f"{count_of(len(rows), 'input or output', 'inputs and outputs')} of the diagram"
    return fold(title, table(("", "name", "unit", "width", ""), rows))
