"""Co-simulation or model exchange, for FMUs that offer both."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Literal

from ...errors import DiagramError, FmuError
from ._interface import Description

Kind = Literal["cs", "me"]
_NAMES = {"cs": "co-simulation", "me": "model exchange"}
_ATTRIBUTES = {"cs": "coSimulation", "me": "modelExchange"}


def choose_kind(description: Description, kind: Kind | None) -> Description:
    """Return the description with one interface only: `kind`, by default co-simulation if offered.

    Raises
    ------
    FmuError
        If the FMU does not offer `kind`.
    """
    if kind is not None and kind not in [*_NAMES]:
        raise DiagramError(f"`kind` must be 'cs', 'me' or None; got {kind!r}.")
    offered = [k for k in _NAMES if getattr(description.model, _ATTRIBUTES[k]) is not None]
    if kind is not None and kind not in offered:
        instead = [f"kind={k!r} ({_NAMES[k]})" for k in offered]
        raise FmuError(
            f"{description.archive.path.name} does not support {_NAMES[kind]} (kind={kind!r}). "
            f"It supports {' and '.join(instead) or 'scheduled execution only'}."
        )
    if len(offered) < 2:
        return description
    model = copy.copy(description.model)
    setattr(model, _ATTRIBUTES["cs" if kind == "me" else "me"], None)
    return replace(description, model=model)


def interface_of(description: Description) -> Any:
    """Return the interface of a description that has one only: its flags and identifier."""
    return description.model.coSimulation or description.model.modelExchange


def is_exchange(description: Description) -> bool:
    """Whether the interface that was chosen is model exchange."""
    return description.model.coSimulation is None and description.model.modelExchange is not None


def check_exchange(description: Description, period: float | None, substeps: int) -> None:
    """Reject options that only co-simulation has.

    Raises
    ------
    DiagramError
        If a communication step is given.
    """
    label = description.archive.path.name
    if period is not None or substeps != 1:
        what = "period" if period is not None else "substeps"
        raise DiagramError(
            f"`{what}` is an option of co-simulation, and {label} is used for model exchange: "
            f"the solver of the diagram integrates it. Set Diagram(step=…, solver=…, tolerance=…)."
        )
