"""Signatures that users see name the types that they take: no `Any`."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import biella

MODULES = [
    "biella.blocks",
    "biella.blocks.control",
    "biella.blocks.daq",
    "biella.blocks.sensors",
    "biella.blocks.bearings",
    "biella.blocks.multibody",
]
MORE = [biella.Diagram, biella.Subsystem]
OPEN = re.compile(r"biella\.blocks\.control\.design\.|KalmanFilter\.of$|Diagram\.compile$")
"""Not yet typed: what takes a linear model, and the options of the compiler."""


def functions(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield a function, or the constructor and the public methods of a class, with their names."""
    if inspect.isfunction(thing):
        yield f"{thing.__module__}.{thing.__qualname__}", thing
    elif inspect.isclass(thing):
        for name, member in vars(thing).items():
            member = getattr(member, "__func__", getattr(member, "fget", member))
            if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
                yield f"{thing.__module__}.{thing.__qualname__}.{name}", member


def find_any(things: list[Any]) -> list[str]:
    """Return ``name: annotation`` of arguments and results that take or give anything."""
    return [
        f"{name}({argument}: {annotation})"
        for thing in things
        for name, function in functions(thing)
        if not OPEN.search(name)
        for argument, annotation in function.__annotations__.items()
        if re.search(r"\bAny\b", str(annotation))
    ]


def test_blocks_and_diagrams_name_their_types() -> None:
    public = [
        getattr(module, name)
        for module in map(importlib.import_module, MODULES)
        for name in module.__all__
    ]
    assert len(public) > 150
    assert sorted(set(find_any([*public, *MORE]))) == []


def test_any_is_found() -> None:
    """The search itself sees it, in functions, constructors, methods and results."""

    class Loose:
        def __init__(self, k: Any) -> None: ...
        @property
        def value(self) -> list[Any]: ...  # type: ignore[empty-body]
        def _hidden(self, k: Any) -> None: ...

    def give(company: str) -> Any: ...

    found = find_any([Loose, give])
    assert [text.rpartition(".")[2] for text in found] == [
        "__init__(k: Any)",
        "value(return: list[Any])",
        "give(return: Any)",
    ]
