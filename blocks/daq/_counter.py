"""A counter input: pulses counted, and timed for a speed."""

from __future__ import annotations

from ...errors import DiagramError
from ..core._block import NativeBlock
from ..core._ports import SAMPLED, Port, number, parameter, periodic
from ..core._vectors import require_one_positive, require_whole

_MOST = 1_000_000


class Tachometer(NativeBlock):
    """A counter input with a timer: the speed of a shaft from the pulses of a pickup.

    An edge is an upward crossing of `level` after u has been more than `hysteresis` below it. Its
    time is interpolated linearly between the two samples around it. With n pulses, `average` or as
    many as have arrived::

        frequency = n / (time of the last edge - time of n edges before)
        speed = 2π frequency / pulses

    Between edges, the frequency is at most the value that an edge at the present time would give,
    and 0 after `timeout`. Outputs refer to the samples before the present one. Each pulse needs two
    samples, one on either side of the level: beyond half the sample rate pulses are lost. Edges of
    a square wave are timed to within a sample.

    Parameters
    ----------
    pulses
        Pulses per revolution.
    level, hysteresis
        In `unit`.
    average
        Pulses over which the speed is averaged: `pulses` for a whole revolution, which cancels
        the tooth errors of the wheel.
    clock
        Frequency of the timer in Hz, whose period is the time resolution of edges. Without it,
        edge times are not rounded.
    timeout
        In seconds.
    unit
        Unit of u.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    """

    kernel = "tachometer"
    designs_with_period = True

    def __init__(
        self,
        pulses: int,
        level: float = 0.0,
        *,
        hysteresis: float = 0.0,
        average: int = 1,
        clock: float | None = None,
        timeout: float = 1.0,
        unit: str = "V",
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        slack = number("hysteresis", hysteresis, finite=True)
        if slack < 0:
            raise DiagramError(f"`hysteresis` is 0 or above, got {hysteresis!r}.")
        rate = 0.0 if clock is None else require_one_positive("clock", clock, "Hz")
        super().__init__(
            inputs=[Port("u", unit=unit, doc="pulses")],
            outputs=[
                Port("speed", unit="rad/s", doc="of the shaft"),
                Port("frequency", unit="Hz", doc="of the pulses"),
                Port("count", unit="count", kind="integer", doc="edges so far"),
            ],
            parameters=[
                parameter("level", number("level", level, finite=True), unit=unit, doc="of edges"),
                parameter("hysteresis", slack, unit=unit, doc="below the level"),
                parameter(
                    "pulses",
                    require_whole("pulses", pulses, 1, _MOST),
                    doc="per revolution",
                    tunable=False,
                ),
                parameter("clock", rate, unit="Hz", doc="of the timer; 0: any time"),
                parameter(
                    "timeout",
                    require_one_positive("timeout", timeout, "s"),
                    unit="s",
                    doc="without an edge",
                ),
            ],
            integers=[require_whole("average", average, 1, _MOST)],
            feedthrough=False,
            rate=periodic(period, offset, SAMPLED),
        )
