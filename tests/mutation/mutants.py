"""Mutants of the C and Python sources: where the fixed operators apply, and which are drawn.

A mutant is one changed place in one file. Each place has a key made of its file, function, line
of text, operator and count; the committed seed and the key give its rank, and the lowest ranks of
an area are drawn. So a draw changes only where the source changes, and no one chooses.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SEED = "biella 19"

AREAS: dict[str, tuple[int, tuple[str, ...]]] = {
    "engine": (
        60,
        (
            "scheduler/engine/engine.c",
            "scheduler/engine/guard.c",
            "scheduler/engine/strings.c",
            "scheduler/engine/events/*.c",
            "scheduler/engine/solvers/*.c",
        ),
    ),
    "plan loader": (35, ("scheduler/engine/plan.c", "scheduler/engine/registry.c")),
    "coupling": (35, ("scheduler/engine/couplings/*.c", "scheduler/compile/coupling/*.py")),
    "real-time loop": (
        40,
        ("scheduler/realtime/loop/*.[cp]*", "scheduler/realtime/_*.py"),
    ),
    "device links": (40, ("scheduler/devices/*.[cp]*", "scheduler/devices/*/*.[cp]*")),
    "FMI": (
        40,
        ("fmu/exporter/interface/*.c", "fmu/importer/host/*.c", "fmu/importer/_*.py"),
    ),
    "recorder": (20, ("scheduler/results/_recorder.py", "scheduler/results/_result_file.py")),
    "replay": (15, ("scheduler/realtime/log/*.py", "scheduler/devices/virtual/_recording.py")),
    "safety": (15, ("scheduler/binding/_*.py", "scheduler/devices/device.c")),
}
"""Of each area: how many mutants are drawn, and the files that they are drawn from."""

SWAPS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "&&": "||",
    "||": "&&",
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "+=": "-=",
    "-=": "+=",
}


@dataclass(frozen=True)
class Mutant:
    """One changed place.

    Attributes
    ----------
    path, line
        Where, from the root of the checkout; lines count from 1.
    start, end, replacement
        The characters of the file that are replaced, and by what.
    operator
        The name of the operator.
    function
        The function that the place is in; empty at module level.
    key
        What names the mutant in results and in the list of equivalent ones.
    """

    path: str
    line: int
    start: int
    end: int
    replacement: str
    operator: str
    function: str
    key: str

    def apply(self, text: str) -> str:
        """Return the source with this change."""
        return text[: self.start] + self.replacement + text[self.end :]

    def describe(self, text: str) -> str:
        """Return the changed line before and after."""
        first = text.rfind("\n", 0, self.start) + 1
        last = text.find("\n", self.end)
        before, after = text[first:last], self.apply(text)
        after = after[first : after.find("\n", self.start + len(self.replacement))]
        return f"{' '.join(before.split())}  →  {' '.join(after.split()) or '(deleted)'}"


def draw(root: Path, area: str) -> list[Mutant]:
    """Return all mutants of an area, in the order in which they are drawn."""
    paths = sorted({path for pattern in AREAS[area][1] for path in root.glob(pattern)})
    mutants = [
        mutant
        for path in paths
        if path.suffix in (".c", ".py") and path.name != "__init__.py"
        for mutant in find_mutants(path.relative_to(root).as_posix(), path.read_text("utf-8"))
    ]
    return sorted(mutants, key=_rank)


def find_mutants(path: str, text: str) -> list[Mutant]:
    """Return every place of one source where an operator applies."""
    places = _places_in_c(text) if path.endswith(".c") else _places_in_python(text)
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    counts: Counter[str] = Counter()
    mutants = []
    for start, end, replacement, operator, function in sorted(set(places)):
        number = text.count("\n", 0, start)
        name = f"{path}:{function}: {' '.join(lines[number].split())} [{operator}]"
        counts[name] += 1
        key = name if counts[name] == 1 else f"{name} #{counts[name]}"
        mutants.append(Mutant(path, number + 1, start, end, replacement, operator, function, key))
    return mutants


def _rank(mutant: Mutant) -> str:
    return hashlib.sha256(f"{SEED}\n{mutant.key}".encode()).hexdigest()


Place = tuple[int, int, str, str, str]
"""Start, end, replacement, operator, function."""

_TOKEN = re.compile(
    r"""(?P<skip>//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\#(?:[^\n\\]|\\.|\\\n)*)
    |(?P<number>0[xX][\da-fA-F]+[uUlL]*|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[uUlLfF]*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[^\s\w])""",
    re.VERBOSE | re.DOTALL,
)
_TYPE = re.compile(
    r"^(?:const|static|struct|enum|union|unsigned|signed|void|char|int|long|short|float|double|bool"
    r"|size_t|FILE|\w+_t|bl_\w+|mb_\w+|fmi[23]\w+|sizeof|extern|volatile|register)$"
)
_STATEMENT = re.compile(
    r"^[ \t]+(?P<text>[A-Za-z_*(][^;{}\n]*;)[ \t]*(?://[^\n]*|/\*[^\n]*)?$", re.M
)
_DECLARATION = re.compile(r"^(?:[A-Za-z_]\w*\s+)+\**\s*[A-Za-z_]\w*\s*(?:[=;,\[]|\()")
_KEPT = ("return", "goto", "case", "default", "else", "do", "for", "while", "if", "typedef")


def _places_in_c(text: str) -> Iterator[Place]:
    tokens = [
        (match.lastgroup, match.group(), match.start())
        for match in _TOKEN.finditer(text)
        if match.lastgroup != "skip"
    ]
    hidden = [
        (match.start(), match.end()) for match in _TOKEN.finditer(text) if match.lastgroup == "skip"
    ]
    depth, function, bodies = 0, "", []
    for index, (kind, token, at) in enumerate(tokens):
        before = tokens[index - 1] if index else ("sign", ";", 0)
        after = tokens[index + 1] if index + 1 < len(tokens) else ("sign", ";", at)
        if token == "{":
            if depth == 0 and before[1] == ")":
                function = _function_before(tokens, index)
                bodies.append((at, function))
            depth += 1
        elif token == "}":
            depth -= 1
            if depth == 0:
                bodies.append((at, ""))
                function = ""
        if not function:
            continue
        end = at + len(token)
        if kind == "number" and re.fullmatch(r"\d+", token) and before[1] != "[":
            yield at, end, "1" if token == "0" else str(int(token) + 1), "constant", function
        elif token in SWAPS and _is_binary(before, after, token):
            yield at, end, SWAPS[token], f"{token} to {SWAPS[token]}", function
        elif token == "if" and after[1] == "(":
            closed = _closing(tokens, index + 1)
            inside = after[2] + 1, tokens[closed][2]
            yield *inside, f"!({text[slice(*inside)]})", "negate", function
        elif token == "return" and after[1] not in (";", "0", "false", "NULL", "BL_OK"):
            stop = next(i for i in range(index, len(tokens)) if tokens[i][1] == ";")
            yield after[2], tokens[stop][2], "0", "return 0", function
    for match in _STATEMENT.finditer(text):
        statement = match["text"]
        function = next((name for at, name in reversed(bodies) if at < match.start()), "")
        first = re.match(r"\w*", statement)
        if (
            not function
            or (first and first.group() in _KEPT)
            or _DECLARATION.match(statement)
            or _TYPE.match(first.group() if first else "")
            or any(start <= match.start("text") < end for start, end in hidden)
        ):
            continue
        if previous_token(text, match.start("text")) in ";{}:":
            yield match.start("text"), match.end("text"), ";", "delete", function


def previous_token(text: str, at: int) -> str:
    """Return the last character before `at` that is not space or in a comment."""
    before = re.sub(r"/\*.*?\*/|//[^\n]*", "", text[max(0, at - 2000) : at], flags=re.DOTALL)
    return before.rstrip()[-1:] or ";"


def _function_before(tokens: list[tuple[str | None, str, int]], brace: int) -> str:
    depth = 0
    for index in range(brace - 1, 0, -1):
        if tokens[index][1] == ")":
            depth += 1
        elif tokens[index][1] == "(":
            depth -= 1
            if depth == 0:
                return tokens[index - 1][1]
    return ""


def _closing(tokens: list[tuple[str | None, str, int]], opening: int) -> int:
    depth = 0
    for index in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[index][1], 0)
        if depth == 0:
            return index
    raise ValueError("unbalanced parentheses")


def _is_binary(
    before: tuple[str | None, str, int], after: tuple[str | None, str, int], token: str
) -> bool:
    """Whether an operator stands between two values, and is no pointer, sign or cast."""
    value = before[0] in ("number", "name") or before[1] in (")", "]")
    if not value or _TYPE.match(before[1]) or before[1] in ("return", "case"):
        return False
    if token == "*":
        # `bl_x *y` and `(double *)x` declare and cast; two names alone may do so.
        return after[1] != ")" and not (before[0] == "name" and before[1].endswith("_t"))
    return True


_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
_OPPOSITES = {"is": "is not", "is not": "is", "in": "not in", "not in": "in"}


def _places_in_python(text: str) -> Iterator[Place]:
    tree = ast.parse(text)
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    lines = text.split("\n")

    def offset(number: int, column: int) -> int:
        # Columns of `ast` count bytes.
        return starts[number - 1] + len(lines[number - 1].encode()[:column].decode())

    def span(node: ast.AST) -> tuple[int, int]:
        return (
            offset(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            offset(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def between(left: ast.AST, right: ast.AST, words: str) -> tuple[int, int] | None:
        start, end = span(left)[1], span(right)[0]
        match = re.search(words, text[start:end])
        return None if match is None else (start + match.start(), start + match.end())

    def visit(node: ast.AST, function: str) -> Iterator[Place]:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_comment"):
                continue
            children = value if isinstance(value, list) else [value]
            for child in children:
                if isinstance(child, ast.AST):
                    inside = function
                    if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                        inside = f"{function}.{child.name}" if function else child.name
                    elif isinstance(child, ast.ClassDef):
                        inside = child.name
                    yield from mutate(child, inside)
                    yield from visit(child, inside)

    def mutate(node: ast.AST, function: str) -> Iterator[Place]:
        if not function:
            return
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            old = _COMPARISONS[type(node.ops[0])]
            new = SWAPS.get(old) or _OPPOSITES[old]
            place = between(node.left, node.comparators[0], re.escape(old))
            if place:
                yield *place, new, f"{old} to {new}", function
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            place = between(node.values[0], node.values[1], rf"\b{old}\b")
            if place and len(node.values) == 2:
                yield *place, new, f"{old} to {new}", function
        elif isinstance(node, ast.BinOp):
            signs = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
            sign = signs.get(type(node.op))
            words = isinstance(node.left, ast.JoinedStr | ast.Constant) and not isinstance(
                getattr(node.left, "value", 0), int | float
            )
            if sign and not words:
                place = between(node.left, node.right, re.escape(sign))
                if place:
                    yield *place, SWAPS[sign], f"{sign} to {SWAPS[sign]}", function
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            if node.value is True or node.value is False:
                yield *span(node), str(not node.value), "boolean", function
            else:
                yield *span(node), str(node.value + 1), "constant", function
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            place = span(node.test)
            yield *place, f"not ({text[slice(*place)]})", "negate", function
        elif isinstance(node, ast.Return) and node.value is not None:
            if not (isinstance(node.value, ast.Constant) and node.value.value is None):
                yield *span(node.value), "None", "return None", function
        elif _can_be_deleted(node):
            yield *span(node), "pass", "delete", function

    # Messages are not behavior that tests should repeat word by word.
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            node.values = []
    yield from visit(tree, "")


def _can_be_deleted(node: ast.AST) -> bool:
    """Whether a statement can go without an undefined name: calls, changes of objects, raise."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await)
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    return isinstance(node, ast.AugAssign | ast.Raise | ast.Delete | ast.Continue)
