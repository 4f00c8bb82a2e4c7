"""Coefficients of friction as laws of slip and load."""

from __future__ import annotations

from ...system._laws import Formula
from ...system._reading import read_not_negative, read_positive


def stribeck_friction(
    coulomb: float, static: float, speed: float, *, exponent: float = 2.0, viscous: float = 0.0
) -> Formula:
    """Return the coefficient of friction of Stribeck.

    f = coulomb + (static - coulomb) exp(-(v / speed)^exponent) + viscous v, with v the slip of the
    surfaces in m/s.

    Parameters
    ----------
    coulomb, static
        Coefficients of fast and of slow slip.
    speed
        Of the transition between them, in m/s.
    exponent
        Of the transition.
    viscous
        Slope at high speed, in s/m.
    """
    what = "a Stribeck law"
    return Formula(
        "coulomb + (static - coulomb)*exp(-(v/speed)**exponent) + viscous*v",
        {
            "coulomb": read_not_negative(what, "coulomb", coulomb),
            "static": read_not_negative(what, "static", static),
            "speed": read_positive(what, "speed", speed),
            "exponent": read_positive(what, "exponent", exponent),
            "viscous": read_not_negative(what, "viscous", viscous),
        },
    )


def film_friction(*, viscosity: float, length: float, relative_clearance: float) -> Formula:
    """Return the coefficient of friction of a journal bearing with oil, by its Sommerfeld number.

    S = p_m φ² / (μ ω) = N φ² / (2 B μ v), with the mean pressure p_m = N / (2 r B) and the slip
    v = r ω; f = 3 φ / S for S < 1, else 3 φ / √S [V 4.26-4.29]. For S < 1 the friction force
    N f = 6 B μ v / φ does not depend on the load; without slip there is none.

    Parameters
    ----------
    viscosity
        μ, in Pa s.
    length
        B, along the axis, in m.
    relative_clearance
        φ: radial clearance / radius.
    """
    what = "a film friction"
    return Formula(
        "where(N*phi**2 < 2*B*mu*v, 6*B*mu*v/(N*phi), 3*sqrt(2*B*mu*v/N))",
        {
            "mu": read_positive(what, "viscosity", viscosity),
            "B": read_positive(what, "length", length),
            "phi": read_positive(what, "relative_clearance", relative_clearance),
        },
    )
