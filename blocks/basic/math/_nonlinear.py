"""Limits, play and steps. Parameters are numbers, or vectors with one value for each element."""

from __future__ import annotations

import numpy as np

from ....errors import DiagramError
from ...core._block import NativeBlock
from ...core._ports import SAMPLED, SWITCHING, Numbers, Port, Same, parameter
from ...core._vectors import align, limits, require_order, require_positive


class Saturation(NativeBlock):
    """A limit: y = u between lower and upper, else the nearer of them. In the unit of u.

    Parameters
    ----------
    lower, upper
        Limits; ``-inf`` or ``inf`` for none.
    """

    kernel = "saturation"
    elementwise = True

    def __init__(self, lower: Numbers, upper: Numbers) -> None:
        parameters, width = align(
            [
                limits("lower", lower, doc="smallest output"),
                limits("upper", upper, doc="largest output"),
            ]
        )
        require_order(*parameters)
        super().__init__(
            inputs=[Port("u", width=width or "n", unit=Same())],
            outputs=[
                Port("y", width=width or "n", unit=Same(), limits=("lower", "upper")),
            ],
            parameters=parameters,
        )


class DeadZone(NativeBlock):
    """A dead zone: y = 0 from lower to upper, u - upper above, u - lower below. In the unit of u.

    Parameters
    ----------
    lower, upper
        The zone.
    """

    kernel = "dead_zone"
    elementwise = True

    def __init__(self, lower: Numbers, upper: Numbers) -> None:
        parameters, width = align(
            [
                parameter("lower", lower, doc="lower end of the zone"),
                parameter("upper", upper, doc="upper end of the zone"),
            ]
        )
        require_order(*parameters)
        super().__init__(
            inputs=[Port("u", width=width or "n", unit=Same())],
            outputs=[Port("y", width=width or "n", unit=Same())],
            parameters=parameters,
        )


class Quantizer(NativeBlock):
    """Steps: y = interval · round(u / interval), halves away from zero. In the unit of u.

    Parameters
    ----------
    interval
        Height of a step.
    events
        Whether the instants at which y changes are located within a tick, where continuous states
        depend on y. By default y is a sampled signal, as that of a converter.
    """

    kernel = "quantizer"
    piecewise_constant = True

    def __init__(self, interval: Numbers, *, events: bool = False) -> None:
        parameters, width = align(
            [parameter("interval", interval, doc="height of a step", minimum=0.0)]
        )
        require_positive(parameters[0])
        super().__init__(
            inputs=[Port("u", width=width or "n", unit=Same())],
            outputs=[Port("y", width=width or "n", unit=Same())],
            parameters=parameters,
            integers=[int(events)],
            rate=SWITCHING if events else SAMPLED,
        )


class Relay(NativeBlock):
    """A switch with hysteresis: y = high from u >= on until u <= off, else y = low.

    Parameters
    ----------
    on, off
        Where it switches on, and off again; `off` is not above `on`.
    high, low
        Outputs while it is on, and off.
    initial
        Whether it is on at the start, if u lies between `off` and `on` there.
    unit
        Unit of the output; the input takes any.
    """

    kernel = "relay"
    piecewise_constant = True
    memory_is_mode = True

    def __init__(
        self,
        on: Numbers,
        off: Numbers,
        high: Numbers = 1.0,
        low: Numbers = 0.0,
        *,
        initial: Numbers = False,
        unit: str | None = None,
    ) -> None:
        parameters, width = align(
            [
                parameter("on", on, doc="switches on from here"),
                parameter("off", off, doc="switches off from here"),
                parameter("high", high, unit=unit, doc="output while on"),
                parameter("low", low, unit=unit, doc="output while off"),
                parameter("initial", initial, doc="1 if on at the start", tunable=False),
            ]
        )
        require_order(parameters[1], parameters[0])
        super().__init__(
            inputs=[Port("u", width=width or "n")],
            outputs=[Port("y", width=width or "n", unit=unit)],
            parameters=parameters,
            rate=SWITCHING,
        )


class RateLimiter(NativeBlock):
    """A limit of the rate of change, sample by sample. In the unit of u.

    y[n] = u[n], but at least y[n-1] - falling · T and at most y[n-1] + rising · T, where T is the
    sample time. Where continuous states depend on y, it follows u at each instant, at most with
    these rates; the instants at which it leaves u and meets it again are located within a tick.

    Parameters
    ----------
    rising, falling
        Largest rates up and down, per second, both positive; `falling` is `rising` if not given.
    initial
        y[-1], one sample before the first; if not given, y[0] = u[0].
    """

    kernel = "rate_limiter"

    def __init__(
        self, rising: Numbers, falling: Numbers | None = None, initial: Numbers | None = None
    ) -> None:
        given = [
            limits("rising", rising, doc="largest rate up, per second", minimum=0.0),
            limits(
                "falling",
                rising if falling is None else falling,
                doc="largest rate down, per second",
                minimum=0.0,
            ),
        ]
        if initial is not None:
            given.append(
                parameter("initial", initial, doc="output before the first sample", tunable=False)
            )
        parameters, width = align(given)
        for rate in parameters[:2]:
            require_positive(rate)
        super().__init__(
            inputs=[Port("u", width=width or "n", unit=Same())],
            outputs=[Port("y", width=width or "n", unit=Same())],
            parameters=parameters,
            integers=[int(initial is not None)],
            rate=SWITCHING,
        )


class Backlash(NativeBlock):
    """Play: y stands still until u has crossed it, then follows half its width behind.

    y[n] = y[n-1], but at least u[n] - width / 2 and at most u[n] + width / 2. In the unit of u.
    Where continuous states depend on y, the instants at which u turns and at which it has crossed
    the play are located within a tick.

    Parameters
    ----------
    width
        Of the play.
    initial
        y before the first sample.
    """

    kernel = "backlash"

    def __init__(self, width: Numbers, initial: Numbers = 0.0) -> None:
        parameters, length = align(
            [
                parameter("width", width, doc="of the play"),
                parameter("initial", initial, doc="output before the first sample", tunable=False),
            ]
        )
        if np.any(parameters[0].value < 0):
            raise DiagramError(f"`width` of a Backlash must not be negative, got {width!r}.")
        super().__init__(
            inputs=[Port("u", width=length or "n", unit=Same())],
            outputs=[Port("y", width=length or "n", unit=Same())],
            parameters=parameters,
            rate=SWITCHING,
        )
