"""The numbers of a mechanism by their paths, such as ``crank.mass`` or ``tire.stiffness``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from ...core._ports import Parameter, parameter
from ...core._units import parse_unit
from ..system._laws import AbstractLaw, Constant, Formula


def law_parameters(path: str, law: AbstractLaw, unit: str, doc: str) -> Iterator[Parameter]:
    """Yield the numbers of a law: a constant at `path`, others below it.

    The values in tables and in the text of formulas are not parameters: they are constant.
    """
    if isinstance(law, Constant):
        yield parameter(path, law.number, unit=unit, doc=doc)
        return
    if isinstance(law, Formula):
        for name, value in law.parameters.items():
            yield parameter(f"{path}.{name}", value, doc=f"{name} in the formula of {doc}")
        return
    for item in fields(law):  # type: ignore[arg-type]
        if not item.metadata:
            continue
        own = item.metadata["unit"]
        if own == "u":
            own = unit
        elif own == "u/s":
            own = parse_unit(unit) / parse_unit("s")
        words = f"{doc}: {item.name}"
        yield parameter(f"{path}.{item.name}", getattr(law, item.name), unit=own, doc=words)
