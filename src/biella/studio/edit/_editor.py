"""Writes changes of a diagram to its Python file: checked before, whole or not at all.

A change is written to a temporary file first, which is loaded: it replaces the file only if its
diagram differs from the one before by exactly what was asked for.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import libcst as cst
import numpy as np

from ... import blocks as palette
from ...blocks.core._block import NativeBlock
from ...cli._load import load_diagram
from ...errors import BiellaError, DiagramError, name_list, suggest
from ...scheduler.compile.diagram._boundary import Inport
from ...scheduler.compile.diagram._diagram import NAME, Diagram
from ...scheduler.compile.diagram._subsystem import Subsystem
from ...scheduler.results._files import find_target, replacing
from ._reader import read_source
from ._rewrite import (
    EditError,
    explain_value,
    remove_block,
    remove_wire,
    write_block,
    write_connection,
    write_name,
    write_value,
)
from ._source import Added, Level, Source
from ._structure import Structure, describe_difference, list_blocks, read_structure

_MOST_UNDOS = 50
_PACKAGE = "biella.blocks"
_CHANGED = "the file was changed meanwhile: look at it again."


@dataclass(frozen=True)
class _Written:
    before: bytes
    after: bytes
    what: str


class Editor:
    """The file of a diagram, and what can be changed in it.

    Parameters
    ----------
    file
        The file.
    load
        Loads the diagram of a file.
    """

    def __init__(self, file: Path, load: Callable[[Path], Diagram] = load_diagram) -> None:
        self.file = file
        self._load = load
        self._text = b""
        self._diagram: Diagram | None = None
        self._source: Source | None = None
        self._reason = "the file has not been loaded"
        self._undos: list[_Written] = []

    @property
    def undo(self) -> str:
        """What the last change was; empty if there is none that can be undone."""
        return self._undos[-1].what if self._undos else ""

    def take(self, text: bytes, diagram: Diagram | None) -> None:
        """Take the file as it was loaded; without a diagram, nothing can be changed."""
        self._text, self._diagram, self._source = text, diagram, None
        if self._undos and self._undos[-1].after != text:
            self._undos.clear()
        if diagram is None:
            self._reason = "the file has a problem: correct it first"
            return
        try:
            self._source = read_source(text, diagram)
            self._reason = self._source.reason
        except (cst.ParserSyntaxError, UnicodeDecodeError, RecursionError) as error:
            self._reason = f"the file cannot be read: {type(error).__name__}"

    def describe(self) -> dict[str, Any]:
        """Return what can be changed, and why the rest cannot."""
        source, diagram = self._source, self._diagram
        message: dict[str, Any] = {
            "event": "editable",
            "reason": self._reason,
            "undo": self.undo,
            "blocks": {},
            "parameters": {},
            "diagrams": [],
        }
        if source is None or diagram is None or self._reason:
            return message
        message["diagrams"] = [level.prefix for level in source.levels.values()]
        for path, block in _list_blocks(diagram):
            message["blocks"][path] = source.explain(path)
            added = source.blocks.get(path)
            for name, key, value in _list_values(path, block):
                why = explain_value(source, added, name, value) if added else source.explain(path)
                message["parameters"][key] = why
        return message

    def edit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Change the file as a request says; return what was done.

        Raises
        ------
        EditError
            If it is not possible; the file is unchanged.
        """
        kind = request.get("kind")
        kinds: dict[str, Callable[[Mapping[str, Any]], tuple[bytes, Structure, str]]] = {
            "set": self._set,
            "rename": self._rename,
            "delete": self._delete,
            "connect": self._connect,
            "disconnect": self._disconnect,
            "add": self._add,
        }
        if kind == "undo":
            return {"done": self._undo()}
        if kind not in kinds:
            raise EditError(f"`kind` is one of {name_list([*kinds, 'undo'])}, got {kind!r}.")
        if self._source is None or self._diagram is None or self._reason:
            raise EditError(f"the file cannot be changed from here: {self._reason}.")
        try:
            text, wanted, what = kinds[str(kind)](request)
        except (cst.CSTValidationError, cst.ParserSyntaxError) as error:
            raise EditError(f"the change cannot be written: {error}") from error
        self._write(text, self._text, wanted)
        self._undos = [*self._undos[-(_MOST_UNDOS - 1) :], _Written(self._text, text, what)]
        self._text = text
        return {"done": what}

    def _undo(self) -> str:
        if not self._undos:
            raise EditError("there is no change to undo.")
        last = self._undos[-1]
        self._write(last.before, last.after, None)
        self._undos.pop()
        self._text = last.before
        return f"undone: {last.what}"

    def _write(self, text: bytes, expected: bytes, wanted: Structure | None) -> None:
        """Replace the file if it still has the text that is `expected`."""
        target = find_target(self.file)
        if _read(target) != expected:
            raise EditError(_CHANGED)
        with replacing(target) as temporary:
            temporary.write_bytes(text)
            shutil.copymode(target, temporary)
            if wanted is not None:
                self._check(temporary, wanted)
            if _read(target) != expected:
                raise EditError(_CHANGED)

    def _check(self, temporary: Path, wanted: Structure) -> None:
        try:
            found = read_structure(self._load(temporary))
        except BiellaError as error:
            shown = str(error).replace(temporary.name, self.file.name)
            raise EditError(f"the file was not changed, since it would fail: {shown}") from error
        finally:
            with contextlib.suppress(OSError, NotImplementedError, ValueError):
                Path(importlib.util.cache_from_source(str(temporary))).unlink(missing_ok=True)
        difference = describe_difference(wanted, found)
        if difference:
            raise EditError(
                f"the file was not changed, since more than asked for would differ: {difference}."
            )

    # Changes.

    def _find(self, request: Mapping[str, Any], key: str = "path") -> Added:
        source, path = self._source, request.get(key)
        assert source is not None and self._diagram is not None
        known = dict(_list_blocks(self._diagram))
        if not isinstance(path, str) or path not in known:
            raise EditError(f"there is no block {path!r}.{suggest(str(path), known)}")
        why = source.explain(path)
        if why:
            raise EditError(f"`{path}` cannot be changed from here: {why}.")
        return source.blocks[path]

    def _set(self, request: Mapping[str, Any]) -> tuple[bytes, Structure, str]:
        source, path, value = self._source, request.get("path"), _read_value(request.get("value"))
        assert source is not None and self._diagram is not None
        for own, block in _list_blocks(self._diagram):
            for name, key, before in _list_values(own, block):
                if key != path:
                    continue
                added = self._find({"path": own})
                why = explain_value(source, added, name, before)
                if why:
                    raise EditError(f"`{path}` cannot be changed from here: {why}.")
                if np.shape(value) != np.shape(before):
                    raise EditError(f"`{path}` has the shape {np.shape(before)}.")
                text = write_value(source, added, name, value)
                return text, self._with_value(added, name, value), f"{path} = {value}"
        raise EditError(f"there is no parameter {path!r} that is written in the file.")

    def _with_value(self, added: Added, name: str, value: Any) -> Structure:
        wanted = self._structure()
        key = f"{added.path}.{name}"
        shape: tuple[int, ...]
        if isinstance(added.block, Inport):
            default = repr(tuple(value) if isinstance(value, list) else value)
            key, shape, data = added.path, (), default.encode()
        else:
            shape = wanted.values[key][0]
            data = np.asarray(value, dtype=np.float64).reshape(shape).tobytes()
        values = {key: (shape, data)}
        return replace(wanted, values={**wanted.values, **values})

    def _structure(self) -> Structure:
        assert self._diagram is not None
        return read_structure(self._diagram)

    def _rename(self, request: Mapping[str, Any]) -> tuple[bytes, Structure, str]:
        added, name = self._find(request), _read_name(request.get("name"))
        assert self._source is not None
        if name in added.level.diagram.blocks:
            raise EditError(f"the name `{name}` is already used in {added.level.diagram.name!r}.")
        old, new = added.path, f"{added.level.prefix}{name}"

        def move(path: str) -> str:
            return new + path[len(old) :] if path == old or path.startswith(f"{old}.") else path

        was = self._structure()
        wanted = Structure(
            {move(k): v for k, v in was.types.items()},
            {move(k): v for k, v in was.values.items()},
            frozenset(map(move, was.hidden)),
            {move(k): move(v) for k, v in was.wires.items()},
            # An output of the whole diagram may have the name of a block.
            {move(k) if k.startswith(f"{old}.") else k: move(v) for k, v in was.outputs.items()},
            {k: (tuple(map(move, paths)), how) for k, (paths, how) in was.groups.items()},
            {move(k.removesuffix(".")) + "." * bool(k): v for k, v in was.settings.items()},
        )
        return write_name(self._source, added, name), wanted, f"{old} is now {new}"

    def _delete(self, request: Mapping[str, Any]) -> tuple[bytes, Structure, str]:
        added = self._find(request)
        assert self._source is not None
        if isinstance(added.block, Subsystem):
            raise EditError(f"`{added.path}` is a subsystem: delete it in the file itself.")
        own = f"{added.path}."
        was = self._structure()
        wanted = Structure(
            {k: v for k, v in was.types.items() if k != added.path},
            {k: v for k, v in was.values.items() if k != added.path and not k.startswith(own)},
            was.hidden,
            {k: v for k, v in was.wires.items() if not (k.startswith(own) or v.startswith(own))},
            {k: v for k, v in was.outputs.items() if not v.startswith(own)},
            was.groups,
            was.settings,
        )
        return remove_block(self._source, added), wanted, f"{added.path} deleted"

    def _connect(self, request: Mapping[str, Any]) -> tuple[bytes, Structure, str]:
        level, start, origin = self._find_port(request.get("source"), "output")
        other, end, target = self._find_port(request.get("target"), "input")
        assert self._source is not None
        if level is not other:
            raise EditError("both ends must be in the same diagram.")
        was = self._structure()
        if target in was.wires:
            raise EditError(
                f"`{target}` is connected already, to `{was.wires[target]}`: disconnect it first."
            )
        wanted = replace(was, wires={**was.wires, target: origin})
        text = write_connection(self._source, level, start, end)
        return text, wanted, f"{origin} connected to {target}"

    def _disconnect(self, request: Mapping[str, Any]) -> tuple[bytes, Structure, str]:
        _, _, target = self._find_port(request.get("target"), "input")
        assert self._source is not None
        was = self._structure()
        if target not in was.wires:
            raise EditError(f"`{target}` is not connected.")
        wires = {k: v for k, v in was.wires.items() if k != target}
        return (
            remove_wire(self._source, target),
            replace(was, wires=wires),
            f"{target} disconnected",
        )

    def _find_port(self, path: Any, side: str) -> tuple[Level, str, str]:
        """Return the diagram of a port, its name there, and its full path."""
        assert self._source is not None
        if not isinstance(path, str):
            raise EditError(f"a port is named by a path, got {path!r}.")
        levels = sorted(self._source.levels.values(), key=lambda level: -len(level.prefix))
        for level in levels:
            if not path.startswith(level.prefix):
                continue
            short = path.removeprefix(level.prefix)
            try:
                find = level.diagram.find_output if side == "output" else level.diagram.find_input
                ref = find(short)
            except DiagramError as error:
                raise EditError(str(error)) from None
            name = f"{level.diagram.names[ref.block]}.{ref.name}"
            return level, name, f"{level.prefix}{name}"
        raise EditError(f"there is no port `{path}` in diagram() of the file.")

    def _add(self, request: Mapping[str, Any]) -> tuple[bytes, Structure, str]:
        assert self._source is not None
        kind, name = request.get("type"), _read_name(request.get("name"))
        within = request.get("within", "")
        level = next((x for x in self._source.levels.values() if x.prefix == within), None)
        if level is None:
            raise EditError(f"there is no diagram {within!r} whose code is plain.")
        if name in level.diagram.blocks:
            raise EditError(f"the name `{name}` is already used in {level.diagram.name!r}.")
        types = _list_types()
        if kind not in types:
            raise EditError(f"there is no block {kind!r} to add.{suggest(str(kind), types)}")
        arguments = _read_arguments(request.get("arguments", {}))
        try:
            block = types[kind](**arguments)
        except (BiellaError, TypeError, ValueError) as error:
            raise EditError(f"{kind}: {error}") from error
        own = Diagram()
        own.add(block, name)
        new, was = read_structure(own), self._structure()

        def place(found: Mapping[str, Any]) -> dict[str, Any]:
            return {f"{level.prefix}{key}": value for key, value in found.items()}

        wanted = replace(
            was,
            types={**was.types, **place(new.types)},
            values={**was.values, **place(new.values)},
            hidden=was.hidden | frozenset(f"{level.prefix}{key}" for key in new.hidden),
        )
        text = write_block(self._source, level, kind, _PACKAGE, arguments, name)
        return text, wanted, f"{level.prefix}{name} added"


