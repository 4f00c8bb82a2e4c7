"""Terminals of an imported FMU as ports of its block."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from ...blocks.core._terminals import TerminalEnd, TerminalRef
from ...errors import DiagramError, FmuError, name_list, suggest
from ._terminals import Terminal, read_terminals

if TYPE_CHECKING:
    from ..importer._interface import Description, Interface

_ELEMENT = re.compile(r"(?P<base>.*[^\]])\[\d+\]\Z")


class TerminalBlock:
    """A block of an FMU: its terminals connect as a whole, clocked inputs with their clocks."""

    description: Description
    interface: Interface

    def terminal(self, name: str) -> TerminalRef:
        """Return a terminal of the FMU; one within another is ``"outer.inner"``."""
        label = self.description.archive.path.name
        paths = {
            path: found
            for top in read_terminals(self.description.archive)
            for path, found in top.walk()
        }
        if name not in paths:
            raise DiagramError(
                f"{label} has no terminal `{name}`.{suggest(str(name), paths)} Terminals: "
                f"{name_list(paths)}."
            )
        return self._resolve(name, paths[name])

    def warn_of_connections(self, connected: Collection[str]) -> str:
        """Return which inputs are never taken, because their clock is not connected."""
        from ..importer._interface import describe_idle_inputs

        return describe_idle_inputs(self.description, self.interface, connected)

    def _resolve(self, path: str, terminal: Terminal) -> TerminalRef:
        return TerminalRef(
            self,
            terminal.name,
            path,
            terminal.rule,
            terminal.kind,
            tuple(self._ends(path, terminal)),
            tuple(self._resolve(f"{path}.{t.name}", t) for t in terminal.terminals),
        )

    def _ends(self, path: str, terminal: Terminal) -> list[TerminalEnd]:
        ends: list[TerminalEnd] = []
        variables = {member.variable for member in terminal.members}
        done: set[str] = set()
        for member in terminal.members:
            port, is_input, elements = self._find(path, member.variable)
            name, kind = member.name or member.variable, member.kind
            if len(elements) < 2 or member.incoming:
                scalar = self.description.scalars.get(member.variable)
                causality = scalar.causality if scalar is not None else "no port"
                incoming = self._find(path, member.incoming[1])[0] if member.incoming else ""
                ends.append(TerminalEnd(name, port, is_input, kind, f"a {causality}", incoming))
                continue
            # Elements ``x[0]``, ``x[1]``, … of one port are one member ``x``.
            if port in done:
                continue
            missing = [element for element in elements if element not in variables]
            if missing:
                raise FmuError(
                    f"the terminal `{path}` of {self.description.archive.path.name} has some "
                    f"elements of the port `{port}`, and not {name_list(missing)}: choose the "
                    f"elements as ports with inputs=[…] or outputs=[…]."
                )
            done.add(port)
            match = _ELEMENT.match(name)
            ends.append(TerminalEnd(match["base"] if match else port, port, is_input, kind))
        return ends

    def _find(self, path: str, variable: str) -> tuple[str, bool, list[str]]:
        """Return the port of a variable, whether it is an input, and the port's variables."""
        if variable not in self.description.scalars and variable not in self.description.others:
            raise FmuError(
                f"the terminal `{path}` of {self.description.archive.path.name} has a member "
                f"`{variable}`, which is no variable of the FMU."
            )
        sides = (True, self.interface.inputs), (False, self.interface.outputs)
        for is_input, groups in sides:
            for group in groups:
                names = [s.name for s in group.scalars]
                if variable in names or variable in [s.alias for s in group.scalars if s.alias]:
                    return group.name, is_input, names
        return "", False, []
