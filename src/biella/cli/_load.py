"""Loading of the user's Python file, and reporting of its errors."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import SOURCE_SUFFIXES, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import biella

from .. import blocks
from ..errors import BiellaError, suggest


def load_diagram(path: Path) -> Any:
    """Return the diagram that ``diagram()`` of a Python file returns."""
    from ..scheduler.compile.diagram._diagram import Diagram

    make = getattr(_load_module(path), "diagram", None)
    if make is None:
        raise BiellaError(
            f"`{path}` does not define diagram(): write a function of that name that returns a "
            f"Diagram."
        )
    return _made("diagram", make, Diagram, path)


def load_model(path: Path) -> Any:
    """Return the result of ``diagram()`` of a Python file, else of its ``system()``."""
    from ..blocks.multibody import System
    from ..scheduler.compile.diagram._diagram import Diagram

    module = _load_module(path)
    for name, wanted in (("diagram", Diagram), ("system", System)):
        if hasattr(module, name):
            return _made(name, getattr(module, name), wanted, path)
    raise BiellaError(
        f"`{path}` defines neither diagram() nor system(): write a function of one of these names "
        f"that returns a Diagram or a System."
    )


def load_system(path: Path) -> Any:
    """Return the result of ``system()`` of a Python file, or the mechanism in its ``diagram()``."""
    from ..blocks.multibody import Plant, System

    module = _load_module(path)
    if hasattr(module, "system"):
        return _made("system", module.system, System, path)
    if not hasattr(module, "diagram"):
        raise BiellaError(
            f"`{path}` defines neither system() nor diagram(): write system(), which returns the "
            f"System."
        )
    from ..scheduler.compile.diagram._diagram import Diagram

    diagram = _made("diagram", module.diagram, Diagram, path)
    found = [diagram[name] for name in diagram if isinstance(diagram[name], Plant)]
    if len(found) != 1:
        raise BiellaError(
            f"diagram() of `{path}` has {len(found)} mechanisms: write system(), which returns the "
            f"one to run."
        )
    return found[0].system


def _made(name: str, make: Any, wanted: type, path: Path) -> Any:
    with _users_code(path):
        made = make() if callable(make) else make
    if not isinstance(made, wanted):
        raise BiellaError(f"{name}() of `{path}` returned {made!r}, not a {wanted.__name__}.")
    return made


class _Loader(SourceFileLoader):
    """Reads the source each time: bytecode does not notice a change within the same second."""

    def get_code(self, fullname: str) -> CodeType:
        """Compile the source."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _load_module(path: Path) -> Any:
    if path.is_dir():
        raise BiellaError(f"`{path}` is a folder: specify a Python file.")
    if not path.is_file():
        raise BiellaError(f"there is no file `{path}`.")
    if path.suffix not in SOURCE_SUFFIXES:
        raise BiellaError(f"`{path}` is not a Python file.")
    spec = importlib.util.spec_from_file_location(
        path.stem, path, loader=_Loader(path.stem, str(path))
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        with _users_code(path):
            spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


@contextmanager
def _users_code(path: Path) -> Iterator[None]:
    """Turn what the user's file raises into a message with its line."""
    try:
        yield
    except SyntaxError as error:
        where = Path(error.filename or path).name
        line = f", line {error.lineno}" if error.lineno is not None else ""
        raise BiellaError(f"`{where}`{line}: {error.msg}.") from error
    except BiellaError as error:
        raise BiellaError(f"{_place(error, path)}: {error}") from error
    except Exception as error:
        raise BiellaError(
            f"{_place(error, path)}: {type(error).__name__}: {error}.{_hint(error)} "
            f"For the full traceback: biella --debug."
        ) from error


def _hint(error: Exception) -> str:
    """Return a suggestion for an unknown name, such as that of a block."""
    if isinstance(error, AttributeError) and error.name:
        return suggest(error.name, dir(error.obj))
    if isinstance(error, ImportError) and error.name in sys.modules:
        wrong = re.search(r"cannot import name '(\w+)'", str(error))
        return suggest(wrong[1], dir(sys.modules[error.name])) if wrong else ""
    wrong = re.match(
        r"(\w+)(\.__init__)?\(\) got an unexpected keyword argument '(\w+)'", str(error)
    )
    made = getattr(blocks, wrong[1], None) or getattr(biella, wrong[1], None) if wrong else None
    return suggest(wrong[3], inspect.signature(made).parameters) if wrong and made else ""


def _place(error: Exception, path: Path) -> str:
    """Return the user's file, and its line if it is one of those that led to the error."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if Path(f.filename).resolve() == path.resolve()]
    return f"`{path}`, line {own[-1].lineno}" if own else f"`{path}`"
