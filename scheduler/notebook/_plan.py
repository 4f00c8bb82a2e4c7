"""A plan in a notebook: its schedule, loops, couplings, inputs and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...blocks.core.notebook._html import SHOWN, card, count_of, fold, paragraph, table
from ...errors import PlanError
from ..drawing._paint import describe_rate

if TYPE_CHECKING:
    from ..compile.plan._plan import Plan

_PORTS = 6  # of a block


def describe_plan(plan: Plan) -> str:
    """Return a plan in one line, also one that cannot be read."""
    try:
        _ = plan.meta
    except PlanError as error:
        return f"{type(plan).__name__}({len(plan.data)} bytes: {error})"
    facts = [count_of(len(plan.blocks), "block"), f"step {plan.step:g} s", plan.solver]
    return f"{type(plan).__name__}({plan.name!r}, {', '.join(facts)}, {len(plan.data)} bytes)"


def show_plan(plan: Plan) -> str:
    """Return a plan as HTML."""
    facts = [
        type(plan).__name__.lower(),
        count_of(len(plan.blocks), "block"),
        f"step {plan.step:g} s",
        plan.solver,
        f"{len(plan.data) / 1024:.3g} KB",
        f"hash {plan.hash[:12]}",
    ]
    steps, total = _list_steps(plan)
    schedule = table(("", "block", "type", "rate", "outputs"), steps, total=total, numbers=(0,))
    sides = (("input", plan.inputs), ("output", plan.outputs))
    ports = [
        (side, port.path, port.unit or "", port.width, port.doc)
        for side, found in sides
        for port in found.values()
    ]
    parameters = [
        (item.path, item.unit or "", "×".join(map(str, item.shape)) or "1", item.doc)
        for item in list(plan.parameters.values())[:SHOWN]
    ]
    return card(
        plan.name,
        "· " + " · ".join(facts),
        fold("schedule of a tick", schedule, is_open=True),
        *(paragraph(text) for text in _list_facts(plan)),
        fold(
            f"{count_of(len(ports), 'input or output', 'inputs and outputs')} of the diagram",
            table(("", "name", "unit", "width", ""), ports),
        ),
        fold(
            count_of(len(plan.parameters), "parameter"),
            table(("path", "unit", "shape", ""), parameters, total=len(plan.parameters)),
        ),
    )


def _list_steps(plan: Plan) -> tuple[list[tuple[str, ...]], int]:
    """Return the first steps of a tick as rows, and the number of all."""
    rows: list[tuple[str, ...]] = []
    position = total = 0
    for kind, index in plan.meta["order"]:
        if kind == "call":
            block = plan.blocks[index]
            if not block.outputs:
                continue
            position += 1
            ports = ", ".join(
                port.path.removeprefix(f"{block.path}.")
                + (f" ({port.width})" if port.width > 1 else "")
                + (f" [{port.unit}]" if port.unit else "")
                for port in block.outputs[:_PORTS]
            )
            more = len(block.outputs) - _PORTS
            ports += f", … {more} more" if more > 0 else ""
            row = (str(position), block.path, block.type, describe_rate(block.rate), ports)
        elif kind == "loop":
            position += 1
            row = (str(position), "(loop)", "", "", " → ".join(plan.loops[index]))
        else:
            row = ("", f"[{plan.meta['guards'][index]}]", "decides", "", "")
        total += 1
        if len(rows) < SHOWN:
            rows.append(row)
    return rows, total


def _list_facts(plan: Plan) -> list[str]:
    facts = []
    sinks = [block.path for block in plan.blocks if not block.outputs]
    if sinks:
        facts.append(f"without outputs: {_shorten(sinks)}")
    if plan.loops:
        loops = count_of(len(plan.loops), "algebraic loop")
        facts.append(f"{loops}, solved at each tick by Newton's method")
    for item in plan.couplings:
        how = f"{item['method']}, extrapolation {item['extrapolation']}"
        facts.append(f"coupled by {how}: {_shorten(item['members'])}")
    if plan.multirate:
        part = plan.multirate
        facts.append(f"{part['substeps']} substeps in a step: {_shorten(part['blocks'])}")
    if plan.python_blocks:
        paths = [plan.blocks[n].path for n in plan.python_blocks]
        facts.append(f"Python blocks: {_shorten(paths)}")
    if plan.external:
        facts.append(f"external: {plan.name_external()}")
    return facts


def _shorten(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(names[:12]) + (f", … {len(names) - 12} more" if len(names) > 12 else "")
