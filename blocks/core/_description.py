"""A block in words: its ports, parameters and rate, for `AbstractBlock.describe` and ``help``."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._construction import shorten
from ._ports import Derived, Parameter, Port, Rate, Same

if TYPE_CHECKING:
    from ._block import AbstractBlock


class Documentation:
    """The docstring of a class of blocks; for one block, with the description of that block.

    It makes ``help(block)`` show the ports of this block, which its arguments decide.
    """

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __get__(self, block: AbstractBlock | None, owner: type[AbstractBlock]) -> str | None:
        if block is None:
            return self.text
        texts = (inspect.getdoc(owner), block.describe())
        return "\n\n".join(text for text in texts if text)


def describe_block(block: AbstractBlock) -> str:
    """Return a block's ports, parameters and rate, one a line."""
    lines = [repr(block)]
    for title, rows in (
        ("inputs", [_describe_port(port) for port in block.inputs]),
        ("outputs", [_describe_port(port, shows_default=False) for port in block.outputs]),
        ("parameters", [_describe_parameter(p) for p in block.parameters if not p.hidden]),
    ):
        if rows:
            lines += [f"  {title}", *_align(rows)]
    return "\n".join([*lines, f"  rate: {describe_rate(block.rate)}"])


def describe_rate(rate: Rate) -> str:
    """Return a rate in words."""
    if rate.kind == "periodic":
        offset = f" + {rate.offset:g} s" if rate.offset else ""
        return f"every {rate.period:g} s{offset}"
    words = {
        "continuous": "continuous",
        "constant": "constant",
        "every_tick": "every tick",
        "inherited": "inherited from its inputs",
        "sampled": "inherited from its inputs, at ticks only",
        "switching": "inherited from its inputs; at ticks only, unless events are located",
        "timed": "every tick, or continuous where events are located",
    }
    return words[rate.kind]


def _describe_port(port: Port, *, shows_default: bool = True) -> tuple[str, ...]:
    width = f"{port.width} values" if isinstance(port.width, int) else f"width {port.width}"
    if callable(port.width):
        width = "width depends on the inputs"
    unit = str(port.unit)
    if port.unit is None:
        unit = "any unit" if port.kind == "real" else ""
    elif isinstance(port.unit, Same):
        unit = "common unit"
    elif isinstance(port.unit, Derived):
        unit = f"unit from {', '.join(port.unit.of)}"
    kind = port.kind if isinstance(port.kind, str) else "any kind"
    default = f"default {shorten(port.default)}" if port.default is not None else ""
    facts = ["" if port.width == 1 else width, unit, "" if kind == "real" else kind]
    facts.append(default if shows_default else "")
    return port.name, ", ".join(fact for fact in facts if fact), port.doc


def _describe_parameter(item: Parameter) -> tuple[str, ...]:
    value = shorten(item.value if item.value.ndim else float(item.value))
    facts = f"= {value}{f' {item.unit}' if item.unit and str(item.unit) != '1' else ''}"
    return item.name, facts, f"{item.doc}{'' if item.tunable else '; fixed during a run'}"


def _align(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(2)]
    return [f"    {row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]}".rstrip() for row in rows]
