"""Signatures that users see name the types that they take: no `Any`."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

MODULES = [
    "biella",
    "biella.blocks",
    "biella.blocks.authoring",
    "biella.blocks.bearings",
    "biella.blocks.control",
    "biella.blocks.daq",
    "biella.blocks.multibody",
    "biella.blocks.multibody.dual",
    "biella.blocks.multibody.mechanisms",
    "biella.blocks.multibody.reference_formulations",
    "biella.blocks.sensors",
    "biella.blocks.sensors.presets",
    "biella.devices",
    "biella.errors",
    "biella.fmu",
    "biella.realtime",
    "biella.results",
    "biella.studio",
    "biella.tolerances",
    "biella.udp_proxy",
]
"""The public modules: tests/test_public_api.py holds them against the documents."""
OPEN = re.compile(
    r"(KalmanFilter\.of\(options|Diagram\.compile\(options)"
    r"|\.(PortRef|LiveRun)\.__init__\("
    r"|\.Option\.(__init__|read)\("
    r"|\.(Bearing|ClearanceRevolute|ShapeContact)\.reserve\("
    r"|\.\w+\.measure\("
)
"""Documented options that are passed on; what only biella makes; values of a file, of any type."""
DATA = re.compile(r"(Mapping|dict)\[str, Any\]|NDArray\[Any\]")
"""Tables of a TOML or JSON document, and structured arrays: no narrower type exists."""


def functions(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield a function, or the constructor and the public methods of a class, with their names."""
    if inspect.isfunction(thing):
        yield f"{thing.__module__}.{thing.__qualname__}", thing
    elif inspect.isclass(thing):
        members = {
            name: member
            for base in reversed(thing.__mro__)
            if base.__module__.split(".")[0] not in ("builtins", "abc", "enum")
            for name, member in vars(base).items()
        }
        for name, member in members.items():
            member = getattr(member, "__func__", getattr(member, "fget", member))
            if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
                yield f"{thing.__module__}.{thing.__qualname__}.{name}", member


def find_any(things: list[Any]) -> list[str]:
    """Return ``name: annotation`` of arguments and results that take or give anything."""
    return [
        f"{name}({argument}: {annotation})"
        for thing in things
        for name, function in functions(thing)
        for argument, annotation in function.__annotations__.items()
        if re.search(r"\bAny\b", DATA.sub("", str(annotation)))
        and not OPEN.search(f"{name}({argument}")
    ]


def test_public_callables_name_their_types() -> None:
    public = [
        getattr(module, name)
        for module in map(importlib.import_module, MODULES)
        for name in module.__all__
    ]
    assert len(public) > 150
    assert sorted(set(find_any(public))) == []


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
