"""The motions of `multibody.py` as one equation of one coordinate, solved to round-off by scipy.

A mechanism with one degree of freedom s and places r_i(s), angles φ_i(s) has

    m(s) = Σ m_i r_i'·r_i' + J_i φ_i'²          m s̈ + ½ m' ṡ² = Q - Σ m_i g·(-r_i')
    ½ m' = Σ m_i r_i'·r_i'' + J_i φ_i' φ_i''

where ' is d/ds and Q the drive. Slider-crank, s = θ from x towards z, crank a and rod b long, the
rod at φ below the x axis:

    b sin φ = a sin θ     φ' = a cos θ / (b cos φ)     φ'' = (b sin φ φ'² - a sin θ) / (b cos φ)

The row of n four-bars, s = θ from the vertical towards x: n + 1 bars turn about their feet and n
couplers move as their tops do, so that m = (n + 1) / 3 + n is constant and

    m θ̈ = g ((n + 1) / 2 + n) sin θ
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from plants import Array, Plant
from scipy.integrate import solve_ivp

TOLERANCE = 1e-12


def _solve(
    acceleration: Callable[[float, float], float], start: tuple[float, float], seconds: float
) -> float:
    solution = solve_ivp(
        lambda t, y: (y[1], acceleration(y[0], y[1])),
        (0.0, seconds),
        start,
        method="DOP853",
        rtol=TOLERANCE,
        atol=TOLERANCE,
    )
    return float(solution.y[0, -1])


def slider_crank_points(plant: Plant, seconds: float) -> dict[str, list[float]]:
    """Give the centres of crank, rod and slider after a time."""
    crank, rod, slider = plant.bodies
    g = -plant.gravity[2]
    a = 2 * float(np.hypot(crank.position[0], crank.position[2]))
    b = float(np.hypot(slider.position[0] - 2 * crank.position[0], 2 * crank.position[2]))

    def acceleration(angle: float, rate: float) -> float:
        sin, cos = np.sin(angle), np.cos(angle)
        sin_rod = a * sin / b
        cos_rod = np.sqrt(1 - sin_rod**2)
        d = a * cos / (b * cos_rod)
        dd = (b * sin_rod * d**2 - a * sin) / (b * cos_rod)
        # Along the rod from its pin: (cos φ, -sin φ) and its derivatives.
        rod1 = np.array([-sin_rod * d, -cos_rod * d])
        rod2 = np.array([-cos_rod * d**2 - sin_rod * dd, sin_rod * d**2 - cos_rod * dd])
        pin1, pin2 = a * np.array([-sin, cos]), a * np.array([-cos, -sin])
        first = (pin1 / 2, pin1 + b / 2 * rod1, pin1 + b * rod1)
        second = (pin2 / 2, pin2 + b / 2 * rod2, pin2 + b * rod2)
        masses = (crank.mass, rod.mass, slider.mass)
        m = crank.inertia[1] + rod.inertia[1] * d**2
        half = rod.inertia[1] * d * dd
        push = -plant.torque  # about y, which turns z towards x
        for mass, r1, r2 in zip(masses, first, second, strict=True):
            m += mass * (r1 @ r1)
            half += mass * (r1 @ r2)
            push -= mass * g * r1[1]
        return float((push - half * rate**2) / m)

    angle = _solve(acceleration, (np.pi / 4, 0.0), seconds)
    pin = a * np.array([np.cos(angle), 0.0, np.sin(angle)])
    sin_rod = pin[2] / b
    along = b * np.array([np.sqrt(1 - sin_rod**2), 0.0, -sin_rod])
    return {
        "crank": list(map(float, pin / 2)),
        "rod": list(map(float, pin + along / 2)),
        "slider": list(map(float, pin + along)),
    }


def four_bars_points(n: int, seconds: float) -> dict[str, list[float]]:
    """Give the tops of the first and the last bar after a time."""
    rate = 9.81 * ((n + 1) / 2 + n) / ((n + 1) / 3 + n)
    angle = _solve(lambda s, _: rate * float(np.sin(s)), (0.0, 1.0), seconds)
    top: Array = np.array([np.sin(angle), np.cos(angle), 0.0])
    return {
        "first top": list(map(float, top)),
        "last top": list(map(float, top + [n, 0.0, 0.0])),
    }


def reference(work: str, plant: Plant, seconds: float) -> dict[str, list[float]]:
    """Give the named points of a plant after a time."""
    if work == "slider_crank":
        return slider_crank_points(plant, seconds)
    return four_bars_points(len(plant.bodies) // 2, seconds)
