"""Where the blocks of a diagram are in its Python file.

Only plain code can be changed: statements in the body of ``diagram()`` itself, each of which runs
once, with names and numbers that are written out. Everything else is found with the reason why it
cannot be changed.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from ...blocks.core._block import AbstractBlock
from ...scheduler.compile.diagram._boundary import Inport
from ...scheduler.compile.diagram._diagram import Diagram

_ELSEWHERE = "it is not created by an add(…) with a written name in the body of diagram()"


@dataclass
class Level:
    """A diagram in the file: the variable that has it, and the prefix of paths of its blocks."""

    variable: str
    diagram: Diagram
    prefix: str = ""


@dataclass
class Added:
    """A block in the file.

    Attributes
    ----------
    call
        ``d.add(…)``, or ``d.input(…)``.
    made
        The call with its arguments: of its class, or `call` itself for an input.
    reason
        Why it cannot be changed; empty if it can.
    made_reason
        Why its arguments cannot be changed.
    variable
        The variable that has it.
    statement
        The statement that has the call.
    made_statement
        The statement that has `made`, if that is another one.
    """

    path: str
    level: Level
    block: AbstractBlock
    call: cst.Call
    statement: cst.SimpleStatementLine | None
    made: cst.Call | None = None
    reason: str = ""
    made_reason: str = ""
    variable: str = ""
    made_statement: cst.SimpleStatementLine | None = None


@dataclass
class Wire:
    """A connection in the file, or an output of a diagram: what has to go to remove it.

    Attributes
    ----------
    source, target
        Paths of ports; the target of an output of a diagram is empty.
    call, index
        The call, and the number of its argument.
    key
        In ``inputs={…}``: the number of the entry; -1 elsewhere.
    """

    source: str
    target: str
    call: cst.Call
    index: int
    statement: cst.SimpleStatementLine
    key: int = -1


@dataclass
class Source:
    """A parsed file.

    Attributes
    ----------
    reason
        Why nothing of the file can be changed; empty if something can.
    """

    module: cst.Module
    reason: str = ""
    function: cst.FunctionDef | None = None
    levels: dict[str, Level] = field(default_factory=dict)
    blocks: dict[str, Added] = field(default_factory=dict)
    wires: list[Wire] = field(default_factory=list)
    used: set[cst.CSTNode] = field(default_factory=set)
    """Names and texts that stand for ends of the wires above."""
    lines: Mapping[cst.CSTNode, Any] = field(default_factory=dict)
    parents: Mapping[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)

    def line(self, node: cst.CSTNode) -> int:
        """Return the line of a node."""
        return int(self.lines[node].start.line)

    def explain(self, path: str) -> str:
        """Return why a block cannot be changed; an empty text if it can."""
        if self.reason:
            return self.reason
        return self.blocks[path].reason if path in self.blocks else _ELSEWHERE


def bind_arguments(added: Added) -> dict[str, int]:
    """Return the number of each argument of the call that makes a block, by parameter name."""
    assert added.made is not None
    owner = Diagram.input if isinstance(added.block, Inport) else type(added.block).__init__
    names = [
        item.name
        for item in list(inspect.signature(owner).parameters.values())[1:]
        if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)
    ]
    bound = {}
    for index, arg in enumerate(added.made.args):
        if arg.keyword is not None:
            bound[arg.keyword.value] = index
        elif index < len(names):
            bound[names[index]] = index
    return bound


def takes_argument(added: Added, name: str) -> bool:
    """Return whether a block can be made with an argument of this name."""
    owner = Diagram.input if isinstance(added.block, Inport) else type(added.block).__init__
    found = inspect.signature(owner).parameters.get(name)
    return found is not None and found.kind in (found.POSITIONAL_OR_KEYWORD, found.KEYWORD_ONLY)


def read_number(node: cst.BaseExpression) -> Any:
    """Return the numbers that are written out in an expression; None if it is another one."""
    if not _is_literal(node):
        return None
    return ast.literal_eval(cst.Module([]).code_for_node(node))


def _is_literal(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Integer | cst.Float):
        return True
    if isinstance(node, cst.UnaryOperation):
        signs = isinstance(node.operator, cst.Minus | cst.Plus)
        return signs and isinstance(node.expression, cst.Integer | cst.Float)
    if isinstance(node, cst.List | cst.Tuple):
        return all(isinstance(e, cst.Element) and _is_literal(e.value) for e in node.elements)
    return False


def read_text(node: cst.CSTNode | None) -> str | None:
    """Return a text that is written out; None if it is another expression."""
    if isinstance(node, cst.SimpleString):
        value = node.evaluated_value
        return value if isinstance(value, str) else None
    return None


def find_name(call: cst.Call) -> cst.BaseExpression | None:
    """Return the argument of ``add`` or ``input`` that is the name; None if none is given."""
    assert isinstance(call.func, cst.Attribute)
    place = 0 if call.func.attr.value == "input" else 1
    for index, arg in enumerate(call.args):
        if (arg.keyword is None and index == place) or (
            arg.keyword and arg.keyword.value == "name"
        ):
            return arg.value
    return None


def walk(node: cst.CSTNode | None) -> Iterator[cst.CSTNode]:
    """Yield a node and all below it; what is evaluated first comes first."""
    if node is None:
        return
    for child in node.children:
        yield from walk(child)
    yield node
