"""Terminals of an FMU: groups of variables, in ``terminalsAndIcons/terminalsAndIcons.xml``.

The format is that of FMI 3.0, section 2.4.9, which FMI 2.0.4 adopts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import FmuError
from ..importer._archive import Archive, read_member
from ..importer._encoding import read_text

FOLDER = "terminalsAndIcons"
FILE = f"{FOLDER}/terminalsAndIcons.xml"
RULES = ("plug", "bus", "sequence")
"""Matching rules that FMI defines."""


@dataclass(frozen=True, slots=True)
class Member:
    """A variable in a terminal.

    Attributes
    ----------
    name
        By which it is matched; empty in a sequence that names none.
    variable
        Of the FMU.
    kind
        ``"signal"``, ``"inflow"`` or ``"outflow"``; ``"stream"`` for a transported quantity, which
        has `incoming` besides: the name and the variable of its value if matter flows in.
    """

    name: str
    variable: str
    kind: str = "signal"
    incoming: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal as the file describes it."""

    name: str
    rule: str = "bus"
    members: tuple[Member, ...] = ()
    kind: str = ""
    description: str = ""
    terminals: tuple[Terminal, ...] = ()

    def walk(self, prefix: str = "") -> Iterator[tuple[str, Terminal]]:
        """Return this terminal and those within it, with their full names."""
        path = f"{prefix}{self.name}"
        yield path, self
        for inner in self.terminals:
            yield from inner.walk(f"{path}.")


@lru_cache(maxsize=64)
def read_terminals(archive: Archive) -> tuple[Terminal, ...]:
    """Return the terminals of an FMU; none if it has no such file.

    Raises
    ------
    FmuError
        If the file cannot be read.
    """
    root = _parse(archive)
    if root is None:
        return ()
    return tuple(_read(element) for element in root.findall("Terminals/Terminal"))


def check_terminals(archive: Archive, variables: set[str]) -> list[str]:
    """Return violations of the standard in the file; `variables` are the names of the FMU's."""
    try:
        root = _parse(archive)
    except FmuError as error:
        return [str(error)]
    if root is None:
        return []
    schema = _schema()
    schema.validate(root)
    findings = [f"{FILE}, line {e.line}: {e.message}" for e in schema.error_log]
    if findings:
        return findings
    top = [_read(element) for element in root.findall("Terminals/Terminal")]
    findings += _repeated([terminal.name for terminal in top], "terminal", FILE)
    for terminal in top:
        for path, inner in terminal.walk():
            findings += _check(path, inner, variables)
    if root.find("GraphicalRepresentation/Icon") is not None and not {f"{FOLDER}/icon.png"} & {
        *archive.members
    }:
        findings.append(f"{FILE} has an Icon, and the archive has no {FOLDER}/icon.png.")
    return findings


def _check(path: str, terminal: Terminal, variables: set[str]) -> list[str]:
    where = f"the terminal `{path}`"
    findings = []
    if terminal.rule not in (*RULES, "none") and "." not in terminal.rule:
        findings.append(
            f"{where} has the matching rule {terminal.rule!r}, which FMI does not define."
        )
    pairs = [(m.name, m.variable) for m in terminal.members]
    pairs += [m.incoming for m in terminal.members if m.incoming]
    findings += [
        f"{where} has a member `{variable}`, which is no variable of the FMU."
        for _, variable in pairs
        if variable not in variables
    ]
    if terminal.rule in ("plug", "bus"):
        unnamed = [variable for name, variable in pairs if not name]
        findings += [f"{where} has the member `{v}` without a memberName." for v in unnamed]
    findings += _repeated([name for name, _ in pairs if name], "member", where)
    return findings + _repeated([t.name for t in terminal.terminals], "terminal", where)


def _repeated(names: list[str], what: str, where: str) -> list[str]:
    return [
        f"{where} has several {what}s `{n}`." for n, count in Counter(names).items() if count > 1
    ]


def _parse(archive: Archive) -> Any:
    data = read_member(archive, FILE)
    if data is None:
        return None
    from lxml import etree

    text, _ = read_text(Path(f"{archive.path}/{FILE}"), data)
    try:
        parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True)
        return etree.fromstring(text, parser)
    except etree.XMLSyntaxError as error:
        raise FmuError(f"`{FILE}` in `{archive.path}` cannot be read: {error}.") from error


def _read(element: Any) -> Terminal:
    members = [
        Member(m.get("memberName", ""), m.get("variableName", ""), m.get("variableKind", "signal"))
        for m in element.findall("TerminalMemberVariable")
    ]
    members += [
        Member(
            m.get("outStreamMemberName", ""),
            m.get("outStreamVariableName", ""),
            "stream",
            (m.get("inStreamMemberName", ""), m.get("inStreamVariableName", "")),
        )
        for m in element.findall("TerminalStreamMemberVariable")
    ]
    return Terminal(
        element.get("name", ""),
        element.get("matchingRule", ""),
        tuple(members),
        element.get("terminalKind", ""),
        element.get("description", ""),
        tuple(_read(inner) for inner in element.findall("Terminal")),
    )


@lru_cache(maxsize=1)
def _schema() -> Any:
    import fmpy
    from lxml import etree

    folder = Path(fmpy.__file__).parent / "schema" / "fmi3"
    return etree.XMLSchema(file=str(folder / "fmi3TerminalsAndIcons.xsd"))
