"""Journal bearings beside closed forms and published tables, each with its boundary conditions.

    python benchmarks/studies/film_tables.py [--plot FILE]

Prints five tables: the short bearing beside its closed forms, the finite bearing between short and
long, Raimondi and Boyd at L/D = 1, Someya at L/D = 0.5, and how fast a load converges with the
cells. `--plot` draws the second.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from biella import BiellaWarning
from biella.blocks import FiniteBearing, LongBearing, ShortBearing
from biella.blocks.bearings import AbstractBearing
from biella.blocks.bearings._analysis import Coefficients, open_film

Array = npt.NDArray[np.float64]

RADIUS, CLEARANCE, VISCOSITY, SPEED = 0.02, 2e-5, 0.03, 300.0
PROPORTIONS = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0, 40.0, 200.0)
ECCENTRICITIES = (0.3, 0.8)
WHOLE_RANGE = (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99)

RAIMONDI_BOYD = {  # ε: S, (R/c) f
    0.1: (1.33, 26.4),
    0.2: (0.631, 12.8),
    0.4: (0.264, 5.79),
    0.6: (0.121, 3.2),
    0.8: (0.0446, 1.70),
    0.9: (0.0188, 1.05),
}
SOMEYA = {  # ε: S, φ in degrees, K row by row, C row by row
    0.1: (4.43, 80.4, [1.75, 10.3, -9.66, 2.70], [20.6, 2.08, 2.08, 11.4]),
    0.2: (2.07, 71.6, [1.88, 5.63, -4.41, 2.56], [11.2, 2.22, 2.22, 6.43]),
    0.4: (0.798, 57.5, [2.39, 3.75, -1.57, 2.17], [7.32, 2.24, 2.24, 3.50]),
    0.6: (0.323, 44.7, [3.65, 3.62, -0.427, 1.92], [6.81, 2.08, 2.08, 2.06]),
    0.8: (0.0926, 31.2, [7.35, 4.46, 0.527, 1.78], [8.17, 2.05, 2.05, 1.24]),
    0.9: (0.0315, 22.7, [13.8, 5.76, 1.24, 1.72], [10.6, 2.03, 2.03, 0.846]),
}


def carried(
    bearing: AbstractBearing, eccentricity: float, angle: float = 0.0
) -> tuple[float, float]:
    """Give the load at an eccentricity, and the friction torque."""
    with open_film(bearing) as film:
        at = eccentricity * CLEARANCE * np.array([np.cos(angle), np.sin(angle)])
        force = film.force(at, np.zeros(2), SPEED, 0.0)
        return float(np.hypot(*force)), float(film.read("torque")[0])


def sommerfeld(load: float, length: float) -> float:
    """Give S = (R/c)² μ N / P."""
    pressure = load / (2 * RADIUS * length)
    return (RADIUS / CLEARANCE) ** 2 * VISCOSITY * SPEED / (2 * np.pi) / pressure


def compare_short() -> Table:
    """Ocvirk's forces, and the stiffness and damping that are their derivatives."""
    table = Table(
        title="Short bearing, K = μ ω r B³ / c²; off as a part of the closed form",
        title_justify="left",
    )
    names = ("ε", "F_r / K", "off", "F_t / K", "off", "φ °", "off", "K_ij, worst", "C_ij, worst")
    for name in names:
        table.add_column(name, justify="right")
    length = 0.5 * RADIUS
    scale = VISCOSITY * SPEED * RADIUS * length**3 / CLEARANCE**2
    bearing = ShortBearing(RADIUS, length, CLEARANCE, VISCOSITY, film_limit=1e-4 * CLEARANCE)
    with open_film(bearing) as film:
        for n in WHOLE_RANGE:
            at = np.array([n * CLEARANCE, 0.0])
            fx, fy = film.force(at, np.zeros(2), SPEED, 0.0) / scale
            rest = 1 - n**2
            radial, tangential = n**2 / rest**2, np.pi / 4 * n / rest**1.5
            attitude = np.arctan2(np.pi * np.sqrt(rest), 4 * n)
            found = bearing.coefficients(tuple(np.array([-fx, -fy]) * scale), SPEED)
            stiffness, damping = found.stiffness * CLEARANCE / scale, found.damping * CLEARANCE
            # Rows radial and tangential; the tangential column turns the force by de / e.
            wanted_k = [
                [2 * n * (1 + n**2) / rest**3, tangential / n],
                [-np.pi / 4 * (1 + 2 * n**2) / rest**2.5, radial / n],
            ]
            wanted_c = [
                [np.pi / 2 * (1 + 2 * n**2) / rest**2.5, -2 * n / rest**2],
                [-2 * n / rest**2, np.pi / 2 / rest**1.5],
            ]
            worst = [
                np.abs(ours - wanted).max() / np.abs(wanted).max()
                for ours, wanted in (
                    (stiffness, np.array(wanted_k)),
                    (damping * SPEED / scale, np.array(wanted_c)),
                )
            ]
            table.add_row(
                f"{n}",
                f"{radial:.6g}",
                f"{-fx / radial - 1:+.0e}",
                f"{tangential:.6g}",
                f"{fy / tangential - 1:+.0e}",
                f"{np.degrees(attitude):.3f}",
                f"{np.arctan2(fy, -fx) / attitude - 1:+.0e}",
                *(f"{value:.0e}" for value in worst),
            )
    return table


