"""A trigger with a pre-trigger buffer."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DiagramError
from ..core._block import NativeBlock
from ..core._ports import SAMPLED, Numbers, Port, number, parameter
from ..core._vectors import require_choice, require_whole

EVENTS = ("above", "below", "rising", "falling", "leave", "enter")
_WINDOWS = ("leave", "enter")
_MOST_SAMPLES = 10_000_000


class Trigger(NativeBlock):
    """A trigger that keeps the samples around an event: `pre` before it and `post` from it on.

    - above, below: the source is beyond the level
    - rising, falling: it passes the level, after having been further than `hysteresis` away from it
      on the other side
    - leave, enter: it goes out of the window [level[0], level[1]], or into it

    An event counts only once `pre` samples are there. What was captured is
    ``result.capture("name of the block")``, a result of its own with `pre` + `post` samples.
    Outputs tell of the samples before the present one; the time of an edge lies on the line between
    the two samples around it.

    Parameters
    ----------
    level
        In the unit of u; a pair (lower, upper) for a window. May be set while running, as ``first``
        and ``second``, the latter being the hysteresis where there is no window.
    event
        ``"above"``, ``"below"``, ``"rising"``, ``"falling"``, ``"leave"`` or ``"enter"``.
    pre, post
        Numbers of samples, from 0 and from 1.
    hysteresis
        For edges, in the unit of u.
    source
        Which element of u is watched.
    unit
        Of u.
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
                Port("u", "n", unit, doc="what is captured"),
                Port("arm", kind="boolean", default=1.0, doc="false: forget all, and wait"),
            ],
            outputs=[
                Port("triggered", kind="boolean", doc="whether the event was there"),
                Port("ready", kind="boolean", doc="whether the record is complete"),
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
