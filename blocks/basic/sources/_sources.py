"""Sources: blocks without inputs that follow time. See also `Noise` and `Playback`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....errors import DiagramError
from ...core._block import NativeBlock
from ...core._ports import (
    CONSTANT,
    CONTINUOUS,
    TIMED,
    Kind,
    Numbers,
    Parameter,
    Port,
    Rate,
    parameter,
)
from ...core._vectors import align, require_choice, require_positive


class Constant(NativeBlock):
    """A constant: y = value.

    Parameters
    ----------
    value
        A number, a vector, or ``True`` or ``False`` for a boolean signal.
    unit
        Unit of the output.
    kind
        Of the output: ``"real"``, ``"integer"`` or ``"boolean"``; by default as the value is.
    """

    kernel = "constant"

    def __init__(
        self, value: Numbers, *, unit: str | None = None, kind: Kind | None = None
    ) -> None:
        held = parameter("value", value, unit=unit, doc="the constant")
        if kind is None:
            kind = "boolean" if np.asarray(value).dtype == np.bool_ else "real"
        _require_kind(kind, held)
        super().__init__(
            outputs=[Port("y", width=held.value.size, unit=unit, kind=kind)],
            parameters=[held],
            rate=CONSTANT,
        )


class _Source(NativeBlock):
    """A source whose parameters are numbers or vectors of one length."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        *,
        unit: str | None,
        rate: Rate,
        kind: Kind = "real",
        integers: Sequence[int] = (),
    ) -> None:
        aligned, width = align(parameters)
        super().__init__(
            outputs=[Port("y", width=width or 1, unit=unit, kind=kind)],
            parameters=aligned,
            rate=rate,
            integers=integers,
        )


class Time(NativeBlock):
    """The time: y = t, in seconds."""

    kernel = "time"
    can_be_sampled = True

    def __init__(self) -> None:
        super().__init__(outputs=[Port("y", unit="s")], rate=CONTINUOUS)


class Step(_Source):
    """A step: y = before for t < at, y = to from t = at on.

    It jumps at `at` where continuous states depend on y, else at the first tick that is not before
    it. Each parameter is a number or a vector.

    Parameters
    ----------
    at
        When it jumps, in seconds.
    to, before
        Values after and before.
    unit
        Unit of the output.
    kind
        ``"real"``, ``"integer"`` or ``"boolean"``.
    """

    kernel = "step"
    piecewise_constant = True
    can_be_sampled = True

    def __init__(
        self,
        at: Numbers = 0.0,
        to: Numbers = 1.0,
        before: Numbers = 0.0,
        *,
        unit: str | None = None,
        kind: Kind = "real",
    ) -> None:
        high = parameter("to", to, unit=unit, doc="value from `at` on")
        low = parameter("before", before, unit=unit, doc="value until then")
        _require_kind(kind, high, low)
        super().__init__(
            [parameter("at", at, unit="s", doc="when it jumps"), high, low],
            unit=unit,
            kind=kind,
            rate=TIMED,
        )


class Ramp(_Source):
    """A ramp: y = before + slope · max(t - at, 0).

    Parameters
    ----------
    slope
        Change per second; a number or a vector, as are the others.
    at
        When it begins, in seconds.
    before
        Value until then.
    unit
        Unit of the output.
    """

    kernel = "ramp"
    can_be_sampled = True

    def __init__(
        self,
        slope: Numbers = 1.0,
        at: Numbers = 0.0,
        before: Numbers = 0.0,
        *,
        unit: str | None = None,
    ) -> None:
        super().__init__(
            [
                parameter("slope", slope, doc="change per second"),
                parameter("at", at, unit="s", doc="when it begins"),
                parameter("before", before, unit=unit, doc="value until then"),
            ],
            unit=unit,
            rate=CONTINUOUS,
        )


class Sine(_Source):
    """A sine wave: y = bias + amplitude · sin(2 pi frequency t + phase).

    Parameters
    ----------
    amplitude
        A number or a vector, as are the others.
    frequency
        In Hz.
    phase
        In rad.
    bias
        Mean value.
    unit
        Unit of the output.
    """

    kernel = "sine"
    can_be_sampled = True

    def __init__(
        self,
        amplitude: Numbers = 1.0,
        frequency: Numbers = 1.0,
        phase: Numbers = 0.0,
        bias: Numbers = 0.0,
        *,
        unit: str | None = None,
    ) -> None:
        super().__init__(
            [
                parameter("amplitude", amplitude, unit=unit, doc="half the height of the wave"),
                parameter("frequency", frequency, unit="Hz", doc="cycles per second"),
                parameter("phase", phase, unit="rad", doc="at t = 0"),
                parameter("bias", bias, unit=unit, doc="mean value"),
            ],
            unit=unit,
            rate=CONTINUOUS,
        )


