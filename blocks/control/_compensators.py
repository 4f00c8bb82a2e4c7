"""Compensators: lead, lag and notch filters for a control loop."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ...errors import DiagramError
from ..basic.dynamics._linear import AbstractStateSpace
from ..basic.dynamics._realization import Realization, realize, scale
from ..core._ports import CONTINUOUS, number, periodic
from ..core._vectors import require_one_positive


class AbstractCompensator(AbstractStateSpace):
    """A transfer function in s, continuous or discretized by Tustin's method."""

    kernel = "state_space"
    smooth_memory = True
    designs_with_period = True

    def __init__(
        self,
        num: list[float],
        den: list[float],
        exact: float,
        *,
        unit: str | None,
        period: float | None,
        offset: float,
    ) -> None:
        rate = periodic(period, offset, CONTINUOUS)
        if period is None:
            system = realize(np.array(num), np.array(den))
        else:
            system = _sample(np.array(num), np.array(den), exact, rate.period)
        kernel = None if period is None else "discrete_state_space"
        super().__init__(scale(system), 0.0, rate, unit, False, kernel=kernel)


class LeadLag(AbstractCompensator):
    """Lead or lag: y = gain (1 + s / zero) / (1 + s / pole) u, starting from rest.

    Lead with zero < pole: phase is added around sqrt(zero pole). Lag with zero > pole. With a
    period, by Tustin's method, exact at that frequency.

    Parameters
    ----------
    zero, pole
        In rad/s, positive.
    gain
        At low frequencies.
    unit
        Unit of the output.
    period, offset
        Sample time in seconds; continuous if not given.
    """

    def __init__(
        self,
        zero: float,
        pole: float,
        gain: float = 1.0,
        *,
        unit: str | None = None,
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        zero, pole = require_one_positive("zero", zero), require_one_positive("pole", pole)
        factor = number("gain", gain, finite=True)
        middle = float(np.sqrt(zero * pole))
        super().__init__(
            [factor / zero, factor], [1.0 / pole, 1.0], middle,
            unit=unit, period=period, offset=offset,
        )  # fmt: skip

    @classmethod
    def at(
        cls,
        frequency: float,
        phase: float,
        gain: float = 1.0,
        *,
        unit: str | None = None,
        period: float | None = None,
        offset: float = 0.0,
    ) -> Self:
        """Return the one that adds `phase` in rad at a frequency in Hz, where its gain is `gain`.

        A positive phase leads, a negative one lags; the more, the larger pole / zero: 3 for 30°.
        """
        phase, gain = number("phase", phase), number("gain", gain, finite=True)
        if not abs(phase) < 0.5 * np.pi:
            raise DiagramError(
                f"`phase` of one LeadLag is between -π/2 and π/2 rad, got {phase!r}. Put two in "
                f"series for more."
            )
        middle = 2 * np.pi * require_one_positive("frequency", frequency)
        ratio = float(np.sqrt((1 + np.sin(phase)) / (1 - np.sin(phase))))
        zero, pole = middle / ratio, middle * ratio
        return cls(zero, pole, gain / ratio, unit=unit, period=period, offset=offset)


class Notch(AbstractCompensator):
    """A notch: y = (s² + depth B s + ω²) / (s² + B s + ω²) u, starting from rest.

    ω = 2π frequency, B = 2π bandwidth: its gain is `depth` at the frequency and 1 far from it; with
    depth 0 it is -3 dB over the bandwidth. With a period, by Tustin's method, exact at the
    frequency.

    Parameters
    ----------
    frequency, bandwidth
        In Hz, positive.
    depth
        Gain at the frequency: 0 takes it out altogether.
    unit
        Unit of the output.
    period, offset
        Sample time in seconds; continuous if not given.
    """

    def __init__(
        self,
        frequency: float,
        bandwidth: float,
        depth: float = 0.0,
        *,
        unit: str | None = None,
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        middle = 2 * np.pi * require_one_positive("frequency", frequency)
        width = 2 * np.pi * require_one_positive("bandwidth", bandwidth)
        depth = number("depth", depth)
        if not 0 <= depth < 1:
            raise DiagramError(f"`depth` of a Notch is a gain from 0 to below 1, got {depth!r}.")
        super().__init__(
            [1.0, depth * width, middle**2], [1.0, width, middle**2], middle,
            unit=unit, period=period, offset=offset,
        )  # fmt: skip


def _sample(num: Any, den: Any, exact: float, period: float) -> Realization:
    """Return the sampled form with s = k (z - 1) / (z + 1), k such that it is exact at `exact`."""
    from scipy.signal import bilinear

    if not exact * period < np.pi:
        raise DiagramError(
            f"{exact / (2 * np.pi):g} Hz is not below half the sample rate, {0.5 / period:g} Hz: "
            f"take a period below {np.pi / exact:g} s."
        )
    rate = 0.5 * exact / np.tan(0.5 * exact * period)
    numerator, denominator = bilinear(num, den, rate)
    return realize(numerator, denominator)
