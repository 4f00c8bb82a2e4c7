"""Dynamic coefficients and stability of grooved, lobed and step bearings beside published tables.

    python benchmarks/studies/film_coefficients.py

Lund and Thomsen (1978): two axial grooves, and an elliptical bore. Nicholas, Barrett and Leader
(1980): pressure dams. Both have grooves of 20° at the horizontal split, a vertical load, one
viscosity, and Reynolds' condition where the film ends. The published figures are as the tests of
ROSS (petrobras/ross, `test_fluid_film_literature.py`) transcribe them; `docs/validation.py`
compares all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from biella.blocks.bearings import FiniteBearing, lobes
from biella.blocks.bearings._analysis import Coefficients

Array = npt.NDArray[np.float64]

CELLS = (288, 32)
"""So that grooves, steps and the edges of dams lie between cells."""
GROOVES = [(0.0, np.radians(20)), (np.pi, np.radians(20))]
GRAVITY, MIL, POUND_PER_INCH = 9.80665, 25.4e-6, 175.126835

COEFFICIENTS = ("Kxx", "Kxy", "Kyx", "Kyy", "Cxx", "Cxy", "Cyy")
LUND_THOMSEN = {  # L/D: S, ε, φ in degrees, K c/W and C c ω/W with x along the load
    "two grooves, L/D = 0.5": [
        (1.656, 0.244, 65.85, 1.69, 5.06, -2.20, 1.95, 9.93, 2.15, 4.80),
        (0.917, 0.372, 57.45, 2.12, 4.01, -1.30, 1.85, 7.70, 2.06, 3.23),
        (0.580, 0.477, 51.01, 2.67, 3.70, -0.78, 1.75, 6.96, 1.94, 2.40),
        (0.379, 0.570, 45.43, 3.33, 3.64, -0.43, 1.68, 6.76, 1.87, 1.89),
        (0.244, 0.655, 40.25, 4.21, 3.74, -0.13, 1.64, 6.87, 1.82, 1.54),
    ],
    "two grooves, L/D = 1": [
        (0.991, 0.150, 70.58, 1.56, 7.29, -2.16, 1.52, 14.66, 1.58, 4.49),
        (0.635, 0.224, 63.54, 1.62, 5.33, -1.57, 1.56, 10.80, 1.70, 3.41),
        (0.235, 0.460, 49.27, 2.19, 3.57, -0.80, 1.55, 7.36, 1.89, 2.19),
        (0.159, 0.559, 44.33, 2.73, 3.36, -0.48, 1.48, 6.94, 1.78, 1.74),
        (0.108, 0.650, 39.72, 3.45, 3.34, -0.23, 1.44, 6.89, 1.72, 1.43),
    ],
    "elliptical, L/D = 1": [
        (0.211, 0.260, 87.79, 6.65, 4.36, -3.21, 0.86, 13.09, -2.23, 3.70),
        (0.161, 0.304, 83.29, 5.63, 3.84, -2.32, 1.01, 10.75, -1.02, 3.07),
        (0.120, 0.350, 81.80, 4.99, 3.54, -1.52, 1.14, 9.04, -0.01, 2.49),
        (0.097, 0.381, 78.65, 4.82, 3.46, -1.01, 1.21, 8.26, 0.56, 2.10),
    ],
}

DIAMETER = 0.0254
VISCOSITY = 7.60e-6 * 6894.757
"""Pa s: not printed; what the printed Sommerfeld numbers give, 7.60 µreyn ± 1.6 %."""
WEIGHT = 66.278
"""N on each bearing: half of 29.8 lbf."""


@dataclass(frozen=True, slots=True)
class Step:
    """A bearing of Nicholas, Barrett and Leader at 8000 rpm, and what is published of it.

    Clearance and depth of the dam in mil, where the dam ends in degrees from the leading groove's
    middle, its part of the length; eccentricity and stability parameter ω_s √(c / g).
    """

    name: str
    clearance: float
    depth: float
    end: float
    part: float
    eccentricity: float
    stability: float

    def bearing(self) -> FiniteBearing:
        """Make it: the load points along -y, the dam is in the upper half."""
        size = (DIAMETER / 2, DIAMETER, self.clearance * MIL, VISCOSITY)
        bush = None if self.depth == 0 else self.bush
        return FiniteBearing(*size, cells=CELLS, grooves=GROOVES, bush=bush)

    def bush(self, theta: Array, z: Array) -> Array:
        """Return how much deeper the bush is."""
        around = np.remainder(theta, 2 * np.pi) < np.radians(self.end) - 1e-9
        along = np.abs(z - DIAMETER / 2) < self.part * DIAMETER / 2 - 1e-9
        return np.where(around & along, self.depth * MIL, 0.0)


STEPS = [
    Step("two grooves, set A, bearing 1", 1.8, 0.0, 0, 0, 0.03, 2.1),
    Step("two grooves, set A, bearing 2", 2.0, 0.0, 0, 0, 0.04, 2.1),
    Step("dam, set 1, bearing 1", 2.2, 2.4, 145, 0.75, 0.29, 7.5),
    Step("dam, set 1, bearing 2", 2.5, 3.5, 145, 0.75, 0.29, 7.0),
    Step("dam, set 3, bearing 1", 2.4, 13.4, 150, 0.75, 0.21, 4.6),
    Step("dam, set 4, bearing 1", 2.4, 5.5, 90, 0.75, 0.22, 4.6),
    Step("dam, set 5, bearing 1", 2.1, 22.5, 140, 0.50, 0.09, 3.0),
]
DAM_COEFFICIENTS = [  # of STEPS, rpm: K in lbf/in and C in lbf s/in, row by row, y up
    (2, 8000, [6.82e4, 1.64e4, -2.43e5, 6.68e4], [125.0, -59.0, -59.0, 443.0]),
    (2, 16000, [13.44e4, 2.94e4, -4.77e5, 13.26e4], [122.0, -57.0, -57.0, 441.0]),
    (3, 8000, [5.24e4, 1.00e4, -1.56e5, 5.44e4], [86.0, -47.0, -47.0, 291.0]),
]


def measure_lund_thomsen(case: str) -> list[tuple[float, float, Array]]:
    """Give ε, φ in degrees and `COEFFICIENTS` for each S of a case.

    All refer to the clearance of the arcs, of which an elliptical bore of preload 0.5 leaves half
    in the middle of its lobes.
    """
    diameter, viscosity, speed, arc = 0.1, 0.02, 100 * np.pi, 1e-4
    length = diameter * float(case.rpartition(" ")[2])
    preload = 0.5 if case.startswith("elliptical") else 0.0
    bush = lobes(2, preload * arc, np.pi / 2) if preload else None
    size = (diameter / 2, length, (1 - preload) * arc, viscosity)
    bearing = FiniteBearing(*size, cells=CELLS, grooves=GROOVES, bush=bush)
    rows = []
    for S, *_ in LUND_THOMSEN[case]:
        turns = speed / (2 * np.pi)
        load = viscosity * turns * length * diameter * (diameter / 2 / arc) ** 2 / S
        found = bearing.coefficients((0.0, -load), speed)
        (kxx, kxy, kyx, kyy), (cxx, cxy, _, cyy) = (m.ravel() for m in found.along_load(arc))
        at = found.equilibrium
        values = np.array([kxx, kxy, kyx, kyy, cxx, cxy, cyy])
        rows.append((float(np.hypot(*at.position)) / arc, float(np.degrees(at.attitude)), values))
    return rows


def find_coefficients(step: Step, rpm: float) -> Coefficients:
    """Give those of a bearing under half the rotor's weight."""
    return step.bearing().coefficients((0.0, -WEIGHT), rpm * np.pi / 30)


