"""Delays that keep a ring of samples."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ....errors import DiagramError
from ...core._block import NativeBlock
from ...core._ports import CONTINUOUS, SAMPLED, Numbers, Port, Same, Widths, parameter
from ...core._state import make_initial

_MOST_SAMPLES = 10_000_000


class Delay(NativeBlock):
    """A delay of several samples: y[n] = u[n - samples].

    Parameters
    ----------
    samples
        How many: a whole number from 1.
    initial
        Output for the first `samples` samples: a number, or a vector, which fixes the width.
    """

    kernel = "delay"

    def __init__(self, samples: int, initial: Numbers = 0.0) -> None:
        samples = check_samples("Delay", samples)
        start, width = make_initial(initial, "output before the first sample arrives")
        super().__init__(
            inputs=[Port("u", width=width, unit=Same(), kind=Same())],
            outputs=[Port("y", width=width, unit=Same(), kind=Same())],
            parameters=[start],
            rate=SAMPLED,
            feedthrough=False,
            integers=[samples],
        )


class TransportDelay(NativeBlock):
    """A delay in time: y(t) = u(t - delay), and initial before u has arrived.

    The values of u at the ticks are stored, with linear interpolation between them: for a smooth u
    the error is at most step^2 max|u''| / 8; with ``interpolation="cubic"`` it is of the order of
    step^4 times the fourth derivative of u. A delay of whole steps reproduces the stored values
    exactly at ticks. A jump of u arrives as a ramp that is one step long. In an enabled subsystem,
    the time of the delay is paused while the subsystem is.

    Parameters
    ----------
    delay
        In seconds, not less than the step of the diagram. Later changes are clipped to the
        range from the step to `longest`.
    initial
        Output before t = start + delay: a number, or a vector, which fixes the width.
    longest
        Up to which `delay` may be set after compilation, rounded up to whole steps; by default
        `delay` itself.
    interpolation
        ``"linear"``, or ``"cubic"`` for smooth signals: a loop with a delay of a whole number of
        steps, at least three, is then solved with the order of the solver, up to 4. A cubic
        overshoots at jumps.
    """

    kernel = "transport_delay"

    def __init__(
        self,
        delay: float,
        initial: Numbers = 0.0,
        *,
        longest: float | None = None,
        interpolation: Literal["linear", "cubic"] = "linear",
    ) -> None:
        if interpolation not in ("linear", "cubic"):
            raise DiagramError(f"interpolation is 'linear' or 'cubic', not {interpolation!r}.")
        is_cubic = int(interpolation == "cubic")
        time = parameter("delay", delay, unit="s", doc="how late u arrives")
        if time.value.ndim or not time.value > 0:
            raise DiagramError(f"a TransportDelay's delay must be positive seconds, got {delay!r}.")
        most = float(delay) if longest is None else float(longest)
        if not (np.isfinite(most) and most >= delay):
            raise DiagramError(
                f"a TransportDelay's longest delay must be at least its delay, {delay:g} s, "
                f"got {longest!r}."
            )
        start, width = make_initial(initial, "output before u has arrived")

        def room(widths: Widths) -> int:
            step = widths.step
            if delay < step * (1 - 1e-9):
                raise DiagramError(
                    f"a TransportDelay of {delay:g} s is shorter than the step, {step:g} s: its "
                    f"output would need a value of u that is not there yet. Use a step of at most "
                    f"{delay:g} s, or leave the block out."
                )
            if most / step > _MOST_SAMPLES:
                raise DiagramError(
                    f"a TransportDelay of up to {most:g} s keeps {most / step:.3g} samples at a "
                    f"step of {step:g} s; at most {_MOST_SAMPLES} fit. Use a larger step, or a "
                    f"Delay with a longer period."
                )
            # Both ends of the interval in which t - delay lies, and one for rounding; for a cubic
            # one more.
            return math.ceil(most / step) + 2 + is_cubic

        super().__init__(
            inputs=[Port("u", width=width, unit=Same())],
            outputs=[Port("y", width=width, unit=Same())],
            parameters=[time, start],
            rate=CONTINUOUS,
            feedthrough=False,
            integers=lambda widths: [room(widths), is_cubic],
        )


def check_samples(block: str, samples: int) -> int:
    """Return a number of samples if it is a whole one in range."""
    whole = isinstance(samples, int | np.integer) and not isinstance(samples, bool)
    if not whole or not 1 <= samples <= _MOST_SAMPLES:
        raise DiagramError(
            f"{block} needs a whole number of samples from 1 to {_MOST_SAMPLES}, got {samples!r}."
        )
    return int(samples)
