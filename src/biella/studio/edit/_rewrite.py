"""Changes of the text of a diagram: only the nodes that a change is about are written anew."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from ...errors import BiellaError
from ._source import (
    Added,
    Level,
    Source,
    Wire,
    bind_arguments,
    find_name,
    read_number,
    read_text,
    takes_argument,
    walk,
)


class EditError(BiellaError):
    """A change that cannot be written to the file; the message says why."""


@dataclass
class _Plan:
    """What is to be done in one pass over the file."""

    replaced: dict[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)
    dropped: dict[cst.CSTNode, set[int]] = field(default_factory=dict)
    removed: set[cst.CSTNode] = field(default_factory=set)
    appended: list[tuple[cst.CSTNode | None, cst.BaseStatement]] = field(default_factory=list)


class _Pass(cst.CSTTransformer):
    def __init__(self, plan: _Plan, body: cst.BaseSuite) -> None:
        super().__init__()
        self.plan, self.body = plan, body

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        updated = super().on_leave(original_node, updated_node)
        if original_node in self.plan.replaced:
            return self.plan.replaced[original_node]
        if original_node in self.plan.dropped:
            return _drop(updated, self.plan.dropped[original_node])
        if original_node is self.body:
            rebuilt: Any = updated
            return self._rebuild(original_node, rebuilt)
        return updated

    def _rebuild(self, original: Any, updated: cst.IndentedBlock) -> Any:
        """Remove and add statements; comments above a statement that goes stay."""
        body: list[cst.BaseStatement] = []
        kept: list[cst.EmptyLine] = []
        statement: Any
        for before, statement in zip(original.body, updated.body, strict=True):
            now = statement
            new = [made for after, made in self.plan.appended if after is before]
            if before in self.plan.removed:
                lines = getattr(now, "leading_lines", ())
                kept += [line for line in lines if line.comment is not None]
            else:
                if kept:
                    now = now.with_changes(leading_lines=[*kept, *now.leading_lines])
                    kept = []
                body.append(now)
            body += new
        footer = [*kept, *updated.footer]
        return updated.with_changes(body=body, footer=footer)


def _drop(node: Any, numbers: set[int]) -> Any:
    """Remove arguments of a call or entries of a dict; the last one keeps its comma."""
    name = "args" if isinstance(node, cst.Call) else "elements"
    items = getattr(node, name)
    left = [item for n, item in enumerate(items) if n not in numbers]
    if left and len(items) - 1 in numbers:
        last = {"comma": items[-1].comma}
        if name == "args":
            last["whitespace_after_arg"] = items[-1].whitespace_after_arg
        left[-1] = left[-1].with_changes(**last)
    return node.with_changes(**{name: left})


def _apply(source: Source, plan: _Plan) -> bytes:
    assert source.function is not None
    made = source.module.visit(_Pass(plan, source.function.body))
    return made.bytes


# Values.


def explain_value(source: Source, added: Added, name: str, value: Any) -> str:
    """Return why an argument cannot be written, or an empty text.

    `value` is what the argument has led to: a number or nested lists.
    """
    if added.reason or added.made_reason:
        return added.reason or added.made_reason
    if not takes_argument(added, name):
        return f"it is computed: `{type(added.block).__name__}` has no argument `{name}`"
    bound = bind_arguments(added)
    if name not in bound:
        return ""
    assert added.made is not None
    given = added.made.args[bound[name]].value
    written = read_number(given)
    if written is None:
        return f"it is not a plain number: `{_shorten(source, given)}`"
    if _flat(written) != _flat(value):
        return f"`{_shorten(source, given)}` is not its value: it is computed from it"
    return ""


def write_value(source: Source, added: Added, name: str, value: Any) -> bytes:
    """Return the text with another number for an argument of a block."""
    if not all(math.isfinite(each) for each in _flat(value)):
        raise EditError(f"`{added.path}.{name}` is not finite: write it in the file itself.")
    assert added.made is not None
    bound, plan = bind_arguments(added), _Plan()
    if name in bound:
        given = added.made.args[bound[name]].value
        _replace_numbers(given, value, plan)
    else:
        made = cst.parse_expression(_write_number(value, None))
        keyword = cst.Arg(
            made,
            keyword=cst.Name(name),
            equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
        )
        plan.replaced[added.made] = added.made.with_changes(args=_append(added.made.args, keyword))
    return _apply(source, plan)


def _replace_numbers(node: cst.BaseExpression, value: Any, plan: _Plan) -> None:
    """Replace the numbers that differ, and leave the others and all brackets as they are."""
    if isinstance(node, cst.List | cst.Tuple):
        values = list(value) if isinstance(value, Sequence) else [value]
        if len(values) != len(node.elements):
            raise EditError(
                f"there are {len(node.elements)} numbers in the file, not {len(values)}."
            )
        for element, each in zip(node.elements, values, strict=True):
            _replace_numbers(element.value, each, plan)
        return
    (number,) = _flat(value)
    if read_number(node) == number:
        return
    made = cst.parse_expression(_write_number(number, node))
    plan.replaced[node] = made.with_changes(lpar=node.lpar, rpar=node.rpar)


def _write_number(value: Any, before: cst.CSTNode | None) -> str:
    if isinstance(value, Sequence):
        return f"[{', '.join(_write_number(each, before) for each in value)}]"
    number = float(value)
    inner = before.expression if isinstance(before, cst.UnaryOperation) else before
    if isinstance(inner, cst.Integer) and number.is_integer() and abs(number) < 2**53:
        return str(int(number))
    return repr(number)


def _append(args: Sequence[cst.Arg], new: cst.Arg) -> list[cst.Arg]:
    """Return arguments with one more, laid out as those before it."""
    if not args:
        return [new]
    last = args[-1]
    between = (
        args[-2].comma if len(args) > 1 else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    )
    new = new.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    if isinstance(between, cst.Comma) and "#" in cst.Module([]).code_for_node(between):
        between = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    if isinstance(last.comma, cst.Comma):  # on a line of its own
        return [*args, new] if len(args) > 1 else [last.with_changes(comma=between), new]
    nothing = cst.SimpleWhitespace("")
    return [*args[:-1], last.with_changes(comma=between, whitespace_after_arg=nothing), new]


def _flat(value: Any) -> list[float]:
    if isinstance(value, Sequence):
        return [number for each in value for number in _flat(each)]
    return [float(value)]


# Names.


def write_name(source: Source, added: Added, name: str) -> bytes:
    """Return the text with another name of a block, also where wires use it."""
    plan = _Plan()
    given, old = find_name(added.call), added.path.removeprefix(added.level.prefix)
    if given is None:
        text = cst.SimpleString(f"{_find_quote(source)}{name}{_find_quote(source)}")
        first, *rest = added.call.args
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        args = [first.with_changes(comma=comma), cst.Arg(text), *rest]
        if rest:
            args[1] = args[1].with_changes(comma=first.comma)
        plan.replaced[added.call] = added.call.with_changes(args=args)
    else:
        plan.replaced[given] = _requote(given, name)
    for node in find_texts(source, added.level, old):
        rest_of = str(read_text(node))[len(old) :]
        plan.replaced[node] = _requote(node, f"{name}{rest_of}")
    return _apply(source, plan)


def find_texts(source: Source, level: Level, name: str) -> list[cst.SimpleString]:
    """Return the texts that stand for a block, or one of its ports, in calls of its diagram."""
    found: list[cst.SimpleString] = []

    def look(node: cst.CSTNode) -> None:
        text = read_text(node)
        if text is not None and (text == name or text.startswith(f"{name}.")):
            assert isinstance(node, cst.SimpleString)
            found.append(node)

    def is_own(node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Name) and node.value == level.variable

    for node in walk(source.function):
        if isinstance(node, cst.Subscript) and is_own(node.value) and len(node.slice) == 1:
            index = node.slice[0].slice
            look(index.value if isinstance(index, cst.Index) else index)
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
            continue
        if not is_own(node.func.value):
            continue
        method = node.func.attr.value
        for number, arg in enumerate(node.args):
            keyword = arg.keyword.value if arg.keyword else ""
            named = method in ("add", "input", "output", "power_bond") and (
                keyword == "name" or arg.value is (find_name(node) if method != "output" else None)
            )
            if named or (method in ("output", "input") and number == 0):
                continue
            if isinstance(arg.value, cst.Dict):
                for item in arg.value.elements:
                    look(item.value)
            else:
                look(arg.value)
    return found


def _requote(node: cst.BaseExpression, text: str) -> cst.SimpleString:
    assert isinstance(node, cst.SimpleString)
    return node.with_changes(value=f"{node.prefix}{node.quote}{text}{node.quote}")


def _find_quote(source: Source) -> str:
    """Return the quotation mark that the file uses."""
    marks = [node.quote for node in walk(source.module) if isinstance(node, cst.SimpleString)]
    return "'" if marks.count("'") > marks.count('"') else '"'


# Wires and blocks.


def write_connection(source: Source, level: Level, start: str, end: str) -> bytes:
    """Return the text with one more connection, at the end of the diagram."""
    names = (f"{_find_quote(source)}{name}{_find_quote(source)}" for name in (start, end))
    return _write_statement(source, level, f"{level.variable}.connect({', '.join(names)})")


def write_block(
    source: Source, level: Level, kind: str, package: str, arguments: Mapping[str, Any], name: str
) -> bytes:
    """Return the text with one more block, and the import of its class if there is none."""
    quote = _find_quote(source)

    def write(value: Any) -> str:
        if isinstance(value, str):
            return quote + value.replace("\\", "\\\\").replace(quote, f"\\{quote}") + quote
        if isinstance(value, list):
            return f"[{', '.join(map(write, value))}]"
        if isinstance(value, bool) or value is None:
            return repr(value)
        return repr(value) if isinstance(value, int) else _write_number(value, None)

    shown, imported = _find_import(source, kind, package)
    given = ", ".join(f"{key}={write(value)}" for key, value in arguments.items())
    made = f"{level.variable}.add({shown}({given}), {quote}{name}{quote})"
    text = _write_statement(source, level, made)
    if imported:
        return text
    return _write_import(text, kind, package)


def _find_import(source: Source, kind: str, package: str) -> tuple[str, bool]:
    """Return how the file writes a class, and whether that is imported."""
    bound = set()
    for node in source.module.body:
        for part in walk(node):
            if isinstance(part, cst.ImportFrom) and isinstance(part.names, cst.ImportStar):
                module = cst.Module([]).code_for_node(part.module) if part.module else ""
                if module == package:
                    return kind, True
            elif isinstance(part, cst.ImportFrom) and not isinstance(part.names, cst.ImportStar):
                module = cst.Module([]).code_for_node(part.module) if part.module else ""
                for item in part.names:
                    local = item.evaluated_alias or item.evaluated_name
                    bound.add(local)
                    if module == package and item.evaluated_name == kind:
                        return str(local), True
            elif isinstance(part, cst.FunctionDef | cst.ClassDef):
                bound.add(part.name.value)
            elif isinstance(part, cst.AssignTarget) and isinstance(part.target, cst.Name):
                bound.add(part.target.value)
    if kind in bound:
        raise EditError(f"`{kind}` is something else in the file: import the block there first.")
    return kind, False


def _write_import(text: bytes, kind: str, package: str) -> bytes:
    """Add a name to an import of its package, or a new import after the last one."""
    module = cst.parse_module(text)
    last = -1
    for number, statement in enumerate(module.body):
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        small = statement.body[0]
        if isinstance(small, cst.Import | cst.ImportFrom):
            last = number
        if not isinstance(small, cst.ImportFrom) or isinstance(small.names, cst.ImportStar):
            continue
        if small.module is None or module.code_for_node(small.module) != package:
            continue
        names = list(small.names)
        place = next((n for n, i in enumerate(names) if i.evaluated_name > kind), len(names))
        new = cst.ImportAlias(cst.Name(kind))
        if place == len(names):
            between = (
                names[-2].comma
                if len(names) > 1
                else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
            )
            if isinstance(names[-1].comma, cst.Comma):
                between = names[-1].comma if len(names) == 1 else between
            new = new.with_changes(comma=names[-1].comma)
            names[-1] = names[-1].with_changes(comma=between)
        else:
            comma = names[place].comma
            if not isinstance(comma, cst.Comma):
                comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
            new = new.with_changes(comma=names[0].comma if len(names) > 1 else comma)
        names.insert(place, new)
        changed = statement.with_changes(
            body=[small.with_changes(names=names), *statement.body[1:]]
        )
        made: Any = module.deep_replace(statement, changed)
        return bytes(made.bytes)
    line = cst.parse_statement(f"from {package} import {kind}\n")
    if last < 0 and module.body and _is_docstring(module.body[0]):
        last = 0
    body = [*module.body[: last + 1], line, *module.body[last + 1 :]]
    return module.with_changes(body=body).bytes


def _is_docstring(statement: cst.CSTNode) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    small = statement.body[0]
    return isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString)


def _write_statement(source: Source, level: Level, code: str) -> bytes:
    """Add a statement after the last one that is about a diagram, and before it is used."""
    assert source.function is not None
    body = source.function.body.body
    last = None
    for statement in body:
        names = [
            node
            for node in walk(statement)
            if isinstance(node, cst.Name) and node.value == level.variable
        ]
        owners = [source.parents[name] for name in names]
        if any(
            isinstance(owner, cst.Attribute | cst.AssignTarget | cst.Subscript) for owner in owners
        ):
            last = statement
    plan = _Plan()
    plan.appended.append((last, cst.parse_statement(f"{code}\n")))
    return _apply(source, plan)


def remove_wire(source: Source, target: str) -> bytes:
    """Return the text without the connection to an input."""
    found = [wire for wire in source.wires if wire.target == target]
    if len(found) != 1:
        raise EditError(f"the connection to `{target}` is not written plainly in diagram().")
    return _apply(source, _plan_removal(source, found, ()))


def remove_block(source: Source, added: Added) -> bytes:
    """Return the text without a block, its connections, and the outputs made of it."""

    def is_own(path: str) -> bool:
        return path.startswith(f"{added.path}.")

    wires = [wire for wire in source.wires if is_own(wire.source) or is_own(wire.target)]
    return _apply(source, _plan_removal(source, wires, (added,)))


def _plan_removal(source: Source, wires: Iterable[Wire], blocks: Sequence[Added]) -> _Plan:
    plan = _Plan()
    gone: set[cst.CSTNode] = set()

    def remove_statement(statement: cst.SimpleStatementLine) -> None:
        plan.removed.add(statement)
        gone.update(walk(statement))

    for block in blocks:
        parent = source.parents[block.call]
        if isinstance(parent, cst.Expr) or (block.variable and isinstance(parent, cst.Assign)):
            assert block.statement is not None
            remove_statement(block.statement)
        if block.made_statement is not None:
            remove_statement(block.made_statement)
    connects: dict[cst.Call, list[Wire]] = {}
    for wire in wires:
        if wire.call in gone:
            continue
        assert isinstance(wire.call.func, cst.Attribute)
        if wire.call.func.attr.value in ("connect", "output"):
            connects.setdefault(wire.call, []).append(wire)
        elif wire.key >= 0:
            entries = wire.call.args[wire.index].value
            plan.dropped.setdefault(entries, set()).add(wire.key)
            gone.update(walk(entries.elements[wire.key]))  # type: ignore[attr-defined]
        else:
            plan.dropped.setdefault(wire.call, set()).add(wire.index)
            gone.update(walk(wire.call.args[wire.index]))
    for call, own in connects.items():
        numbers = {wire.index for wire in own}
        if len(numbers) < len(call.args) - 1:
            plan.dropped[call] = numbers
            gone.update(part for n in numbers for part in walk(call.args[n]))
        elif isinstance(source.parents[call], cst.Expr):
            remove_statement(own[0].statement)
        else:
            raise EditError(f"line {source.line(call)} uses the connection otherwise.")
    for block in blocks:
        _check_uses(source, block, gone)
    for added in source.blocks.values():
        if added not in blocks and added.call in gone:
            raise EditError(
                f"`{added.path}` is created in the same statement, line "
                f"{source.line(added.call)}: give it a line of its own first."
            )
    return plan


def _check_uses(source: Source, block: Added, gone: set[cst.CSTNode]) -> None:
    """Raise an error if a block is used by what stays."""
    if block.call not in gone:
        raise EditError(
            f"`{block.path}` is used where it is created, line {source.line(block.call)}."
        )
    own = block.path.removeprefix(block.level.prefix)
    left: list[cst.CSTNode] = [*find_texts(source, block.level, own)]
    left += [
        node
        for node in walk(source.function)
        if isinstance(node, cst.Name)
        and block.variable
        and node.value == block.variable
        # Names of arguments and attributes are nodes of the same kind.
        and not _is_label(source, node)
    ]
    for node in left:
        if node not in gone:
            raise EditError(
                f"`{block.path}` is used in line {source.line(node)}, in a way that is not a plain "
                f"connection: change the file itself."
            )


def _is_label(source: Source, node: cst.Name) -> bool:
    parent = source.parents[node]
    if isinstance(parent, cst.Arg):
        return parent.keyword is node
    return isinstance(parent, cst.Attribute) and parent.attr is node


def _shorten(source: Source, node: cst.CSTNode) -> str:
    text = " ".join(source.module.code_for_node(node).split())
    return text if len(text) <= 40 else f"{text[:39]}…"
