"""A double integrator with limits, rebounds and rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from .... import _contract as contract
from ....errors import DiagramError, name_list
from ...core._block import NativeBlock
from ...core._ports import (
    CONTINUOUS,
    Derived,
    Numbers,
    Parameter,
    Port,
    Same,
    Width,
    number,
    parameter,
)
from ...core._state import make_limits
from ...core._units import Unit, parse_unit
from ...core._vectors import make_record

_EDGES = {
    "rising": contract.SECOND_ORDER_RISING,
    "falling": contract.SECOND_ORDER_FALLING,
    "either": contract.SECOND_ORDER_EITHER,
    "level": contract.SECOND_ORDER_LEVEL,
}


def _times_seconds(unit: Unit) -> Unit:
    return unit * parse_unit("s")


def _times_seconds_squared(unit: Unit) -> Unit:
    return unit * parse_unit("s2")


class SecondOrderIntegrator(NativeBlock):
    """A double integrator: d position / dt = velocity, d velocity / dt = u, within limits of both.

    At a limit of position the velocity is reversed, v⁺ = -restitution · v⁻. If the flight that
    follows, 2 v⁺ / abs(u) at constant u, would be shorter than `rest_time`, the position rests at
    the limit instead, with a velocity of exactly 0, until u points away from the limit. A velocity
    at its limit is held while u points beyond it.

    Impacts, rest and departures, limits of velocity and resets are located within a tick. With
    ``events="tick"`` they act at ticks, and flights of up to a few ticks end in rest, at most 8.

    The output ``at_limit``, with limits of position, is 1 while the position rests at the upper
    limit, -1 at the lower one, else 0; also right after a rebound.

    Parameters
    ----------
    position, velocity
        Their values at the start and after a reset: numbers, or vectors, which fix the width.
        Parameters ``initial_position`` and ``initial_velocity``.
    limits
        ``(lower, upper)`` of the position, each a number or a vector; an infinite one does not
        limit. Parameters ``lower`` and ``upper``.
    velocity_limits
        ``(lower, upper)`` of the velocity. Parameters ``lower_velocity``, ``upper_velocity``.
    restitution
        From 0, for which every impact ends in rest, to 1.
    rest_time
        In seconds. As bounces become ever shorter, those below it end in rest; with 0 only a
        velocity of 0 does.
    reset
        Adds an input ``reset``, which sets position and velocity to their initial values when it
        rises from zero or below to above zero (``"rising"``), when it falls back (``"falling"``),
        at ``"either"``, or as long as it is above zero (``"level"``).
    """

    kernel = "second_order_integrator"
    memory_holds = True

    def __init__(
        self,
        position: Numbers = 0.0,
        velocity: Numbers = 0.0,
        *,
        limits: tuple[Numbers, Numbers] | None = None,
        velocity_limits: tuple[Numbers, Numbers] | None = None,
        restitution: float = 0.0,
        rest_time: float = 1e-6,
        reset: Literal["rising", "falling", "either", "level"] | None = None,
    ) -> None:
        if reset is not None and reset not in _EDGES:
            raise DiagramError(f"reset is one of {name_list(_EDGES)}, or None, not {reset!r}.")
        start = [
            _make_initial("position", position, reset is not None),
            _make_initial("velocity", velocity, reset is not None),
        ]
        width: Width = "n"
        for item in start:
            if not item.value.ndim:
                continue
            if width not in ("n", item.value.size):
                raise DiagramError(
                    f"`position` has {width} values, but `velocity` has {item.value.size}."
                )
            width = item.value.size
        bounds, width = make_limits(limits, width)
        speeds, width = make_limits(velocity_limits, width)
        if bounds and (bounds[0].value >= bounds[1].value).any():
            raise DiagramError(f"limits of position leave no room between them: {limits!r}.")
        speeds = [
            replace(item, name=f"{item.name}_velocity", doc=f"{item.name} limit of the velocity")
            for item in speeds
        ]
        factor = number("restitution", restitution)
        if not 0 <= factor <= 1:
            raise DiagramError(f"`restitution` is a number from 0 to 1, got {restitution!r}.")
        shortest = number("rest_time", rest_time)
        if not 0 <= shortest < np.inf:
            raise DiagramError(f"`rest_time` is 0 or positive seconds, got {rest_time!r}.")
        inputs = [Port("u", width=width, doc="acceleration")]
        outputs = [
            Port("position", width=width, unit=Derived(_times_seconds_squared, ("u",))),
            Port("velocity", width=width, unit=Derived(_times_seconds, ("u",))),
        ]
        feedthrough = []
        if reset is not None:
            inputs.append(
                Port("reset", kind=Same("reset"), doc="sets the state to its initial values")
            )
            feedthrough += [("position", "reset"), ("velocity", "reset")]
        if bounds:
            outputs.append(
                Port("at_limit", width=width, kind="integer", doc="where it rests: -1, 0 or 1")
            )
            feedthrough += [("at_limit", port.name) for port in inputs]
        super().__init__(
            inputs=inputs,
            outputs=outputs,
            parameters=[
                *start,
                parameter("restitution", factor, unit="1", doc="v⁺ / -v⁻ at a limit of position"),
                parameter("rest_time", shortest, unit="s", doc="shorter flights end in rest"),
                *bounds,
                *speeds,
            ],
            rate=CONTINUOUS,
            kernel=None if reset is None else "second_order_integrator_reset",
            feedthrough=feedthrough,
            states=lambda widths: 2 * (width if isinstance(width, int) else widths["n"]),
            integers=make_record(
                contract.SECOND_ORDER_INTEGERS,
                {
                    contract.SECOND_ORDER_EDGE: (
                        contract.SECOND_ORDER_NEVER if reset is None else _EDGES[reset]
                    ),
                    contract.SECOND_ORDER_POSITIONS: start[0].value.size,
                    contract.SECOND_ORDER_VELOCITIES: start[1].value.size,
                    contract.SECOND_ORDER_POSITION_LIMITS: bounds[0].value.size if bounds else 0,
                    contract.SECOND_ORDER_VELOCITY_LIMITS: speeds[0].value.size if speeds else 0,
                },
            ),
        )


def _make_initial(name: str, value: Any, tunable: bool) -> Parameter:
    made = parameter(f"initial_{name}", value, doc=f"{name} at the start", tunable=tunable)
    if made.value.ndim > 1:
        raise DiagramError(f"`{name}` is a number or a vector, not of shape {made.value.shape}.")
    return made