def list_palette() -> list[dict[str, Any]]:
    """Return the blocks that can be added: name, first line of the documentation, arguments."""
    found = []
    for name, kind in sorted(_list_types().items()):
        arguments = [
            {"name": item.name, "needed": item.default is item.empty}
            for item in inspect.signature(kind).parameters.values()
            if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)
        ]
        doc = (kind.__doc__ or "").strip().split("\n")[0].rstrip(":. ") + "."
        found.append({"type": name, "doc": doc, "arguments": arguments})
    return found


def _list_types() -> dict[str, type]:
    names = {name: getattr(palette, name) for name in palette.__all__}
    return {
        name: kind
        for name, kind in names.items()
        if isinstance(kind, type) and issubclass(kind, NativeBlock) and kind is not NativeBlock
    }


def _list_blocks(diagram: Diagram) -> list[tuple[str, Any]]:
    return [(path, block) for path, _, block in list_blocks(diagram)]


def _list_values(path: str, block: Any) -> list[tuple[str, str, Any]]:
    """Return the argument, the path and the value of each parameter of a block."""
    if isinstance(block, Inport):
        default = block.port.default
        if block.bus or default is None:
            return []
        return [("default", path, list(default) if isinstance(default, tuple) else float(default))]
    return [
        (item.name, f"{path}.{item.name}", np.asarray(item.value).tolist())
        for item in block.parameters
        if not item.hidden
    ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EditError(f"`{path}` cannot be read: {error.strerror}.") from error


def _read_name(name: Any) -> str:
    if not isinstance(name, str) or not NAME.match(name):
        raise EditError(
            f"{name!r} cannot be a name: letters a to z, digits, `_`, `-` and spaces, starting "
            f"with a letter."
        )
    return name


def _read_value(value: Any, depth: int = 0) -> Any:
    if isinstance(value, list) and depth < 3:
        return [_read_value(item, depth + 1) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EditError(f"`value` is a number or a list of numbers, got {value!r}.")
    try:
        return float(value)
    except OverflowError:
        raise EditError("`value` is too large.") from None


def _read_arguments(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not all(_is_plain(value) for value in given.values()):
        raise EditError("`arguments` are numbers, texts and lists of numbers by name.")
    if not all(isinstance(name, str) and name.isidentifier() for name in given):
        raise EditError("`arguments` have names.")
    return dict(given)


def _is_plain(value: Any, depth: int = 0) -> bool:
    if isinstance(value, list) and depth < 3:
        return all(_is_plain(item, depth + 1) for item in value)
    if isinstance(value, str):
        return value.isprintable()
    return value is None or isinstance(value, bool | int | float)
