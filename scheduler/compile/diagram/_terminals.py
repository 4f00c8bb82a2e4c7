"""Wires between terminals: members are matched, and outputs lead to inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....blocks.core._block import AbstractBlock
from ....blocks.core._ports import PortRef
from ....blocks.core._terminals import TerminalEnd, TerminalRef
from ....errors import DiagramError, name_list

_RULES = ("plug", "bus", "sequence")
_TRANSCEIVER = "org.fmi-ls-bus.transceiver"
"""Rule of bus terminals of FMI-LS-BUS: what one FMU sends, the other receives."""
Wire = tuple[PortRef, PortRef]


def match_terminals(
    names: Mapping[AbstractBlock, str], first: Any, others: Sequence[Any]
) -> list[Wire]:
    """Return the wires between a terminal and others; `names` are those of the blocks.

    Raises
    ------
    DiagramError
        If an end is no terminal, or members do not match as the rule of the terminals requires.
    """
    for end in (first, *others):
        if not isinstance(end, TerminalRef):
            raise DiagramError(
                f"a terminal connects to terminals only, not to {end!r}: select a port of the "
                f"block, or a terminal of the other block."
            )
        if end.block not in names:
            raise DiagramError(f"{end.block} is not in the diagram yet: add it first.")
    found = [wire for other in others for wire in _Match(names, first, other).wires()]
    return list(dict.fromkeys(found))


class _Match:
    """Two terminals."""

    def __init__(
        self, names: Mapping[AbstractBlock, str], one: TerminalRef, two: TerminalRef
    ) -> None:
        self.names, self.problems = names, list[str]()
        self.one, self.two = one, two
        self.title = f"terminals {self._label(one)} and {self._label(two)} do not match"

    def wires(self) -> list[Wire]:
        if self.one.block is self.two.block and self.one.path == self.two.path:
            raise DiagramError(f"terminal {self._label(self.one)} cannot connect to itself.")
        found = self._level(self.one, self.two)
        if not found and not self.problems:
            self.problems.append(
                f"they have no output of one and input of the other in common. Members of "
                f"{self._label(self.one)}: {name_list([m.name for m in self.one.members])}; of "
                f"{self._label(self.two)}: {name_list([m.name for m in self.two.members])}"
            )
        if self.problems:
            raise DiagramError(f"{self.title}: {'; '.join(self.problems)}.")
        return found

    def _label(self, terminal: TerminalRef) -> str:
        return f"`{self.names[terminal.block]}.{terminal.path}`"

    def _level(self, one: TerminalRef, two: TerminalRef) -> list[Wire]:
        if one.rule != two.rule or one.rule not in (*_RULES, _TRANSCEIVER):
            self.problems.append(
                f"their matching rules are {one.rule!r} and {two.rule!r}"
                + ("" if one.rule != two.rule else f"; known are {name_list(_RULES)}")
            )
            return []
        if one.kind and two.kind and one.kind != two.kind:
            self.problems.append(f"their kinds are {one.kind!r} and {two.kind!r}")
            return []
        inner: list[tuple[TerminalRef, TerminalRef]]
        if one.rule == _TRANSCEIVER:
            pairs, inner = self._crossed(one, two), []
        elif one.rule == "sequence":
            pairs = self._in_order(one.members, two.members, "members")
            inner = self._in_order(one.terminals, two.terminals, "inner terminals")
        else:
            pairs = self._by_name(one, two, lambda terminal: terminal.members)
            inner = self._by_name(one, two, lambda terminal: terminal.terminals)
        found = [wire for a, b in pairs for wire in self._member(one, a, two, b)]
        for a, b in inner:
            found += self._level(a, b)
        return found

    def _in_order(self, one: Sequence[Any], two: Sequence[Any], what: str) -> list[tuple[Any, Any]]:
        if len(one) != len(two):
            self.problems.append(
                f"a sequence requires as many {what} on both sides, and they have {len(one)} "
                f"({name_list([m.name for m in one])}) and {len(two)} "
                f"({name_list([m.name for m in two])})"
            )
            return []
        return list(zip(one, two, strict=True))

    def _by_name(
        self, one: TerminalRef, two: TerminalRef, of: Callable[[TerminalRef], Sequence[Any]]
    ) -> list[tuple[Any, Any]]:
        by_name = {member.name: member for member in of(two)}
        pairs = [(m, by_name[m.name]) for m in of(one) if m.name in by_name]
        if one.rule == "plug":
            known = {member.name for member in of(one)}
            missing = [
                f"{self._label(two)} has no {m.name}" for m in of(one) if m.name not in by_name
            ]
            missing += [f"{self._label(one)} has no {n}" for n in by_name if n not in known]
            if missing:
                self.problems.append(f"a plug requires all members: {', '.join(missing)}")
        return pairs

    def _crossed(self, one: TerminalRef, two: TerminalRef) -> list[tuple[TerminalEnd, TerminalEnd]]:
        """Return the data that are sent and received, and the clocks where both have ports."""
        ends = [{member.name: member for member in terminal.members} for terminal in (one, two)]
        names: tuple[tuple[str, str], ...] = ("Tx_Data", "Rx_Data"), ("Rx_Data", "Tx_Data")
        missing = [
            f"{self._label(terminal)} has no {name}"
            for terminal, found in zip((one, two), ends, strict=True)
            for name in names[0]
            if name not in found
        ]
        if missing:
            self.problems.append(f"a bus terminal requires both: {', '.join(missing)}")
            return []
        clocks = ("Tx_Clock", "Rx_Clock"), ("Rx_Clock", "Tx_Clock")
        names += tuple(
            (a, b)
            for a, b in clocks
            if all(n in end and end[n].port for n, end in zip((a, b), ends, strict=True))
        )
        return [(ends[0][a], ends[1][b]) for a, b in names]

    def _member(
        self, one: TerminalRef, a: TerminalEnd, two: TerminalRef, b: TerminalEnd
    ) -> list[Wire]:
        what = a.name if a.name == b.name else f"{a.name} and {b.name}"
        if a.kind == b.kind == "stream":
            return self._stream(one, a, two, b)
        flows = {a.kind, b.kind}
        if flows not in ({"signal"}, {"inflow", "outflow"}):
            same = len(flows) == 1 and flows <= {"inflow", "outflow"}
            advice = ": connect the ports one by one, with a Gain(-1) between them" if same else ""
            self.problems.append(f"{what}: {a.kind} and {b.kind}{advice}")
            return []
        if not a.port and not b.port:  # parameters
            return []
        if not a.port or not b.port:
            end, terminal = (a, one) if not a.port else (b, two)
            self.problems.append(
                f"{end.name} of {self._label(terminal)} is {end.causality or 'no port'}"
            )
            return []
        if a.is_input != b.is_input:
            give, take = ((two, b), (one, a)) if a.is_input else ((one, a), (two, b))
            return [(PortRef(give[0].block, give[1].port), PortRef(take[0].block, take[1].port))]
        if not a.is_input or one.rule != "bus":  # on a bus, another block may be the source
            self.problems.append(f"{what}: both are {'inputs' if a.is_input else 'outputs'}")
        return []

    def _stream(
        self, one: TerminalRef, a: TerminalEnd, two: TerminalRef, b: TerminalEnd
    ) -> list[Wire]:
        """Connect a transported quantity: what leaves one block enters the other."""
        if not (a.port and a.incoming and b.port and b.incoming):
            self.problems.append(f"{a.name}: not all variables of the stream are ports")
            return []
        return [
            (PortRef(one.block, a.port), PortRef(two.block, b.incoming)),
            (PortRef(two.block, b.port), PortRef(one.block, a.incoming)),
        ]
