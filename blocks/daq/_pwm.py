"""Pulse width modulation: a timer that gives pulses, and one that measures them."""

from __future__ import annotations

from ...errors import DiagramError
from ..core._block import NativeBlock
from ..core._ports import EVERY_TICK, Port, Widths, parameter
from ..core._vectors import require_choice, require_one_positive, require_whole

_MOST_COUNTS = 2**53


class PWMOutput(NativeBlock):
    """Pulses whose width is the duty: y = high for a part `duty` of each period of the carrier.

    The duty, from 0 to 1, is taken over once a period, in the tick in which it begins, as a timer
    does with its shadow register. Edges lie between ticks:

    - mean: y is the mean over the tick that begins, so that the mean of y is exact, and a tick with
      a value between low and high encodes the time of the edge within it
    - tick: y is the level at the tick, and pulses are as wide as whole ticks allow

    Parameters
    ----------
    frequency
        Frequency of the carrier in Hz, at most half the tick rate.
    low, high
        Levels in `unit`.
    counts
        Resolution of the timer: the duty is a multiple of 1 / counts. Without it, any duty.
    edges
        ``"mean"`` or ``"tick"``.
    align
        ``"edge"``: pulses begin with the period; ``"center"``: they lie in its middle.
    unit
        Unit of y.
    """

    kernel = "pwm_output"

    def __init__(
        self,
        frequency: float,
        *,
        low: float = 0.0,
        high: float = 1.0,
        counts: int | None = None,
        edges: str = "mean",
        align: str = "edge",
        unit: str = "V",
    ) -> None:
        _check_levels(low, high)
        carrier = parameter("frequency", frequency, unit="Hz", doc="of the carrier", tunable=False)
        frequency = require_one_positive("frequency", frequency, "Hz")
        if counts is not None:
            require_whole("counts", counts, 1, _MOST_COUNTS)
        modes = [
            1 - require_choice("edges", edges, ("mean", "tick")),
            require_choice("align", align, ("edge", "center")),
        ]

        def integers(widths: Widths) -> list[int]:
            if frequency * widths.step > 0.5 * (1 + 1e-9):
                raise DiagramError(
                    f"a carrier of {frequency:g} Hz needs a step of at most {0.5 / frequency:g} s, "
                    f"two in a period; the step is {widths.step:g} s."
                )
            return modes

        super().__init__(
            inputs=[Port("duty", "n", "1", doc="from 0 to 1")],
            outputs=[Port("y", "n", unit, doc="level of the pin")],
            parameters=[
                carrier,
                parameter("low", low, unit=unit, doc="level between pulses"),
                parameter("high", high, unit=unit, doc="level of pulses"),
                parameter("counts", counts or 0, doc="of a period; 0: any duty", tunable=False),
            ],
            integers=integers,
            rate=EVERY_TICK,
        )


class PWMInput(NativeBlock):
    """Duty and frequency of pulses, measured from rising edge to rising edge.

    Outputs change in the tick after a rising edge. Without one for `timeout` the duty is 0 or 1,
    as the level is, and the frequency 0.

    - mean: u is the mean over the tick that begins, as a `PWMOutput` gives it. A value between low
      and high places the edge within its tick; pulses and gaps shorter than a tick are placed to
      within that tick, their width is exact.
    - tick: u is a level; an edge is at the tick where it is first seen beyond half-way.

    Parameters
    ----------
    low, high
        Levels in `unit`.
    edges
        ``"mean"`` or ``"tick"``.
    clock
        Of the capturing timer in Hz: edges are at whole periods of it. Without it, any time.
    timeout
        In seconds.
    unit
        Unit of u.
    """

    kernel = "pwm_input"

    def __init__(
        self,
        *,
        low: float = 0.0,
        high: float = 1.0,
        edges: str = "mean",
        clock: float | None = None,
        timeout: float = 0.1,
        unit: str = "V",
    ) -> None:
        _check_levels(low, high)
        clock = None if clock is None else require_one_positive("clock", clock, "Hz")
        timeout = require_one_positive("timeout", timeout, "s")
        super().__init__(
            inputs=[Port("u", 1, unit)],
            outputs=[
                Port("duty", unit="1", doc="part of a period that is high"),
                Port("frequency", unit="Hz", doc="of the rising edges"),
                Port("valid", kind="boolean", doc="whether a whole period was measured"),
            ],
            parameters=[
                parameter("low", low, unit=unit, doc="level between pulses"),
                parameter("high", high, unit=unit, doc="level of pulses"),
                parameter("clock", clock or 0.0, unit="Hz", doc="of the timer; 0: any time"),
                parameter("timeout", timeout, unit="s", doc="without an edge"),
            ],
            integers=[1 - require_choice("edges", edges, ("mean", "tick"))],
            feedthrough=False,
            rate=EVERY_TICK,
        )


def _check_levels(low: float, high: float) -> None:
    ends = parameter("levels", [low, high]).value
    if not ends[0] < ends[1]:
        raise DiagramError(f"`low` must be below `high`, got {low!r} and {high!r}.")
