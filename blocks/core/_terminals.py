"""Terminals: ports of a block that are connected together, by the names of their members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TerminalEnd:
    """A member of a terminal.

    Attributes
    ----------
    name
        The name by which it is matched.
    port
        Of the block; empty if the variable is not a port, such as a parameter.
    is_input
        Whether the port is an input.
    kind
        ``"signal"``: connected values are equal. ``"inflow"``, ``"outflow"``: connected values add
        up to zero, counted into or out of the block. ``"stream"``: a quantity that matter carries,
        with one value for each direction.
    causality
        What the variable is, for messages.
    incoming
        Of a stream: the port of its value if matter flows into the block.
    """

    name: str
    port: str
    is_input: bool
    kind: str = "signal"
    causality: str = ""
    incoming: str = ""


@dataclass(frozen=True, slots=True)
class TerminalRef:
    """A terminal of a block in a diagram: what ``block.terminal("name")`` returns.

    Attributes
    ----------
    name
        Unique on its level.
    path
        The names of the terminals around it, and its own, for messages.
    rule
        How members are matched: ``"plug"``, by name, all of them; ``"bus"``, by name, those that
        both sides have; ``"sequence"``, by order.
    kind
        What its members mean, in words of the tool that made it; empty if not stated.
    members, terminals
        Members, and terminals within this one.
    """

    block: Any
    name: str
    path: str
    rule: str
    kind: str = ""
    members: tuple[TerminalEnd, ...] = ()
    terminals: tuple[TerminalRef, ...] = ()
