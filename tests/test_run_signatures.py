"""No `Any` in the signatures that users call: an editor and mypy say what may be given."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import biella
import biella.fmu
from biella.blocks import control

RUNS: list[Callable[..., object]] = [
    biella.Fmu,
    biella.System.block,
    biella.System.export_fmu,
    biella.fmu.export_fmu,
    biella.fmu.export_system,
    biella.linearize,
    biella.replay,
    biella.run_realtime,
    biella.simulate,
    biella.sweep,
    control.add_integral,
    control.dlqe,
    control.dlqr,
    control.lqe,
    control.lqg,
    control.lqr,
]
RESULTS: list[type] = [biella.LinearModel, biella.LiveRun, biella.Result, biella.Sweep]
SPECIAL = {"__init__", "__getitem__", "__setitem__", "__iter__", "__len__", "__repr__"}
MADE_BY_US = {biella.LiveRun, biella.Result}
"""Their constructors are internal."""


def public_methods(cls: type) -> Iterator[Callable[..., object]]:
    for name, member in vars(cls).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if isinstance(member, property):
            function = member.fget
        if name == "__init__" and cls in MADE_BY_US:
            continue
        if callable(function) and (not name.startswith("_") or name in SPECIAL):
            yield function


PUBLIC = [*RUNS, *(method for cls in RESULTS for method in public_methods(cls))]


def anys(function: Callable[..., object]) -> list[str]:
    """Return the parameters, and "return", whose annotations contain `Any` or are missing."""
    signature = inspect.signature(function)
    annotations = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if name not in ("self", "cls")
    }
    annotations["return"] = signature.return_annotation
    return [
        name
        for name, annotation in annotations.items()
        if annotation is inspect.Parameter.empty or re.search(r"\bAny\b", str(annotation))
    ]


@pytest.mark.parametrize("function", PUBLIC, ids=lambda f: f.__qualname__)
def test_a_public_signature_has_no_any(function):
    if function.__qualname__ == "Sweep.__repr__":
        return  # made by dataclass
    assert anys(function) == []


def test_any_is_found():
    def vague(a: Any, b: int, c) -> dict[str, Any]:
        raise NotImplementedError

    assert anys(vague) == ["a", "c", "return"]
