"""A film of `bearings.py` in ROSS: what a user does to learn the force at one position.

Its equation holds terms that a thin film neglects, on 16 × 65 nodes (it requires an odd number
around), with Gümbel's condition; it starts from nothing each time.
"""

from __future__ import annotations

from collections.abc import Callable

from peers.process import Prepare, serve

RADIUS, LENGTH, CLEARANCE, VISCOSITY, SPEED = 0.02, 0.02, 2e-5, 0.03, 300.0


def film(eccentricity: float) -> Prepare:
    """Solve for the pressure at an eccentricity, and sum it."""
    import numpy as np
    from ross.bearings.fluid_flow import FluidFlow
    from ross.bearings.fluid_flow_coefficients import calculate_oil_film_force

    def run() -> list[float]:
        flow = FluidFlow(
            16,
            65,
            LENGTH,
            SPEED,
            0.0,
            0.0,
            RADIUS,
            RADIUS + CLEARANCE,
            VISCOSITY,
            860.0,
            attitude_angle=np.pi / 4,
            eccentricity=eccentricity * CLEARANCE,
            immediately_calculate_pressure_matrix_numerically=False,
        )
        flow.calculate_pressure_matrix_numerical()
        force = calculate_oil_film_force(flow, force_type="numerical")
        return [float(value) for value in force[:2]]

    def prepare() -> Callable[[], list[float]]:
        return run

    return prepare


if __name__ == "__main__":
    serve("ross", {"film": film}, distribution="ross-rotordynamics")
