"""The table of elements: each number of the kernel has one class, made by a method of `System`."""

from __future__ import annotations

import inspect

from biella import _contract as contract
from biella.blocks.multibody import System
from biella.blocks.multibody.elements._element import AbstractElement
from biella.blocks.multibody.elements._table import ElementMethods

from .test_outputs import CASES


def test_every_number_of_the_kernel_is_made_by_some_element() -> None:
    made = {
        part.type_number
        for make in CASES.values()
        for part in make().parts.values()
        if isinstance(part, AbstractElement) and hasattr(type(part), "record")
        if not getattr(part, "driven", False) and not getattr(part, "general", "")
    }
    assert made == set(range(contract.MB_FORCE_TYPES))


def test_no_two_families_have_a_method_of_one_name() -> None:
    """A second one would hide the first, by the order of the bases."""
    assert issubclass(System, ElementMethods)
    owners: dict[str, str] = {}
    for family in ElementMethods.__bases__:
        for name, _ in inspect.getmembers(family, inspect.isfunction):
            if name not in vars(family) or name.startswith("__"):
                continue
            assert name not in owners, f"{name} of {family.__name__} and {owners[name]}"
            owners[name] = family.__name__
    public = {name for name in owners if not name.startswith("_")}
    assert {"spring", "bushing", "stop", "driver", "gear", "bearing", "force"} <= public
