"""The contract between Python and C, written from the C sources when the library is built.

Two texts come of it, and neither is committed:

- ``biella/_contract.py``: constants, ``ctypes`` structures and the signatures of all exported
  functions, as the headers declare them;
- ``generated/kernels.h``: the tables of all kernels, which ``registry.c`` includes.

Both carry the same digest, so that a library and a module from different headers are told apart.
Stands alone on the standard library, like ``build.py``, which loads it.
"""

from __future__ import annotations

import hashlib
import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .c_headers import Function, Headers, Type

MODULE = "_contract.py"
"""The generated module, in the package beside the library."""
KERNELS_HEADER = "generated/kernels.h"
"""The generated header, as ``registry.c`` includes it."""

_SCALARS = {
    "char": ("c_char", "bytes"), "bool": ("c_bool", "bool"), "size_t": ("c_size_t", "int"),
    "int": ("c_int", "int"), "atomic_int": ("c_int", "int"), "atomic_llong": ("c_int64", "int"),
    "float": ("c_float", "float"), "double": ("c_double", "float"),
    "atomic_double": ("c_double", "float"),
    **{f"{sign}int{bits}_t": (f"c_{sign}int{bits}", "int")
       for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
_TABLE = re.compile(r"^const bl_kernel (bl_kernels_\w+)\[\] = \{$", re.MULTILINE)
_LIKE_TABLE = re.compile(r"^.*\bbl_kernel\s+\w+\s*\[.*$", re.MULTILINE)
_KERNEL = re.compile(r'\{\s*\.name = "([^"]+)"')


class ContractError(ValueError):
    """Sources that no contract can be written for; the message names file and line."""


@dataclass(frozen=True)
class Contract:
    """The generated texts.

    Attributes
    ----------
    module
        Python: what ctypes needs to know of the library.
    digest
        Of all that `module` says.
    """

    module: str
    digest: str


def write_contract(headers: Headers) -> Contract:
    """Write the Python module for what was read from the headers."""
    writer = _Writer(headers)
    body = writer.write()
    digest = hashlib.sha256(body.encode()).hexdigest()[:16]
    return Contract(_HEAD.format(digest=digest) + body, digest)


_HEAD = '''\
"""What the C library and Python agree on: structures, constants, signatures.

Generated from the headers by ``scheduler/engine/contract.py``; not to be edited.
"""

from __future__ import annotations

from ctypes import (
    CDLL,
    CFUNCTYPE,
    POINTER,
    Array,
    Structure,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int8,
    c_int16,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

DIGEST = "{digest}"
'''

_DECLARE = '''

def declare(library: CDLL) -> None:
    """Give every function of the library its result and its arguments."""
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
'''


class _Writer:
    """Writes the module's text."""

    def __init__(self, headers: Headers) -> None:
        self.headers = headers
        self.lines: list[str] = []
        self.written: set[str] = set()
        self.unfinished: set[str] = set()

    def write(self) -> str:
        grouped: set[str] = set()
        for enum in self.headers.enums:
            self.lines += ["", f"# {enum.file}"]
            self.lines += [f"{name} = {self.headers.constants[name]}" for name in enum.names]
            grouped.update(enum.names)
        macros = {k: v for k, v in self.headers.constants.items() if k not in grouped}
        self.lines += ["", "# macros", *(f"{name} = {value!r}" for name, value in macros.items())]
        for name in self.headers.structs:
            self.write_struct(name)
        functions = {
            name: self.signature(function) for name, function in self.headers.functions.items()
        }
        self.lines += ["", "FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {"]
        self.lines += [f'    "{name}": {text},' for name, text in functions.items()]
        self.lines += ["}"]
        return "\n".join(self.lines) + "\n" + _DECLARE

    def write_struct(self, name: str) -> None:
        """Write a structure after those that it holds or points to."""
        if name in self.written:
            return
        self.written.add(name)
        self.unfinished.add(name)
        struct = self.headers.structs[name]
        fields = [(member, *self.member(kind, struct.place)) for member, kind in struct.fields]
        self.unfinished.remove(name)
        hints = [
            f"    {member}: {hint}" for member, _, hint in fields if not keyword.iskeyword(member)
        ]
        # Without the line: a comment above it would change the digest.
        file = struct.place.rpartition(":")[0]
        self.lines += ["", "", f"class {name}(Structure):", f'    """{file}"""', ""]
        self.lines += [*hints, "", "    _fields_ = ["]
        self.lines += [f'        ("{member}", {kind}),' for member, kind, _ in fields]
        self.lines += ["    ]"]

    def write_callback(self, name: str) -> None:
        if name not in self.written:
            self.written.add(name)
            text = self.function_type(self.headers.callbacks[name])
            self.lines += ["", f"{name} = {text}"]

    def member(self, kind: Type, place: str) -> tuple[str, str]:
        """Return the ctypes type of a member of a structure, and what Python sees of it."""
        text = self.ctype(kind, place)
        scalar = kind.function is None and kind.pointers == 0
        hint = _SCALARS[kind.name][1] if scalar and kind.name in _SCALARS else "Any"
        if scalar and kind.name in self.headers.structs:
            hint = text
        if kind.name == "char" and kind.pointers == 1:
            hint = "bytes | None"
        if kind.length is not None:
            hint = "bytes" if text == "c_char" else f"Array[{text}]" if scalar else "Any"
            text = f"{text} * {kind.length}"
        return text, hint

    def ctype(self, kind: Type, place: str) -> str:
        """Return the ctypes type for one of C, without the length of an array."""
        if kind.function is not None:
            return self.function_type(kind.function)
        name, pointers = kind.name, kind.pointers
        if name in ("void", "char") and pointers:
            text, pointers = ("c_void_p", "c_char_p")[name == "char"], pointers - 1
        elif name in _SCALARS:
            text = _SCALARS[name][0]
        elif name in self.headers.opaque and pointers:
            text, pointers = "c_void_p", pointers - 1
        elif name in self.headers.structs:
            if name in self.unfinished:
                raise ContractError(f"{place}: `{name}` points to itself, use `void *`.")
            self.write_struct(name)
            text = name
        elif name in self.headers.callbacks:
            self.write_callback(name)
            text = name
        else:
            raise ContractError(f"{place}: `{name}` is a type that Python has no counterpart for.")
        return "POINTER(" * pointers + text + ")" * pointers

    def result(self, function: Function) -> str:
        nothing = function.result.name == "void" and not function.result.pointers
        return "None" if nothing else self.ctype(function.result, function.place)

    def arguments(self, function: Function) -> list[str]:
        return [self.ctype(kind, function.place) for kind in function.arguments]

    def function_type(self, function: Function) -> str:
        return f"CFUNCTYPE({', '.join([self.result(function), *self.arguments(function)])})"

    def signature(self, function: Function) -> str:
        return f"({self.result(function)}, [{', '.join(self.arguments(function))}])"


def find_kernel_tables(package: Path, sources: Iterable[Path]) -> list[str]:
    """Return the tables of kernels that the sources define, by name.

    A file with kernels ends with ``const bl_kernel bl_kernels_x[] = {``, and that is all that
    registers them.

    Raises
    ------
    ContractError
        A table is written otherwise, or two tables or kernels have one name.
    """
    tables: dict[str, str] = {}
    kernels: dict[str, str] = {}
    for source in sorted(sources):
        text = (package / source).read_text(encoding="utf-8")
        found = {match.start(): match[1] for match in _TABLE.finditer(text)}
        for match in _LIKE_TABLE.finditer(text):
            place = f"{source.as_posix()}:{text.count(chr(10), 0, match.start()) + 1}"
            if match.start() not in found:
                raise ContractError(
                    f"{place}: a table of kernels begins with "
                    f"`const bl_kernel bl_kernels_name[] = {{`, got `{match[0].strip()}`."
                )
            _note(tables, found[match.start()], place)
            for name in _KERNEL.findall(text, match.start()):
                _note(kernels, name, place)
    return sorted(tables)


def _note(places: dict[str, str], name: str, place: str) -> None:
    if name in places:
        raise ContractError(f"{place}: `{name}` is defined in {places[name]} too.")
    places[name] = place


def write_kernels_header(tables: Iterable[str], digest: str) -> str:
    """Return the text of `KERNELS_HEADER`."""
    tables = list(tables)
    declared = "".join(f"extern const bl_kernel {table}[];\n" for table in tables)
    listed = "".join(f"    {table},\n" for table in tables)
    return (
        "/* Generated by scheduler/engine/contract.py. */\n"
        f'#define BL_CONTRACT "{digest}"\n'
        f"{declared}"
        f"static const bl_kernel *const KERNEL_TABLES[] = {{\n{listed}}};\n"
    )
