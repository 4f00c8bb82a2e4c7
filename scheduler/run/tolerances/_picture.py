"""Pictures of tolerance studies: histograms, and what each variable contributes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from ....blocks.core._figure import ShownFigure, check_picture_format
from ....errors import BiellaError
from ...results._files import replacing
from ...results._plotting import COLORS, STYLE
from ._variables import AbstractDimension, AbstractVariable

if TYPE_CHECKING:
    from ._study import Spread, ToleranceStudy

_MOST_BARS = 10


def plot(study: ToleranceStudy, names: Sequence[str], path: str | Path | None) -> ShownFigure:
    """Draw a row for each name; see `ToleranceStudy.plot`."""
    kind = None if path is None else check_picture_format(Path(path))
    spreads = [(name, study[name]) for name in names]
    for name, spread in spreads:
        if np.ndim(spread.mean):
            raise BiellaError(
                f"`{name}` is an array of shape {np.shape(spread.mean)}: a histogram is of one "
                f"number. Measure a number of it, or plot `study[{name!r}].mean` and `.deviation`."
            )
    with mpl.rc_context(STYLE):
        figure = ShownFigure(figsize=(12, 3.6 * len(names)), dpi=110, layout="constrained")
        axes = figure.subplots(len(names), 2, squeeze=False, width_ratios=(3, 2))
        for (left, right), (name, spread) in zip(axes, spreads, strict=True):
            _histogram(left, name, spread)
            _contributions(right, name, spread, study.variables)
        if path is not None:
            with replacing(Path(path)) as file:
                figure.savefig(file, format=kind)
    return figure


def _histogram(axes: Axes, name: str, s: Spread) -> None:
    axes.hist(s.values, bins="auto", density=True, color=COLORS[5], alpha=0.6)
    if s.deviation > 0:
        x = np.linspace(s.mean - 4 * s.deviation, s.mean + 4 * s.deviation, 300)
        curve = np.exp(-0.5 * ((x - s.mean) / s.deviation) ** 2)
        label = f"normal, σ = {s.deviation:.3g}"
        axes.plot(x, curve / (s.deviation * np.sqrt(2 * np.pi)), color=COLORS[0], label=label)
    nominal = float(s.nominal)
    for half, color, dash, label in (
        (float(s.worst_case), COLORS[1], "-", "worst case"),
        (float(s.root_sum_square), COLORS[2], "--", "RSS"),
    ):
        for k, sign in enumerate((-1, 1)):
            shown = f"{label}, ±{half:.3g}" if k else None
            axes.axvline(nominal + sign * half, color=color, ls=dash, lw=1.6, label=shown)
    for k, limit in enumerate(value for value in s.limits if value is not None):
        axes.axvline(limit, color="black", ls=":", lw=1.6, label=None if k else "limits")
    axes.set(xlabel=name, ylabel="density")
    axes.set_ylim(0, 1.35 * axes.get_ylim()[1])
    axes.legend(loc="upper center", ncols=2, framealpha=1.0, fontsize=10)


def _contributions(
    axes: Axes, name: str, s: Spread, variables: dict[str, AbstractVariable]
) -> None:
    shares = {}
    for key, slope in s.sensitivities.items():
        variable = variables[key]
        assert isinstance(variable, AbstractDimension)
        shares[key] = float(np.abs(slope)) * max(map(abs, variable.limits))
    order = sorted(shares, key=lambda key: -shares[key])
    sizes = [shares[key] for key in order[:_MOST_BARS]]
    labels = order[:_MOST_BARS]
    if len(order) > _MOST_BARS:
        labels.append(f"{len(order) - _MOST_BARS} others, each at most")
        sizes.append(shares[order[_MOST_BARS]])
    axes.barh(labels, sizes, color=COLORS[0])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set(xlabel=f"{name}: |sensitivity| · tolerance")
