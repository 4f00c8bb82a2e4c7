"""Reads ``diagram()`` of a file: which call makes which block, and what is connected where."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst
from libcst import metadata

from ...blocks.core._block import AbstractBlock
from ...errors import BiellaError
from ...scheduler.compile.diagram._boundary import Inport
from ...scheduler.compile.diagram._diagram import Diagram
from ...scheduler.compile.diagram._subsystem import Subsystem
from ._source import Added, Level, Source, Wire, find_name, read_text, walk
from ._structure import list_blocks

_COMPOUND = {
    cst.For: "in a `for` loop",
    cst.While: "in a `while` loop",
    cst.If: "in an `if`",
    cst.With: "in a `with`",
    cst.Try: "in a `try`",
    cst.TryStar: "in a `try`",
    cst.Match: "in a `match`",
    cst.FunctionDef: "in a function inside of diagram()",
    cst.ClassDef: "in a class",
}
_BINDING = (
    cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.CompFor, cst.Del
)  # fmt: skip
_REPEATED = (cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp)
_CONDITIONAL = (cst.IfExp, cst.BooleanOperation)


def read_source(text: bytes, diagram: Diagram) -> Source:
    """Find the blocks of a diagram in the text that makes it."""
    wrapper = metadata.MetadataWrapper(cst.parse_module(text))
    source = Source(wrapper.module)
    source.lines = wrapper.resolve(metadata.PositionProvider)
    source.parents = wrapper.resolve(metadata.ParentNodeProvider)
    functions = [
        node
        for node in source.module.body
        if isinstance(node, cst.FunctionDef) and node.name.value == "diagram"
    ]
    if len(functions) != 1 or not isinstance(functions[0].body, cst.IndentedBlock):
        source.reason = "the file has no plain `def diagram():` that makes it"
        return source
    if functions[0].decorators or functions[0].asynchronous:
        source.reason = "diagram() has a decorator"
        return source
    source.function = functions[0]
    _Reader(source, diagram).read()
    return source


class _Reader:
    def __init__(self, source: Source, diagram: Diagram) -> None:
        assert source.function is not None
        self.source, self.diagram = source, diagram
        self.body = source.function.body.body
        self.aliases = _find_aliases(source.module)
        self.assigned = _count_assignments(source.function)
        self.made: dict[str, tuple[cst.BaseExpression, cst.SimpleStatementLine]] = {}
        self.variables: dict[str, Added] = {}
        self.runtime = {path: block for path, _, block in list_blocks(diagram)}
        self.by_call: dict[cst.CSTNode, Added] = {}

    def read(self) -> None:
        source = self.source
        for statement in self.body:
            if isinstance(statement, cst.SimpleStatementLine):
                for target, value in _assignments(statement):
                    self.made[target] = (value, statement)
        root = self._find_root()
        if root is None:
            return
        source.levels[root] = Level(root, self.diagram)
        # Subsystems first: a call of theirs may stand before or after that of their surroundings.
        pending = True
        while pending:
            pending = False
            for call, _ in self._calls():
                pending = self._read_level(call) or pending
        taken: dict[str, set[str]] = {}
        for call, reason in self._calls():
            self._read_add(call, reason, taken)
        for call, reason in self._calls():
            if not reason:
                self._read_wires(call)

    def _find_root(self) -> str | None:
        """Return the variable that diagram() returns."""
        last = self.body[-1] if self.body else None
        returned = [node for node in walk(self.source.function) if isinstance(node, cst.Return)]
        value = None
        if isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Return):
            value = last.body[-1].value
        if len(returned) != 1 or not isinstance(value, cst.Name):
            self.source.reason = "diagram() does not end with its only `return` of a variable"
            return None
        name = value.value
        if self.assigned.get(name) != 1 or not self._is_diagram(name):
            self.source.reason = f"`{name}` is not made once by `{name} = Diagram(…)` in diagram()"
            return None
        return name

    def _is_diagram(self, variable: str) -> bool:
        value = self.made.get(variable, (None,))[0]
        return isinstance(value, cst.Call) and self._class_name(value) == "Diagram"

    def _class_name(self, call: cst.Call) -> str:
        """Return the class that a call names, through ``import … as …``."""
        func = call.func
        if isinstance(func, cst.Name):
            return self.aliases.get(func.value, func.value)
        return func.attr.value if isinstance(func, cst.Attribute) else ""

    def _calls(self) -> Iterator[tuple[cst.Call, str]]:
        """Yield the calls of methods of diagrams, inner ones first, and why they are not plain."""
        for statement in self.body:
            reason = _COMPOUND.get(type(statement), "not in a plain statement")
            if isinstance(statement, cst.SimpleStatementLine):
                several = len(statement.body) > 1
                reason = "on a line with several statements" if several else ""
            for node in walk(statement):
                if isinstance(node, cst.Call) and self._level_of(node) is not None:
                    where = reason or self._find_repeated(node, statement)
                    yield node, f"it is {where}, line {self.source.line(node)}" if where else ""

    def _find_repeated(self, node: cst.CSTNode, statement: cst.CSTNode) -> str:
        at = node
        while at is not statement:
            at = self.source.parents[at]
            if isinstance(at, _REPEATED):
                return "in a comprehension"
            if isinstance(at, cst.Lambda):
                return "in a `lambda`"
            if isinstance(at, _CONDITIONAL):
                return "in a conditional expression"
        return ""

    def _level_of(self, call: cst.Call) -> Level | None:
        func = call.func
        if isinstance(func, cst.Attribute) and isinstance(func.value, cst.Name):
            return self.source.levels.get(func.value.value)
        return None

    def _method(self, call: cst.Call) -> str:
        assert isinstance(call.func, cst.Attribute)
        return call.func.attr.value

    def _read_level(self, call: cst.Call) -> bool:
        """Take note of a subsystem whose diagram is made in the same function."""
        level = self._level_of(call)
        if level is None or self._method(call) != "add" or not call.args:
            return False
        block = self._resolve_made(call.args[0].value)[0]
        if block is None or self._class_name(block) != "Subsystem" or not block.args:
            return False
        inner, name = block.args[0].value, read_text(find_name(call))
        if not isinstance(inner, cst.Name) or name is None or inner.value in self.source.levels:
            return False
        made = self.runtime.get(f"{level.prefix}{name}")
        if not self._is_diagram(inner.value) or self.assigned.get(inner.value) != 1:
            return False
        uses = [
            node
            for node in walk(self.source.function)
            if isinstance(node, cst.Call)
            and self._class_name(node) == "Subsystem"
            and node.args
            and isinstance(node.args[0].value, cst.Name)
            and node.args[0].value.value == inner.value
        ]
        if not isinstance(made, Subsystem) or len(uses) != 1:
            return False
        prefix = f"{level.prefix}{name}."
        self.source.levels[inner.value] = Level(inner.value, made.diagram, prefix)
        return True

    def _resolve_made(
        self, value: cst.BaseExpression
    ) -> tuple[cst.Call | None, cst.SimpleStatementLine | None]:
        """Return the call that makes a block, and its statement if that is another one."""
        if isinstance(value, cst.Call):
            return value, None
        if isinstance(value, cst.Name) and self.assigned.get(value.value) == 1:
            found, statement = self.made.get(value.value, (None, None))
            if isinstance(found, cst.Call):
                return found, statement
        return None, None

    def _read_add(self, call: cst.Call, reason: str, taken: dict[str, set[str]]) -> None:
        level = self._level_of(call)
        method = self._method(call)
        if level is None or method not in ("add", "input") or not call.args:
            return
        names = taken.setdefault(level.variable, set())
        given = find_name(call)
        name = read_text(given)
        made, statement = (
            (call, None) if method == "input" else self._resolve_made(call.args[0].value)
        )
        if given is None and made is not None:
            name = _default_name(self._class_name(made), names)
        if name is None:
            return
        names.add(name)
        path = f"{level.prefix}{name}"
        block = self.runtime.get(path)
        if block is None:
            return
        if path in self.source.blocks:
            self.source.blocks[path].reason = "it is created in several places"
            return
        found = Added(path, level, block, call, self._statement_of(call), made, reason)
        found.made_statement = statement
        found.made_reason = reason or self._check_made(made, block, method)
        self.source.blocks[path] = self.by_call[call] = found
        found.variable = self._variable_of(call)
        if found.variable:
            self.variables[found.variable] = found
        elif statement is not None and isinstance(call.args[0].value, cst.Name):
            found.variable = call.args[0].value.value
            self.variables[found.variable] = found
            self.source.used.add(call.args[0].value)

    def _check_made(self, made: cst.Call | None, block: AbstractBlock, method: str) -> str:
        if method == "input":
            return "" if isinstance(block, Inport) else "it is not an input"
        if made is None:
            return "its arguments are not in diagram()"
        own = type(block).__name__
        called = self._class_name(made)
        if called != own:
            return f"it is made by `{called or '…'}(…)`, not by `{own}(…)`"
        if any(arg.star for arg in made.args):
            return "its arguments are unpacked from a variable"
        return ""

    def _variable_of(self, call: cst.Call) -> str:
        """Return the variable that a call is assigned to, if it is assigned once."""
        parent = self.source.parents[call]
        if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
            target = parent.targets[0].target
            if isinstance(target, cst.Name) and self.assigned.get(target.value) == 1:
                return target.value
        return ""

    def _statement_of(self, node: cst.CSTNode) -> cst.SimpleStatementLine | None:
        at: cst.CSTNode | None = node
        while at is not None and not isinstance(at, cst.SimpleStatementLine):
            at = self.source.parents.get(at)
        return at

    def _read_wires(self, call: cst.Call) -> None:
        level, method, statement = (
            self._level_of(call),
            self._method(call),
            self._statement_of(call),
        )
        if level is None or statement is None or any(arg.star for arg in call.args):
            return
        if method == "connect" and call.args:
            source = self._end(call.args[0].value, level, "output")
            for index, arg in enumerate(call.args[1:], 1):
                target = self._end(arg.value, level, "input")
                self._wire(source, target, call, index, statement)
        elif method == "output" and len(call.args) == 2:
            self._wire(self._end(call.args[1].value, level, "output"), "", call, 1, statement)
        elif method == "add":
            owner = self.by_call.get(call)
            for index, arg in enumerate(call.args if owner else ()):
                keyword = arg.keyword.value if arg.keyword else ""
                if keyword == "inputs":
                    self._read_inputs(arg.value, owner, call, index, statement)
                elif keyword and keyword not in ("name", "period", "offset"):
                    assert owner is not None
                    source = self._end(arg.value, level, "output")
                    self._wire(source, f"{owner.path}.{keyword}", call, index, statement)

    def _read_inputs(
        self,
        value: cst.BaseExpression,
        owner: Added | None,
        call: cst.Call,
        index: int,
        statement: cst.SimpleStatementLine,
    ) -> None:
        assert owner is not None
        level = owner.level
        if isinstance(value, cst.Dict):
            for key, item in enumerate(value.elements):
                name = read_text(item.key) if isinstance(item, cst.DictElement) else None
                if name is not None:
                    source = self._end(item.value, level, "output")
                    self._wire(source, f"{owner.path}.{name}", call, index, statement, key)
        else:
            target = self._port(owner, level, "", "input")
            self._wire(self._end(value, level, "output"), target, call, index, statement)

    def _wire(
        self,
        source: str | None,
        target: str | None,
        call: cst.Call,
        index: int,
        statement: cst.SimpleStatementLine,
        key: int = -1,
    ) -> None:
        if source is not None and target is not None:
            self.source.wires.append(Wire(source, target, call, index, statement, key))

    def _end(self, value: cst.BaseExpression, level: Level, side: str) -> str | None:
        """Return the path of the port that an expression names; None if it is not plain."""
        port, node = "", value
        own = self._block_of(node, level)
        if own is None and isinstance(node, cst.Subscript):
            text = read_text(_subscript(node))
            if text is None:
                return None
            port, node = text, node.value
            own = self._block_of(node, level)
        if own is not None:
            self._note_used(node)
            return self._port(own, level, port, side)
        text = read_text(value)
        if text is None:
            return None
        name, _, port = (
            (text, "", "") if f"{level.prefix}{text}" in self.runtime else text.partition(".")
        )
        block = self.source.blocks.get(f"{level.prefix}{name}")
        if block is None:
            return None
        self.source.used.add(value)
        return self._port(block, level, port, side)

    def _note_used(self, node: cst.CSTNode) -> None:
        self.source.used.add(node)
        if isinstance(node, cst.Subscript):  # d["name"]
            text = _subscript(node)
            if text is not None:
                self.source.used.add(text)

    def _block_of(self, node: cst.BaseExpression, level: Level) -> Added | None:
        if isinstance(node, cst.Name):
            return self.variables.get(node.value)
        if isinstance(node, cst.Call):
            return self.by_call.get(node)
        if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name):
            text = read_text(_subscript(node))
            if node.value.value == level.variable and text is not None:
                return self.source.blocks.get(f"{level.prefix}{text}")
        return None

    def _port(self, owner: Added, level: Level, port: str, side: str) -> str | None:
        find = level.diagram.find_output if side == "output" else level.diagram.find_input
        name = owner.path.removeprefix(level.prefix)
        try:
            return f"{owner.path}.{find(f'{name}.{port}' if port else name).name}"
        except BiellaError:  # the end belongs to another diagram
            return None


def _default_name(kind: str, taken: set[str]) -> str | None:
    """Return the name that `Diagram.add` gives."""
    base = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()
    name, n = base, 1
    while name in taken:
        n += 1
        name = f"{base}_{n}"
    return name or None


def _assignments(statement: cst.SimpleStatementLine) -> Iterator[tuple[str, cst.BaseExpression]]:
    for small in statement.body:
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            target = small.targets[0].target
            if isinstance(target, cst.Name):
                yield target.value, small.value


def _find_aliases(module: cst.Module) -> dict[str, str]:
    found = {}
    for node in walk(module):
        if isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
            for item in node.names:
                if item.asname is not None and isinstance(item.asname.name, cst.Name):
                    found[item.asname.name.value] = str(item.evaluated_name)
    return found


def _count_assignments(function: cst.FunctionDef) -> dict[str, int]:
    """Return how often each name is bound in a function."""
    counts: dict[str, int] = {}
    for node in walk(function):
        targets: list[cst.CSTNode] = []
        if isinstance(node, _BINDING):
            targets = [node.target]
        elif isinstance(node, cst.AsName | cst.Param):
            targets = [node.name]
        elif isinstance(node, cst.Global | cst.Nonlocal):
            targets = [item.name for item in node.names]
        for target in targets:
            for part in walk(target):
                if isinstance(part, cst.Name):
                    counts[part.value] = counts.get(part.value, 0) + 1
    return counts


def _subscript(node: cst.Subscript) -> cst.BaseExpression | None:
    if len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        return node.slice[0].slice.value
    return None