def compare_limits() -> tuple[Table, Array]:
    """Give load over that of the short and of the long bearing."""
    table = Table(title="Load of 256 × 32 cells over that of the limits", title_justify="left")
    table.add_column("L/D")
    for n in ECCENTRICITIES:
        for what in ("Gümbel / short", "Reynolds / short", "Gümbel / long"):
            table.add_column(f"ε = {n}, {what}", justify="right")
    ratios = []
    for proportion in PROPORTIONS:
        size = (RADIUS, proportion * 2 * RADIUS, CLEARANCE, VISCOSITY)
        row = []
        for n in ECCENTRICITIES:
            gumbel, reynolds = (
                carried(FiniteBearing(*size, cells=(256, 32), cavitation=c), n)[0]
                for c in ("gumbel", "reynolds")
            )
            with warnings.catch_warnings(action="ignore", category=BiellaWarning):
                # Of lengths that the short law is not for: how wrong it is, is the point.
                short, long = (carried(model(*size), n)[0] for model in (ShortBearing, LongBearing))
            row += [gumbel / short, reynolds / short, gumbel / long]
        ratios.append(row)
        table.add_row(f"{proportion:g}", *(f"{ratio:.4f}" for ratio in row))
    return table, np.array(ratios)


def measure_raimondi_boyd() -> dict[float, tuple[float, float]]:
    """Give S and (R/c) f by eccentricity.

    The film starts from p = 0 at the thickest place; Reynolds' condition holds where it ends.
    """
    around = 256
    angle = np.pi / around  # the thickest place is the middle of a column
    length = 2 * RADIUS
    bearing = FiniteBearing(
        RADIUS,
        length,
        CLEARANCE,
        VISCOSITY,
        cells=(around, 64),
        grooves=[(angle + np.pi, 0.0)],
    )
    found = {}
    for n in RAIMONDI_BOYD:
        load, torque = carried(bearing, n, angle)
        found[n] = sommerfeld(load, length), -torque / (load * CLEARANCE)
    return found


def compare_raimondi_boyd() -> Table:
    """Beside the published table."""
    table = Table(title="L/D = 1, Raimondi and Boyd", title_justify="left")
    for name in ("ε", "S", "ours", "off", "(R/c) f", "ours", "off"):
        table.add_column(name, justify="right")
    for n, (ours, rubbed) in measure_raimondi_boyd().items():
        S, friction = RAIMONDI_BOYD[n]
        table.add_row(
            f"{n}",
            f"{S}",
            f"{ours:.4f}",
            f"{ours / S - 1:+.1%}",
            f"{friction}",
            f"{rubbed:.3f}",
            f"{rubbed / friction - 1:+.1%}",
        )
    return table


