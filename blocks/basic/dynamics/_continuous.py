"""Blocks with continuous states: integrators and derivatives."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from .... import _contract as contract
from ....errors import DiagramError, name_list
from ...core._block import NativeBlock
from ...core._ports import CONTINUOUS, Derived, Numbers, Parameter, Port, Same, parameter
from ...core._state import make_initial, make_limits
from ...core._units import Unit, parse_unit
from ...core._vectors import make_record

_EDGES = {
    "rising": contract.FULL_INTEGRATOR_RISING,
    "falling": contract.FULL_INTEGRATOR_FALLING,
    "either": contract.FULL_INTEGRATOR_EITHER,
    "level": contract.FULL_INTEGRATOR_LEVEL,
}


def _times_seconds(unit: Unit) -> Unit:
    return unit * parse_unit("s")


def _per_second(unit: Unit) -> Unit:
    return unit / parse_unit("s")


class Integrator(NativeBlock):
    """An integrator: dx/dt = u, y = x, x(0) = initial.

    Resets and limits are located within a tick. At a tick with a reset, y is the start value at the
    same tick, and integration continues from it. A state at a limit is held while u points outward.
    The output never exceeds a limit. With ``events="tick"`` resets and limits act at ticks, and a
    state that passes a limit within a step is set back to it at the next one.

    Parameters
    ----------
    initial
        The state at the start and after a reset: a number, or a vector, which fixes the width.
    limits
        ``(lower, upper)``, each a number or a vector; one that is infinite does not limit.
    reset
        Adds an input ``reset``, which sets x to its start value when it rises from zero or below
        to above zero (``"rising"``), when it falls back (``"falling"``), at ``"either"``, or as
        long as it is above zero (``"level"``).
    initial_port
        Adds an input ``initial``, which gives the start value instead: at the first tick, and at
        each reset.
    state_port
        Adds an output ``state``: x before a reset at the same tick. It has no direct feedthrough
        from any input, so it may feed ``initial`` or ``reset`` without a loop, as in a bouncing
        ball.
    """

    kernel = "integrator"
    elementwise = True

    def __init__(
        self,
        initial: Numbers = 0.0,
        *,
        limits: tuple[Numbers, Numbers] | None = None,
        reset: Literal["rising", "falling", "either", "level"] | None = None,
        initial_port: bool = False,
        state_port: bool = False,
    ) -> None:
        if reset is not None and reset not in _EDGES:
            raise DiagramError(f"reset is one of {name_list(_EDGES)}, or None, not {reset!r}.")
        start, width = make_initial(initial, "state at the start", tunable=reset is not None)
        if initial_port and np.any(start.value):
            raise DiagramError(
                f"with initial_port=True x starts from the input `initial`, so initial={initial!r} "
                f"would count for nothing: leave one of them out."
            )
        bounds, width = make_limits(limits, width)
        unit = Derived(_times_seconds, ("u",))
        inputs = [Port("u", width=width)]
        outputs = [Port("y", width=width, unit=unit)]
        if reset is not None:
            inputs.append(
                Port("reset", kind=Same("reset"), doc="sets the state to its start value")
            )
        if initial_port:
            inputs.append(Port("initial", width=width, unit=unit, doc="start value of the state"))
        if state_port:
            outputs.append(Port("state", width=width, unit=unit, doc="the state before a reset"))
        parameters: list[Parameter] = [*([] if initial_port else [start]), *bounds]
        plain = limits is None and reset is None and not initial_port and not state_port
        self.memory_holds = not initial_port  # its first output is not yet the state
        super().__init__(
            inputs=inputs,
            outputs=outputs,
            parameters=parameters,
            rate=CONTINUOUS,
            kernel=None if plain else "full_integrator",
            feedthrough=[("y", port.name) for port in inputs[1:]],
            states=width,
            integers=()
            if plain
            else make_record(
                contract.FULL_INTEGRATOR_INTEGERS,
                {
                    contract.FULL_INTEGRATOR_EDGE: (
                        contract.FULL_INTEGRATOR_NEVER if reset is None else _EDGES[reset]
                    ),
                    contract.FULL_INTEGRATOR_PORT: int(initial_port),
                    contract.FULL_INTEGRATOR_INITIAL: 0 if initial_port else start.value.size,
                    contract.FULL_INTEGRATOR_LIMIT: bounds[0].value.size if bounds else 0,
                },
            ),
        )


class Derivative(NativeBlock):
    """A filtered derivative: dx/dt = (u - x) / filter_time, y = (u - x) / filter_time.

    Its transfer function is s / (1 + filter_time s). An explicit solver needs a step well below
    ``2 filter_time``.

    Parameters
    ----------
    filter_time
        Time constant of the filter in seconds.
    initial
        The filter's state at the start: a number, or a vector, which fixes the width. Without one
        it is the first value of u, so that y starts from zero.
    """

    kernel = "derivative"
    elementwise = True

    def __init__(self, filter_time: float, *, initial: Numbers | None = None) -> None:
        time = parameter(
            "filter_time", filter_time, unit="s", doc="time constant of the filter", minimum=0.0
        )
        if time.value.ndim or not time.value > 0:
            raise DiagramError(f"filter_time must be positive seconds, got {filter_time!r}.")
        parameters = [time]
        width: Any = "n"
        if initial is not None:
            start, width = make_initial(initial, "state at the start")
            parameters.append(start)
        super().__init__(
            inputs=[Port("u", width=width)],
            outputs=[Port("y", width=width, unit=Derived(_per_second, ("u",)))],
            parameters=parameters,
            rate=CONTINUOUS,
            states=width,
        )
