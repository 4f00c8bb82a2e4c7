"""The variables of an exported FMU, as both versions of FMI describe them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import numpy as np

from ...blocks.core._ports import Kind
from ...errors import BiellaError, name_list, suggest
from ...scheduler.compile.plan._plan import Plan, PortInfo


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the FMU: a scalar, or an array with one shape.

    Attributes
    ----------
    name
        Path of the port or parameter.
    reference
        Number of its first element in the plan's table of variables.
    shape
        Of an array; empty for a scalar.
    causality, variability
        In FMI's words.
    start
        The value of each element; None where it is computed.
    names
        Of an enumeration: the names of its values, from 1 on.
    minimum, maximum, nominal
        Of every element; None where they are not known.
    clock
        Reference of the clock that the variable belongs to, if there is one.
    type
        In FMI 3.0, where a type is chosen: see `_types`. None: the usual one of the kind.
    """

    name: str
    reference: int
    kind: Kind
    shape: tuple[int, ...]
    causality: str
    variability: str
    unit: str | None
    doc: str
    start: tuple[float, ...] | None = None
    names: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    nominal: float | None = None
    clock: int | None = None
    type: str | None = field(default=None, repr=False)  # it is in the plan, as a token has it

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def element_names(self) -> list[str]:
        """The names of the elements where each is a variable of its own."""
        if not self.shape:
            return [self.name]
        places = (np.unravel_index(k, self.shape) for k in range(self.size))
        return [f"{self.name}[{','.join(map(str, place))}]" for place in places]


def list_variables(plan: Plan, local: Sequence[PortInfo] = ()) -> list[Variable]:
    """Return all variables in the order of the plan's table: inputs, outputs, parameters, locals.

    `local` are signals that are appended to the table: see `Plan.with_variables`.
    """
    values = plan.first_values
    found: list[Variable] = []
    count = 0

    def add(variable: Variable, slot: int | None) -> None:
        nonlocal count
        size = variable.size
        start = None if slot is None else tuple(values[slot : slot + size].tolist())
        found.append(replace(variable, reference=count, start=start))
        count += size

    def port(item: PortInfo, causality: str) -> Variable:
        smooth = item.kind == "real" and not (item.sampled and causality != "input")
        return Variable(
            item.path, 0, item.kind, () if item.width == 1 else (item.width,), causality,
            "continuous" if smooth else "discrete", item.unit, item.doc, None, tuple(item.names),
        )  # fmt: skip

    for item in plan.inputs.values():
        add(port(item, "input"), item.slot)
    for item in plan.outputs.values():
        add(port(item, "output"), None)
    for parameter in plan.parameters.values():
        add(
            Variable(
                parameter.path, 0, "real", parameter.shape, "parameter",
                "tunable" if parameter.tunable else "fixed", parameter.unit, parameter.doc,
            ),
            parameter.slot,
        )  # fmt: skip
    for item in local:
        add(port(item, "local"), None)
    return found


def choose_variables(
    plan: Plan, parameters: Iterable[str] | None, local: Sequence[PortInfo] = ()
) -> list[Variable]:
    """Return the variables to be shown: all, or of the parameters only those given."""
    chosen = None if parameters is None else set(parameters)
    return [
        v
        for v in list_variables(plan, local)
        if v.causality != "parameter" or chosen is None or v.name in chosen
    ]


def choose_local(plan: Plan, patterns: Sequence[str]) -> list[PortInfo]:
    """Return the signals that become local variables, without those that are variables anyway.

    Raises
    ------
    BiellaError
        If a pattern matches no signal, or a signal has the name of another variable.
    """
    others = [path for path in plan.signals if path not in plan.inputs]
    chosen: list[str] = []
    for pattern in patterns:
        wanted = plan.aliases.get(pattern, pattern)
        matching = [p for p in others if p == wanted or fnmatchcase(p, pattern)]
        if not matching:
            raise BiellaError(
                f"there is no signal `{pattern}`.{suggest(pattern, others)} "
                f"Signals: {name_list(others)}."
            )
        chosen += [path for path in matching if path not in plan.outputs]
    taken = [path for path in chosen if path in plan.parameters]
    if taken:
        raise BiellaError(
            f"`{taken[0]}` is a signal and a parameter: it cannot be a local variable as well."
        )
    return [plan.signals[path] for path in dict.fromkeys(chosen)]


def with_ranges(
    variables: Sequence[Variable],
    limits: Mapping[str, tuple[float | None, float | None]] | None,
    nominal: Mapping[str, float] | None,
) -> list[Variable]:
    """Return the variables with the limits and nominal values given by name.

    Raises
    ------
    BiellaError
        For an unknown name, limits that are not a pair or exclude the start value, and a nominal
        value that is not above 0 or not of a real variable.
    """
    by_name = {v.name: v for v in variables}
    for what, given in (("limits", limits), ("nominal", nominal)):
        for name in given or ():
            if name not in by_name:
                raise BiellaError(
                    f"`{what}` names `{name}`, which is no variable of the FMU."
                    f"{suggest(name, by_name)} Variables: {name_list(by_name)}."
                )
    for name, pair in (limits or {}).items():
        by_name[name] = _limited(by_name[name], pair)
    for name, value in (nominal or {}).items():
        is_number = isinstance(value, (int, float, np.number)) and 0 < value < math.inf
        if by_name[name].kind != "real" or not is_number:
            raise BiellaError(
                f"the nominal value of `{name}` must be a positive number of a real variable, "
                f"got {value!r} ({by_name[name].kind})."
            )
        by_name[name] = replace(by_name[name], nominal=float(value))
    return list(by_name.values())


def _limited(variable: Variable, pair: tuple[float | None, float | None]) -> Variable:
    try:
        low, high = (None if value is None else float(value) for value in pair)
    except (TypeError, ValueError):
        raise BiellaError(
            f"the limits of `{variable.name}` must be a pair (minimum, maximum), got {pair!r}."
        ) from None
    if variable.kind not in ("real", "integer"):
        raise BiellaError(f"`{variable.name}` is of kind {variable.kind}: it has no limits.")
    if any(value is not None and math.isnan(value) for value in (low, high)) or (
        low is not None and high is not None and low > high
    ):
        raise BiellaError(f"the limits of `{variable.name}` exclude every value: {pair!r}.")
    outside = [
        value
        for value in variable.start or ()
        if (low is not None and value < low) or (high is not None and value > high)
    ]
    if outside:
        raise BiellaError(
            f"the limits {pair!r} of `{variable.name}` exclude its start value {outside[0]:g}."
        )
    return replace(
        variable,
        minimum=None if low == -math.inf else low,
        maximum=None if high == math.inf else high,
    )