def measure_stability(step: Step) -> tuple[float, float]:
    """Give eccentricity and ω_s √(c / g) from the coefficients at 8000 rpm."""
    found = find_coefficients(step, 8000)
    at = found.equilibrium
    mass = found.critical_mass()
    return at.eccentricity, float(at.speed * np.sqrt(mass * step.clearance * MIL / WEIGHT))


def _print(title: str, names: list[str], rows: Callable[[], list[list[str]]]) -> None:
    table = Table(title=title, title_justify="left")
    for name in names:
        table.add_column(name, justify="right")
    for row in rows():
        table.add_row(*row)
    Console().print(table)


def main() -> None:
    """Print published figures and ours, one above the other."""

    def grooved(case: str) -> list[list[str]]:
        rows = []
        for (S, *theirs), (n, phi, ours) in zip(
            LUND_THOMSEN[case], measure_lund_thomsen(case), strict=True
        ):
            rows.append([f"{S:g}", *(f"{value:g}" for value in theirs)])
            rows.append(["", f"{n:.3f}", f"{phi:.2f}", *(f"{value:.2f}" for value in ours)])
        return rows

    def dammed() -> list[list[str]]:
        rows = []
        for step in STEPS:
            n, stability = measure_stability(step)
            rows.append([step.name, f"{step.eccentricity:g}", f"{n:.3f}"])
            rows[-1] += [f"{step.stability:g}", f"{stability:.2f}"]
        return rows

    for case in LUND_THOMSEN:
        names = ["S", "ε", "φ °", *COEFFICIENTS]
        _print(f"Lund and Thomsen, {case}", names, lambda case=case: grooved(case))
    _print("Nicholas, Barrett and Leader", ["bearing", "ε", "ours", "ω_s √(c/g)", "ours"], dammed)


if __name__ == "__main__":
    main()