class Pulse(_Source):
    """A pulse train: y = low + amplitude for a fraction `duty` of each period, else y = low.

    The first pulse begins at t = delay; it jumps at ticks, so that a pulse lasts a whole number of
    them. `period` is that of the pulses; the block itself runs at every tick.

    Parameters
    ----------
    period
        From one pulse to the next, in seconds; a number or a vector, as are the others.
    duty
        Part of the period that is high, from 0 to 1.
    amplitude
        Height above `low`.
    delay
        When the first pulse begins, in seconds; the output is `low` before.
    low
        Value between pulses.
    unit
        Unit of the output.
    kind
        ``"real"``, ``"integer"`` or ``"boolean"``.
    """

    kernel = "pulse"
    piecewise_constant = True

    def __init__(
        self,
        period: Numbers = 1.0,
        duty: Numbers = 0.5,
        amplitude: Numbers = 1.0,
        delay: Numbers = 0.0,
        low: Numbers = 0.0,
        *,
        unit: str | None = None,
        kind: Kind = "real",
    ) -> None:
        span = parameter("period", period, unit="s", doc="from one pulse to the next", minimum=0.0)
        part = parameter(
            "duty",
            duty,
            unit="1",
            doc="part of the period that is high",
            minimum=0.0,
            maximum=1.0,
        )
        height = parameter("amplitude", amplitude, unit=unit, doc="height above `low`")
        base = parameter("low", low, unit=unit, doc="value between pulses")
        require_positive(span)
        if np.any((part.value < 0) | (part.value > 1)):
            raise DiagramError(f"`duty` is a part from 0 to 1, got {duty!r}.")
        _require_kind(kind, height, base)
        super().__init__(
            [span, part, height, parameter("delay", delay, unit="s", doc="first pulse"), base],
            unit=unit,
            kind=kind,
            rate=TIMED,
        )


class Chirp(_Source):
    """A sine wave of rising or falling frequency, from f0 at t = at to f1 after `duration`.

    With s = t - at from 0 to duration:

    - linear: f = f0 + (f1 - f0) s / duration
    - logarithmic: f = f0 (f1 / f0)^(s / duration)

    y = amplitude · sin(phase + 2 pi ∫ f ds). Before `at` it is held at its first value; after the
    sweep it continues at f1 without a jump in phase.

    Parameters
    ----------
    f0, f1
        First and last frequency in Hz; a number or a vector, as are the others.
    duration
        Duration of the sweep, in seconds.
    amplitude
        Half the height of the wave.
    phase
        At the beginning, in rad; pi/2 makes a cosine.
    at
        When the sweep begins, in seconds.
    method
        ``"linear"`` or ``"logarithmic"``; the latter requires positive frequencies.
    unit
        Unit of the output.
    """

    kernel = "chirp"
    can_be_sampled = True

    def __init__(
        self,
        f0: Numbers,
        f1: Numbers,
        duration: Numbers,
        amplitude: Numbers = 1.0,
        phase: Numbers = 0.0,
        at: Numbers = 0.0,
        *,
        method: str = "linear",
        unit: str | None = None,
    ) -> None:
        logarithmic = require_choice("method", method, ("linear", "logarithmic"))
        least = 0.0 if logarithmic else None
        first = parameter("f0", f0, unit="Hz", doc="first frequency", minimum=least)
        last = parameter("f1", f1, unit="Hz", doc="last frequency", minimum=least)
        span = parameter("duration", duration, unit="s", doc="of the sweep", minimum=0.0)
        require_positive(span)
        if logarithmic:
            require_positive(first)
            require_positive(last)
        super().__init__(
            [
                first,
                last,
                span,
                parameter("amplitude", amplitude, unit=unit, doc="half the height of the wave"),
                parameter("phase", phase, unit="rad", doc="at the beginning"),
                parameter("at", at, unit="s", doc="when the sweep begins"),
            ],
            unit=unit,
            integers=[logarithmic],
            rate=CONTINUOUS,
        )


def _require_kind(kind: Kind, *values: Parameter) -> None:
    """Check that a source of this kind can have these values."""
    require_choice("kind", kind, ("real", "integer", "boolean"))
    for item in values:
        if kind == "integer" and np.any(item.value != np.round(item.value)):
            raise DiagramError(f"`{item.name}` of an integer signal is whole, got {item.value}.")
        if kind == "boolean" and not np.isin(item.value, (0.0, 1.0)).all():
            raise DiagramError(f"`{item.name}` of a boolean signal is 0 or 1, got {item.value}.")
