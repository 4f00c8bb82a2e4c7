"""A trigger with a pre-trigger buffer."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _contract as contract
from ...errors import DiagramError
from ..core._block import NativeBlock
from ..core._ports import SAMPLED, Numbers, Port, number, parameter
from ..core._vectors import require_choice, require_whole

EVENTS = {
    "above": contract.TRIGGER_ABOVE,
    "below": contract.TRIGGER_BELOW,
    "rising": contract.TRIGGER_RISING,
    "falling": contract.TRIGGER_FALLING,
    "leave": contract.TRIGGER_LEAVE,
    "enter": contract.TRIGGER_ENTER,
}
_WINDOWS = ("leave", "enter")
_MOST_SAMPLES = 10_000_000


class Trigger(NativeBlock):
    """A trigger that captures the samples around an event: `pre` before it and `post` from it on.

    - above, below: the source is beyond the level
    - rising, falling: it crosses the level, after having been on the other side by more than
      `hysteresis`
    - leave, enter: it leaves or enters the window [level[0], level[1]]

    An event is accepted only after `pre` samples are available. The capture is
    ``result.capture("name of the block")``, a separate result with `pre` + `post` samples.
    Outputs refer to the samples before the present one. The time of an edge is interpolated
    linearly between the two samples around it.

    Parameters
    ----------
    level
        Level in the unit of u; a pair (lower, upper) for a window. It may be set during a run, as
        ``first`` and ``second``; without a window, ``second`` is the hysteresis.
    event
        ``"above"``, ``"below"``, ``"rising"``, ``"falling"``, ``"leave"`` or ``"enter"``.
    pre, post
        Numbers of samples; `pre` at least 0 and `post` at least 1.
    hysteresis
        For edges, in the unit of u.
    source
        Index of the element of u that is monitored.
    unit
        Unit of u.
    """

    kernel = "trigger"

    def __init__(
        self,
        level: Numbers,
        event: str = "rising",
        *,
        pre: int = 100,
        post: int = 400,
        hysteresis: float = 0.0,
        source: int = 0,
        unit: str | None = None,
    ) -> None:
        kind = require_choice("event", event, EVENTS)
        values = parameter("level", level).value
        if event in _WINDOWS:
            if values.shape != (2,) or not values[0] < values[1]:
                raise DiagramError(
                    f"the level of a window is a pair (lower, upper) with lower < upper, got "
                    f"{level!r}."
                )
            first, second = values.tolist()
        elif values.ndim:
            raise DiagramError(f"the level of event {event!r} is one number, got {level!r}.")
        else:
            first, second = float(values), number("hysteresis", hysteresis)
            if not 0 <= second < np.inf:
                raise DiagramError(f"`hysteresis` is 0 or more, got {hysteresis!r}.")
        for name, count, least in (("pre", pre, 0), ("post", post, 1), ("source", source, 0)):
            require_whole(name, count, least, _MOST_SAMPLES)

        def integers(widths: Any) -> list[int]:
            if source >= widths["n"]:
                raise DiagramError(
                    f"source {source} is not among the {widths['n']} elements of u, which are 0 to "
                    f"{widths['n'] - 1}."
                )
            return [kind, pre, post, source]

        super().__init__(
            inputs=[
                Port("u", "n", unit, doc="signals to capture"),
                Port("arm", kind="boolean", default=1.0, doc="false: discard all samples and wait"),
            ],
            outputs=[
                Port("triggered", kind="boolean", doc="whether the event has occurred"),
                Port("ready", kind="boolean", doc="whether the capture is complete"),
                Port("time", unit="s", doc="of the event; 0 before it"),
            ],
            parameters=[
                parameter("first", first, unit=unit, doc="level, or lower end of the window"),
                parameter("second", second, unit=unit, doc="hysteresis, or upper end"),
            ],
            integers=integers,
            feedthrough=False,
            rate=SAMPLED,
        )
