"""How warm a bearing's oil is, and how viscous that makes it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ... import _contract as contract
from ...errors import DiagramError
from ..core._block import NativeBlock
from ..core._ports import CONTINUOUS, Port, parameter


@dataclass(frozen=True, slots=True)
class Vogel:
    """Vogel's law: μ = a exp(b / (T - c)).

    Parameters
    ----------
    a
        In Pa s.
    b, c
        In K; the law ends at T = c.
    """

    a: float
    b: float
    c: float

    @classmethod
    def through(cls, points: Sequence[tuple[float, float]]) -> Vogel:
        """Make the law through three points, each a temperature in K and a viscosity in Pa s.

        Parameters
        ----------
        points
            Three of them, at temperatures that rise.
        """
        try:
            (t1, m1), (t2, m2), (t3, m3) = points
            y1, y2, y3 = math.log(m1), math.log(m2), math.log(m3)
            # ln(μ1/μ2) (T3 - T2) / (ln(μ2/μ3) (T2 - T1)) = (T3 - c) / (T1 - c)
            k = (y1 - y2) * (t3 - t2) / ((y2 - y3) * (t2 - t1))
            c = (k * t1 - t3) / (k - 1)
            b = (y1 - y2) * (t1 - c) * (t2 - c) / (t2 - t1)
            made = cls(m1 * math.exp(-b / (t1 - c)), b, c)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            made = cls(math.nan, math.nan, math.nan)
        if not (made.a > 0 and made.b > 0 and made.c < min(t for t, _ in points)):
            raise DiagramError(
                f"Vogel's law goes through three points (K, Pa s) with temperatures that rise and "
                f"viscosities that fall, ever more slowly; got {points!r}."
            )
        return made

    def viscosity(self, temperature: float) -> float:
        """Return the dynamic viscosity in Pa s at a temperature in K.

        Parameters
        ----------
        temperature
            In K.
        """
        return self.a * math.exp(self.b / (temperature - self.c))

    @property
    def numbers(self) -> tuple[float, float, float]:
        """The law as the kernel reads it."""
        return self.a, self.b, self.c


@dataclass(frozen=True, slots=True)
class Walther:
    """Walther's law (ASTM D341): log10 log10(ν + 0.7) = A - B log10 T, ν in mm²/s.

    Parameters
    ----------
    cold, hot
        Two points from the data sheet of the oil: a temperature in K and a kinematic viscosity in
        m²/s, such as ``(313.15, 46e-6), (373.15, 6.8e-6)`` for an ISO VG 46.
    density
        In kg/m³, taken as constant.
    """

    cold: tuple[float, float]
    hot: tuple[float, float]
    density: float

    def __post_init__(self) -> None:
        """Reject points that are not those of an oil."""
        (t1, v1), (t2, v2) = self.cold, self.hot
        if not (0 < t1 < t2 < math.inf and math.inf > v1 > v2 > 0.31e-6 and self.density > 0):
            raise DiagramError(
                f"Walther's law goes through a cold and a hot point (K, m²/s), viscosities above "
                f"0.31e-6 m²/s, and needs a density; got {self!r}."
            )

    def viscosity(self, temperature: float) -> float:
        """Return the dynamic viscosity in Pa s at a temperature in K.

        Parameters
        ----------
        temperature
            In K.
        """
        a, b, density = self.numbers
        power: float = 10.0 ** (10.0 ** (a - b * math.log10(temperature)))
        return 1e-6 * density * (power - 0.7)

    @property
    def numbers(self) -> tuple[float, float, float]:
        """The law as the kernel reads it: A, B and the density."""
        (t1, v1), (t2, v2) = self.cold, self.hot
        y1, y2 = (math.log10(math.log10(1e6 * v + 0.7)) for v in (v1, v2))
        b = (y1 - y2) / (math.log10(t2) - math.log10(t1))
        return y1 + b * math.log10(t1), b, self.density


class OilTemperature(NativeBlock):
    """Lumped thermal model of the oil of a bearing: its temperature and viscosity.

    C dT/dt = P - ρ c Q (T - T_s) - G (T - T_a), with Q the sum of `flow`, if positive.

    Wire `power_loss` of a bearing to it, `supply_flow` or `side_flow` of a finite one, and its
    `viscosity` back to a bearing made with ``viscosity_input=True``. Its outputs follow from its
    state alone, so this is not an algebraic loop.

    Parameters
    ----------
    law
        `Vogel` or `Walther`.
    heat_capacity
        C in J/K, of the oil in the bearing and of the parts heated with it.
    density, specific_heat
        ρ in kg/m³ and c in J/(kg K), of the oil that flows.
    conductance
        G in W/K, from the oil to the surroundings of the bearing.
    temperature
        At the start, in K.
    supply_temperature, ambient_temperature
        T_s and T_a in K, where nothing is wired to these inputs.
    """

    kernel = "oil_temperature"

    def __init__(
        self,
        law: Vogel | Walther,
        *,
        heat_capacity: float,
        density: float = 870.0,
        specific_heat: float = 1900.0,
        conductance: float = 0.0,
        temperature: float = 313.15,
        supply_temperature: float = 313.15,
        ambient_temperature: float = 293.15,
    ) -> None:
        temperatures = (temperature, supply_temperature, ambient_temperature)
        _check(law, heat_capacity, density, specific_heat, conductance, *temperatures)
        names = ("a", "b", "c") if isinstance(law, Vogel) else ("A", "B", "law_density")
        units = ("Pa.s", "K", "K") if isinstance(law, Vogel) else (None, None, "kg/m3")
        super().__init__(
            inputs=[
                Port("power_loss", unit="W", default=0.0, doc="of the bearing"),
                Port("flow", "n", unit="m3/s", default=0.0, doc="of oil through it"),
                Port("supply_temperature", unit="K", default=supply_temperature, doc="of that oil"),
                Port("ambient_temperature", unit="K", default=ambient_temperature),
            ],
            outputs=[
                Port("temperature", unit="K", doc="of the oil"),
                Port("viscosity", unit="Pa.s", doc="dynamic, there"),
            ],
            parameters=[
                parameter("heat_capacity", heat_capacity, unit="J/K", doc="of the heated mass"),
                parameter("volume_heat", density * specific_heat, unit="J/(m3.K)", doc="ρ c"),
                parameter("conductance", conductance, unit="W/K", doc="to the surroundings"),
                parameter(
                    "initial_temperature", temperature, unit="K", doc="at the start", tunable=False
                ),
                *(
                    parameter(name, value, unit=unit, doc=f"of {type(law).__name__}'s law")
                    for name, value, unit in zip(names, law.numbers, units, strict=True)
                ),
            ],
            rate=CONTINUOUS,
            feedthrough=[],
            states=1,
            integers=[contract.OIL_VOGEL if isinstance(law, Vogel) else contract.OIL_WALTHER],
        )


def _check(law: Any, capacity: float, *others: float) -> None:
    if not isinstance(law, (Vogel, Walther)):
        raise DiagramError(
            f"`law` of OilTemperature is a Vogel(…) or a Walther(…) of biella.blocks.bearings, got "
            f"{law!r}."
        )
    try:
        fits = 0 < capacity < math.inf and all(0 <= value < math.inf for value in others)
    except TypeError:
        fits = False
    if not fits:
        raise DiagramError(
            f"OilTemperature needs a positive `heat_capacity` in J/K, and density, specific heat, "
            f"conductance and temperatures (in K) that are not negative; got {capacity!r} and "
            f"{others!r}."
        )