def measure_someya() -> dict[float, Coefficients]:
    """Give the film at each published S, by the published eccentricity.

    Two axial grooves lie across the load; their arc is not stated: 10° here.
    """
    length = RADIUS
    grooves = [(side, np.radians(10)) for side in (np.pi / 2, -np.pi / 2)]
    bearing = FiniteBearing(RADIUS, length, CLEARANCE, VISCOSITY, cells=(360, 32), grooves=grooves)
    # S and W change places in their formula.
    return {n: bearing.coefficients(sommerfeld(S, length), SPEED) for n, (S, *_) in SOMEYA.items()}


def compare_someya() -> Table:
    """Beside the published table."""
    table = Table(
        title="L/D = 0.5, Someya; off as a part of the largest entry", title_justify="left"
    )
    for name in ("ε", "ε of ours", "φ", "ours"):
        table.add_column(name, justify="right")
    for name in ("Kxx", "Kxy", "Kyx", "Kyy", "Cxx", "Cxy", "Cyx", "Cyy"):
        table.add_column(name, justify="right")
    for n, found in measure_someya().items():
        _, phi, stiffness, damping = SOMEYA[n]
        at = found.equilibrium
        off = [
            (ours.ravel() - theirs) / max(theirs)
            for ours, theirs in zip(found.along_load(CLEARANCE), (stiffness, damping), strict=True)
        ]
        table.add_row(
            f"{n}",
            f"{at.eccentricity:.4f}",
            f"{phi}",
            f"{np.degrees(at.attitude):.1f}",
            *(f"{value:+.1%}" for value in np.concatenate(off)),
        )
    return table


def measure_order() -> Table:
    """Give the power of the cell's size with which a load converges."""
    table = Table(title="Load at L/D = 1, ε = 0.6, as cells shrink", title_justify="left")
    for name in ("cells", "Reynolds, N", "order", "Gümbel, N", "order"):
        table.add_column(name, justify="right")
    counts = (32, 64, 128, 256)
    loads = [
        [
            carried(
                FiniteBearing(
                    RADIUS,
                    2 * RADIUS,
                    CLEARANCE,
                    VISCOSITY,
                    cells=(n, n // 4),
                    cavitation=cavitation,
                ),
                0.6,
            )[0]
            for n in counts
        ]
        for cavitation in ("reynolds", "gumbel")
    ]
    for k, n in enumerate(counts):
        row = [f"{n} × {n // 4}"]
        for load in loads:
            order = ""
            if k > 1:
                order = f"{np.log2((load[k - 1] - load[k - 2]) / (load[k] - load[k - 1])):.2f}"
            row += [f"{load[k]:.2f}", order]
        table.add_row(*row)
    return table


def draw(ratios: Array, path: Path) -> None:
    """Draw the load between its limits."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for k, n in enumerate(ECCENTRICITIES):
        color = f"C{k}"
        axes.semilogx(PROPORTIONS, ratios[:, 3 * k], color=color, label=f"over short, ε = {n}")
        axes.semilogx(
            PROPORTIONS, ratios[:, 3 * k + 2], "--", color=color, label=f"over long, ε = {n}"
        )
    axes.axhline(1.0, color="0.7", linewidth=1, zorder=0)
    axes.set_xlabel("length / diameter")
    axes.set_ylabel("load of a finite bearing (Gümbel)")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description="Journal bearings beside published tables.")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the limits to FILE")
    arguments = parser.parse_args()
    console = Console()
    if not console.is_terminal:
        console.width = 140
    limits, ratios = compare_limits()
    tables = (
        compare_short(),
        limits,
        compare_raimondi_boyd(),
        compare_someya(),
        measure_order(),
    )
    for table in tables:
        console.print(table)
    if arguments.plot:
        draw(ratios, arguments.plot)


if __name__ == "__main__":
    main()
