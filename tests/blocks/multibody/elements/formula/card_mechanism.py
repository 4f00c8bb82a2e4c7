"""The slider-crank of the printed cards, whose spring and damper are formulas."""

from __future__ import annotations

import numpy as np

from biella.blocks.multibody import System

START = np.deg2rad(-30.022988)
"""Crank angle of the printed Euler parameters."""

EXPECTED = {
    1: (5.562695, 6.873427, 0.619883),
    2: (11.771843, 6.703798, 0.602252),
    4: (24.195418, 6.397601, 0.565589),
    6: (25.888889, 0.143931, 0.611527),
    10: (25.896844, -0.106411, 0.609628),
    15: (25.398574, -0.064645, 0.696886),
}
"""Crank angle, speed and piston position by time: an integration with one degree of freedom."""


def about_z(angle: float) -> tuple[float, float, float, float]:
    return (np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2))


def build() -> System:
    s = System("cards", gravity=(0, 0, 0))
    turn = np.arcsin(-0.25 * np.sin(START) / 0.5)
    pin = 0.25 * np.array([np.cos(START), np.sin(START), 0.0])
    wrist = pin + 0.5 * np.array([np.cos(turn), np.sin(turn), 0.0])
    crank = s.body("crank", mass=0.2, inertia=(3.4e-6, 1e-3, 1e-3), position=pin / 2,
                   rotation=about_z(START))  # fmt: skip
    rod = s.body("rod", mass=0.4, inertia=(6.79e-6, 8e-3, 8e-3), position=(pin + wrist) / 2,
                 rotation=about_z(turn))  # fmt: skip
    piston = s.body("piston", mass=3.22, inertia=(2.2e-3, 3.78e-3, 3.78e-3),
                    position=wrist - [0.04, 0, 0])  # fmt: skip
    main = s.revolute("main", s.ground, crank, at=(0, 0, 0), axis=(0, 0, 1))
    s.revolute("pin", crank, rod, at=pin, axis=(0, 0, 1))
    s.revolute("wrist", rod, piston, at=wrist, axis=(0, 0, 1))
    s.prismatic("slide", piston, s.ground, at=(0, 0, 0), axis=(1, 0, 0))
    s.torque("motor", crank.marker("shaft"), (0, 0, "50*where(4 - t >= 0, 1, 0)"))
    s.spring(
        "spring",
        s.ground.marker("anchor"),
        piston.marker("anchor"),
        stiffness="10*abs(piston.x - 0.661)",
        free_length=0.661,
    )
    s.torsional_spring(
        "damper",
        main,
        damping="2*abs(crank.e0_rate)*where(t - 4 >= 0, 1, 0) + where(4 - t >= 0, 1, 0)*8",
    )
    return s
