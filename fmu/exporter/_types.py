"""Types of variables in FMI 3.0 other than the usual ones of their kind."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ...errors import BiellaError, name_list, suggest
from ...scheduler.compile.plan._plan import Plan
from ...scheduler.engine._library import contract
from ._variables import Variable

FLOATS: dict[str, int] = {"Float64": contract.BL_USUAL_TYPE, "Float32": contract.BL_FLOAT32}
INTEGERS: dict[str, int] = {
    "Int64": contract.BL_USUAL_TYPE,
    "Int32": contract.BL_INT32,
    "Int16": contract.BL_INT16,
    "Int8": contract.BL_INT8,
    "UInt64": contract.BL_UINT64,
    "UInt32": contract.BL_UINT32,
    "UInt16": contract.BL_UINT16,
    "UInt8": contract.BL_UINT8,
}
_OF_KIND = {"real": FLOATS, "integer": INTEGERS}
_Plan = TypeVar("_Plan", bound=Plan)


def with_types(
    variables: Sequence[Variable], types: Mapping[str, str] | None, exchanged: Collection[str] = ()
) -> list[Variable]:
    """Return the variables with the types given by name.

    Start values of Float32 variables are rounded. `exchanged` are the names of states, derivatives
    and event indicators.

    Raises
    ------
    BiellaError
        For an unknown name, an unknown type or one of another kind, and a start value, limit or
        nominal value that does not fit the type.
    """
    if types is None:
        return list(variables)
    by_name = {v.name: v for v in variables}
    for name, type_ in types.items():
        if name in exchanged:
            raise BiellaError(
                f"`types` names `{name}`: states, derivatives and event indicators are of type "
                f"Float64."
            )
        if name not in by_name:
            raise BiellaError(
                f"`types` names `{name}`, which is no variable of the FMU."
                f"{suggest(name, by_name)} Variables: {name_list(by_name)}."
            )
        by_name[name] = _typed(by_name[name], type_)
    return list(by_name.values())


def plan_types(plan: _Plan, variables: Sequence[Variable]) -> _Plan:
    """Return the plan with the types of the variables, and with their rounded start values.

    All variables that are read as integers are listed, so that an error can name them.
    """
    listed = [v for v in variables if v.type or v.kind in ("integer", "enumeration")]
    if not listed:
        return plan
    return plan.with_types(
        [
            (v.reference, _OF_KIND[v.kind][v.type] if v.type else contract.BL_USUAL_TYPE)
            for v in listed
        ],
        [v.name for v in listed],
        {v.reference: v.start for v in listed if v.type and v.start is not None},
    )


def _typed(variable: Variable, type_: object) -> Variable:
    allowed = _OF_KIND.get(variable.kind, {})
    if type_ not in (*FLOATS, *INTEGERS) or not isinstance(type_, str):
        raise BiellaError(
            f"`{variable.name}` cannot be of type {type_!r}.{suggest(str(type_), allowed)} "
            f"Types: {', '.join((*FLOATS, *INTEGERS))}."
        )
    if type_ not in allowed:
        choice = f"choose {' or '.join(allowed)}" if allowed else "it has one type only"
        raise BiellaError(
            f"`{variable.name}` is of kind {variable.kind} and cannot be of type {type_}: {choice}."
        )
    return replace(
        variable,
        type=type_,
        start=None
        if variable.start is None
        else tuple(_fit(variable, "start value", value, type_) for value in variable.start),
        minimum=_fit_limit(variable, "minimum", variable.minimum, type_),
        maximum=_fit_limit(variable, "maximum", variable.maximum, type_),
        nominal=_fit_limit(variable, "nominal value", variable.nominal, type_),
    )


def _fit_limit(variable: Variable, what: str, value: float | None, type_: str) -> float | None:
    return None if value is None else _fit(variable, what, value, type_)


def _fit(variable: Variable, what: str, value: float, type_: str) -> float:
    """Return a value as the type has it."""
    if type_ in INTEGERS:
        bits = int(type_.partition("Int")[2])
        low, end = (0, 2**bits) if type_[0] == "U" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        fits, fitting = math.isfinite(value) and low <= math.trunc(value) < end, value
    elif type_ == "Float32":
        with np.errstate(over="ignore", under="ignore"):
            fitting = float(np.float32(value))
        fits = math.isfinite(fitting) or not math.isfinite(value)
        fits = fits and not (what == "nominal value" and fitting == 0.0)
    else:
        fits, fitting = True, value
    if not fits:
        shown = f"{value:.17g}" if type_ in INTEGERS else repr(value)
        raise BiellaError(
            f"the {what} of `{variable.name}` is {shown}, which does not fit {type_}."
        )
    return fitting
