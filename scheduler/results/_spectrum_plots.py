"""Figures of spectra, waterfalls, orders and orbits. Imports matplotlib, so it is imported late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure, SubFigure
from numpy.typing import NDArray

from ...blocks.core._figure import ShownFigure
from ._plotting import COLORS, STYLE, label_unit, save_figure

if TYPE_CHECKING:
    from ._spectra import Orbit, OrderSpectrum, Spectrum, Waterfall

Array = NDArray[np.float64]

_SIZE = (8.0, 4.8)
_DPI = 130


@contextmanager
def _drawing(axes: Axes | None, path: str | Path | None) -> Iterator[Axes]:
    """Give axes of the user's or of a new figure, and save the figure at the end."""
    with mpl.rc_context(STYLE):
        if axes is None:
            axes = ShownFigure(figsize=_SIZE, dpi=_DPI, layout="constrained").subplots()
        yield axes
        if path is not None:
            save_figure(_figure(axes), Path(path))


def _figure(axes: Axes) -> Figure:
    figure = axes.figure
    return figure if isinstance(figure, Figure) else figure.figure


def plot_spectrum(spectrum: Spectrum, axes: Axes | None, path: str | Path | None) -> Figure:
    """See `Spectrum.plot`."""
    with _drawing(axes, path) as drawn:
        rest = spectrum.frequencies > 0
        drawn.loglog(
            spectrum.frequencies[rest],
            np.sqrt(spectrum.density[rest]),
            color=COLORS[len(drawn.lines) % len(COLORS)],
            lw=1.3,
            label=spectrum.name,
        )
        unit = label_unit(spectrum.unit)[1:-1] or "1"
        drawn.set(xlabel="frequency [Hz]", ylabel=f"amplitude density [{unit}/√Hz]")
        drawn.grid(which="minor", color="#EEEEEE", linewidth=0.6)
        drawn.legend(loc="upper right", frameon=False)
        return _figure(drawn)


def plot_waterfall(
    waterfall: Waterfall,
    orders: tuple[float, ...],
    highest: float | None,
    floor: float,
    axes: Axes | None,
    path: str | Path | None,
) -> Figure:
    """See `Waterfall.plot`."""
    shown = waterfall.frequencies <= (np.inf if highest is None else highest)
    frequencies, amplitudes = waterfall.frequencies[shown], waterfall.amplitudes[shown]
    across, label = waterfall.times, "time [s]"
    if waterfall.speeds is not None and _rises(waterfall.speeds):
        across, label = waterfall.speeds * 30 / np.pi, "speed [rpm]"
    with _drawing(axes, path) as drawn:
        _draw_map(drawn, across, frequencies, amplitudes, floor, waterfall.name, waterfall.unit)
        drawn.set(xlabel=label, ylabel="frequency [Hz]", ylim=(0, frequencies[-1]))
        if waterfall.speeds is not None:
            for order, dash in zip(orders, ("-", "--", ":", "-.") * len(orders), strict=False):
                line = order * waterfall.speeds / (2 * np.pi)
                drawn.plot(across, line, "w", ls=dash, lw=1, label=f"{order:g}×")
            if orders:
                drawn.legend(
                    loc="upper left", labelcolor="white", facecolor="black", framealpha=0.6
                )
        return _figure(drawn)


def plot_orders(
    spectrum: OrderSpectrum, floor: float, axes: Axes | None, path: str | Path | None
) -> Figure:
    """See `OrderSpectrum.plot`."""
    by_speed = _rises(spectrum.speeds)
    across = spectrum.speeds * 30 / np.pi if by_speed else spectrum.times
    with _drawing(axes, path) as drawn:
        amplitudes = np.abs(spectrum.amplitudes.T)
        _draw_map(drawn, across, spectrum.orders, amplitudes, floor, spectrum.name, spectrum.unit)
        label = "speed [rpm]" if by_speed else "time [s]"
        drawn.set(xlabel=label, ylabel="order", ylim=(0, spectrum.orders[-1]))
        return _figure(drawn)


def plot_orbit(
    orbit: Orbit,
    clearance: float | None,
    axes: Axes | None,
    path: str | Path | None,
    label: str | None,
) -> Figure:
    """See `Orbit.plot`."""
    with _drawing(axes, path) as drawn:
        color = COLORS[sum(line.get_linestyle() == "-" for line in drawn.lines) % len(COLORS)]
        known = drawn.get_legend_handles_labels()[1]
        if clearance is not None and "clearance" not in known:
            around = np.linspace(0, 2 * np.pi, 200)
            circle = clearance * np.array([np.cos(around), np.sin(around)])
            drawn.plot(*circle, color="black", ls="--", lw=1, label="clearance")
        drawn.plot(orbit.x, orbit.y, color=color, lw=1.2, label=label)
        marks = orbit.marks
        if marks.size:
            drawn.plot(
                orbit.x[marks], orbit.y[marks], "o", color=color, ms=5, mec="white", mew=0.8,
                label=None if label else "once a turn",
            )  # fmt: skip
        unit = label_unit(orbit.unit)
        drawn.set(
            aspect="equal", xlabel=f"{orbit.names[0]} {unit}", ylabel=f"{orbit.names[1]} {unit}"
        )
        if drawn.get_legend_handles_labels()[0]:
            drawn.legend(loc="upper left", bbox_to_anchor=(1.005, 1.03), frameon=False)
        return _figure(drawn)


def _rises(speeds: Array) -> bool:
    """Whether speeds serve as an axis: they go one way, and far enough."""
    steps = np.diff(speeds)
    one_way = bool((steps > 0).all() or (steps < 0).all())
    return speeds.size > 1 and one_way and np.ptp(speeds) > 0.02 * np.abs(speeds).max()


def _draw_map(
    axes: Axes, across: Array, up: Array, values: Array, floor: float, name: str, unit: str | None
) -> None:
    top = float(values.max()) or 1.0
    shown = axes.pcolormesh(
        across,
        up,
        np.maximum(values, floor * top),
        norm=LogNorm(floor * top, top),
        cmap="magma",
        shading="nearest",
        rasterized=True,
    )
    axes.grid(False)
    figure: Figure | SubFigure = axes.figure
    figure.colorbar(shown, ax=axes, label=f"{name} {label_unit(unit)}".strip())
