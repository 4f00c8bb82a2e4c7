"""The segments of a motion: powers of the part of its length that has passed, and a sine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_POWERS = 8


@dataclass(frozen=True, slots=True)
class Push:
    """A piece of acceleration: start + rise s + amplitude sin(pulsation s + phase), s from 0 to 1.

    `length` is the length of the piece, in the independent variable of the motion.
    """

    length: float
    start: float = 0.0
    rise: float = 0.0
    amplitude: float = 0.0
    pulsation: float = 1.0
    phase: float = 0.0


def integrate(pushes: Sequence[Push]) -> Array:
    """Return rows for the kernel: the motion from rest at 0 that these accelerations make."""
    rows, begin, position, velocity = [], 0.0, 0.0, 0.0
    for push in pushes:
        if push.length <= 0.0:
            continue
        square, w = push.length**2, push.pulsation
        wave = push.amplitude * square / w**2
        powers = np.zeros(_POWERS)
        powers[:4] = (
            position + wave * np.sin(push.phase),
            push.length * velocity + wave * w * np.cos(push.phase),
            square * push.start / 2,
            square * push.rise / 6,
        )
        rows.append([begin, push.length, *powers, -wave, w, push.phase])
        position = powers.sum() - wave * np.sin(w + push.phase)
        slope = powers[1] + 2 * powers[2] + 3 * powers[3] - wave * w * np.cos(w + push.phase)
        velocity = slope / push.length
        begin += push.length
    return np.array(rows)


def polynomial(*powers: float) -> Array:
    """Return the row of a motion over length 1 that is a polynomial, from its constant on."""
    filled = np.zeros(_POWERS)
    filled[: len(powers)] = powers
    return np.array([[0.0, 1.0, *filled, 0.0, 1.0, 0.0]])


def stretch(
    rows: Array, length: float, lift: float, begin: float = 0.0, base: float = 0.0
) -> Array:
    """Return a motion over length 1 by 1 as one over a length by a lift, from somewhere on."""
    made = rows.copy()
    made[:, 0] = begin + length * made[:, 0]
    made[:, 1] *= length
    made[:, 2:11] *= lift
    made[:, 2] += base
    return made


def _cycloidal() -> Array:
    return integrate([Push(1.0, amplitude=2 * np.pi, pulsation=2 * np.pi)])


def _modified_sine() -> Array:
    """Return quarters of a fast sine at both ends, a half of a slow one between: peak 4π²/(4+π)."""
    peak = 4 * np.pi**2 / (4 + np.pi)
    return integrate(
        [
            Push(1 / 8, amplitude=peak, pulsation=np.pi / 2),
            Push(3 / 4, amplitude=peak, pulsation=np.pi, phase=np.pi / 2),
            Push(1 / 8, amplitude=peak, pulsation=np.pi / 2, phase=3 * np.pi / 2),
        ]
    )


def _modified_trapezoid() -> Array:
    """Return constant acceleration joined by quarters of a sine: peak 8π/(2+π)."""
    peak = 8 * np.pi / (2 + np.pi)
    return integrate(
        [
            Push(1 / 8, amplitude=peak, pulsation=np.pi / 2),
            Push(1 / 4, start=peak),
            Push(1 / 4, amplitude=peak, pulsation=np.pi, phase=np.pi / 2),
            Push(1 / 4, start=-peak),
            Push(1 / 8, amplitude=peak, pulsation=np.pi / 2, phase=3 * np.pi / 2),
        ]
    )


LAWS: dict[str, Callable[[], Array]] = {
    "cycloidal": _cycloidal,
    "modified sine": _modified_sine,
    "modified trapezoid": _modified_trapezoid,
    "3-4-5": lambda: polynomial(0, 0, 0, 10, -15, 6),
    "4-5-6-7": lambda: polynomial(0, 0, 0, 0, 35, -84, 70, -20),
}
"""Motions from rest at 0 to rest at 1 over length 1."""


def make_trapezoid(distance: float, velocity: float, rising: float, falling: float) -> Array:
    """Return the fastest motion over a distance with bounds of velocity and accelerations."""
    sign, distance = np.sign(distance), abs(distance)
    # Where full velocity is not reached, v²/2 (1/rising + 1/falling) = distance.
    peak = min(velocity, float(np.sqrt(2 * distance / (1 / rising + 1 / falling))))
    cruise = distance / peak - peak / 2 * (1 / rising + 1 / falling) if peak == velocity else 0.0
    return integrate(
        [
            Push(peak / rising, start=sign * rising),
            Push(cruise),
            Push(peak / falling, start=-sign * falling),
        ]
    )


def make_s_curve(distance: float, velocity: float, acceleration: float, jerk: float) -> Array:
    """Return the fastest motion over a distance with bounds of velocity, acceleration and jerk.

    Seven pieces of constant jerk, fewer where a bound is not reached.
    """
    sign, distance = np.sign(distance), abs(distance)
    # Reach the velocity: `ramp` for the acceleration to rise, `ramp` to fall, `hold` in between.
    ramp = min(acceleration / jerk, float(np.sqrt(velocity / jerk)))
    hold = velocity / (jerk * ramp) - ramp
    if distance < velocity * (2 * ramp + hold):  # too short to reach it
        ramp = min(acceleration / jerk, float(np.cbrt(distance / (2 * jerk))))
        # distance = jerk ramp (ramp + hold) (2 ramp + hold)
        hold = float(np.sqrt(ramp**2 / 4 + distance / (jerk * ramp))) - 1.5 * ramp
    hold = hold if hold > 1e-12 * ramp else 0.0
    peak = jerk * ramp * (ramp + hold)
    cruise = distance / peak - (2 * ramp + hold)
    cruise = cruise if cruise > 1e-12 * ramp else 0.0
    top = sign * jerk * ramp
    half = [Push(ramp, rise=top), Push(hold, start=top), Push(ramp, start=top, rise=-top)]
    back = [Push(ramp, rise=-top), Push(hold, start=-top), Push(ramp, start=-top, rise=top)]
    return integrate([*half, Push(cruise), *back])
