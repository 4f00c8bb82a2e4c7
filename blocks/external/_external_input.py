"""`ExternalInput`: placeholder in a diagram for something that is not simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import DiagramError, name_list, suggest
from ..core._block import NativeBlock
from ..core._ports import EVERY_TICK, Numbers, Port, Rate, parameter

RECEIVED = "received"
"""The parameter of an `ExternalInput` block that holds the values of its outputs, port after
port.
"""


class ExternalInput(NativeBlock):
    """Interface to the outside: outputs are set from there at each tick, inputs are sent there.

    The placeholder for a block that is a real device, or runs in a separate worker. Its outputs
    hold their last values until new ones arrive, starting from the initial values.

    Parameters
    ----------
    inputs, outputs
        The ports, of fixed width, unit and kind.
    start
        First values of outputs by name; zero for those not named.
    rate
        Rate at which received values are applied; every tick if not given.
    """

    kernel = "external_input"

    def __init__(
        self,
        inputs: Sequence[Port] = (),
        outputs: Sequence[Port] = (),
        *,
        start: Mapping[str, Numbers] | None = None,
        rate: Rate = EVERY_TICK,
    ) -> None:
        if not outputs and not inputs:
            raise DiagramError("ExternalInput needs at least one port.")
        for port in (*inputs, *outputs):
            if not isinstance(port.width, int):
                raise DiagramError(
                    f"ExternalInput needs ports of fixed width, unlike `{port.name}`."
                )
        first = _first_values(outputs, start or {})
        held = [parameter(RECEIVED, first, doc="values received from outside")] if outputs else []
        super().__init__(
            inputs=inputs, outputs=outputs, parameters=held, rate=rate, feedthrough=False
        )


class RealTime(ExternalInput):
    """How a real-time run keeps up with its clock, as signals; offline they are all 0.

    Every real-time run has one, named ``realtime``, unless the diagram has one itself.

    Outputs: ``lateness`` of this tick and ``execution`` time of the last one in s, ``overruns`` so
    far, ``age`` in ticks of the oldest data of a device, number of devices ``lost``.
    """

    def __init__(self) -> None:
        super().__init__(
            outputs=[
                Port("lateness", unit="s", doc="from the deadline to the start of this tick"),
                Port("execution", unit="s", doc="that the last tick took"),
                Port("overruns", kind="integer", doc="ticks that ended after the next deadline"),
                Port("age", kind="integer", doc="of the oldest data of a device, in ticks"),
                Port("lost", kind="integer", doc="devices that are silent or gone"),
            ]
        )


def _first_values(outputs: Sequence[Port], start: Mapping[str, Any]) -> list[float]:
    names = [port.name for port in outputs]
    for name in start:
        if name not in names:
            raise DiagramError(
                f"ExternalInput has no output `{name}` to start.{suggest(name, names)} "
                f"Outputs: {name_list(names)}."
            )
    values: list[float] = []
    for port in outputs:
        given = np.atleast_1d(np.asarray(start.get(port.name, 0.0), dtype=np.float64)).ravel()
        if given.size not in (1, port.width):
            raise DiagramError(
                f"output `{port.name}` of ExternalInput has width {port.width}, but {given.size} "
                f"values "
                f"to start with."
            )
        values += np.broadcast_to(given, (port.width,)).tolist()  # type: ignore[arg-type]
    return values
