"""Reading the project's own C headers: constants, structures and exported functions.

A strict reader of the subset of C that these headers use; what it does not understand it refuses
with file and line. Stands alone on the standard library, like ``build.py``, which loads it.

- ``enum { A, B = A + 2 };``, also named or with ``typedef``, and ``#define NAME number``
- ``typedef struct { … } name;`` and ``struct name { … };``
- ``typedef struct name name;`` (an opaque handle) and ``typedef int (*name)(…);``
- prototypes that begin with ``BL_API``

All other declarations are passed over, also ``typedef int name(…);``. Structures are read only in
headers that export functions.

Of a ``.c`` file only ``BL_SHARED enum { … };`` is read: modes and fields of records that are
private to that file in C, and that Python writes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

EXPORT = "BL_API"
SHARED = "BL_SHARED"
_LONG_SCALARS: dict[tuple[str, ...], str] = {
    ("unsigned", "char"): "uint8_t",
    ("unsigned", "int"): "uint32_t",
    ("_Atomic", "double"): "atomic_double",
}

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)((?:[^\n\\]|\\.|\\\n)*)", re.MULTILINE)
_NUMBER_MACRO = re.compile(r"\s*([A-Za-z_]\w*)\s+\(?(-?\d+\.?\d*(?:[eE][-+]?\d+)?)\)?\s*$")
_SHARED_ENUM = re.compile(rf"^{SHARED} (enum \{{[^{{}}]*\}};)", re.MULTILINE)
_TOKEN = re.compile(r'\s*(?:([A-Za-z_]\w*|\d[\w.]*|"(?:[^"\\]|\\.)*"|<<|>>|\.\.\.|\S))')
_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Div: lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.LShift: lambda a, b: a << b,
    ast.RShift: lambda a, b: a >> b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitAnd: lambda a, b: a & b,
}


class HeaderError(ValueError):
    """A declaration that this reader does not understand; begins with ``file:line``."""


@dataclass(frozen=True)
class Type:
    """A type of C: a name with so many ``*``, or a pointer to a function; maybe an array."""

    name: str
    pointers: int = 0
    length: int | None = None
    function: Function | None = None


@dataclass(frozen=True)
class Function:
    """What a function returns, its arguments, and where it is declared: ``file:line``."""

    result: Type
    arguments: tuple[Type, ...]
    place: str = field(compare=False)


@dataclass(frozen=True)
class Enum:
    """Constants that were declared together."""

    file: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Struct:
    """The members of a structure in order, and where it is declared: ``file:line``."""

    name: str
    fields: tuple[tuple[str, Type], ...]
    place: str


@dataclass
class Headers:
    """All that was read, by name, in the order of the files."""

    constants: dict[str, int | float] = field(default_factory=dict)
    enums: list[Enum] = field(default_factory=list)
    structs: dict[str, Struct] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)
    callbacks: dict[str, Function] = field(default_factory=dict)
    aliases: dict[str, Type] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)


def read_headers(package: Path, files: Iterable[Path]) -> Headers:
    """Read headers below `package`, each after those that it includes."""
    found = Headers()
    for file in _sort_by_includes(package, sorted(files)):
        text = (package / file).read_text(encoding="utf-8")
        _Reader(file.as_posix(), text, found).read()
    return found


def read_shared_enums(package: Path, sources: Iterable[Path], found: Headers) -> None:
    """Add the enums that the ``.c`` files below `package` share with Python to `found`."""
    for file in sorted(sources):
        text = (package / file).read_text(encoding="utf-8")
        if SHARED not in text:
            continue
        blank = _COMMENT.sub(_blank, text)
        conditional = _find_conditional_lines(blank, guarded=False)
        matches = {match.start(): match for match in _SHARED_ENUM.finditer(blank)}
        for mark in re.finditer(rf"\b{SHARED}\b", text):
            line = text.count("\n", 0, mark.start()) + 1
            place = f"{file.as_posix()}:{line}"
            if mark.start() not in matches:
                raise HeaderError(f"{place}: {SHARED} stands at the start of `enum {{ … }};`.")
            if line in conditional:
                raise HeaderError(f"{place}: what Python mirrors cannot depend on #if.")
            alone = "\n" * (line - 1) + matches[mark.start()][1]
            _Reader(file.as_posix(), alone, found).read()


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _sort_by_includes(package: Path, files: list[Path]) -> list[Path]:
    known, ordered = {file.as_posix(): file for file in files}, dict[Path, None]()
    visited: set[Path] = set()

    def visit(file: Path) -> None:
        if file in visited:
            return
        visited.add(file)
        text = (package / file).read_text(encoding="utf-8")
        for name in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE):
            if name in known:
                visit(known[name])
        ordered[file] = None

    for file in files:
        visit(file)
    return list(ordered)


class _Reader:
    """Reads one header into `Headers`."""

    def __init__(self, file: str, text: str, found: Headers) -> None:
        self.file, self.found = file, found
        blank = _COMMENT.sub(_blank, text)
        self.conditional = _find_conditional_lines(blank)
        directives = list(_DIRECTIVE.finditer(blank))
        lines = [blank.count("\n", 0, match.start()) + 1 for match in directives]
        blank = _DIRECTIVE.sub(lambda match: "\n" * match[0].count("\n"), blank)
        self.tokens: list[tuple[str, int]] = []
        at, line = 0, 1
        while match := _TOKEN.match(blank, at):
            line += blank.count("\n", at, match.start(1))
            self.tokens.append((match[1], line))
            line += match[1].count("\n")
            at = match.end()
        self.at = 0
        self.exports = any(token == EXPORT for token, _ in self.tokens)
        for match, line in zip(directives, lines, strict=True):
            self._read_directive(match[1], match[2], line)

    def _read_directive(self, word: str, text: str, line: int) -> None:
        if word == "pragma" and text.split("(")[0].strip() == "pack" and self.exports:
            self.refuse("structures that Python mirrors cannot be packed", line)
        number = _NUMBER_MACRO.match(text) if word == "define" else None
        if number is None:
            return
        if line in self.conditional:
            if self.exports:
                self.refuse(f"`{number[1]}`: what Python mirrors cannot depend on #if", line)
            return
        is_whole = re.fullmatch(r"-?\d+", number[2])
        if is_whole and re.match(r"-?0\d", number[2]):
            self.refuse(f"`{number[2]}` is octal in C: write a decimal number", line)
        self._define(number[1], int(number[2]) if is_whole else float(number[2]), line)

    # -- tokens

    @property
    def line(self) -> int:
        return self.tokens[min(self.at, len(self.tokens) - 1)][1] if self.tokens else 1

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at][0] if at < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        if not token:
            self.refuse("the file ends within a declaration")
        self.at += 1
        return token

    def expect(self, *wanted: str) -> None:
        for token in wanted:
            if self.peek() != token:
                self.refuse(f"`{token}` is missing before `{self.peek()}`")
            self.next()

    def refuse(self, why: str, line: int | None = None) -> None:
        raise HeaderError(f"{self.file}:{line or self.line}: {why}.")

    # -- declarations

    def read(self) -> None:
        while self.peek():
            self.read_declaration()

    def read_declaration(self) -> None:
        line, first, second = self.line, self.peek(), self.peek(1)
        if line in self.conditional:
            if self.exports:
                self.refuse("what Python mirrors cannot depend on #if", line)
            self.pass_over()
        elif first == EXPORT:
            self.next()
            self.read_prototype()
        elif first == "enum":
            self.next()
            self.read_enum()
            self.expect(";")
        elif first == "typedef" and second == "enum":
            self.at += 2
            self.read_enum()
            self.found.aliases[self.next()] = Type("int")
            self.expect(";")
        elif first == "typedef" and second == "struct" and self.peek(3) != "{":
            self.read_struct_typedef()
        elif first == "typedef" and second == "struct":
            self.at += 3
            self.read_struct(None)
        elif first == "struct" and self.peek(2) == "{":
            self.at += 1
            self.read_struct(self.next())
        elif first == "typedef":
            self.next()
            self.read_typedef()
        else:
            self.pass_over()

    def pass_over(self) -> None:
        """Skip a declaration that Python does not see: up to ``;``, or the body of a function."""
        while (token := self.next()) != ";":
            if token == EXPORT:
                self.refuse(f"a declaration with {EXPORT} must begin with it")
            if token == "{":
                self.pass_braces()
                if self.peek() not in (";", ","):
                    return

    def pass_braces(self) -> None:
        depth = 1
        while depth:
            token = self.next()
            depth += (token == "{") - (token == "}")

    def read_enum(self) -> None:
        if self.peek() != "{":
            self.next()  # its tag
        self.expect("{")
        names: list[str] = []
        value = -1
        while self.peek() != "}":
            line, name = self.line, self.next()
            if not re.fullmatch(r"[A-Za-z_]\w*", name):
                self.refuse(f"`{name}` is not the name of a constant", line)
            if self.peek() == "=":
                self.next()
                value = self.read_value(",}")
            else:
                value += 1
            if not -(2**31) <= value < 2**31:
                self.refuse(f"`{name}` is {value}, which is not an int", line)
            self._define(name, value, line)
            names.append(name)
            if self.peek() != "}":
                self.expect(",")
        self.expect("}")
        self.found.enums.append(Enum(self.file, tuple(names)))

    def _define(self, name: str, value: int | float, line: int) -> None:
        if self.found.constants.setdefault(name, value) != value:
            self.refuse(f"`{name}` is {value} here and {self.found.constants[name]} before", line)

    def read_value(self, end: str) -> int:
        """Read an expression of whole numbers and constants up to one of the tokens in `end`."""
        line, parts, depth = self.line, list[str](), 0
        while depth or self.peek() not in end:
            token = self.next()
            depth += (token == "(") - (token == ")")
            parts.append(token)
        text = " ".join(parts)
        try:
            return _evaluate(ast.parse(text, mode="eval").body, self.found.constants)
        except (SyntaxError, ValueError, KeyError, ArithmeticError, MemoryError):
            self.refuse(f"`{text}` is not a whole number that can be worked out here", line)
            raise AssertionError from None

    def read_struct_typedef(self) -> None:
        """Read ``typedef struct { … } name;`` or ``typedef struct name name;``."""
        self.at += 2
        if self.peek() == "{":
            self.read_struct(None)
            return
        tag = self.next()
        self.expect(tag, ";")
        self.found.opaque.add(tag)

    def read_struct(self, tag: str | None) -> None:
        line = self.line
        self.expect("{")
        fields: list[tuple[str, Type]] = []
        if self.exports:
            while self.peek() != "}":
                fields += self.read_members()
            self.next()
        else:
            self.pass_braces()
        name = tag or self.next()
        self.expect(";")
        if self.exports:
            known = self.found.structs.setdefault(
                name, Struct(name, tuple(fields), f"{self.file}:{line}")
            )
            if known.fields != tuple(fields):
                self.refuse(f"`{name}` is declared in another way at {known.place}", line)
        elif tag is None:
            self.found.opaque.add(name)

    def read_members(self) -> list[tuple[str, Type]]:
        base = self.read_base()
        found = []
        while True:
            line, (name, kind) = self.line, self.read_declarator(base)
            if not name:
                self.refuse("a member has no name", line)
            if kind.length is not None and kind.length < 1:
                self.refuse(f"`{name}` is an array without a length", line)
            found.append((name, kind))
            if self.peek() == ";":
                self.next()
                return found
            self.expect(",")

    def read_base(self) -> str:
        """Read the name of a type, without its ``*``."""
        words = [self.next()]
        while words[-1] in ("const", "struct", "unsigned", "_Atomic"):
            words.append(self.next())
        kept = tuple(word for word in words if word not in ("const", "struct"))
        name = _LONG_SCALARS.get(kept, kept[0] if len(kept) == 1 else "")
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or name in ("enum", "union", "long", "short"):
            self.refuse(f"`{' '.join(words)}` is a type that Python has no counterpart for")
        if self.peek() == "const":
            self.next()
        return name

    def read_declarator(self, base: str) -> tuple[str, Type]:
        """Read ``*name``, ``name[n]``, ``(*name)(…)``, or only the ``*`` of a nameless argument."""
        pointers = 0
        while self.peek() in ("*", "const"):
            pointers += self.next() == "*"
        if self.peek() == "(":
            self.expect("(", "*")
            name = self.next()
            self.expect(")")
            result, place = self.resolve(Type(base, pointers)), f"{self.file}:{self.line}"
            return name, Type("", function=Function(result, self.read_arguments(), place))
        name = self.next() if re.fullmatch(r"[A-Za-z_]\w*", self.peek()) else ""
        length = None
        if self.peek() == "[":
            self.next()
            length = 0 if self.peek() == "]" else self.read_value("]")
            self.expect("]")
        if self.peek() in ("[", ":"):
            self.refuse(f"`{name}` is an array of arrays or a bit field")
        return name, self.resolve(Type(base, pointers, length))

    def resolve(self, kind: Type) -> Type:
        alias = self.found.aliases.get(kind.name)
        if alias is None:
            return kind
        return Type(alias.name, alias.pointers + kind.pointers, kind.length, alias.function)

    def read_arguments(self) -> tuple[Type, ...]:
        self.expect("(")
        if self.peek() == "void" and self.peek(1) == ")":
            self.at += 2
            return ()
        found = []
        while True:
            if self.peek() == "...":
                found.append(Type(self.next()))
            else:
                _, kind = self.read_declarator(self.read_base())
                # An array, with or without its length, is a pointer here.
                pointers = kind.pointers + (kind.length is not None)
                found.append(Type(kind.name, pointers, None, kind.function))
            if self.next() == ")":
                return tuple(found)

    def read_typedef(self) -> None:
        line, (name, kind) = self.line, self.read_declarator(self.read_base())
        if kind.function is None and self.peek() == "(":  # the type of a function: Python has none
            self.pass_over()
            return
        if kind.length is not None:
            self.refuse(f"`{name}` names an array: write the length at each member", line)
        if kind.function is not None:
            self.found.callbacks[name] = kind.function
        else:
            self.found.aliases[name] = kind
        self.expect(";")

    def read_prototype(self) -> None:
        base = self.read_base()
        pointers = 0
        while self.peek() == "*":
            pointers += self.next() == "*"
        line, name = self.line, self.next()
        result = self.resolve(Type(base, pointers))
        function = Function(result, self.read_arguments(), f"{self.file}:{line}")
        self.expect(";")
        if self.found.functions.setdefault(name, function) != function:
            self.refuse(f"`{name}` is declared in two ways", line)


def _evaluate(node: ast.expr, constants: Mapping[str, int | float]) -> int:
    """Compute an expression as C does with whole numbers."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        value = constants[node.id]
        if isinstance(value, int):
            return value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand, constants)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = _evaluate(node.left, constants), _evaluate(node.right, constants)
        return _OPERATIONS[type(node.op)](left, right)
    raise ValueError


def _find_conditional_lines(text: str, *, guarded: bool = True) -> set[int]:
    """Return the lines inside ``#if``, other than the guard of a whole header."""
    found: set[int] = set()
    first = re.search(r"^[ \t]*#[ \t]*(\w+)", text, re.MULTILINE)
    guards = 1 if guarded and first and first[1] == "ifndef" else 0
    depth = 0
    for number, line in enumerate(text.splitlines(), 1):
        word = re.match(r"[ \t]*#[ \t]*(\w+)", line)
        if word and word[1].startswith("if"):
            depth += 1
        elif word and word[1] == "endif":
            depth -= 1
        elif depth > guards:
            found.add(number)
    return found
