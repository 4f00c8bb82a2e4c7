"""Roses of a contact: where a pin touched its hole, how often and how hard.

Imports matplotlib, so it is imported only when something is drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from ..contact_statistics import ContactStatistics


def draw_roses(
    statistics: ContactStatistics, path: str | Path | None = None, title: str = ""
) -> Figure:
    """Draw the density of contact around the hole and around the pin, coloured by the mean force.

    A bar is as long as the density there, in 1/rad, so that a contact that is anywhere alike is a
    circle of radius 1/2π, which is drawn dashed.
    """
    figure = Figure(figsize=(10.0, 5.2), layout="constrained")
    top = max(float(part.mean_force.max()) for part in (statistics.hole, statistics.pin)) or 1.0
    colours = ScalarMappable(Normalize(0.0, top), colormaps["viridis_r"])
    axes = [figure.add_subplot(1, 2, n, projection="polar") for n in (1, 2)]
    for axis, part, name in zip(
        axes, (statistics.hole, statistics.pin), ("around the hole", "around the pin"), strict=True
    ):
        axis.bar(
            part.angles, part.density, np.diff(part.edges),
            color=colours.to_rgba(part.mean_force), edgecolor="white", linewidth=0.3,
        )  # fmt: skip
        turn = np.linspace(0.0, 2.0 * np.pi, 181)
        axis.plot(turn, np.full_like(turn, 0.5 / np.pi), "--", color="0.45", linewidth=1.0)
        axis.set_title(name, pad=14)
        axis.set_axisbelow(True)
        axis.grid(color="0.88")
        axis.set_ylim(0.0, 1.08 * max(float(part.density.max()), 0.5 / np.pi))
        axis.yaxis.get_major_locator().base.set_params(nbins=4)  # type: ignore[attr-defined]
        axis.set_rlabel_position(80)  # type: ignore[attr-defined]
        axis.tick_params(labelsize=9, colors="0.35")
    figure.colorbar(colours, ax=axes, label="mean normal force in N", shrink=0.8, pad=0.03)
    share = (
        f"in contact {100 * statistics.contact_share:.0f} % of the time; length: density in 1/rad"
    )
    figure.suptitle(f"{title}\n{share}" if title else share, fontsize=11)
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure
