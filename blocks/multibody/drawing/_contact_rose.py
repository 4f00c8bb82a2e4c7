"""Roses of a contact: where a pin touched its hole, how often and how hard.

Imports matplotlib, so it is imported only when something is drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from ...core._figure import ShownFigure

if TYPE_CHECKING:
    from ..analysis._contact_statistics import Around, ContactStatistics


def draw_roses(
    statistics: ContactStatistics, path: str | Path | None = None, title: str = ""
) -> Figure:
    """Draw the density of contact around the hole and around the pin, colored by the mean force.

    A bar is as long as the density there, in 1/rad, so that a contact that is anywhere alike is a
    circle of radius 1/2π, which is drawn dashed.
    """
    figure = ShownFigure(figsize=(10.0, 5.2), layout="constrained")
    parts = {"around the hole": statistics.hole, "around the pin": statistics.pin}
    colors = ScalarMappable(_scale(list(parts.values())), colormaps["viridis_r"])
    axes = [figure.add_subplot(1, 2, n, projection="polar") for n in (1, 2)]
    for axis, (name, part) in zip(axes, parts.items(), strict=True):
        _draw_rose(axis, part, colors)
        axis.set_title(name, pad=14)
    figure.colorbar(colors, ax=axes, label="mean normal force in N", shrink=0.8, pad=0.03)
    share = f"in contact {100 * statistics.contact_share:.0f} % of the time"
    share += "; length: density in 1/rad, dashed: all around alike"
    figure.suptitle(f"{title}\n{share}" if title else share, fontsize=11)
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure


def _scale(parts: list[Around]) -> Normalize:
    """Forces differ by orders of magnitude: where the pin strikes it is rarely."""
    forces = np.concatenate([part.mean_force for part in parts])
    forces = forces[forces > 0]
    if forces.size == 0 or forces.max() < 2.0 * forces.min():
        return Normalize(0.0, float(forces.max(initial=1.0)))
    return LogNorm(max(float(forces.min()), 1e-3 * float(forces.max())), float(forces.max()))


def _draw_rose(axis: Any, part: Around, colors: ScalarMappable) -> None:
    least = 1e-12 * (float(part.mean_force.max()) or 1.0)
    axis.bar(
        part.angles, part.density, np.diff(part.edges),
        color=colors.to_rgba(np.maximum(part.mean_force, least)), edgecolor="white", linewidth=0.3,
    )  # fmt: skip
    turn = np.linspace(0.0, 2.0 * np.pi, 181)
    axis.plot(turn, np.full_like(turn, 0.5 / np.pi), "--", color="0.45", linewidth=1.0)
    axis.set_axisbelow(True)
    axis.grid(color="0.88")
    axis.set_ylim(0.0, 1.08 * max(float(part.density.max()), 0.5 / np.pi))
    axis.yaxis.get_major_locator().base.set_params(nbins=4)
    # Numbers stand where the rose leaves most room.
    around = np.exp(1j * part.angles) @ part.density
    axis.set_rlabel_position(np.degrees(np.angle(-around)) if abs(around) > 0 else 80.0)
    axis.tick_params(labelsize=9, colors="0.35")
