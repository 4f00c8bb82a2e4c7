"""What a recorded signal is made of: densities, waterfalls, orders of a shaft, orbits.

Each analysis is a small object with its numbers and a `plot`. Signals are taken at equal times;
one that is held, such as an ADC's, is taken once a sample with ``period``, since the steps between
would show as images of the spectrum.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...blocks.core._units import UnitError, conversion, parse_unit
from ._signals import ResultError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ._result import Result

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_MOST_PER_TURN = 32_768
_SLOWEST = 0.05
"""Fraction of the maximum speed below which a shaft counts as stationary."""


@dataclass(frozen=True)
class Spectrum:
    """A one-sided power spectral density by Welch's method.

    Attributes
    ----------
    frequencies
        In Hz.
    density
        In the square of the unit per Hz: its integral is the mean square of the signal's
        departure from its mean.
    """

    name: str
    unit: str | None
    frequencies: Array
    density: Array

    def rms(self, low: float = 0.0, high: float = np.inf) -> float:
        """Return the root mean square of what lies from `low` to `high` Hz."""
        inside = (self.frequencies >= low) & (self.frequencies <= high)
        width = self.frequencies[1] - self.frequencies[0]
        return float(np.sqrt(np.sum(self.density[inside]) * width))

    def plot(self, *, axes: Axes | None = None, path: str | Path | None = None) -> Figure:
        """Draw the amplitude density, in the unit per √Hz, over the frequency; both logarithmic."""
        from ._spectrum_plots import plot_spectrum

        return plot_spectrum(self, axes, path)


@dataclass(frozen=True)
class Waterfall:
    """Spectra of short stretches, one after the other.

    Attributes
    ----------
    frequencies, times
        In Hz, and in s: the middle of each stretch.
    amplitudes
        ``amplitudes[i, j]``: peak amplitude of a sine of ``frequencies[i]`` at ``times[j]``.
    speeds
        Of the shaft in rad/s at `times`, if one was given.
    """

    name: str
    unit: str | None
    frequencies: Array
    times: Array
    amplitudes: Array
    speeds: Array | None = None

    def plot(
        self,
        *,
        orders: tuple[float, ...] = (),
        highest: float | None = None,
        floor: float = 1e-4,
        axes: Axes | None = None,
        path: str | Path | None = None,
    ) -> Figure:
        """Draw the amplitudes over speed, or time, and frequency.

        Parameters
        ----------
        orders
            Multiples of the shaft's speed to mark by lines.
        highest
            Frequency up to which to draw, in Hz.
        floor
            Amplitudes below this fraction of the largest have the same color.
        axes
            Where to draw instead of in a new figure.
        path
            Where to save the figure.
        """
        from ._spectrum_plots import plot_waterfall

        return plot_waterfall(self, orders, highest, floor, axes, path)


@dataclass(frozen=True)
class OrderSpectrum:
    """Amplitudes of multiples of a shaft's speed, from samples at equal angles.

    Attributes
    ----------
    orders
        Multiples of the speed.
    times, speeds
        Middle of each block of turns in s, and the mean speed in it in rad/s.
    amplitudes
        ``amplitudes[j, i]``, complex: in block j the signal has ``|a| cos(order θ + arg a)``, with
        θ from where the angle is a whole number of turns.
    """

    name: str
    unit: str | None
    orders: Array
    times: Array
    speeds: Array
    amplitudes: Complex

    def track(self, order: float) -> Complex:
        """Return the complex amplitude of one order in every block."""
        nearest = int(np.abs(self.orders - order).argmin())
        if abs(self.orders[nearest] - order) > 1e-6:
            raise ResultError(
                f"order {order:g} is not among the computed orders, 0 to "
                f"{self.orders[-1]:g} in steps of {self.orders[1]:g}. Choose `turns` such that "
                f"the order is an integer multiple of 1 / turns."
            )
        return self.amplitudes[:, nearest]

    def plot(
        self,
        *,
        floor: float = 1e-4,
        axes: Axes | None = None,
        path: str | Path | None = None,
    ) -> Figure:
        """Draw the amplitudes over speed and order."""
        from ._spectrum_plots import plot_orders

        return plot_orders(self, floor, axes, path)


@dataclass(frozen=True)
class Orbit:
    """The path of a shaft's center, seen by two probes.

    Attributes
    ----------
    t, x, y
        The path.
    angle
        Of the shaft in rad at these times, if one was given: once a turn, where it is a whole
        number of turns, there is a mark.
    """

    names: tuple[str, str]
    unit: str | None
    t: Array
    x: Array
    y: Array
    angle: Array | None = None

    @property
    def marks(self) -> NDArray[np.intp]:
        """Where a new turn begins: the first sample of it."""
        if self.angle is None:
            return np.zeros(0, dtype=np.intp)
        turns = np.floor(self.angle / (2 * np.pi) + 1e-9)
        return np.flatnonzero(np.diff(turns) != 0) + 1

    def component(self, order: float = 1.0) -> tuple[complex, complex]:
        """Return the circles (forward, backward) that an ellipse of this order is the sum of.

        x + i y = forward exp(i order θ) + backward exp(-i order θ), with θ the shaft's angle. The
        long half axis is their sum in size, the short one their difference; the greater of the two
        says which way the center goes around, with the shaft or against it.
        """
        if self.angle is None:
            raise ResultError("components of an orbit require the angle or the speed of the shaft.")
        weights = np.hanning(self.t.size + 2)[1:-1] * np.gradient(self.angle)
        weights /= weights.sum()
        z = self.x + 1j * self.y
        z = z - np.sum(weights * z)
        turn = np.exp(-1j * order * self.angle)
        return complex(np.sum(weights * z * turn)), complex(np.sum(weights * z / turn))

    def plot(
        self,
        *,
        clearance: float | None = None,
        axes: Axes | None = None,
        path: str | Path | None = None,
        label: str | None = None,
    ) -> Figure:
        """Draw the path, with a mark for each turn, and the circle of the clearance if given."""
        from ._spectrum_plots import plot_orbit

        return plot_orbit(self, clearance, axes, path, label)


def require_named(result: Result, call: str, shaft: tuple[str, ...]) -> None:
    """Reject a shaft signal without the information whether it is an angle or a speed."""
    if not shaft:
        return
    unit = _unit(result, shaft[0])
    is_angle = unit is not None and parse_unit(unit).exponents == parse_unit("rad").exponents
    way = "angle" if is_angle else "speed"
    raise ResultError(
        f"specify whether `{shaft[0]}` is the `angle` or the `speed` of the shaft: "
        f"{call}, {way}={shaft[0]!r})."
    )


def compute_psd(
    result: Result, name: str, period: float | None, resolution: float | None, **part: Any
) -> Spectrum:
    """See `Result.psd`."""
    from scipy import signal

    t, (x,) = _take(result, [name], period, **part)
    rate = 1 / _spacing(t)
    length = _segment(t.size, rate, resolution)
    frequencies, density = signal.welch(x, rate, "hann", length, detrend="constant")
    return Spectrum(name, _unit(result, name), frequencies, density)


def compute_waterfall(
    result: Result,
    name: str,
    speed: str | None,
    angle: str | None,
    period: float | None,
    resolution: float | None,
    overlap: float,
    **part: Any,
) -> Waterfall:
    """See `Result.waterfall`."""
    from scipy import signal

    if not 0 <= overlap < 1:
        raise ResultError(f"`overlap` must be at least 0 and less than 1, got {overlap!r}.")
    t, (x,) = _take(result, [name], period, **part)
    rate = 1 / _spacing(t)
    length = _segment(t.size, rate, resolution)
    window = signal.windows.hann(length, sym=False)
    frequencies, middles, spectra = signal.spectrogram(
        x, rate, window, noverlap=int(overlap * length), detrend="constant", mode="complex",
        scaling="spectrum",
    )  # fmt: skip
    times = t[0] + middles
    speeds = None
    if speed is not None or angle is not None:
        ticks, theta = _angle(result, speed, angle)
        speeds = np.interp(times, ticks, np.abs(np.gradient(theta, ticks)))
    amplitudes = 2 * np.abs(spectra)
    if length % 2 == 0:  # half the sample rate is its own mirror image
        amplitudes[-1] /= 2
    return Waterfall(name, _unit(result, name), frequencies, times, amplitudes, speeds)


def compute_orders(
    result: Result,
    name: str,
    speed: str | None,
    angle: str | None,
    highest: float,
    turns: int,
    overlap: float,
    period: float | None,
    **part: Any,
) -> OrderSpectrum:
    """See `Result.orders`."""
    from scipy import signal

    if speed is None and angle is None:
        raise ResultError("orders require the signal of the `angle` or the `speed` of the shaft.")
    if turns < 1 or not 0 <= overlap < 1:
        raise ResultError(
            f"orders require turns >= 1 and 0 <= overlap < 1, got {turns}, {overlap}."
        )
    t, (x,) = _take(result, [name], period, **part)
    ticks, theta = _angle(result, speed, angle)
    at_angle, per_turn = _resample(t, x, ticks, theta, highest)
    length, hop = turns * per_turn, max(1, round((1 - overlap) * turns)) * per_turn
    starts = np.arange(0, at_angle.shape[1] - length + 1, hop)
    if not starts.size:
        raise ResultError(
            f"the shaft makes {at_angle.shape[1] / per_turn:.1f} turns faster than "
            f"{_SLOWEST:.0%} of its greatest speed; a block has {turns}. Use fewer `turns`."
        )
    window = signal.windows.hann(length, sym=False)
    times, values = at_angle
    kept = round(highest * turns) + 1
    found, middles, speeds = [], [], []
    for start in starts:
        block = values[start : start + length]
        found.append(np.fft.rfft(window * (block - block.mean()))[:kept] * 2 / window.sum())
        middles.append(times[start + length // 2])
        speeds.append(
            2 * np.pi * (length - 1) / per_turn / (times[start + length - 1] - times[start])
        )
    orders = np.arange(kept) / turns
    return OrderSpectrum(
        name, _unit(result, name), orders, np.array(middles), np.array(speeds), np.array(found)
    )


def compute_orbit(
    result: Result,
    x: str,
    y: str,
    speed: str | None,
    angle: str | None,
    period: float | None,
    **part: Any,
) -> Orbit:
    """See `Result.orbit`."""
    t, (first, second) = _take(result, [x, y], period, **part)
    theta = None
    if speed is not None or angle is not None:
        theta = np.interp(t, *_angle(result, speed, angle))
    return Orbit((x, y), _unit(result, x), t, first, second, theta)


def _take(
    result: Result,
    names: list[str],
    period: float | None,
    start: float | None = None,
    stop: float | None = None,
) -> tuple[Array, list[Array]]:
    """Return equal times and the signals at them."""
    first = 0 if start is None else int(np.searchsorted(result.t, start - 1e-12))
    last = result.length if stop is None else int(np.searchsorted(result.t, stop + 1e-12))
    t = result.t[first:last]
    if t.size < 8:
        raise ResultError(f"{t.size} samples are too few; the recording has {result.length}.")
    spacing = _spacing(t)
    stride = 1
    if period is not None:
        stride = round(period / spacing)
        if stride < 1 or abs(stride * spacing - period) > 1e-6 * period:
            raise ResultError(
                f"a period of {period:g} s is not an integer multiple of the recorded step, "
                f"{spacing:g} s."
            )
    signals = []
    for name in names:
        values = result.read(name, slice(first, last))
        if values.ndim > 1:
            raise ResultError(f"`{name}` has {values.shape[1]} elements: choose one, `{name}[0]`.")
        signals.append(values)
    # A held signal changes at one place in its period: take it there, not before.
    phase = _phase_of_changes(signals[0], stride)
    return t[phase::stride], [values[phase::stride] for values in signals]


def _phase_of_changes(x: Array, stride: int) -> int:
    if stride == 1:
        return 0
    changes = np.flatnonzero(np.diff(x)) + 1
    return int(np.bincount(changes % stride, minlength=stride).argmax()) if changes.size else 0


def _spacing(t: Array) -> float:
    steps = np.diff(t)
    mean = float(steps.mean())
    if np.abs(steps - mean).max() > 1e-6 * mean + 1e-12 * abs(float(t[-1])):
        raise ResultError(
            "a spectrum requires equally spaced times, and those of this result are not."
        )
    return mean


def _segment(samples: int, rate: float, resolution: float | None) -> int:
    if resolution is None:
        return max(8, samples // 8)
    length = round(rate / resolution)
    if not 8 <= length <= samples:
        raise ResultError(
            f"a resolution of {resolution:g} Hz needs {length} samples of {samples}; "
            f"{rate / samples:.3g} to {rate / 8:.3g} Hz are possible."
        )
    return length


def _angle(result: Result, speed: str | None, angle: str | None) -> tuple[Array, Array]:
    """Return times and the shaft's rising angle in rad, integrated from the speed if need be."""
    if (speed is None) == (angle is None):
        raise ResultError("specify either the `angle` or the `speed` of the shaft.")
    name = angle if angle is not None else speed
    assert name is not None
    values = result[name]
    if values.ndim > 1:
        raise ResultError(f"`{name}` has {values.shape[1]} elements: choose one, `{name}[2]`.")
    values = values * _factor(_unit(result, name), "rad" if angle is not None else "rad/s", name)
    t = result.t
    if angle is not None:
        return t, _unwrap(values)
    steps = 0.5 * (values[1:] + values[:-1]) * np.diff(t)
    return t, np.concatenate([[0.0], np.cumsum(steps)])


def _unwrap(angle: Array) -> Array:
    """Return an angle without its jumps by whole turns.

    One that never turns back has none, however far it goes from one sample to the next.
    """
    steps = np.diff(angle)
    return angle if (steps >= 0).all() or (steps <= 0).all() else np.unwrap(angle)


def _factor(unit: str | None, wanted: str, name: str) -> float:
    if unit is None:
        return 1.0
    try:
        return conversion(parse_unit(unit), parse_unit(wanted))[0]
    except UnitError as error:
        raise ResultError(
            f"`{name}` is in {unit}, not in {wanted} or a compatible unit."
        ) from error


def _resample(t: Array, x: Array, ticks: Array, theta: Array, highest: float) -> tuple[Array, int]:
    """Return (times, values) at equal angles from a whole turn on, and how many a turn.

    So many that the angles are nowhere further apart than the samples: what was not folded in time
    is not folded in angle either.
    """
    from scipy.interpolate import CubicSpline, PchipInterpolator

    if theta[-1] < theta[0]:
        theta = -theta
    speed = np.gradient(theta, ticks)
    inside = (ticks >= t[0]) & (ticks <= t[-1])
    running = inside & (speed > _SLOWEST * speed[inside].max())
    edges = np.flatnonzero(np.diff(np.concatenate([[False], running, [False]]).astype(int)))
    if not edges.size:
        raise ResultError("the shaft does not turn, so there are no orders.")
    longest = int(np.argmax(edges[1::2] - edges[::2]))
    run = slice(edges[2 * longest], edges[2 * longest + 1])
    ticks, theta = ticks[run], theta[run]
    slowest = float(speed[run].min())
    per_turn = max(
        int(np.ceil(2 * np.pi / (_spacing(t) * slowest))), int(np.ceil(2.5 * highest)), 8
    )
    if highest > np.pi / (_spacing(t) * slowest):
        raise ResultError(
            f"order {highest:g} at {slowest:.3g} rad/s is beyond half the sample rate; up to "
            f"{np.pi / (_spacing(t) * slowest):.3g} are possible."
        )
    if per_turn > _MOST_PER_TURN:
        raise ResultError(
            f"{per_turn} samples a turn are too many: record fewer (every=10), or start where the "
            f"shaft is faster."
        )
    rising = np.concatenate([[True], np.diff(np.maximum.accumulate(theta)) > 0])
    turn = 2 * np.pi
    first, last = np.ceil(theta[0] / turn - 1e-9), theta[-1] / turn
    angles = turn * (first + np.arange(int((last - first) * per_turn) + 1) / per_turn)
    times = PchipInterpolator(theta[rising], ticks[rising])(angles)
    return np.vstack([times, CubicSpline(t, x)(times)]), per_turn


def _unit(result: Result, name: str) -> str | None:
    return result.signals.locate(name)[0].unit
