"""What an FMU for model exchange offers: states, derivatives, event indicators; and who cannot."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import POINTER, c_double
from dataclasses import dataclass
from typing import Self

import numpy as np

from ...blocks.core._block import NativeBlock
from ...errors import BiellaError, DiagramError
from ...scheduler.compile._model import Model
from ...scheduler.compile._rates import CONTINUOUS
from ...scheduler.compile.plan._jacobian_pattern import find_pattern
from ...scheduler.engine._engine import Instance
from ...scheduler.engine._library import contract

KINDS = {
    "cs": contract.BL_OFFERS_STEPS,
    "me": contract.BL_OFFERS_EXCHANGE,
    "both": contract.BL_OFFERS_STEPS | contract.BL_OFFERS_EXCHANGE,
}
"""What an FMU is exported for: co-simulation, model exchange, or both."""

KIND_NAMES = {
    "cs": "co-simulation",
    "me": "model exchange",
    "both": "co-simulation and model exchange",
}

TOLERANCE = 1e-6
"""Relative tolerance that the description suggests."""
_LARGEST_LIST = 100  # states of a dense model whose dependencies are listed
_FOLLOWERS = ("rate_limiter", "backlash")


def check_kind(kind: str) -> None:
    """Raise if there is no such kind of FMU."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise BiellaError(
            f"kind is 'cs' for co-simulation, 'me' for model exchange, or 'both', not {kind!r}."
        )


@dataclass(frozen=True, slots=True)
class Exchange:
    """The interface of a model to a solver outside.

    Attributes
    ----------
    states
        Names of the states, in the order of the engine.
    documents
        A description of each.
    nominals
        Magnitudes of the states.
    dependencies
        Of each derivative, the states that it depends on; None if it may depend on all.
    indicators
        Number of event indicators.
    completes_steps
        Whether the solver has to tell when a step has ended.
    taken
        Names of other variables.
    """

    states: tuple[str, ...]
    documents: tuple[str, ...]
    nominals: tuple[float, ...]
    dependencies: tuple[tuple[int, ...], ...] | None
    indicators: int
    completes_steps: bool
    taken: tuple[str, ...] = ()

    @property
    def derivatives(self) -> tuple[str, ...]:
        """Names of the derivatives."""
        return tuple(f"der({name})" for name in self.states)

    @property
    def indicator_names(self) -> tuple[str, ...]:
        """Names of the event indicators, where they are variables: FMI 3.0."""
        prefix = "event_indicators"
        while any(name.startswith(prefix) for name in self.taken):
            prefix += "_"
        return tuple(f"{prefix}[{k}]" for k in range(self.indicators))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of states, derivatives and event indicators."""
        return (*self.states, *self.derivatives, *self.indicator_names)

    @classmethod
    def of(cls, model: Model, taken: Sequence[str]) -> Self:
        """Return the interface of a model; its names are none of those `taken`.

        Raises
        ------
        DiagramError
            If blocks of the model have solvers of their own, or follow their input with a memory
            that only the engine's own steps can keep.
        """
        reject_blocks(model)
        names, documents = _name_states(model, set(taken))
        with Instance(model) as instance:
            library, handle = instance.library, instance.handle
            instance.check(library.bl_ode_open(handle))
            nominals = np.ones(instance.layout.states)
            try:
                instance.initialize()
                instance.evaluate()
            except BiellaError:  # with other parameters it may start
                pass
            else:
                instance.check(library.bl_ode_start(handle))
                pointer = nominals.ctypes.data_as(POINTER(c_double))
                library.bl_ode_nominals(handle, pointer)
            return cls(
                names,
                documents,
                tuple(nominals.tolist()),
                _find_dependencies(model),
                int(library.bl_ode_indicator_count(handle)),
                bool(library.bl_ode_completes_steps(handle)),
                tuple(taken),
            )


def reject_blocks(model: Model) -> None:
    """Name every block that no solver outside can integrate, with what to do instead."""
    problems = []
    for number, item in enumerate(model.flat.blocks):
        block = item.block
        prefix = f"`{item.path}` ({block}) cannot be exported for model exchange: "
        if block.has_internal_solver:
            advice = "export it for co-simulation, kind='cs'"
            if getattr(block, "kernel", None) == "multibody_internal":
                advice = (
                    "build it with System.block(mode='continuous') if it has no rigid contacts, or "
                    + advice
                )
            problems.append(f"{prefix}it advances with an internal solver; {advice}.")
        elif (
            isinstance(block, NativeBlock)
            and block.kernel in _FOLLOWERS
            and model.rates[number] == CONTINUOUS
        ):
            problems.append(
                f"{prefix}it follows a continuous input by its rate of change, which a solver "
                f"outside does not give; give it a period, or export for co-simulation, kind='cs'."
            )
    if problems:
        raise DiagramError(problems)


def _name_states(model: Model, taken: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names such as ``states.plant.hinge.angle``, and what each is."""
    count = sum(int(record["x_count"]) for record in model.block_records)
    names, documents = [""] * count, [""] * count
    for item, record in zip(model.flat.blocks, model.block_records, strict=True):
        first, own = int(record["x_first"]), int(record["x_count"])
        given = item.block.state_names or [f"x[{k}]" if own > 1 else "x" for k in range(own)]
        for k in range(own):
            plain = given[k].removeprefix("-")
            negative = plain != given[k]
            name = f"states.{item.path}.{plain}" + ("_negative" if negative else "")
            while name in taken or f"der({name})" in taken:
                name += "_"
            taken.add(name)
            names[first + k] = name
            documents[first + k] = f"state {k + 1} of {own} of {item.path}" + (
                f": minus {plain}" if negative else ""
            )
    return tuple(names), tuple(documents)


def _find_dependencies(model: Model) -> tuple[tuple[int, ...], ...] | None:
    slots = [(int(r["x_first"]), int(r["x_count"])) for r in model.block_records]
    count = sum(own for _, own in slots)
    if count == 0:
        return None
    pattern = find_pattern(model.flat, model.ports, model.rates, model.order, slots)
    if not pattern.size:  # some tools require a list
        return ((*range(count),),) * count if count <= _LARGEST_LIST else None
    firsts, rows = pattern[: count + 1], pattern[count + 1 :]
    reached: list[list[int]] = [[] for _ in range(count)]
    for column in range(count):
        for row in rows[firsts[column] : firsts[column + 1]]:
            reached[int(row)].append(column)
    return tuple(tuple(row) for row in reached)
