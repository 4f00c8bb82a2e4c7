"""An FMU for model exchange as a continuous block: the solver of the diagram integrates it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...blocks.core._ports import CONTINUOUS, Rate
from ...scheduler.engine._library import contract
from ._clocks import Clock, active_clocks
from ._engine_fmu import EngineFmu
from ._interface import Description, Interface
from ._options import Options
from ._variables import Scalar


class ExchangeFmu(EngineFmu):
    """A model-exchange FMU whose states the engine integrates; made by `Fmu`.

    dx/dt = f(t, x, u), y = g(t, x, u): the FMU evaluates both, and its event indicators are
    zero-crossing functions of the engine. Discrete states and modes are in the FMU. They change in
    its event mode only: at state, time and step events, where a discrete input changes, where
    another input jumps, and where a tunable parameter is set.
    """

    has_internal_solver = False
    has_engine_states = True
    memory_holds = True

    def __init__(
        self,
        description: Description,
        interface: Interface,
        input_values: Mapping[str, Any],
        options: Options,
    ) -> None:
        super().__init__(description, interface, input_values, options)
        self.state_names = tuple(_list_states(description))
        # What it notes in CompletedIntegratorStep is part of its state.
        self.can_repeat_states = self.can_save or not self.flags.needsCompletedIntegratorStep
        self.can_be_lent = self.can_repeat_states
        self.held_outputs = frozenset(
            group.name for group in interface.outputs if self._is_discrete(group.first)
        )

    def _can_roll_back(self) -> bool:
        return True  # between steps it changes nothing

    def _kernel(self) -> str:
        steps = bool(self.flags.needsCompletedIntegratorStep)
        return f"fmu{3 if self.is_fmi3 else 2}_exchange{'_steps' * steps}"

    def _clocks(self) -> list[Clock]:
        clocks = self.description.clocks.values()
        found = [clock for clock in clocks if clock.kind != contract.HOST_CLOCK_TRIGGERED]
        return active_clocks(found, self.description.archive.path.name)

    def _rate(self) -> Rate:
        return CONTINUOUS

    def _states(self) -> int:
        return sum(_size(self.description, u) for u in self.description.model.derivatives)

    def _indicators(self) -> int:
        model = self.description.model
        if not self.is_fmi3:
            return int(model.numberOfEventIndicators or 0)
        return sum(_size(self.description, u) for u in model.eventIndicators)

    def _is_discrete(self, scalar: Scalar) -> bool:
        return scalar.type != contract.HOST_REAL or scalar.variability != "continuous"

    def _pairs(self) -> list[tuple[str, str]]:
        """Return the direct feedthrough: discrete inputs act through events only."""
        discrete = {group.name for group in self.interface.inputs if self._is_discrete(group.first)}
        pairs = self.interface.feedthrough(self.description)
        return [(output, name) for output, name in pairs if name not in discrete]


def _size(description: Description, unknown: Any) -> int:
    scalar = description.scalars.get(unknown.variable.name)
    return getattr(scalar, "size", 1)


def _list_states(description: Description) -> list[str]:
    """Return the names of the continuous states, in the order of their derivatives."""
    names: list[str] = []
    for unknown in description.model.derivatives:
        state = unknown.variable.derivative
        name = getattr(state, "name", None) or f"∫ {unknown.variable.name}"
        size = _size(description, unknown)
        names += [name] if size == 1 else [f"{name}[{k}]" for k in range(size)]
    return names
