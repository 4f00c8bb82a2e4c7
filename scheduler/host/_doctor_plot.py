"""A picture of how late threads wake: one curve a variant, both axes logarithmic.

This module imports matplotlib, so it is imported only when something is plotted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from ..results._plotting import COLORS, STYLE, save_figure
from ._latency import Variant


def plot_histograms(variants: Sequence[Variant], rate: float, path: Path) -> None:
    """Draw for each variant which share of its wake-ups was later than what is on the axis."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 5), layout="constrained")
        axes = figure.add_subplot()
        for number, (variant, color) in enumerate(zip(variants, cycle(COLORS), strict=False)):
            late = np.sort(np.maximum(variant.lateness_ns, 100)) / 1000
            # Of the last there is none that is later: a step down to half of one.
            share = np.append(np.arange(late.size, 0, -1), 0.5) / late.size
            axes.step(
                np.append(late, late[-1]),
                share,
                where="pre",
                color=color,
                linestyle="-" if number < len(COLORS) else "--",
                label=variant.name,
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        axes.set_xlabel("lateness, µs (0.1: that or less)")
        axes.set_ylabel("share of wake-ups that are later")
        axes.set_title(f"Wake-ups at {rate:g} Hz")
        axes.grid(True, which="major", alpha=0.3)
        axes.legend()
        save_figure(figure, path)
